//! Between rmcp's types and ours: a tool's result on its way out, progress and cancellation of a
//! run.

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, InputRequiredResult,
    ProgressNotificationParam,
};
use rmcp::service::RequestContext;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::call::{Askable, CallerSide, InputAnswer, Progress};
use crate::domain::Trace;

/// Steps of progress that may wait for a slow client; more are dropped, and the last ones count.
const PROGRESS_MAX: usize = 16;

/// A result, or a question to the client, in rmcp's types.
pub(super) fn response(result: Map<String, Value>) -> CallToolResponse {
    let asks = result.get("resultType").and_then(Value::as_str) == Some("input_required");
    let round = asks.then(|| serde_json::from_value(Value::Object(result.clone())));
    match round {
        Some(Ok::<InputRequiredResult, _>(round)) => round.into(),
        _ => typed(result).into(),
    }
}

/// The result in rmcp's types. A content block of a kind that rmcp does not know goes out as text
/// that holds its JSON, so that nothing is lost.
pub(super) fn typed(mut result: Map<String, Value>) -> CallToolResult {
    let mut typed = CallToolResult::default();
    if let Some(Value::Array(blocks)) = result.remove("content") {
        typed.content = blocks.into_iter().map(block).collect();
    }
    typed.structured_content = result.remove("structuredContent");
    typed.is_error = result.get("isError").and_then(Value::as_bool);
    let meta = result.remove("_meta").filter(Value::is_object);
    typed.meta = meta.and_then(|meta| serde_json::from_value(meta).ok());
    typed
}

fn block(value: Value) -> ContentBlock {
    let text = value.to_string();
    serde_json::from_value(value).unwrap_or_else(|_unknown| ContentBlock::text(text))
}

/// What a run needs of the request: its cancellation, progress if the client asked for it, what the
/// client can be asked, and its answer if it was.
pub(super) fn caller_side(
    context: &RequestContext<RoleServer>,
    request: &mut CallToolRequestParams,
) -> CallerSide {
    let progress = context.meta.get_progress_token().map(|token| {
        let (sender, steps) = mpsc::channel(PROGRESS_MAX);
        forward_progress(context, token, steps);
        sender
    });
    CallerSide {
        cancel: context.ct.clone(),
        progress,
        askable: askable(context),
        trace: trace(context),
        answer: request.request_state.take().map(|state| InputAnswer {
            state,
            responses: request
                .input_responses
                .take()
                .into_iter()
                .flatten()
                .collect(),
        }),
    }
}

/// The trace that the client says it is in, if that reads.
pub(super) fn trace(context: &RequestContext<RoleServer>) -> Option<Trace> {
    let meta = &context.meta;
    Trace::read(meta.get_traceparent(), meta.get_tracestate())
}

/// What a client of the modern era has declared; the legacy one has no rounds.
fn askable(context: &RequestContext<RoleServer>) -> Option<Askable> {
    let version = context.protocol_version()?;
    if version.has_initialize() {
        return None;
    }
    let declared = context.client_capabilities().and_then(|it| it.elicitation);
    Some(
        declared.map_or_else(Askable::default, |elicitation| Askable {
            // Nothing said means forms, as it was before there was anything else.
            form: elicitation.form.is_some() || elicitation.url.is_none(),
            url: elicitation.url.is_some(),
        }),
    )
}

#[expect(
    clippy::disallowed_methods,
    reason = "the task ends with the run, which holds the only sender, and shutdown waits for runs"
)]
fn forward_progress(
    context: &RequestContext<RoleServer>,
    token: rmcp::model::ProgressToken,
    mut steps: mpsc::Receiver<Progress>,
) {
    let peer = context.peer.clone();
    tokio::spawn(async move {
        while let Some(step) = steps.recv().await {
            let mut params = ProgressNotificationParam::new(token.clone(), step.progress);
            params.total = step.total;
            params.message = step.message;
            if peer.notify_progress(params).await.is_err() {
                return;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_goes_out_as_it_came_in() {
        let result = json!({
            "content": [
                {"type": "text", "text": "a", "annotations": {"priority": 0.5}},
                {"type": "image", "data": "aGk=", "mimeType": "image/png", "_meta": {"x": 1}},
                {"type": "resource_link", "uri": "file:///a", "name": "a"},
                {"type": "resource", "resource": {"uri": "file:///a", "text": "t"}},
            ],
            "structuredContent": {"n": [1, null]},
            "isError": false,
            "_meta": {"a/b": {"c": 2}},
        });
        let mut out = serde_json::to_value(typed(result.as_object().unwrap().clone())).unwrap();
        out.as_object_mut().unwrap().remove("resultType");
        assert_eq!(out, result);
    }

    #[test]
    fn a_block_of_an_unknown_kind_is_not_lost() {
        let result = json!({"content": [{"type": "hologram", "voxels": [1]}]});
        let out = serde_json::to_value(typed(result.as_object().unwrap().clone())).unwrap();
        assert_eq!(
            out["content"][0]["text"],
            r#"{"type":"hologram","voxels":[1]}"#
        );
    }
}
