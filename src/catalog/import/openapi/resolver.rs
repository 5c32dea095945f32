//! References of a document, written out.

use serde_json::{Map, Value, json};

use crate::catalog::import::source::{entries, texts};

/// Deepest nesting of references that is written out; beyond it anything fits.
const DEPTH_MAX: usize = 8;
/// Most parts of one schema that are written out.
const PARTS_MAX: usize = 2_000;

/// Follows references inside the document, and nowhere else.
pub(super) struct Resolver<'a> {
    document: &'a Value,
    parts: usize,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(document: &'a Value) -> Self {
        Self { document, parts: 0 }
    }

    /// What a reference stands for; anything else stands for itself.
    pub(super) fn target(&self, value: &'a Value, depth: usize) -> &'a Value {
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
    pub(super) fn written_out(&mut self, schema: &'a Value, depth: usize) -> Value {
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
