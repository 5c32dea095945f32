//! What is counted for one tenant: live handles and wrong guesses.

use std::time::Duration;

use tokio::time::Instant;

/// Counts of one tenant.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Live handles.
    pub(super) alive: usize,
    misses: u32,
    window_start: Option<Instant>,
    locked_until: Option<Instant>,
}

impl Ledger {
    /// Counts a wrong handle; the last one that a window allows starts a lock-out.
    pub(super) fn miss(&mut self, now: Instant, max: u32, window: Duration) {
        let fresh = self.window_start.is_none_or(|start| start + window <= now);
        if fresh {
            self.window_start = Some(now);
            self.misses = 0;
        }
        self.misses += 1;
        if max <= self.misses {
            self.locked_until = Some(now + window);
        }
    }

    /// How long the tenant stays locked out, if it is.
    pub(super) fn locked_for(&self, now: Instant) -> Option<Duration> {
        self.locked_until
            .filter(|until| now < *until)
            .map(|until| until - now)
    }

    /// Whether nothing here is worth keeping.
    pub(super) fn is_idle(&self, now: Instant, window: Duration) -> bool {
        let quiet = self.window_start.is_none_or(|start| start + window <= now);
        self.alive == 0 && quiet && self.locked_for(now).is_none()
    }
}
