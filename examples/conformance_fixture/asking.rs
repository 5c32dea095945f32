//! Tools that ask their client in the middle of a call, as revisions before 2026-07-28 do.
#![expect(
    deprecated,
    reason = "the suite of 2025-11-25 asks for what later revisions take away"
)]

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolResult, ClientResult, ContentBlock, CreateMessageRequest, ElicitRequest, ErrorData,
    JsonObject, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use serde_json::{Value, json};

/// Longest a client may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// What a tool asks: of the model behind the client, or of its user.
pub(crate) enum Question {
    Sampling(Value),
    Elicitation { message: String, schema: Value },
}

/// The question of a tool, by its name; nothing for other tools.
pub(crate) fn question(name: &str, arguments: &JsonObject) -> Result<Option<Question>, ErrorData> {
    let text = |argument: &str| {
        let text = arguments.get(argument).and_then(Value::as_str);
        text.map(ToOwned::to_owned).ok_or_else(|| {
            ErrorData::invalid_params(format!("argument `{argument}` is missing"), None)
        })
    };
    let elicitation = |message: String, schema| Question::Elicitation { message, schema };
    Ok(Some(match name {
        "test_sampling" => Question::Sampling(json!({
            "messages": [{ "role": "user", "content": { "type": "text", "text": text("prompt")? } }],
            "maxTokens": 100,
        })),
        "test_elicitation" => elicitation(
            text("message")?,
            json!({
                "type": "object",
                "properties": {
                    "username": { "type": "string", "description": "User's response" },
                    "email": { "type": "string", "description": "User's email address" },
                },
                "required": ["username", "email"],
            }),
        ),
        "test_elicitation_sep1034_defaults" => {
            elicitation("Please check these values".to_owned(), defaults())
        }
        "test_elicitation_sep1330_enums" => {
            elicitation("Please choose from these lists".to_owned(), choices())
        }
        _ => return Ok(None),
    }))
}

/// A form with a default for each kind of value.
fn defaults() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": {
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": { "type": "boolean", "default": true },
        },
    })
}

/// A form with each kind of choice.
fn choices() -> Value {
    let titled = json!([
        { "const": "value1", "title": "First" },
        { "const": "value2", "title": "Second" },
        { "const": "value3", "title": "Third" },
    ]);
    let plain = ["option1", "option2", "option3"];
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": plain },
            "titledSingle": { "type": "string", "oneOf": titled },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
            "titledMulti": { "type": "array", "items": { "anyOf": titled } },
        },
    })
}

/// Asks, and tells the answer. A client that cannot be asked is a failure of the tool.
pub(crate) async fn ask(
    question: Question,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let capabilities = context.client_capabilities().unwrap_or_default();
    let (request, can_answer) = match question {
        Question::Sampling(params) => {
            let params = serde_json::from_value(params).map_err(|error| unreadable(&error))?;
            let request = ServerRequest::CreateMessageRequest(CreateMessageRequest::new(params));
            (request, capabilities.sampling.is_some())
        }
        Question::Elicitation { message, schema } => {
            let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
            let params = serde_json::from_value(params).map_err(|error| unreadable(&error))?;
            let request = ServerRequest::ElicitRequest(ElicitRequest::new(params));
            (request, capabilities.elicitation.is_some())
        }
    };
    if !can_answer {
        return Ok(failed("the client does not say that it answers this"));
    }
    let options = PeerRequestOptions::with_timeout(ANSWER_MAX);
    let sent = context.peer.send_cancellable_request(request, options);
    let answer = match sent.await {
        Ok(pending) => pending.await_response().await,
        Err(error) => Err(error),
    };
    Ok(match answer {
        Ok(ClientResult::CreateMessageResult(answer)) => {
            let said = serde_json::to_value(&answer.message.content)
                .map_err(|error| unreadable(&error))?;
            let said = said.get("text").and_then(Value::as_str).unwrap_or_default();
            told(format!("LLM response: {said}"))
        }
        Ok(ClientResult::ElicitResult(answer)) => {
            let action =
                serde_json::to_value(&answer.action).map_err(|error| unreadable(&error))?;
            let (action, said) = (action.as_str().unwrap_or_default(), answer.content);
            let said = said.unwrap_or(Value::Null);
            told(format!("User response: action={action}, content={said}"))
        }
        Ok(_) => failed("the client answered something else"),
        Err(error) => failed(&format!("the client did not answer: {error}")),
    })
}

fn told(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn failed(text: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

fn unreadable(error: &serde_json::Error) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
