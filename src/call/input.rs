//! What a caller can be asked while its tool runs, and what it answered.

use std::fmt;

use serde_json::{Map, Value};

/// The one kind of question that is passed on.
const ELICIT: &str = "elicitation/create";
/// Questions of one round.
const QUESTIONS_MAX: usize = 16;
/// Longest round, in bytes of JSON, the upstream's own state included.
const ROUND_BYTES_MAX: usize = 64 * 1024;

/// What a caller has declared that it can be asked. Its upstream is told this and no more.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Askable {
    /// A form to fill in.
    pub form: bool,
    /// A page to visit.
    pub url: bool,
}

/// The retry of a call that asked for input. Both parts are secret.
#[derive(Clone)]
pub struct InputAnswer {
    /// The `requestState` that came with the questions.
    pub state: String,
    /// An answer to each question.
    pub responses: Map<String, Value>,
}

impl fmt::Debug for InputAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InputAnswer({} answers)", self.responses.len())
    }
}

/// Why an upstream's questions are not passed on.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum AskError {
    /// The caller speaks an era without rounds.
    #[error("it asks for input, and this client cannot be asked within a call")]
    NoRounds,
    /// A kind that the caller did not declare.
    #[error("it asks for `{0}`, which this client has not declared")]
    NotDeclared(String),
    /// Too much of it.
    #[error("it asks too much at once")]
    TooMuch,
    /// Neither questions nor a state.
    #[error("its request for input cannot be read")]
    Unreadable,
    /// Round after round.
    #[error("it asks again and again")]
    TooOften,
}

/// Whether a result is a request for input. Its other fields are the upstream's word.
pub(crate) fn is_round(result: &Map<String, Value>) -> bool {
    result.get("resultType").and_then(Value::as_str) == Some("input_required")
}

/// Checks a request for input against what the caller can be asked.
pub(crate) fn check_round(
    round: &Map<String, Value>,
    askable: Option<Askable>,
) -> Result<(), AskError> {
    let askable = askable.ok_or(AskError::NoRounds)?;
    let questions = match round.get("inputRequests") {
        None | Some(Value::Null) if round.contains_key("requestState") => return size(round),
        Some(Value::Object(questions)) => questions,
        _ => return Err(AskError::Unreadable),
    };
    if QUESTIONS_MAX < questions.len() {
        return Err(AskError::TooMuch);
    }
    for question in questions.values() {
        check_question(question, askable)?;
    }
    size(round)
}

/// Checks one question of a round.
pub(crate) fn check_question(question: &Value, askable: Askable) -> Result<(), AskError> {
    let method = question.get("method").and_then(Value::as_str);
    let method = method.ok_or(AskError::Unreadable)?;
    let mode = question.pointer("/params/mode").map(Value::as_str);
    let allowed = match (method, mode) {
        (ELICIT, None | Some(Some("form"))) => askable.form,
        (ELICIT, Some(Some("url"))) => askable.url,
        _ => false,
    };
    if allowed {
        return Ok(());
    }
    let mode = mode.flatten().map(|mode| format!(" ({mode})"));
    let name = method.to_owned() + &mode.unwrap_or_default();
    Err(AskError::NotDeclared(name.chars().take(80).collect()))
}

fn size(round: &Map<String, Value>) -> Result<(), AskError> {
    let bytes: usize = round.values().map(|value| value.to_string().len()).sum();
    match bytes <= ROUND_BYTES_MAX {
        true => Ok(()),
        false => Err(AskError::TooMuch),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BOTH: Askable = Askable {
        form: true,
        url: true,
    };

    fn check(round: &Value, askable: Option<Askable>) -> Result<(), AskError> {
        let Value::Object(round) = round else {
            panic!("not an object")
        };
        check_round(round, askable)
    }

    fn asks(method: &str, params: &Value) -> Value {
        let question = json!({"method": method, "params": params});
        json!({"resultType": "input_required", "inputRequests": {"q": question}})
    }

    #[test]
    fn only_what_the_caller_declared_is_asked() {
        let form = asks(ELICIT, &json!({"message": "?"}));
        let url = asks(ELICIT, &json!({"mode": "url", "message": "?"}));
        let strange = asks(ELICIT, &json!({"mode": "voice"}));
        let sampling = asks("sampling/createMessage", &json!({}));
        let not = |name: &str| Err(AskError::NotDeclared(name.to_owned()));
        let form_only = Some(Askable {
            form: true,
            url: false,
        });
        assert_eq!(check(&form, None), Err(AskError::NoRounds));
        assert_eq!(check(&form, Some(BOTH)), Ok(()));
        assert_eq!(check(&url, Some(BOTH)), Ok(()));
        assert_eq!(check(&url, form_only), not("elicitation/create (url)"));
        assert_eq!(
            check(&form, Some(Askable::default())),
            not("elicitation/create")
        );
        assert_eq!(
            check(&strange, Some(BOTH)),
            not("elicitation/create (voice)")
        );
        assert_eq!(check(&sampling, Some(BOTH)), not("sampling/createMessage"));
        assert_eq!(
            check(&json!({"inputRequests": {"q": 5}}), Some(BOTH)),
            Err(AskError::Unreadable)
        );
    }

    #[test]
    fn a_round_has_limits_and_needs_a_question_or_a_state() {
        let rounds = Some(Askable::default());
        assert_eq!(check(&json!({}), rounds), Err(AskError::Unreadable));
        assert_eq!(check(&json!({"requestState": "s"}), rounds), Ok(()));
        let state = |bytes| json!({"requestState": "x".repeat(bytes)});
        // Two quotes belong to the JSON.
        assert_eq!(check(&state(ROUND_BYTES_MAX - 2), rounds), Ok(()));
        assert_eq!(
            check(&state(ROUND_BYTES_MAX - 1), rounds),
            Err(AskError::TooMuch)
        );
        let many = |count: usize| {
            let question = json!({"method": ELICIT, "params": {}});
            let questions = (0..count).map(|at| (at.to_string(), question.clone()));
            json!({"inputRequests": questions.collect::<Map<_, _>>()})
        };
        assert_eq!(check(&many(QUESTIONS_MAX), Some(BOTH)), Ok(()));
        assert_eq!(
            check(&many(QUESTIONS_MAX + 1), Some(BOTH)),
            Err(AskError::TooMuch)
        );
    }

    #[test]
    fn debug_shows_no_answer() {
        let answer = InputAnswer {
            state: "s3cret".to_owned(),
            responses: Map::from_iter([("k".to_owned(), json!("s3cret"))]),
        };
        assert_eq!(format!("{answer:?}"), "InputAnswer(1 answers)");
    }
}
