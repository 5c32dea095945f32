//! One tool, as any format spells it.

use serde_json::Value;

use crate::catalog::import::source::text;
use crate::catalog::import::{arguments, schema};
use crate::domain::{Annotations, Definition, Input, Tool, ToolName, hidden_characters};

/// Largest schema of a tool, in bytes of JSON. The largest published one has 36 kB.
const SCHEMA_BYTES_MAX: usize = 256 * 1024;
/// Key in the `_meta` of a tool that holds its arguments as a list, where their order would be
/// lost in the schema; in lists that we wrote.
pub(in crate::catalog) const ARGUMENTS_KEY: &str = "toolcrib/arguments";
/// Key in the `_meta` of a tool that holds its keywords, in lists that we wrote.
pub(in crate::catalog) const KEYWORDS_KEY: &str = "toolcrib/keywords";
/// Most keywords of a tool.
const KEYWORDS_MAX: usize = 64;

/// Reads a definition, or just a name. Gives what was repaired, or why it cannot be taken.
pub(super) fn read(value: &Value) -> Result<(Tool, Vec<String>), String> {
    let mut repairs = Vec::new();
    let name = read_name(value, &mut repairs)?;
    let annotations = value.get("annotations").unwrap_or(&Value::Null);
    let output = ["outputSchema", "output_schema"]
        .iter()
        .find_map(|key| value.get(key))
        .filter(|schema| schema.is_object());
    let input = read_input(value, &mut repairs);
    let schemas = [Some(input.schema()), output];
    for schema in schemas.into_iter().flatten() {
        let bytes = schema.to_string().len();
        if SCHEMA_BYTES_MAX < bytes {
            return Err(format!(
                "its schema has {bytes} bytes, over the limit of {SCHEMA_BYTES_MAX}"
            ));
        }
    }
    let title = match text(value, &["title"]) {
        "" => text(annotations, &["title"]),
        title => title,
    };
    let description = text(value, &["description", "desc"]);
    let hidden = hidden_characters(description) + hidden_characters(title);
    if 0 < hidden {
        repairs.push(format!(
            "{hidden} hidden characters were taken out of its texts"
        ));
    }
    let definition = Definition {
        title: title.to_owned(),
        output_schema: output.cloned(),
        annotations: read_annotations(annotations),
        keywords: read_keywords(value),
        ..Definition::new(name, description, input)
    };
    Ok((cleaned(definition, &mut repairs), repairs))
}

/// The fingerprint is over the cleaned texts, since these are what a catalog file keeps.
fn cleaned(definition: Definition, repairs: &mut Vec<String>) -> Tool {
    let tool = Tool::new(definition.clone());
    if tool.description() == definition.description && tool.title() == definition.title {
        return tool;
    }
    if tool.description().ends_with("...") && !definition.description.ends_with("...") {
        let chars = definition.description.chars().count();
        repairs.push(format!(
            "its description of {chars} characters was shortened"
        ));
    }
    Tool::new(Definition {
        title: tool.title().to_owned(),
        description: tool.description().to_owned(),
        ..definition
    })
}

fn read_name(value: &Value, repairs: &mut Vec<String>) -> Result<ToolName, String> {
    let given = match value {
        Value::String(name) => name,
        Value::Object(map) => match map.get("name") {
            Some(Value::String(name)) => name,
            Some(_) => return Err("its name is not a string".to_owned()),
            None => return Err("it has no name".to_owned()),
        },
        _ => return Err("it is neither an object nor a name".to_owned()),
    };
    if given.trim() != given {
        repairs.push("white space around its name was taken off".to_owned());
    }
    given.trim().parse().map_err(|error| format!("{error}"))
}

fn read_input(value: &Value, repairs: &mut Vec<String>) -> Input {
    let meta = value.get("_meta").and_then(|meta| meta.get(ARGUMENTS_KEY));
    if let Some(Value::Array(list)) = meta {
        return arguments::read(list, repairs);
    }
    let given = ["inputSchema", "input_schema", "parameters"]
        .iter()
        .find_map(|key| value.get(key))
        .filter(|schema| !schema.is_null());
    if let Some(given) = given {
        let misplaced = value.get("required");
        return Input::from_schema(schema::repaired(given, misplaced, repairs));
    }
    match value.get("arguments") {
        Some(Value::Array(list)) if !list.is_empty() => arguments::read(list, repairs),
        Some(map @ Value::Object(_)) => Input::from_schema(schema::repaired(map, None, repairs)),
        // Nothing is known, so that anything may be right.
        _ => Input::from_schema(schema::open()),
    }
}

fn read_annotations(value: &Value) -> Annotations {
    let flag = |keys: [&str; 2]| keys.iter().find_map(|key| value.get(key)?.as_bool());
    Annotations {
        read_only: flag(["readOnlyHint", "read_only"]),
        destructive: flag(["destructiveHint", "destructive"]),
        idempotent: flag(["idempotentHint", "idempotent"]),
        open_world: flag(["openWorldHint", "open_world"]),
    }
}

fn read_keywords(value: &Value) -> Vec<String> {
    let given = ["keywords", "tags"].iter().find_map(|key| value.get(key));
    let from_meta = || value.get("_meta")?.get(KEYWORDS_KEY);
    let list = given.or_else(from_meta).and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|keyword| crate::domain::clean_line(keyword, 200))
        .filter(|keyword| !keyword.is_empty())
        .take(KEYWORDS_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_that_are_not_legal_are_refused_with_the_reason() {
        for (value, why) in [
            (json!({"description": "x"}), "it has no name"),
            (json!({"name": 7}), "its name is not a string"),
            (json!({"name": " "}), "name is empty"),
            (json!(3), "it is neither an object nor a name"),
            (
                json!({"name": "a".repeat(129)}),
                "name is 129 characters long, over the limit of 128",
            ),
        ] {
            assert_eq!(read(&value).unwrap_err(), why);
        }
        let hidden = read(&json!({"name": "a\u{200b}b"})).unwrap_err();
        assert!(hidden.contains("printable"), "{hidden}");
    }

    #[test]
    fn odd_names_are_taken_as_they_are() {
        for name in ["a/b", "get ${x}", "搜索"] {
            let (tool, repairs) = read(&json!({ "name": name })).unwrap();
            assert_eq!((tool.name().as_str(), repairs), (name, vec![]));
        }
    }

    #[test]
    fn hidden_characters_are_taken_out_and_reported() {
        let value = json!({"name": "a", "description": "Read\u{200b} it.\u{202e}"});
        let (tool, repairs) = read(&value).unwrap();
        assert_eq!(tool.description(), "Read it.");
        assert_eq!(repairs, ["2 hidden characters were taken out of its texts"]);
        let clean = json!({"name": "a", "description": "Read it."});
        assert_eq!(read(&clean).unwrap().0.hash(), tool.hash());
    }

    #[test]
    fn a_schema_over_the_limit_is_refused() {
        let text = "x".repeat(SCHEMA_BYTES_MAX);
        let value = json!({"name": "a", "inputSchema": {"type": "object", "description": text}});
        assert!(read(&value).unwrap_err().contains("over the limit"));
    }

    #[test]
    fn a_tool_of_which_nothing_is_known_takes_anything() {
        let (tool, _) = read(&json!("search")).unwrap();
        assert_eq!(tool.input().schema(), &json!({"type": "object"}));
    }
}
