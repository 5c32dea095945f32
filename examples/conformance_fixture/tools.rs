//! Tools of the suite: their definitions, and who answers each.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, JsonObject,
    ProgressNotificationParam, Tool,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use crate::fixture::{Change, Fixture};
use crate::rounds::{Outcome, Retry};
use crate::{asking, content, resources, rounds};

/// Between two steps of a tool that tells what it does.
const STEP: Duration = Duration::from_millis(50);

/// Tools without arguments that do something while they run.
const WORKING: &[(&str, &str)] = &[
    ("test_tool_with_logging", "Writes three log messages."),
    ("test_logging_tool", "Writes three log messages."),
    ("test_tool_with_progress", "Tells its progress."),
    ("test_trigger_tool_change", "Changes the list of tools."),
    ("test_trigger_prompt_change", "Changes the list of prompts."),
    ("test_touch_resource", "Changes the watched resource."),
];

/// Tools without arguments that ask the client while they run.
const ASKING: &[(&str, &str)] = &[
    (
        "test_elicitation_sep1034_defaults",
        "Asks the user with defaults.",
    ),
    (
        "test_elicitation_sep1330_enums",
        "Asks the user with choices.",
    ),
];

/// All tools; one more after `test_trigger_tool_change`.
pub(crate) fn all(has_more: bool) -> Vec<Tool> {
    let nothing = || json!({ "type": "object", "properties": {} });
    let plain = [content::TOOLS, WORKING, ASKING, rounds::TOOLS].concat();
    let mut all: Vec<Tool> = plain
        .iter()
        .map(|(name, description)| tool(name, description, nothing()))
        .collect();
    all.extend([
        tool("test_sampling", "Asks the model.", text_argument("prompt")),
        tool(
            "test_elicitation",
            "Asks the user.",
            text_argument("message"),
        ),
        tool(
            "test_custom_header",
            "Takes an argument that is repeated as a header.",
            json!({
                "type": "object",
                "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
                "required": ["region"],
            }),
        ),
        tool(
            "json_schema_2020_12_tool",
            "Tool with JSON Schema 2020-12 features",
            contact(),
        ),
    ]);
    if has_more {
        let description = "There after a change of the list.";
        all.push(tool("test_tool_of_a_change", description, nothing()));
    }
    all
}

fn tool(name: &str, description: &str, schema: Value) -> Tool {
    let schema = match schema {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    Tool::new(name.to_owned(), description.to_owned(), Arc::new(schema))
}

fn text_argument(name: &str) -> Value {
    json!({ "type": "object", "properties": { name: { "type": "string" } }, "required": [name] })
}

/// A schema with the keywords that servers like to lose.
fn contact() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

/// Runs the tool of that name.
pub(crate) async fn call(
    fixture: &Fixture,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let name = request.name.as_ref();
    if let Some(result) = content::result(name) {
        return Ok(result.into());
    }
    let arguments = request.arguments.unwrap_or_default();
    if let Some(question) = asking::question(name, &arguments)? {
        return Ok(asking::ask(question, context).await?.into());
    }
    let retry = Retry {
        name,
        responses: request.input_responses.unwrap_or_default(),
        state: request.request_state,
    };
    match retry.outcome(fixture.seal(), context)? {
        Some(Outcome::Ask(result)) => return Ok(result.into()),
        Some(Outcome::Done(said)) => return Ok(told(&said).into()),
        None => {}
    }
    Ok(work(fixture, name, &arguments, context).await?.into())
}

async fn work(
    fixture: &Fixture,
    name: &str,
    arguments: &JsonObject,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    match name {
        "test_tool_with_logging" | "test_logging_tool" => {
            fixture.log("Tool execution started", context).await;
            tokio::time::sleep(STEP).await;
            fixture.log("Tool processing data", context).await;
            tokio::time::sleep(STEP).await;
            fixture.log("Tool execution completed", context).await;
        }
        "test_tool_with_progress" => progress(context).await,
        "test_trigger_tool_change" => fixture.change(Change::Tools, context).await,
        "test_trigger_prompt_change" => fixture.change(Change::Prompts, context).await,
        "test_touch_resource" => fixture.touch(resources::WATCHED, context).await,
        "test_custom_header" => {
            let region = arguments.get("region").and_then(Value::as_str);
            let region = region
                .ok_or_else(|| ErrorData::invalid_params("argument `region` is missing", None))?;
            return Ok(told(region));
        }
        "json_schema_2020_12_tool" => {
            let given = Value::Object(arguments.clone());
            return Ok(match jsonschema::is_valid(&contact(), &given) {
                true => told("These arguments fit the schema."),
                false => CallToolResult::error(vec![ContentBlock::text(
                    "These arguments do not fit the schema.",
                )]),
            });
        }
        "test_tool_of_a_change" => {}
        _ => return Err(ErrorData::invalid_params("no such tool", None)),
    }
    Ok(told(&format!("{name} has run.")))
}

async fn progress(context: &RequestContext<RoleServer>) {
    for done in [0.0, 50.0, 100.0] {
        if let Some(token) = context.meta.get_progress_token() {
            let told = ProgressNotificationParam::new(token, done).with_total(100.0);
            let _gone = context.peer.notify_progress(told).await;
        }
        tokio::time::sleep(STEP).await;
    }
}

fn told(text: &str) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}
