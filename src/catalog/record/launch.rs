//! A launch as JSON and back.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::catalog::record::{ReadRecordError, list, parsed, required, texts};
use crate::catalog::remote::{read_remote, remote_to_json};
use crate::domain::{Launch, Operation, OperationBody, OperationParts, Template, ToolName};

/// A launch in normal form.
pub(super) fn launch_to_json(launch: &Launch) -> Value {
    let list = |templates: &[Template]| -> Vec<String> {
        templates.iter().map(ToString::to_string).collect()
    };
    match launch {
        Launch::Stdio { command, args, env } => {
            json!({ "stdio": { "command": &**command, "args": list(args), "env": pairs(env) } })
        }
        Launch::Http {
            url,
            headers,
            transport,
            oauth,
        } => remote_to_json(url, &pairs(headers), *transport, oauth.as_deref()),
        Launch::Docker { image, args, env } => {
            json!({ "docker": { "image": &**image, "args": list(args), "env": pairs(env) } })
        }
        Launch::OpenApi {
            base_url,
            headers,
            operations,
        } => {
            let operations: Vec<Value> = operations
                .iter()
                .map(|(tool, operation)| operation_to_json(tool, operation))
                .collect();
            json!({ "openapi": {
                "base_url": base_url.to_string(),
                "headers": pairs(headers),
                "operations": operations,
            } })
        }
    }
}

/// Names with templates as an object.
pub(in crate::catalog) fn pairs(pairs: &[(Box<str>, Template)]) -> Map<String, Value> {
    pairs
        .iter()
        .map(|(name, template)| (name.to_string(), template.to_string().into()))
        .collect()
}

fn operation_to_json(tool: &ToolName, operation: &Operation) -> Value {
    let parts = operation.parts();
    let mut json = json!({
        "tool": tool.as_str(),
        "method": parts.method.as_str(),
        "path": &*parts.path,
    });
    for (key, names) in [
        ("query", &parts.query),
        ("query_joined", &parts.joined),
        ("headers", &parts.headers),
    ] {
        if !names.is_empty() {
            json[key] = json!(names);
        }
    }
    if let Some(body) = &parts.body {
        json["media_type"] = (&*body.media_type).into();
        if let Some(argument) = &body.argument {
            json["body"] = (&**argument).into();
        }
    }
    json
}

/// A launch from its normal form.
pub(in crate::catalog) fn launch_from_json(json: &Value) -> Result<Launch, ReadRecordError> {
    if let Some(stdio) = json.get("stdio") {
        Ok(Launch::Stdio {
            command: required(stdio, "command")?.into(),
            args: read_templates(stdio)?,
            env: read_pairs(stdio, "env")?,
        })
    } else if let Some(http) = json.get("http") {
        let (transport, oauth) = read_remote(json).map_err(|key| ReadRecordError::at(key, json))?;
        Ok(Launch::Http {
            url: parsed(http, "url")?,
            headers: read_pairs(http, "headers")?,
            transport,
            oauth,
        })
    } else if let Some(docker) = json.get("docker") {
        Ok(Launch::Docker {
            image: required(docker, "image")?.into(),
            args: read_templates(docker)?,
            env: read_pairs(docker, "env")?,
        })
    } else if let Some(openapi) = json.get("openapi") {
        let operations = list(openapi, "operations")?.iter().map(read_operation);
        let operations: BTreeMap<ToolName, Operation> = operations.collect::<Result<_, _>>()?;
        Ok(Launch::OpenApi {
            base_url: parsed(openapi, "base_url")?,
            headers: read_pairs(openapi, "headers")?,
            operations: Arc::new(operations),
        })
    } else {
        Err(ReadRecordError::at("launch", json))
    }
}

fn read_operation(json: &Value) -> Result<(ToolName, Operation), ReadRecordError> {
    let names = |key| -> Result<Vec<Box<str>>, ReadRecordError> {
        Ok(texts(json, key)?.into_iter().map(Into::into).collect())
    };
    let body = json["media_type"].as_str().map(|media_type| OperationBody {
        media_type: media_type.into(),
        argument: json["body"].as_str().map(Into::into),
    });
    let operation = Operation::new(OperationParts {
        method: parsed(json, "method")?,
        path: required(json, "path")?.into(),
        query: names("query")?,
        joined: names("query_joined")?,
        headers: names("headers")?,
        body,
    });
    let operation = operation.map_err(|_cause| ReadRecordError::at("operations", json))?;
    Ok((parsed(json, "tool")?, operation))
}

fn read_templates(json: &Value) -> Result<Vec<Template>, ReadRecordError> {
    let args = texts(json, "args")?;
    let parsed: Option<_> = args.iter().map(|text| text.parse().ok()).collect();
    parsed.ok_or_else(|| ReadRecordError::at("args", json))
}

fn read_pairs(
    json: &Value,
    key: &'static str,
) -> Result<Vec<(Box<str>, Template)>, ReadRecordError> {
    let entries = json[key].as_object().into_iter().flatten();
    let parse = |(name, text): (&String, &Value)| {
        Some((name.as_str().into(), text.as_str()?.parse().ok()?))
    };
    let parsed: Option<Vec<(Box<str>, Template)>> = entries.map(parse).collect();
    parsed.ok_or_else(|| ReadRecordError::at(key, json))
}
