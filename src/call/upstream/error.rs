//! Why an upstream gave no result.

use std::time::Duration;

use crate::call::resolve::ResolveError;
use crate::domain::ServerName;

/// Why an upstream gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// Its launch cannot be filled in.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// It could not be started or connected to, or answered with an HTTP error.
    #[error("server `{server}` cannot be reached: {reason}")]
    Unavailable {
        /// The server.
        server: ServerName,
        /// Why, in words.
        reason: String,
        /// Its last words, masked; may be empty.
        stderr: String,
        /// Whether the call had been handed to the connection: the handle is spent.
        sent: bool,
        /// When another try makes sense, where that is known.
        retry_after: Option<Duration>,
    },
    /// It was too slow.
    #[error("server `{server}` gave no answer within {} s", after.as_secs())]
    Timeout {
        /// The server.
        server: ServerName,
        /// How long it had.
        after: Duration,
        /// Its last words, masked; may be empty.
        stderr: String,
        /// Whether the call had been sent: the handle is spent.
        sent: bool,
    },
    /// Its process died.
    #[error("server `{server}` died: {reason}")]
    Crashed {
        /// The server.
        server: ServerName,
        /// How, in words.
        reason: String,
        /// Its last words, masked; may be empty.
        stderr: String,
        /// Whether the call had been sent: the handle is spent.
        sent: bool,
    },
    /// The call was sent, and what became of it is not known. It is never sent again.
    #[error("the outcome of the call to server `{server}` is unknown: {reason}")]
    OutcomeUnknown {
        /// The server.
        server: ServerName,
        /// Why, in words.
        reason: String,
    },
    /// A limit is reached.
    #[error("too many {what} at this time")]
    Busy {
        /// Of what.
        what: &'static str,
        /// When to try again.
        retry_after: Duration,
    },
    /// The caller went away.
    #[error("the caller went away")]
    Cancelled {
        /// Whether the call had been sent: the handle is spent.
        sent: bool,
    },
    /// The program is about to end.
    #[error("shutting down")]
    ShuttingDown,
}

impl UpstreamError {
    /// Its name in the error table of the wire contract.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Resolve(_) | Self::Unavailable { .. } => "UPSTREAM_UNAVAILABLE",
            Self::Timeout { .. } => "UPSTREAM_TIMEOUT",
            Self::Crashed { .. } => "UPSTREAM_CRASHED",
            Self::OutcomeUnknown { .. } | Self::Cancelled { sent: true } => "OUTCOME_UNKNOWN",
            Self::Busy { .. } | Self::Cancelled { sent: false } => "BUSY",
            Self::ShuttingDown => "SHUTTING_DOWN",
        }
    }

    /// Whether the call had been sent: its handle is spent.
    pub fn sent(&self) -> bool {
        match self {
            Self::Unavailable { sent, .. }
            | Self::Timeout { sent, .. }
            | Self::Crashed { sent, .. }
            | Self::Cancelled { sent } => *sent,
            Self::OutcomeUnknown { .. } => true,
            Self::Resolve(_) | Self::Busy { .. } | Self::ShuttingDown => false,
        }
    }

    /// When another try makes sense, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } => Some(*retry_after),
            Self::Unavailable { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
