//! JSON Schemas of strangers: a sound one stays as it is, a broken one is mended and said to be.

use serde_json::{Map, Value, json};

/// Deepest nesting that is mended; what lies deeper stays as it is.
const DEPTH_MAX: usize = 24;
/// Types of JSON Schema.
const TYPES: [&str; 7] = [
    "string", "integer", "number", "boolean", "object", "array", "null",
];
/// Keys that, with a value of the right kind, make a map a schema and no map of properties.
const KEYWORDS: [&str; 12] = [
    "$ref",
    "$schema",
    "$defs",
    "definitions",
    "properties",
    "additionalProperties",
    "items",
    "anyOf",
    "oneOf",
    "allOf",
    "enum",
    "const",
];
/// Keys beside these are properties that forgot `properties`, when they hold schemas.
const BESIDE: [&str; 17] = [
    "type",
    "required",
    "title",
    "description",
    "default",
    "examples",
    "example",
    "not",
    "if",
    "then",
    "else",
    "patternProperties",
    "propertyNames",
    "dependentSchemas",
    "dependentRequired",
    "dependencies",
    "unevaluatedProperties",
];

/// The schema of a tool of which nothing is known.
pub(super) fn open() -> Value {
    json!({ "type": "object" })
}

/// A type of JSON Schema for a word of another language.
pub(super) fn type_for(word: &str) -> Option<&'static str> {
    let lower = word.trim().to_ascii_lowercase();
    let known = TYPES.into_iter().find(|name| *name == lower);
    known.or(match lower.as_str() {
        "str" | "text" | "char" | "uuid" | "date" | "datetime" | "date-time" | "url" | "uri"
        | "path" | "email" => Some("string"),
        "int" | "long" | "int32" | "int64" | "uint" => Some("integer"),
        "float" | "double" | "decimal" | "numeric" => Some("number"),
        "bool" => Some("boolean"),
        "list" | "tuple" | "set" => Some("array"),
        "dict" | "map" | "json" | "record" | "struct" => Some("object"),
        "none" | "nil" => Some("null"),
        _ => None,
    })
}

/// The schema of a tool's arguments. `misplaced` is a `required` that stood beside the schema.
pub(super) fn repaired(
    given: &Value,
    misplaced: Option<&Value>,
    repairs: &mut Vec<String>,
) -> Value {
    let Value::Object(map) = given else {
        repairs.push("its schema is no object, so any arguments are taken".to_owned());
        return open();
    };
    let mut schema = Value::Object(map.clone());
    let mut mender = Mender::default();
    wrap_bare_properties(&mut schema, &mut mender);
    mender.mend(&mut schema, 0);
    let Value::Object(map) = &mut schema else {
        return open();
    };
    if map.get("type").is_some_and(|kind| kind != "object") && map.contains_key("properties") {
        map.insert("type".to_owned(), "object".into());
        mender.say("its schema is now of type object");
    }
    if let Some(Value::Array(names)) = misplaced
        && !names.is_empty()
        && map.get("required").is_none_or(|own| own == &json!([]))
    {
        let known = |name: &&Value| {
            let text = name.as_str().unwrap_or_default();
            map.get("properties")
                .is_some_and(|all| all.get(text).is_some())
        };
        let names: Vec<Value> = names.iter().filter(known).cloned().collect();
        map.insert("required".to_owned(), names.into());
        mender.say("`required` stood beside the schema");
    }
    repairs.append(&mut mender.said);
    schema
}

