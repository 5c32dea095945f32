//! Limits and places of upstream sessions.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Variables of our own environment that a child sees.
const ENVIRONMENT_ALLOWED: [&str; 7] = [
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "SYSTEMROOT",
];

/// What the program `docker` reads to find its daemon, beside what every child sees.
const DOCKER_ALLOWED: [&str; 7] = [
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "DOCKER_CERT_PATH",
    "DOCKER_TLS_VERIFY",
    "DOCKER_API_VERSION",
    "XDG_RUNTIME_DIR",
];

/// Limits and places of upstream sessions. [`Default`] is the documented configuration.
#[derive(Clone, Debug)]
pub struct UpstreamOptions {
    /// Longest start of a session, a first download by `npx` included.
    pub connect_max: Duration,
    /// Longest call, start of the session included; with progress, longest silence.
    pub call_max: Duration,
    /// Longest call that reports progress to a caller who asked for it.
    pub total_max: Duration,
    /// A session without calls is closed after this time.
    pub idle_max: Duration,
    /// Longest wait for a place when a limit below is reached.
    pub wait_max: Duration,
    /// Between TERM and KILL when a child is stopped.
    pub kill_after: Duration,
    /// Sessions at one time.
    pub sessions_max: usize,
    /// Sessions at one time for one tenant.
    pub tenant_sessions_max: usize,
    /// Calls at one time on one session.
    pub calls_max: usize,
    /// Calls that may wait for one session.
    pub waiting_max: usize,
    /// Longest result, in characters of text; what is longer is cut and marked.
    pub result_chars_max: usize,
    /// Longest message of an upstream, in bytes; a longer one is not read.
    pub message_bytes_max: usize,
    /// Memory of one session's processes, in bytes; one with more is ended.
    pub memory_bytes_max: u64,
    /// Processes of one session; one with more is ended.
    pub processes_max: usize,
    /// Where tenants' folders are made.
    pub workspaces: PathBuf,
    /// Folders with an `installed.json`: packages in it are started without `npx` and `uvx`.
    pub installed: Vec<PathBuf>,
    /// What every child finds in its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// What the program `docker` finds in its environment besides; no container sees it.
    pub docker_environment: Vec<(OsString, OsString)>,
    /// The network that containers join, where it is not docker's own default.
    pub docker_network: Option<String>,
    /// Whether plain `http` to an explicit loopback address is allowed.
    pub http_on_loopback: bool,
}

impl Default for UpstreamOptions {
    fn default() -> Self {
        Self {
            connect_max: Duration::from_mins(1),
            call_max: Duration::from_secs(50),
            total_max: Duration::from_mins(10),
            idle_max: Duration::from_mins(5),
            wait_max: Duration::from_secs(5),
            kill_after: Duration::from_secs(2),
            sessions_max: 128,
            tenant_sessions_max: 16,
            calls_max: 64,
            waiting_max: 256,
            result_chars_max: 45_000,
            message_bytes_max: 32 * 1024 * 1024,
            memory_bytes_max: 4 * 1024 * 1024 * 1024,
            processes_max: 256,
            workspaces: std::env::temp_dir().join("toolcrib-workspaces"),
            installed: Vec::new(),
            environment: variables(&ENVIRONMENT_ALLOWED),
            docker_environment: variables(&DOCKER_ALLOWED),
            docker_network: None,
            http_on_loopback: false,
        }
    }
}

/// Variables of our own environment, by name.
fn variables(allowed: &[&str]) -> Vec<(OsString, OsString)> {
    let is_allowed = |name: &OsString| name.to_str().is_some_and(|n| allowed.contains(&n));
    std::env::vars_os()
        .filter(|(name, _)| is_allowed(name))
        .collect()
}
