//! The desk: what every surface shares. It admits a guest, asks the searcher or the caller, counts
//! and audits, and gives the answer as the JSON of a tool result.

mod direct;
mod provided;

use std::sync::Arc;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::call::{CallOutcome, CallRequest, Caller, CallerSide, Page, TRUNCATED_KEY};
use crate::domain::{Handle, HandleKey, Query, RunId, Tenant, ToolId, Trace};
use crate::lifecycle::Lifecycle;
use crate::search::{Answer, Searcher};
use crate::telemetry::{AuditEvent, Operation, audit, record_operation};
use crate::tenants::{Activity, LimitReached, Limits, TenantLimits};
use crate::transport::mcp::runs;
use crate::transport::refusal::Refusal;
use crate::transport::wire::{self, Candidate, Found};

pub use self::direct::Execution;
pub use self::provided::Provision;

/// Key in a result's `_meta` that ties it to its search.
const RUN_ID_META: &str = "toolcrib/workflow_run_id";

/// Who asks: a tenant with its own limits.
#[derive(Clone, Debug)]
pub struct Guest {
    /// The tenant.
    pub tenant: Arc<Tenant>,
    /// Its own limits.
    pub limits: TenantLimits,
    /// The trace of this request; a door and a resident have none.
    pub trace: Option<Trace>,
}

impl Guest {
    /// The guest of an open server and of the command line.
    pub fn local() -> Self {
        Self {
            tenant: Arc::new(Tenant::local()),
            limits: TenantLimits::default(),
            trace: None,
        }
    }
}

/// Serves all surfaces. Share it by `Arc`.
#[derive(Debug)]
pub struct Desk {
    searcher: Arc<Searcher>,
    caller: Arc<Caller>,
    limits: Limits,
    lifecycle: Lifecycle,
}

/// The JSON of a tool result, with what the audit wants to know of it.
struct Reply {
    result: Map<String, Value>,
    outcome: &'static str,
    run_id: Option<RunId>,
    tool: Option<ToolId>,
    handle: Option<HandleKey>,
}

impl Desk {
    /// A desk over what the program shares.
    pub fn new(
        searcher: Arc<Searcher>,
        caller: Arc<Caller>,
        limits: Limits,
        lifecycle: Lifecycle,
    ) -> Self {
        Self {
            searcher,
            caller,
            limits,
            lifecycle,
        }
    }

    /// `search_tools`.
    pub async fn search(
        &self,
        guest: &Guest,
        arguments: &Map<String, Value>,
    ) -> Map<String, Value> {
        let start = Instant::now();
        let reply = match self.admit(guest, Activity::Search) {
            Ok(_permit) => self.search_admitted(guest, arguments).await,
            Err(refusal) => refusal.into(),
        };
        reply.close(guest, Operation::Search, start, None)
    }

    /// `run_tool`.
    pub async fn run(
        &self,
        guest: &Guest,
        mut arguments: Map<String, Value>,
        side: CallerSide,
    ) -> Map<String, Value> {
        let start = Instant::now();
        let digest = arguments.get("arguments").map(digest);
        let reply = match self.admit(guest, Activity::Run) {
            Ok(_permit) => match read_request(&mut arguments) {
                Ok(request) => self.run_admitted(guest, request, side).await,
                Err(refusal) => refusal.into(),
            },
            Err(refusal) => refusal.into(),
        };
        reply.close(guest, Operation::Run, start, digest)
    }

    /// A page of a whole result, for the tenant whose run it was.
    pub fn whole_result(&self, guest: &Guest, run_id: RunId, page: usize) -> Option<Page> {
        self.caller.whole_result(&guest.tenant, run_id, page)
    }

    async fn search_admitted(&self, guest: &Guest, arguments: &Map<String, Value>) -> Reply {
        let text = match arguments.get("query") {
            Some(Value::String(text)) => text,
            Some(_) => return Refusal::invalid_query("`query` is not a string").into(),
            None => return Refusal::invalid_query("`query` is missing").into(),
        };
        let query: Query = match text.parse() {
            Ok(query) => query,
            Err(error) => return Refusal::invalid_query(&error.to_string()).into(),
        };
        match self.searcher.search(&guest.tenant, &query).await {
            Ok(answer) => Reply {
                outcome: "ok",
                run_id: Some(answer.run_id),
                tool: None,
                handle: Some(answer.handle.key(&guest.tenant.id)),
                result: tool_result(&show(&answer), false),
            },
            Err(error) => Refusal::of_search(&error).into(),
        }
    }

    async fn run_admitted(&self, guest: &Guest, request: CallRequest, side: CallerSide) -> Reply {
        let handle = request
            .handle
            .parse::<Handle>()
            .ok()
            .map(|h| h.key(&guest.tenant.id));
        match self.caller.call(&guest.tenant, request, side).await {
            Ok(outcome) => run_reply(outcome, handle),
            Err(error) => Reply {
                handle,
                ..Refusal::of_call(&error).into()
            },
        }
    }

    fn admit(&self, guest: &Guest, activity: Activity) -> Result<impl Sized + use<>, Refusal> {
        if self.lifecycle.is_stopping() {
            return Err(Refusal::shutting_down());
        }
        self.limits
            .admit(&guest.tenant.id, guest.limits, activity)
            .map_err(|limit| match limit {
                LimitReached::Rate { retry_after } => Refusal::rate_limited(retry_after),
                LimitReached::Concurrency => Refusal::busy(),
            })
    }
}

