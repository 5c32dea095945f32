//! The JSON type of an argument, in one phrase.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value, json};

/// Deepest nesting that is followed in a schema; beyond it the type is `any`.
const DEPTH_MAX: usize = 12;
/// Types of JSON Schema that stand for themselves.
const SCALARS: [&str; 6] = ["string", "integer", "number", "boolean", "object", "null"];

/// Why a text is not a type phrase.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "`{0}` is not a type: write string, integer, number, boolean, object, array, any, \
     `array of string`, `\"a\" or \"b\"` or `array of (\"a\" or \"b\")`"
)]
pub struct ParseShapeError(String);

/// A type phrase such as `string`, `array of integer` or `"asc" or "desc"`.
///
/// It keeps the meaning of a JSON Schema in words that a model reads at once. Objects are not
/// described inside.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Shape(Form);

#[derive(Clone, Debug, Eq, PartialEq)]
enum Form {
    Any,
    Scalar(&'static str),
    /// One value, as its JSON text.
    Literal(Value),
    Array(Box<Form>),
    Union(Vec<Form>),
}

impl Shape {
    /// The phrase for a schema. `root` is the document that `$ref` points into; references to
    /// elsewhere are never followed.
    pub fn of_schema(schema: &Value, root: &Value) -> Self {
        Self(Form::of_schema(schema, root, 0))
    }

    /// A schema that accepts exactly what the phrase says.
    pub fn to_schema(&self) -> Value {
        self.0.to_schema()
    }

    /// Whether every value fits.
    pub fn is_any(&self) -> bool {
        self.0 == Form::Any
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Shape {
    type Err = ParseShapeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseShapeError(text.to_owned());
        Form::parse(text, 0).map(Self).ok_or_else(wrong)
    }
}

impl Form {
    fn of_schema(schema: &Value, root: &Value, depth: usize) -> Self {
        let Some(map) = schema.as_object() else {
            return Self::Any;
        };
        if DEPTH_MAX < depth {
            return Self::Any;
        }
        let inner = |schema: &Value| Self::of_schema(schema, root, depth + 1);
        if let Some(target) = map.get("$ref").and_then(Value::as_str) {
            let found = target.strip_prefix('#').and_then(|path| root.pointer(path));
            return found.map_or(Self::Any, inner);
        }
        if let Some(value) = map.get("const") {
            return Self::Literal(value.clone());
        }
        if let Some(values) = map.get("enum").and_then(Value::as_array) {
            return Self::union(values.iter().cloned().map(Self::Literal));
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(choices) = map.get(key).and_then(Value::as_array) {
                return Self::union(choices.iter().map(inner));
            }
        }
        if let Some([only]) = map
            .get("allOf")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
        {
            return inner(only);
        }
        match map.get("type") {
            Some(Value::String(name)) => Self::named(name, map, &inner),
            Some(Value::Array(names)) => Self::union(
                names
                    .iter()
                    .filter_map(Value::as_str)
                    .map(|name| Self::named(name, map, &inner)),
            ),
            _ if map.contains_key("properties") => Self::Scalar("object"),
            _ => Self::Any,
        }
    }

    fn named(name: &str, map: &Map<String, Value>, inner: &dyn Fn(&Value) -> Self) -> Self {
        if name == "array" {
            let items = map.get("items").map_or(Self::Any, inner);
            return Self::Array(Box::new(items));
        }
        Self::scalar(name).unwrap_or(Self::Any)
    }

    fn scalar(name: &str) -> Option<Self> {
        let known = SCALARS.iter().find(|known| **known == name)?;
        Some(Self::Scalar(known))
    }

    /// One form for many, flat, each once. `any` swallows the others, `number` the integers.
    fn union(forms: impl IntoIterator<Item = Self>) -> Self {
        let mut parts: Vec<Self> = Vec::new();
        for form in forms {
            let flat = match form {
                Self::Union(inner) => inner,
                other => vec![other],
            };
            for form in flat {
                if !parts.contains(&form) {
                    parts.push(form);
                }
            }
        }
        if parts.is_empty() || parts.contains(&Self::Any) {
            return Self::Any;
        }
        if parts.contains(&Self::Scalar("number")) {
            parts.retain(|form| *form != Self::Scalar("integer"));
        }
        match parts.len() {
            1 => parts.remove(0),
            _ => Self::Union(parts),
        }
    }

