//! Metrics for Prometheus. Names follow the OpenTelemetry conventions for MCP where these have
//! one, which are still in development: they stay in this file. Labels come from bounded sets.

use std::sync::OnceLock;
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Duration of what the server does for its clients.
const SERVER_OPERATION: &str = "mcp_server_operation_duration_seconds";
/// Upper bounds of its buckets, in seconds.
const BUCKETS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 15.0, 60.0,
];

/// What the server does for its clients.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Operation {
    /// `tools/call search_tools`.
    Search,
    /// `tools/call run_tool`.
    Run,
    /// The gateway's search.
    ToolkitSearch,
    /// The gateway's description of tools.
    Describe,
    /// The gateway's run of a named tool, and `execute_tool` of the surface `discovery`.
    Execute,
    /// The search of the surface `discovery`.
    ToolSearch,
    /// A tool called by its own name.
    Direct,
}

impl Operation {
    /// The tool that agents call for it. Names of single tools and toolkits stay out: there are
    /// thousands, and not every one is for everybody's eyes.
    pub fn tool_name(self) -> &'static str {
        match self {
            Self::Search => "search_tools",
            Self::Run => "run_tool",
            Self::ToolkitSearch => "toolkit__search_tools",
            Self::Describe => "toolkit__describe_tool",
            Self::Execute => "execute_tool",
            Self::ToolSearch => "tool_search",
            Self::Direct => "tool",
        }
    }
}

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

/// Counts an operation. `outcome` is `ok` or an error code.
pub fn record_operation(operation: Operation, outcome: &'static str, duration: Duration) {
    recorder();
    metrics::histogram!(SERVER_OPERATION, "mcp_method_name" => "tools/call",
        "gen_ai_tool_name" => operation.tool_name(), "error_type" => outcome)
    .record(duration.as_secs_f64());
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
fn recorder() -> Option<&'static PrometheusHandle> {
    static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    RECORDER
        .get_or_init(|| {
            let matcher = Matcher::Full(SERVER_OPERATION.to_owned());
            let builder = PrometheusBuilder::new()
                .set_buckets_for_metric(matcher, &BUCKETS)
                .ok()?;
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
    fn an_operation_and_a_gauge_are_on_the_page() {
        record_operation(Operation::Search, "ok", Duration::from_millis(3));
        set_gauge(Gauge::Tools, 7);
        let page = metrics_page();
        assert!(page.contains("toolcrib_tools 7"));
        assert!(page.contains(
            r#"mcp_server_operation_duration_seconds_count{mcp_method_name="tools/call",gen_ai_tool_name="search_tools",error_type="ok"}"#
        ));
    }
}
