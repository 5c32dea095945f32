//! The definitions of the search toolkit's three tools.

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::toolkits::SearchToolkit;

/// Most tools of one description.
pub(super) const DESCRIBED_MAX: usize = 5;

/// All three, in a fixed order: prompt caches stay warm.
pub(super) fn all(toolkit: &SearchToolkit) -> Vec<Tool> {
    vec![search(toolkit), describe(toolkit), execute(toolkit)]
}

fn search(toolkit: &SearchToolkit) -> Tool {
    let text = format!(
        "Find tools that are not in this list. Say in one sentence what you want to do; returns \
         names and descriptions, best first. {} tells the arguments of one, {} runs it.",
        toolkit.name.describe_tool(),
        toolkit.name.execute_tool(),
    );
    let schema = json!({
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "minLength": 1,
                "maxLength": 2000,
                "description": "What you want to do, such as: post a message to a channel"
            },
            "max_results": {
                "type": "integer",
                "minimum": 1,
                "maximum": toolkit.limit,
                "description": format!("Fewer results than {}", toolkit.limit)
            }
        },
        "required": ["query"],
        "additionalProperties": false
    });
    tool(
        toolkit.name.search_tools(),
        text,
        schema,
        reads("Search tools"),
    )
}

fn describe(toolkit: &SearchToolkit) -> Tool {
    let text = format!(
        "The whole definition of a tool, with the schema of its arguments, or of up to \
         {DESCRIBED_MAX} tools at once.",
    );
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "Name of one tool, as it was found" },
            "names": {
                "type": "array",
                "items": { "type": "string" },
                "minItems": 1,
                "maxItems": DESCRIBED_MAX,
                "description": "Names of several, instead"
            }
        },
        "additionalProperties": false
    });
    tool(
        toolkit.name.describe_tool(),
        text,
        schema,
        reads("Describe tool"),
    )
}

fn execute(toolkit: &SearchToolkit) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "Name of the tool, as it was found" },
            "arguments": {
                "type": "object",
                "description": "Its arguments, as its definition asks for",
                "additionalProperties": true
            }
        },
        "required": ["name"],
        "additionalProperties": false
    });
    let annotations = ToolAnnotations::from_raw(
        Some("Execute tool".to_owned()),
        Some(false),
        Some(true),
        Some(false),
        Some(true),
    );
    let text = "Run a tool by its name. The result is the tool's own.".to_owned();
    tool(toolkit.name.execute_tool(), text, schema, annotations)
}

fn reads(title: &str) -> ToolAnnotations {
    let (yes, no) = (Some(true), Some(false));
    ToolAnnotations::from_raw(Some(title.to_owned()), yes, no, None, no)
}

fn tool(name: String, text: String, schema: Value, annotations: ToolAnnotations) -> Tool {
    let schema: Map<String, Value> = serde_json::from_value(schema).unwrap_or_default();
    Tool::new(name, text, Arc::new(schema)).with_annotations(annotations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Backend, Rank};

    #[test]
    fn the_list_is_as_promised() {
        let toolkit = SearchToolkit {
            name: "crib".parse().unwrap(),
            limit: 10,
            rank: Rank::By(Backend::default()),
        };
        insta::assert_snapshot!(serde_json::to_string_pretty(&all(&toolkit)).unwrap());
    }
}
