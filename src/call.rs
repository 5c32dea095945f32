//! From a handle to a result.
//!
//! ```text
//! peek -> check arguments -> resolve -> lease -> handles.take -> upstream.call -> result
//! ```
//!
//! Whatever can be refused is refused before the handle is taken. Taking it is the last step before
//! sending, and nothing is sent twice.

mod arguments;
mod resolve;
mod upstream;
mod result;
mod kept;
mod spent;
mod input;
mod asked;
mod resume;
mod error;
mod beside;
mod covered;

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rand::TryRngCore;
use rand::rngs::OsRng;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::call::arguments::Arguments;
use crate::call::asked::{Asked, Stub};
use crate::call::covered::covered;
use crate::call::error::{invalid_step, unresolved};
use crate::call::kept::Kept;
use crate::call::resolve::{Resolved, resolve};
use crate::call::resume::{Retried, Sending};
use crate::call::spent::Spent;
use crate::call::upstream::Lease;
use crate::domain::{Catalog, Handle, RunId, Server, Settings, Tenant, ToolId, Trace};
use crate::handles::{Grant, Handles, TakeError};

pub use self::arguments::Problem;
pub use self::asked::ASKED_FOR;
pub use self::error::{CallError, StepProblem};
pub use self::input::{Askable, InputAnswer};
pub use self::kept::{KEPT_FOR, PAGE_CHARS, Page};
pub use self::resolve::ResolveError;
pub use self::result::{TRUNCATED_KEY, Truncated};
pub use self::spent::Ending;
pub(crate) use self::upstream::{HttpError, HttpService, Process};
pub use self::upstream::{ListNews, SessionStatus, UpstreamError, UpstreamOptions, Upstreams};

/// Key of a result's structured part.
const STRUCTURED: &str = "structuredContent";

/// Runs tools: the one way to an upstream.
pub struct Caller {
    catalog: Arc<ArcSwap<Catalog>>,
    handles: Arc<Handles>,
    settings: Arc<dyn Settings>,
    upstreams: Upstreams,
    arguments: Arguments,
    kept: Kept,
    spent: Spent,
    asked: Arc<Asked>,
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("upstreams", &self.upstreams)
            .finish_non_exhaustive()
    }
}

/// A `run_tool` as it was received. The handle and the arguments are secret.
#[derive(Clone)]
pub struct CallRequest {
    /// The capability token, whatever it is.
    pub handle: String,
    /// Which tool.
    pub tool_name: String,
    /// Of which server; needed where two candidates share a name.
    pub server_name: Option<String>,
    /// An object, or a string that holds one.
    pub arguments: Option<Value>,
    /// Checked against the search's when given.
    pub run_id: Option<String>,
}

impl fmt::Debug for CallRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallRequest")
            .field("tool_name", &self.tool_name)
            .field("server_name", &self.server_name)
            .field("run_id", &self.run_id)
            .finish_non_exhaustive()
    }
}

/// A step of progress that an upstream reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// How far.
    pub progress: f64,
    /// Of how much.
    pub total: Option<f64>,
    /// In words.
    pub message: Option<String>,
}

/// The caller's side of a call.
#[derive(Clone, Debug, Default)]
pub struct CallerSide {
    /// Cancelled when the caller goes away; the upstream is told.
    pub cancel: CancellationToken,
    /// Where progress goes, when the caller asked for it. A full channel loses steps.
    pub progress: Option<mpsc::Sender<Progress>>,
    /// What the caller can be asked within a call; none where its protocol has no rounds.
    pub askable: Option<Askable>,
    /// The trace that the caller is in; the upstream is told.
    pub trace: Option<Trace>,
    /// The answer to what a call asked: the call goes on, and needs no live handle.
    pub answer: Option<InputAnswer>,
}

/// What a run gave.
#[derive(Clone, Debug)]
pub struct CallOutcome {
    /// The search's run; none for a direct call, unless its result was cut: then the whole is kept
    /// under it.
    pub run_id: Option<RunId>,
    /// The tool that ran.
    pub tool: ToolId,
    /// The upstream's own result.
    pub result: Map<String, Value>,
    /// What was cut from it; the result's `_meta` says so too.
    pub truncated: Option<Truncated>,
    /// Whether the cut took the structured part that the tool's output schema promises, which a
    /// client that knows the schema looks for.
    pub breaks_promise: bool,
    /// Whether it is no result yet but a question: `input_required` with a sealed state.
    pub asks: bool,
}

