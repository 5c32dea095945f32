//! How starts and requests fail, in words for people.

use std::time::Duration;

use rmcp::model::ErrorData;
use rmcp::service::ClientInitializeError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use crate::call::input::AskError;
use crate::call::upstream::start::Era;
use crate::call::upstream::tokens::GetTokenError;
use crate::domain::clean_line;

/// Characters of a reason that are shown.
const REASON_CHARS_MAX: usize = 400;

/// Why a session did not start.
#[derive(Debug)]
pub(super) struct StartFailure {
    pub(super) reason: String,
    pub(super) stderr: String,
    pub(super) timed_out: bool,
    /// Another way that may work, by what the server said to this one.
    pub(super) instead: Option<Era>,
}

/// How a request ended without a result.
#[derive(Debug)]
pub(super) enum RequestFailure {
    /// The upstream answered with a JSON-RPC error.
    Refused(ErrorData),
    /// The upstream asked for what the caller cannot give.
    Asks(AskError),
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
        instead: None,
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

/// An error and its causes, on one line.
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        // rmcp prints these causes and does not hand them on.
        match error.downcast_ref::<HttpFailure>() {
            Some(StreamableHttpError::Client(cause)) => {
                next = Some(cause);
                continue;
            }
            Some(StreamableHttpError::Io(cause)) => {
                next = Some(cause);
                continue;
            }
            _ => {}
        }
        let text = error.to_string();
        if parts.last().is_none_or(|last| !last.contains(&text)) {
            parts.push(text);
        }
        next = error.source();
    }
    clean_line(&parts.join(": "), REASON_CHARS_MAX)
}

/// Which way to try next when `initialize` failed: the modern era where it is refused, the older
/// HTTP transport where 404 or 405 says that there is no other.
pub(super) fn another_way(error: &ClientInitializeError) -> Option<Era> {
    let error = match error {
        ClientInitializeError::JsonRpcError(_) => return Some(Era::Modern),
        ClientInitializeError::TransportError { error, .. } => error,
        _ => return None,
    };
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(&*error.error);
    while let Some(error) = next {
        if let Some(StreamableHttpError::UnexpectedServerResponse(text)) =
            error.downcast_ref::<HttpFailure>()
        {
            let none = text.starts_with("HTTP 404") || text.starts_with("HTTP 405");
            return none.then_some(Era::Sse);
        }
        next = error.source();
    }
    None
}

/// Whether a failed POST may have run the tool. It has not when no connection was made, or when the
/// server's answer says so; a server error or a broken connection says nothing.
pub(super) fn unsent_or_lost(error: &DynamicTransportError) -> RequestFailure {
    let reason = chain(&*error.error);
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(&*error.error);
    while let Some(error) = next {
        if error.downcast_ref::<HttpFailure>().is_some_and(not_run) {
            return RequestFailure::Unsent(reason);
        }
        next = error.source();
    }
    RequestFailure::Lost {
        reason,
        crashed: false,
    }
}

type HttpFailure = StreamableHttpError<reqwest::Error>;

fn is_token_error(error: &std::io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(<dyn std::error::Error + Send + Sync>::is::<GetTokenError>)
}

fn not_run(error: &HttpFailure) -> bool {
    match error {
        StreamableHttpError::Client(error) => error.is_connect(),
        // Without a token nothing was sent; refused with one, nothing was run.
        StreamableHttpError::Io(error) => is_token_error(error),
        // Refused by a limit, or by a server that is not ready.
        StreamableHttpError::HttpStatus(error) => matches!(error.status, 429 | 503),
        StreamableHttpError::UnexpectedServerResponse(text) => {
            text.starts_with("HTTP 3") || text.starts_with("HTTP 4")
        }
        StreamableHttpError::SessionExpired
        | StreamableHttpError::ReinitializationFailed(_)
        | StreamableHttpError::AuthRequired(_)
        | StreamableHttpError::InsufficientScope(_) => true,
        _ => false,
    }
}
