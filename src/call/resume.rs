//! What becomes of a call that was answered: its result, or a question whose state the caller keeps;
//! and the way on when the caller has answered that.
//!
//! ```text
//! answer -> result, or seal -> (caller) -> open -> check that it is the same call -> pass once -> send
//! ```

use std::sync::Arc;

use rand::TryRngCore;
use rand::rngs::OsRng;
use serde_json::{Map, Value};

use crate::call::asked::{ASKED_FOR, Next, Nonce, Opened, PassError, Stub};
use crate::call::error::unresolved;
use crate::call::input::AskError;
use crate::call::upstream::{Answer, Asks, Parked};
use crate::call::{
    CallError, CallOutcome, CallRequest, Caller, CallerSide, InputAnswer, UpstreamError, ended,
};
use crate::domain::{
    Catalog, Handle, HandleKey, ServerName, Slot, Tenant, Tool, ToolId, digest_of,
};

/// Rounds of questions in one call.
const ROUNDS_MAX: u64 = 10;

/// A retry: which call its caller says that it is.
pub(super) enum Retried<'a> {
    /// Of `run_tool`.
    Run(&'a CallRequest),
    /// Of a tool by its id.
    Direct(&'a ToolId),
}

/// A call as it is about to be sent.
pub(super) struct Sending<'a> {
    pub(super) tenant: &'a Tenant,
    pub(super) stub: Stub,
    /// Whether the tool has an output schema.
    pub(super) promises: bool,
}

/// A call that goes on. What does not fit the call that asked is no call at all.
struct Again {
    nonce: Nonce,
    opened: Opened,
    catalog: Arc<Catalog>,
    slot: Slot,
    arguments: Map<String, Value>,
}

impl Stub {
    /// Of a call that has not asked yet.
    pub(super) fn new(tool: ToolId, definition: &Tool, arguments: &Map<String, Value>) -> Self {
        Self {
            tool,
            definition: *definition.hash().as_bytes(),
            arguments: digest_of(arguments),
            run_id: None,
            handle: None,
            round: 0,
        }
    }
}

impl Caller {
    /// The outcome of an upstream's answer. A caller who can be asked gets a question with a sealed
    /// state, and the call stays in `sending`'s name until it is answered.
    pub(super) async fn answered(
        &self,
        sending: Sending<'_>,
        mut answer: Answer,
        side: &CallerSide,
    ) -> Result<CallOutcome, UpstreamError> {
        let Sending {
            tenant,
            mut stub,
            promises,
        } = sending;
        stub.round += 1;
        loop {
            let asks = match answer {
                Answer::Result(result) => {
                    return Ok(self.outcome(tenant, (stub.run_id, promises), stub.tool, result));
                }
                Answer::Asks(asks) => asks,
            };
            let too_often = ROUNDS_MAX < stub.round;
            let Asks {
                round,
                session,
                state,
                parked,
            } = *asks;
            let next = match &parked {
                Some(_) => Next::Unpark,
                None => Next::Send(state),
            };
            let opened = Opened {
                stub,
                session,
                next,
            };
            let mut rng = OsRng.unwrap_err();
            let sealed = self.asked.seal(&tenant.id, &opened, &mut rng);
            stub = opened.stub;
            let sealed = sealed.filter(|_| !too_often);
            let refused = match (sealed, parked) {
                (Some((nonce, text)), Some(parked)) => {
                    match self.asked.park(&tenant.id, nonce, parked) {
                        Ok(()) => return Ok(asking(stub, round, text)),
                        Err(parked) => Some(*parked),
                    }
                }
                (Some((_, text)), None) => return Ok(asking(stub, round, text)),
                (None, parked) => parked,
            };
            // Nobody is asked: an upstream that waits for it is told so and goes on.
            match refused {
                Some(parked) => answer = parked.decline(side).await?,
                None => return Err(unanswerable(&stub.tool.server, too_often)),
            }
        }
    }

