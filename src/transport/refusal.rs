//! What a client reads when it does not get what it asked for.
//!
//! One `match` for each error of the inside, without `_`, so that a new one asks the question.
//! Clients learn what they can act on; the log learns the rest, once, here.

mod hints;

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::call::{CallError, Problem, StepProblem, UpstreamError};
use crate::domain::{RunId, SettingName, ToolId, clean_line, clean_text};
use crate::registry::ProvideError;
use crate::search::SearchError;
use crate::telemetry::Chain;
use crate::transport::refusal::hints::{already_ran, direct_hint, retry_hint, upstream_hint};

/// Longest message or hint, in characters.
const TEXT_MAX: usize = 2_000;
/// Longest unknown name that is repeated, in characters.
const NAME_MAX: usize = 128;

/// An error of the wire contract.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// Its name in the error table.
    pub(super) code: &'static str,
    /// What happened.
    pub(super) message: String,
    /// What to do.
    pub(super) hint: String,
    /// The search that it belongs to.
    pub(super) run_id: Option<RunId>,
    /// The tool that was asked for, for the audit.
    pub(super) tool: Option<ToolId>,
}

impl Refusal {
    fn new(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: hint.into(),
            run_id: None,
            tool: None,
        }
    }

    fn of_tool(mut self, run_id: Option<RunId>, tool: &ToolId) -> Self {
        self.run_id = run_id;
        self.tool = Some(tool.clone());
        self
    }

    /// The JSON of the contract.
    pub(super) fn to_json(&self) -> Value {
        let mut body = json!({
            "error": self.code,
            "message": clean_text(&self.message, TEXT_MAX),
            "hint": clean_text(&self.hint, TEXT_MAX),
        });
        if let Some(run_id) = self.run_id {
            body["workflow_run_id"] = run_id.to_string().into();
        }
        body
    }

    /// Whether the result is marked as an error. To find nothing is none.
    pub(super) fn is_error(&self) -> bool {
        self.code != "NO_CANDIDATES"
    }

    /// The query is no query.
    pub(super) fn invalid_query(problem: &str) -> Self {
        let hint =
            "Give `query` as one sentence that says what you want to do, 1 to 2000 characters.";
        Self::new("INVALID_QUERY", problem, hint)
    }

    /// The arguments of `run_tool` itself are wrong.
    pub(super) fn malformed_run(problem: &str) -> Self {
        let hint = "Give `capability_token` and `tool_name` as search_tools returned them, and \
                    `arguments` as an object.";
        Self::new("INVALID_ARGUMENTS", problem, hint)
    }

    /// No tool that this caller may use has the name.
    pub(super) fn unknown_tool(name: &str, nearest: &[String], search: Option<&str>) -> Self {
        let near = match nearest {
            [] => String::new(),
            names => format!("The nearest names are: {}. ", names.join(", ")),
        };
        let hint = match search {
            Some(search) => format!("{near}{search} finds others."),
            None => format!("{near}tools/list shows all."),
        };
        let name = clean_line(name, NAME_MAX);
        Self::new("UNKNOWN_TOOL", format!("there is no tool `{name}`"), hint)
    }

    /// The arguments of a tool of our own are wrong.
    pub(super) fn malformed(problem: &str, hint: &str) -> Self {
        Self::new("INVALID_ARGUMENTS", problem, hint)
    }

    /// Message and hint in one, for errors of the protocol.
    pub(super) fn to_text(&self) -> String {
        clean_text(&format!("{}. {}", self.message, self.hint), TEXT_MAX)
    }

    /// Too many in a minute.
    pub(super) fn rate_limited(retry_after: Duration) -> Self {
        Self::new(
            "RATE_LIMITED",
            "too many requests a minute",
            retry_hint(Some(retry_after)),
        )
    }

    /// Too many at one time.
    pub(super) fn busy() -> Self {
        let hint = retry_hint(Some(Duration::from_secs(1)));
        Self::new("BUSY", "too many requests at one time", hint)
    }

    /// The server is about to end.
    pub(super) fn shutting_down() -> Self {
        Self::new(
            "SHUTTING_DOWN",
            "the server is shutting down",
            "Try again in 30 seconds.",
        )
    }

    /// A search's error.
    pub(super) fn of_search(error: &SearchError) -> Self {
        match error {
            SearchError::NoCandidates { run_id } => Self {
                run_id: Some(*run_id),
                ..Self::new(
                    "NO_CANDIDATES",
                    "No tool candidates found matching the query",
                    "Try a different query",
                )
            },
            SearchError::TooManyHandles { retry_after } => Self::new(
                "RATE_LIMITED",
                "too many capability tokens are alive",
                format!("Use those you have. {}", retry_hint(Some(*retry_after))),
            ),
        }
    }

    /// A provider's error.
    pub(super) fn of_provider(error: &ProvideError) -> Self {
        let text = Chain(error).to_string();
        let again = || retry_hint(None);
        match error {
            ProvideError::Unavailable { .. } => Self::new("UPSTREAM_UNAVAILABLE", text, again()),
            ProvideError::TimedOut { .. } => {
                let hint = "It may have taken effect. Check before you repeat it.";
                Self::new("UPSTREAM_TIMEOUT", text, hint)
            }
            ProvideError::OutcomeUnknown { .. } | ProvideError::Cancelled => {
                let hint = "The call may have taken effect. Check before you repeat it.";
                Self::new("OUTCOME_UNKNOWN", text, hint)
            }
            ProvideError::Arguments(_) => Self::new(
                "INVALID_ARGUMENTS",
                text,
                "Correct `arguments` and call again.",
            ),
            ProvideError::ShuttingDown => Self::shutting_down(),
        }
    }

    /// The error of an answer to what a run asked.
    fn of_answer(error: &CallError) -> Self {
        if let CallError::InvalidAnswer { run_id, tool } = error {
            let message = format!("`inputResponses` has no answer to what `{tool}` asked");
            let hint =
                "Answer each of `inputRequests` under its name, with `action` and `content`.";
            return Self::new(error.code(), message, hint).of_tool(*run_id, tool);
        }
        Self::new(
            error.code(),
            "the requestState is unknown, expired or used, or belongs to another call",
            "Start the call anew: an answer is good for five minutes, once, with the same arguments.",
        )
    }

    /// A run's error.
    pub(super) fn of_call(error: &CallError) -> Self {
        let code = error.code();
        let refusal = match error {
            CallError::InvalidToken => Self::new(
                code,
                "the capability token is unknown, expired or used",
                "Call search_tools again: a token is good for five minutes and one run.",
            ),
            CallError::InvalidState | CallError::InvalidAnswer { .. } => Self::of_answer(error),
            CallError::AlreadyRan { tool, ending, ago, .. } => Self::new(
                code,
                "the capability token is unknown, expired or used",
                already_ran(tool, *ending, *ago),
            ),
            CallError::LockedOut { retry_after } => Self::new(
                code,
                "too many wrong capability tokens",
                retry_hint(Some(*retry_after)),
            ),
            CallError::InvalidStep { problem, offered, left, .. } => {
                let (message, hint) = step_texts(*problem, offered);
                Self::new(code, message, with_left(hint, Some(*left)))
            }
            CallError::UnknownTool { tool } => Self::new(
                code,
                format!("there is no tool `{tool}`"),
                "`toolcrib catalog list` shows all servers, `toolcrib catalog show SERVER` its tools.",
            )
            .of_tool(None, tool),
            CallError::InvalidArguments { run_id, tool, problems, left } => {
                let hint = match left {
                    Some(left) => format!("Correct `arguments` and call again with the same token.{}",
                        left_text(*left)),
                    None => "Correct `arguments` and call again.".to_owned(),
                };
                let message = format!("the arguments of `{tool}` do not fit: {}", list(problems));
                Self::new(code, message, hint).of_tool(*run_id, tool)
            }
            CallError::MissingCredentials { run_id, tool, secrets, config, source, left } => {
                let message = match secrets.is_empty() && config.is_empty() {
                    true => Chain(source).to_string(),
                    false => missing_text(tool, secrets, config),
                };
                let hint = with_left(set_hint(secrets, config), *left);
                Self::new(code, message, hint).of_tool(*run_id, tool)
            }
            CallError::ToolChanged { run_id, tool, left } => Self::new(
                code,
                format!("the definition of `{tool}` has changed since the search"),
                with_left("Call search_tools again to see it as it is now.".to_owned(), Some(*left)),
            )
            .of_tool(Some(*run_id), tool),
            CallError::Store { run_id, tool, source } => {
                tracing::error!(tool = %tool, error = %Chain(source), "cannot read settings");
                let hint = "Try again in 30 seconds; if it stays, the operator finds the cause in the log.";
                Self::new(code, "the stored settings cannot be read", hint).of_tool(*run_id, tool)
            }
            CallError::Upstream { run_id, tool, source } => {
                tracing::warn!(tool = %tool, error = %Chain(source), "run failed");
                let hint = match run_id {
                    Some(_) => upstream_hint(source),
                    None => direct_hint(source),
                };
                Self::new(code, Chain(source).to_string() + &stderr_text(source), hint)
                    .of_tool(*run_id, tool)
            }
        };
        Self {
            run_id: error.run_id(),
            ..refusal
        }
    }
}

