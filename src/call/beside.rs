//! Tools beside the catalog: their callers bring the definition or the server along.

use serde_json::{Map, Value};

use crate::call::input::AskError;
use crate::call::upstream::Answer;
use crate::call::{CallError, CallOutcome, Caller, CallerSide, UpstreamError};
use crate::domain::{Server, Tenant, Tool, ToolId, ToolName};

impl Caller {
    /// The arguments of a tool beside the catalog as an object that fits its schema.
    pub fn check_arguments(
        &self,
        id: &ToolId,
        tool: &Tool,
        arguments: Value,
    ) -> Result<Map<String, Value>, CallError> {
        let checked = self.arguments.check(tool, Some(arguments));
        checked.map_err(|problems| CallError::InvalidArguments {
            run_id: None,
            tool: id.clone(),
            problems,
            left: None,
        })
    }

    /// The result of a tool beside the catalog, under the same cap as all others.
    pub fn outcome_of(
        &self,
        tenant: &Tenant,
        tool: ToolId,
        result: Map<String, Value>,
    ) -> CallOutcome {
        self.outcome(tenant, (None, false), tool, result)
    }

    /// Tools of a server beside the catalog, as it lists them.
    pub async fn list_server(
        &self,
        tenant: &Tenant,
        server: &Server,
    ) -> Result<Vec<Value>, UpstreamError> {
        let settings = &*self.settings;
        self.upstreams.list_tools(tenant, server, settings).await
    }

    /// Runs a tool of a server beside the catalog. The arguments have been checked.
    pub async fn call_server(
        &self,
        tenant: &Tenant,
        server: &Server,
        (tool, arguments): (&ToolName, Map<String, Value>),
        side: &CallerSide,
    ) -> Result<Map<String, Value>, UpstreamError> {
        // What a program's own provider runs cannot ask: its answer would have no way back.
        let side = CallerSide {
            askable: None,
            answer: None,
            ..side.clone()
        };
        let resolved = self.resolve(tenant, server)?;
        let lease = self.upstreams.lease(&tenant.id, resolved, &side).await?;
        lease.check(tool)?;
        let server = server.name.clone();
        match lease.call(tool, arguments, &side, None).await? {
            Answer::Result(result) => Ok(result),
            Answer::Asks(_) => Err(UpstreamError::Unavailable {
                server,
                reason: AskError::NoRounds.to_string(),
                stderr: String::new(),
                sent: true,
                retry_after: None,
            }),
        }
    }
}
