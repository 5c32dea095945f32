//! The admin port: is it alive, is it ready, how is it doing. Never in reach of agents.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::telemetry::metrics_page;

/// Tells how the program is doing.
pub trait Health: Send + Sync + 'static {
    /// Whether requests are answered as they should be, and what to say about it.
    fn readiness(&self) -> (bool, Value);

    /// Sets the gauges before they are read.
    fn refresh_gauges(&self);

    /// Reads the catalog's sources again, and tells what came of it, or why nothing did.
    fn refresh_catalog(&self) -> BoxFuture<'static, Result<Value, String>>;
}

/// `/livez`, `/readyz`, `/metrics` and `POST /admin/refresh`.
pub fn admin_router(health: Arc<dyn Health>) -> Router {
    Router::new()
        .route("/livez", get(|| async { Json(json!({ "live": true })) }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/admin/refresh", post(refresh))
        .with_state(health)
}

async fn readyz(State(health): State<Arc<dyn Health>>) -> impl IntoResponse {
    let (ready, details) = health.readiness();
    let code = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (code, Json(details))
}

async fn metrics(State(health): State<Arc<dyn Health>>) -> impl IntoResponse {
    health.refresh_gauges();
    (
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4")],
        metrics_page(),
    )
}

async fn refresh(
    State(health): State<Arc<dyn Health>>,
    headers: HeaderMap,
) -> (StatusCode, Json<Value>) {
    // Operators have no origin; a web page that finds this port has one.
    if headers.contains_key(header::ORIGIN) {
        let refusal = json!({ "error": "requests of web pages are refused" });
        return (StatusCode::FORBIDDEN, Json(refusal));
    }
    match health.refresh_catalog().await {
        Ok(report) => (StatusCode::OK, Json(report)),
        Err(error) => {
            let failure = json!({ "error": error });
            (StatusCode::INTERNAL_SERVER_ERROR, Json(failure))
        }
    }
}
