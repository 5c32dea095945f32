//! What the official conformance suite calls by name, served by this crate's own HTTP stack.
//!
//! ```text
//! cargo run --example conformance_fixture -- 127.0.0.1:0
//! ```
//!
//! `/mcp` is the router of `toolcrib serve`, with its guard and its door, over another handler. The
//! suite of 2025-11-25 also wants a server that asks its client in the middle of a call, which needs
//! a session: `/sessions` has them, behind the same guard and door.

#![expect(clippy::print_stdout, reason = "it says where it listens")]

mod fixture;
mod tools;
mod content;
mod asking;
mod rounds;
mod sealed;
mod resources;
mod prompts;

use std::error::Error;
use std::sync::Arc;

use axum::Router;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;
use tokio_util::sync::CancellationToken;
use toolcrib::tenants::Directory;
use toolcrib::transport::http::{Door, Guard, Route, behind_guards, mcp_router};

use crate::fixture::Fixture;

/// Largest request body, in bytes: the default of `toolcrib serve`.
const BODY_BYTES_MAX: usize = 256 * 1024;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let address = std::env::args().nth(1);
    let address = address.unwrap_or_else(|| "127.0.0.1:0".to_owned());
    // Without tenants, so that everybody is let in: the suite has no key.
    let folder = tempfile::tempdir()?;
    let directory = Arc::new(Directory::new(folder.path().join("tenants.json")));
    let door = || Door::new(Arc::clone(&directory), true);
    let cancelled = CancellationToken::new();
    let fixture = Fixture::new();

    let route = Route {
        path: "/mcp".to_owned(),
        handler: fixture.clone(),
    };
    let (guard, routes) = (Guard::default(), vec![route]);
    let stateless = mcp_router(routes, guard.clone(), door(), BODY_BYTES_MAX, &cancelled);
    let config = StreamableHttpServerConfig::default()
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_cancellation_token(cancelled.clone());
    let sessions = StreamableHttpService::new(
        move || Ok(fixture.in_a_session()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let sessions = Router::new().route_service("/sessions", sessions);
    let app = stateless.merge(behind_guards(sessions, guard, door()));

    let listener = tokio::net::TcpListener::bind(&address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let stop = async move {
        let _end = tokio::signal::ctrl_c().await;
        cancelled.cancel();
    };
    axum::serve(listener, app)
        .with_graceful_shutdown(stop)
        .await?;
    Ok(())
}
