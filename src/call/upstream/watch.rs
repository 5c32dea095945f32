//! The task that sees a session to its end and leaves nothing behind.

use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{RoleClient, RunningService};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_util::sync::CancellationToken;

use crate::call::upstream::census::{Caps, Census};
use crate::call::upstream::child::{Process, in_words};
use crate::call::upstream::session::Session;
use crate::call::upstream::tap::Client;
use crate::lifecycle::Lifecycle;

/// How long a child may take to end once its streams have.
const STATUS_MAX: Duration = Duration::from_millis(300);

/// What a session takes along to its end.
pub(super) type Permits = Vec<OwnedSemaphorePermit>;

/// What the task that watches over a session owns.
pub(super) struct Watched {
    pub(super) session: Arc<Session>,
    pub(super) service: RunningService<RoleClient, Client>,
    pub(super) process: Option<Process>,
    pub(super) ended: watch::Sender<Option<String>>,
    pub(super) permits: Arc<Permits>,
    pub(super) census: Arc<Census>,
    pub(super) caps: Caps,
    pub(super) kill_after: Duration,
    pub(super) idle_max: Duration,
    /// Cancelled when all sessions are to end.
    pub(super) closed: CancellationToken,
}

impl Watched {
    /// Waits for the end of the session, by itself or on request, and leaves nothing behind.
    pub(super) async fn until_the_end(mut self, lifecycle: Lifecycle) {
        let stop_service = self.service.cancellation_token();
        let mut service = std::pin::pin!(self.service.waiting());
        let mut service_ended = false;
        let group = self.process.as_ref().and_then(Process::group);
        let mut is_over = false;
        let how = tokio::select! {
            how = end_of(&mut self.process) => how,
            _ = &mut service => {
                service_ended = true;
                // A child's streams end a moment before it does.
                let status = tokio::time::timeout(STATUS_MAX, end_of(&mut self.process)).await;
                status.unwrap_or_else(|_late| "the connection ended".to_owned())
            }
            excess = self.census.excess(group, self.caps, || self.session.idle()) => {
                is_over = true;
                excess
            }
            () = self.session.closing.cancelled() => "it was closed".to_owned(),
            () = self.closed.cancelled() => "it was closed".to_owned(),
            () = lifecycle.cancelled() => "it was closed".to_owned(),
            () = self.session.watch_need(self.idle_max, &lifecycle) => String::new(),
        };
        self.ended.send_replace(Some(how));
        if is_over && let Some(process) = &self.process {
            process.kill().await;
        }
        stop_service.cancel();
        if !service_ended {
            // Ends the child's input, or deletes the remote session.
            let _best_effort = tokio::time::timeout(self.kill_after, service).await;
        }
        if let Some(process) = self.process.take() {
            process.stop(self.kill_after).await;
        }
        drop(self.permits);
        self.session.gone.cancel();
    }
}

async fn end_of(process: &mut Option<Process>) -> String {
    match process {
        Some(process) => match process.ended().await {
            Ok(status) => in_words(status),
            Err(error) => error.to_string(),
        },
        None => std::future::pending().await,
    }
}
