//! Tools that were written with rmcp's macros, as a provider: a whole [`ToolRouter`] is taken over.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::ToolCallContext;
use rmcp::model::{CallToolRequestParams, CallToolResponse, JsonObject};
use rmcp::service::RequestContext;
use serde_json::Value;

use crate::domain::{Annotations, ParseNameError, ServerName};
use crate::registry::{
    Call, DescribeToolError, ProvideError, ToolList, ToolMetadata, ToolOutput, ToolProvider,
    ToolSpec, Visibility,
};

/// The tools of a router with the service that they are methods of.
pub struct RoutedTools<S> {
    name: ServerName,
    service: Arc<S>,
    router: ToolRouter<S>,
    list: ToolList,
}

impl<S> fmt::Debug for RoutedTools<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RoutedTools({}, {} tools)", self.name, self.list.len())
    }
}

/// A router cannot be taken over.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TakeRouterError {
    /// The provider's name is none.
    #[error("not a provider's name")]
    Name(#[from] ParseNameError),
    /// One of its tools cannot be described.
    #[error("a tool of the router cannot be taken over")]
    Tool(#[from] DescribeToolError),
}

impl<S: Send + Sync + 'static> RoutedTools<S> {
    /// All tools of a router, under a name of `a-z`, `0-9` and `-`.
    pub fn new(
        name: &str,
        service: S,
        router: ToolRouter<S>,
        visibility: Visibility,
    ) -> Result<Self, TakeRouterError> {
        let tools: Result<Vec<_>, DescribeToolError> = router
            .list_all()
            .iter()
            .map(|tool| Ok(Arc::new(describe(tool, visibility)?)))
            .collect();
        Ok(Self {
            name: name.parse()?,
            service: Arc::new(service),
            list: ToolList::new(tools?),
            router,
        })
    }

    async fn run(&self, call: Call) -> Result<Option<ToolOutput>, ProvideError> {
        if self.list.find(&call.name).is_none() {
            return Ok(None);
        }
        let context = call.asker.extensions.get::<RequestContext<RoleServer>>();
        let context = context.cloned().ok_or_else(|| {
            ProvideError::unavailable(self.name(), "its tools are called over MCP only")
        })?;
        let arguments: JsonObject = call.arguments.into_map();
        let request = CallToolRequestParams::new(call.name).with_arguments(arguments);
        let context = ToolCallContext::new(&*self.service, request, context);
        match self.router.call(context).await {
            Ok(CallToolResponse::Complete(result)) => match serde_json::to_value(&result) {
                Ok(Value::Object(result)) => Ok(Some(ToolOutput::from_result(result))),
                _ => Err(ProvideError::outcome_unknown(
                    self.name(),
                    "its result cannot be written",
                )),
            },
            Ok(_asks) => {
                let reason = "it asks for input, which is not passed on";
                Err(ProvideError::outcome_unknown(self.name(), reason))
            }
            Err(error) => Ok(Some(ToolOutput::error(error.message))),
        }
    }
}

impl<S: Send + Sync + 'static> ToolProvider for RoutedTools<S> {
    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn tools(&self) -> BoxFuture<'_, Result<ToolList, ProvideError>> {
        let list = self.list.clone();
        async { Ok(list) }.boxed()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Option<ToolOutput>, ProvideError>> {
        self.run(call).boxed()
    }
}

fn describe(
    tool: &rmcp::model::Tool,
    visibility: Visibility,
) -> Result<ToolMetadata, DescribeToolError> {
    let text = tool.description.as_deref().unwrap_or_default();
    let schema = Value::Object(JsonObject::clone(&tool.input_schema));
    let mut spec = ToolSpec::new(&tool.name, text)?.schema(schema)?;
    if let Some(title) = &tool.title {
        spec = spec.title(title);
    }
    if let Some(schema) = &tool.output_schema {
        spec = spec.output_schema(Value::Object(JsonObject::clone(schema)));
    }
    if let Some(said) = &tool.annotations {
        spec = spec.annotations(Annotations {
            read_only: said.read_only_hint,
            destructive: said.destructive_hint,
            idempotent: said.idempotent_hint,
            open_world: said.open_world_hint,
        });
    }
    Ok(match visibility {
        Visibility::Native => spec.native().into(),
        Visibility::Discoverable => spec.into(),
    })
}
