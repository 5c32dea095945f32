//! A child process: started without a shell, stopped with everything that it has started.

use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use secrecy::ExposeSecret;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::call::resolve::{Resolved, Target};
use crate::call::upstream::container::Container;
use crate::call::upstream::family::Family;
use crate::call::upstream::{UpstreamOptions, installed, limits};

/// How often a group that was asked to stop is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long killed processes may take to go.
const KILLED_MAX: Duration = Duration::from_millis(500);
/// How long a child may take to end by itself once its input has ended.
const END_OF_INPUT: Duration = Duration::from_millis(500);

/// The three standard streams of a child.
pub(crate) struct Streams {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

/// A running child and its process group. Dropped, it is killed with the whole group.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    group: Option<Pid>,
    /// What `docker run` has started elsewhere.
    container: Option<Container>,
}

impl Process {
    /// Starts what a launch says. The environment holds the allow-list and the launch's own
    /// variables, and nothing else.
    pub(super) fn start(
        resolved: &Resolved,
        options: &UpstreamOptions,
    ) -> io::Result<(Self, Streams)> {
        let memory = Some(options.memory_bytes_max);
        let (command, args, env) = match &resolved.target {
            Target::Child { command, args, env } => (command, args, env),
            Target::Container { image, args, env } => {
                let container = Container::new(options)?;
                let mut command = container.run((image, args), env, options);
                command.current_dir(&resolved.workspace);
                let (mut process, streams) = Self::spawn_within(command, memory)?;
                process.container = Some(container);
                return Ok((process, streams));
            }
            Target::Remote { .. } | Target::Service { .. } => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        };
        let (program, args) = match installed::find(command, args, &options.installed) {
            Some((program, args)) => (program.into_os_string(), args),
            None => (
                OsString::from(command),
                installed::apart(command, args, &options.workspaces),
            ),
        };
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .envs(
                options
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .envs(
                env.iter()
                    .map(|(name, value)| (name, value.expose_secret())),
            )
            .current_dir(&resolved.workspace);
        Self::spawn_within(command, memory)
    }

    /// Starts a command in a process group of its own, with its streams piped.
    pub(crate) fn spawn(command: Command) -> io::Result<(Self, Streams)> {
        Self::spawn_within(command, None)
    }

    fn spawn_within(
        mut command: Command,
        memory_bytes_max: Option<u64>,
    ) -> io::Result<(Self, Streams)> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        limits::apply(&mut command, memory_bytes_max);
        let mut child = command.spawn()?;
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .map(Pid::from_raw);
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let process = Self {
            child,
            group,
            container: None,
        };
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok((
            process,
            Streams {
                stdin,
                stdout,
                stderr,
            },
        ))
    }

    /// Its process group, which has the number of its first process.
    pub(super) fn group(&self) -> Option<Pid> {
        self.group
    }

    /// Kills it with all that it has started, while it starts more. [`Process::stop`] collects it.
    pub(super) async fn kill(&self) {
        let group = self.group;
        let killing = tokio::task::spawn_blocking(move || group.map(Family::kill_growing));
        // It cannot panic; and what is left is killed by `stop`.
        let _killed = killing.await;
    }

    /// Resolves when the child itself has ended; what it started may still run.
    pub(crate) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Ends the child and all of its group: by end of input, else by TERM, else by KILL. The
    /// caller has closed its input.
    pub(crate) async fn stop(mut self, kill_after: Duration) -> Option<ExitStatus> {
        // Reading the list of processes takes milliseconds.
        let group = self.group;
        let looking = tokio::task::spawn_blocking(move || group.map(Family::of));
        let family = looking.await.ok().flatten().unwrap_or_default();
        let polite = tokio::time::timeout(END_OF_INPUT, self.child.wait()).await;
        let mut status = polite.ok().and_then(Result::ok);
        self.signal(Signal::SIGTERM);
        let ending = async {
            if status.is_none() {
                status = self.child.wait().await.ok();
            }
            group_gone(group).await;
        };
        let _killed_below = tokio::time::timeout(kill_after, ending).await;
        self.signal(Signal::SIGKILL);
        family.kill();
        if status.is_none() {
            status = self.child.wait().await.ok();
        }
        // What is killed takes a moment to go; what nobody collects never does.
        let _uncollected = tokio::time::timeout(KILLED_MAX, group_gone(group)).await;
        self.group = None;
        if let Some(container) = self.container.take() {
            container.remove().await;
        }
        status
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // The group may be gone already, which is what is wanted.
            let _gone = killpg(group, signal);
        }
    }
}

/// Resolves when no process of a group is left.
async fn group_gone(group: Option<Pid>) {
    while group.is_some_and(|group| killpg(group, None).is_ok()) {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        if let Some(container) = &self.container {
            container.abandon();
        }
    }
}

/// An exit status in words.
pub(super) fn in_words(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, Some(signal)) => format!("it was killed by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
}
