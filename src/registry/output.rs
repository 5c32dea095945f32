//! What a tool gives back.

use std::fmt;

use serde_json::{Map, Value, json};

/// The result of a call, as MCP has it: content, structured content, and whether it is an error.
#[derive(Clone, Default, PartialEq)]
pub struct ToolOutput(Map<String, Value>);

impl fmt::Debug for ToolOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolOutput")
            .field("is_error", &self.is_error())
            .finish_non_exhaustive()
    }
}

impl ToolOutput {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        let mut result = Map::new();
        let content = json!([{ "type": "text", "text": text.into() }]);
        result.insert("content".to_owned(), content);
        result.insert("isError".to_owned(), false.into());
        Self(result)
    }

    /// A JSON object as structured content, and the same as text. Anything else is text alone,
    /// since structured content is an object.
    pub fn json(value: Value) -> Self {
        let mut output = Self::text(value.to_string());
        if value.is_object() {
            output.0.insert("structuredContent".to_owned(), value);
        }
        output
    }

    /// A text that says what went wrong.
    pub fn error(text: impl Into<String>) -> Self {
        let mut output = Self::text(text);
        output.0.insert("isError".to_owned(), true.into());
        output
    }

    /// A result that another MCP server gave, unchanged.
    pub fn from_result(result: Map<String, Value>) -> Self {
        Self(result)
    }

    /// Whether it says that something went wrong.
    pub fn is_error(&self) -> bool {
        self.0.get("isError") == Some(&Value::Bool(true))
    }

    /// The JSON of the result.
    pub fn into_result(self) -> Map<String, Value> {
        self.0
    }
}
