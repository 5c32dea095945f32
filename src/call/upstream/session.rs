//! One running session with an upstream: from its start to the last of its processes.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, Extensions, JsonObject,
    ListToolsRequest, ListToolsRequestMethod, PaginatedRequestParams, RequestMetaObject,
    ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, ServiceError};
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::call::upstream::failure::{RequestFailure, unsent_or_lost};
use crate::call::upstream::lines::UNREAD;
use crate::call::upstream::parked::Question;
use crate::call::upstream::stderr::Stderr;
use crate::call::upstream::tap::{ProgressTo, QuestionsTo, Tap};
use crate::call::upstream::tokens::{GetTokenError, Tokens};
use crate::call::upstream::waiting::{CallLimits, Came, Step, Waiting};
use crate::call::{CallerSide, Progress};
use crate::lifecycle::Lifecycle;

/// Progress of one call that waits to be passed on; more is thinned out.
const PROGRESS_MAX: usize = 16;
/// Questions of one call that wait to be passed on; others are declined.
const QUESTIONS_MAX: usize = 4;
/// How long to wait for the news that a child has died, once its streams have ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Set in the count of holders when a session takes no more calls.
const RETIRED: usize = 1 << 32;

/// A session that can be called.
#[derive(Debug)]
pub(super) struct Session {
    /// Tells it from all others.
    pub(super) number: u64,
    peer: Peer<RoleClient>,
    tap: Arc<Tap>,
    stderr: Arc<Stderr>,
    tokens: Option<Arc<Tokens>>,
    /// How it ended; `None` while it runs.
    end: watch::Receiver<Option<String>>,
    pub(super) closing: CancellationToken,
    /// Cancelled when its last process is gone.
    pub(super) gone: CancellationToken,
    child: bool,
    /// Of the values that it was started with.
    pub(super) fingerprint: [u8; 32],
    /// Calls that hold it, with [`RETIRED`] on top once it takes no more.
    held: AtomicUsize,
    /// A place for each call at one time.
    pub(super) places: Arc<Semaphore>,
    used: Mutex<Instant>,
    /// Whether its loss was counted.
    counted: AtomicBool,
    lifecycle: Lifecycle,
}

/// What a new session is made of.
pub(super) struct Parts {
    pub(super) number: u64,
    pub(super) peer: Peer<RoleClient>,
    pub(super) tap: Arc<Tap>,
    pub(super) stderr: Arc<Stderr>,
    pub(super) tokens: Option<Arc<Tokens>>,
    pub(super) end: watch::Receiver<Option<String>>,
    pub(super) gone: CancellationToken,
    pub(super) child: bool,
    pub(super) lifecycle: Lifecycle,
}

impl Session {
    /// A session that has just started.
    pub(super) fn new(parts: Parts, fingerprint: [u8; 32], calls_max: usize) -> Self {
        Self {
            number: parts.number,
            peer: parts.peer,
            tap: parts.tap,
            stderr: parts.stderr,
            tokens: parts.tokens,
            end: parts.end,
            closing: CancellationToken::new(),
            gone: parts.gone,
            child: parts.child,
            lifecycle: parts.lifecycle,
            fingerprint,
            held: AtomicUsize::new(0),
            places: Arc::new(Semaphore::new(calls_max)),
            used: Mutex::new(Instant::now()),
            counted: AtomicBool::new(false),
        }
    }

    /// Whether it can take a call.
    pub(super) fn is_open(&self) -> bool {
        self.end.borrow().is_none()
            && !self.closing.is_cancelled()
            && !self.peer.is_transport_closed()
    }

