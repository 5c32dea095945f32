//! The official MCP Registry: `server.json` in its old spelling (`snake_case`) and the current one
//! (`camelCase`), alone, in lists, or in pages of `GET /v0/servers`.

use serde_json::Value;

use crate::catalog::import::NoteKind;
use crate::catalog::import::docker::owner_of;
use crate::catalog::import::intake::Intake;
use crate::catalog::import::source::{entries, items, scalar, text, texts};
use crate::catalog::import::wiring::{Commands, Hint, Wiring, speaks_sse};
use crate::domain::{Launch, Server};

/// Deepest place in `_meta` where publishers put definitions of tools.
const META_DEPTH_MAX: usize = 6;

/// Reads one document.
pub(super) fn read(intake: &mut Intake, file: &str, value: &Value) {
    let list = match value {
        Value::Array(list) => Some(list),
        _ => ["/servers", "/data/servers"]
            .iter()
            .find_map(|path| value.pointer(path)?.as_array()),
    };
    match list {
        Some(list) => {
            for (at, entry) in list.iter().enumerate() {
                read_entry(intake, &format!("{file}#/{at}"), entry);
            }
        }
        None => read_entry(intake, file, value),
    }
}

fn read_entry(intake: &mut Intake, place: &str, entry: &Value) {
    let server = entry.get("server").unwrap_or(entry);
    let foreign = text(server, &["name"]);
    let metas: Vec<&Value> = [entry, server]
        .iter()
        .filter_map(|v| v.get("_meta"))
        .collect();
    let status = |key: &str| {
        let official = "io.modelcontextprotocol.registry/official";
        metas.iter().find_map(|meta| meta.get(official)?.get(key))
    };
    let tools = tools_of(server, &metas);
    let removed = [Some(&server["status"]), status("status")];
    if removed
        .into_iter()
        .flatten()
        .any(|status| status == "deleted")
    {
        intake.refuse_server(place, foreign, tools.len(), "its publisher has deleted it");
        return;
    }
    let latest = [
        status("isLatest"),
        status("is_latest"),
        server.pointer("/version_detail/is_latest"),
    ];
    if latest.into_iter().flatten().any(|latest| latest == false) {
        let why = "there is a later version of it";
        if tools.is_empty() {
            intake.merge_server(place, foreign, why);
        } else {
            intake.refuse_server(place, foreign, tools.len(), why);
        }
        return;
    }
    let Some(name) = intake.name(place, foreign, tools.len()) else {
        return;
    };
    let placed = tools.iter().enumerate();
    let placed = placed.map(|(at, tool)| (format!("{place}#/tools/{at}"), *tool));
    let tools = intake.tools(&name, placed.collect());
    let mut read = Server::new(name.clone(), tools);
    read.title = match text(server, &["title"]) {
        "" => foreign.rsplit('/').next().unwrap_or(foreign),
        title => title,
    }
    .into();
    read.description = text(server, &["description"]).into();
    read.owner = owner_of(text(&server["repository"], &["url"])).into();
    read.provenance.version = match text(server, &["version"]) {
        "" => text(&server["version_detail"], &["version"]),
        version => version,
    }
    .into();
    for meta in &metas {
        for (_, publisher) in meta.as_object().into_iter().flatten() {
            let display = &publisher["display"];
            if read.category.is_empty() {
                read.category = text(display, &["category"]).into();
            }
            read.tags
                .extend(texts(display, "tags").into_iter().map(Into::into));
        }
    }
    let (launch, wiring) = wire(&read, server);
    for (kind, why) in wiring.finish(&mut read, launch) {
        intake.note(kind, place, name.as_str(), why);
    }
    intake.take(place, read);
}

/// Definitions, or names where there are no definitions, wherever a publisher put them.
fn tools_of<'a>(server: &'a Value, metas: &[&'a Value]) -> Vec<&'a Value> {
    let own = items(server, "tools");
    if !own.is_empty() {
        return own.iter().collect();
    }
    ["tool_definitions", "tools"]
        .iter()
        .find_map(|key| metas.iter().find_map(|meta| find(meta, key, 0)))
        .map(|list| list.iter().collect())
        .unwrap_or_default()
}

fn find<'a>(value: &'a Value, key: &str, depth: usize) -> Option<&'a Vec<Value>> {
    let map = value.as_object().filter(|_| depth < META_DEPTH_MAX)?;
    let here = map.get(key).and_then(Value::as_array);
    here.filter(|list| !list.is_empty())
        .or_else(|| map.values().find_map(|inner| find(inner, key, depth + 1)))
}

