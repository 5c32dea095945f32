//! `check arguments`: against the tool's JSON Schema, before anything is sent.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};

use crate::domain::{DefinitionHash, Launch, Server, Tool, clean_line};

/// Most problems reported at once: enough to correct a call, few enough to read.
const PROBLEMS_MAX: usize = 8;
/// Longest text of one problem, in characters.
const PROBLEM_CHARS_MAX: usize = 200;
/// Compiled schemas kept. The oldest goes first.
const COMPILED_MAX: usize = 1_024;
/// Longest arguments, in bytes of JSON.
pub(crate) const ARGUMENTS_BYTES_MAX: usize = 256 * 1024;
/// Deepest nesting of arguments.
const ARGUMENTS_DEPTH_MAX: usize = 64;
/// Bytes that a compiled pattern may take.
const PATTERN_BYTES_MAX: usize = 1024 * 1024;
/// Names less alike than this are no help.
const LIKENESS_MIN: f64 = 0.75;

/// What is wrong with one argument.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    /// JSON pointer of the value; empty for the arguments as a whole.
    pub path: String,
    /// What was expected there.
    pub expected: String,
    /// The nearest name or value that would be accepted.
    pub nearest: Option<String>,
}

impl Problem {
    fn new(path: impl Into<String>, expected: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            expected: clean_line(&expected.into(), PROBLEM_CHARS_MAX),
            nearest: None,
        }
    }
}

/// Checks arguments; compiled schemas are kept by definition hash.
#[derive(Default)]
pub(crate) struct Arguments {
    compiled: Mutex<Compiled>,
}

#[derive(Default)]
struct Compiled {
    by_hash: HashMap<DefinitionHash, Option<Arc<Validator>>>,
    order: VecDeque<DefinitionHash>,
}

impl fmt::Debug for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Arguments(..)")
    }
}

impl Arguments {
    /// The arguments as an object that fits the tool's schema, or what is wrong with them.
    pub(crate) fn check(
        &self,
        tool: &Tool,
        arguments: Option<Value>,
    ) -> Result<Map<String, Value>, Vec<Problem>> {
        let object = Value::Object(parse(arguments).map_err(|problem| vec![problem])?);
        if let Some(validator) = self.validator(tool) {
            let problems = problems(&validator, &object, tool.input().schema());
            if !problems.is_empty() {
                return Err(problems);
            }
        }
        match object {
            Value::Object(map) => Ok(map),
            _ => Err(vec![Problem::new("", "an object")]),
        }
    }

    /// As [`Arguments::check`]; where the tool is an operation of an HTTP service, each argument also
    /// fits its place in the request.
    pub(crate) fn check_placed(
        &self,
        server: &Server,
        tool: &Tool,
        arguments: Option<Value>,
    ) -> Result<Map<String, Value>, Vec<Problem>> {
        let arguments = self.check(tool, arguments)?;
        if let Some(Launch::OpenApi { operations, .. }) = &server.launch
            && let Some(operation) = operations.get(tool.name())
            && let Err(error) = operation.place(&arguments)
        {
            let path = error.argument().map(|name| format!("/{}", escape(name)));
            return Err(vec![Problem::new(
                path.unwrap_or_default(),
                error.to_string(),
            )]);
        }
        Ok(arguments)
    }