fn step_texts(problem: StepProblem, offered: &[ToolId]) -> (String, String) {
    let names: Vec<String> = offered
        .iter()
        .map(|id| format!("{} of server {}", id.tool, id.server))
        .collect();
    let covered = format!("This token covers: {}.", names.join(", "));
    match problem {
        StepProblem::NotOffered => (
            "the tool is not among the candidates of this token".to_owned(),
            format!("{covered} For another tool call search_tools again."),
        ),
        StepProblem::Ambiguous => (
            "two candidates have this name".to_owned(),
            format!("Give `server_name` as well. {covered}"),
        ),
        StepProblem::OtherRun => (
            "`workflow_run_id` belongs to another search".to_owned(),
            format!("Give the one of the same search, or leave it out. {covered}"),
        ),
    }
}

fn list(problems: &[Problem]) -> String {
    let text = |problem: &Problem| {
        let place = match problem.path.as_str() {
            "" => "arguments".to_owned(),
            path => format!("arguments{path}"),
        };
        let nearest = problem.nearest.as_ref();
        let nearest = nearest
            .map(|name| format!(" (did you mean `{name}`?)"))
            .unwrap_or_default();
        format!("`{place}`: {}{nearest}", problem.expected)
    };
    problems.iter().map(text).collect::<Vec<_>>().join("; ")
}

