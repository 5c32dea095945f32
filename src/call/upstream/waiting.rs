//! A request on its way to an upstream: what comes of it, and until when.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::ServerResult;
use rmcp::service::{RequestHandle, RoleClient, ServiceError};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::call::upstream::failure::RequestFailure;
use crate::call::upstream::parked::Question;
use crate::call::upstream::tap::Tap;
use crate::call::{CallerSide, Progress};
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

/// What comes of a request.
#[derive(Debug)]
pub(super) enum Step {
    /// Its answer.
    Answer(Value),
    /// A question; the request is still on its way.
    Question(Question),
}

/// A request on its way. Dropped before its end, it is cancelled at the upstream.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) handle: Option<RequestHandle<RoleClient>>,
    pub(super) tap: Arc<Tap>,
    pub(super) lifecycle: Lifecycle,
    pub(super) progress: mpsc::Receiver<Progress>,
    pub(super) questions: mpsc::Receiver<Question>,
}

/// What came, as it came.
#[derive(Debug)]
pub(super) enum Came {
    Answer {
        answer: Box<Result<ServerResult, ServiceError>>,
        /// Whether an error is the upstream's own answer.
        refused: bool,
    },
    Question(Question),
}

impl Waiting {
    /// Waits for what comes next.
    pub(super) async fn next(
        &mut self,
        side: &CallerSide,
        limits: CallLimits,
    ) -> Result<Came, RequestFailure> {
        let last = limits.last;
        let mut silence = limits.first;
        let answer = loop {
            tokio::select! {
                biased;
                answer = answer_of(&mut self.handle) => break answer,
                () = side.cancel.cancelled() => {
                    self.cancel("the caller went away").await;
                    return Err(RequestFailure::Cancelled);
                }
                Some(question) = self.questions.recv() => return Ok(Came::Question(question)),
                Some(step) = self.progress.recv() => {
                    if let Some(to) = &side.progress {
                        silence = last.min(Instant::now() + limits.silence);
                        // A caller that does not keep up misses steps, not the result.
                        let _full = to.try_send(step);
                    }
                }
                () = tokio::time::sleep_until(silence) => {
                    self.cancel("no answer in time").await;
                    return Err(RequestFailure::Timeout(limits.started.elapsed()));
                }
            }
        };
        let refused = self.is_refused();
        self.finish();
        Ok(Came::Answer {
            answer: answer.into(),
            refused,
        })
    }

    /// Whether the upstream itself has answered with an error.
    fn is_refused(&self) -> bool {
        let handle = self.handle.as_ref();
        handle.is_some_and(|handle| self.tap.has_refused(&handle.id))
    }

    fn finish(&mut self) -> Option<RequestHandle<RoleClient>> {
        let handle = self.handle.take()?;
        self.tap.forget(&handle.id, &handle.progress_token);
        Some(handle)
    }

    /// Tells the upstream. A child that reads nothing must not hold us up.
    async fn cancel(&mut self, reason: &str) {
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

async fn answer_of(
    handle: &mut Option<RequestHandle<RoleClient>>,
) -> Result<ServerResult, ServiceError> {
    match handle {
        Some(handle) => (&mut handle.rx)
            .await
            .unwrap_or(Err(ServiceError::TransportClosed)),
        None => Err(ServiceError::TransportClosed),
    }
}
