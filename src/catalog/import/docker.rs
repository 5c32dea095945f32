//! Docker's compiled catalog, `version: 2` or `3`, and what it shares with registry checkouts.
//!
//! A compiled entry is brought into the shape of a `server.yaml`, so that both are read alike.
//! Where it lists tools by name only, a document named like its `toolsUrl` completes them.

use serde_json::{Map, Value, json};

use crate::catalog::import::intake::Intake;
use crate::catalog::import::source::{entries, items, parse, scalar, text, texts};
use crate::catalog::import::wiring::{Commands, Hint, Wiring};
use crate::catalog::import::{Document, NoteKind, normal_form};
use crate::domain::{Server, ServerName};

/// Most lists of tools that complete one catalog.
const URLS_MAX: usize = 2_000;
/// Key of what Docker's format has no word for, in catalogs that we wrote.
pub(in crate::catalog) const EXTENSION: &str = "x-toolcrib";

/// Reads compiled catalogs, and lists of tools that belong to them.
pub(super) fn read(intake: &mut Intake, documents: &[&Document]) {
    let mut catalogs = Vec::new();
    let mut lists: Vec<(&str, Value)> = Vec::new();
    for document in documents {
        match parse(document) {
            Ok(value) if value.get("registry").is_some_and(Value::is_object) => {
                catalogs.push((&document.name, value));
            }
            Ok(value @ Value::Array(_)) => lists.push((&document.name, value)),
            Ok(_) => intake.refuse_document(&document.name, "it has no map `registry`"),
            Err(why) => intake.refuse_document(&document.name, why),
        }
    }
    for (file, catalog) in catalogs {
        for (name, entry) in entries(&catalog, "registry") {
            let place = format!("{file}#/registry/{name}");
            let url = text(entry, &["toolsUrl"]);
            let listed = lists
                .iter()
                .find(|(list, _)| !url.is_empty() && is_same_file(list, url))
                .map(|(_, list)| list);
            read_entry(intake, &place, name, entry, listed);
        }
    }
}

/// The `toolsUrl` of each server whose tools are known by name only. Which of them may be fetched
/// is for who fetches to say.
pub(super) fn tools_urls(catalog: &Value) -> Vec<String> {
    let mut urls: Vec<String> = entries(catalog, "registry")
        .filter(|(_, entry)| items(entry, "tools").iter().all(is_name_only))
        .map(|(_, entry)| text(entry, &["toolsUrl"]))
        .filter(|url| url.starts_with("https://") || url.starts_with("http://"))
        .map(str::to_owned)
        .take(URLS_MAX)
        .collect();
    urls.sort();
    urls.dedup();
    urls
}

/// Whether a document is what a URL names: the URL itself, or a file of its last name.
fn is_same_file(document: &str, url: &str) -> bool {
    let last = |path: &str| {
        let path = path.split('?').next().unwrap_or_default();
        let mut parts = path.rsplit('/');
        let file = parts.next().unwrap_or_default().to_owned();
        (parts.next().unwrap_or_default().to_owned(), file)
    };
    document == url || last(document) == last(url)
}

fn read_entry(intake: &mut Intake, place: &str, name: &str, entry: &Value, listed: Option<&Value>) {
    let own = items(entry, "tools");
    let tools = match listed.and_then(Value::as_array) {
        Some(listed) if own.iter().all(is_name_only) => listed,
        _ => own,
    };
    if let Some(head) = entry.get(EXTENSION) {
        let mut whole = head.clone();
        if let Value::Object(map) = &mut whole {
            map.insert("name".to_owned(), name.into());
            map.insert("tools".to_owned(), tools.into());
        }
        normal_form::read_server(intake, place, &whole);
        return;
    }
    if !entry.is_object() {
        intake.refuse_server(place, name, 0, "it is no map");
        return;
    }
    let shape = server_yaml(name, entry);
    read_server(intake, place, &shape, tools);
}

fn is_name_only(tool: &Value) -> bool {
    let more = ["arguments", "inputSchema", "parameters"];
    more.iter().all(|key| tool.get(*key).is_none())
}

