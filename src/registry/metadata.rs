//! What a provider says of one tool.

use std::sync::Arc;

use serde_json::Value;

use crate::domain::{
    Annotations, Catalog, Definition, Input, ParseNameError, ServerName, Slot, Tool, ToolName,
};
use crate::registry::fuzzy::Sought;

/// Longest schema, in bytes of JSON.
const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// Most keywords of one tool.
const KEYWORDS_MAX: usize = 64;

/// Whether a tool stands in `tools/list`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Visibility {
    /// Listed as it is.
    Native,
    /// Found by searching.
    #[default]
    Discoverable,
}

/// A tool cannot be described like this.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DescribeToolError {
    /// Its name is none.
    #[error("not a tool's name")]
    Name(#[from] ParseNameError),
    /// Its schema is not the schema of an object.
    #[error("the schema of `{0}` is not an object with the type `object`")]
    Schema(ToolName),
    /// Its schema is too long.
    #[error("the schema of `{name}` is {bytes} bytes long, over the limit of {SCHEMA_BYTES_MAX}")]
    TooLong {
        /// The tool.
        name: ToolName,
        /// Length of the schema.
        bytes: usize,
    },
}

/// The description of a tool, put together step by step.
#[derive(Clone, Debug)]
pub struct ToolSpec {
    definition: Definition,
    visibility: Visibility,
}

impl ToolSpec {
    /// A discoverable tool without arguments.
    pub fn new(name: &str, description: &str) -> Result<Self, DescribeToolError> {
        let input = Input::from_arguments(Vec::new());
        Ok(Self {
            definition: Definition::new(name.parse()?, description, input),
            visibility: Visibility::Discoverable,
        })
    }

    /// Takes arguments that fit this JSON Schema of an object.
    pub fn schema(mut self, schema: Value) -> Result<Self, DescribeToolError> {
        let name = &self.definition.name;
        if !schema.is_object() || schema.get("type").is_some_and(|kind| kind != "object") {
            return Err(DescribeToolError::Schema(name.clone()));
        }
        let bytes = schema.to_string().len();
        if SCHEMA_BYTES_MAX < bytes {
            let name = name.clone();
            return Err(DescribeToolError::TooLong { name, bytes });
        }
        self.definition.input = Input::from_schema(schema);
        Ok(self)
    }

    /// More words to find it by; those beyond 64 are left out.
    #[must_use]
    pub fn keywords<T: Into<String>>(mut self, keywords: impl IntoIterator<Item = T>) -> Self {
        let keywords = keywords.into_iter().map(Into::into);
        self.definition.keywords = keywords.take(KEYWORDS_MAX).collect();
        self
    }

    /// A title for people.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        title.clone_into(&mut self.definition.title);
        self
    }

    /// What it does to the world.
    #[must_use]
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.definition.annotations = annotations;
        self
    }

    /// A JSON Schema of its structured result.
    #[must_use]
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.definition.output_schema = Some(schema);
        self
    }

    /// Stands in `tools/list`.
    #[must_use]
    pub fn native(mut self) -> Self {
        self.visibility = Visibility::Native;
        self
    }
}

/// A tool as its provider offers it: ready to be found.
#[derive(Clone, Debug)]
pub struct ToolMetadata {
    name: Box<str>,
    tool: Held,
    visibility: Visibility,
    sought: Sought,
}

/// Whose tool it is. The catalog's are not copied.
#[derive(Clone, Debug)]
enum Held {
    Own(Box<Tool>),
    Shelved(Arc<Catalog>, Slot),
}

impl ToolMetadata {
    /// A provider's own tool, under its own name.
    pub fn new(tool: Tool, visibility: Visibility) -> Self {
        Self {
            name: tool.name().as_str().into(),
            sought: Sought::of(tool.name().as_str(), &tool, &[]),
            tool: Held::Own(Box::new(tool)),
            visibility,
        }
    }

    /// The catalog's tool in a slot, under a public name. It is found by its own name, its server's
    /// name and the server's title as well.
    pub fn shelved(
        name: String,
        catalog: &Arc<Catalog>,
        slot: Slot,
        visibility: Visibility,
    ) -> Self {
        let (server, tool) = (catalog.server_of(slot), catalog.tool(slot));
        let more = [server.name.as_str(), &server.title, tool.name().as_str()];
        Self {
            sought: Sought::of(&name, tool, &more),
            name: name.into(),
            tool: Held::Shelved(Arc::clone(catalog), slot),
            visibility,
        }
    }

    /// What it is called by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it stands in `tools/list`.
    pub fn visibility(&self) -> Visibility {
        self.visibility
    }

    /// What it does and what it takes.
    pub fn tool(&self) -> &Tool {
        match &self.tool {
            Held::Own(tool) => tool,
            Held::Shelved(catalog, slot) => catalog.tool(*slot),
        }
    }

    /// Where it stands in a catalog, if it is one's.
    pub fn slot(&self) -> Option<Slot> {
        match &self.tool {
            Held::Own(_) => None,
            Held::Shelved(_, slot) => Some(*slot),
        }
    }

    /// Its server in the catalog, if it is the catalog's.
    pub fn server(&self) -> Option<&ServerName> {
        match &self.tool {
            Held::Own(_) => None,
            Held::Shelved(catalog, slot) => Some(&catalog.server_of(*slot).name),
        }
    }

    /// The texts that it is found by.
    pub(super) fn sought(&self) -> &Sought {
        &self.sought
    }
}

impl From<ToolSpec> for ToolMetadata {
    fn from(spec: ToolSpec) -> Self {
        Self::new(Tool::new(spec.definition), spec.visibility)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wrong_schema_is_refused_at_its_limit() {
        let spec = || ToolSpec::new("t", "Does it.").unwrap();
        assert!(spec().schema(json!({"type": "string"})).is_err());
        assert!(spec().schema(json!([])).is_err());
        let padded = |bytes: usize| json!({"a": "x".repeat(bytes - 8)});
        assert_eq!(padded(SCHEMA_BYTES_MAX).to_string().len(), SCHEMA_BYTES_MAX);
        assert!(spec().schema(padded(SCHEMA_BYTES_MAX)).is_ok());
        assert!(spec().schema(padded(SCHEMA_BYTES_MAX + 1)).is_err());
        assert!(ToolSpec::new(" t", "").is_err());
    }
}