    /// Holds it for one call, unless it is about to end.
    pub(super) fn hold(self: &Arc<Self>) -> Option<Held> {
        let more = |held: usize| (held < RETIRED).then_some(held + 1);
        let held = self.is_open()
            && self
                .held
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, more)
                .is_ok();
        held.then(|| Held(self.clone()))
    }

    fn release(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        if self.held.fetch_sub(1, Ordering::AcqRel) == RETIRED + 1 {
            self.close();
        }
    }

    /// What it runs over, as the conventions call it.
    pub(super) fn transport(&self) -> &'static str {
        transport(self.child)
    }

    /// Takes no more calls, and ends with the last one.
    pub(super) fn retire(&self) {
        if self.held.fetch_or(RETIRED, Ordering::AcqRel) & !RETIRED == 0 {
            self.close();
        }
    }

    /// Ends it, if no call holds it.
    pub(super) fn retire_if_free(&self) -> bool {
        let free = self
            .held
            .compare_exchange(0, RETIRED, Ordering::AcqRel, Ordering::Acquire)
            .is_ok();
        if free {
            self.close();
        }
        free
    }

    /// Whether no call holds it.
    pub(super) fn is_free(&self) -> bool {
        self.held.load(Ordering::Acquire) == 0
    }

    /// Calls that hold it.
    pub(super) fn calls(&self) -> usize {
        self.held.load(Ordering::Acquire) & !RETIRED
    }

    /// Sees to it that a request which is sent now has an access token, where it needs one. An
    /// error comes with whether it is the first to be told of one failure.
    pub(super) async fn token(&self) -> Result<(), (GetTokenError, bool)> {
        let Some(tokens) = &self.tokens else {
            return Ok(());
        };
        let got = tokens.bearer().await;
        got.map(drop)
            .map_err(|error| (error, tokens.failed_first()))
    }

    /// Ends it at once, calls or not.
    pub(super) fn close(&self) {
        self.closing.cancel();
    }

    /// Waits until nothing of it is left.
    pub(super) async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// What its child wrote to standard error last, masked.
    pub(super) fn stderr_tail(&self) -> String {
        self.stderr.tail()
    }

    /// Whether a lost call is the first of this child to be told. Connections are not children:
    /// each loss there is one of its own.
    pub(super) fn lost_first(&self) -> bool {
        !(self.child && self.counted.swap(true, Ordering::AcqRel))
    }

    /// The text without the session's secrets.
    pub(super) fn mask(&self, text: &str) -> String {
        self.stderr.mask(text)
    }

    /// How long nobody has held it.
    pub(super) fn idle(&self) -> Duration {
        match self.calls() {
            0 => self
                .used
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .elapsed(),
            _ => Duration::ZERO,
        }
    }

    /// Resolves never: it ends the session when it has been idle for too long, and lets it run out
    /// when the program stops.
    pub(super) async fn watch_need(&self, idle_max: Duration, lifecycle: &Lifecycle) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(idle_max.saturating_sub(self.idle())) => {
                    if idle_max <= self.idle() && self.retire_if_free() {
                        break;
                    }
                }
                () = lifecycle.stopping() => {
                    self.retire();
                    break;
                }
            }
        }
        std::future::pending::<()>().await;
    }

    /// Sends `tools/call`: a retry, where the caller has answered.
    pub(super) async fn send_call(
        &self,
        tool: &str,
        arguments: JsonObject,
        (side, state): (&CallerSide, Option<String>),
    ) -> Result<Waiting, RequestFailure> {
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        if let Some(answer) = &side.answer {
            params = params.with_input_responses(answer.responses.clone().into_iter().collect());
            params.request_state = state;
        }
        let mut request = CallToolRequest::new(params);
        let (to_us, progress) = mpsc::channel(PROGRESS_MAX);
        request.extensions.insert(ProgressTo(to_us));
        let (to_us, questions) = mpsc::channel(QUESTIONS_MAX);
        if side.askable.is_some() {
            request.extensions.insert(QuestionsTo(to_us));
        }
        let request = ClientRequest::CallToolRequest(request);
        let to_us = (progress, questions);
        self.send(request, options(side), to_us).await
    }

    /// One page of `tools/list`.
    pub(super) async fn list_tools(
        &self,
        cursor: Option<String>,
        limits: CallLimits,
    ) -> Result<Value, RequestFailure> {
        let params =
            cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let request = ClientRequest::ListToolsRequest(ListToolsRequest {
            method: ListToolsRequestMethod,
            params,
            extensions: Extensions::default(),
        });
        let (_none, progress) = mpsc::channel(1);
        let (_none, questions) = mpsc::channel(1);
        let (side, to_us) = (CallerSide::default(), (progress, questions));
        let mut waiting = self.send(request, options(&side), to_us).await?;
        match self.wait(&mut waiting, &side, limits).await? {
            Step::Answer(answer) => Ok(answer),
            // Nobody can be asked within a list.
            Step::Question(_) => Err(RequestFailure::Unreadable("it asked a question".to_owned())),
        }
    }

    async fn send(
        &self,
        request: ClientRequest,
        options: PeerRequestOptions,
        (progress, questions): (mpsc::Receiver<Progress>, mpsc::Receiver<Question>),
    ) -> Result<Waiting, RequestFailure> {
        let sent = self.peer.send_cancellable_request(request, options);
        let Ok(handle) = sent.await else {
            return Err(self.lost().await);
        };
        Ok(Waiting {
            handle: Some(handle),
            tap: self.tap.clone(),
            lifecycle: self.lifecycle.clone(),
            progress,
            questions,
        })
    }

    /// Waits for what comes next of a request.
    pub(super) async fn wait(
        &self,
        waiting: &mut Waiting,
        side: &CallerSide,
        limits: CallLimits,
    ) -> Result<Step, RequestFailure> {
        match waiting.next(side, limits).await? {
            Came::Question(question) => Ok(Step::Question(question)),
            Came::Answer { answer, refused } => self.read(*answer, refused).await.map(Step::Answer),
        }
    }

    /// `refused` says whether an error is the upstream's own answer.
    async fn read(
        &self,
        answer: Result<ServerResult, ServiceError>,
        refused: bool,
    ) -> Result<Value, RequestFailure> {
        match answer {
            Ok(result) => Tap::open(result)
                .ok_or_else(|| RequestFailure::Unreadable("its answer is no JSON".to_owned())),
            Err(ServiceError::McpError(error)) if error.code == UNREAD => {
                Err(RequestFailure::Unreadable(error.message.into_owned()))
            }
            Err(ServiceError::McpError(error)) if refused => Err(RequestFailure::Refused(error)),
            // rmcp's own, as when a session was replaced while the call was under way.
            Err(ServiceError::McpError(error)) => Err(RequestFailure::Lost {
                reason: error.message.into_owned(),
                crashed: false,
            }),
            Err(ServiceError::TransportSend(error)) if !self.child => Err(unsent_or_lost(&error)),
            Err(_lost) => Err(self.lost().await),
        }
    }

    async fn lost(&self) -> RequestFailure {
        let mut end = self.end.clone();
        let known = tokio::time::timeout(LAST_WORDS, end.wait_for(Option::is_some)).await;
        let reason = match known {
            Ok(Ok(reason)) => reason.clone().unwrap_or_default(),
            _ => "the connection was lost".to_owned(),
        };
        RequestFailure::Lost {
            reason,
            crashed: self.child,
        }
    }
}

/// What a session with a child, or with a remote server, runs over.
pub(super) fn transport(child: bool) -> &'static str {
    match child {
        true => "pipe",
        false => "tcp",
    }
}

/// Passes the caller's trace on.
fn options(side: &CallerSide) -> PeerRequestOptions {
    let options = PeerRequestOptions::no_options();
    let Some(trace) = &side.trace else {
        return options;
    };
    let mut meta = RequestMetaObject::new();
    meta.set_traceparent(trace.parent());
    if let Some(state) = trace.state() {
        meta.set_tracestate(state);
    }
    options.with_meta(meta)
}

/// A session that does not end by itself while this lives.
#[derive(Debug)]
pub(super) struct Held(Arc<Session>);

impl Deref for Held {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.release();
    }
}
