//! The servers of `LiveMCPBench`: entries with a client configuration and the tools of each of
//! its servers.

use serde_json::Value;

use crate::catalog::import::client_config;
use crate::catalog::import::intake::Intake;
use crate::catalog::import::source::{entries, items, text};
use crate::catalog::import::wiring::Commands;
use crate::domain::Server;

/// Reads one list of entries.
pub(super) fn read(intake: &mut Intake, file: &str, value: &Value) {
    let Some(list) = value.as_array() else {
        intake.refuse_document(file, "it is no list of servers");
        return;
    };
    for (at, entry) in list.iter().enumerate() {
        let place = format!("{file}#/{at}");
        let mut names: Vec<&String> = entries(&entry["config"], "mcpServers")
            .chain(entries(entry, "tools"))
            .map(|(name, _)| name)
            .collect();
        let mut seen = std::collections::HashSet::new();
        names.retain(|name| seen.insert(name.as_str()));
        if names.is_empty() {
            let foreign = text(entry, &["name"]);
            intake.refuse_server(&place, foreign, 0, "it configures no server");
        }
        for name in names {
            read_server(intake, &place, entry, name);
        }
    }
}

fn read_server(intake: &mut Intake, place: &str, entry: &Value, foreign: &str) {
    let listed = items(&entry["tools"][foreign], "tools");
    let Some(name) = intake.name(place, foreign, listed.len()) else {
        return;
    };
    let placed = listed.iter().enumerate();
    let placed = placed.map(|(at, tool)| (format!("{place}/tools/{foreign}/{at}"), tool));
    let mut server = Server::new(name.clone(), intake.tools(&name, placed.collect()));
    server.title = text(entry, &["name"]).into();
    server.description = text(entry, &["description"]).into();
    server.category = text(entry, &["category"]).into();
    server.owner = text(entry, &["organization"]).into();
    server.provenance.version = text(&entry["tools"][foreign], &["version"]).into();
    let config = &entry["config"]["mcpServers"][foreign];
    for (kind, why) in client_config::wire(&mut server, config, &[], Commands::Runners) {
        intake.note(kind, place, name.as_str(), why);
    }
    intake.take(place, server);
}

#[cfg(test)]
mod tests {
    use crate::catalog::import::{Document, Format, read};

    #[test]
    fn an_entry_gives_the_servers_of_its_configuration() {
        let text = r#"[
            {
                "name": "Weather Station",
                "description": "Reads the sky.",
                "category": "Discovery",
                "config": {"mcpServers": {"sky": {"command": "npx", "args": ["sky-mcp"]}}},
                "tools": {"sky": {"server_name": "sky", "version": "0.2.0", "tools": [
                    {"name": "look_up", "description": "How is it?", "annotations": null,
                     "inputSchema": {"type": "object", "properties": {"place": {"type": "string"}}}}
                ]}}
            },
            {"name": "Nothing", "config": {}}
        ]"#;
        let document = Document {
            name: "bench.json".to_owned(),
            text: text.to_owned(),
        };
        assert_eq!(
            Format::detect("bench.json", text),
            Some(Format::LiveMcpBench)
        );
        let imported = read(Format::LiveMcpBench, &[document]);
        assert!(imported.report.counts.balance());
        let server = &imported.servers[0];
        assert_eq!(
            (server.name.as_str(), &*server.title),
            ("sky", "Weather Station")
        );
        assert_eq!(server.tools.len(), 1);
        let notes: Vec<String> = imported
            .report
            .notes
            .iter()
            .map(ToString::to_string)
            .collect();
        insta::assert_snapshot!(notes.join("\n"), @r#"
        bench.json#/0: noted sky: `sky-mcp` has no exact version
        bench.json#/1: refused Nothing: it configures no server
        "#);
    }
}
