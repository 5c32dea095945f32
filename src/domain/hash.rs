//! The fingerprint of a tool's definition.

use std::fmt;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// SHA-256 over the canonical JSON of a tool: name, title, description, input and output schema,
/// annotations. A change of any of these, however small, gives another hash.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct DefinitionHash([u8; 32]);

impl DefinitionHash {
    /// Hashes a definition; the order of object keys does not matter.
    pub fn of(definition: &Value) -> Self {
        let mut canonical = String::new();
        write_canonical(definition, &mut canonical);
        Self(Sha256::digest(canonical.as_bytes()).into())
    }

    /// The hash as bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for DefinitionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for DefinitionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// SHA-256 over an object's canonical JSON: the order of keys does not matter.
pub fn digest_of(object: &Map<String, Value>) -> [u8; 32] {
    let mut canonical = String::new();
    write_object(object, &mut canonical);
    Sha256::digest(canonical.as_bytes()).into()
}

/// JSON with sorted keys and no white space. Strings and numbers are written as `serde_json`
/// writes them, so equal values give equal text.
fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => write_object(map, out),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if 0 < at {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

fn write_object(map: &Map<String, Value>, out: &mut String) {
    let mut keys: Vec<&String> = map.keys().collect();
    keys.sort_unstable();
    out.push('{');
    for (at, key) in keys.into_iter().enumerate() {
        if 0 < at {
            out.push(',');
        }
        out.push_str(&Value::from(key.as_str()).to_string());
        out.push(':');
        write_canonical(&map[key], out);
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn key_order_does_not_matter_and_everything_else_does() {
        let hash = |value| DefinitionHash::of(&value);
        let one = hash(json!({"name": "a", "schema": {"x": 1, "y": [1, 2]}}));
        assert_eq!(
            one,
            hash(json!({"schema": {"y": [1, 2], "x": 1}, "name": "a"}))
        );
        assert_ne!(
            one,
            hash(json!({"name": "a", "schema": {"x": 1, "y": [2, 1]}}))
        );
        assert_ne!(
            one,
            hash(json!({"name": "a ", "schema": {"x": 1, "y": [1, 2]}}))
        );
        assert_eq!(one.to_string().len(), 64);
    }
}