    /// The compiled schema, or `None` for a schema that is broken: its tool is called with
    /// whatever object is given, since the server is the judge then.
    fn validator(&self, tool: &Tool) -> Option<Arc<Validator>> {
        let hash = tool.hash();
        if let Some(known) = self.lock().by_hash.get(&hash) {
            return known.clone();
        }
        // Outside the lock: compiling a large schema takes milliseconds.
        let validator = compile(tool.input().schema()).map(Arc::new);
        let mut compiled = self.lock();
        if compiled.by_hash.insert(hash, validator.clone()).is_none() {
            compiled.order.push_back(hash);
            if COMPILED_MAX < compiled.order.len()
                && let Some(oldest) = compiled.order.pop_front()
            {
                compiled.by_hash.remove(&oldest);
            }
        }
        validator
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Compiled> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The linear-time pattern engine where it knows the syntax, else the backtracking one under a
/// limit. References that leave the schema are never followed.
fn compile(schema: &Value) -> Option<Validator> {
    let linear = PatternOptions::regex()
        .size_limit(PATTERN_BYTES_MAX)
        .dfa_size_limit(PATTERN_BYTES_MAX);
    let options = jsonschema::options().offline();
    if let Ok(validator) = options.with_pattern_options(linear).build(schema) {
        return Some(validator);
    }
    let bounded = PatternOptions::fancy_regex()
        .backtrack_limit(10_000)
        .size_limit(PATTERN_BYTES_MAX);
    jsonschema::options()
        .offline()
        .with_pattern_options(bounded)
        .build(schema)
        .ok()
}

/// An object, a string that holds one, or nothing at all.
fn parse(arguments: Option<Value>) -> Result<Map<String, Value>, Problem> {
    let map = match arguments {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(map)) => map,
        Some(Value::String(text)) => {
            if ARGUMENTS_BYTES_MAX < text.len() {
                return Err(too_large(text.len()));
            }
            if text.trim().is_empty() {
                return Ok(Map::new());
            }
            serde_json::from_str(&text).map_err(|error| {
                let place = format!("line {} column {}", error.line(), error.column());
                Problem::new(
                    "",
                    format!("an object, or JSON text of one (not at {place})"),
                )
            })?
        }
        Some(other) => {
            let found = type_of(&other);
            return Err(Problem::new("", format!("an object, not {found}")));
        }
    };
    if map
        .values()
        .any(|value| !shallower(value, ARGUMENTS_DEPTH_MAX))
    {
        let expected = format!("at most {ARGUMENTS_DEPTH_MAX} levels of nesting");
        return Err(Problem::new("", expected));
    }
    let bytes = map.values().map(size).sum();
    if ARGUMENTS_BYTES_MAX < bytes {
        return Err(too_large(bytes));
    }
    Ok(map)
}

fn too_large(bytes: usize) -> Problem {
    let expected = format!("at most {ARGUMENTS_BYTES_MAX} bytes of JSON, not {bytes}");
    Problem::new("", expected)
}

fn shallower(value: &Value, levels: usize) -> bool {
    let mut children: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(map) => Box::new(map.values()),
        _ => return true,
    };
    0 < levels && children.all(|child| shallower(child, levels - 1))
}

/// About the bytes of a value as JSON.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(size).sum::<usize>(),
        Value::Object(map) => {
            2 + map
                .iter()
                .map(|(k, v)| k.len() + 4 + size(v))
                .sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

fn problems(validator: &Validator, arguments: &Value, schema: &Value) -> Vec<Problem> {
    let mut problems: Vec<Problem> = Vec::new();
    for error in validator.iter_errors(arguments).take(PROBLEMS_MAX) {
        describe(&error, arguments, schema, &mut problems);
        if PROBLEMS_MAX <= problems.len() {
            break;
        }
    }
    problems.truncate(PROBLEMS_MAX);
    problems
}

/// In words of the schema. The value itself is never repeated: it may be a secret, or long.
fn describe(
    error: &ValidationError<'_>,
    arguments: &Value,
    schema: &Value,
    out: &mut Vec<Problem>,
) {
    let path = error.instance_path().as_str();
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let known = properties_at(error, schema);
            let present = arguments.pointer(path);
            for name in unexpected {
                // A name that the call already gives is no correction.
                let free: Vec<&str> = known
                    .iter()
                    .copied()
                    .filter(|name| present.is_none_or(|given| given.get(name).is_none()))
                    .collect();
                let mut problem = Problem::new(
                    format!("{path}/{}", escape(name)),
                    if known.is_empty() {
                        "no such argument".to_owned()
                    } else {
                        format!("one of {}", listed(&known))
                    },
                );
                problem.nearest = nearest(name, &free);
                out.push(problem);
            }
        }
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let missing = properties_schema(error, schema).and_then(|all| all.get(name));
            let expected = format!("{}, required and missing", words(missing));
            out.push(Problem::new(format!("{path}/{}", escape(name)), expected));
        }
        ValidationErrorKind::Enum { options } => {
            let options: Vec<String> = options
                .as_array()
                .into_iter()
                .flatten()
                .map(|option| {
                    option
                        .as_str()
                        .map_or_else(|| option.to_string(), str::to_owned)
                })
                .collect();
            let names: Vec<&str> = options.iter().map(String::as_str).collect();
            let mut problem = Problem::new(path, format!("one of {}", listed(&names)));
            let given = arguments
                .pointer(path)
                .and_then(Value::as_str)
                .unwrap_or_default();
            problem.nearest = nearest(given, &names);
            out.push(problem);
        }
        kind => out.push(Problem::new(path, expectation(kind))),
    }
}

