//! A definition as `tools/list` writes it, read into a tool.

use serde_json::Value;

use crate::domain::Annotations;
use crate::registry::{DescribeToolError, ToolSpec};

/// Reads one definition. Beside the protocol's keys, `keywords` and `native` count.
pub(super) fn read(value: &Value) -> Result<ToolSpec, DescribeToolError> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut spec = ToolSpec::new(text("name"), text("description"))?.title(text("title"));
    if let Some(schema) = ["inputSchema", "input_schema"]
        .iter()
        .find_map(|key| value.get(key))
    {
        spec = spec.schema(schema.clone())?;
    }
    if let Some(schema) = value.get("outputSchema") {
        spec = spec.output_schema(schema.clone());
    }
    let keywords = value.get("keywords").and_then(Value::as_array);
    let keywords = keywords.into_iter().flatten().filter_map(Value::as_str);
    let hint = |key: &str| value.get("annotations")?.get(key)?.as_bool();
    spec = spec.keywords(keywords).annotations(Annotations {
        read_only: hint("readOnlyHint"),
        destructive: hint("destructiveHint"),
        idempotent: hint("idempotentHint"),
        open_world: hint("openWorldHint"),
    });
    match value.get("native") {
        Some(Value::Bool(true)) => Ok(spec.native()),
        _ => Ok(spec),
    }
}
