//! Our normal form: one server a line. It is what `catalog import` keeps, and what others that
//! follow the design write; these may list several launches and name things a little differently.

use serde_json::Value;

use crate::catalog::import::intake::Intake;
use crate::catalog::import::source::{entries, items, json, lines, scalar, text, texts};
use crate::catalog::import::wiring::{Commands, Hint, Wiring, speaks_sse};
use crate::catalog::import::{Document, NoteKind};
use crate::catalog::record::launch_from_json;
use crate::catalog::remote::read_remote;
use crate::domain::{
    ConfigSlot, Launch, Provenance, SecretSlot, Server, SettingName, Template, clean_line,
};

/// Longest description of a setting kept, in characters.
const DESCRIPTION_MAX: usize = 500;

/// Reads JSON Lines, or a JSON array of servers.
pub(super) fn read(intake: &mut Intake, documents: &[&Document]) {
    for document in documents {
        let file = &document.name;
        if document.text.trim_start().starts_with('[') {
            match json(&document.text) {
                Ok(list) => {
                    for (at, server) in list.as_array().into_iter().flatten().enumerate() {
                        read_server(intake, &format!("{file}#/{at}"), server);
                    }
                }
                Err(why) => intake.refuse_document(file, why),
            }
            continue;
        }
        for (line, value) in lines(&document.text) {
            let place = format!("{file}:{line}");
            match value {
                Ok(value) => read_server(intake, &place, &value),
                Err(why) => intake.refuse_server(&place, "line", 0, why),
            }
        }
    }
}

/// Reads one server.
pub(super) fn read_server(intake: &mut Intake, place: &str, value: &Value) {
    let listed = items(value, "tools");
    let foreign = text(value, &["name"]);
    let Some(name) = intake.name(place, foreign, listed.len()) else {
        return;
    };
    let placed = listed.iter().enumerate();
    let placed = placed.map(|(at, tool)| (format!("{place}#/tools/{at}"), tool));
    let mut server = Server::new(name.clone(), intake.tools(&name, placed.collect()));
    server.title = text(value, &["title"]).into();
    server.description = text(value, &["description"]).into();
    server.category = text(value, &["category"]).into();
    server.owner = text(value, &["owner"]).into();
    server.tags = texts(value, "tags").into_iter().map(Into::into).collect();
    let from = &value["provenance"];
    server.provenance = Provenance {
        source: text(from, &["source"]).into(),
        version: text(from, &["version"]).into(),
        license: text(from, &["license", "server_license"]).into(),
    };
    let said = match &value["launch"] {
        Value::Array(ways) => wire_foreign(&mut server, value, ways),
        launch => wire_own(&mut server, value, launch),
    };
    for (kind, why) in said {
        intake.note(kind, place, name.as_str(), why);
    }
    intake.take(place, server);
}

/// Launch and settings as we write them. Settings that do not fit the launch cost the launch.
fn wire_own(server: &mut Server, value: &Value, launch: &Value) -> Vec<(NoteKind, String)> {
    let mut said = Vec::new();
    for slot in items(value, "secrets") {
        let description = clean_line(text(slot, &["description"]), DESCRIPTION_MAX);
        match text(slot, &["name"]).parse::<SettingName>() {
            Ok(name) => server.secrets.push(SecretSlot {
                name,
                description: description.into(),
                optional: slot["optional"] == true,
            }),
            Err(error) => said.push((NoteKind::Repaired, format!("secret left out: {error}"))),
        }
    }
    for slot in items(value, "config") {
        let description = clean_line(text(slot, &["description"]), DESCRIPTION_MAX);
        match text(slot, &["name"]).parse::<SettingName>() {
            Ok(name) => server.config.push(ConfigSlot {
                name,
                description: description.into(),
                default: slot["default"].as_str().and_then(|text| text.parse().ok()),
                optional: slot["optional"] == true,
            }),
            Err(error) => said.push((NoteKind::Repaired, format!("setting left out: {error}"))),
        }
    }
    server.launch = match read_launch(launch) {
        Ok(launch) => launch,
        Err(why) => {
            said.push((NoteKind::Noted, format!("{why}: found but not run")));
            None
        }
    };
    if let Err(error) = server.check_launch() {
        said.push((NoteKind::Noted, format!("{error}: found but not run")));
        server.launch = None;
    }
    said
}

fn read_launch(value: &Value) -> Result<Option<Launch>, String> {
    let parsed = |text: &str| text.parse::<Template>().map_err(|error| error.to_string());
    let list = |way: &Value, key: &str| -> Result<Vec<Template>, String> {
        texts(way, key).iter().map(|text| parsed(text)).collect()
    };
    let pairs = |way: &Value, key: &str| -> Result<Vec<(Box<str>, Template)>, String> {
        entries(way, key)
            .filter_map(|(name, value)| Some((name, scalar(value)?)))
            .map(|(name, text)| Ok((name.as_str().into(), parsed(&text)?)))
            .collect()
    };
    if let Some(way) = value.get("stdio") {
        return Ok(Some(Launch::Stdio {
            command: required(way, "command")?.into(),
            args: list(way, "args")?,
            env: pairs(way, "env")?,
        }));
    }
    if let Some(way) = value.get("http") {
        let beside = read_remote(value);
        let (transport, oauth) =
            beside.map_err(|key| format!("`{key}` of its launch is missing or wrong"))?;
        return Ok(Some(Launch::Http {
            url: parsed(required(way, "url")?)?,
            headers: pairs(way, "headers")?,
            transport,
            oauth,
        }));
    }
    if let Some(way) = value.get("docker") {
        return Ok(Some(Launch::Docker {
            image: required(way, "image")?.into(),
            args: list(way, "args")?,
            env: pairs(way, "env")?,
        }));
    }
    if value.get("openapi").is_some() {
        let launch = launch_from_json(value);
        return launch.map(Some).map_err(|error| error.to_string());
    }
    match value {
        Value::Null => Ok(None),
        _ => Err("its launch is neither `stdio`, `http`, `docker` nor `openapi`".to_owned()),
    }
}

