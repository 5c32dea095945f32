//! A tool of the catalog as `tools/list` shows it.

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value};

use crate::domain::{self, clean_text, hidden_characters};

/// Longest text of a schema, in characters, where it had to be cleaned.
const SCHEMA_TEXT_MAX: usize = 8_000;
/// Deepest nesting of a schema that is shown; what is deeper is left open.
const SCHEMA_DEPTH_MAX: usize = 64;
/// Asks clients to repeat an argument as an HTTP header, for whoever stands before the server that
/// wrote it. Here it would put arguments into the logs of proxies, for nobody.
const HEADER_ANNOTATION: &str = "x-mcp-header";

/// The definition under a public name.
pub(super) fn shown(name: String, tool: &domain::Tool) -> Tool {
    let mut input = object(tool.input().schema());
    // The protocol asks for it; catalogs do not always say so.
    input.entry("type").or_insert_with(|| "object".into());
    let mut shown = Tool::new(name, tool.description().to_owned(), Arc::new(input));
    if !tool.title().is_empty() {
        shown = shown.with_title(tool.title());
    }
    let output = tool.output_schema().map(object);
    let is_object = |schema: &Map<String, Value>| schema.get("type") == Some(&"object".into());
    if let Some(output) = output.filter(is_object) {
        shown = shown.with_raw_output_schema(Arc::new(output));
    }
    let said = tool.annotations();
    if said != domain::Annotations::default() {
        shown = shown.with_annotations(ToolAnnotations::from_raw(
            None,
            said.read_only,
            said.destructive,
            said.idempotent,
            said.open_world,
        ));
    }
    shown
}

fn object(schema: &Value) -> Map<String, Value> {
    match cleaned(schema, 0) {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// The schema without hidden characters. Where one stood in a name or a choice, a call by the
/// cleaned text does not fit the schema: that fails, and hides nothing.
fn cleaned(value: &Value, depth: usize) -> Value {
    let text = |text: &str| match hidden_characters(text) {
        0 => text.to_owned(),
        _ => clean_text(text, SCHEMA_TEXT_MAX),
    };
    match value {
        _ if SCHEMA_DEPTH_MAX < depth => Value::Bool(true),
        Value::String(string) => text(string).into(),
        Value::Array(items) => items.iter().map(|item| cleaned(item, depth + 1)).collect(),
        Value::Object(map) => map
            .iter()
            // A property of that name has a schema, thus an object or a boolean.
            .filter(|(key, value)| {
                *key != HEADER_ANNOTATION || value.is_object() || value.is_boolean()
            })
            .map(|(key, value)| (text(key), cleaned(value, depth + 1)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::domain::{Definition, Input};

    fn show(edit: impl FnOnce(&mut Definition)) -> Value {
        let input = Input::from_schema(json!({"properties": {"a": {"type": "string"}}}));
        let mut definition = Definition::new("t".parse().unwrap(), "Does it.", input);
        edit(&mut definition);
        let tool = domain::Tool::new(definition);
        serde_json::to_value(shown("s__t".to_owned(), &tool)).unwrap()
    }

    #[test]
    fn a_definition_is_shown_as_it_is() {
        let output = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let whole = show(|definition| {
            definition.title = "T".to_owned();
            definition.output_schema = Some(output.clone());
            definition.annotations.read_only = Some(true);
            definition.annotations.open_world = Some(false);
        });
        assert_eq!(
            whole,
            json!({
                "name": "s__t",
                "title": "T",
                "description": "Does it.",
                "inputSchema": {"properties": {"a": {"type": "string"}}, "type": "object"},
                "outputSchema": output,
                "annotations": {"readOnlyHint": true, "openWorldHint": false},
            })
        );
        let plain = show(|definition| definition.output_schema = Some(json!({"type": "string"})));
        let keys: Vec<&String> = plain.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["name", "description", "inputSchema"]);
    }

    #[test]
    fn arguments_are_not_asked_for_as_headers() {
        let whole = show(|definition| {
            definition.input = Input::from_schema(json!({
                "type": "object",
                "properties": {
                    "region": {"type": "string", "x-mcp-header": "Region"},
                    "x-mcp-header": {"type": "string"},
                },
            }));
        });
        assert_eq!(
            whole["inputSchema"]["properties"],
            json!({"region": {"type": "string"}, "x-mcp-header": {"type": "string"}})
        );
    }

    proptest! {
        #[test]
        fn no_schema_hides_a_character(
            poison in prop::collection::vec(any::<char>(), 1..40),
            depth in 0_usize..4,
        ) {
            let poison: String = poison.into_iter().collect();
            let mut inner = json!({"description": poison, "enum": [poison], poison.as_str(): 1});
            for _ in 0..depth {
                inner = json!({"type": "object", "properties": {poison.as_str(): inner}});
            }
            let shown = show(|definition| {
                definition.input = Input::from_schema(inner.clone());
                definition.output_schema = Some(json!({"type": "object", "x": inner}));
            });
            let mut texts = Vec::new();
            gather(&shown, &mut texts);
            for text in texts {
                prop_assert_eq!(hidden_characters(&text), 0, "{:?}", text);
            }
        }
    }

    fn gather(value: &Value, texts: &mut Vec<String>) {
        match value {
            Value::String(text) => texts.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|item| gather(item, texts)),
            Value::Object(map) => map.iter().for_each(|(key, value)| {
                texts.push(key.clone());
                gather(value, texts);
            }),
            _ => {}
        }
    }
}
