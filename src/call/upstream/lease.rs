//! A session that is held for one call, and what becomes of the call.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::InputRequiredResult;
use serde_json::{Map, Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tracing::warn;

use crate::call::CallerSide;
use crate::call::input::{AskError, Askable, check_round, is_round};
use crate::call::upstream::failure::RequestFailure;
use crate::call::upstream::mask::mask;
use crate::call::upstream::parked::{Answer, Asks};
use crate::call::upstream::service::{HeldService, NO_OPERATION};
use crate::call::upstream::session::{Held, transport};
use crate::call::upstream::slot::Slot;
use crate::call::upstream::waiting::{CallLimits, Step, Waiting};
use crate::call::upstream::{Pool, UpstreamError};
use crate::domain::{ServerName, ToolName};
use crate::lifecycle::Lifecycle;
use crate::telemetry::{Request, record_request};

/// Pages of one tool list.
const PAGES_MAX: usize = 100;
/// Tools of one server.
const TOOLS_MAX: usize = 10_000;

/// What is held for a call.
#[derive(Debug)]
pub(super) enum Link {
    /// A session with an MCP server.
    Session(Held),
    /// An HTTP service.
    Service(HeldService),
}

impl Link {
    pub(super) fn places(&self) -> Arc<Semaphore> {
        match self {
            Self::Session(session) => session.places.clone(),
            Self::Service(held) => held.linked.places.clone(),
        }
    }

    /// What it runs over, as the conventions call it.
    fn transport(&self) -> &'static str {
        match self {
            Self::Session(session) => session.transport(),
            Self::Service(_) => transport(false),
        }
    }

    fn stderr_tail(&self) -> String {
        match self {
            Self::Session(session) => session.stderr_tail(),
            Self::Service(_) => String::new(),
        }
    }

    fn mask(&self, text: &str) -> String {
        match self {
            Self::Session(session) => session.mask(text),
            Self::Service(held) => mask(text, &held.secrets),
        }
    }

    /// Whether a lost call is one more failure: all calls of a session are lost with it.
    fn lost_first(&self) -> bool {
        match self {
            Self::Session(session) => session.lost_first(),
            Self::Service(_) => true,
        }
    }
}

/// A session or service that is held for one call.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(super) pool: Arc<Pool>,
    pub(super) link: Link,
    pub(super) slot: Arc<Slot>,
    pub(super) server: ServerName,
    pub(super) started: Instant,
    pub(super) _place: OwnedSemaphorePermit,
}

impl Lease {
    /// Looks a last time before the handle is taken: a session that has ended meanwhile must not
    /// cost it.
    pub(crate) fn check(&self, tool: &ToolName) -> Result<(), UpstreamError> {
        let session = match &self.link {
            Link::Session(session) => session,
            Link::Service(held) if held.operations.contains_key(tool) => return Ok(()),
            Link::Service(_) => return Err(self.unsent(NO_OPERATION)),
        };
        if session.is_open() {
            return Ok(());
        }
        Err(UpstreamError::Crashed {
            server: self.server.clone(),
            reason: "it ended before the call was sent".to_owned(),
            stderr: session.stderr_tail(),
            sent: false,
        })
    }

    fn unsent(&self, reason: &str) -> UpstreamError {
        UpstreamError::Unavailable {
            server: self.server.clone(),
            reason: reason.to_owned(),
            stderr: String::new(),
            sent: false,
            retry_after: None,
        }
    }

    /// Sends a call and waits for what comes of it. From here on nothing is sent twice. A retry
    /// goes with the upstream's own `state`.
    pub(crate) async fn call(
        self,
        tool: &ToolName,
        arguments: Map<String, Value>,
        side: &CallerSide,
        state: Option<String>,
    ) -> Result<Answer, UpstreamError> {
        let session = match &self.link {
            Link::Session(session) => session,
            Link::Service(held) => return self.call_service(held, (tool, arguments), side).await,
        };
        let sent = session
            .send_call(tool.as_str(), arguments, (side, state))
            .await;
        match sent {
            Ok(waiting) => self.wait(waiting, side).await,
            Err(failure) => {
                let failed = Err(self.describe(failure));
                self.record(Request::CallTool, outcome_of(&failed), Duration::ZERO);
                failed
            }
        }
    }

