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
    /// Where tenants' folders are made.
    pub workspaces: PathBuf,
    /// Folders with an `installed.json`: packages in it are started without `npx` and `uvx`.
    pub installed: Vec<PathBuf>,
    /// What every child finds in its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether plain `http` to an explicit loopback address is allowed.
    pub http_on_loopback: bool,
}

impl Default for UpstreamOptions {
    fn default() -> Self {
        let allowed = |name: &OsString| {
            name.to_str()
                .is_some_and(|n| ENVIRONMENT_ALLOWED.contains(&n))
        };
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
            workspaces: std::env::temp_dir().join("toolcrib-workspaces"),
            installed: Vec::new(),
            environment: std::env::vars_os()
                .filter(|(name, _)| allowed(name))
                .collect(),
            http_on_loopback: false,
        }
    }
}