impl Caller {
    /// A caller over what the program shares.
    pub fn new(
        catalog: Arc<ArcSwap<Catalog>>,
        handles: Arc<Handles>,
        settings: Arc<dyn Settings>,
        upstreams: Upstreams,
    ) -> Self {
        Self {
            catalog,
            handles,
            settings,
            upstreams,
            arguments: Arguments::default(),
            kept: Kept::default(),
            spent: Spent::default(),
            asked: Arc::new(Asked::new(&mut OsRng.unwrap_err())),
        }
    }

    /// The sessions that calls run on.
    pub fn upstreams(&self) -> &Upstreams {
        &self.upstreams
    }

    /// Runs a tool that a search offered, or goes on with a run whose caller has answered.
    pub async fn call(
        &self,
        tenant: &Tenant,
        mut request: CallRequest,
        caller: CallerSide,
    ) -> Result<CallOutcome, CallError> {
        if let Some(answer) = &caller.answer {
            let arguments = request.arguments.take();
            let retried = (Retried::Run(&request), arguments);
            return self.resume(tenant, retried, answer, &caller).await;
        }
        // One snapshot for the whole call: what is checked is what is run.
        let catalog = self.catalog.load_full();
        let (handle, grant) = self.peek(tenant, &request)?;
        let run_id = grant.run_id;
        let refuse = || self.handles.refuse(&tenant.id, &handle);
        let (tool, hash) = covered(tenant, &grant, &request)
            .map_err(|problem| invalid_step(tenant, &grant, problem, refuse()))?;
        let found = catalog.find(&tool);
        let Some(slot) = found.filter(|slot| catalog.tool(*slot).hash() == hash) else {
            let left = refuse();
            return Err(CallError::ToolChanged { run_id, tool, left });
        };
        let (server, defined) = (catalog.server_of(slot), catalog.tool(slot));
        let checked = self
            .arguments
            .check_placed(server, defined, request.arguments);
        let arguments = checked.map_err(|problems| CallError::InvalidArguments {
            run_id: Some(run_id),
            tool: tool.clone(),
            problems,
            left: Some(refuse()),
        })?;
        let resolved = self.resolve(tenant, server);
        let resolved = resolved.map_err(|e| unresolved(e, Some(run_id), &tool, Some(&refuse)))?;
        let failed = |source: UpstreamError| CallError::Upstream {
            run_id: Some(run_id),
            tool: tool.clone(),
            source: source.into(),
        };
        let lease = self.upstreams.lease(&tenant.id, resolved, &caller).await;
        let lease = lease.map_err(failed)?;
        lease.check(&tool.tool).map_err(failed)?;
        let taken = self.handles.take(&tenant.id, &handle);
        taken.map_err(|error| self.not_taken(tenant, &handle, error))?;
        let key = handle.key(&tenant.id);
        let running = self.spent.start(key, run_id, tool.clone());
        let sending = Sending {
            tenant,
            stub: Stub {
                run_id: Some(run_id),
                handle: Some(*key.as_bytes()),
                ..Stub::new(tool.clone(), catalog.tool(slot), &arguments)
            },
            promises: catalog.tool(slot).output_schema().is_some(),
        };
        let outcome = self.send(sending, lease, arguments, &caller).await;
        running.end(ended(&outcome));
        outcome.map_err(failed)
    }

    /// Runs a tool without a handle, for the operator at the command line and for surfaces whose
    /// callers name tools. All other checks are the same.
    pub async fn call_directly(
        &self,
        tenant: &Tenant,
        tool: &ToolId,
        arguments: Value,
        caller: CallerSide,
    ) -> Result<CallOutcome, CallError> {
        if let Some(answer) = &caller.answer {
            let retried = (Retried::Direct(tool), Some(arguments));
            return self.resume(tenant, retried, answer, &caller).await;
        }
        let catalog = self.catalog.load_full();
        let found = catalog.find(tool).filter(|_| tenant.scope.allows(tool));
        let slot = found.ok_or_else(|| CallError::UnknownTool { tool: tool.clone() })?;
        let (server, defined) = (catalog.server_of(slot), catalog.tool(slot));
        let checked = self
            .arguments
            .check_placed(server, defined, Some(arguments));
        let arguments = checked.map_err(|problems| CallError::InvalidArguments {
            run_id: None,
            tool: tool.clone(),
            problems,
            left: None,
        })?;
        let resolved = self.resolve(tenant, server);
        let resolved = resolved.map_err(|error| unresolved(error, None, tool, None))?;
        let failed = |source: UpstreamError| CallError::Upstream {
            run_id: None,
            tool: tool.clone(),
            source: source.into(),
        };
        let lease = self.upstreams.lease(&tenant.id, resolved, &caller).await;
        let lease = lease.map_err(failed)?;
        lease.check(&tool.tool).map_err(failed)?;
        let sending = Sending {
            tenant,
            stub: Stub::new(tool.clone(), catalog.tool(slot), &arguments),
            promises: catalog.tool(slot).output_schema().is_some(),
        };
        let outcome = self.send(sending, lease, arguments, &caller).await;
        outcome.map_err(failed)
    }

