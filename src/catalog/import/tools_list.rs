//! Results of `tools/list`, bare or in an envelope: of JSON-RPC, of those who recorded them, or
//! one tool a line with the name of its server.

use serde_json::{Value, json};

use crate::catalog::import::intake::Intake;
use crate::catalog::import::source::{lines, parse, text};
use crate::catalog::import::wiring::{Commands, Wiring};
use crate::catalog::import::{Document, normal_form};
use crate::domain::Server;

/// Key in the `_meta` of a tool that names its server, in lists that we wrote.
pub(in crate::catalog) const SERVER_KEY: &str = "toolcrib/server";
/// Key in the `_meta` of a list that holds its servers, in lists that we wrote.
pub(in crate::catalog) const SERVERS_KEY: &str = "toolcrib/servers";

/// Tools of one server, and what stands about it beside them.
struct Group<'a> {
    server: String,
    head: &'a Value,
    tools: Vec<(String, &'a Value)>,
}

/// Reads documents that each hold the tools of one server or of several.
pub(super) fn read(intake: &mut Intake, documents: &[&Document]) {
    for document in documents {
        let file = &document.name;
        if is_lines(file) {
            read_lines(intake, document);
            continue;
        }
        match parse(document) {
            Ok(value) => read_value(intake, file, &value),
            Err(why) => intake.refuse_document(file, why),
        }
    }
}

pub(super) fn is_lines(file: &str) -> bool {
    [".jsonl", ".ndjson"].iter().any(|end| file.ends_with(end))
}

fn read_lines(intake: &mut Intake, document: &Document) {
    let mut tools = Vec::new();
    for (line, value) in lines(&document.text) {
        match value {
            Ok(value) => tools.push((format!("{}:{line}", document.name), value)),
            Err(why) => intake.refuse_document(&format!("{}:{line}", document.name), why),
        }
    }
    let placed = tools.iter().map(|(place, tool)| (place.clone(), tool));
    let head = json!({});
    take_groups(intake, &document.name, &head, placed.collect());
}

fn read_value(intake: &mut Intake, file: &str, value: &Value) {
    // A list of pages is read as one list.
    let pages: Vec<(String, &Value)> = match value {
        Value::Array(pages) if pages.first().is_some_and(|page| list_of(page).is_some()) => pages
            .iter()
            .enumerate()
            .map(|(at, page)| (format!("{file}#/{at}"), page))
            .collect(),
        _ => vec![(format!("{file}#"), value)],
    };
    let mut tools = Vec::new();
    for (place, page) in &pages {
        let Some((path, list)) = list_of(page) else {
            intake.refuse_document(place, "it holds no list of tools");
            continue;
        };
        let placed = list.iter().enumerate();
        tools.extend(placed.map(|(at, tool)| (format!("{place}{path}/{at}"), tool)));
    }
    let none = Value::Null;
    let head = pages.first().map_or(&none, |(_, page)| *page);
    let servers = ["/_meta", "/result/_meta"]
        .iter()
        .find_map(|path| head.pointer(path)?.get(SERVERS_KEY));
    match servers {
        Some(servers) => take_our_own(intake, file, servers, &tools),
        None => take_groups(intake, file, head, tools),
    }
}

fn list_of(page: &Value) -> Option<(&'static str, &Vec<Value>)> {
    ["", "/tools", "/result/tools", "/data/tools"]
        .into_iter()
        .find_map(|path| Some((path, page.pointer(path)?.as_array()?)))
}

/// Servers as [`crate::catalog::export::tools_list`] writes them beside the list.
fn take_our_own(intake: &mut Intake, file: &str, servers: &Value, tools: &[(String, &Value)]) {
    for (name, head) in servers.as_object().into_iter().flatten() {
        let own = tools
            .iter()
            .filter(|(_, tool)| tool["_meta"][SERVER_KEY] == name.as_str());
        let mut whole = head.clone();
        if let Value::Object(map) = &mut whole {
            map.insert("name".to_owned(), name.as_str().into());
            let own: Vec<Value> = own.map(|(_, tool)| (*tool).clone()).collect();
            map.insert("tools".to_owned(), own.into());
        }
        normal_form::read_server(intake, &format!("{file}#/{name}"), &whole);
    }
    let strays = tools.iter().filter(|(_, tool)| {
        let server = tool["_meta"][SERVER_KEY].as_str().unwrap_or_default();
        servers.get(server).is_none()
    });
    let strays: Vec<(String, &Value)> = strays.cloned().collect();
    if !strays.is_empty() {
        take_groups(intake, file, &Value::Null, strays);
    }
}