    fn to_schema(&self) -> Value {
        match self {
            Self::Any => json!({}),
            Self::Scalar(name) => json!({ "type": name }),
            Self::Literal(value) => json!({ "const": value }),
            Self::Array(items) if **items == Self::Any => json!({ "type": "array" }),
            Self::Array(items) => json!({ "type": "array", "items": items.to_schema() }),
            Self::Union(parts) => {
                let literals: Option<Vec<&Value>> = parts.iter().map(Self::literal).collect();
                match literals {
                    Some(values) => json!({ "enum": values }),
                    None => json!({
                        "anyOf": parts.iter().map(Self::to_schema).collect::<Vec<_>>()
                    }),
                }
            }
        }
    }

    fn literal(&self) -> Option<&Value> {
        match self {
            Self::Literal(value) => Some(value),
            _ => None,
        }
    }

    fn parse(text: &str, depth: usize) -> Option<Self> {
        if DEPTH_MAX < depth {
            return None;
        }
        let parts = split_alternatives(text.trim())?;
        if 1 < parts.len() {
            let forms: Option<Vec<Self>> = parts
                .iter()
                .map(|part| Self::parse(part, depth + 1))
                .collect();
            return forms.map(Self::union);
        }
        let text = text.trim();
        if let Some(inner) = text
            .strip_prefix('(')
            .and_then(|rest| rest.strip_suffix(')'))
        {
            return Self::parse(inner, depth + 1);
        }
        if let Some(items) = text.strip_prefix("array of ") {
            return Some(Self::Array(Box::new(Self::parse(items, depth + 1)?)));
        }
        match text {
            "any" => Some(Self::Any),
            "array" => Some(Self::Array(Box::new(Self::Any))),
            _ => Self::scalar(text).or_else(|| {
                let value: Value = serde_json::from_str(text).ok()?;
                (!value.is_object() && !value.is_array()).then_some(Self::Literal(value))
            }),
        }
    }
}

/// Splits at ` or ` outside quotes and parentheses; `None` when these do not close.
fn split_alternatives(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth = depth.checked_sub(1)?,
            ' ' if !quoted && depth == 0 && text.get(at..)?.starts_with(" or ") && start <= at => {
                parts.push(text.get(start..at)?);
                start = at + " or ".len();
            }
            _ => {}
        }
    }
    parts.push(text.get(start..)?);
    (depth == 0 && !quoted).then_some(parts)
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Scalar(name) => f.write_str(name),
            Self::Literal(value) => value.fmt(f),
            Self::Array(items) => match **items {
                Self::Any => f.write_str("array"),
                Self::Union(_) => write!(f, "array of ({items})"),
                _ => write!(f, "array of {items}"),
            },
            Self::Union(parts) => {
                for (at, part) in parts.iter().enumerate() {
                    if 0 < at {
                        f.write_str(" or ")?;
                    }
                    part.fmt(f)?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(schema: &Value, expected: &str) {
        assert_eq!(Shape::of_schema(schema, schema).to_string(), expected);
    }

    #[test]
    fn schemas_become_phrases() {
        check(&json!({"type": "string"}), "string");
        check(&json!({"enum": ["a or b", "c"]}), r#""a or b" or "c""#);
        check(
            &json!({"type": "array", "items": {"enum": ["x", "y"]}}),
            r#"array of ("x" or "y")"#,
        );
        check(
            &json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}),
            "integer or null",
        );
        check(&json!({"type": ["integer", "number"]}), "number");
        check(
            &json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}),
            "object",
        );
        check(&json!({"$ref": "https://example.com/s.json"}), "any");
        check(&json!({"$ref": "#"}), "any");
        check(&json!(true), "any");
    }

    #[test]
    fn phrases_that_are_no_types_are_refused() {
        for text in ["", "str", "array of", "(string", "\"a", "{}", "string or"] {
            assert!(text.parse::<Shape>().is_err(), "{text}");
        }
    }

    fn forms() -> impl Strategy<Value = Form> {
        let leaf = prop_oneof![
            Just(Form::Any),
            prop::sample::select(SCALARS.to_vec()).prop_map(Form::Scalar),
            "[a-z \"()\\\\]{0,8}".prop_map(|text| Form::Literal(Value::String(text))),
            any::<i32>().prop_map(|number| Form::Literal(number.into())),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                inner.clone().prop_map(|form| Form::Array(Box::new(form))),
                prop::collection::vec(inner, 1..4).prop_map(Form::union),
            ]
        })
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(form in forms()) {
            let shape = Shape(form);
            prop_assert_eq!(shape.to_string().parse::<Shape>().unwrap(), shape);
        }

        #[test]
        fn a_phrase_survives_the_way_through_a_schema(form in forms()) {
            let schema = form.to_schema();
            prop_assert_eq!(Shape::of_schema(&schema, &schema), Shape(form));
        }

        #[test]
        fn no_text_panics(text in any::<String>()) {
            let _ = text.parse::<Shape>();
        }
    }
}
