//! Starting and stopping: every task is known, and shutdown waits for each.

use std::future::Future;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};
use tokio_util::task::TaskTracker;

/// Tasks of the program and the two signals they heed. Clones share both.
///
/// Stopping has two steps: [`Lifecycle::stop`] asks everyone to finish, and
/// [`Lifecycle::cancel`] ends what has not.
#[derive(Clone, Debug, Default)]
pub struct Lifecycle {
    tasks: TaskTracker,
    stopping: CancellationToken,
    cancelled: CancellationToken,
}

impl Lifecycle {
    /// Nothing running.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a task that shutdown waits for.
    pub fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.tasks.spawn(task)
    }

    /// Resolves when the program begins to stop. Loops select on it.
    pub fn stopping(&self) -> WaitForCancellationFuture<'_> {
        self.stopping.cancelled()
    }

    /// Whether the program has begun to stop.
    pub fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// Resolves when the grace period is over. Calls in flight select on it.
    pub fn cancelled(&self) -> WaitForCancellationFuture<'_> {
        self.cancelled.cancelled()
    }

    /// The stopping signal, for libraries that take a token.
    pub fn stopping_token(&self) -> CancellationToken {
        self.stopping.clone()
    }

    /// The signal that the grace period is over, for libraries that take a token.
    pub fn cancelled_token(&self) -> CancellationToken {
        self.cancelled.clone()
    }

    /// Asks all tasks to finish.
    pub fn stop(&self) {
        self.stopping.cancel();
        self.tasks.close();
    }

    /// Ends what has not finished.
    pub fn cancel(&self) {
        self.stop();
        self.cancelled.cancel();
    }

    /// Waits until all tasks have ended, at most `limit`. Says whether they have.
    pub async fn wait(&self, limit: Duration) -> bool {
        self.tasks.close();
        tokio::time::timeout(limit, self.tasks.wait()).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn shutdown_waits_for_every_task_and_no_longer_than_asked() {
        let lifecycle = Lifecycle::new();
        let inside = lifecycle.clone();
        let task = lifecycle.spawn(async move { inside.stopping().await });
        let inside = lifecycle.clone();
        lifecycle.spawn(async move { inside.cancelled().await });
        lifecycle.stop();
        task.await.unwrap();
        assert!(!lifecycle.wait(Duration::from_secs(1)).await);
        lifecycle.cancel();
        assert!(lifecycle.wait(Duration::from_secs(1)).await);
    }
}
