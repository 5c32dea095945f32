//! Files of the mcpm registry: one server each, with installations, arguments and tools.

use serde_json::Value;

use crate::catalog::import::NoteKind;
use crate::catalog::import::intake::Intake;
use crate::catalog::import::source::{entries, items, scalar, text, texts};
use crate::catalog::import::wiring::{Commands, Hint, Wiring, speaks_sse};
use crate::domain::{Launch, Server};

/// Reads one file, or a map or list of them.
pub(super) fn read(intake: &mut Intake, file: &str, value: &Value) {
    match value {
        Value::Array(list) => {
            for (at, entry) in list.iter().enumerate() {
                read_server(intake, &format!("{file}#/{at}"), entry);
            }
        }
        Value::Object(map) if !map.contains_key("name") && map.values().all(Value::is_object) => {
            for (key, entry) in map {
                read_server(intake, &format!("{file}#/{key}"), entry);
            }
        }
        _ => read_server(intake, file, value),
    }
}

fn read_server(intake: &mut Intake, place: &str, entry: &Value) {
    let foreign = text(entry, &["name"]);
    let listed = items(entry, "tools");
    let Some(name) = intake.name(place, foreign, listed.len()) else {
        return;
    };
    let placed = listed.iter().enumerate();
    let placed = placed.map(|(at, tool)| (format!("{place}#/tools/{at}"), tool));
    let mut server = Server::new(name.clone(), intake.tools(&name, placed.collect()));
    server.title = text(entry, &["display_name"]).into();
    server.description = text(entry, &["description"]).into();
    let categories = texts(entry, "categories");
    server.category = categories.first().cloned().unwrap_or_default().into();
    server.tags = texts(entry, "tags").into_iter().map(Into::into).collect();
    server.owner = text(&entry["author"], &["name"]).into();
    server.provenance.license = text(entry, &["license"]).into();
    let (launch, wiring) = wire(&server, entry);
    for (kind, why) in wiring.finish(&mut server, launch) {
        intake.note(kind, place, name.as_str(), why);
    }
    intake.take(place, server);
}

/// The recommended installation that we can start, else the first in the order of how much is
/// known about it: packages, containers, remote endpoints.
fn wire(server: &Server, entry: &Value) -> (Option<Launch>, Wiring) {
    let mut ways: Vec<&Value> = entries(entry, "installations")
        .map(|(_, way)| way)
        .collect();
    ways.sort_by_key(|way| {
        let rank = match text(way, &["command"]) {
            "npx" | "uvx" => 0,
            "docker" => 1,
            "" => 2,
            _ => 3,
        };
        let older = speaks_sse(text(way, &["url"]), text(way, &["transport"]));
        (older, way["recommended"] != true, rank)
    });
    let mut failed: Option<Wiring> = None;
    for way in ways {
        let mut wiring = Wiring::new(&server.name, Commands::Runners);
        for (variable, argument) in entries(entry, "arguments") {
            let hint = Hint {
                description: text(argument, &["description"]).to_owned(),
                required: argument["required"].as_bool(),
                ..Hint::default()
            };
            wiring.hint(variable, hint);
        }
        if let Some(launch) = wire_one(&mut wiring, way) {
            return (Some(launch), wiring);
        }
        failed = failed.or(Some(wiring));
    }
    let none = || {
        let mut wiring = Wiring::new(&server.name, Commands::Runners);
        wiring.say(
            NoteKind::Noted,
            "it names no installation: found but not run",
        );
        wiring
    };
    (None, failed.unwrap_or_else(none))
}

fn wire_one(wiring: &mut Wiring, way: &Value) -> Option<Launch> {
    let pairs = |key: &str| -> Vec<(String, String)> {
        entries(way, key)
            .filter_map(|(name, value)| Some((name.clone(), scalar(value)?)))
            .collect()
    };
    match text(way, &["url"]) {
        "" => {
            let args = texts(way, "args");
            wiring.stdio(text(way, &["command"]), &args, &pairs("env"))
        }
        url => wiring.remote(url, text(way, &["transport"]), &pairs("headers")),
    }
}

#[cfg(test)]
mod tests {
    use crate::catalog::import::{Document, Format, read};

    #[test]
    fn a_file_gives_a_server_and_says_what_was_mended() {
        let path = "tests/data/import/mcpm.json";
        let text = std::fs::read_to_string(path).unwrap();
        let name = path.to_owned();
        let imported = read(Format::Mcpm, &[Document { name, text }]);
        assert!(imported.report.counts.balance());
        let server = &imported.servers[0];
        assert_eq!(server.secrets[0].name.as_str(), "orchard.orchard_key");
        assert_eq!(&*server.provenance.license, "Apache-2.0");
        let tool = &server.tools[0];
        let required: Vec<_> = tool
            .input()
            .arguments()
            .iter()
            .filter(|a| a.required)
            .collect();
        assert_eq!(required.len(), 1);
        let notes: Vec<String> = imported
            .report
            .notes
            .iter()
            .map(ToString::to_string)
            .collect();
        insta::assert_snapshot!(notes.join("\n"), @r#"
        tests/data/import/mcpm.json#/tools/0: repaired orchard/count_apples: its properties stood where the schema should be
        tests/data/import/mcpm.json#/tools/0: repaired orchard/count_apples: types that JSON Schema does not know were replaced
        tests/data/import/mcpm.json#/tools/0: repaired orchard/count_apples: `required` stood beside the schema
        tests/data/import/mcpm.json#/tools/1: repaired orchard/water: `required` stood among the properties
        tests/data/import/mcpm.json#/tools/2: merged orchard/count_apples: a tool of this name is there already; the first one stays
        tests/data/import/mcpm.json#/tools/3: refused orchard/tool without a name: it has no name
        tests/data/import/mcpm.json: noted orchard: `orchard-mcp` has no exact version
        "#);
    }
}
