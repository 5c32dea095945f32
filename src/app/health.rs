//! The truth for `/readyz` and the gauges.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::app::{App, Ask, ModelState, report_json};
use crate::search::Readiness;
use crate::telemetry::{Chain, Gauge, set_gauge};
use crate::transport::http::Health;

impl App {
    /// Whether searches are answered as configured: with vectors, or by keywords alone where
    /// there is no model to wait for.
    fn is_ready(&self) -> bool {
        let answering = match self.searcher.readiness() {
            Readiness::Empty => false,
            Readiness::KeywordOnly { .. } => !matches!(self.model, ModelState::Loaded { .. }),
            Readiness::Ready { .. } => true,
        };
        answering && !self.lifecycle.is_stopping()
    }
}

/// An [`App`] in the form that the admin port asks.
#[derive(Debug)]
pub(super) struct AppHealth(pub(super) Arc<App>);

impl Health for AppHealth {
    fn readiness(&self) -> (bool, Value) {
        let app = &self.0;
        let (state, tools) = match app.searcher.readiness() {
            Readiness::Empty => ("the catalog is empty", 0),
            Readiness::KeywordOnly { tools } => match &app.model {
                ModelState::Loaded { .. } => ("the index is being built", tools),
                ModelState::Disabled => ("ranking by keywords, as configured", tools),
                ModelState::Missing { .. } => ("ranking by keywords: no model is fetched", tools),
            },
            Readiness::Ready { tools } => ("ranking by keywords and vectors", tools),
        };
        let state = if app.lifecycle.is_stopping() {
            "stopping"
        } else {
            state
        };
        let ready = app.is_ready();
        let (failed, waiting) = app.refresher.state();
        let details = json!({
            "ready": ready,
            "state": state,
            "tools": tools,
            "servers": app.catalog().servers().len(),
            "catalog_faults": app.faults.len(),
            "sources_failed": failed,
            "waiting": waiting,
        });
        (ready, details)
    }

    fn refresh_gauges(&self) {
        let app = &self.0;
        let catalog = app.catalog();
        set_gauge(Gauge::Tools, catalog.len());
        set_gauge(Gauge::Servers, catalog.servers().len());
        set_gauge(Gauge::Ready, usize::from(app.is_ready()));
        set_gauge(Gauge::Handles, app.handles.alive());
        let open = app
            .caller
            .upstreams()
            .status()
            .iter()
            .filter(|session| session.open)
            .count();
        set_gauge(Gauge::UpstreamSessions, open);
        set_gauge(Gauge::CatalogFaults, app.faults.len());
        let (failed, waiting) = app.refresher.state();
        set_gauge(Gauge::SourcesFailed, failed);
        set_gauge(Gauge::CatalogWaiting, waiting);
    }

    fn refresh_catalog(&self) -> BoxFuture<'static, Result<Value, String>> {
        let app = Arc::clone(&self.0);
        // A task of its own: a client that goes away does not leave half a round behind.
        let round = self
            .0
            .lifecycle
            .spawn(async move { app.refresh(Ask::default(), &|_, _| ()).await });
        Box::pin(async move {
            match round.await {
                Ok(Ok(report)) => Ok(report_json(&report)),
                Ok(Err(error)) => Err(Chain(error.as_ref()).to_string()),
                Err(error) => Err(Chain(&error).to_string()),
            }
        })
    }
}