/// The shape of `server.yaml` for a compiled entry.
fn server_yaml(name: &str, entry: &Value) -> Value {
    let part = |key: &str| entry.get(key).cloned().unwrap_or_default();
    let mut properties = Map::new();
    let mut required = Vec::new();
    for group in items(entry, "config") {
        for (key, property) in entries(group, "properties") {
            properties.insert(key.clone(), property.clone());
        }
        required.extend(texts(group, "required"));
    }
    let metadata = part("metadata");
    json!({
        "name": name,
        "image": part("image"),
        "type": part("type"),
        "remote": part("remote"),
        "meta": { "category": metadata["category"], "tags": metadata["tags"] },
        "about": { "title": part("title"), "description": part("description") },
        "source": { "project": part("upstream") },
        "license": metadata["license"],
        "owner": metadata["owner"],
        "run": { "command": part("command"), "volumes": part("volumes") },
        "config": {
            "secrets": part("secrets"),
            "env": part("env"),
            "parameters": { "properties": properties, "required": required },
        },
    })
}

/// Reads a server in the shape of `server.yaml`; the tools stand beside it.
pub(super) fn read_server(intake: &mut Intake, place: &str, head: &Value, tools: &[Value]) {
    let foreign = text(head, &["name"]);
    let Some(name) = intake.name(place, foreign, tools.len()) else {
        return;
    };
    let placed = tools
        .iter()
        .enumerate()
        .map(|(at, tool)| (format!("{place}#/tools/{at}"), tool));
    let mut server = Server::new(name.clone(), intake.tools(&name, placed.collect()));
    let (about, meta, source) = (&head["about"], &head["meta"], &head["source"]);
    server.title = text(about, &["title"]).into();
    server.description = text(about, &["description"]).into();
    server.category = text(meta, &["category"]).into();
    server.tags = texts(meta, "tags").into_iter().map(Into::into).collect();
    server.owner = match text(head, &["owner"]) {
        "" => owner_of(text(source, &["project"])),
        owner => owner,
    }
    .into();
    server.provenance.license = text(head, &["license"]).into();
    server.provenance.version = text(source, &["commit"]).into();
    for (kind, why) in wire(&mut server, head) {
        intake.note(kind, place, name.as_str(), why);
    }
    intake.take(place, server);
}

/// `acme` of `https://github.com/acme/server`.
pub(super) fn owner_of(url: &str) -> &str {
    url.split("://")
        .nth(1)
        .and_then(|rest| rest.split('/').nth(1))
        .unwrap_or_default()
}

fn wire(server: &mut Server, head: &Value) -> Vec<(NoteKind, String)> {
    let name = server.name.clone();
    let mut wiring = Wiring::new(&name, Commands::Runners);
    let config = &head["config"];
    let mut env: Vec<(String, String)> = Vec::new();
    for secret in items(config, "secrets") {
        let (slot, variable) = (text(secret, &["name"]), text(secret, &["env"]));
        let hint = Hint {
            slot: slot.parse().ok(),
            description: text(secret, &["description"]).to_owned(),
            required: secret["required"].as_bool(),
            secret: Some(true),
            default: None,
        };
        for known in [slot, variable] {
            wiring.hint(known, hint.clone());
        }
        if !variable.is_empty() {
            env.push((variable.to_owned(), format!("${{{variable}}}")));
        }
    }
    for (key, property) in entries(&config["parameters"], "properties") {
        hint_parameter(&mut wiring, &name, config, (key, property));
    }
    for variable in items(config, "env") {
        let known = text(variable, &["name", "env"]).to_owned();
        let value = ["value", "default"]
            .iter()
            .find_map(|key| scalar(variable.get(key)?));
        env.push((known, value.unwrap_or_default()));
    }
    for (variable, value) in entries(&head["run"], "env") {
        env.push((variable.clone(), scalar(value).unwrap_or_default()));
    }
    for volume in texts(&head["run"], "volumes") {
        let why = format!("volume `{volume}` is not mounted: no tenant reads the host's files");
        wiring.say(NoteKind::Noted, why);
    }
    let remote = &head["remote"];
    let launch = if remote.is_object() {
        let headers: Vec<(String, String)> = entries(remote, "headers")
            .filter_map(|(name, value)| Some((name.clone(), scalar(value)?)))
            .collect();
        wiring.remote(
            text(remote, &["url"]),
            text(remote, &["transport_type"]),
            &headers,
        )
    } else if text(head, &["type"]) == "poci" {
        let why = "each of its tools is a container of its own: found but not run";
        wiring.say(NoteKind::Noted, why);
        None
    } else {
        let args = texts(&head["run"], "command");
        wiring.image(text(head, &["image"]), &args, &env)
    };
    wiring.finish(server, launch)
}

