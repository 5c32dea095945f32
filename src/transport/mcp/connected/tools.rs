//! The definitions of `search_tools` and `run_tool`, the same for everyone.

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

/// Finds tools.
pub(super) const SEARCH: &str = "search_tools";
/// Runs one of them.
pub(super) const RUN: &str = "run_tool";

/// Both tools, in a fixed order: prompt caches stay warm.
pub(super) fn all() -> Vec<Tool> {
    vec![search(), run()]
}

/// `search_tools`.
fn search() -> Tool {
    tool(
        SEARCH,
        "Find the right tool for a step. Say in one sentence what you want to do, in any \
         language; name the service if you know it. Returns at most three tools out of \
         thousands, with their arguments, and a capability_token for run_tool that is good for \
         five minutes and one run.",
        json!({
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 2000,
                    "description": "What you want to do, in one sentence, such as: post a \
                                    message to a Slack channel"
                }
            },
            "required": ["query"],
            "additionalProperties": false
        }),
        ToolAnnotations::from_raw(
            Some("Search tools".to_owned()),
            Some(true),
            Some(false),
            None,
            Some(false),
        ),
    )
}

/// `run_tool`.
fn run() -> Tool {
    tool(
        RUN,
        "Run one of the tools that search_tools returned. The result is the tool's own. The \
         capability_token is spent by the run; when arguments are refused, correct them and \
         call again with the same token.",
        json!({
            "type": "object",
            "properties": {
                "capability_token": {
                    "type": "string",
                    "description": "capability_token of the search"
                },
                "tool_name": {
                    "type": "string",
                    "description": "tool_details.name of the chosen candidate"
                },
                "arguments": {
                    "type": "object",
                    "description": "Arguments of that tool, as its candidate describes them",
                    "additionalProperties": true
                },
                "server_name": {
                    "type": "string",
                    "description": "server_name of the candidate; needed if two candidates \
                                    share a tool name"
                },
                "workflow_run_id": {
                    "type": "string",
                    "description": "workflow_run_id of the search; optional, checked if given"
                }
            },
            "required": ["capability_token", "tool_name"],
            "additionalProperties": false
        }),
        ToolAnnotations::from_raw(
            Some("Run tool".to_owned()),
            Some(false),
            Some(true),
            Some(false),
            Some(true),
        ),
    )
}

fn tool(
    name: &'static str,
    description: &'static str,
    schema: Value,
    annotations: ToolAnnotations,
) -> Tool {
    let schema: Map<String, Value> = serde_json::from_value(schema).unwrap_or_default();
    Tool::new(name, description, Arc::new(schema)).with_annotations(annotations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_as_promised() {
        insta::assert_snapshot!(serde_json::to_string_pretty(&all()).unwrap());
    }
}
