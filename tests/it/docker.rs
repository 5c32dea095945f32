//! Servers in containers, from end to end: a program `docker` of ours on the path keeps its command
//! lines and runs a real server as its daemon would, apart from itself.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib::domain::{Launch, SecretSlot, Server};

use crate::call::{Crib, python, runs, until};
use crate::program::root;

/// A folder with the program, its log, and a file for each container that runs.
struct Docker(tempfile::TempDir);

impl Docker {
    fn new() -> Option<Self> {
        let python = python()?;
        let folder = tempfile::tempdir().unwrap();
        let script = std::fs::read_to_string(root().join("tests/it/docker.py")).unwrap();
        let program = folder.path().join("docker");
        std::fs::write(&program, format!("#!{python}\n{script}")).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::create_dir(folder.path().join("containers")).unwrap();
        Some(Self(folder))
    }

    /// What it was started with, in order.
    fn calls(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.0.path().join("log")).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    }

    /// Names of the containers that are there.
    fn containers(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path().join("containers")).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    /// A crib whose server is the misbehaving one in a container.
    fn crib(&self, flags: &[&str]) -> Crib {
        let script: PathBuf = root().join("tests/it/upstream.py");
        let launch = |server: &mut Server| {
            server.secrets.push(SecretSlot {
                name: "test.token".parse().unwrap(),
                description: Box::default(),
                optional: false,
            });
            server.launch = Some(Launch::Docker {
                image: "test/upstream:1".into(),
                args: std::iter::once(script.to_str().unwrap())
                    .chain(flags.iter().copied())
                    .map(|arg| arg.parse().unwrap())
                    .collect(),
                env: vec![("TOKEN".into(), "{{secret:test.token}}".parse().unwrap())],
            });
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.0.path().to_owned());
        let path = std::env::join_paths(folders.chain(std::env::split_paths(&path))).unwrap();
        let crib = Crib::without_python(&[], launch, |options| {
            options.environment.retain(|(name, _)| name != "PATH");
            options.environment.push(("PATH".into(), path));
            options.docker_environment = vec![("DOCKER_HOST".into(), "unix:///own.sock".into())];
            options.docker_network = Some("none".to_owned());
        });
        crib.values.set_secret("test.token", "canary-4711");
        crib
    }
}

fn words(call: &Value) -> Vec<&str> {
    let args = call["args"].as_array().unwrap().iter();
    args.map(|arg| arg.as_str().unwrap()).collect()
}

fn value_of<'a>(args: &[&'a str], option: &str) -> &'a str {
    let at = args.iter().position(|arg| *arg == option);
    args[at.unwrap_or_else(|| panic!("no {option}")) + 1]
}

#[tokio::test]
async fn a_container_gets_its_own_variables_and_its_secrets_are_in_no_command_line() {
    let Some(docker) = Docker::new() else { return };
    let crib = docker.crib(&[]);
    let env: Value = serde_json::from_str(&crib.text("env").await).unwrap();
    assert_eq!(env["TOKEN"], "canary-4711");
    assert!(env.get("DOCKER_HOST").is_none(), "{env}");
    crib.text("pid").await;
    let calls = docker.calls();
    assert_eq!(calls.len(), 1, "one container serves all calls");
    let args = words(&calls[0]);
    assert_eq!(args[..4], ["run", "--rm", "--interactive", "--init"]);
    assert_eq!(value_of(&args, "--env"), "TOKEN");
    assert_eq!(value_of(&args, "--network"), "none");
    assert_eq!(value_of(&args, "--security-opt"), "no-new-privileges");
    assert_eq!(value_of(&args, "--pids-limit"), "256");
    assert!(!args.contains(&"--privileged") && !args.contains(&"--volume"));
    assert!(!calls[0]["args"].to_string().contains("canary"), "{args:?}");
    // The client finds its daemon, and the home with its settings.
    assert_eq!(calls[0]["env"]["DOCKER_HOST"], "unix:///own.sock");
    assert!(std::env::var_os("HOME").is_none() || calls[0]["env"]["HOME"].is_string());
    crib.end().await;
    assert_eq!(docker.containers(), Vec::<String>::new());
}

#[tokio::test]
async fn no_container_is_left_by_a_server_that_does_not_end() {
    let Some(docker) = Docker::new() else { return };
    let crib = docker.crib(&["--stubborn"]);
    let pid = crib.text("pid").await;
    let name = docker.containers().pop().unwrap();
    assert_eq!(value_of(&words(&docker.calls()[0]), "--name"), name);
    assert!(runs(&pid));
    crib.end().await;
    assert!(!runs(&pid));
    assert_eq!(docker.containers(), Vec::<String>::new());
    let last = docker.calls().pop().unwrap();
    assert_eq!(words(&last), ["rm", "--force", "--volumes", &name]);
}

#[tokio::test]
async fn each_start_has_a_container_of_its_own() {
    let Some(docker) = Docker::new() else { return };
    let crib = docker.crib(&[]);
    let first = crib.text("pid").await;
    let error = crib.run("crash", json!({})).await.unwrap_err();
    assert_eq!(error.code(), "UPSTREAM_CRASHED");
    assert_ne!(crib.text("pid").await, first);
    let names: Vec<String> = docker
        .calls()
        .iter()
        .map(words)
        .filter(|args| args[0] == "run")
        .map(|args| value_of(&args, "--name").to_owned())
        .collect();
    assert_eq!(names.len(), 2);
    assert_ne!(names[0], names[1]);
    crib.end().await;
    assert_eq!(docker.containers(), Vec::<String>::new());
}

#[tokio::test]
async fn a_start_that_is_given_up_leaves_no_container() {
    let Some(docker) = Docker::new() else { return };
    let crib = docker.crib(&["--mute", "--stubborn"]);
    let call = crib.run("pid", json!({}));
    let stopping = async {
        until("its container runs", || !docker.containers().is_empty()).await;
        crib.lifecycle.cancel();
    };
    let (called, ()) = tokio::join!(call, stopping);
    assert!(called.is_err());
    assert!(crib.lifecycle.wait(Duration::from_secs(5)).await);
    until("it is removed", || docker.containers().is_empty()).await;
}