fn take_groups(intake: &mut Intake, file: &str, head: &Value, tools: Vec<(String, &Value)>) {
    let own = own_name(head).unwrap_or_else(|| stem(file));
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (place, tool) in tools {
        let server = match tool.get("server").and_then(Value::as_str) {
            Some(server) => server.to_owned(),
            None => own.clone(),
        };
        match groups.iter_mut().find(|group| group.server == server) {
            Some(group) => group.tools.push((place, tool)),
            None => groups.push(Group {
                server,
                head: tool,
                tools: vec![(place, tool)],
            }),
        }
    }
    if groups.is_empty() {
        intake.refuse_document(file, "its list of tools is empty");
    }
    for group in groups {
        let is_own = group.server == own;
        let about = if is_own { head } else { group.head };
        take_group(intake, file, &group, about);
    }
}

fn take_group(intake: &mut Intake, file: &str, group: &Group<'_>, about: &Value) {
    let Some(name) = intake.name(file, &group.server, group.tools.len()) else {
        return;
    };
    let tools = intake.tools(&name, group.tools.clone());
    let mut server = Server::new(name.clone(), tools);
    server.title = text(about, &["server_title"]).into();
    server.description = text(about, &["server_description", "instructions"]).into();
    let version = ["server_info", "serverInfo"]
        .iter()
        .find_map(|key| about.get(key));
    server.provenance.version = version.map_or("", |info| text(info, &["version"])).into();
    let url = text(about, &["url"]);
    if !url.is_empty() {
        let mut wiring = Wiring::new(&name, Commands::Runners);
        let launch = wiring.remote(url, text(about, &["transport"]), &[]);
        for (kind, why) in wiring.finish(&mut server, launch) {
            intake.note(kind, file, name.as_str(), why);
        }
    }
    intake.take(file, server);
}

fn own_name(head: &Value) -> Option<String> {
    let name = [
        "/server",
        "/server_info/name",
        "/serverInfo/name",
        "/result/serverInfo/name",
    ]
    .iter()
    .find_map(|path| head.pointer(path)?.as_str())?;
    (!name.trim().is_empty()).then(|| name.trim().to_owned())
}

/// `github` of `a/github.tools-list.json`.
fn stem(file: &str) -> String {
    let last = file.rsplit('/').next().unwrap_or(file);
    let stem = last.split('.').next().unwrap_or(last);
    let generic = ["tools", "tools-list", "list", ""].contains(&stem);
    match file.rsplit('/').nth(1) {
        Some(folder) if generic => folder.to_owned(),
        _ => stem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::import::{Format, Imported, read};

    fn check(name: &str, text: &str, expected: &str) -> Imported {
        let document = Document {
            name: name.to_owned(),
            text: text.to_owned(),
        };
        let imported = read(Format::ToolsList, &[document]);
        assert!(imported.report.counts.balance());
        let rows: Vec<String> = imported
            .servers
            .iter()
            .flat_map(|server| {
                let row = |tool: &crate::domain::Tool| format!("{}/{}", server.name, tool.name());
                server.tools.iter().map(row)
            })
            .collect();
        assert_eq!(rows.join(" "), expected, "{name}");
        imported
    }

    #[test]
    fn every_envelope_gives_its_tools() {
        check(
            "a/bakery.tools.json",
            r#"[{"name": "knead"}]"#,
            "bakery/knead",
        );
        check(
            "a/tools.json",
            r#"{"tools": [{"name": "knead"}]}"#,
            "a/knead",
        );
        let rpc = r#"{"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "bake"}]}}"#;
        check("oven.json", rpc, "oven/bake");
        let pages =
            r#"[{"tools": [{"name": "a"}], "nextCursor": "x"}, {"tools": [{"name": "b"}]}]"#;
        check("pages.json", pages, "pages/a pages/b");
        let lines =
            "{\"server\": \"x\", \"name\": \"a\"}\n\n{\"server\": \"y\", \"name\": \"a\"}\n";
        check("eval.tools.jsonl", lines, "x/a y/a");
        let named =
            r#"{"server_info": {"name": "Old Mill", "version": "1.2"}, "tools": ["grind"]}"#;
        let imported = check("m.json", named, "old-mill/grind");
        assert_eq!(&*imported.servers[0].provenance.version, "1.2");
        let url = r#"{"server": "r", "url": "https://r.example/mcp", "tools": [{"name": "a"}]}"#;
        let imported = check("m.json", url, "r/a");
        assert!(imported.servers[0].launch.is_some());
    }

    #[test]
    fn a_list_without_tools_is_refused() {
        let imported = check("x.json", r#"{"tools": []}"#, "");
        assert_eq!(
            imported.report.notes[0].to_string(),
            "x.json: refused document: its list of tools is empty"
        );
    }
}
