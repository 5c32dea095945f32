//! The `[[tools]]` of a catalog file.

use std::collections::HashSet;

use crate::catalog::manifest::section::Section;
use crate::domain::{Annotations, Argument, Definition, Input, Shape, Tool, ToolName};

/// Reads all tools; those with a fault are left out, since the file will be refused anyway.
pub(super) fn read(section: &mut Section<'_, '_>) -> Vec<Tool> {
    let tools: Vec<Tool> = section
        .sections("tools", read_tool)
        .into_iter()
        .flatten()
        .collect();
    let mut names = HashSet::new();
    let twice: Vec<&ToolName> = tools
        .iter()
        .map(Tool::name)
        .filter(|name| !names.insert(*name))
        .collect();
    for name in twice {
        section.fault_at(
            "tools",
            format!("tool `{name}` is there twice"),
            "remove one of them",
        );
    }
    tools
}

fn read_tool(section: &mut Section<'_, '_>) -> Option<Tool> {
    let name = section.parsed("name");
    let title = section.optional_text("title").unwrap_or_default();
    let description = section.text("description");
    let keywords = section.texts("keywords");
    let annotations = section.section("annotations", |flags| Annotations {
        read_only: flags.flag("read_only"),
        destructive: flags.flag("destructive"),
        idempotent: flags.flag("idempotent"),
        open_world: flags.flag("open_world"),
    });
    let output_schema = section.json("output_schema");
    let input = read_input(section);
    let mut definition = Definition::new(name?, description?, input);
    definition.title = title;
    definition.keywords = keywords;
    definition.annotations = annotations.unwrap_or_default();
    definition.output_schema = output_schema;
    Some(Tool::new(definition))
}

/// A tool says what it takes in one of two ways.
fn read_input(section: &mut Section<'_, '_>) -> Input {
    let schema = section.json("input_schema");
    let arguments: Vec<Argument> = section
        .sections("arguments", read_argument)
        .into_iter()
        .flatten()
        .collect();
    if schema.is_some() == section.has("arguments") {
        let message = "a tool has either `arguments` or `input_schema`";
        section.fault_at("name", message, "keep one; write `arguments = []` for none");
    }
    let mut names = HashSet::new();
    for argument in &arguments {
        if !names.insert(&argument.name) {
            let message = format!("argument `{}` is there twice", argument.name);
            section.fault_at("arguments", message, "remove one of them");
        }
    }
    match schema {
        Some(schema) => Input::from_schema(schema),
        None => Input::from_arguments(arguments),
    }
}

fn read_argument(section: &mut Section<'_, '_>) -> Option<Argument> {
    let name = section.text("name");
    let shape: Option<Shape> = section.parsed("type");
    let description = section.text("desc").unwrap_or_default();
    let optional = section.flag("optional").unwrap_or(false);
    Some(Argument {
        name: name?.into(),
        shape: shape?,
        description: description.into(),
        required: !optional,
    })
}