    /// Waits for what comes of a call.
    pub(super) async fn wait(
        self,
        waiting: Waiting,
        side: &CallerSide,
    ) -> Result<Answer, UpstreamError> {
        // What takes `self` along may be a question: its session counts it all the same.
        let (transport, begun) = (self.link.transport(), Instant::now());
        let answer = self.wait_uncounted(waiting, side).await;
        let outcome = outcome_of(&answer);
        record_request(Request::CallTool, transport, outcome, begun.elapsed());
        answer
    }

    /// One request to an HTTP service, which cannot ask.
    async fn call_service(
        &self,
        held: &HeldService,
        (tool, arguments): (&ToolName, Map<String, Value>),
        side: &CallerSide,
    ) -> Result<Answer, UpstreamError> {
        let begun = Instant::now();
        let answer = match held.call(tool, &arguments, side, self.limits(false)).await {
            Ok(result) => {
                self.slot.succeed();
                Ok(Answer::Result(result))
            }
            Err(failure) => Err(self.describe(failure)),
        };
        self.record(Request::CallTool, outcome_of(&answer), begun.elapsed());
        answer
    }

    fn record(&self, request: Request, outcome: &'static str, took: Duration) {
        record_request(request, self.link.transport(), outcome, took);
    }

    async fn wait_uncounted(
        self,
        mut waiting: Waiting,
        side: &CallerSide,
    ) -> Result<Answer, UpstreamError> {
        let limits = self.limits(side.progress.is_some());
        let unreadable = |reason: &str| RequestFailure::Unreadable(reason.to_owned());
        let Link::Session(session) = &self.link else {
            return Err(self.describe(unreadable("it has no session")));
        };
        match session.wait(&mut waiting, side, limits).await {
            Ok(Step::Answer(Value::Object(result))) => {
                self.slot.succeed();
                match is_round(&result) {
                    true => self.asks(result, side.askable),
                    false => Ok(Answer::Result(result)),
                }
            }
            Ok(Step::Answer(_other)) => {
                Err(self.describe(unreadable("its answer is not an object")))
            }
            Ok(Step::Question(question)) => {
                Ok(Answer::Asks(Asks::within(self, waiting, question).into()))
            }
            Err(RequestFailure::Refused(error)) => {
                self.slot.succeed();
                Ok(Answer::Result(refusal(&error)))
            }
            Err(failure) => Err(self.describe(failure)),
        }
    }

    /// The questions of an upstream that has ended the call with them.
    fn asks(
        &self,
        mut round: Map<String, Value>,
        askable: Option<Askable>,
    ) -> Result<Answer, UpstreamError> {
        let failed = |error: AskError| self.describe(RequestFailure::Asks(error));
        check_round(&round, askable).map_err(failed)?;
        // What rmcp does not read, it does not write.
        let read = serde_json::from_value::<InputRequiredResult>(Value::Object(round.clone()));
        read.map_err(|_cause| failed(AskError::Unreadable))?;
        let state = match round.remove("requestState") {
            Some(Value::String(state)) => Some(state),
            _ => None,
        };
        let asks = Asks {
            round,
            session: self.session_number(),
            state,
            parked: None,
        };
        Ok(Answer::Asks(asks.into()))
    }

    /// Tells the session from all others.
    pub(crate) fn session_number(&self) -> u64 {
        match &self.link {
            Link::Session(session) => session.number,
            // It never asks, so that nothing is bound to this.
            Link::Service(_) => 0,
        }
    }

    /// The program's tasks.
    pub(super) fn lifecycle(&self) -> &Lifecycle {
        &self.pool.lifecycle
    }

    /// With all of its time again, after the caller was asked.
    pub(super) fn renewed(self) -> Self {
        Self {
            started: Instant::now(),
            ..self
        }
    }

    /// All pages of `tools/list`.
    pub(super) async fn list_tools(&self) -> Result<Vec<Value>, UpstreamError> {
        let Link::Session(session) = &self.link else {
            return Err(self.unsent("an HTTP service lists no tools; its document does"));
        };
        let begun = Instant::now();
        let listed = self.list_uncounted(session).await;
        let outcome = listed.as_ref().map_or_else(UpstreamError::code, |_| "ok");
        self.record(Request::ListTools, outcome, begun.elapsed());
        listed
    }