/// `{"query": {"type": "string"}}` instead of a schema with `properties`.
fn wrap_bare_properties(schema: &mut Value, mender: &mut Mender) {
    let Value::Object(map) = schema else {
        return;
    };
    let is_schema = KEYWORDS.iter().any(|key| match map.get(*key) {
        Some(Value::Object(inner)) => !is_property(key, inner),
        Some(_) => *key != "properties",
        None => false,
    });
    // What is mended away later is no type now: the next look has to find the same.
    let is_typed = match map.get("type") {
        Some(Value::String(word)) => type_for(word).is_some(),
        Some(Value::Array(names)) => !names.is_empty() && names.iter().all(is_type),
        _ => false,
    };
    if is_schema || map.is_empty() {
        return;
    }
    let strays: Vec<String> = map
        .iter()
        .filter(|(key, value)| {
            let is_keyword = BESIDE.contains(&key.as_str());
            match value {
                Value::Object(inner) => !is_keyword || is_property(key, inner),
                Value::String(word) => !is_keyword && !is_typed && type_for(word).is_some(),
                _ => false,
            }
        })
        .map(|(key, _)| key.clone())
        .collect();
    if strays.is_empty() {
        return;
    }
    let mut properties = Map::new();
    for key in strays {
        if let Some(value) = map.shift_remove(&key) {
            properties.insert(key, value);
        }
    }
    map.insert("type".to_owned(), "object".into());
    map.insert("properties".to_owned(), properties.into());
    mender.say("its properties stood where the schema should be");
}

/// Whether a name in a list of types is one as JSON Schema writes it.
fn is_type(name: &Value) -> bool {
    name.as_str().is_some_and(|name| TYPES.contains(&name))
}

/// Whether a map under the name of a keyword is really the schema of a property of that name.
fn is_property(key: &str, inner: &Map<String, Value>) -> bool {
    let is_typed =
        matches!(inner.get("type"), Some(Value::String(word)) if type_for(word).is_some());
    let holds_schemas = matches!(
        key,
        "properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas"
    );
    let is_schema_itself = matches!(
        key,
        "items"
            | "additionalProperties"
            | "not"
            | "if"
            | "then"
            | "else"
            | "propertyNames"
            | "unevaluatedProperties"
            | "default"
            | "example"
            | "const"
    );
    is_typed && !holds_schemas && !is_schema_itself
}

/// Walks a schema and says each kind of repair once.
#[derive(Default)]
struct Mender {
    said: Vec<String>,
}

impl Mender {
    fn say(&mut self, what: &str) {
        if !self.said.iter().any(|said| said == what) {
            self.said.push(what.to_owned());
        }
    }

