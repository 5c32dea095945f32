//! Databases of the machine's own packages, in a folder and on a port of their own.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::on_path;
use crate::program::pause;

/// How long a database may take to listen.
const START_MAX: Duration = Duration::from_mins(1);
/// Postgres does not run as root: then it runs as the user `nobody`.
const NOBODY: u32 = 65_534;

pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn wait_for(port: u16) {
    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(start.elapsed() < START_MAX, "nobody listens");
        pause();
    }
}

/// A Redis without a disk.
pub(super) struct Redis {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Redis {
    pub(super) fn start() -> Option<Self> {
        let program = on_path("redis-server", &[])?;
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let child = Command::new(program)
            .args(["--bind", "127.0.0.1", "--save", "", "--port"])
            .arg(port.to_string())
            .arg("--dir")
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let redis = Self {
            child,
            port,
            _folder: folder,
        };
        wait_for(port);
        Some(redis)
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The answer to a command, as it is on the wire.
    pub(super) fn ask(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(stream, "{command}\r\nQUIT\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.strip_suffix("+OK\r\n").unwrap().to_owned()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A Postgres with one database, that trusts everybody on this machine.
pub(super) struct Postgres {
    child: Child,
    port: u16,
    psql: PathBuf,
    _folder: tempfile::TempDir,
}

impl Postgres {
    pub(super) fn start() -> Option<Self> {
        let debian = versions(Path::new("/usr/lib/postgresql"));
        let initdb = on_path("initdb", &debian)?;
        let (server, psql) = (on_path("postgres", &debian)?, on_path("psql", &debian)?);
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        if root {
            std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let command = |program: &Path| {
            let mut command = Command::new(program);
            command
                .current_dir(folder.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            if root {
                command.uid(NOBODY).gid(NOBODY);
            }
            command
        };
        let data = folder.path().join("data");
        let made = command(&initdb)
            .args(["--auth=trust", "--username=postgres", "--no-sync", "-D"])
            .arg(&data)
            .status();
        assert!(made.unwrap().success(), "initdb");
        let child = command(&server)
            .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-F", "-D"])
            .arg(&data)
            .arg("-k")
            .arg(folder.path())
            .spawn()
            .unwrap();
        let postgres = Self {
            child,
            port,
            psql,
            _folder: folder,
        };
        wait_for(port);
        Some(postgres)
    }

    pub(super) fn url(&self) -> String {
        format!("postgresql://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Runs statements as the owner, past the relay, and gives their bare rows.
    pub(super) fn sql(&self, statements: &str) -> String {
        let start = Instant::now();
        loop {
            let mut command = Command::new(&self.psql);
            command.args([
                "-qAtX",
                "-v",
                "ON_ERROR_STOP=1",
                "-c",
                statements,
                &self.url(),
            ]);
            let output = command.output().unwrap();
            if output.status.success() {
                return String::from_utf8(output.stdout).unwrap();
            }
            // It listens before it is ready.
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                said.contains("starting up") && start.elapsed() < START_MAX,
                "{said}"
            );
            pause();
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // A fast shutdown, which ends its own children too.
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-INT", &pid]).status();
        let _ = self.child.wait();
    }
}

/// `VERSION/bin` below a folder, newest first.
fn versions(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    found.sort();
    found.reverse();
    found
}
