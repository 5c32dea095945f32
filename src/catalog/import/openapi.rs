//! `OpenAPI` 3.0 and 3.1: each operation a tool, its parameters and body as arguments.
//!
//! The document is walked as a value. The typed crates know one version each (`openapiv3` 3.0,
//! `oas3` 3.1) and reject a whole document for one wrong field; strangers' documents have some.

use serde_json::{Map, Value, json};

use crate::catalog::import::NoteKind;
use crate::catalog::import::intake::Intake;
use crate::catalog::import::source::{entries, items, text, texts};
use crate::domain::Server;

/// Methods of an operation.
const METHODS: [&str; 8] = [
    "get", "put", "post", "delete", "patch", "head", "options", "trace",
];
/// Deepest nesting of references that is written out; beyond it anything fits.
const DEPTH_MAX: usize = 8;
/// Most parts of one schema that are written out.
const PARTS_MAX: usize = 2_000;

/// Reads one document.
pub(super) fn read(intake: &mut Intake, file: &str, value: &Value) {
    let version = text(value, &["openapi", "swagger"]);
    if !version.starts_with("3.") {
        let why = format!("version `{version}` is not `OpenAPI` 3: convert it first");
        intake.refuse_document(file, why);
        return;
    }
    let operations = operations(value);
    let title = text(&value["info"], &["title"]);
    let foreign = if title.is_empty() { file } else { title };
    let Some(name) = intake.name(file, foreign, operations.len()) else {
        return;
    };
    let definitions: Vec<(String, Value)> = operations
        .iter()
        .map(|operation| (format!("{file}#{}", operation.place), operation.tool(value)))
        .collect();
    let placed = definitions
        .iter()
        .map(|(place, tool)| (place.clone(), tool));
    let mut server = Server::new(name.clone(), intake.tools(&name, placed.collect()));
    server.title = title.into();
    server.description = text(&value["info"], &["description", "summary"]).into();
    server.provenance.version = text(&value["info"], &["version"]).into();
    server.provenance.license = text(&value["info"]["license"], &["identifier", "name"]).into();
    server.tags = items(value, "tags")
        .iter()
        .map(|tag| text(tag, &["name"]).into())
        .collect();
    let why = "its operations are plain HTTP and no MCP server: found but not run";
    intake.note(NoteKind::Noted, file, name.as_str(), why);
    intake.take(file, server);
}

struct Operation<'a> {
    place: String,
    path: &'a str,
    method: &'static str,
    item: &'a Value,
    body: &'a Value,
}

fn operations(document: &Value) -> Vec<Operation<'_>> {
    let mut found = Vec::new();
    for (path, item) in entries(document, "paths") {
        for method in METHODS {
            if let Some(body) = item.get(method).filter(|body| body.is_object()) {
                let escaped = path.replace('~', "~0").replace('/', "~1");
                found.push(Operation {
                    place: format!("/paths/{escaped}/{method}"),
                    path,
                    method,
                    item,
                    body,
                });
            }
        }
    }
    found
}

impl<'a> Operation<'a> {
    /// The operation as a definition of a tool.
    fn tool(&self, document: &'a Value) -> Value {
        let name = match text(self.body, &["operationId"]) {
            "" => {
                let words = self.path.split(|c: char| !c.is_ascii_alphanumeric());
                let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
                format!("{}_{}", self.method, words.join("_"))
            }
            id => id.to_owned(),
        };
        let (summary, long) = (
            text(self.body, &["summary"]),
            text(self.body, &["description"]),
        );
        let description = match (summary, long) {
            ("", "") => format!("{} {}", self.method.to_uppercase(), self.path),
            (one, "") | ("", one) => one.to_owned(),
            (summary, long) => format!("{summary}\n{long}"),
        };
        let reads = matches!(self.method, "get" | "head" | "options" | "trace");
        json!({
            "name": name,
            "description": description,
            "inputSchema": self.schema(document),
            "keywords": texts(self.body, "tags"),
            "annotations": {
                "readOnlyHint": reads,
                "destructiveHint": self.method == "delete",
                "idempotentHint": reads || matches!(self.method, "put" | "delete"),
                "openWorldHint": true,
            },
        })
    }

