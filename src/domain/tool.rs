//! A tool as the catalog knows it.

use serde_json::{Map, Value, json};

use crate::domain::{DefinitionHash, Shape, ToolName, clean_line, clean_text};

/// Longest description kept, in characters. Published ones reach 5,800.
const DESCRIPTION_MAX: usize = 8_000;
/// Longest argument description kept, in characters.
const ARGUMENT_MAX: usize = 2_000;
/// Longest title kept, in characters.
const TITLE_MAX: usize = 200;

/// What a server says about the effects of a tool; `None` where it says nothing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Annotations {
    /// Changes nothing.
    pub read_only: Option<bool>,
    /// May destroy something.
    pub destructive: Option<bool>,
    /// Running it twice does no more than running it once.
    pub idempotent: Option<bool>,
    /// Talks to a world beyond the server.
    pub open_world: Option<bool>,
}

/// One argument of a tool.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Argument {
    /// Its name, the key in the arguments object.
    pub name: Box<str>,
    /// Its JSON type.
    pub shape: Shape,
    /// What it means.
    pub description: Box<str>,
    /// Whether a call must give it.
    pub required: bool,
}

/// What a tool takes: a JSON Schema, and the same as a list of arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    arguments: Vec<Argument>,
    schema: Value,
}

impl Input {
    /// From a list of arguments. The schema accepts these and no others.
    pub fn from_arguments(arguments: Vec<Argument>) -> Self {
        let mut properties = Map::new();
        for argument in &arguments {
            let mut schema = argument.shape.to_schema();
            if !argument.description.is_empty() {
                schema["description"] = Value::from(&*argument.description);
            }
            properties.insert(argument.name.to_string(), schema);
        }
        let required: Vec<&str> = arguments
            .iter()
            .filter(|argument| argument.required)
            .map(|argument| &*argument.name)
            .collect();
        let schema = json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        Self { arguments, schema }
    }

    /// From a JSON Schema; the arguments are its top-level properties, required ones first.
    pub fn from_schema(schema: Value) -> Self {
        let required: Vec<&str> = schema["required"]
            .as_array()
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let mut arguments: Vec<Argument> = schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, property)| Argument {
                name: clean_line(name, TITLE_MAX).into(),
                shape: Shape::of_schema(property, &schema),
                description: clean_line(
                    property["description"].as_str().unwrap_or_default(),
                    ARGUMENT_MAX,
                )
                .into(),
                required: required.contains(&name.as_str()),
            })
            .collect();
        arguments.sort_by_key(|argument| !argument.required);
        Self { arguments, schema }
    }

    /// The arguments, required ones first.
    pub fn arguments(&self) -> &[Argument] {
        &self.arguments
    }

    /// The JSON Schema that a call's arguments must fit.
    pub fn schema(&self) -> &Value {
        &self.schema
    }
}

/// What a server publishes of one tool, as given.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Its name on the server.
    pub name: ToolName,
    /// Human title; may be empty.
    pub title: String,
    /// What it does.
    pub description: String,
    /// What it takes.
    pub input: Input,
    /// JSON Schema of its structured result.
    pub output_schema: Option<Value>,
    /// What the server says about its effects.
    pub annotations: Annotations,
    /// More words to find it by; not part of the fingerprint.
    pub keywords: Vec<String>,
}

impl Definition {
    /// A definition with the three things that every tool has.
    pub fn new(name: ToolName, description: impl Into<String>, input: Input) -> Self {
        Self {
            name,
            title: String::new(),
            description: description.into(),
            input,
            output_schema: None,
            annotations: Annotations::default(),
            keywords: Vec::new(),
        }
    }

    /// Over the text as given: a change that only adds hidden characters is a change.
    fn fingerprint(&self) -> DefinitionHash {
        DefinitionHash::of(&json!({
            "name": self.name.as_str(),
            "title": self.title,
            "description": self.description,
            "input": self.input.schema,
            "output": self.output_schema,
            "annotations": [
                self.annotations.read_only,
                self.annotations.destructive,
                self.annotations.idempotent,
                self.annotations.open_world,
            ],
        }))
    }
}