fn missing_text(tool: &ToolId, secrets: &[SettingName], config: &[SettingName]) -> String {
    let names: Vec<String> = secrets
        .iter()
        .map(|name| format!("secret `{name}`"))
        .chain(config.iter().map(|name| format!("setting `{name}`")))
        .collect();
    format!(
        "server `{}` needs {} to be set",
        tool.server,
        names.join(" and ")
    )
}

fn set_hint(secrets: &[SettingName], config: &[SettingName]) -> String {
    let mut hint = "Ask the operator to run:".to_owned();
    for name in secrets.iter().chain(config) {
        // Writing to a `String` does not fail.
        let _ = write!(hint, " `toolcrib secret set {name}`");
    }
    if secrets.is_empty() && config.is_empty() {
        "Ask the operator to correct the setting.".clone_into(&mut hint);
    }
    hint
}

fn with_left(hint: String, left: Option<u8>) -> String {
    hint + &left.map(left_text).unwrap_or_default()
}

fn left_text(left: u8) -> String {
    match left {
        0 => " The token is spent: call search_tools again.".to_owned(),
        1 => " The token is still good for one more try.".to_owned(),
        left => format!(" The token is still good for {left} more tries."),
    }
}

fn stderr_text(error: &UpstreamError) -> String {
    let stderr = match error {
        UpstreamError::Unavailable { stderr, .. }
        | UpstreamError::Timeout { stderr, .. }
        | UpstreamError::Crashed { stderr, .. } => stderr.trim(),
        UpstreamError::Resolve(_)
        | UpstreamError::OutcomeUnknown { .. }
        | UpstreamError::Busy { .. }
        | UpstreamError::Cancelled { .. }
        | UpstreamError::ShuttingDown => "",
    };
    let lines: Vec<&str> = stderr.lines().collect();
    let end = lines.len().saturating_sub(5);
    match lines.get(end..) {
        Some(lines) if !lines.is_empty() => format!("\nits last words:\n{}", lines.join("\n")),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_say_what_to_do() {
        let tool: ToolId = "slack/post".parse().unwrap();
        let (_, hint) = step_texts(StepProblem::NotOffered, std::slice::from_ref(&tool));
        assert_eq!(
            hint,
            "This token covers: post of server slack. For another tool call search_tools again."
        );
        let secret: SettingName = "slack.bot_token".parse().unwrap();
        assert_eq!(
            missing_text(&tool, std::slice::from_ref(&secret), &[]),
            "server `slack` needs secret `slack.bot_token` to be set"
        );
        assert_eq!(
            set_hint(&[secret], &[]),
            "Ask the operator to run: `toolcrib secret set slack.bot_token`"
        );
    }

    #[test]
    fn a_text_from_outside_is_cleaned_and_bounded() {
        let refusal = Refusal::invalid_query(&format!("a\u{202e}{}", "b ".repeat(3_000)));
        let body = refusal.to_json();
        let message = body["message"].as_str().unwrap();
        assert!(message.chars().count() <= TEXT_MAX && !message.contains('\u{202e}'));
    }
}
