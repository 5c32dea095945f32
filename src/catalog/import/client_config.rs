//! Configurations of clients: `mcpServers` of desktop clients, `servers` of VS Code. They name
//! servers without tools: each can be asked for them.

use serde_json::Value;

use crate::catalog::import::intake::Intake;
use crate::catalog::import::source::{entries, items, scalar, text, texts};
use crate::catalog::import::wiring::{Commands, Hint, Wiring};
use crate::domain::{Server, ServerName};

/// Places where clients keep their servers.
const PLACES: [&str; 5] = [
    "/mcpServers",
    "/servers",
    "/mcp/servers",
    "/context_servers",
    "/mcp",
];

/// The servers of a configuration, if it is one.
pub(super) fn servers(value: &Value) -> Option<(&'static str, &serde_json::Map<String, Value>)> {
    PLACES.into_iter().find_map(|path| {
        let map = value.pointer(path)?.as_object()?;
        let is_server = |entry: &Value| entry.get("command").or(entry.get("url")).is_some();
        (!map.is_empty() && map.values().any(is_server)).then_some((path, map))
    })
}

/// Reads one configuration.
pub(super) fn read(intake: &mut Intake, file: &str, value: &Value) {
    let Some((path, servers)) = servers(value) else {
        intake.refuse_document(file, "it names no server");
        return;
    };
    let inputs = items(value, "inputs");
    for (foreign, entry) in servers {
        let place = format!("{file}#{path}/{foreign}");
        let Some(name) = intake.name(&place, foreign, 0) else {
            continue;
        };
        let mut server = Server::new(name.clone(), Vec::new());
        server.title = foreign.as_str().into();
        for (kind, why) in wire(&mut server, entry, inputs, Commands::Any) {
            intake.note(kind, &place, name.as_str(), why);
        }
        intake.take(&place, server);
    }
}

/// Sets launch and settings of a server from one entry.
pub(super) fn wire(
    server: &mut Server,
    entry: &Value,
    inputs: &[Value],
    commands: Commands,
) -> Vec<(crate::catalog::import::NoteKind, String)> {
    let name: ServerName = server.name.clone();
    let mut wiring = Wiring::new(&name, commands);
    for input in inputs {
        let hint = Hint {
            description: text(input, &["description"]).to_owned(),
            secret: input["password"].as_bool(),
            default: input.get("default").and_then(scalar),
            ..Hint::default()
        };
        wiring.hint(text(input, &["id"]), hint);
    }
    let pairs = |key: &str| -> Vec<(String, String)> {
        entries(entry, key)
            .filter_map(|(name, value)| Some((name.clone(), scalar(value)?)))
            .collect()
    };
    let url = text(entry, &["url", "serverUrl", "httpUrl"]);
    let launch = match url {
        "" => {
            // Some clients write program and arguments as one list.
            let (command, args) = match entry.get("command") {
                Some(Value::Array(words)) => {
                    let mut words: Vec<String> = words.iter().filter_map(scalar).collect();
                    let rest = words.split_off(1.min(words.len()));
                    (words.pop().unwrap_or_default(), rest)
                }
                _ => (text(entry, &["command"]).to_owned(), texts(entry, "args")),
            };
            wiring.stdio(&command, &args, &pairs("env"))
        }
        url => {
            let transport = match text(entry, &["type", "transport"]) {
                "remote" | "url" => "",
                transport => transport,
            };
            wiring.remote(url, transport, &pairs("headers"))
        }
    };
    wiring.finish(server, launch)
}

#[cfg(test)]
mod tests {
    use crate::catalog::export::server_json;
    use crate::catalog::import::{Document, Format, read};

    #[test]
    fn both_kinds_of_configuration_are_read() {
        let path = "tests/data/import/client-config.json";
        let text = std::fs::read_to_string(path).unwrap();
        let code = text.replace("mcpServers", "servers");
        for text in [text, code] {
            assert_eq!(Format::detect(path, &text), Some(Format::ClientConfig));
            let name = path.to_owned();
            let imported = read(Format::ClientConfig, &[Document { name, text }]);
            assert!(imported.report.counts.balance());
            let rows: Vec<String> = imported
                .servers
                .iter()
                .map(|server| format!("{} {}", server.name, server_json(server)["launch"]))
                .collect();
            insta::allow_duplicates! {
                insta::assert_snapshot!(rows.join("\n"), @r#"
                ferry {"stdio":{"command":"npx","args":["-y","ferry-mcp@1.0.0","--port={{ferry.ferry_port}}"],"env":{"FERRY_KEY":"{{secret:ferry.ferry_key}}","FERRY_PASSWORD":"{{secret:ferry.ferry_password}}","FERRY_MODE":"day"}}}
                pier-7 {"http":{"url":"https://pier.example/mcp","headers":{"Authorization":"{{secret:pier-7.authorization}}"}}}
                old {"http":{"url":"https://old.example/sse","headers":{},"transport":"sse"}}
                local {"stdio":{"command":"/usr/local/bin/harbour-mcp","args":[],"env":{}}}
                "#);
            }
        }
    }
}
