//! A request that was sent and is not answered yet.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::ServerResult;
use rmcp::service::{RequestHandle, RoleClient, ServiceError};
use tokio::time::Instant;

use crate::call::upstream::tap::Tap;
use crate::lifecycle::Lifecycle;

/// How long the notice of a cancelled call may take.
const CANCEL_MAX: Duration = Duration::from_secs(1);

/// When a request has taken too long.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallLimits {
    /// When it began.
    pub(super) started: Instant,
    /// The end, unless progress comes.
    pub(super) first: Instant,
    /// Allowed between two steps of progress.
    pub(super) silence: Duration,
    /// The end in any case.
    pub(super) last: Instant,
}

/// A request on its way. Dropped before its end, it is cancelled at the upstream.
pub(super) struct Waiting {
    handle: Option<RequestHandle<RoleClient>>,
    tap: Arc<Tap>,
    lifecycle: Lifecycle,
}

impl Waiting {
    pub(super) fn new(
        handle: RequestHandle<RoleClient>,
        tap: Arc<Tap>,
        lifecycle: Lifecycle,
    ) -> Self {
        Self {
            handle: Some(handle),
            tap,
            lifecycle,
        }
    }

    pub(super) async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        match &mut self.handle {
            Some(handle) => (&mut handle.rx)
                .await
                .unwrap_or(Err(ServiceError::TransportClosed)),
            None => Err(ServiceError::TransportClosed),
        }
    }

    /// Whether the upstream itself has answered with an error.
    pub(super) fn is_refused(&self) -> bool {
        let handle = self.handle.as_ref();
        handle.is_some_and(|handle| self.tap.has_refused(&handle.id))
    }

    pub(super) fn finish(&mut self) -> Option<RequestHandle<RoleClient>> {
        let handle = self.handle.take()?;
        self.tap.forget(&handle.id, &handle.progress_token);
        Some(handle)
    }

    /// Tells the upstream. A child that reads nothing must not hold us up.
    pub(super) async fn cancel(&mut self, reason: &str) {
        if let Some(handle) = self.finish() {
            let notice = handle.cancel(Some(reason.to_owned()));
            let _best_effort = tokio::time::timeout(CANCEL_MAX, notice).await;
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(handle) = self.finish() else {
            return;
        };
        // Outside of a runtime there is nobody left to tell it.
        if tokio::runtime::Handle::try_current().is_ok() {
            let notice = handle.cancel(Some("the caller went away".to_owned()));
            self.lifecycle
                .spawn(tokio::time::timeout(CANCEL_MAX, notice));
        }
    }
}
