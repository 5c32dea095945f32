//! What the processes of a session use, looked at while it runs: one with too many of them, or with
//! too much memory, is ended.
//!
//! The kernel limits the memory of each single process (`limits`). What they use together, and how
//! many they are, only control groups could limit, and these need rights that a server rarely has.

use std::sync::Arc;
use std::time::Duration;

use nix::unistd::Pid;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::call::upstream::UpstreamOptions;
use crate::call::upstream::family::Processes;

/// How often a session in use is looked at.
const IN_USE_EVERY: Duration = Duration::from_secs(1);
/// How often one is that nobody has used for a while.
const IDLE_EVERY: Duration = Duration::from_secs(5);
/// How long a session counts as in use after its last call.
const IN_USE_FOR: Duration = Duration::from_secs(10);

/// What the processes of one session may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caps {
    memory_bytes: u64,
    processes: usize,
}

impl Caps {
    pub(super) fn of(options: &UpstreamOptions) -> Self {
        Self {
            memory_bytes: options.memory_bytes_max,
            processes: options.processes_max,
        }
    }
}

/// The processes of the machine as they were last seen: one look serves all sessions.
#[derive(Debug, Default)]
pub(super) struct Census {
    seen: Mutex<Option<(Instant, Arc<Processes>)>>,
}

impl Census {
    /// Resolves when a session's processes are over a cap, with words that say so; never for what
    /// has no process here. `idle` is how long nobody has used the session.
    pub(super) async fn excess(
        &self,
        group: Option<Pid>,
        caps: Caps,
        idle: impl Fn() -> Duration,
    ) -> String {
        let Some(group) = group else {
            return std::future::pending().await;
        };
        loop {
            let every = match idle() < IN_USE_FOR {
                true => IN_USE_EVERY,
                false => IDLE_EVERY,
            };
            tokio::time::sleep(every).await;
            let processes = self.processes(every).await;
            // The first is the child itself, which its group holds too.
            let family = processes.below(group);
            if caps.processes < family.len() {
                return format!(
                    "it had {} processes, over the limit of {}, and was ended",
                    family.len(),
                    caps.processes
                );
            }
            let bytes = family.bytes();
            if caps.memory_bytes < bytes {
                return format!(
                    "it used {} MiB of memory, over the limit of {}, and was ended",
                    bytes >> 20,
                    caps.memory_bytes >> 20
                );
            }
        }
    }

    /// The processes as they were at most `age_max` ago.
    async fn processes(&self, age_max: Duration) -> Arc<Processes> {
        let mut seen = self.seen.lock().await;
        if let Some((at, processes)) = &*seen
            && at.elapsed() < age_max
        {
            return processes.clone();
        }
        let looking = tokio::task::spawn_blocking(Processes::look).await;
        let processes = Arc::new(looking.unwrap_or_default());
        *seen = Some((Instant::now(), processes.clone()));
        processes
    }
}