    fn schema(&self, document: &'a Value) -> Value {
        let mut resolver = Resolver { document, parts: 0 };
        let (mut properties, mut required) = (Map::new(), Vec::new());
        let shared = items(self.item, "parameters").iter();
        // What the operation says comes last, so that it takes the place of what the path says.
        for parameter in shared.chain(items(self.body, "parameters")) {
            let parameter = resolver.target(parameter, 0);
            let (name, place) = (text(parameter, &["name"]), text(parameter, &["in"]));
            let is_ours = matches!(
                name.to_ascii_lowercase().as_str(),
                "authorization" | "accept" | "content-type"
            );
            if name.is_empty() || (place == "header" && is_ours) || place == "cookie" {
                continue;
            }
            let content = parameter.pointer("/content/application~1json/schema");
            let given = parameter.get("schema").or(content).unwrap_or(&Value::Null);
            let mut schema = resolver.written_out(given, 0);
            let about = text(parameter, &["description"]);
            if let (Value::Object(map), false) = (&mut schema, about.is_empty()) {
                map.insert("description".to_owned(), about.into());
            }
            properties.insert(name.to_owned(), schema);
            if parameter["required"] == true || place == "path" {
                required.push(Value::from(name));
            }
        }
        self.add_body(&mut resolver, &mut properties, &mut required);
        required.dedup();
        json!({ "type": "object", "properties": properties, "required": required })
    }

    /// The properties of a JSON body stand beside the parameters; any other body is `body`.
    fn add_body(
        &self,
        resolver: &mut Resolver<'a>,
        properties: &mut Map<String, Value>,
        required: &mut Vec<Value>,
    ) {
        let Some(request) = self.body.get("requestBody") else {
            return;
        };
        let request = resolver.target(request, 0);
        let content = request.get("content").and_then(Value::as_object);
        let Some((kind, media)) = content.and_then(|content| {
            let is_json = |kind: &str| kind.contains("json");
            let found = content.iter().find(|(kind, _)| is_json(kind));
            found.or_else(|| content.iter().next())
        }) else {
            return;
        };
        let schema = resolver.written_out(media.get("schema").unwrap_or(&Value::Null), 0);
        let is_needed = request["required"] == true;
        let inner = schema.get("properties").and_then(Value::as_object);
        let clashes = inner.is_some_and(|map| map.keys().any(|key| properties.contains_key(key)));
        if let (Some(inner), true, false) = (inner, kind.contains("json"), clashes) {
            properties.extend(inner.clone());
            if is_needed {
                required.extend(texts(&schema, "required").into_iter().map(Value::from));
            }
            return;
        }
        let name = match properties.contains_key("body") {
            true => "request_body",
            false => "body",
        };
        properties.insert(name.to_owned(), schema);
        if is_needed {
            required.push(name.into());
        }
    }
}

/// Follows references inside the document, and nowhere else.
struct Resolver<'a> {
    document: &'a Value,
    parts: usize,
}

impl<'a> Resolver<'a> {
    fn target(&self, value: &'a Value, depth: usize) -> &'a Value {
        let Some(path) = value.get("$ref").and_then(Value::as_str) else {
            return value;
        };
        let found = path
            .strip_prefix('#')
            .and_then(|path| self.document.pointer(path));
        match found {
            Some(found) if depth < DEPTH_MAX => self.target(found, depth + 1),
            _ => &Value::Null,
        }
    }

    /// A schema with its references written out; 3.0's `nullable` becomes a type.
    fn written_out(&mut self, schema: &'a Value, depth: usize) -> Value {
        self.parts += 1;
        if DEPTH_MAX < depth || PARTS_MAX < self.parts {
            return json!({});
        }
        let Value::Object(map) = self.target(schema, 0) else {
            return json!({});
        };
        let mut out = Map::new();
        for (key, value) in map {
            let value = match (key.as_str(), value) {
                ("properties", Value::Object(inner)) => {
                    let inner = inner
                        .iter()
                        .map(|(name, schema)| (name.clone(), self.written_out(schema, depth + 1)));
                    Value::Object(inner.collect())
                }
                ("items" | "additionalProperties" | "not", Value::Object(_)) => {
                    self.written_out(value, depth + 1)
                }
                ("anyOf" | "oneOf" | "allOf", Value::Array(list)) => list
                    .iter()
                    .map(|schema| self.written_out(schema, depth + 1))
                    .collect(),
                ("example" | "xml" | "externalDocs" | "discriminator" | "nullable" | "$ref", _) => {
                    continue;
                }
                ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(_)) => continue,
                _ => value.clone(),
            };
            out.insert(key.clone(), value);
        }
        if map.get("nullable") == Some(&Value::Bool(true))
            && let Some(Value::String(kind)) = out.get("type").cloned()
        {
            out.insert("type".to_owned(), json!([kind, "null"]));
        }
        merge_all_of(&mut out);
        Value::Object(out)
    }
}

