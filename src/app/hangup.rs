//! SIGHUP, which asks a server to read its catalog again.

/// SIGHUP, where there is such a thing.
pub(super) struct Hangup {
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

impl Hangup {
    #[cfg(unix)]
    pub(super) fn new(listen: bool) -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        Self {
            signal: listen.then(|| signal(SignalKind::hangup()).ok()).flatten(),
        }
    }

    #[cfg(not(unix))]
    pub(super) fn new(_listen: bool) -> Self {
        Self {}
    }

    /// Resolves on the signal; never where none is listened for.
    pub(super) async fn recv(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.signal
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}