impl Reply {
    /// Counts and audits, and gives the result.
    fn close(
        self,
        guest: &Guest,
        operation: Operation,
        start: Instant,
        arguments: Option<String>,
    ) -> Map<String, Value> {
        let duration = start.elapsed();
        record_operation(operation, self.outcome, duration);
        audit(&AuditEvent {
            operation: operation.tool_name(),
            tenant: &guest.tenant.id,
            run_id: self.run_id,
            handle: self.handle,
            tool: self.tool.as_ref(),
            arguments,
            outcome: self.outcome,
            duration,
            trace: guest.trace.as_ref(),
        });
        self.result
    }
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        Self {
            result: tool_result(&refusal.to_json(), refusal.is_error()),
            outcome: refusal.code,
            run_id: refusal.run_id,
            tool: refusal.tool,
            handle: None,
        }
    }
}

/// A search's answer as JSON.
pub fn show(answer: &Answer) -> Value {
    let candidates: Vec<Candidate<'_>> = answer
        .picks
        .iter()
        .map(|pick| Candidate {
            server: &pick.server,
            tool: pick.tool(),
            secrets: &pick.requires.secrets,
            config: &pick.requires.config,
        })
        .collect();
    let degraded = answer.degraded.map(|why| why.to_string());
    wire::search_result(&Found {
        run_id: answer.run_id,
        handle: &answer.handle,
        candidates: &candidates,
        tools_total: answer.tools_total,
        degraded: degraded.as_deref(),
    })
}

/// A run's own result. What ties it to its search, and where the rest of a cut one is, goes into
/// its `_meta`.
fn run_reply(outcome: CallOutcome, handle: Option<HandleKey>) -> Reply {
    let mut result = outcome.result;
    if let Some(run_id) = outcome.run_id {
        insert_meta(&mut result, RUN_ID_META, run_id.to_string().into());
        if outcome.truncated.is_some() {
            let uri = runs::uri(run_id);
            result["_meta"][TRUNCATED_KEY]["resource"] = uri.into();
        }
    }
    let failed = result
        .get("isError")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    Reply {
        outcome: match (outcome.asks, failed) {
            (true, _) => "INPUT_REQUIRED",
            (false, true) => "TOOL_ERROR",
            (false, false) => "ok",
        },
        run_id: outcome.run_id,
        tool: Some(outcome.tool),
        handle,
        result,
    }
}

/// Structured content, and the same as text for clients that know text only.
fn tool_result(body: &Value, is_error: bool) -> Map<String, Value> {
    let mut result = Map::new();
    result.insert(
        "content".into(),
        json!([{ "type": "text", "text": body.to_string() }]),
    );
    result.insert("structuredContent".into(), body.clone());
    result.insert("isError".into(), is_error.into());
    result
}

fn insert_meta(result: &mut Map<String, Value>, key: &str, value: Value) {
    let meta = result.entry("_meta").or_insert_with(|| json!({}));
    if let Some(meta) = meta.as_object_mut() {
        meta.insert(key.to_owned(), value);
    }
}

fn read_request(arguments: &mut Map<String, Value>) -> Result<CallRequest, Refusal> {
    let text = |key: &str| match arguments.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(Refusal::malformed_run(&format!("`{key}` is not a string"))),
    };
    let handle = text("capability_token")?;
    let tool_name = text("tool_name")?;
    let server_name = text("server_name")?;
    let run_id = text("workflow_run_id")?;
    let missing = |key: &str| Refusal::malformed_run(&format!("`{key}` is missing"));
    Ok(CallRequest {
        handle: handle.ok_or_else(|| missing("capability_token"))?,
        tool_name: tool_name.ok_or_else(|| missing("tool_name"))?,
        server_name,
        arguments: arguments
            .remove("arguments")
            .filter(|value| !value.is_null()),
        run_id,
    })
}

/// First eight hexadecimal digits of the SHA-256 of a value, so that equal calls can be told in
/// the audit without their content.
fn digest(value: &Value) -> String {
    let hash = Sha256::digest(value.to_string().as_bytes());
    hash.iter()
        .take(4)
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..4)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_run_is_read_as_it_was_written_or_refused(
            token in values(), tool in values(), server in values(), arguments in values(),
        ) {
            let mut asked = json!({ "capability_token": token, "tool_name": tool,
                "server_name": server, "arguments": arguments });
            let object = asked.as_object_mut().map(std::mem::take).unwrap_or_default();
            let readable = token.is_string() && tool.is_string()
                && (server.is_string() || server.is_null());
            match read_request(&mut object.clone()) {
                Ok(request) => {
                    prop_assert!(readable);
                    prop_assert_eq!(Value::from(request.handle), token);
                    prop_assert_eq!(Value::from(request.tool_name), tool);
                    prop_assert_eq!(Value::from(request.server_name), server);
                    prop_assert_eq!(request.arguments.unwrap_or_default(), arguments);
                }
                Err(refusal) => {
                    prop_assert!(!readable);
                    prop_assert_eq!(refusal.code, "INVALID_ARGUMENTS");
                }
            }
        }
    }
}