    /// A page of the whole result of a run whose reply was cut, as JSON text; `None` for what is
    /// gone after [`KEPT_FOR`], was not cut, or is another tenant's.
    pub fn whole_result(&self, tenant: &Tenant, run_id: RunId, page: usize) -> Option<Page> {
        self.kept.page(&tenant.id, run_id, page)
    }

    /// Lets go of whole results and spent handles that have had their time, and of sessions that
    /// have ended. Called by the sweeper.
    pub fn sweep(&self) {
        self.kept.sweep();
        self.spent.sweep();
        self.asked.sweep();
        self.upstreams.sweep();
    }

    /// The live handle and what it covers.
    fn peek(&self, tenant: &Tenant, request: &CallRequest) -> Result<(Handle, Grant), CallError> {
        let Ok(handle) = request.handle.parse::<Handle>() else {
            return Err(self.handles.refuse_unreadable(&tenant.id).into());
        };
        let grant = self.handles.peek(&tenant.id, &handle);
        let grant = grant.map_err(|error| self.not_taken(tenant, &handle, error))?;
        Ok((handle, grant))
    }

    /// Why a handle opens nothing; one that this tenant spent a moment ago has a story.
    fn not_taken(&self, tenant: &Tenant, handle: &Handle, error: TakeError) -> CallError {
        let known = match error {
            TakeError::Unknown => self.spent.find(&handle.key(&tenant.id)),
            TakeError::LockedOut { .. } => None,
        };
        match known {
            Some((ran, ago)) => CallError::AlreadyRan {
                run_id: ran.run_id,
                tool: ran.tool,
                ending: ran.ending,
                ago,
            },
            None => error.into(),
        }
    }

    fn resolve(&self, tenant: &Tenant, server: &Server) -> Result<Resolved, ResolveError> {
        let workspaces = &self.upstreams.options().workspaces;
        resolve(server, &tenant.id, &*self.settings, workspaces)
    }

    /// Sends a call; its handle, if it has one, is spent.
    async fn send(
        &self,
        sending: Sending<'_>,
        lease: Lease,
        arguments: Map<String, Value>,
        caller: &CallerSide,
    ) -> Result<CallOutcome, UpstreamError> {
        let tool = sending.stub.tool.tool.clone();
        let answer = lease.call(&tool, arguments, caller, None).await?;
        self.answered(sending, answer, caller).await
    }

    /// The result within its cap. What is over it is kept whole for a while.
    fn outcome(
        &self,
        tenant: &Tenant,
        (mut run_id, promises): (Option<RunId>, bool),
        tool: ToolId,
        mut result: Map<String, Value>,
    ) -> CallOutcome {
        let chars_max = self.upstreams.options().result_chars_max;
        if result::is_over(&result, chars_max) {
            let own = || RunId::generate(&mut OsRng.unwrap_err());
            let whole = Value::Object(result.clone()).to_string();
            self.kept
                .put(&tenant.id, *run_id.get_or_insert_with(own), whole);
        }
        let structured = result.contains_key(STRUCTURED);
        let truncated = result::cap(&mut result, chars_max);
        CallOutcome {
            run_id,
            tool,
            breaks_promise: promises && structured && !result.contains_key(STRUCTURED),
            result,
            truncated,
            asks: false,
        }
    }
}

/// How a run ended.
fn ended(outcome: &Result<CallOutcome, UpstreamError>) -> Ending {
    let failed = |outcome: &CallOutcome| outcome.result.get("isError") == Some(&Value::Bool(true));
    match outcome {
        Ok(outcome) if outcome.asks => Ending::Asked,
        Ok(outcome) if failed(outcome) => Ending::ToolFailed,
        Ok(_) => Ending::Answered,
        Err(error) if error.sent() => Ending::Unknown,
        Err(_) => Ending::NotSent,
    }
}
