//! Requests that need answers of the client first, as 2026-07-28 has them: each is answered with what
//! is still to be asked, until nothing is.

use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ErrorData, InputRequest, InputRequests, InputRequiredResult, InputResponses,
};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};

use crate::sealed::Seal;

/// Names of the tools that need answers, and what each asks for.
pub(crate) const TOOLS: &[(&str, &str)] = &[
    ("test_input_required_result_elicitation", "Asks for a name."),
    ("test_input_required_result_sampling", "Asks the model."),
    ("test_input_required_result_list_roots", "Asks for roots."),
    (
        "test_input_required_result_request_state",
        "Asks, and gives a state.",
    ),
    (
        "test_input_required_result_multiple_inputs",
        "Asks for three things at once.",
    ),
    ("test_input_required_result_multi_round", "Asks twice."),
    (
        "test_input_required_result_tampered_state",
        "Asks, and gives a state that cannot be changed.",
    ),
    (
        "test_input_required_result_capabilities",
        "Asks for what the client can answer.",
    ),
    ("test_missing_capability", "Needs a model to ask."),
    ("test_streaming_elicitation", "Asks the user."),
];

/// Who answers a question.
#[derive(Clone, Copy)]
enum Asked {
    User,
    Model,
    Client,
}

/// One question of a round, under a key of ours.
struct Question {
    key: &'static str,
    asked: Asked,
    /// As the protocol has it.
    request: Value,
}

/// Rounds of questions, each asked when the one before is answered.
struct Script {
    rounds: Vec<Vec<Question>>,
    /// Whether what was answered so far goes to the client and back.
    has_state: bool,
    /// Whether to leave out what the client cannot answer.
    is_lenient: bool,
}

/// What a request came to.
pub(crate) enum Outcome {
    /// The client has something to answer first.
    Ask(InputRequiredResult),
    /// All is answered; this was said.
    Done(String),
}

/// A request, perhaps for the second time, with what its client brings back.
pub(crate) struct Retry<'a> {
    pub(crate) name: &'a str,
    pub(crate) responses: InputResponses,
    pub(crate) state: Option<String>,
}

impl Retry<'_> {
    /// Where the request stands; nothing if it needs no answers.
    pub(crate) fn outcome(
        mut self,
        seal: &Seal,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<Outcome>, ErrorData> {
        let Some(script) = script(self.name) else {
            return Ok(None);
        };
        let (round, mut answers) = self.remembered(seal)?;
        let questions = script.rounds.get(round).ok_or_else(no_such_round)?;
        let capabilities = context.client_capabilities().unwrap_or_default();
        let questions = questions_for(questions, &capabilities, script.is_lenient)?;

        let mut missing = InputRequests::new();
        for question in &questions {
            match self.responses.remove(question.key) {
                Some(answer) if question.is_answered_by(&answer) => {
                    answers.insert(question.key.to_owned(), answer);
                }
                _ => {
                    missing.insert(question.key.to_owned(), question.to_request()?);
                }
            }
        }
        if !missing.is_empty() {
            return script.ask(missing, round, &answers, |state| {
                seal.close(state, self.name)
            });
        }
        match script.rounds.get(round + 1) {
            Some(next) => {
                let mut requests = InputRequests::new();
                for question in questions_for(next, &capabilities, script.is_lenient)? {
                    requests.insert(question.key.to_owned(), question.to_request()?);
                }
                script.ask(requests, round + 1, &answers, |state| {
                    seal.close(state, self.name)
                })
            }
            None => {
                let mark = if script.has_state { "state-ok: " } else { "" };
                Ok(Some(Outcome::Done(format!(
                    "{mark}{}",
                    Value::Object(answers)
                ))))
            }
        }
    }

    /// The round that the client answers, and what it has answered before.
    fn remembered(&self, seal: &Seal) -> Result<(usize, Map<String, Value>), ErrorData> {
        let Some(text) = &self.state else {
            return Ok((0, Map::new()));
        };
        let opened = seal.open(text, self.name)?;
        serde_json::from_slice(&opened).map_err(|_unlikely| no_such_round())
    }
}

impl Script {
    fn ask(
        &self,
        requests: InputRequests,
        round: usize,
        answers: &Map<String, Value>,
        close: impl Fn(&[u8]) -> Result<String, ErrorData>,
    ) -> Result<Option<Outcome>, ErrorData> {
        let state = json!([round, answers]).to_string();
        let state = match self.has_state {
            true => Some(close(state.as_bytes())?),
            false => None,
        };
        let result = InputRequiredResult::new(Some(requests), state);
        Ok(Some(Outcome::Ask(result)))
    }
}

