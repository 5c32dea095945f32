//! Between rmcp and the wire: keeps results as they came, and hands progress to its call.
//!
//! rmcp reads results into types and drops what these do not name. Here a result of `tools/call`
//! or `tools/list` is kept as JSON: it travels through rmcp as a custom result.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use dashmap::DashMap;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientJsonRpcMessage, ClientRequest, CustomResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, ErrorData,
    FormElicitationCapability, GetExtensions, GetMeta, Implementation, JsonRpcMessage,
    NumberOrString, ProgressNotificationParam, ProgressToken, ProtocolVersion, RequestId,
    ServerJsonRpcMessage, ServerResult, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::call::Progress;
use crate::call::input::Askable;
use crate::call::upstream::lists::ListNews;
use crate::call::upstream::parked::Question;
use crate::call::upstream::readable;
use crate::domain::{ServerName, TenantId};

/// Travels in the extensions of a request: where its progress goes.
#[derive(Clone, Debug)]
pub(super) struct ProgressTo(pub(super) mpsc::Sender<Progress>);

/// Travels in the extensions of a request: where questions go that come while it runs.
#[derive(Clone, Debug)]
pub(super) struct QuestionsTo(pub(super) mpsc::Sender<Question>);

/// State shared by one session's transport and its rmcp handler.
#[derive(Debug, Default)]
pub(super) struct Tap {
    /// Requests whose results are kept as JSON, and whether the upstream has answered them with an
    /// error: rmcp makes up errors of its own, which say nothing of what became of the request.
    kept: Mutex<HashMap<RequestId, bool>>,
    progress: DashMap<ProgressToken, mpsc::Sender<Progress>>,
    /// Calls whose callers can be asked.
    questions: DashMap<RequestId, mpsc::Sender<Question>>,
}

impl Tap {
    /// Looks at a message before it goes out.
    pub(super) fn outgoing(&self, message: &ClientJsonRpcMessage) {
        let JsonRpcMessage::Request(request) = message else {
            return;
        };
        if keeps_result(&request.request) {
            self.kept_ids().insert(request.id.clone(), false);
        }
        if let Some(QuestionsTo(to)) = request.request.extensions().get::<QuestionsTo>() {
            self.questions.insert(request.id.clone(), to.clone());
        }
        let to = request.request.extensions().get::<ProgressTo>();
        let token = request.request.get_meta().get_progress_token();
        if let (Some(ProgressTo(to)), Some(token)) = (to, token) {
            self.progress.insert(token, to.clone());
        }
    }

    /// Reads a message as it came; `None` for what is no JSON-RPC message.
    pub(super) fn incoming(&self, line: &[u8]) -> Option<ServerJsonRpcMessage> {
        let mut message = readable::parse(line)?;
        self.note_refusal(&message);
        if let Some(id) = self.kept_id(&message) {
            let result = message.get_mut("result").map(Value::take)?;
            return Some(JsonRpcMessage::response(
                ServerResult::CustomResult(CustomResult(result)),
                id,
            ));
        }
        serde_json::from_value(message).ok()
    }