/// The first way of starting it that we have: a package, then a remote endpoint.
fn wire(read: &Server, server: &Value) -> (Option<Launch>, Wiring) {
    let fresh = || Wiring::new(&read.name, Commands::Runners);
    let mut failed: Option<Wiring> = None;
    for package in items(server, "packages") {
        let mut wiring = fresh();
        if let Some(launch) = wire_package(&mut wiring, package) {
            return (Some(launch), wiring);
        }
        failed = failed.or(Some(wiring));
    }
    let mut remotes: Vec<&Value> = items(server, "remotes").iter().collect();
    remotes.sort_by_key(|remote| {
        let transport = text(remote, &["type", "transport_type"]);
        speaks_sse(text(remote, &["url"]), transport)
    });
    for remote in remotes {
        let mut wiring = fresh();
        if let Some(launch) = wire_remote(&mut wiring, remote) {
            return (Some(launch), wiring);
        }
        failed = failed.or(Some(wiring));
    }
    (None, failed.unwrap_or_else(fresh))
}

fn hint_of(value: &Value) -> Hint {
    Hint {
        slot: None,
        description: text(value, &["description"]).to_owned(),
        required: ["isRequired", "is_required"]
            .iter()
            .find_map(|key| value.get(key)?.as_bool()),
        secret: ["isSecret", "is_secret"]
            .iter()
            .find_map(|key| value.get(key)?.as_bool()),
        default: value.get("default").and_then(scalar),
    }
}

fn wire_package(wiring: &mut Wiring, package: &Value) -> Option<Launch> {
    let kind = text(package, &["registryType", "registry_type", "registry_name"]);
    let id = text(package, &["identifier", "name"]);
    let version = text(package, &["version"]);
    let transport = text(&package["transport"], &["type"]);
    if !matches!(transport, "" | "stdio") {
        let why = format!("its package speaks `{transport}`, which needs a running service");
        wiring.say(NoteKind::Noted, why);
        return None;
    }
    let mut env = Vec::new();
    for key in ["environmentVariables", "environment_variables"] {
        for variable in items(package, key) {
            let name = text(variable, &["name"]).to_owned();
            wiring.hint(&name, hint_of(variable));
            let value = text(variable, &["value"]);
            let value = match value.is_empty() {
                true => format!("${{{name}}}"),
                false => value.to_owned(),
            };
            env.push((name, value));
        }
    }
    let own: Vec<String> = ["packageArguments", "package_arguments"]
        .iter()
        .flat_map(|key| items(package, key))
        .filter_map(|argument| argument_of(wiring, argument))
        .collect();
    let at = |mark: &str| match version {
        "" | "latest" => id.to_owned(),
        version => format!("{id}{mark}{version}"),
    };
    match kind {
        "npm" => {
            let mut args = vec!["-y".to_owned(), at("@")];
            args.extend(own);
            wiring.stdio("npx", &args, &env)
        }
        "pypi" => {
            let mut args = vec![at("==")];
            args.extend(own);
            wiring.stdio("uvx", &args, &env)
        }
        "oci" | "docker" => {
            let last = id.rsplit('/').next().unwrap_or_default();
            let image = match last.contains([':', '@']) {
                true => id.to_owned(),
                false => at(":"),
            };
            wiring.image(&image, &own, &env)
        }
        _ => {
            let why = format!("its package is of kind `{kind}`, which we do not start");
            wiring.say(NoteKind::Noted, why);
            None
        }
    }
}

