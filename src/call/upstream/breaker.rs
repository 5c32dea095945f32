//! After failures in a row a server is left alone for a while, longer each time.

use std::time::Duration;

use tokio::time::Instant;

/// Failures in a row that open the breaker.
const FAILURES_MAX: u32 = 3;
/// First pause; each further failure doubles it.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// The breaker of one server for one tenant.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Breaker {
    failures: u32,
    open_until: Option<Instant>,
}

impl Breaker {
    /// How long it is still open. Afterwards one failure opens it again at once.
    pub(super) fn open_for(&self, now: Instant) -> Option<Duration> {
        self.open_until
            .filter(|until| now < *until)
            .map(|until| until - now)
    }

    /// Counts a failure.
    pub(super) fn fail(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        if let Some(over) = self.failures.checked_sub(FAILURES_MAX) {
            let pause = PAUSE_MIN.saturating_mul(1 << over.min(10)).min(PAUSE_MAX);
            self.open_until = Some(now + pause);
        }
    }

    /// A success closes it.
    pub(super) fn succeed(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_opens_longer_each_time_and_closes_with_a_success() {
        let mut breaker = Breaker::default();
        for _ in 0..2 {
            breaker.fail(Instant::now());
            assert_eq!(breaker.open_for(Instant::now()), None);
        }
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            breaker.fail(Instant::now());
            let pause = Duration::from_secs(seconds);
            assert_eq!(breaker.open_for(Instant::now()), Some(pause));
            tokio::time::advance(pause).await;
            assert_eq!(breaker.open_for(Instant::now()), None);
        }
        breaker.succeed();
        breaker.fail(Instant::now());
        assert_eq!(breaker.open_for(Instant::now()), None);
    }
}