    /// As [`Tap::incoming`], as text that rmcp reads to the same: a result inside a string fits
    /// none of its types.
    pub(super) fn sealed(&self, text: &str) -> Option<String> {
        let message = readable::parse(text.as_bytes())?;
        self.note_refusal(&message);
        let id = self.kept_id(&message)?;
        let result = message.get("result")?.to_string();
        Some(json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
    }

    /// Undoes [`Tap::sealed`].
    pub(super) fn open(result: ServerResult) -> Option<Value> {
        match result {
            ServerResult::CustomResult(CustomResult(Value::String(text))) => {
                serde_json::from_str(&text).ok()
            }
            ServerResult::CustomResult(CustomResult(value)) => Some(value),
            _ => None,
        }
    }

    /// Forgets a call that has ended.
    pub(super) fn forget(&self, id: &RequestId, token: &ProgressToken) {
        self.kept_ids().remove(id);
        self.progress.remove(token);
        self.questions.remove(id);
    }

    /// The one call that a question can be about. The legacy era does not say which it is, so that
    /// with several there is nobody to ask: another caller's person must not see it.
    fn only_asker(&self) -> Option<mpsc::Sender<Question>> {
        let mut askers = self.questions.iter();
        let asker = askers.next()?.value().clone();
        askers.next().is_none().then_some(asker)
    }

    /// Whether the upstream itself has answered a request with an error.
    pub(super) fn has_refused(&self, id: &RequestId) -> bool {
        self.kept_ids().get(id).copied().unwrap_or(false)
    }

    fn note_refusal(&self, message: &Value) {
        if message.get("error").is_some()
            && let Some(id) = message.get("id").and_then(numbered)
            && let Some(refused) = self.kept_ids().get_mut(&id)
        {
            *refused = true;
        }
    }

    /// The id of a response whose result is kept.
    fn kept_id(&self, message: &Value) -> Option<RequestId> {
        message.get("result")?;
        let id = numbered(message.get("id")?)?;
        self.kept_ids().contains_key(&id).then_some(id)
    }

    fn kept_ids(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, bool>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An id as we gave it, a number: some servers answer number 5 with text "5".
fn numbered(id: &Value) -> Option<RequestId> {
    match id {
        Value::String(text) => Some(NumberOrString::Number(text.parse().ok()?)),
        other => serde_json::from_value(other.clone()).ok(),
    }
}

/// Whether a request's result is kept as JSON.
pub(super) fn keeps_result(request: &ClientRequest) -> bool {
    matches!(
        request,
        ClientRequest::CallToolRequest(_) | ClientRequest::ListToolsRequest(_)
    )
}

/// Our side of a session, as rmcp asks for it. It declares what the callers of the session have
/// declared, of what is passed on to them.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) tap: Arc<Tap>,
    pub(super) news: Arc<ListNews>,
    /// Whose session it is, and with whom.
    pub(super) session: (TenantId, ServerName),
    pub(super) askable: Askable,
}

fn capabilities(askable: Askable) -> ClientCapabilities {
    let mut capabilities = ClientCapabilities::default();
    if askable != Askable::default() {
        let mut elicitation = ElicitationCapability::new();
        elicitation.form = askable.form.then(FormElicitationCapability::new);
        elicitation.url = askable.url.then(UrlElicitationCapability::new);
        capabilities.elicitation = Some(elicitation);
    }
    capabilities
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let ours = Implementation::new("toolcrib", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities(self.askable), ours)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        let (tenant, server) = self.session.clone();
        self.news.tell(tenant, server);
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let asked = self.tap.only_asker().and_then(|to| {
            let (question, answer) = Question::new(params, self.askable)?;
            to.try_send(question).ok().map(|()| answer)
        });
        let Some(answer) = asked else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        let nobody = || ElicitResult::new(ElicitationAction::Cancel);
        tokio::select! {
            answer = answer => Ok(answer.unwrap_or_else(|_dropped| nobody())),
            () = context.ct.cancelled() => Ok(nobody()),
        }
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let to = self
            .tap
            .progress
            .get(&params.progress_token)
            .map(|to| to.clone());
        if let Some(to) = to {
            // A flood is thinned, not queued.
            let _full = to.try_send(Progress {
                progress: params.progress,
                total: params.total,
                message: params.message,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rmcp::model::{CallToolRequest, CallToolRequestParams, PingRequest};

    use super::*;

    const RESULT: &str =
        r#"{"content":[{"type":"text","text":"a","more":1}],"unknown":{"b":null}}"#;

    /// A tap that waits for the results of a call, 5, and of a ping, 6.
    fn tap() -> Tap {
        let tap = Tap::default();
        let call = CallToolRequest::new(CallToolRequestParams::new("x"));
        let ping = PingRequest::default();
        tap.outgoing(&JsonRpcMessage::request(
            ClientRequest::CallToolRequest(call),
            NumberOrString::Number(5),
        ));
        tap.outgoing(&JsonRpcMessage::request(
            ClientRequest::PingRequest(ping),
            NumberOrString::Number(6),
        ));
        tap
    }

    fn result(message: Option<ServerJsonRpcMessage>) -> ServerResult {
        match message {
            Some(JsonRpcMessage::Response(response)) => response.result,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_calls_result_is_kept_whole_and_others_are_typed() {
        let tap = tap();
        for id in ["5", "\"5\""] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{RESULT}}}"#);
            let kept = Tap::open(result(tap.incoming(line.as_bytes()))).unwrap();
            assert_eq!(kept.to_string(), RESULT);
        }
        let line = br#"{"jsonrpc":"2.0","id":6,"result":{}}"#;
        let typed = result(tap.incoming(line));
        assert!(matches!(typed, ServerResult::EmptyResult(_)), "{typed:?}");
        tap.forget(
            &NumberOrString::Number(5),
            &ProgressToken(NumberOrString::Number(0)),
        );
        let line = format!(r#"{{"jsonrpc":"2.0","id":5,"result":{RESULT}}}"#);
        let late = result(tap.incoming(line.as_bytes()));
        assert!(!matches!(late, ServerResult::CustomResult(_)), "{late:?}");
    }

    #[test]
    fn an_error_of_the_upstreams_own_is_known_as_that() {
        let tap = tap();
        let number = NumberOrString::Number;
        let line = br#"{"jsonrpc":"2.0","id":6,"error":{"code":1,"message":"x"}}"#;
        tap.incoming(line);
        assert!(!tap.has_refused(&number(5)) && !tap.has_refused(&number(6)));
        let text = r#"{"jsonrpc":"2.0","id":"5","error":{"code":1,"message":"x"}}"#;
        assert_eq!(tap.sealed(text), None);
        assert!(tap.has_refused(&number(5)));
    }

    #[test]
    fn a_sealed_result_reads_to_the_same() {
        let tap = tap();
        let text = format!(r#"{{"jsonrpc":"2.0","id":5,"result":{RESULT}}}"#);
        let sealed = tap.sealed(&text).unwrap();
        let message: ServerJsonRpcMessage = serde_json::from_str(&sealed).unwrap();
        assert_eq!(
            Tap::open(result(Some(message))).unwrap().to_string(),
            RESULT
        );
        assert_eq!(tap.sealed(r#"{"jsonrpc":"2.0","id":6,"result":{}}"#), None);
        assert_eq!(tap.sealed(r#"{"jsonrpc":"2.0","method":"x"}"#), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,80}", id in any::<i64>()) {
            let tap = tap();
            let result = serde_json::Value::from(text.as_str());
            for line in [text.clone(), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)] {
                tap.incoming(line.as_bytes());
                tap.sealed(&line);
            }
        }
    }
}
