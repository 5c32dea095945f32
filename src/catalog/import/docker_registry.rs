//! A checkout of Docker's registry: a folder a server, with `server.yaml` and `tools.json`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::catalog::import::intake::Intake;
use crate::catalog::import::source::{items, parse, text};
use crate::catalog::import::{Document, docker};

#[derive(Default)]
struct Folder<'a> {
    head: Option<(&'a str, Value)>,
    tools: Option<(&'a str, Value)>,
}

/// Reads the folders in the order of their names. Tools without a `server.yaml` make a server
/// named after their folder.
pub(super) fn read(intake: &mut Intake, documents: &[&Document]) {
    let mut folders: BTreeMap<&str, Folder<'_>> = BTreeMap::new();
    for document in documents {
        let (folder, file) = document
            .name
            .rsplit_once('/')
            .unwrap_or(("", &document.name));
        let value = match parse(document) {
            Ok(value) => value,
            Err(why) => {
                intake.refuse_document(&document.name, why);
                continue;
            }
        };
        let entry = folders.entry(folder).or_default();
        match file {
            "server.yaml" | "server.yml" => entry.head = Some((&document.name, value)),
            "tools.json" => entry.tools = Some((&document.name, value)),
            _ => {
                let why = "a registry folder holds `server.yaml` and `tools.json` only";
                intake.refuse_document(&document.name, why);
            }
        }
    }
    for (path, folder) in folders {
        let name = path.rsplit('/').next().unwrap_or_default();
        read_folder(intake, name, &folder);
    }
}

fn read_folder(intake: &mut Intake, name: &str, folder: &Folder<'_>) {
    let listed = folder.tools.as_ref().and_then(|(file, list)| {
        let inner = list.get("tools").unwrap_or(list);
        if !inner.is_array() {
            intake.refuse_document(file, "it is no list of tools");
        }
        inner.as_array().map(Vec::as_slice)
    });
    let bare = json!({ "name": name });
    let (file, head) = match (&folder.head, &folder.tools) {
        (Some((file, head)), _) => (*file, head),
        (None, Some((file, _))) => (*file, &bare),
        (None, None) => return,
    };
    if text(head, &["name"]).is_empty() {
        let tools = listed.map_or(0, <[Value]>::len);
        intake.refuse_server(file, name, tools, "it has no name");
        return;
    }
    let own = items(head, "tools");
    let tools = match listed {
        Some(listed) if !listed.is_empty() => listed,
        _ => own,
    };
    docker::read_server(intake, file, head, tools);
}

#[cfg(test)]
mod tests {
    use crate::catalog::import::{Document, Format, read};

    fn document(name: &str, text: &str) -> Document {
        Document {
            name: name.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_folder_is_a_server() {
        let documents = [
            document(
                "servers/kiln/server.yaml",
                "name: kiln\nimage: pottery/kiln:1.0\ntype: server\nabout: {title: Kiln}\n\
                 run: {command: [--heat, '{{kiln.heat}}'], volumes: ['{{kiln.dir}}:/clay']}\n\
                 config: {parameters: {type: object, properties: {heat: {type: string}}}}\n",
            ),
            document(
                "servers/kiln/tools.json",
                r#"[{"name": "fire", "arguments": []}]"#,
            ),
            document("servers/lost/tools.json", r#"[{"name": "glaze"}]"#),
            document("servers/bad/server.yaml", "a: [\n"),
            document("servers/bad/notes.json", "{}"),
        ];
        let imported = read(Format::DockerRegistry, &documents);
        assert!(imported.report.counts.balance());
        let names: Vec<&str> = imported.servers.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["kiln", "lost"]);
        assert_eq!(imported.servers[0].config[0].name.as_str(), "kiln.heat");
        assert!(imported.servers[0].config[0].optional);
        assert_eq!(imported.report.counts.documents_refused, 2);
        let notes: Vec<String> = imported
            .report
            .notes
            .iter()
            .map(ToString::to_string)
            .collect();
        let volume = notes.iter().any(|note| note.contains("is not mounted"));
        assert!(volume, "{notes:?}");
    }
}
