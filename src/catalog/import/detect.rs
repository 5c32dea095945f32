//! Which format a document has: by what only that format has in it.

use serde_json::Value;

use crate::catalog::import::source::{json, parse};
use crate::catalog::import::{Document, Format, client_config, tools_list};

/// The format of a document; `None` when it is none that we read.
pub(super) fn detect(name: &str, text: &str) -> Option<Format> {
    let file = name.rsplit('/').next().unwrap_or(name);
    if std::path::Path::new(file)
        .extension()
        .is_some_and(|end| end == "toml")
    {
        return Some(Format::Toml);
    }
    if matches!(file, "server.yaml" | "server.yml") {
        return Some(Format::DockerRegistry);
    }
    if tools_list::is_lines(file) {
        let first = text.lines().find(|line| !line.trim().is_empty())?;
        let first = json(first.trim_start_matches('\u{feff}')).ok()?;
        return match first.get("tools") {
            Some(Value::Array(_)) => Some(Format::NormalForm),
            _ => first.get("name").map(|_| Format::ToolsList),
        };
    }
    let document = Document {
        name: name.to_owned(),
        text: text.to_owned(),
    };
    of_value(file, &parse(&document).ok()?)
}

fn of_value(file: &str, value: &Value) -> Option<Format> {
    if let Value::Array(list) = value {
        return of_list(file, list);
    }
    let map = value.as_object()?;
    let has = |key: &str| map.contains_key(key);
    let has_map = |key: &str| map.get(key).is_some_and(Value::is_object);
    // First, since an index of packages may hold one of any name.
    let is_listed = |entry: &Value| entry["path"].is_string() && entry["category"].is_string();
    if !map.is_empty() && map.values().all(is_listed) {
        return Some(Format::Toolsdk);
    }
    if has("openapi") || has("swagger") {
        return Some(Format::OpenApi);
    }
    if has_map("registry") {
        return Some(Format::Docker);
    }
    // A JSON Schema of servers has their keys as well, one level down.
    if has_map("properties") && (has("$schema") || has("type")) {
        return None;
    }
    if client_config::servers(value).is_some() {
        return Some(Format::ClientConfig);
    }
    if has("installations") {
        return Some(Format::Mcpm);
    }
    if has("packageName") && has("runtime") {
        return Some(Format::Toolsdk);
    }
    if ["/tools", "/result/tools", "/data/tools"]
        .iter()
        .any(|path| value.pointer(path).is_some_and(Value::is_array))
        && !has("packages")
    {
        return match has("launch") || has("provenance") {
            true => Some(Format::NormalForm),
            false => Some(Format::ToolsList),
        };
    }
    if ["/servers", "/data/servers"]
        .iter()
        .any(|path| value.pointer(path).is_some_and(Value::is_array))
        || is_official(value)
    {
        return Some(Format::OfficialRegistry);
    }
    None
}

fn of_list(file: &str, list: &[Value]) -> Option<Format> {
    let Some(first) = list.first() else {
        // An empty list of tools is a list of tools.
        return (file == "tools.json").then_some(Format::ToolsList);
    };
    if first.get("launch").is_some() && first.get("tools").is_some() {
        return Some(Format::NormalForm);
    }
    if first["config"].get("mcpServers").is_some() {
        return Some(Format::LiveMcpBench);
    }
    if is_official(first) || first.get("server").is_some_and(is_official) {
        return Some(Format::OfficialRegistry);
    }
    if first.get("installations").is_some() {
        return Some(Format::Mcpm);
    }
    let is_page = first.get("tools").is_some_and(Value::is_array);
    let is_tool = first.get("name").is_some_and(Value::is_string);
    (is_page || is_tool).then_some(Format::ToolsList)
}

fn is_official(value: &Value) -> bool {
    let has = |key: &str| value.get(key).is_some_and(|part| !part.is_null());
    has("name")
        && (has("packages") || has("remotes") || has("version_detail"))
        && (has("version") || has("version_detail") || has("$schema"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_catalog_has_no_format() {
        for (name, text) in [
            ("a.json", "{}"),
            ("a.json", "[]"),
            ("a.json", "not json: ["),
            (
                "schema.json",
                r#"{"$schema": "x", "type": "object", "properties": {"tools": {}}}"#,
            ),
            ("package.json", r#"{"name": "x", "version": "1.0.0"}"#),
            ("a.yaml", "just text"),
            ("a.jsonl", "{\"query\": \"x\"}"),
        ] {
            assert_eq!(detect(name, text), None, "{name} {text}");
        }
    }

    #[test]
    fn an_index_of_packages_may_hold_one_of_any_name() {
        let package = r#"{"category": "c", "path": "c/x.json"}"#;
        let text = format!(r#"{{"openapi": {package}, "registry": {package}}}"#);
        assert_eq!(detect("list.json", &text), Some(Format::Toolsdk));
    }

    #[test]
    fn every_fixture_is_detected() {
        for (name, format) in [
            ("docker-catalog.yaml", Format::Docker),
            ("official.json", Format::OfficialRegistry),
            ("mcpm.json", Format::Mcpm),
            ("client-config.json", Format::ClientConfig),
            ("openapi.yaml", Format::OpenApi),
            ("parcels/tools.json", Format::ToolsList),
        ] {
            let path = format!("{}/tests/data/import/{name}", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(path).unwrap();
            assert_eq!(detect(name, &text), Some(format), "{name}");
        }
    }
}
