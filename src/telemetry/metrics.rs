//! Metrics for Prometheus. Labels come from bounded sets.

use std::sync::OnceLock;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use crate::telemetry::operation::{CLIENT_OPERATION, SERVER_OPERATION};

/// Upper bounds of the buckets of durations, in seconds.
const BUCKETS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 15.0, 60.0,
];

/// A value that goes up and down.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Gauge {
    /// Tools that can be found.
    Tools,
    /// Servers in the catalog.
    Servers,
    /// 1 when `/readyz` says yes.
    Ready,
    /// Handles that are alive.
    Handles,
    /// Open sessions with servers behind.
    UpstreamSessions,
    /// Faults of catalog files.
    CatalogFaults,
    /// Catalog sources that were not read in the last round.
    SourcesFailed,
    /// Definitions that wait to be approved.
    CatalogWaiting,
    /// Servers and tools with a finding of the highest severity.
    CatalogFlagged,
    /// As [`Gauge::CatalogFlagged`], of what waits to be approved.
    WaitingFlagged,
}

/// Sets a gauge.
pub fn set_gauge(gauge: Gauge, value: usize) {
    let name = match gauge {
        Gauge::Tools => "toolcrib_tools",
        Gauge::Servers => "toolcrib_servers",
        Gauge::Ready => "toolcrib_ready",
        Gauge::Handles => "toolcrib_handles_alive",
        Gauge::UpstreamSessions => "toolcrib_upstream_sessions",
        Gauge::CatalogFaults => "toolcrib_catalog_faults",
        Gauge::SourcesFailed => "toolcrib_catalog_sources_failed",
        Gauge::CatalogWaiting => "toolcrib_catalog_waiting",
        Gauge::CatalogFlagged => "toolcrib_catalog_flagged",
        Gauge::WaitingFlagged => "toolcrib_catalog_waiting_flagged",
    };
    recorder();
    metrics::gauge!(name).set(value as f64);
}

/// Counts tools that the model made a vector of: what is in the cache of vectors is not counted.
pub fn count_embedded(tools: usize) {
    recorder();
    metrics::counter!("toolcrib_embedded_tools_total").increment(tools as u64);
}

/// The page that Prometheus reads.
pub fn metrics_page() -> String {
    recorder().map(PrometheusHandle::render).unwrap_or_default()
}

/// The recorder of this process; `None` when a program that embeds us has set its own.
pub(super) fn recorder() -> Option<&'static PrometheusHandle> {
    static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    RECORDER
        .get_or_init(|| {
            let mut builder = PrometheusBuilder::new();
            for name in [SERVER_OPERATION, CLIENT_OPERATION] {
                let matcher = Matcher::Full(name.to_owned());
                builder = builder.set_buckets_for_metric(matcher, &BUCKETS).ok()?;
            }
            let recorder = builder.build_recorder();
            let handle = recorder.handle();
            metrics::set_global_recorder(recorder).ok().map(|()| handle)
        })
        .as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_is_on_the_page() {
        set_gauge(Gauge::Tools, 7);
        assert!(metrics_page().contains("toolcrib_tools 7"));
    }
}