/// `team_id` of the parameters is `{{slack.team_id}}` in the values.
fn hint_parameter(
    wiring: &mut Wiring,
    name: &ServerName,
    config: &Value,
    (key, property): (&str, &Value),
) {
    let required = texts(&config["parameters"], "required");
    let hint = Hint {
        slot: None,
        description: text(property, &["description"]).to_owned(),
        required: Some(required.iter().any(|known| known == key)),
        secret: Some(false),
        default: property.get("default").and_then(scalar),
    };
    wiring.hint(&format!("{name}.{key}"), hint.clone());
    // Some entries use another prefix than their name; the last part is the same.
    for variable in items(config, "env") {
        let value = text(variable, &["value"]);
        let inside = value.trim_start_matches("{{").trim_end_matches("}}");
        if inside.rsplit('.').next() == Some(key) {
            wiring.hint(inside.trim(), hint.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::import::{Format, Imported};
    use crate::domain::Launch;

    fn fixture(name: &str) -> Document {
        let path = format!("{}/tests/data/import/{name}", env!("CARGO_MANIFEST_DIR"));
        Document {
            name: name.to_owned(),
            text: std::fs::read_to_string(path).unwrap(),
        }
    }

    fn imported(documents: &[Document]) -> Imported {
        let imported = crate::catalog::import::read(Format::Docker, documents);
        assert!(imported.report.counts.balance());
        imported
    }

    #[test]
    fn a_compiled_catalog_gives_servers_with_settings() {
        let imported = imported(&[
            fixture("docker-catalog.yaml"),
            fixture("parcels/tools.json"),
        ]);
        let lines: Vec<String> = imported
            .report
            .notes
            .iter()
            .map(ToString::to_string)
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        docker-catalog.yaml#/registry/parcels#/tools/2: refused parcels/tool without a name: it has no name
        docker-catalog.yaml#/registry/weights: noted weights: each of its tools is a container of its own: found but not run
        docker-catalog.yaml#/registry/nothing: noted nothing: `` is no image: found but not run
        docker-catalog.yaml#/registry/nothing: refused nothing: it has no tools and no way to start it and ask
        docker-catalog.yaml#/registry/broken: refused broken: it is no map
        "#);
        let chat = &imported.servers[0];
        assert_eq!(chat.name.as_str(), "harbour-chat");
        assert_eq!(chat.secrets[0].name.as_str(), "harbour.token");
        assert_eq!(chat.config[0].name.as_str(), "harbour-chat.dock");
        assert!(matches!(chat.launch, Some(Launch::Docker { .. })));
        let parcels = &imported.servers[1];
        assert_eq!(
            parcels.tools[0].input().arguments()[0].name.as_ref(),
            "number"
        );
    }

    #[test]
    fn a_catalog_names_the_lists_that_complete_it() {
        let urls = crate::catalog::import::tools_urls(&fixture("docker-catalog.yaml"));
        assert_eq!(urls, ["https://catalog.example/parcels/tools.json"]);
    }

    #[test]
    fn without_its_list_a_tool_known_by_name_takes_anything() {
        let imported = imported(&[fixture("docker-catalog.yaml")]);
        let parcels = &imported.servers[1];
        assert_eq!(parcels.tools.len(), 2);
        assert_eq!(parcels.tools[0].input().arguments(), []);
    }
}