    async fn list_uncounted(&self, session: &Held) -> Result<Vec<Value>, UpstreamError> {
        let limits = self.limits(false);
        let mut tools = Vec::new();
        let mut cursor: Option<String> = None;
        for _page in 0..PAGES_MAX {
            let page = session.list_tools(cursor.clone(), limits).await;
            let page = page.map_err(|failure| self.describe(failure))?;
            if let Some(Value::Array(listed)) = page.get("tools") {
                tools.extend(listed.iter().cloned());
            }
            let next = page
                .get("nextCursor")
                .and_then(Value::as_str)
                .map(str::to_owned);
            // A server that hands out the same cursor again would be asked for ever.
            if next.is_none() || next == cursor || TOOLS_MAX <= tools.len() {
                break;
            }
            cursor = next;
        }
        tools.truncate(TOOLS_MAX);
        self.slot.succeed();
        Ok(tools)
    }

    fn limits(&self, progress: bool) -> CallLimits {
        let options = &self.pool.options;
        let last = if progress {
            options.total_max
        } else {
            options.call_max
        };
        CallLimits {
            started: self.started,
            first: self.started + options.call_max,
            silence: options.call_max,
            last: self.started + last,
        }
    }

    fn describe(&self, failure: RequestFailure) -> UpstreamError {
        let (server, sent) = (self.server.clone(), true);
        let stderr = self.link.stderr_tail();
        let counts = match &failure {
            RequestFailure::Lost { .. } => self.link.lost_first(),
            RequestFailure::Timeout(_) | RequestFailure::Unsent(_) => true,
            RequestFailure::Unreadable(_)
            | RequestFailure::Refused(_)
            | RequestFailure::Asks(_)
            | RequestFailure::Cancelled => false,
        };
        if counts {
            warn!(server = %self.server, "upstream call gave no result");
            self.slot.fail();
        }
        match failure {
            RequestFailure::Timeout(after) => UpstreamError::Timeout {
                server,
                after,
                stderr,
                sent,
            },
            RequestFailure::Lost {
                reason,
                crashed: true,
            } => UpstreamError::Crashed {
                server,
                reason,
                stderr,
                sent,
            },
            RequestFailure::Lost { reason, .. } | RequestFailure::Unreadable(reason) => {
                UpstreamError::OutcomeUnknown {
                    server,
                    reason: self.link.mask(&reason),
                }
            }
            RequestFailure::Unsent(reason) => UpstreamError::Unavailable {
                server,
                reason: self.link.mask(&reason),
                stderr,
                sent,
                retry_after: None,
            },
            RequestFailure::Asks(error) => UpstreamError::Unavailable {
                server,
                reason: error.to_string(),
                stderr,
                sent,
                retry_after: None,
            },
            RequestFailure::Refused(error) => UpstreamError::Unavailable {
                server,
                reason: self.link.mask(&format!("it refused: {}", error.message)),
                stderr,
                sent,
                retry_after: None,
            },
            RequestFailure::Cancelled => UpstreamError::Cancelled { sent },
        }
    }
}

/// How a call came back, in one word.
fn outcome_of(answer: &Result<Answer, UpstreamError>) -> &'static str {
    let failed = |result: &Map<String, Value>| result.get("isError") == Some(&Value::Bool(true));
    match answer {
        Ok(Answer::Result(result)) if failed(result) => "TOOL_ERROR",
        Ok(Answer::Result(_)) => "ok",
        Ok(Answer::Asks(_)) => "INPUT_REQUIRED",
        Err(error) => error.code(),
    }
}

/// An upstream's JSON-RPC error is its answer; as a result it reads like any failed tool's.
fn refusal(error: &rmcp::model::ErrorData) -> Map<String, Value> {
    let text = format!("MCP error {}: {}", error.code.0, error.message);
    let mut content = vec![json!({"type": "text", "text": text})];
    if let Some(data) = &error.data {
        content.push(json!({"type": "text", "text": data.to_string()}));
    }
    let mut result = Map::new();
    result.insert("content".to_owned(), Value::Array(content));
    result.insert("isError".to_owned(), Value::Bool(true));
    result
}
