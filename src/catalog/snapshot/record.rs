//! A server as JSON and back, without losing anything: a tool keeps its fingerprint.

use serde_json::{Map, Value, json};

use crate::catalog::remote::{read_remote, remote_to_json};
use crate::domain::{
    Annotations, Argument, ConfigSlot, Definition, Input, Launch, Provenance, SecretSlot, Server,
    Template, Tool,
};

/// Why JSON is not a server or a tool.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{key}` is missing or not as it should be: {value}")]
pub struct ReadRecordError {
    key: &'static str,
    value: Box<str>,
}

impl ReadRecordError {
    fn at(key: &'static str, value: &Value) -> Self {
        let shown: String = value.to_string().chars().take(80).collect();
        Self {
            key,
            value: shown.into(),
        }
    }
}

/// A server in normal form, its tools included.
pub fn server_to_json(server: &Server) -> Value {
    let slot = |name: &str, description: &str, optional: bool| json!({ "name": name, "description": description, "optional": optional });
    let secrets: Vec<Value> = server
        .secrets
        .iter()
        .map(|secret| slot(secret.name.as_str(), &secret.description, secret.optional))
        .collect();
    let config: Vec<Value> = server
        .config
        .iter()
        .map(|config| {
            let mut json = slot(config.name.as_str(), &config.description, config.optional);
            if let Some(default) = &config.default {
                json["default"] = Value::from(default.to_string());
            }
            json
        })
        .collect();
    json!({
        "name": server.name.as_str(),
        "title": &*server.title,
        "description": &*server.description,
        "category": &*server.category,
        "tags": &server.tags,
        "owner": &*server.owner,
        "launch": server.launch.as_ref().map(launch_to_json),
        "secrets": secrets,
        "config": config,
        "provenance": {
            "source": &*server.provenance.source,
            "version": &*server.provenance.version,
            "license": &*server.provenance.license,
        },
        "tools": server.tools.iter().map(tool_to_json).collect::<Vec<_>>(),
    })
}

/// A tool in normal form, as its server gave it.
pub fn tool_to_json(tool: &Tool) -> Value {
    let definition = tool.definition();
    let mut json = Map::new();
    json.insert("name".to_owned(), tool.name().as_str().into());
    if !definition.title.is_empty() {
        json.insert("title".to_owned(), definition.title.into());
    }
    json.insert("description".to_owned(), definition.description.into());
    // Arguments where the schema came from them: their order is then kept as well.
    let arguments = definition.input.arguments();
    if Input::from_arguments(arguments.to_vec()) == definition.input {
        let list: Vec<Value> = arguments.iter().map(argument_to_json).collect();
        json.insert("arguments".to_owned(), list.into());
    }
    let back = json.get("arguments").map(read_arguments);
    if !matches!(back, Some(Ok(back)) if back == definition.input) {
        json.remove("arguments");
        let schema = definition.input.schema().clone();
        json.insert("input_schema".to_owned(), schema);
    }
    if let Some(schema) = definition.output_schema {
        json.insert("output_schema".to_owned(), schema);
    }
    let annotations = annotations_to_json(definition.annotations);
    if !annotations.is_empty() {
        json.insert("annotations".to_owned(), annotations.into());
    }
    if !definition.keywords.is_empty() {
        json.insert("keywords".to_owned(), definition.keywords.into());
    }
    json.into()
}

fn argument_to_json(argument: &Argument) -> Value {
    let mut json = json!({
        "name": &*argument.name,
        "type": argument.shape.to_string(),
        "desc": &*argument.description,
    });
    if !argument.required {
        json["optional"] = Value::Bool(true);
    }
    json
}

fn annotations_to_json(annotations: Annotations) -> Map<String, Value> {
    let flags = [
        ("read_only", annotations.read_only),
        ("destructive", annotations.destructive),
        ("idempotent", annotations.idempotent),
        ("open_world", annotations.open_world),
    ];
    let given = flags
        .iter()
        .filter_map(|(name, flag)| flag.map(|flag| ((*name).to_owned(), Value::Bool(flag))));
    given.collect()
}

