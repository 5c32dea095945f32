//! Another MCP server as a provider. Where it has a `tool_search` and an `execute_tool` of its own,
//! what it hides is found through the one and run through the other.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::call::{Caller, CallerSide, UpstreamError};
use crate::domain::{Server, Tenant, ToolName};
use crate::registry::definition;
use crate::registry::provider::{Call, ProvideError, ToolProvider};
use crate::registry::{ToolList, ToolMetadata, ToolOutput};

/// How long a list is good.
const LIST_KEPT: Duration = Duration::from_secs(30);
/// Most tools of one server.
const TOOLS_MAX: usize = 10_000;
/// Found tools that are remembered; beyond it all are forgotten and found again.
const FOUND_KEPT_MAX: usize = 1_000;
/// Tools that are asked for when one is looked for by name.
const LOOKED_UP: usize = 10;
/// Its own two tools.
const SEARCH: &str = "tool_search";
const EXECUTE: &str = "execute_tool";

/// What the server listed last.
#[derive(Clone, Debug)]
struct Listed {
    at: Instant,
    tools: ToolList,
    searches: bool,
}

/// A server beside the catalog. It is reached with the settings of the tenant `local`, whoever
/// asks: for servers that show each tenant something else, make one for each request.
pub struct RemoteProvider {
    server: Server,
    tenant: Tenant,
    caller: Arc<Caller>,
    listed: Mutex<Option<Listed>>,
    found: Mutex<HashMap<String, Arc<ToolMetadata>>>,
}

impl fmt::Debug for RemoteProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteProvider({})", self.server.name)
    }
}

impl RemoteProvider {
    /// Of a server with a launch, over the sessions of a caller. It is started or connected to when
    /// it is first asked.
    pub fn new(server: Server, caller: Arc<Caller>) -> Self {
        Self {
            server,
            tenant: Tenant::local(),
            caller,
            listed: Mutex::default(),
            found: Mutex::default(),
        }
    }

    async fn listed(&self) -> Result<Listed, ProvideError> {
        let kept = self
            .listed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(kept) = kept.filter(|kept| kept.at.elapsed() < LIST_KEPT) {
            return Ok(kept);
        }
        let values = self.caller.list_server(&self.tenant, &self.server).await;
        let values = values.map_err(|error| self.failure(&error))?;
        let named = |wanted: &str| values.iter().any(|value| value["name"] == wanted);
        let searches = named(SEARCH) && named(EXECUTE);
        let own =
            |value: &&Value| !searches || (value["name"] != SEARCH && value["name"] != EXECUTE);
        let tools = values.iter().filter(own).take(TOOLS_MAX);
        let listed = Listed {
            at: Instant::now(),
            tools: ToolList::new(tools.filter_map(|value| self.read(value))),
            searches,
        };
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = Some(listed.clone());
        Ok(listed)
    }

    async fn search(&self, query: &str, most: usize) -> Result<ToolList, ProvideError> {
        if !self.listed().await?.searches {
            return Ok(ToolList::default());
        }
        let arguments = json!({ "query": query, "max_results": most });
        let result = self.send(SEARCH, arguments, &CallerSide::default()).await?;
        let text = result
            .get("content")
            .and_then(|content| content.get(0)?.get("text")?.as_str());
        let parsed = || serde_json::from_str::<Value>(text?).ok();
        let body = result.get("structuredContent").cloned().or_else(parsed);
        let tools = body
            .as_ref()
            .and_then(|body| body.get("tools").unwrap_or(body).as_array());
        let tools = tools.into_iter().flatten().take(most);
        let tools = ToolList::new(tools.filter_map(|value| self.read(value)));
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if FOUND_KEPT_MAX < found.len() + tools.len() {
            found.clear();
        }
        found.extend(
            tools
                .iter()
                .map(|tool| (tool.name().to_owned(), Arc::clone(tool))),
        );
        Ok(tools)
    }

    async fn look_up(&self, name: &str) -> Result<Option<Arc<ToolMetadata>>, ProvideError> {
        if let Some(tool) = self.listed().await?.tools.find(name) {
            return Ok(Some(Arc::clone(tool)));
        }
        let kept = || {
            self.found
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get(name)
                .cloned()
        };
        if let Some(tool) = kept() {
            return Ok(Some(tool));
        }
        Ok(self.search(name, LOOKED_UP).await?.find(name).cloned())
    }

    async fn run(&self, call: Call) -> Result<Option<ToolOutput>, ProvideError> {
        let Call {
            name,
            arguments,
            side,
            ..
        } = call;
        if self.look_up(&name).await?.is_none() {
            return Ok(None);
        }
        let arguments = Value::Object(arguments.into_map());
        let result = match self.listed().await?.tools.find(&name) {
            Some(_) => self.send(&name, arguments, &side).await?,
            None => {
                let wrapped = json!({ "name": name, "arguments": arguments });
                self.send(EXECUTE, wrapped, &side).await?
            }
        };
        Ok(Some(ToolOutput::from_result(result)))
    }

    async fn send(
        &self,
        name: &str,
        arguments: Value,
        side: &CallerSide,
    ) -> Result<Map<String, Value>, ProvideError> {
        let wrong = |_| ProvideError::unavailable(self.name(), "not a tool's name");
        let tool: ToolName = name.parse().map_err(wrong)?;
        let arguments = match arguments {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        let call = (&tool, arguments);
        let sent = self
            .caller
            .call_server(&self.tenant, &self.server, call, side)
            .await;
        sent.map_err(|error| self.failure(&error))
    }

    /// A definition that does not read costs its own tool.
    fn read(&self, value: &Value) -> Option<Arc<ToolMetadata>> {
        match definition::read(value) {
            Ok(spec) => Some(Arc::new(spec.into())),
            Err(error) => {
                tracing::warn!(provider = self.name(), error = %error, "left out a tool");
                None
            }
        }
    }

    fn failure(&self, error: &UpstreamError) -> ProvideError {
        let provider = self.name();
        match error {
            UpstreamError::Timeout {
                after, sent: true, ..
            } => ProvideError::TimedOut {
                provider: provider.to_owned(),
                after: *after,
            },
            UpstreamError::ShuttingDown => ProvideError::ShuttingDown,
            UpstreamError::Cancelled { .. } => ProvideError::Cancelled,
            error if error.sent() => ProvideError::outcome_unknown(provider, error),
            error => ProvideError::unavailable(provider, error),
        }
    }
}

impl ToolProvider for RemoteProvider {
    fn name(&self) -> &str {
        self.server.name.as_str()
    }

    fn tools(&self) -> BoxFuture<'_, Result<ToolList, ProvideError>> {
        async { Ok(self.listed().await?.tools) }.boxed()
    }

    fn find<'a>(
        &'a self,
        query: &'a str,
        most: usize,
    ) -> BoxFuture<'a, Result<ToolList, ProvideError>> {
        self.search(query, most).boxed()
    }

    fn tool<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Arc<ToolMetadata>>, ProvideError>> {
        self.look_up(name).boxed()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Option<ToolOutput>, ProvideError>> {
        self.run(call).boxed()
    }
}