impl Question {
    fn to_request(&self) -> Result<InputRequest, ErrorData> {
        serde_json::from_value(self.request.clone())
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    /// Whether this answers, rather than being something else. A user who declines has answered.
    fn is_answered_by(&self, answer: &Value) -> bool {
        match self.asked {
            Asked::User => match answer.get("action").and_then(Value::as_str) {
                Some("accept") => {
                    let schema = &self.request["params"]["requestedSchema"];
                    let content = answer.get("content").unwrap_or(&Value::Null);
                    jsonschema::is_valid(schema, content)
                }
                Some("decline" | "cancel") => true,
                _ => false,
            },
            Asked::Model => answer.get("role").is_some() && answer.get("content").is_some(),
            Asked::Client => answer.get("roots").is_some_and(Value::is_array),
        }
    }
}

/// The questions that this client can answer; an error if it cannot answer one that is needed.
fn questions_for<'a>(
    questions: &'a [Question],
    capabilities: &ClientCapabilities,
    is_lenient: bool,
) -> Result<Vec<&'a Question>, ErrorData> {
    let can_answer = |question: &&Question| match question.asked {
        Asked::User => capabilities.elicitation.is_some(),
        Asked::Model => capabilities.sampling.is_some(),
        Asked::Client => capabilities.roots.is_some(),
    };
    let (can, cannot): (Vec<_>, Vec<_>) = questions.iter().partition(can_answer);
    match cannot.first() {
        Some(first) if can.is_empty() || !is_lenient => {
            let name = match first.asked {
                Asked::User => "elicitation",
                Asked::Model => "sampling",
                Asked::Client => "roots",
            };
            let required = serde_json::from_value(json!({ name: {} }))
                .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            Err(ErrorData::missing_required_client_capability(required))
        }
        _ => Ok(can),
    }
}

fn no_such_round() -> ErrorData {
    ErrorData::invalid_params("`requestState` is not of this request", None)
}

fn script(name: &str) -> Option<Script> {
    let name_of_user = || form("user_name", "What is your name?", "name", "string");
    let confirm = || form("confirm", "Please confirm", "ok", "boolean");
    let (rounds, has_state) = match name {
        "test_input_required_result_elicitation" => (vec![vec![name_of_user()]], false),
        "test_input_required_result_sampling" => {
            let text = "What is the capital of France?";
            (vec![vec![sampling("capital_question", text, 100)]], false)
        }
        "test_input_required_result_list_roots" => (vec![vec![roots()]], false),
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => (vec![vec![confirm()]], true),
        "test_input_required_result_multiple_inputs" => {
            let greeting = sampling("greeting", "Generate a greeting", 50);
            (vec![vec![name_of_user(), greeting, roots()]], true)
        }
        "test_input_required_result_multi_round" => {
            let first = form("step1", "Step 1: What is your name?", "name", "string");
            let text = "Step 2: What is your favorite color?";
            let second = form("step2", text, "color", "string");
            (vec![vec![first], vec![second]], true)
        }
        "test_input_required_result_capabilities" => {
            let greeting = sampling("greeting", "Generate a greeting", 50);
            (vec![vec![name_of_user(), greeting]], false)
        }
        "test_missing_capability" => {
            let greeting = sampling("greeting", "Generate a greeting", 50);
            (vec![vec![greeting]], false)
        }
        "test_streaming_elicitation" => (vec![vec![confirm()]], false),
        "test_input_required_result_prompt" => {
            let text = "What context should the prompt use?";
            (
                vec![vec![form("user_context", text, "context", "string")]],
                false,
            )
        }
        _ => return None,
    };
    Some(Script {
        rounds,
        has_state,
        is_lenient: name == "test_input_required_result_capabilities",
    })
}

/// A form with one field.
fn form(key: &'static str, message: &str, field: &str, kind: &str) -> Question {
    let schema = json!({
        "type": "object",
        "properties": { field: { "type": kind } },
        "required": [field],
    });
    let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    Question {
        key,
        asked: Asked::User,
        request: json!({ "method": "elicitation/create", "params": params }),
    }
}

fn sampling(key: &'static str, text: &str, tokens_max: u32) -> Question {
    let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
    let params = json!({ "messages": [message], "maxTokens": tokens_max });
    Question {
        key,
        asked: Asked::Model,
        request: json!({ "method": "sampling/createMessage", "params": params }),
    }
}

fn roots() -> Question {
    Question {
        key: "client_roots",
        asked: Asked::Client,
        request: json!({ "method": "roots/list", "params": {} }),
    }
}
