//! What operators see: log lines, metrics, and one audit event for each search, run and refusal.
//!
//! Nothing here ever takes a secret, a handle, an argument or the text of a query.

mod audit;
mod metrics;
mod operation;

use std::error::Error;
use std::fmt;
use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::TryInitError;

use crate::config::{LogFormat, LogSection};

pub use self::audit::{AuditEvent, audit};
pub use self::metrics::{Gauge, count_embedded, metrics_page, set_gauge};
pub use self::operation::{Operation, Request, call_span, record_operation, record_request};

/// Logging was not set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartLoggingError {
    /// The filter does not read.
    #[error("log.level `{level}` is no level or filter: use error, warn, info, debug or trace")]
    Filter {
        /// The filter.
        level: String,
        /// What is wrong.
        source: tracing_subscriber::filter::ParseError,
    },
    /// Somebody else has set it up.
    #[error("logging was started already")]
    Twice(#[from] TryInitError),
}

/// Libraries that print whole messages, with handles and arguments in them, below this level. What
/// `rmcp::service` calls an error is that a client went away, which each stream of changes ends by.
const CAPS: &str = "rmcp=warn,rmcp::service=off,hyper=info,reqwest=info,h2=info";

/// Sends log lines to standard error. Standard output belongs to the protocol and to results.
///
/// Whatever the level, libraries that would log messages as they are stay at `info` or above.
pub fn start_logging(log: &LogSection) -> Result<(), StartLoggingError> {
    use tracing_subscriber::util::SubscriberInitExt;
    let filter = EnvFilter::try_new(format!("{},{CAPS}", log.level)).map_err(|source| {
        StartLoggingError::Filter {
            level: log.level.clone(),
            source,
        }
    })?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(true);
    match log.format {
        LogFormat::Text => lines.finish().try_init()?,
        LogFormat::Json => lines.json().finish().try_init()?,
    }
    Ok(())
}

/// Prints an error and all its causes, each once.
#[derive(Clone, Copy)]
pub struct Chain<'a>(pub &'a (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl fmt::Debug for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_prints_each_cause_once() {
        let text = "host = 1\nhost = 2".parse::<toml::Table>().unwrap_err();
        let error = StartError { source: text };
        let shown = Chain(&error).to_string();
        assert!(shown.starts_with("cannot start: "));
        assert_eq!(shown.matches("duplicate key").count(), 1);
    }

    #[derive(Debug, thiserror::Error)]
    #[error("cannot start")]
    struct StartError {
        source: toml::de::Error,
    }
}
