//! A session that is held for one call, and what becomes of the call.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tracing::warn;

use crate::call::CallerSide;
use crate::call::upstream::failure::RequestFailure;
use crate::call::upstream::session::Held;
use crate::call::upstream::slot::Slot;
use crate::call::upstream::waiting::CallLimits;
use crate::call::upstream::{Pool, UpstreamError};
use crate::domain::{ServerName, ToolName};

/// Pages of one tool list.
const PAGES_MAX: usize = 100;
/// Tools of one server.
const TOOLS_MAX: usize = 10_000;
/// A session that is held for one call.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(super) pool: Arc<Pool>,
    pub(super) session: Held,
    pub(super) slot: Arc<Slot>,
    pub(super) server: ServerName,
    pub(super) started: Instant,
    pub(super) _place: OwnedSemaphorePermit,
}

impl Lease {
    /// Looks a last time before the handle is taken: a session that has ended meanwhile must not
    /// cost it.
    pub(crate) fn check(&self) -> Result<(), UpstreamError> {
        if self.session.is_open() {
            return Ok(());
        }
        Err(UpstreamError::Crashed {
            server: self.server.clone(),
            reason: "it ended before the call was sent".to_owned(),
            stderr: self.session.stderr_tail(),
            sent: false,
        })
    }

    /// Sends a call and waits for its result. From here on nothing is sent twice.
    pub(crate) async fn call(
        &self,
        tool: &ToolName,
        arguments: Map<String, Value>,
        side: &CallerSide,
    ) -> Result<Map<String, Value>, UpstreamError> {
        let limits = self.limits(side.progress.is_some());
        let session = &self.session;
        let answer = session.call(tool.as_str(), arguments, side, limits).await;
        match answer {
            Ok(Value::Object(result)) => {
                self.slot.succeed();
                Ok(result)
            }
            Ok(_other) => {
                let reason = "its answer is not an object".to_owned();
                Err(self.describe(RequestFailure::Unreadable(reason)))
            }
            Err(RequestFailure::Refused(error)) => {
                self.slot.succeed();
                Ok(refusal(&error))
            }
            Err(failure) => Err(self.describe(failure)),
        }
    }

    /// All pages of `tools/list`.
    pub(super) async fn list_tools(&self) -> Result<Vec<Value>, UpstreamError> {
        let limits = self.limits(false);
        let mut tools = Vec::new();
        let mut cursor: Option<String> = None;
        for _page in 0..PAGES_MAX {
            let page = self.session.list_tools(cursor.clone(), limits).await;
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
        let stderr = self.session.stderr_tail();
        let counts = match &failure {
            // All calls of a session are lost with it: that is one failure.
            RequestFailure::Lost { .. } => self.session.lost_first(),
            RequestFailure::Timeout(_) | RequestFailure::Unsent(_) => true,
            RequestFailure::Unreadable(_)
            | RequestFailure::Refused(_)
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
                    reason: self.session.mask(&reason),
                }
            }
            RequestFailure::Unsent(reason) => UpstreamError::Unavailable {
                server,
                reason: self.session.mask(&reason),
                stderr,
                sent,
                retry_after: None,
            },
            RequestFailure::Refused(error) => UpstreamError::Unavailable {
                server,
                reason: self.session.mask(&format!("it refused: {}", error.message)),
                stderr,
                sent,
                retry_after: None,
            },
            RequestFailure::Cancelled => UpstreamError::Cancelled { sent },
        }
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
