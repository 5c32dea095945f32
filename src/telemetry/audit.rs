//! The audit trail: who did what to which tool, and how it ended.

use std::time::Duration;

use crate::domain::{HandleKey, RunId, TenantId, ToolId, Trace};

/// One search, run or refusal.
#[derive(Debug)]
pub struct AuditEvent<'a> {
    /// `search_tools` or `run_tool`.
    pub operation: &'static str,
    /// Who.
    pub tenant: &'a TenantId,
    /// Ties a search to its run.
    pub run_id: Option<RunId>,
    /// Hash of the handle.
    pub handle: Option<HandleKey>,
    /// What was run.
    pub tool: Option<&'a ToolId>,
    /// First eight hexadecimal digits of the SHA-256 of the arguments.
    pub arguments: Option<String>,
    /// `ok`, or the error code.
    pub outcome: &'a str,
    /// How long it took.
    pub duration: Duration,
    /// The caller's trace.
    pub trace: Option<&'a Trace>,
}

/// Writes one line under the target `audit`.
pub fn audit(event: &AuditEvent<'_>) {
    let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    tracing::info!(
        target: "audit",
        operation = event.operation,
        tenant = %event.tenant,
        run_id = text(event.run_id.map(|id| id.to_string())),
        handle = text(event.handle.map(|key| key.to_string())),
        tool = text(event.tool.map(ToString::to_string)),
        arguments = text(event.arguments.clone()),
        outcome = event.outcome,
        duration_ms = u64::try_from(event.duration.as_millis()).unwrap_or(u64::MAX),
        trace_id = event.trace.map_or("-", Trace::id),
        "answered"
    );
}
