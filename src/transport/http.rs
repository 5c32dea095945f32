//! HTTP: `/mcp` for agents behind its guards, and the admin port for operators.
//!
//! ```text
//! request -> host and origin -> tenant -> body limit -> rmcp -> surface
//! ```

mod guard;
mod door;
mod admin;
mod patience;

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;
use tokio_util::sync::CancellationToken;

pub use self::admin::{Health, admin_router};
pub use self::door::Door;
pub use self::guard::{Guard, ParseOriginError};
pub use self::patience::{Patient, PatientIo, READ_MAX};

use crate::transport::mcp::Handler;

/// What answers MCP, and where it is served.
#[derive(Clone, Debug)]
pub struct Route<H = Handler> {
    /// Its path.
    pub path: String,
    /// What answers there.
    pub handler: H,
}

/// The router of `/mcp` and of what is served beside it: other paths, the same guards.
///
/// Stateless in both protocol eras: no session is kept, so any replica answers any request.
pub fn mcp_router<H: ServerHandler + Clone>(
    routes: Vec<Route<H>>,
    guard: Guard,
    door: Door,
    body_bytes_max: usize,
    cancelled: &CancellationToken,
) -> Router {
    let mut served = Router::new();
    for Route { path, handler } in routes {
        let service = service(handler, body_bytes_max, cancelled.clone());
        served = served.route_service(&path, service);
    }
    behind_guards(served, guard, door)
}

/// A router whose requests pass the guard first, then the door, as those of [`mcp_router`] do.
pub fn behind_guards(served: Router, guard: Guard, door: Door) -> Router {
    served
        .layer(from_fn_with_state(Arc::new(door), door::admit))
        .layer(from_fn_with_state(Arc::new(guard), guard::check))
        .layer(from_fn(guard::harden))
}

/// The router of one handler in a host's own program: behind the guard, but without a door, since
/// who comes in is the host's business. The host's layers see its requests first.
pub fn embedded_router(
    path: &str,
    handler: Handler,
    guard: Guard,
    body_bytes_max: usize,
    cancelled: CancellationToken,
) -> Router {
    Router::new()
        .route_service(path, service(handler, body_bytes_max, cancelled))
        .layer(from_fn_with_state(Arc::new(guard), guard::check))
        .layer(from_fn(guard::harden))
}

fn service<H: ServerHandler + Clone>(
    handler: H,
    body_bytes_max: usize,
    cancelled: CancellationToken,
) -> StreamableHttpService<H, NeverSessionManager> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(body_bytes_max)
        // The guard has looked at both before anything else runs.
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_cancellation_token(cancelled);
    StreamableHttpService::new(
        move || Ok(handler.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    )
}