fn launch_to_json(launch: &Launch) -> Value {
    let list = |templates: &[Template]| -> Vec<String> {
        templates.iter().map(ToString::to_string).collect()
    };
    let map = |pairs: &[(Box<str>, Template)]| -> Map<String, Value> {
        let pairs = pairs.iter();
        pairs
            .map(|(key, template)| (key.to_string(), template.to_string().into()))
            .collect()
    };
    match launch {
        Launch::Stdio { command, args, env } => {
            json!({ "stdio": { "command": &**command, "args": list(args), "env": map(env) } })
        }
        Launch::Http {
            url,
            headers,
            transport,
            oauth,
        } => remote_to_json(url, &map(headers), *transport, oauth.as_deref()),
        Launch::Docker { image, args, env } => {
            json!({ "docker": { "image": &**image, "args": list(args), "env": map(env) } })
        }
    }
}

/// A server from its normal form.
pub fn server_from_json(json: &Value) -> Result<Server, ReadRecordError> {
    let tools = list(json, "tools")?
        .iter()
        .map(tool_from_json)
        .collect::<Result<_, _>>()?;
    let mut server = Server::new(parsed(json, "name")?, tools);
    server.title = text(json, "title").into();
    server.description = text(json, "description").into();
    server.category = text(json, "category").into();
    server.owner = text(json, "owner").into();
    server.tags = texts(json, "tags")?.into_iter().map(Into::into).collect();
    server.launch = match &json["launch"] {
        Value::Null => None,
        launch => Some(read_launch(launch)?),
    };
    for slot in list(json, "secrets")? {
        server.secrets.push(SecretSlot {
            name: parsed(slot, "name")?,
            description: text(slot, "description").into(),
            optional: slot["optional"].as_bool().unwrap_or(false),
        });
    }
    for slot in list(json, "config")? {
        server.config.push(ConfigSlot {
            name: parsed(slot, "name")?,
            description: text(slot, "description").into(),
            default: match slot.get("default") {
                Some(_) => Some(parsed(slot, "default")?),
                None => None,
            },
            optional: slot["optional"].as_bool().unwrap_or(false),
        });
    }
    let from = &json["provenance"];
    server.provenance = Provenance {
        source: text(from, "source").into(),
        version: text(from, "version").into(),
        license: text(from, "license").into(),
    };
    Ok(server)
}

/// A tool from its normal form, or from an entry of `tools/list`, whose keys are spelled in
/// another way.
pub fn tool_from_json(json: &Value) -> Result<Tool, ReadRecordError> {
    let schema = json.get("input_schema").or_else(|| json.get("inputSchema"));
    let input = match (schema, json.get("arguments")) {
        (Some(schema @ Value::Object(_)), _) => Input::from_schema(schema.clone()),
        (None, Some(arguments)) => read_arguments(arguments)?,
        (None, None) => Input::from_arguments(Vec::new()),
        (Some(schema), _) => return Err(ReadRecordError::at("input_schema", schema)),
    };
    let mut definition = Definition::new(parsed(json, "name")?, text(json, "description"), input);
    definition.title = String::from(text(json, "title"));
    let output = json.get("output_schema");
    let output = output.or_else(|| json.get("outputSchema"));
    definition.output_schema = output.filter(|schema| !schema.is_null()).cloned();
    definition.annotations = read_annotations(&json["annotations"]);
    definition.keywords = texts(json, "keywords")?;
    Ok(Tool::new(definition))
}

fn read_annotations(json: &Value) -> Annotations {
    let flag = |one: &str, other: &str| json[one].as_bool().or_else(|| json[other].as_bool());
    Annotations {
        read_only: flag("read_only", "readOnlyHint"),
        destructive: flag("destructive", "destructiveHint"),
        idempotent: flag("idempotent", "idempotentHint"),
        open_world: flag("open_world", "openWorldHint"),
    }
}

fn read_arguments(json: &Value) -> Result<Input, ReadRecordError> {
    let entries = json.as_array();
    let entries = entries.ok_or_else(|| ReadRecordError::at("arguments", json))?;
    let arguments = entries.iter().map(|entry| {
        Ok(Argument {
            name: name(entry)?.into(),
            shape: parsed(entry, "type")?,
            description: text(entry, "desc").into(),
            required: !entry["optional"].as_bool().unwrap_or(false),
        })
    });
    Ok(Input::from_arguments(arguments.collect::<Result<_, _>>()?))
}