fn expectation(kind: &ValidationErrorKind) -> String {
    match kind {
        ValidationErrorKind::Type { kind } => match kind {
            TypeKind::Single(one) => format!("{one}"),
            TypeKind::Multiple(set) => {
                let names: Vec<String> = set.iter().map(|one| one.to_string()).collect();
                names.join(" or ")
            }
        },
        ValidationErrorKind::Constant { expected_value } => format!("the value {expected_value}"),
        ValidationErrorKind::Minimum { limit } => format!("{limit} or more"),
        ValidationErrorKind::Maximum { limit } => format!("{limit} or less"),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!("more than {limit}"),
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("less than {limit}"),
        ValidationErrorKind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        ValidationErrorKind::MinLength { limit } => format!("at least {limit} characters"),
        ValidationErrorKind::MaxLength { limit } => format!("at most {limit} characters"),
        ValidationErrorKind::MinItems { limit } => format!("at least {limit} items"),
        ValidationErrorKind::MaxItems { limit } => format!("at most {limit} items"),
        ValidationErrorKind::MinProperties { limit } => format!("at least {limit} properties"),
        ValidationErrorKind::MaxProperties { limit } => format!("at most {limit} properties"),
        ValidationErrorKind::UniqueItems => "items that are all different".to_owned(),
        ValidationErrorKind::Pattern { pattern } => format!("text that matches `{pattern}`"),
        ValidationErrorKind::Format { format } => format!("text in the format `{format}`"),
        ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => {
            "one of the forms that the tool's schema allows".to_owned()
        }
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            "exactly one of the forms that the tool's schema allows".to_owned()
        }
        other => format!("what `{}` of the tool's schema asks for", other.keyword()),
    }
}

/// The schema that holds the keyword that failed.
fn parent<'a>(error: &ValidationError<'_>, schema: &'a Value) -> Option<&'a Value> {
    let path = error.schema_path().as_str();
    let (parent, _keyword) = path.rsplit_once('/')?;
    schema.pointer(parent)
}

fn properties_schema<'a>(
    error: &ValidationError<'_>,
    schema: &'a Value,
) -> Option<&'a Map<String, Value>> {
    parent(error, schema)?.get("properties")?.as_object()
}

fn properties_at<'a>(error: &ValidationError<'_>, schema: &'a Value) -> Vec<&'a str> {
    let properties = properties_schema(error, schema);
    properties.map_or_else(Vec::new, |all| all.keys().map(String::as_str).collect())
}

/// A property's type in a word.
fn words(schema: Option<&Value>) -> String {
    match schema.and_then(|schema| schema.get("type")) {
        Some(Value::String(one)) => one.clone(),
        Some(Value::Array(all)) => {
            let names: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
            names.join(" or ")
        }
        _ => "a value".to_owned(),
    }
}

fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

fn nearest(given: &str, known: &[&str]) -> Option<String> {
    let fold = |name: &str| name.to_lowercase().replace(['-', '_', ' ', '.'], "");
    let given = fold(given);
    known
        .iter()
        .map(|name| (strsim::jaro_winkler(&given, &fold(name)), name))
        .filter(|(likeness, _)| LIKENESS_MIN <= *likeness)
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)))
        .map(|(_, name)| (*name).to_owned())
}

