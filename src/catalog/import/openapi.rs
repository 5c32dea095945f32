//! `OpenAPI` 3.0 and 3.1: each operation a tool, its parameters and body as arguments, and how it is
//! asked for.
//!
//! The document is walked as a value. The typed crates know one version each (`openapiv3` 3.0,
//! `oas3` 3.1) and reject a whole document for one wrong field; strangers' documents have some.

mod described;
mod resolver;
mod service;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::catalog::import::NoteKind;
use crate::catalog::import::intake::Intake;
use crate::catalog::import::openapi::described::all;
use crate::catalog::import::source::{items, text};
use crate::domain::{Launch, Operation, Server, ToolName};

/// Operations that a report names one by one when they cannot be asked for.
const NOTES_MAX: usize = 20;

/// Reads one document.
pub(super) fn read(intake: &mut Intake, file: &str, value: &Value) {
    let version = text(value, &["openapi", "swagger"]);
    if !version.starts_with("3.") {
        let why = format!("version `{version}` is not `OpenAPI` 3: convert it first");
        intake.refuse_document(file, why);
        return;
    }
    let described = all(value);
    let title = text(&value["info"], &["title"]);
    let foreign = if title.is_empty() { file } else { title };
    let Some(name) = intake.name(file, foreign, described.len()) else {
        return;
    };
    // A header that carries a credential is the operator's, and no argument.
    let service = service::read(file, value, &name);
    let own: Vec<String> = service
        .headers
        .iter()
        .map(|(header, _)| header.to_ascii_lowercase())
        .collect();
    let definitions: Vec<(String, Value, Result<Operation, String>)> = described
        .iter()
        .map(|described| {
            let (tool, operation) = described.tool(value, &own);
            (format!("{file}#{}", described.place), tool, operation)
        })
        .collect();
    let placed = definitions
        .iter()
        .map(|(place, tool, _)| (place.clone(), tool));
    let mut server = Server::new(name.clone(), intake.tools(&name, placed.collect()));
    server.title = title.into();
    server.description = text(&value["info"], &["description", "summary"]).into();
    server.provenance.version = text(&value["info"], &["version"]).into();
    server.provenance.license = text(&value["info"]["license"], &["identifier", "name"]).into();
    server.tags = items(value, "tags")
        .iter()
        .map(|tag| text(tag, &["name"]).into())
        .collect();
    for why in &service.notes {
        intake.note(NoteKind::Noted, file, name.as_str(), why.as_str());
    }
    let operations = runnable(intake, &server, definitions);
    if !operations.is_empty() {
        server.secrets = service.secrets;
        server.config = service.config;
        server.launch = Some(Launch::OpenApi {
            base_url: service.base_url,
            headers: service.headers,
            operations: Arc::new(operations),
        });
    }
    if let Err(error) = server.check_launch() {
        let why = format!("{error}: found but not run");
        intake.note(NoteKind::Noted, file, name.as_str(), why);
        server.launch = None;
    }
    intake.take(file, server);
}

/// The operations of the tools that were taken, and a note for each that cannot be asked for.
fn runnable(
    intake: &mut Intake,
    server: &Server,
    definitions: Vec<(String, Value, Result<Operation, String>)>,
) -> BTreeMap<ToolName, Operation> {
    let (mut operations, mut left_out) = (BTreeMap::new(), 0_usize);
    for (place, tool, operation) in definitions {
        let name = tool["name"].as_str().unwrap_or_default().trim();
        let taken = server
            .tools
            .iter()
            .find(|tool| tool.name().as_str() == name);
        let Some(tool) = taken else {
            continue;
        };
        match operation {
            // Of two with one name the first is the tool.
            Ok(operation) => {
                let entry = operations.entry(tool.name().clone());
                entry.or_insert(operation);
            }
            Err(why) => {
                left_out += 1;
                if left_out <= NOTES_MAX {
                    let why = format!("{why}: found but not run");
                    intake.note(NoteKind::Noted, &place, name, why);
                }
            }
        }
    }
    if NOTES_MAX < left_out {
        let why = format!("{left_out} operations are found but not run");
        let file = server.name.as_str();
        intake.note(NoteKind::Noted, file, file, why);
    }
    operations
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::catalog::import::{Document, Format, Imported, read};

    fn imported(name: &str, text: String) -> Imported {
        assert_eq!(Format::detect(name, &text), Some(Format::OpenApi));
        let name = name.to_owned();
        let imported = read(Format::OpenApi, &[Document { name, text }]);
        assert!(imported.report.counts.balance());
        imported
    }

    #[test]
    fn each_operation_is_a_tool_in_both_versions() {
        let path = "tests/data/import/openapi.yaml";
        let text = std::fs::read_to_string(path).unwrap();
        let newer = text.replace("openapi: 3.0.3", "openapi: 3.1.0");
        for text in [text, newer] {
            let imported = imported(path, text);
            let server = &imported.servers[0];
            let rows: Vec<String> = server
                .tools
                .iter()
                .map(|tool| {
                    let arguments = tool.input().arguments().iter();
                    let arguments: Vec<String> = arguments
                        .map(|a| {
                            format!(
                                "{}{}:{}",
                                a.name,
                                if a.required { "!" } else { "" },
                                a.shape
                            )
                        })
                        .collect();
                    format!("{} {}", tool.name(), arguments.join(" "))
                })
                .collect();
            insta::allow_duplicates! {
                insta::assert_snapshot!(rows.join("\n"), @r#"
                getTicket ticket_id!:string language:"en" or "de"
                delete_tickets_ticket_id ticket_id!:string
                buyTicket name!:string day!:string or null seats:array of integer
                put_poster body:string
                "#);
            }
            assert_eq!(server.tools[0].annotations().read_only, Some(true));
        }
    }

    #[test]
    fn a_schema_that_holds_itself_ends() {
        let text = json!({
            "openapi": "3.0.0",
            "info": {"title": "Loop"},
            "paths": {"/x": {"post": {"requestBody": {"content": {"application/json": {
                "schema": {"$ref": "#/components/schemas/Node"}}}}}}},
            "components": {"schemas": {
                "Node": {"type": "object", "properties": {
                    "left": {"$ref": "#/components/schemas/Node"},
                    "right": {"$ref": "#/components/schemas/Node"}}},
            }},
        });
        let imported = imported("loop.json", text.to_string());
        assert_eq!(imported.servers[0].tools[0].input().arguments().len(), 2);
    }

    #[test]
    fn an_older_version_is_refused() {
        let document = Document {
            name: "old.json".to_owned(),
            text: json!({"swagger": "2.0", "paths": {}}).to_string(),
        };
        let imported = read(Format::OpenApi, &[document]);
        assert_eq!(imported.report.counts.documents_refused, 1);
    }
}
