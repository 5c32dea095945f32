//! The desk for surfaces without handles: lists, lookups and runs of tools that the caller names.

use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::call::CallerSide;
use crate::domain::{Query, ToolId};
use crate::search::{FindOptions, Found, Shelf};
use crate::telemetry::Operation;
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

    /// Something about the tools of a shelf. Counted as a search.
    pub fn look_up(
        &self,
        guest: &Guest,
        operation: Operation,
        show: impl FnOnce(&Shelf) -> Result<Value, Refusal>,
    ) -> Map<String, Value> {
        let start = Instant::now();
        let admitted = self.admit(guest, Activity::Search);
        let shown = admitted.and_then(|_permit| show(&self.shelf(guest)));
        let reply = shown.map_or_else(Reply::from, |body| Reply::shown(&body));
        reply.close(guest, operation, start, None)
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

    /// Counts and audits what never came as far as a tool.
    pub fn refuse(
        &self,
        guest: &Guest,
        operation: Operation,
        refusal: Refusal,
    ) -> Map<String, Value> {
        let start = Instant::now();
        let refusal = self.admit(guest, Activity::Search).err().unwrap_or(refusal);
        Reply::from(refusal).close(guest, operation, start, None)
    }

    async fn execute_admitted(&self, guest: &Guest, execution: Execution) -> Reply {
        let Execution {
            tool,
            arguments,
            side,
            operation: _,
        } = execution;
        let tenant = &guest.tenant;
        match self
            .caller
            .call_directly(tenant, &tool, arguments, side)
            .await
        {
            Ok(outcome) => run_reply(outcome, None),
            Err(error) => Refusal::of_call(&error).into(),
        }
    }
}

impl Reply {
    fn shown(body: &Value) -> Self {
        Self {
            result: tool_result(body, false),
            outcome: "ok",
            run_id: None,
            tool: None,
            handle: None,
        }
    }
}
