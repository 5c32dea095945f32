//! How the runs of spent handles ended, for the tenant that spent them and asks again.
//!
//! An agent whose reply was lost on the way retries with the same handle. It is told that the tool
//! ran, and how that ended, so that it does not search again and run it twice.

use std::time::Duration;

use dashmap::DashMap;
use tokio::time::Instant;

use crate::domain::{HandleKey, RunId, ToolId};
use crate::handles::LIFE;

/// Spent handles that are remembered. Past it a retry learns no more than an unknown handle does.
const REMEMBERED_MAX: usize = 100_000;

/// How the run of a spent handle ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Ending {
    /// It has not.
    Running,
    /// The tool answered.
    Answered,
    /// The server asked for input, and waits for the caller's answer.
    Asked,
    /// The tool answered that it failed.
    ToolFailed,
    /// It was not sent after all.
    NotSent,
    /// No answer came: it may have taken effect or not.
    Unknown,
}

/// The run of a spent handle.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Ran {
    pub(super) run_id: RunId,
    pub(super) tool: ToolId,
    pub(super) ending: Ending,
    /// When the handle was spent.
    pub(super) at: Instant,
}

/// Spent handles, each for as long as a handle lives.
#[derive(Debug, Default)]
pub(super) struct Spent(DashMap<HandleKey, Ran>);

impl Spent {
    /// Notes that a handle is being spent. What is returned says how the run ended; dropped
    /// without a word, as when the caller goes away, it says that nobody knows.
    pub(super) fn start(&self, key: HandleKey, run_id: RunId, tool: ToolId) -> Running<'_> {
        if self.0.len() < REMEMBERED_MAX {
            let ran = Ran {
                run_id,
                tool,
                ending: Ending::Running,
                at: Instant::now(),
            };
            self.0.insert(key, ran);
        }
        Running { spent: self, key }
    }

    /// The run of a handle that was spent within its life. The key is bound to the tenant, so
    /// another's handle is never found.
    pub(super) fn find(&self, key: &HandleKey) -> Option<(Ran, Duration)> {
        let ran = self.0.get(key)?;
        let ago = ran.at.elapsed();
        (ago < LIFE).then(|| (ran.clone(), ago))
    }

    /// Forgets what is past its time. Called by the sweeper.
    pub(super) fn sweep(&self) {
        self.0.retain(|_, ran| ran.at.elapsed() < LIFE);
    }

    fn end(&self, key: &HandleKey, ending: Ending) {
        if let Some(mut ran) = self.0.get_mut(key)
            && ran.ending == Ending::Running
        {
            ran.ending = ending;
        }
    }
}

/// A run under way.
#[derive(Debug)]
pub(super) struct Running<'a> {
    spent: &'a Spent,
    key: HandleKey,
}

impl Running<'_> {
    pub(super) fn end(self, ending: Ending) {
        self.spent.end(&self.key, ending);
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.spent.end(&self.key, Ending::Unknown);
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;
    use crate::domain::Handle;

    #[tokio::test(start_paused = true)]
    async fn a_run_is_remembered_for_a_handles_life_and_one_left_alone_is_unknown() {
        let mut random = StdRng::seed_from_u64(1);
        let handle = Handle::generate(&mut random);
        let run_id = RunId::generate(&mut random);
        let key = handle.key(&"a".parse().unwrap());
        let spent = Spent::default();
        let ending = |spent: &Spent| spent.find(&key).map(|(ran, _)| ran.ending);
        let running = spent.start(key, run_id, "slack/post".parse().unwrap());
        assert_eq!(ending(&spent), Some(Ending::Running));
        assert_eq!(spent.find(&handle.key(&"b".parse().unwrap())), None);
        drop(running);
        assert_eq!(ending(&spent), Some(Ending::Unknown));
        let running = spent.start(key, run_id, "slack/post".parse().unwrap());
        running.end(Ending::Answered);
        assert_eq!(ending(&spent), Some(Ending::Answered));
        tokio::time::advance(LIFE).await;
        assert_eq!(ending(&spent), None);
        spent.sweep();
        assert!(spent.0.is_empty());
    }
}
