//! How starts and requests fail, in words for people.

use std::time::Duration;

use rmcp::model::ErrorData;
use rmcp::service::ClientInitializeError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::HttpStatusError;

use crate::domain::clean_line;

/// Characters of a reason that are shown.
const REASON_CHARS_MAX: usize = 400;

/// Why a session did not start. `legacy_refused` asks for another try in the modern era.
#[derive(Debug)]
pub(super) struct StartFailure {
    pub(super) reason: String,
    pub(super) stderr: String,
    pub(super) timed_out: bool,
    pub(super) legacy_refused: bool,
}

/// How a request ended without a result.
#[derive(Debug)]
pub(super) enum RequestFailure {
    /// The upstream answered with a JSON-RPC error.
    Refused(ErrorData),
    /// No answer in time.
    Timeout(Duration),
    /// The caller went away.
    Cancelled,
    /// The session ended first.
    Lost {
        /// How, in words.
        reason: String,
        /// Whether it was a child that died.
        crashed: bool,
    },
    /// The connection was never made, or the server answered with an HTTP error.
    Unsent(String),
    /// The answer is none.
    Unreadable(String),
}

pub(super) fn failure(reason: String) -> StartFailure {
    StartFailure {
        reason,
        stderr: String::new(),
        timed_out: false,
        legacy_refused: false,
    }
}

/// Some of rmcp's variants print whole messages; those are left out.
pub(super) fn reason_of(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection".to_owned(),
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_) => {
            "its answer to `initialize` is none".to_owned()
        }
        ClientInitializeError::TransportError { error, .. } => chain(&*error.error),
        ClientInitializeError::JsonRpcError(error) => {
            format!(
                "it refused to start: {}",
                clean_line(&error.message, REASON_CHARS_MAX)
            )
        }
        other => clean_line(&other.to_string(), REASON_CHARS_MAX),
    }
}

/// An error and its causes, on one line, without the URLs that reqwest adds.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        if parts.last().is_none_or(|last| !last.contains(&text)) {
            parts.push(text);
        }
        next = error.source();
    }
    clean_line(&parts.join(": "), REASON_CHARS_MAX)
}

/// Whether a failed POST reached the server: only a connection that was never made, or an HTTP
/// error in answer, says that the tool did not run.
pub(super) fn unsent_or_lost(error: &DynamicTransportError) -> RequestFailure {
    let reason = chain(&*error.error);
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(&*error.error);
    while let Some(error) = next {
        let refused = error
            .downcast_ref::<reqwest::Error>()
            .is_some_and(reqwest::Error::is_connect);
        if refused || error.is::<HttpStatusError>() || reason.contains("HTTP 4") {
            return RequestFailure::Unsent(reason);
        }
        next = error.source();
    }
    RequestFailure::Lost {
        reason,
        crashed: false,
    }
}