    /// Mends a schema; gives whether it asked to be required in the manner of draft 3.
    fn mend(&mut self, schema: &mut Value, depth: usize) -> bool {
        let Value::Object(map) = schema else {
            return false;
        };
        if DEPTH_MAX < depth {
            return false;
        }
        self.mend_type(map);
        let wants = match map.get("required") {
            Some(Value::Bool(flag)) => Some(*flag),
            Some(Value::Array(_)) | None => None,
            Some(_) => Some(false),
        };
        if wants.is_some() {
            map.shift_remove("required");
            self.say("`required` as a flag became a list");
        }
        self.mend_properties(map, depth);
        for key in ["items", "additionalProperties", "not"] {
            if let Some(inner) = map.get_mut(key) {
                self.mend(inner, depth + 1);
            }
        }
        for key in ["anyOf", "oneOf", "allOf", "prefixItems"] {
            for inner in map
                .get_mut(key)
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                self.mend(inner, depth + 1);
            }
        }
        for key in ["$defs", "definitions", "patternProperties"] {
            let inside = map.get_mut(key).and_then(Value::as_object_mut);
            for (_, inner) in inside.into_iter().flatten() {
                self.mend(inner, depth + 1);
            }
        }
        wants.unwrap_or(false)
    }

    fn mend_type(&mut self, map: &mut Map<String, Value>) {
        let mended = match map.get("type") {
            None => return,
            Some(Value::String(word)) => match type_for(word) {
                Some(name) if name == word => return,
                Some(name) => Some(Value::from(name)),
                None => None,
            },
            Some(Value::Array(names)) if names.iter().all(is_type) && !names.is_empty() => return,
            Some(_) => None,
        };
        self.say("types that JSON Schema does not know were replaced");
        match mended {
            Some(name) => map.insert("type".to_owned(), name),
            None => map.shift_remove("type"),
        };
    }

    fn mend_properties(&mut self, map: &mut Map<String, Value>, depth: usize) {
        let mut required: Vec<String> = Vec::new();
        match map.get_mut("properties") {
            None => return,
            Some(Value::Object(properties)) => {
                if let Some(Value::Array(names)) = properties.get("required") {
                    let names = names.iter().filter_map(Value::as_str);
                    required.extend(names.map(str::to_owned));
                    properties.shift_remove("required");
                    self.say("`required` stood among the properties");
                }
                for (name, property) in properties.iter_mut() {
                    if !property.is_object() && !property.is_boolean() {
                        *property = match property.as_str() {
                            Some(word) => match type_for(word) {
                                Some(kind) => json!({ "type": kind }),
                                None => json!({ "description": word }),
                            },
                            None => json!({}),
                        };
                        self.say("properties without a schema got one");
                    }
                    if self.mend(property, depth + 1) {
                        required.push(name.clone());
                    }
                }
            }
            Some(_) => {
                map.shift_remove("properties");
                self.say("`properties` was no map");
                return;
            }
        }
        if required.is_empty() {
            return;
        }
        let own = map.entry("required").or_insert_with(|| json!([]));
        if let Value::Array(own) = own {
            for name in required {
                if !own.iter().any(|known| known == name.as_str()) {
                    own.push(name.into());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(given: &Value, misplaced: Option<&Value>, expected: &Value, said: &[&str]) {
        let mut repairs = Vec::new();
        assert_eq!(&repaired(given, misplaced, &mut repairs), expected);
        assert_eq!(repairs, said);
    }

    #[test]
    fn sound_schemas_stay_as_they_are() {
        for schema in [
            json!({}),
            json!({"type": "object"}),
            json!({"properties": {"type": {"type": "string"}, "required": {"type": "boolean"}}}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}),
            json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}, "b": true}}),
            json!({"type": "object", "title": "x", "description": "y", "required": []}),
        ] {
            check(&schema, None, &schema, &[]);
        }
    }

    #[test]
    fn a_bare_map_of_properties_becomes_a_schema() {
        check(
            &json!({"query": {"type": "string"}, "type": {"type": "string"}, "n": "int"}),
            Some(&json!(["query", "absent"])),
            &json!({
                "type": "object",
                "properties": {
                    "query": {"type": "string"},
                    "type": {"type": "string"},
                    "n": {"type": "integer"},
                },
                "required": ["query"],
            }),
            &[
                "its properties stood where the schema should be",
                "properties without a schema got one",
                "`required` stood beside the schema",
            ],
        );
    }

    #[test]
    fn a_misplaced_required_moves_where_it_belongs() {
        check(
            &json!({"type": "object", "properties": {
                "a": {"type": "string", "required": true},
                "b": {"type": "str", "required": false},
                "required": ["b"],
            }}),
            None,
            &json!({
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "required": ["b", "a"],
            }),
            &[
                "`required` stood among the properties",
                "`required` as a flag became a list",
                "types that JSON Schema does not know were replaced",
            ],
        );
    }

    #[test]
    fn what_is_no_schema_at_all_takes_anything() {
        for given in [json!("x"), json!([1]), json!(true)] {
            let said = ["its schema is no object, so any arguments are taken"];
            check(&given, None, &open(), &said);
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i8>().prop_map(Value::from),
            prop::sample::select(vec!["string", "int", "what", "query"]).prop_map(Value::from),
        ];
        let keys = prop::sample::select(vec![
            "type",
            "properties",
            "required",
            "items",
            "anyOf",
            "a",
            "$defs",
            "description",
        ]);
        leaf.prop_recursive(5, 40, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((keys.clone(), inner), 0..5).prop_map(|entries| {
                    let entries = entries
                        .into_iter()
                        .map(|(key, value)| (key.to_owned(), value));
                    Value::Object(entries.collect())
                }),
            ]
        })
    }

    #[test]
    fn an_empty_list_of_types_is_no_type() {
        let given = json!({ "a": "string", "type": [] });
        let once = repaired(&given, None, &mut Vec::new());
        assert_eq!(repaired(&once, None, &mut Vec::new()), once);
    }

    proptest! {
        #[test]
        fn repairing_twice_changes_nothing(given in values(), misplaced in values()) {
            let once = repaired(&given, Some(&misplaced), &mut Vec::new());
            let mut again = Vec::new();
            prop_assert_eq!(&repaired(&once, None, &mut again), &once);
            prop_assert_eq!(again, Vec::<String>::new());
        }
    }
}
