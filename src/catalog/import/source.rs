//! JSON and YAML from strangers, into values: bounded in size, depth and nodes.

use serde_json::Value;

use crate::catalog::import::Document;

/// Largest document, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Deepest nesting of YAML. JSON is held to 128 by its parser.
const YAML_DEPTH_MAX: usize = 64;
/// Most maps, lists and scalars in a YAML document.
const YAML_NODES_MAX: usize = 4_000_000;

/// The value of a document, or what is wrong with it and where.
pub(super) fn parse(document: &Document) -> Result<Value, String> {
    let text = document.text.trim_start_matches('\u{feff}');
    let is_yaml = [".yaml", ".yml"]
        .iter()
        .any(|ending| document.name.ends_with(ending));
    // YAML takes JSON in, but its reader is slower and stricter about tabs.
    if !is_yaml && text.trim_start().starts_with(['{', '[']) {
        return json(text);
    }
    yaml(text)
}

/// The value of a JSON text.
pub(super) fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))
}

/// The values of JSON Lines with their line numbers, empty lines skipped.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, Result<Value, String>)> {
    (1..)
        .zip(text.trim_start_matches('\u{feff}').lines())
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| (number, json(line)))
}

/// The value of a YAML text. Aliases are refused: no published catalog has them, and a few of
/// them grow into gigabytes.
fn yaml(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: YAML_DEPTH_MAX,
            max_nodes: YAML_NODES_MAX,
            max_events: 2 * YAML_NODES_MAX,
            max_aliases: 0,
            max_documents: 1,
        },
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let place = error.location().map_or_else(String::new, |place| {
            format!(" at line {} column {}", place.line(), place.column())
        });
        let message = error.to_string();
        let first = message.lines().next().unwrap_or_default();
        format!("not YAML: {first}{place}")
    })
}

/// The first of some keys that holds text, trimmed; empty when none does.
pub(super) fn text<'a>(value: &'a Value, keys: &[&str]) -> &'a str {
    keys.iter()
        .filter_map(|key| value.get(key)?.as_str())
        .map(str::trim)
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}

/// A scalar as text: numbers and booleans stand for themselves.
pub(super) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// The items of a list, none where it is no list.
pub(super) fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The entries of a map, none where it is no map.
pub(super) fn entries<'a>(
    value: &'a Value,
    key: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value
        .get(key)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

/// The texts of a list.
pub(super) fn texts(value: &Value, key: &str) -> Vec<String> {
    items(value, key).iter().filter_map(scalar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Result<Value, String> {
        parse(&Document {
            name: name.to_owned(),
            text: text.to_owned(),
        })
    }

    #[test]
    fn deep_nesting_is_refused_in_both_languages() {
        let deep = "[".repeat(10_000);
        assert!(
            read("a.json", &deep)
                .unwrap_err()
                .contains("recursion limit")
        );
        assert!(read("a.yaml", &deep).unwrap_err().starts_with("not YAML"));
        let dashes = "- ".repeat(10_000);
        assert!(read("a.yaml", &dashes).unwrap_err().starts_with("not YAML"));
    }

    #[test]
    fn an_alias_bomb_is_refused_before_it_goes_off() {
        let row = |level: usize| {
            let before = format!("*a{}", level - 1);
            format!("a{level}: &a{level} [{}]\n", vec![before; 9].join(", "))
        };
        let rows: String = (1..30).map(row).collect();
        let bomb = format!("a0: &a0 [x, x, x, x, x, x, x, x, x]\n{rows}");
        let why = read("bomb.yaml", &bomb).unwrap_err();
        assert!(why.starts_with("not YAML"), "{why}");
    }

    #[test]
    fn a_broken_document_says_where() {
        let why = read("a.json", "{\n  \"a\": }").unwrap_err();
        assert!(why.contains("line 2"), "{why}");
        let why = read("a.yaml", "a: b\nc: [").unwrap_err();
        assert!(why.contains("line"), "{why}");
    }
}
