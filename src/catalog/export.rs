//! The catalog as others read it. What a format has no word for stands in an extension of ours,
//! so that importing an export gives the catalog back.

use std::borrow::Borrow;

use serde_json::{Map, Value, json};

use crate::catalog::import::{
    ARGUMENTS_KEY, DOCKER_EXTENSION, KEYWORDS_KEY, LIST_SERVER_KEY, LIST_SERVERS_KEY,
};
use crate::catalog::record;
use crate::domain::{Catalog, Definition, HttpTransport, Input, Launch, Server, Template, Tool};

/// One server a line, by name.
pub fn normal_form(catalog: &Catalog) -> String {
    lines(catalog.servers())
}

/// Servers as normal form, one a line, in the order given.
pub fn lines<S: Borrow<Server>>(servers: &[S]) -> String {
    let mut text = String::new();
    for server in servers.iter().map(Borrow::borrow) {
        let mut value = server_json(server);
        if let Value::Object(map) = &mut value {
            let tools: Vec<Value> = server.tools.iter().map(tool_json).collect();
            map.insert("tools".to_owned(), tools.into());
        }
        text.push_str(&value.to_string());
        text.push('\n');
    }
    text
}

/// A compiled Docker catalog, `version: 3`, as YAML.
pub fn docker_v3(catalog: &Catalog) -> String {
    let mut registry = Map::new();
    for server in catalog.servers() {
        registry.insert(server.name.to_string(), docker_entry(server));
    }
    let document = json!({
        "version": 3,
        "name": "toolcrib",
        "displayName": "Toolcrib",
        "registry": registry,
    });
    // A JSON value always has a YAML form; were it not so, JSON is YAML as well.
    serde_saphyr::to_string(&document).unwrap_or_else(|_| document.to_string())
}

/// All tools as the result of one `tools/list`; `_meta` says which server each belongs to.
pub fn tools_list(catalog: &Catalog) -> String {
    let mut servers = Map::new();
    let mut tools = Vec::with_capacity(catalog.len());
    for server in catalog.servers() {
        servers.insert(server.name.to_string(), server_json(server));
        for tool in &server.tools {
            let mut value = mcp_tool(tool);
            value["_meta"] = json!({ LIST_SERVER_KEY: server.name.as_str() });
            if !tool.keywords().is_empty() {
                value["_meta"][KEYWORDS_KEY] = json!(tool.keywords());
            }
            let in_order = &Input::from_schema(tool.input().schema().clone()) == tool.input();
            if let (false, Some(arguments)) = (in_order, arguments_json(tool.input())) {
                value["_meta"][ARGUMENTS_KEY] = arguments;
            }
            tools.push(value);
        }
    }
    let list = json!({ "tools": tools, "_meta": { LIST_SERVERS_KEY: servers } });
    format!("{list:#}\n")
}

/// All of a server but its tools, in normal form.
pub fn server_json(server: &Server) -> Value {
    record::head_to_json(server)
}

/// A tool in normal form, in clean text: what it takes as a list of arguments where that says
/// everything, else as a schema.
fn tool_json(tool: &Tool) -> Value {
    let definition = Definition {
        title: tool.title().to_owned(),
        description: tool.description().to_owned(),
        ..tool.definition()
    };
    record::definition_to_json(definition, arguments_json(tool.input()))
}

/// The list of arguments, where it gives the same input when it is read again.
fn arguments_json(input: &Input) -> Option<Value> {
    // An empty list is how others write that they know nothing of the arguments.
    record::arguments_to_json(input).filter(|_| !input.arguments().is_empty())
}

/// A tool as MCP writes it.
fn mcp_tool(tool: &Tool) -> Value {
    let mut value = json!({ "name": tool.name().as_str() });
    if !tool.title().is_empty() {
        value["title"] = tool.title().into();
    }
    value["description"] = tool.description().into();
    value["inputSchema"] = tool.input().schema().clone();
    if let Some(schema) = tool.output_schema() {
        value["outputSchema"] = schema.clone();
    }
    let names = [
        "readOnlyHint",
        "destructiveHint",
        "idempotentHint",
        "openWorldHint",
    ];
    let annotations = record::annotations_to_json(tool.annotations(), names);
    if !annotations.is_empty() {
        value["annotations"] = annotations.into();
    }
    value
}

/// Docker's own keys for Docker's own programs, and all of the server beside them.
fn docker_entry(server: &Server) -> Value {
    let mut entry = json!({
        "title": &*server.title,
        "description": &*server.description,
    });
    match &server.launch {
        Some(Launch::Docker { image, args, env }) => {
            entry["type"] = "server".into();
            entry["image"] = (&**image).into();
            let args: Vec<String> = args.iter().map(ToString::to_string).collect();
            entry["command"] = args.into();
            docker_env(&mut entry, env);
        }
        Some(Launch::Http {
            url,
            headers,
            transport,
            ..
        }) => {
            entry["type"] = "remote".into();
            entry["remote"] = json!({
                "transport_type": match transport {
                    HttpTransport::Streamable => "streamable-http",
                    HttpTransport::Sse => "sse",
                },
                "url": url.to_string(),
                "headers": record::pairs(headers),
            });
        }
        Some(Launch::Stdio { .. } | Launch::OpenApi { .. }) | None => {
            entry["type"] = "server".into();
        }
    }
    entry["metadata"] = json!({
        "category": &*server.category,
        "tags": server.tags,
        "license": &*server.provenance.license,
        "owner": &*server.owner,
    });
    let tools = server.tools.iter().map(|tool| {
        let mut value = mcp_tool(tool);
        if let Some(arguments) = arguments_json(tool.input()) {
            if let Value::Object(map) = &mut value {
                map.shift_remove("inputSchema");
            }
            value["arguments"] = arguments;
        }
        if !tool.keywords().is_empty() {
            value["keywords"] = json!(tool.keywords());
        }
        value
    });
    entry["tools"] = tools.collect();
    let mut head = server_json(server);
    if let Value::Object(map) = &mut head {
        map.shift_remove("name");
    }
    entry[DOCKER_EXTENSION] = head;
    entry
}

/// A variable that is one secret stands under `secrets`, any other under `env`.
fn docker_env(entry: &mut Value, env: &[(Box<str>, Template)]) {
    let (mut secrets, mut plain) = (Vec::new(), Vec::new());
    for (name, template) in env {
        let text = template.to_string();
        let only = template.secrets().next();
        match only {
            Some(secret) if text == format!("{{{{secret:{secret}}}}}") => {
                secrets.push(json!({ "name": secret.as_str(), "env": &**name }));
            }
            _ => plain.push(json!({ "name": &**name, "value": text })),
        }
    }
    entry["secrets"] = secrets.into();
    entry["env"] = plain.into();
}

#[cfg(test)]
mod tests;
