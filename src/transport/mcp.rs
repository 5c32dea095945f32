//! MCP in both protocol eras, over any transport of rmcp: one handler for the protocol, and a
//! surface in it that says which tools there are.

mod surface;
mod connected;
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

use crate::lifecycle::Lifecycle;
use crate::transport::desk::{Desk, Guest};
use crate::transport::mcp::relay::{caller_side, typed};
use crate::transport::mcp::surface::FIXED_TTL_MS;

pub use self::connected::Connected;
pub use self::surface::{Ask, Listing, Surface, ToolCall};

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

/// One surface, spoken over MCP.
#[derive(Clone, Debug)]
pub struct Handler {
    surface: Arc<dyn Surface>,
    desk: Arc<Desk>,
    /// Whose requests are those that came through no door, on standard streams.
    resident: Option<Guest>,
}

impl Handler {
    /// For HTTP: the door puts a guest into each request.
    pub fn behind_a_door(surface: Arc<dyn Surface>, desk: Arc<Desk>) -> Self {
        Self {
            surface,
            desk,
            resident: None,
        }
    }

    /// For standard streams: all requests are one guest's.
    pub fn of_resident(surface: Arc<dyn Surface>, desk: Arc<Desk>, guest: Guest) -> Self {
        Self {
            surface,
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

    fn ask(&self, context: &RequestContext<RoleServer>) -> Result<Ask, ErrorData> {
        let parts = context.extensions.get::<http::request::Parts>();
        let guest = parts.and_then(|parts| parts.extensions.get::<Guest>());
        // No guest means that a router was built without its door: nobody gets in.
        let guest = guest.or(self.resident.as_ref()).cloned().ok_or_else(|| {
            ErrorData::internal_error("no tenant is known for this request", None)
        })?;
        Ok(Ask {
            guest,
            parts: parts.cloned(),
        })
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .build();
        let implementation = Implementation::new("toolcrib", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(implementation)
            .with_instructions(self.surface.instructions())
    }

    async fn discover(
        &self,
        _context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, self.get_info())
            .with_ttl_ms(FIXED_TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let ask = self.ask(&context)?;
        let cursor = request.and_then(|request| request.cursor);
        let listing = self.surface.list(&ask, cursor.as_deref()).await?;
        let mut result = ListToolsResult::with_all_items(listing.tools)
            .with_ttl_ms(listing.ttl_ms)
            .with_cache_scope(listing.scope);
        result.next_cursor = listing.next_cursor;
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(
            ListResourceTemplatesResult::with_all_items(vec![runs::template()])
                .with_ttl_ms(FIXED_TTL_MS)
                .with_cache_scope(CacheScope::Public),
        )
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let ask = self.ask(&context)?;
        Ok(runs::read(&self.desk, &ask.guest, &request.uri)?
            .with_ttl_ms(0)
            .with_cache_scope(CacheScope::Private)
            .into())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let ask = self.ask(&context)?;
        let call = ToolCall {
            name: request.name.into_owned(),
            arguments: request.arguments.unwrap_or_default(),
            side: caller_side(&context),
        };
        let result = self.surface.call(&ask, call).await?;
        Ok(typed(result).into())
    }
}
