//! HTTP: `/mcp` for agents behind its guards, and the admin port for operators.
//!
//! ```text
//! request -> host and origin -> tenant -> body limit -> rmcp -> surface
//! ```

mod guard;
mod door;
mod admin;

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;
use tokio_util::sync::CancellationToken;

pub use self::admin::{Health, admin_router};
pub use self::door::Door;
pub use self::guard::{Guard, ParseOriginError};

use crate::transport::mcp::Surface;

/// The router of `/mcp`.
///
/// Stateless in both protocol eras: no session is kept, so any replica answers any request.
pub fn mcp_router(
    surface: Surface,
    guard: Guard,
    door: Door,
    body_bytes_max: usize,
    cancelled: CancellationToken,
) -> Router {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(body_bytes_max)
        // The guard has looked at both before anything else runs.
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_cancellation_token(cancelled);
    let service = StreamableHttpService::new(
        move || Ok(surface.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    Router::new()
        .route_service("/mcp", service)
        .layer(from_fn_with_state(Arc::new(door), door::admit))
        .layer(from_fn_with_state(Arc::new(guard), guard::check))
        .layer(from_fn(guard::harden))
}
