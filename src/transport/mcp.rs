//! MCP in both protocol eras, over any transport of rmcp: one handler for the protocol, and a
//! surface in it that says which tools there are.

mod surface;
mod connected;
mod gateway;
mod discovery;
mod routed;
mod definition;
mod changes;
mod relay;
pub(in crate::transport) mod runs;

use std::sync::Arc;

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, DiscoverResult, ErrorData, Implementation,
    InitializeRequestParams, InitializeResult, ListResourceTemplatesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, ServerNotification, SubscriptionFilter, ToolListChangedNotification,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use tracing::Instrument;

use crate::lifecycle::Lifecycle;
use crate::telemetry::call_span;
use crate::transport::desk::{Desk, Guest};
use crate::transport::mcp::changes::Changes;
use crate::transport::mcp::relay::{caller_side, response, trace};
use crate::transport::mcp::surface::FIXED_TTL_MS;

pub use self::connected::Connected;
pub use self::discovery::{CatalogTools, Discovery, Match};
pub use self::gateway::Gateway;
pub use self::routed::RoutedTools;
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
        let mut guest = guest.or(self.resident.as_ref()).cloned().ok_or_else(|| {
            ErrorData::internal_error("no tenant is known for this request", None)
        })?;
        guest.trace = trace(context);
        Ok(Ask {
            guest,
            parts: parts.cloned(),
        })
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .build();
        if let Some(tools) = capabilities
            .tools
            .as_mut()
            .filter(|_| self.surface.changes())
        {
            tools.list_changed = Some(true);
        }
        let implementation = Implementation::new("toolcrib", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(implementation)
            .with_instructions(self.surface.instructions())
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?;
        // Over HTTP the legacy era has no stream here that changes could be told on.
        if let Some(tools) = result
            .capabilities
            .tools
            .as_mut()
            .filter(|_| self.resident.is_none())
        {
            tools.list_changed = None;
        }
        Ok(result)
    }

    /// The legacy era on standard streams: changes are told unasked.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Some(guest) = self.resident.clone().filter(|_| self.surface.changes()) else {
            return;
        };
        let (surface, desk) = (Arc::clone(&self.surface), Arc::clone(&self.desk));
        let lifecycle = desk.lifecycle().clone();
        lifecycle.spawn(async move {
            let mut changes = Changes::new(surface, desk, guest);
            while let Some(()) = changes.next().await {
                if context.peer.notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
        });
    }

    fn accepted_subscription_filter(
        &self,
        _requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        Some(filter).filter(|_| self.surface.changes())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let ask = self.ask(subscription.request_context())?;
        let place = self.desk.admit_listener(&ask.guest);
        let _place = place.map_err(|full| ErrorData::internal_error(full.to_text(), None))?;
        let (surface, desk) = (Arc::clone(&self.surface), Arc::clone(&self.desk));
        let mut changes = Changes::new(surface, desk, ask.guest);
        loop {
            tokio::select! {
                another = changes.next() => if another.is_none() {
                    return Ok(());
                },
                () = subscription.cancelled() => return Ok(()),
            }
            let tell = ToolListChangedNotification::default();
            let tell = ServerNotification::ToolListChangedNotification(tell);
            if subscription.sink().send(tell).await.is_err() {
                return Ok(());
            }
        }
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
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let ask = self.ask(&context)?;
        let side = caller_side(&context, &mut request);
        let call = ToolCall {
            name: request.name.into_owned(),
            arguments: request.arguments.unwrap_or_default(),
            side,
            context,
        };
        let span = call_span(ask.guest.trace.as_ref());
        let result = self.surface.call(&ask, call).instrument(span).await?;
        Ok(response(result))
    }
}
