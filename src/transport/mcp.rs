//! MCP: two tools that never change, in both protocol eras, over any transport of rmcp.

mod tools;
mod relay;
pub(in crate::transport) mod runs;

use std::sync::Arc;

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, DiscoverResult, ErrorData, Implementation,
    ListResourceTemplatesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use serde_json::{Map, Value};

use crate::lifecycle::Lifecycle;
use crate::transport::desk::{Desk, Guest};
use crate::transport::mcp::relay::{caller_side, typed};

/// How long a client may keep the list of tools, in milliseconds: an hour.
const LIST_TTL_MS: u64 = 60 * 60 * 1_000;

/// What a client reads when it connects.
const SERVER_INSTRUCTIONS: &str = "Toolcrib finds the right tool among thousands. Say in one \
    sentence what you want to do to search_tools; it answers with at most three tools, their \
    arguments, and a capability_token. Pass the token, the tool_name and the arguments to run_tool, \
    which runs the tool once. Search again for each further step.";

/// The standard streams could not be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeStdioError {
    /// The client did not begin as the protocol says.
    #[error("the client on standard input did not begin an MCP session")]
    Begin(#[from] Box<rmcp::service::ServerInitializeError>),
    /// The session ended badly.
    #[error("the session on standard input ended badly")]
    End(#[from] tokio::task::JoinError),
}

/// The surface `connected`: `search_tools` and `run_tool`.
#[derive(Clone, Debug)]
pub struct Surface {
    desk: Arc<Desk>,
    /// Whose requests are those that came through no door, on standard streams.
    resident: Option<Guest>,
}

impl Surface {
    /// For HTTP: the door puts a guest into each request.
    pub fn behind_a_door(desk: Arc<Desk>) -> Self {
        Self {
            desk,
            resident: None,
        }
    }

    /// For standard streams: all requests are one guest's.
    pub fn of_resident(desk: Arc<Desk>, guest: Guest) -> Self {
        Self {
            desk,
            resident: Some(guest),
        }
    }

    /// Serves standard input and output until the client or the program ends.
    pub async fn serve_stdio(self, lifecycle: &Lifecycle) -> Result<(), ServeStdioError> {
        let token = lifecycle.stopping_token();
        let begin = self.serve_with_ct(rmcp::transport::io::stdio(), token);
        let session = begin.await.map_err(Box::new)?;
        session.waiting().await?;
        Ok(())
    }
}

impl Surface {
    fn guest(&self, context: &RequestContext<RoleServer>) -> Result<Guest, ErrorData> {
        let parts = context.extensions.get::<http::request::Parts>();
        let guest = parts.and_then(|parts| parts.extensions.get::<Guest>());
        // No guest means that a router was built without its door: nobody gets in.
        guest
            .or(self.resident.as_ref())
            .cloned()
            .ok_or_else(|| ErrorData::internal_error("no tenant is known for this request", None))
    }
}

impl ServerHandler for Surface {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .build();
        let implementation = Implementation::new("toolcrib", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(implementation)
            .with_instructions(SERVER_INSTRUCTIONS)
    }

    async fn discover(
        &self,
        _context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, self.get_info())
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // The same for every tenant, so that any cache may keep it.
        Ok(ListToolsResult::with_all_items(tools::all())
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(
            ListResourceTemplatesResult::with_all_items(vec![runs::template()])
                .with_ttl_ms(LIST_TTL_MS)
                .with_cache_scope(CacheScope::Public),
        )
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let guest = self.guest(&context)?;
        Ok(runs::read(&self.desk, &guest, &request.uri)?
            .with_ttl_ms(0)
            .with_cache_scope(CacheScope::Private)
            .into())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let guest = self.guest(&context)?;
        let arguments: Map<String, Value> = request.arguments.unwrap_or_default();
        let result = match &*request.name {
            tools::SEARCH => self.desk.search(&guest, &arguments).await,
            tools::RUN => {
                self.desk
                    .run(&guest, arguments, caller_side(&context))
                    .await
            }
            name => {
                let text = format!("unknown tool `{name}`: there are search_tools and run_tool");
                return Err(ErrorData::invalid_params(text, None));
            }
        };
        Ok(typed(result).into())
    }
}
