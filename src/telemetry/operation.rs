//! Names of the OpenTelemetry conventions for MCP, which are still in development: they stay in this
//! file. Whatever is a label comes from a bounded set.

use std::time::Duration;

use tracing::Span;

use crate::domain::Trace;
use crate::telemetry::metrics::recorder;

/// Duration of what the server does for its clients.
pub(super) const SERVER_OPERATION: &str = "mcp_server_operation_duration_seconds";
/// Duration of what servers behind do for this one.
pub(super) const CLIENT_OPERATION: &str = "mcp_client_operation_duration_seconds";

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

/// What is asked of a server behind.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Request {
    /// The start of a session, in either era.
    Connect,
    /// `tools/list`, all pages.
    ListTools,
    /// `tools/call`. For a call that waits within itself, up to each question.
    CallTool,
}

impl Request {
    fn method(self) -> &'static str {
        match self {
            Self::Connect => "initialize",
            Self::ListTools => "tools/list",
            Self::CallTool => "tools/call",
        }
    }
}

/// Counts an operation. `outcome` is `ok` or an error code.
pub fn record_operation(operation: Operation, outcome: &'static str, duration: Duration) {
    recorder();
    metrics::histogram!(SERVER_OPERATION, "mcp_method_name" => "tools/call",
        "gen_ai_tool_name" => operation.tool_name(), "error_type" => outcome)
    .record(duration.as_secs_f64());
}

/// Counts what a server behind did. `outcome` is `ok` or an error code. Which server it was is not
/// counted: there are hundreds.
pub fn record_request(
    request: Request,
    transport: &'static str,
    outcome: &'static str,
    duration: Duration,
) {
    recorder();
    metrics::histogram!(CLIENT_OPERATION, "mcp_method_name" => request.method(),
        "network_transport" => transport, "error_type" => outcome)
    .record(duration.as_secs_f64());
}

/// The span of a `tools/call`, in the trace of its caller.
pub fn call_span(trace: Option<&Trace>) -> Span {
    let span = tracing::info_span!(
        "tools/call",
        mcp.method.name = "tools/call",
        trace_id = tracing::field::Empty,
        parent_id = tracing::field::Empty,
    );
    if let Some(trace) = trace {
        span.record("trace_id", trace.id());
        span.record("parent_id", trace.parent_id());
    }
    span
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::metrics_page;

    #[test]
    fn both_sides_are_on_the_page_under_the_names_of_the_conventions() {
        record_operation(Operation::Search, "ok", Duration::from_millis(3));
        record_request(
            Request::CallTool,
            "pipe",
            "UPSTREAM_TIMEOUT",
            Duration::from_secs(3),
        );
        let page = metrics_page();
        for line in [
            r#"mcp_server_operation_duration_seconds_count{mcp_method_name="tools/call",gen_ai_tool_name="search_tools",error_type="ok"}"#,
            r#"mcp_client_operation_duration_seconds_bucket{mcp_method_name="tools/call",network_transport="pipe",error_type="UPSTREAM_TIMEOUT",le="5"}"#,
        ] {
            assert!(page.contains(line), "{page}");
        }
    }
}
