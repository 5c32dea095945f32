//! What an agent is told to do about a run that gave no result.

use std::time::Duration;

use crate::call::{Ending, UpstreamError};
use crate::domain::ToolId;

/// What became of the run that a token was spent on.
pub(super) fn already_ran(tool: &ToolId, ending: Ending, ago: Duration) -> String {
    let ran = format!("This token already ran `{tool}`, {} s ago", ago.as_secs());
    match ending {
        Ending::NotSent => format!(
            "This token was spent on `{tool}`, {} s ago, and nothing was sent. Call search_tools again.",
            ago.as_secs()
        ),
        Ending::Running => format!("{ran}, and it is still running: wait for that answer."),
        Ending::Answered => format!(
            "{ran}, and the tool answered; the result is not repeated. Call search_tools again \
             only to run it once more."
        ),
        Ending::Asked => format!(
            "{ran}, and its server asked for input: repeat the call with its `requestState` and \
             with `inputResponses`."
        ),
        Ending::ToolFailed => {
            format!("{ran}, and the tool answered with an error. Call search_tools again to retry.")
        }
        Ending::Unknown => format!(
            "{ran}, and no answer came: it may have taken effect. Check before you repeat it, then \
             call search_tools again."
        ),
    }
}

pub(super) fn upstream_hint(error: &UpstreamError) -> String {
    if let UpstreamError::OutcomeUnknown { .. } = error {
        return "The call may have taken effect. Check before you repeat it; the token is spent."
            .to_owned();
    }
    if error.sent() {
        return "The call was sent, so the token is spent. Check whether it took effect, then call \
                search_tools again."
            .to_owned();
    }
    format!(
        "Nothing was sent and the token is still good. {}",
        retry_hint(error.retry_after())
    )
}

/// The same for a call that no token was needed for.
pub(super) fn direct_hint(error: &UpstreamError) -> String {
    if error.sent() {
        return "The call was sent and may have taken effect. Check before you repeat it."
            .to_owned();
    }
    format!("Nothing was sent. {}", retry_hint(error.retry_after()))
}

pub(super) fn retry_hint(after: Option<Duration>) -> String {
    match after {
        Some(after) => format!(
            "Try again in {} seconds.",
            after.as_secs_f64().ceil().max(1.0)
        ),
        None => "Try again, or choose another tool.".to_owned(),
    }
}