/// A tool: what it is called, what it does, what it takes. Immutable once built.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    name: ToolName,
    title: Box<str>,
    description: Box<str>,
    input: Input,
    output_schema: Option<Value>,
    annotations: Annotations,
    keywords: Vec<Box<str>>,
    hash: DefinitionHash,
    given: Option<Box<Given>>,
}

/// Texts as their server wrote them: kept where cleaning changed them, since the fingerprint is
/// over these, and since a scanner has to see what was taken out.
#[derive(Clone, Debug, PartialEq)]
struct Given {
    title: Box<str>,
    description: Box<str>,
}

impl Tool {
    /// Texts are cleaned of hidden characters and cut at their limits; the fingerprint is over
    /// the definition as given.
    pub fn new(definition: Definition) -> Self {
        let hash = definition.fingerprint();
        let title = clean_line(&definition.title, TITLE_MAX);
        let description = clean_text(&definition.description, DESCRIPTION_MAX);
        let changed = title != definition.title || description != definition.description;
        let given = changed.then(|| {
            Box::new(Given {
                title: definition.title.into(),
                description: definition.description.into(),
            })
        });
        Self {
            hash,
            given,
            name: definition.name,
            title: title.into(),
            description: description.into(),
            input: definition.input,
            output_schema: definition.output_schema,
            annotations: definition.annotations,
            keywords: definition
                .keywords
                .iter()
                .map(|keyword| clean_line(keyword, TITLE_MAX).into())
                .collect(),
        }
    }

    /// Its name on the server.
    pub fn name(&self) -> &ToolName {
        &self.name
    }

    /// Human title; empty where the server gives none.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// What it does, cleaned.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// What it takes.
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// JSON Schema of its structured result, where the server gives one.
    pub fn output_schema(&self) -> Option<&Value> {
        self.output_schema.as_ref()
    }

    /// What the server says about its effects.
    pub fn annotations(&self) -> Annotations {
        self.annotations
    }

    /// More words to find it by.
    pub fn keywords(&self) -> &[Box<str>] {
        &self.keywords
    }

    /// The definition as given: a tool built from it is equal to this one.
    pub fn definition(&self) -> Definition {
        let (title, description) = match &self.given {
            Some(given) => (&given.title, &given.description),
            None => (&self.title, &self.description),
        };
        Definition {
            name: self.name.clone(),
            title: title.to_string(),
            description: description.to_string(),
            input: self.input.clone(),
            output_schema: self.output_schema.clone(),
            annotations: self.annotations,
            keywords: self.keywords.iter().map(ToString::to_string).collect(),
        }
    }

    /// Fingerprint of the definition.
    pub fn hash(&self) -> DefinitionHash {
        self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(description: &str) -> Tool {
        let schema = json!({
            "type": "object",
            "properties": {"limit": {"type": "integer"}, "channel": {"type": "string"}},
            "required": ["channel"],
        });
        let input = Input::from_schema(schema);
        Tool::new(Definition::new("post".parse().unwrap(), description, input))
    }

    #[test]
    fn required_arguments_come_first() {
        let names: Vec<_> = tool("x")
            .input()
            .arguments()
            .iter()
            .map(|a| a.name.clone())
            .collect();
        assert_eq!(names, ["channel".into(), "limit".into()]);
    }

    #[test]
    fn a_hidden_change_of_the_description_changes_the_hash() {
        let (plain, poisoned) = (tool("Post a message"), tool("Post a message\u{200b}"));
        assert_eq!(plain.description(), poisoned.description());
        assert_ne!(plain.hash(), poisoned.hash());
        assert_eq!(Tool::new(poisoned.definition()), poisoned);
        assert_eq!(Tool::new(plain.definition()), plain);
    }

    #[test]
    fn arguments_give_a_closed_schema() {
        let input = Input::from_arguments(vec![Argument {
            name: "n".into(),
            shape: "integer".parse().unwrap(),
            description: "how many".into(),
            required: true,
        }]);
        assert_eq!(
            input.schema(),
            &json!({
                "type": "object",
                "properties": {"n": {"type": "integer", "description": "how many"}},
                "required": ["n"],
                "additionalProperties": false,
            })
        );
        assert_eq!(
            Input::from_schema(input.schema().clone()).arguments(),
            input.arguments()
        );
    }
}