/// `allOf` of objects with properties, as inheritance is written, becomes one object.
fn merge_all_of(schema: &mut Map<String, Value>) {
    let Some(Value::Array(parts)) = schema.get("allOf") else {
        return;
    };
    if schema.contains_key("properties") || !parts.iter().all(|part| part["properties"].is_object())
    {
        return;
    }
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for part in parts {
        properties.extend(entries(part, "properties").map(|(k, v)| (k.clone(), v.clone())));
        required.extend(texts(part, "required").into_iter().map(Value::from));
    }
    schema.shift_remove("allOf");
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("required".to_owned(), required.into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::import::{Document, Format, Imported, read};

    fn imported(name: &str, text: String) -> Imported {
        assert_eq!(Format::detect(name, &text), Some(Format::OpenApi));
        let name = name.to_owned();
        let imported = read(Format::OpenApi, &[Document { name, text }]);
        assert!(imported.report.counts.balance());
        imported
    }

    #[test]
    fn each_operation_is_a_tool_in_both_versions() {
        let path = "tests/data/import/openapi.yaml";
        let text = std::fs::read_to_string(path).unwrap();
        let newer = text.replace("openapi: 3.0.3", "openapi: 3.1.0");
        for text in [text, newer] {
            let imported = imported(path, text);
            let server = &imported.servers[0];
            let rows: Vec<String> = server
                .tools
                .iter()
                .map(|tool| {
                    let arguments = tool.input().arguments().iter();
                    let arguments: Vec<String> = arguments
                        .map(|a| {
                            format!(
                                "{}{}:{}",
                                a.name,
                                if a.required { "!" } else { "" },
                                a.shape
                            )
                        })
                        .collect();
                    format!("{} {}", tool.name(), arguments.join(" "))
                })
                .collect();
            insta::allow_duplicates! {
                insta::assert_snapshot!(rows.join("\n"), @r#"
                getTicket ticket_id!:string language:"en" or "de"
                delete_tickets_ticket_id ticket_id!:string
                buyTicket name!:string day!:string or null seats:array of integer
                put_poster body:string
                "#);
            }
            assert_eq!(server.tools[0].annotations().read_only, Some(true));
        }
    }

    #[test]
    fn a_schema_that_holds_itself_ends() {
        let text = json!({
            "openapi": "3.0.0",
            "info": {"title": "Loop"},
            "paths": {"/x": {"post": {"requestBody": {"content": {"application/json": {
                "schema": {"$ref": "#/components/schemas/Node"}}}}}}},
            "components": {"schemas": {
                "Node": {"type": "object", "properties": {
                    "left": {"$ref": "#/components/schemas/Node"},
                    "right": {"$ref": "#/components/schemas/Node"}}},
            }},
        });
        let imported = imported("loop.json", text.to_string());
        assert_eq!(imported.servers[0].tools[0].input().arguments().len(), 2);
    }

    #[test]
    fn an_older_version_is_refused() {
        let document = Document {
            name: "old.json".to_owned(),
            text: json!({"swagger": "2.0", "paths": {}}).to_string(),
        };
        let imported = read(Format::OpenApi, &[document]);
        assert_eq!(imported.report.counts.documents_refused, 1);
    }
}
