//! The desk for tools beside the catalog: the same limits, checks, caps and audit, whoever runs them.

use std::future::Future;

use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::call::CallOutcome;
use crate::domain::{Query, ToolId};
use crate::registry::ToolMetadata;
use crate::search::{FindOptions, Found};
use crate::telemetry::Operation;
use crate::tenants::Activity;
use crate::transport::desk::{Desk, Guest, Reply, digest, run_reply};
use crate::transport::refusal::Refusal;

/// A run of a provider's tool.
#[derive(Debug)]
pub struct Provision<'a> {
    /// What the client called it.
    pub operation: Operation,
    /// Which tool, as `provider/tool`.
    pub id: ToolId,
    /// Its definition.
    pub tool: &'a ToolMetadata,
    /// Its arguments, as they came.
    pub arguments: Value,
}

impl Desk {
    /// Answers what takes asking others. Counted as a search.
    pub async fn seek(
        &self,
        guest: &Guest,
        operation: Operation,
        seek: impl Future<Output = Result<Value, Refusal>> + Send,
    ) -> Map<String, Value> {
        let start = Instant::now();
        let found = self.inquire(guest, seek).await.flatten();
        let reply = found.map_or_else(Reply::from, |body| Reply::shown(&body));
        reply.close(guest, operation, start, None)
    }

    /// The same without an answer of its own: not audited.
    pub async fn inquire<T>(
        &self,
        guest: &Guest,
        ask: impl Future<Output = T> + Send,
    ) -> Result<T, Refusal> {
        let _permit = self.admit(guest, Activity::Search)?;
        Ok(ask.await)
    }

    /// The catalog's tools that fit a query, for a list that others are part of.
    pub async fn ranked(&self, guest: &Guest, query: &Query, options: &FindOptions) -> Found {
        self.searcher.find(&guest.tenant, query, options).await
    }

    /// Runs a tool that a provider has: `run` is given its arguments once they fit.
    pub async fn provide<R>(
        &self,
        guest: &Guest,
        provision: Provision<'_>,
        run: impl FnOnce(Map<String, Value>) -> R + Send,
    ) -> Map<String, Value>
    where
        R: Future<Output = Result<Map<String, Value>, Refusal>> + Send,
    {
        let start = Instant::now();
        let Provision {
            operation,
            id,
            tool,
            arguments,
        } = provision;
        let hash = Some(digest(&arguments));
        let reply = match self.admit(guest, Activity::Run) {
            Err(refusal) => refusal.into(),
            Ok(_permit) => {
                let checked = self.caller.check_arguments(&id, tool.tool(), arguments);
                let ran = match checked.map_err(|error| Refusal::of_call(&error)) {
                    Ok(arguments) => run(arguments).await,
                    Err(refusal) => Err(refusal),
                };
                match ran {
                    Ok(result) => run_reply(self.capped(guest, id, result), None),
                    Err(refusal) => Reply {
                        tool: Some(id),
                        ..refusal.into()
                    },
                }
            }
        };
        reply.close(guest, operation, start, hash)
    }

    fn capped(&self, guest: &Guest, id: ToolId, result: Map<String, Value>) -> CallOutcome {
        self.caller.outcome_of(&guest.tenant, id, result)
    }
}