/// A name as a segment of a JSON pointer (RFC 6901).
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::domain::{Definition, Input};

    fn tool(schema: Value) -> Tool {
        let input = Input::from_schema(schema);
        Tool::new(Definition::new("post".parse().unwrap(), "", input))
    }

    fn post() -> Tool {
        tool(json!({
            "type": "object",
            "properties": {
                "channel_id": {"type": "string", "minLength": 2},
                "text": {"type": ["string", "null"]},
                "priority": {"enum": ["low", "normal", "high"]},
                "retries": {"type": "integer", "maximum": 3},
                "blocks": {"type": "array", "items": {
                    "type": "object",
                    "properties": {"kind": {"type": "string"}},
                    "required": ["kind"],
                    "additionalProperties": false,
                }},
            },
            "required": ["channel_id", "text"],
            "additionalProperties": false,
        }))
    }

    /// Problems as `path: expected (nearest)`.
    fn check(tool: &Tool, arguments: Value) -> Vec<String> {
        let checked = Arguments::default().check(tool, Some(arguments));
        let problems = checked.err().unwrap_or_default();
        let show = |problem: &Problem| match &problem.nearest {
            Some(nearest) => format!("{}: {} ({nearest})", problem.path, problem.expected),
            None => format!("{}: {}", problem.path, problem.expected),
        };
        problems.iter().map(show).collect()
    }

    #[test]
    fn good_arguments_pass_as_an_object_and_as_its_text() {
        let object = json!({"channel_id": "C1", "text": null, "retries": 3});
        let arguments = Arguments::default();
        let passed = arguments.check(&post(), Some(object.clone())).unwrap();
        assert_eq!(Value::Object(passed), object);
        let text = Value::String(object.to_string());
        assert_eq!(
            Value::Object(arguments.check(&post(), Some(text)).unwrap()),
            object
        );
        let open = tool(json!({"type": "object"}));
        for nothing in [None, Some(Value::Null), Some(json!("")), Some(json!({}))] {
            assert_eq!(arguments.check(&open, nothing).unwrap(), Map::new());
        }
    }

    #[test]
    fn each_problem_has_its_path_what_was_expected_and_the_nearest_name() {
        let wrong = json!({
            "channelID": "C1",
            "text": 5,
            "priority": "urgent-high",
            "retries": 4,
            "blocks": [{"kind": "a"}, {"kinds": "b"}],
        });
        let mut problems = check(&post(), wrong);
        problems.sort();
        assert_eq!(
            problems,
            [
                "/blocks/1/kind: string, required and missing",
                "/blocks/1/kinds: one of `kind` (kind)",
                "/channelID: one of `channel_id`, `text`, `priority`, `retries`, `blocks` (channel_id)",
                "/channel_id: string, required and missing",
                "/priority: one of `low`, `normal`, `high`",
                "/retries: 3 or less",
                "/text: null or string",
            ]
        );
    }

    #[test]
    fn values_are_not_repeated_and_problems_are_few() {
        let items: Vec<Value> = (0..50).map(|_| json!({"secret": "hunter22"})).collect();
        let problems = check(
            &post(),
            json!({"channel_id": "hunter22", "text": "", "blocks": items}),
        );
        assert_eq!(problems.len(), PROBLEMS_MAX);
        assert!(!problems.concat().contains("hunter22"));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        assert_eq!(check(&post(), json!([1])), [": an object, not an array"]);
        assert_eq!(
            check(&post(), json!("{]")),
            [": an object, or JSON text of one (not at line 1 column 2)"]
        );
        assert_eq!(check(&post(), json!("[1]")).len(), 1);
    }

    #[test]
    fn size_and_depth_have_limits() {
        let open = tool(json!({"type": "object"}));
        let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        assert!(check(&open, json!({"a": nested(ARGUMENTS_DEPTH_MAX)})).is_empty());
        assert_eq!(
            check(&open, json!({"a": nested(ARGUMENTS_DEPTH_MAX + 1)})).len(),
            1
        );
        assert!(check(&open, json!({"a": "x".repeat(ARGUMENTS_BYTES_MAX - 2)})).is_empty());
        assert_eq!(
            check(&open, json!({"a": "x".repeat(ARGUMENTS_BYTES_MAX - 1)})).len(),
            1
        );
    }

    #[test]
    fn a_broken_schema_of_the_tool_blocks_nothing() {
        for schema in [
            json!({"type": "strange"}),
            json!({"type": "object", "properties": {"a": {"pattern": "("}}}),
            json!({"$ref": "http://127.0.0.1:9/schema.json"}),
            json!({"$ref": "file:///etc/passwd"}),
        ] {
            let tool = tool(schema);
            assert!(check(&tool, json!({"a": 1})).is_empty());
            assert_eq!(check(&tool, json!(5)).len(), 1);
        }
    }

    #[test]
    fn a_pattern_that_backtracks_for_ever_does_not() {
        let slow = tool(json!({
            "type": "object",
            "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}, "b": {"pattern": "^(?=(b+)+$)c"}},
        }));
        let problems = check(
            &slow,
            json!({"a": "a".repeat(40) + "!", "b": "b".repeat(40) + "!"}),
        );
        assert_eq!(problems.len(), 2, "{problems:?}");
    }

    #[test]
    fn both_drafts_in_use_are_understood() {
        let draft7 = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "definitions": {"id": {"type": "integer"}},
            "properties": {"id": {"$ref": "#/definitions/id"}},
        });
        let draft2020 = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"id": {"type": "integer"}},
            "properties": {"id": {"$ref": "#/$defs/id"}},
        });
        for schema in [draft7, draft2020] {
            assert_eq!(check(&tool(schema), json!({"id": "x"})), ["/id: integer"]);
        }
    }

    #[test]
    fn compiled_schemas_are_bounded() {
        let arguments = Arguments::default();
        for number in 0..COMPILED_MAX + 10 {
            let tool = tool(json!({"type": "object", "title": number}));
            arguments.check(&tool, None).unwrap();
        }
        assert_eq!(arguments.lock().by_hash.len(), COMPILED_MAX);
        assert_eq!(arguments.lock().order.len(), COMPILED_MAX);
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "\\PC{0,12}".prop_map(Value::from),
        ];
        let keys = prop_oneof![
            "[a-c]",
            Just("type".to_owned()),
            Just("properties".to_owned()),
            Just("required".to_owned()),
            Just("enum".to_owned()),
            Just("$ref".to_owned()),
            Just("pattern".to_owned()),
            Just("items".to_owned()),
            Just("anyOf".to_owned()),
        ];
        leaf.prop_recursive(4, 32, 5, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::hash_map(keys.clone(), inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_schema_and_no_arguments_panic(schema in json_value(), arguments in json_value()) {
            let checked = Arguments::default().check(&tool(schema), Some(arguments));
            if let Err(problems) = checked {
                prop_assert!(!problems.is_empty() && problems.len() <= PROBLEMS_MAX);
            }
        }
    }
}