/// One argument of a command line. A named one is a single word, so that it goes away whole when
/// its value is not set.
fn argument_of(wiring: &mut Wiring, argument: &Value) -> Option<String> {
    let (name, value) = (text(argument, &["name"]), text(argument, &["value"]));
    let hint = hint_of(argument);
    let is_optional = hint.required != Some(true);
    let value = if !value.is_empty() {
        for (variable, more) in entries(argument, "variables") {
            wiring.hint(variable, hint_of(more));
        }
        value.to_owned()
    } else if let (Some(default), true) = (&hint.default, is_optional) {
        default.clone()
    } else {
        let shown = match text(argument, &["valueHint", "value_hint"]) {
            "" => name.trim_start_matches('-'),
            shown => shown,
        };
        if shown.is_empty() {
            return None;
        }
        let required = Some(!is_optional);
        wiring.hint(shown, Hint { required, ..hint });
        format!("{{{shown}}}")
    };
    match (name, &*value) {
        ("", value) => Some(value.to_owned()),
        (name, "") => Some(name.to_owned()),
        (name, value) => Some(format!("{name}={value}")),
    }
}

fn wire_remote(wiring: &mut Wiring, remote: &Value) -> Option<Launch> {
    for (variable, hint) in entries(remote, "variables") {
        wiring.hint(variable, hint_of(hint));
    }
    let mut headers = Vec::new();
    for header in items(remote, "headers") {
        let name = text(header, &["name"]).to_owned();
        for (variable, hint) in entries(header, "variables") {
            wiring.hint(variable, hint_of(hint));
        }
        let value = match text(header, &["value"]) {
            "" => {
                wiring.hint(&name, hint_of(header));
                format!("${{{name}}}")
            }
            value => value.to_owned(),
        };
        headers.push((name, value));
    }
    let transport = text(remote, &["type", "transport_type"]);
    wiring.remote(text(remote, &["url"]), transport, &headers)
}

#[cfg(test)]
mod tests {
    use crate::catalog::import::{Document, Format, read};

    #[test]
    fn both_spellings_and_pages_are_read() {
        let path = "tests/data/import/official.json";
        let text = std::fs::read_to_string(path).unwrap();
        let name = path.to_owned();
        let imported = read(Format::OfficialRegistry, &[Document { name, text }]);
        assert!(imported.report.counts.balance());
        let rows: Vec<String> = imported
            .servers
            .iter()
            .map(|server| {
                let launch = crate::catalog::export::server_json(server)["launch"].clone();
                format!("{} {} tools {launch}", server.name, server.tools.len())
            })
            .collect();
        insta::assert_snapshot!(rows.join("\n"), @r#"
        io-example-lighthouse 1 tools {"stdio":{"command":"npx","args":["-y","@coast/lighthouse@2.1.0","{{io-example-lighthouse.lamp_id}}","--colour=white","--speed={{io-example-lighthouse.speed}}"],"env":{"LAMP_KEY":"{{secret:io-example-lighthouse.lamp_key}}","LAMP_LEVEL":"{{io-example-lighthouse.lamp_level}}"}}}
        io-example-buoy 0 tools {"stdio":{"command":"uvx","args":["buoy-mcp==0.3.0"],"env":{"BUOY_TOKEN":"{{secret:io-example-buoy.buoy_token}}"}}}
        io-example-tide 0 tools {"http":{"url":"https://tide.example/{{io-example-tide.region}}/mcp","headers":{"X-Api-Key":"{{secret:io-example-tide.x_api_key}}"}}}
        "#);
        let notes: Vec<String> = imported
            .report
            .notes
            .iter()
            .map(ToString::to_string)
            .collect();
        insta::assert_snapshot!(notes.join("\n"), @r#"
        tests/data/import/official.json#/1: merged io.example/lighthouse: there is a later version of it
        tests/data/import/official.json#/2: refused io.example/wreck: its publisher has deleted it
        tests/data/import/official.json#/3: empty io-example-buoy: it lists no tools; asking it would
        tests/data/import/official.json#/4: empty io-example-tide: it lists no tools; asking it would
        tests/data/import/official.json#/5: noted io-example-bundle: its package is of kind `mcpb`, which we do not start
        tests/data/import/official.json#/5: refused io.example/bundle: it has no tools and no way to start it and ask
        tests/data/import/official.json#/6: refused : its name has no letter or digit that a server name may have
        "#);
    }
}