    /// Goes on with a call whose caller has answered.
    pub(super) async fn resume(
        &self,
        tenant: &Tenant,
        (retried, arguments): (Retried<'_>, Option<Value>),
        answer: &InputAnswer,
        side: &CallerSide,
    ) -> Result<CallOutcome, CallError> {
        let unknown = || self.unknown_state(tenant);
        let again = self.same_call(tenant, &retried, arguments, answer);
        let again = again.ok_or_else(unknown)?;
        let (run_id, tool) = (again.opened.stub.run_id, again.opened.stub.tool.clone());
        let failed = |source: UpstreamError| CallError::Upstream {
            run_id,
            tool: tool.clone(),
            source: source.into(),
        };
        let definition = again.catalog.tool(again.slot);
        let sending = Sending {
            tenant,
            stub: again.opened.stub,
            promises: definition.output_schema().is_some(),
        };
        let run = retried.handle_key(tenant).zip(run_id);
        let running = || run.map(|(key, run)| self.spent.start(key, run, tool.clone()));
        let (running, outcome) = match again.opened.next {
            Next::Unpark => {
                if !Parked::reads(answer) {
                    return Err(CallError::InvalidAnswer { run_id, tool });
                }
                let parked = self.asked.unpark(again.nonce).ok_or_else(unknown)?;
                let running = running();
                let going_on = async {
                    let answer = parked.resume(answer, side).await?;
                    self.answered(sending, answer, side).await
                };
                (running, going_on.await)
            }
            Next::Send(state) => {
                let resolved = self.resolve(tenant, again.catalog.server_of(again.slot));
                let resolved = resolved.map_err(|e| unresolved(e, run_id, &tool, None))?;
                let lease = self.upstreams.lease(&tenant.id, resolved, side).await;
                let lease = lease.map_err(failed)?;
                lease.check(&tool.tool).map_err(failed)?;
                if lease.session_number() != again.opened.session {
                    return Err(unknown());
                }
                self.asked.pass(again.nonce).map_err(|error| match error {
                    PassError::Used => unknown(),
                    PassError::Full => failed(answers_full()),
                })?;
                let running = running();
                let sent_again = async {
                    let call = lease.call(&tool.tool, again.arguments, side, state);
                    self.answered(sending, call.await?, side).await
                };
                (running, sent_again.await)
            }
        };
        if let Some(running) = running {
            running.end(ended(&outcome));
        }
        outcome.map_err(failed)
    }

    /// The call that asked, if the retry is the same in all that its state is bound to.
    fn same_call(
        &self,
        tenant: &Tenant,
        retried: &Retried<'_>,
        arguments: Option<Value>,
        answer: &InputAnswer,
    ) -> Option<Again> {
        let (nonce, opened) = self.asked.open(&tenant.id, &answer.state)?;
        let stub = &opened.stub;
        let catalog = self.catalog.load_full();
        let slot = catalog.find(&stub.tool)?;
        let tool = catalog.tool(slot);
        let same_tool = *tool.hash().as_bytes() == stub.definition;
        if !same_tool || !retried.is_of(tenant, stub) {
            return None;
        }
        let arguments = self.arguments.check(tool, arguments).ok()?;
        let same_arguments = digest_of(&arguments) == stub.arguments;
        same_arguments.then_some(Again {
            nonce,
            opened,
            catalog,
            slot,
            arguments,
        })
    }

    /// A state that opens nothing is a wrong guess, as a handle that opens nothing is.
    fn unknown_state(&self, tenant: &Tenant) -> CallError {
        match CallError::from(self.handles.refuse_unreadable(&tenant.id)) {
            CallError::InvalidToken => CallError::InvalidState,
            locked_out => locked_out,
        }
    }
}

impl Retried<'_> {
    /// Whether it is the call that asked, as far as its caller has named it.
    fn is_of(&self, tenant: &Tenant, stub: &Stub) -> bool {
        let named = match self {
            Self::Direct(tool) => stub.run_id.is_none() && **tool == stub.tool,
            Self::Run(request) => {
                let (tool, server) = (stub.tool.tool.as_str(), stub.tool.server.as_str());
                let run_id = stub.run_id.map(|run_id| run_id.to_string());
                request.tool_name == tool
                    && request.server_name.as_deref().is_none_or(|it| it == server)
                    && run_id.is_some()
                    && (request.run_id.is_none() || request.run_id == run_id)
            }
        };
        let handle = self.handle_key(tenant).map(|key| *key.as_bytes());
        named && handle == stub.handle && tenant.scope.allows(&stub.tool)
    }

    fn handle_key(&self, tenant: &Tenant) -> Option<HandleKey> {
        match self {
            Self::Direct(_) => None,
            Self::Run(request) => {
                let handle = request.handle.parse::<Handle>().ok()?;
                Some(handle.key(&tenant.id))
            }
        }
    }
}

/// A question on its way to the caller.
fn asking(stub: Stub, mut round: Map<String, Value>, state: String) -> CallOutcome {
    round.insert("requestState".to_owned(), state.into());
    CallOutcome {
        run_id: stub.run_id,
        tool: stub.tool,
        result: round,
        truncated: None,
        breaks_promise: false,
        asks: true,
    }
}

fn answers_full() -> UpstreamError {
    UpstreamError::Busy {
        what: "answers to questions",
        retry_after: ASKED_FOR,
    }
}

fn unanswerable(server: &ServerName, too_often: bool) -> UpstreamError {
    let why = match too_often {
        true => AskError::TooOften,
        false => AskError::TooMuch,
    };
    UpstreamError::Unavailable {
        server: server.clone(),
        reason: why.to_string(),
        stderr: String::new(),
        sent: true,
        retry_after: None,
    }
}