fn read_launch(json: &Value) -> Result<Launch, ReadRecordError> {
    let templates = |json: &Value| -> Result<Vec<Template>, ReadRecordError> {
        let args = texts(json, "args")?;
        let parse = |text: &String| text.parse().ok();
        let parsed: Option<_> = args.iter().map(parse).collect();
        parsed.ok_or_else(|| ReadRecordError::at("args", json))
    };
    let pairs = |json: &Value, key: &'static str| {
        let entries = json[key].as_object().into_iter().flatten();
        let parse = |(name, text): (&String, &Value)| {
            Some((name.as_str().into(), text.as_str()?.parse().ok()?))
        };
        let parsed: Option<Vec<(Box<str>, Template)>> = entries.map(parse).collect();
        parsed.ok_or_else(|| ReadRecordError::at(key, json))
    };
    if let Some(stdio) = json.get("stdio") {
        Ok(Launch::Stdio {
            command: required(stdio, "command")?.into(),
            args: templates(stdio)?,
            env: pairs(stdio, "env")?,
        })
    } else if let Some(http) = json.get("http") {
        let beside = read_remote(json);
        let (transport, oauth) = beside.map_err(|key| ReadRecordError::at(key, json))?;
        Ok(Launch::Http {
            url: parsed(http, "url")?,
            headers: pairs(http, "headers")?,
            transport,
            oauth,
        })
    } else if let Some(docker) = json.get("docker") {
        Ok(Launch::Docker {
            image: required(docker, "image")?.into(),
            args: templates(docker)?,
            env: pairs(docker, "env")?,
        })
    } else {
        Err(ReadRecordError::at("launch", json))
    }
}

fn name(json: &Value) -> Result<&str, ReadRecordError> {
    required(json, "name")
}

fn required<'a>(json: &'a Value, key: &'static str) -> Result<&'a str, ReadRecordError> {
    let text = json[key].as_str();
    text.ok_or_else(|| ReadRecordError::at(key, json))
}

fn parsed<T: std::str::FromStr>(json: &Value, key: &'static str) -> Result<T, ReadRecordError> {
    let parsed = required(json, key)?.parse().ok();
    parsed.ok_or_else(|| ReadRecordError::at(key, &json[key]))
}

fn text<'a>(json: &'a Value, key: &str) -> &'a str {
    json[key].as_str().unwrap_or_default()
}

fn list<'a>(json: &'a Value, key: &'static str) -> Result<&'a [Value], ReadRecordError> {
    match &json[key] {
        Value::Null => Ok(&[]),
        Value::Array(items) => Ok(items),
        other => Err(ReadRecordError::at(key, other)),
    }
}

fn texts(json: &Value, key: &'static str) -> Result<Vec<String>, ReadRecordError> {
    let texts = list(json, key)?.iter().map(|item| {
        let text = item.as_str().map(str::to_owned);
        text.ok_or_else(|| ReadRecordError::at(key, item))
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_catalog_comes_back_as_it_was() {
        let catalog = crate::catalog::load(&[crate::catalog::builtin()]).catalog;
        for server in catalog.servers() {
            let text = server_to_json(server).to_string();
            let back = server_from_json(&serde_json::from_str(&text).unwrap()).unwrap();
            assert_eq!(&back, &**server);
        }
    }

    #[test]
    fn what_was_stripped_comes_back_as_well() {
        let json = json!({"name": "a", "title": "A\u{200b}", "description": "b\u{202e}  c",
            "inputSchema": {"type": "object", "properties": {"x": {"type": "string"}}},
            "annotations": {"readOnlyHint": true}});
        let tool = tool_from_json(&json).unwrap();
        assert_eq!(tool.annotations().read_only, Some(true));
        assert_eq!(tool_from_json(&tool_to_json(&tool)).unwrap(), tool);
    }

    #[test]
    fn a_broken_record_names_its_key() {
        let broken = |json| server_from_json(&json).unwrap_err().to_string();
        assert_eq!(
            broken(json!({"name": "A B", "tools": []})),
            "`name` is missing or not as it should be: \"A B\""
        );
        assert_eq!(
            broken(json!({"name": "a", "launch": {"ftp": {}}})),
            "`launch` is missing or not as it should be: {\"ftp\":{}}"
        );
    }
}