fn required<'a>(way: &'a Value, key: &str) -> Result<&'a str, String> {
    let found = way.get(key).and_then(Value::as_str);
    let found = found.filter(|text| !text.is_empty());
    found.ok_or_else(|| format!("its launch has no `{key}`"))
}

/// The first of several launches that we can start, with settings as lists of variables.
fn wire_foreign(server: &mut Server, value: &Value, ways: &[Value]) -> Vec<(NoteKind, String)> {
    let mut said = Vec::new();
    let mut ways: Vec<&Value> = ways.iter().collect();
    ways.sort_by_key(|way| speaks_sse(text(way, &["url"]), text(way, &["transport"])));
    for way in ways {
        let mut wiring = Wiring::new(&server.name, Commands::Runners);
        let mut secrets: Vec<(String, String)> = Vec::new();
        for secret in items(value, "secrets") {
            let variable = text(secret, &["env"]);
            let hint = Hint {
                slot: text(secret, &["name"]).parse().ok(),
                description: text(secret, &["description"]).to_owned(),
                required: secret["required"].as_bool(),
                secret: Some(true),
                default: None,
            };
            for known in [variable, text(secret, &["name"])] {
                wiring.hint(known, hint.clone());
            }
            secrets.push((variable.to_owned(), format!("${{{variable}}}")));
        }
        for (variable, about) in entries(value, "config") {
            let hint = Hint {
                description: text(about, &["description"]).to_owned(),
                required: about["required"].as_bool(),
                ..Hint::default()
            };
            wiring.hint(&format!("{}.{variable}", server.name), hint.clone());
            wiring.hint(variable, hint);
        }
        if let Some(launch) = wire_way(&mut wiring, value, way, secrets) {
            return wiring.finish(server, Some(launch));
        }
        said = wiring.finish(server, None);
    }
    said
}

fn wire_way(
    wiring: &mut Wiring,
    value: &Value,
    way: &Value,
    secrets: Vec<(String, String)>,
) -> Option<Launch> {
    let pairs = |map: &Value, key: &str| -> Vec<(String, String)> {
        entries(map, key)
            .filter_map(|(name, value)| Some((name.clone(), scalar(value)?)))
            .collect()
    };
    let mut env = pairs(way, "env");
    for variable in items(value, "env") {
        let text = variable.get("value").and_then(scalar).unwrap_or_default();
        env.push((self::text(variable, &["name"]).to_owned(), text));
    }
    match text(way, &["kind"]) {
        "remote" | "http" => wiring.remote(
            text(way, &["url"]),
            text(way, &["transport"]),
            &pairs(way, "headers"),
        ),
        "docker" if !text(way, &["image"]).is_empty() => {
            env.extend(secrets);
            let image = text(way, &["image"]);
            // Some keep the whole command line of `docker run` beside the image.
            match texts(way, "args") {
                args if args.first().is_some_and(|first| first == "run") => {
                    wiring.stdio("docker", &args, &env)
                }
                _ => wiring.image(image, &texts(way, "command"), &env),
            }
        }
        _ => {
            env.extend(secrets);
            let command = text(way, &["command"]);
            wiring.stdio(command, &texts(way, "args"), &env)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::catalog::import::{Document, Format, read};

    #[test]
    fn a_line_that_cannot_be_read_costs_itself_and_no_other() {
        let text = "{\"name\": \"a\", \"tools\": [{\"name\": \"x\"}]}\nnot json\n\n\
            {\"name\": \"b\", \"launch\": {\"stdio\": {}}, \"tools\": [{\"name\": \"y\"}]}\n";
        let document = Document {
            name: "c.jsonl".to_owned(),
            text: text.to_owned(),
        };
        let imported = read(Format::NormalForm, &[document]);
        assert!(imported.report.counts.balance());
        let notes: Vec<String> = imported
            .report
            .notes
            .iter()
            .map(ToString::to_string)
            .collect();
        insta::assert_snapshot!(notes.join("\n"), @r#"
        c.jsonl:2: refused line: not JSON: expected ident at line 1 column 2
        c.jsonl:4: noted b: its launch has no `command`: found but not run
        "#);
        assert_eq!(imported.servers.len(), 2);
    }

    #[test]
    fn several_launches_and_variables_beside_them_are_read() {
        let text = r#"{"name": "kiln", "launch": [{"kind": "python", "command": "python", "args": []},
            {"kind": "npx", "command": "npx", "args": ["-y", "kiln"], "env": {"HEAT": "${HEAT}"}}],
            "secrets": [{"name": "KILN_KEY", "env": "KILN_KEY", "required": true}],
            "config": {"HEAT": {"type": "string", "description": "How hot.", "required": false}},
            "tools": [{"name": "fire", "arguments": []}],
            "provenance": {"source": "x", "server_license": "MIT"}}"#;
        let document = Document {
            name: "c.jsonl".to_owned(),
            text: text.replace('\n', " "),
        };
        let imported = read(Format::NormalForm, &[document]);
        let server = &imported.servers[0];
        assert_eq!(&*server.provenance.license, "MIT");
        let launch = crate::catalog::export::server_json(server)["launch"].to_string();
        insta::assert_snapshot!(launch, @r#"
        {"stdio":{"command":"npx","args":["-y","kiln"],"env":{"HEAT":"{{kiln.heat}}","KILN_KEY":"{{secret:kiln.kiln_key}}"}}}
        "#);
        assert_eq!(server.check_launch(), Ok(()));
    }
}
