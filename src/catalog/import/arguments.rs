//! Arguments written as a list: `[{name, type, desc, optional?}]`.

use serde_json::Value;

use crate::catalog::import::schema;
use crate::catalog::import::source::text;
use crate::domain::{Argument, Input, Shape};

/// Reads a list of arguments; says what was left out or read differently.
pub(super) fn read(list: &[Value], repairs: &mut Vec<String>) -> Input {
    let mut arguments: Vec<Argument> = Vec::with_capacity(list.len());
    for (at, value) in list.iter().enumerate() {
        let name = match value {
            Value::String(name) => name.as_str(),
            _ => text(value, &["name"]),
        };
        if name.is_empty() || arguments.iter().any(|known| *known.name == *name) {
            let why = match name.is_empty() {
                true => format!("argument {at} has no name and was left out"),
                false => format!("argument `{name}` is there twice; the first one stays"),
            };
            repairs.push(why);
            continue;
        }
        arguments.push(Argument {
            name: name.into(),
            shape: read_shape(value, name, repairs),
            description: text(value, &["desc", "description"]).into(),
            required: is_required(value),
        });
    }
    Input::from_arguments(arguments)
}

fn is_required(value: &Value) -> bool {
    let said = |key: &str| value.get(key).and_then(Value::as_bool);
    match (said("optional"), said("required")) {
        (Some(optional), _) => !optional,
        (None, Some(required)) => required,
        (None, None) => value.get("default").is_none(),
    }
}

fn read_shape(value: &Value, name: &str, repairs: &mut Vec<String>) -> Shape {
    let Some(given) = value.get("type") else {
        // A schema without `type` may still say `enum`, or nothing: then anything fits.
        return Shape::of_schema(value, value);
    };
    let has_more = ["items", "enum"].iter().any(|key| value.get(key).is_some());
    let Some(phrase) = given.as_str() else {
        return Shape::of_schema(value, value);
    };
    if let (Ok(shape), false) = (phrase.parse(), has_more) {
        return shape;
    }
    let mut schema = value.clone();
    let known = schema::type_for(phrase);
    if let (Some(kind), Some(map)) = (known, schema.as_object_mut()) {
        map.insert("type".to_owned(), kind.into());
    }
    if known != Some(phrase) {
        let shape = Shape::of_schema(&schema, &schema);
        repairs.push(format!(
            "type `{phrase}` of argument `{name}` is read as {shape}"
        ));
    }
    Shape::of_schema(&schema, &schema)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(list: &Value, expected: &str, said: &[&str]) {
        let mut repairs = Vec::new();
        let input = read(list.as_array().unwrap(), &mut repairs);
        let row = |a: &Argument| {
            format!(
                "{}: {}{}",
                a.name,
                a.shape,
                if a.required { "!" } else { "" }
            )
        };
        let rows: Vec<String> = input.arguments().iter().map(row).collect();
        assert_eq!(rows.join(", "), expected);
        assert_eq!(repairs, said);
    }

    #[test]
    fn lists_in_several_hands_are_read() {
        check(
            &json!([
                {"name": "a", "type": "string", "desc": "x"},
                {"name": "b", "type": "array", "items": {"type": "integer"}, "optional": true},
                {"name": "c", "type": "\"x\" or \"y\"", "required": false},
                {"name": "d", "type": "int", "default": 3},
                "e",
            ]),
            "a: string!, b: array of integer, c: \"x\" or \"y\", d: integer, e: any!",
            &["type `int` of argument `d` is read as integer"],
        );
    }

    #[test]
    fn arguments_without_a_name_or_with_a_taken_one_are_named() {
        check(
            &json!([{"type": "string"}, {"name": "a"}, {"name": "a"}]),
            "a: any!",
            &[
                "argument 0 has no name and was left out",
                "argument `a` is there twice; the first one stays",
            ],
        );
    }
}
