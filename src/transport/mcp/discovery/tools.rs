//! The two tools of the surface `discovery`, and what their calls ask for.

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::domain::Query;
use crate::transport::refusal::Refusal;

pub(super) const SEARCH: &str = "tool_search";
pub(super) const EXECUTE: &str = "execute_tool";

/// Results of a search that says nothing of their number.
const RESULTS: usize = 10;
/// Results of a search at most.
const RESULTS_MAX: usize = 100;
/// Longest name that is read, in bytes.
const NAME_BYTES_MAX: usize = 512;

/// Both, in this order.
pub(super) fn all() -> [Tool; 2] {
    let (yes, no) = (Some(true), Some(false));
    let search = json!({
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "maxLength": 2000,
                "description": "What the tool should do, or a part of its name; empty lists all"
            },
            "max_results": {
                "type": "integer",
                "minimum": 1,
                "default": RESULTS,
                "description": format!("How many tools; more than {RESULTS_MAX} count as {RESULTS_MAX}")
            }
        },
        "additionalProperties": false
    });
    let execute = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "Name of the tool, as it was found" },
            "arguments": {
                "type": "object",
                "description": "Its arguments, as its input_schema asks for",
                "additionalProperties": true
            }
        },
        "required": ["name"],
        "additionalProperties": false
    });
    let text = "Find tools that are not listed, by words of their names, keywords and \
                descriptions. Answers with name, description, score and input_schema of each.";
    let reads = ToolAnnotations::from_raw(Some("Search tools".to_owned()), yes, no, None, no);
    let runs = ToolAnnotations::from_raw(Some("Execute tool".to_owned()), no, yes, no, yes);
    [
        tool(SEARCH, text, search).with_annotations(reads),
        tool(
            EXECUTE,
            "Run a tool by its name. The result is the tool's own.",
            execute,
        )
        .with_annotations(runs),
    ]
}

fn tool(name: &'static str, text: &'static str, schema: Value) -> Tool {
    let schema: Map<String, Value> = serde_json::from_value(schema).unwrap_or_default();
    Tool::new(name, text, Arc::new(schema))
}

/// Of a search: the query, if there is one, and how many results.
pub(super) fn search(arguments: &Map<String, Value>) -> Result<(Option<Query>, usize), Refusal> {
    let query = match arguments.get("query") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if text.trim().is_empty() => None,
        Some(Value::String(text)) => {
            let query = text.parse::<Query>();
            Some(query.map_err(|error| Refusal::invalid_query(&error.to_string()))?)
        }
        Some(_) => return Err(Refusal::invalid_query("`query` is not a string")),
    };
    let most = match arguments.get("max_results") {
        None | Some(Value::Null) => RESULTS,
        Some(value) => {
            let count = value.as_u64().filter(|count| 0 < *count).ok_or_else(|| {
                let hint = format!("Give 1 to {RESULTS_MAX}, or leave it out.");
                Refusal::malformed("`max_results` is not a number of results", &hint)
            })?;
            usize::try_from(count).map_or(RESULTS_MAX, |count| count.min(RESULTS_MAX))
        }
    };
    Ok((query, most))
}

/// Of a run: the name and the arguments, whatever they are.
pub(super) fn execute(mut arguments: Map<String, Value>) -> Result<(String, Value), Refusal> {
    let hint = "Give `name` as it was found, and `arguments` as an object.";
    let value = arguments.get("name");
    let value = value.ok_or_else(|| Refusal::malformed("`name` is missing", hint))?;
    let name = value.as_str().map(str::trim).unwrap_or_default();
    if name.is_empty() || NAME_BYTES_MAX < name.len() {
        return Err(Refusal::malformed("`name` is no name", hint));
    }
    let name = name.to_owned();
    Ok((name, arguments.remove("arguments").unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_list_is_as_promised() {
        insta::assert_snapshot!(serde_json::to_string_pretty(&all()).unwrap());
    }

    #[test]
    fn a_search_has_ten_results_and_a_hundred_at_most() {
        let check = |given: Value, expected: Result<(bool, usize), &str>| {
            let asked = search(&map(given.clone()));
            let asked = asked.map(|(query, most)| (query.is_some(), most));
            assert_eq!(asked.map_err(|refusal| refusal.code), expected, "{given}");
        };
        check(json!({}), Ok((false, 10)));
        check(json!({"query": "  ", "max_results": null}), Ok((false, 10)));
        check(json!({"query": "x", "max_results": 100}), Ok((true, 100)));
        check(json!({"query": "x", "max_results": 101}), Ok((true, 100)));
        check(
            json!({"query": "x", "max_results": 0}),
            Err("INVALID_ARGUMENTS"),
        );
        check(
            json!({"query": "x", "max_results": "2"}),
            Err("INVALID_ARGUMENTS"),
        );
        check(json!({"query": 7}), Err("INVALID_QUERY"));
        check(json!({"query": "x".repeat(2_001)}), Err("INVALID_QUERY"));
    }

    #[test]
    fn a_run_needs_a_name() {
        assert!(execute(map(json!({}))).is_err());
        assert!(execute(map(json!({"name": " "}))).is_err());
        assert!(execute(map(json!({"name": "x".repeat(513)}))).is_err());
        let asked = execute(map(json!({"name": " a ", "arguments": [1]}))).unwrap();
        assert_eq!(asked, ("a".to_owned(), json!([1])));
    }
}
