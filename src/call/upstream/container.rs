//! A container of a server: the command line of `docker run`, and how the container is taken away.
//!
//! The program `docker` is a client: its end is not the end of the container, which its daemon
//! runs. So each container has a name of its own, by which it is removed when its session ends.

use std::process::Stdio;
use std::time::Duration;

use rand::TryRngCore;
use rand::rngs::OsRng;
use secrecy::{ExposeSecret, SecretString};
use tokio::process::Command;

use crate::call::upstream::UpstreamOptions;

/// How long the daemon may take to remove a container.
const REMOVE_MAX: Duration = Duration::from_secs(10);

/// A container, by its name.
#[derive(Debug)]
pub(super) struct Container {
    name: String,
    environment: Vec<(std::ffi::OsString, std::ffi::OsString)>,
}

impl Container {
    /// A container that does not run yet.
    pub(super) fn new(options: &UpstreamOptions) -> std::io::Result<Self> {
        let number = OsRng.try_next_u64().map_err(std::io::Error::other)?;
        let environment = options
            .environment
            .iter()
            .chain(&options.docker_environment);
        Ok(Self {
            name: format!("toolcrib-{number:016x}"),
            environment: environment.cloned().collect(),
        })
    }

    /// `docker run`. The container gets the variables of `env` and no others, and the limits that a
    /// process of ours would have.
    pub(super) fn run(
        &self,
        (image, args): (&str, &[String]),
        env: &[(String, SecretString)],
        options: &UpstreamOptions,
    ) -> Command {
        let mut command = self.docker(env);
        command
            .args([
                "run",
                "--rm",
                "--interactive",
                "--init",
                "--name",
                &self.name,
            ])
            .args(["--label", "toolcrib", "--security-opt", "no-new-privileges"])
            .args(["--memory", &format!("{}b", options.memory_bytes_max)])
            .args(["--pids-limit", &options.processes_max.to_string()]);
        if let Some(network) = &options.docker_network {
            command.args(["--network", network]);
        }
        // The name alone: docker reads the value from its own environment, so that no process list
        // shows it.
        for (name, _) in env {
            command.args(["--env", name]);
        }
        command.arg(image).args(args);
        command
    }

    /// Removes the container, if it is still there.
    pub(super) async fn remove(&self) {
        let mut removing = self.removing();
        // `--rm` has removed it already where it has ended by itself: then this fails.
        let _gone = tokio::time::timeout(REMOVE_MAX, removing.kill_on_drop(true).status()).await;
    }

    /// Has it removed without waiting for it.
    pub(super) fn abandon(&self) {
        if tokio::runtime::Handle::try_current().is_ok() {
            // The runtime collects the process; without one we end, and it is nobody's.
            let _removing = self.removing().spawn();
        }
    }

    fn removing(&self) -> Command {
        let mut command = self.docker(&[]);
        command
            .args(["rm", "--force", "--volumes", &self.name])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// What docker itself reads stands over a server's variables of the same name: no server says
    /// which daemon runs it.
    fn docker(&self, env: &[(String, SecretString)]) -> Command {
        let mut command = Command::new("docker");
        let env = env.iter();
        command
            .env_clear()
            .envs(env.map(|(name, value)| (name, value.expose_secret())))
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docker_reads_values_from_its_environment() {
        let options = UpstreamOptions {
            docker_network: Some("none".to_owned()),
            docker_environment: vec![("DOCKER_HOST".into(), "unix:///ours".into())],
            ..UpstreamOptions::default()
        };
        let container = Container::new(&options).unwrap();
        let env = [("TOKEN", "t0ken"), ("DOCKER_HOST", "tcp://theirs")];
        let env = env.map(|(name, value)| (name.to_owned(), SecretString::from(value)));
        let command = container.run(("mcp/db:1", &["--host=h".to_owned()]), &env, &options);
        let command = command.as_std();
        let args: Vec<&str> = command
            .get_args()
            .map(|arg| arg.to_str().unwrap())
            .collect();
        let name = &container.name;
        let expected = format!(
            "run --rm --interactive --init --name {name} --label toolcrib --security-opt no-new-privileges \
             --memory 4294967296b --pids-limit 256 --network none --env TOKEN --env DOCKER_HOST mcp/db:1 --host=h"
        );
        assert_eq!(args.join(" "), expected);
        let value = |wanted: &str| {
            let mut found = command.get_envs().filter(|(name, _)| *name == wanted);
            found.next().and_then(|(_, value)| value?.to_str())
        };
        assert_eq!(value("TOKEN"), Some("t0ken"));
        assert_eq!(value("DOCKER_HOST"), Some("unix:///ours"));
        assert_ne!(*name, Container::new(&options).unwrap().name);
    }
}
