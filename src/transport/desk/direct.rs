//! The desk for surfaces without handles: lists, lookups and runs of tools that the caller names.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::call::CallerSide;
use crate::domain::{Query, ToolId};
use crate::lifecycle::Lifecycle;
use crate::search::{FindOptions, Found, Shelf};
use crate::telemetry::{Chain, Operation};
use crate::tenants::Activity;
use crate::transport::desk::{Desk, Guest, Reply, digest, run_reply, tool_result};
use crate::transport::refusal::Refusal;

/// A run of a tool by its name.
#[derive(Debug)]
pub struct Execution {
    /// What the client called it.
    pub operation: Operation,
    /// Which tool.
    pub tool: ToolId,
    /// Its arguments, as they came.
    pub arguments: Value,
    /// Cancellation and progress.
    pub side: CallerSide,
}

impl Desk {
    /// All tools that a guest may use.
    pub fn shelf(&self, guest: &Guest) -> Shelf {
        self.searcher.shelf(&guest.tenant)
    }

    /// The tools that fit a query, shown by `show`. Counted as a search.
    pub async fn find(
        &self,
        guest: &Guest,
        operation: Operation,
        asked: Result<(Query, FindOptions), Refusal>,
        show: impl FnOnce(&Found) -> Value,
    ) -> Map<String, Value> {
        let start = Instant::now();
        let admitted = self.admit(guest, Activity::Search);
        let reply = match admitted.and_then(|permit| Ok((permit, asked?))) {
            Ok((_permit, (query, options))) => {
                let found = self.searcher.find(&guest.tenant, &query, &options).await;
                Reply::shown(&show(&found))
            }
            Err(refusal) => refusal.into(),
        };
        reply.close(guest, operation, start, None)
    }

    /// Something about the tools of a guest's shelf. Counted as a search.
    pub async fn look_up(
        &self,
        guest: &Guest,
        operation: Operation,
        show: impl FnOnce(&Shelf) -> Result<Value, Refusal> + Send + 'static,
    ) -> Map<String, Value> {
        let start = Instant::now();
        let shown = self.consult(guest, show).await.flatten();
        let reply = shown.map_or_else(Reply::from, |body| Reply::shown(&body));
        reply.close(guest, operation, start, None)
    }

    /// Says what is wrong with a call that came no further, for surfaces that answer it with an
    /// error of the protocol.
    pub async fn refuse(
        &self,
        guest: &Guest,
        operation: Operation,
        say: impl FnOnce(&Shelf) -> Refusal + Send + 'static,
    ) -> Refusal {
        let start = Instant::now();
        let refusal = self.consult(guest, say).await.unwrap_or_else(|limit| limit);
        Reply::from(refusal.clone()).close(guest, operation, start, None);
        refusal
    }

    /// Asks something of a guest's shelf beside the runtime: it may be long. Within the limits of
    /// searches, and not audited.
    pub async fn consult<T: Send + 'static>(
        &self,
        guest: &Guest,
        ask: impl FnOnce(&Shelf) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let _permit = self.admit(guest, Activity::Search)?;
        let (searcher, tenant) = (Arc::clone(&self.searcher), Arc::clone(&guest.tenant));
        let asked = tokio::task::spawn_blocking(move || ask(&searcher.shelf(&tenant)));
        asked.await.map_err(|error| {
            tracing::error!(error = %Chain(&error), "a lookup broke down");
            Refusal::busy()
        })
    }

    /// A place for a stream that tells a guest of changes.
    pub fn admit_listener(&self, guest: &Guest) -> Result<impl Sized + use<>, Refusal> {
        self.admit(guest, Activity::Listen)
    }

    /// Hears of each index that is published.
    pub fn generations(&self) -> watch::Receiver<u64> {
        self.searcher.generations()
    }

    /// Starting and stopping, for streams that outlive a request.
    pub fn lifecycle(&self) -> &Lifecycle {
        &self.lifecycle
    }

    /// Runs a tool that the guest names: its scope, the arguments and the limits are checked as
    /// for `run_tool`.
    pub async fn execute(&self, guest: &Guest, execution: Execution) -> Map<String, Value> {
        let start = Instant::now();
        let operation = execution.operation;
        let arguments = Some(digest(&execution.arguments));
        let reply = match self.admit(guest, Activity::Run) {
            Ok(_permit) => self.execute_admitted(guest, execution).await,
            Err(refusal) => refusal.into(),
        };
        reply.close(guest, operation, start, arguments)
    }

    async fn execute_admitted(&self, guest: &Guest, execution: Execution) -> Reply {
        let Execution {
            operation,
            tool,
            arguments,
            side,
        } = execution;
        let tenant = &guest.tenant;
        match self
            .caller
            .call_directly(tenant, &tool, arguments, side)
            .await
        {
            Ok(mut outcome) => {
                if operation == Operation::Direct && outcome.breaks_promise {
                    own_up(&mut outcome.result);
                }
                run_reply(outcome, None)
            }
            Err(error) => Refusal::of_call(&error).into(),
        }
    }
}

impl Reply {
    pub(super) fn shown(body: &Value) -> Self {
        Self {
            result: tool_result(body, false),
            outcome: "ok",
            run_id: None,
            tool: None,
            handle: None,
        }
    }
}

/// For a client that called the tool by its own name and knows its output schema: without its
/// structured part the result may only be an error, but the tool must not be run again for it.
fn own_up(result: &mut Map<String, Value>) {
    let text = "The tool has run; do not repeat the call. Its result is too long: it is cut, and its \
                structured part is left out. `_meta` names the resource that has the whole.";
    let content = result.entry("content").or_insert_with(|| json!([]));
    if let Some(blocks) = content.as_array_mut() {
        blocks.insert(0, json!({ "type": "text", "text": text }));
    }
    result.insert("isError".to_owned(), true.into());
}
