//! An HTTP service described by an OpenAPI document, each operation a tool.
//!
//! The importer reads the definitions; here is where arguments go in the request, and the request.

mod operation;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use reqwest::Url;
use secrecy::SecretString;
use serde_json::Value;

use crate::call::{HttpError, checked_client};
use crate::catalog::import::{self, Document, Format};
use crate::domain::{ParseNameError, ServerName};
use crate::registry::openapi::operation::Operation;
use crate::registry::provider::{Call, ProvideError, ToolProvider};
use crate::registry::{ToolList, ToolMetadata, ToolOutput, Visibility};

/// Largest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// Longest wait for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Longest wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(45);

/// A document cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadOpenApiError {
    /// The provider's name is none.
    #[error("not a provider's name")]
    Name(#[from] ParseNameError),
    /// It is no OpenAPI 3 document with an operation.
    #[error("`{document}` cannot be taken: {reason}")]
    Document {
        /// Which one.
        document: String,
        /// Why.
        reason: String,
    },
    /// The service must not be connected to.
    #[error("the service at `{url}` cannot be used: {reason}")]
    Service {
        /// Its address.
        url: String,
        /// Why.
        reason: String,
    },
}

/// Where the service is, and what each request carries.
#[derive(Clone, Debug)]
pub struct OpenApiOptions {
    /// Its address; paths of the document go behind it. It is never taken from the document.
    pub base: String,
    /// Headers of each request.
    pub headers: Vec<(String, SecretString)>,
    /// Whether it may be at a loopback address, over plain `http`.
    pub loopback: bool,
}

/// The operations of one document.
pub struct OpenApiProvider {
    name: ServerName,
    base: Url,
    http: reqwest::Client,
    operations: HashMap<String, Operation>,
    list: ToolList,
}

impl fmt::Debug for OpenApiProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "OpenApiProvider({}, {} tools)",
            self.name,
            self.list.len()
        )
    }
}

impl OpenApiProvider {
    /// Of a document as JSON or YAML. `name` is the provider's.
    pub fn new(
        name: &str,
        document: &Document,
        options: &OpenApiOptions,
    ) -> Result<Self, ReadOpenApiError> {
        let refuse = |reason: String| ReadOpenApiError::Document {
            document: document.name.clone(),
            reason,
        };
        let value: Value = serde_saphyr::from_str(&document.text).map_err(|error| {
            refuse(
                error
                    .to_string()
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
            )
        })?;
        let imported = import::read(Format::OpenApi, std::slice::from_ref(document));
        let Some(server) = imported.servers.first() else {
            let notes = imported.report.notes.iter().map(ToString::to_string);
            return Err(refuse(notes.collect::<Vec<_>>().join("; ")));
        };
        let mut operations = operation::all(&value);
        let tools = server
            .tools
            .iter()
            .filter(|tool| operations.contains_key(tool.name().as_str()));
        let tools = tools.map(|tool| ToolMetadata::new(tool.clone(), Visibility::Discoverable));
        let list = ToolList::new(tools.map(Arc::new));
        operations.retain(|name, _| list.find(name).is_some());
        let service = |error: HttpError| ReadOpenApiError::Service {
            url: options.base.clone(),
            reason: error.to_string(),
        };
        let client = checked_client(
            &options.base,
            &options.headers,
            CONNECT_MAX,
            options.loopback,
        );
        let (base, http) = client.map_err(service)?;
        Ok(Self {
            name: name.parse()?,
            base,
            http,
            operations,
            list,
        })
    }

    async fn run(&self, call: Call) -> Result<Option<ToolOutput>, ProvideError> {
        let Some(operation) = self.operations.get(&call.name) else {
            return Ok(None);
        };
        let request = operation.request(&self.http, &self.base, call.arguments)?;
        let answer = async {
            let response = request.send().await.map_err(|error| self.failure(&error))?;
            let status = response.status();
            let (mut body, mut parts) = (Vec::new(), response.bytes_stream());
            while let Some(part) = parts.next().await {
                body.extend_from_slice(&part.map_err(|error| self.failure(&error))?);
                if ANSWER_BYTES_MAX < body.len() {
                    let text = format!("the answer is over {ANSWER_BYTES_MAX} bytes");
                    return Ok(ToolOutput::error(text));
                }
            }
            let text = String::from_utf8_lossy(&body).into_owned();
            if !status.is_success() {
                return Ok(ToolOutput::error(format!("HTTP {status}\n{text}")));
            }
            Ok(match serde_json::from_str::<Value>(&text) {
                Ok(value @ Value::Object(_)) => ToolOutput::json(value),
                _ => ToolOutput::text(text),
            })
        };
        tokio::select! {
            answer = tokio::time::timeout(ANSWER_MAX, answer) => match answer {
                Ok(output) => output.map(Some),
                Err(_elapsed) => Err(ProvideError::TimedOut {
                    provider: self.name().to_owned(),
                    after: ANSWER_MAX,
                }),
            },
            () = call.side.cancel.cancelled() => Err(ProvideError::Cancelled),
        }
    }

    /// The address stays out: it may hold arguments.
    fn failure(&self, error: &reqwest::Error) -> ProvideError {
        match error.is_connect() {
            true => ProvideError::unavailable(self.name(), "it cannot be connected to"),
            false => ProvideError::outcome_unknown(self.name(), "the connection was lost"),
        }
    }
}

impl ToolProvider for OpenApiProvider {
    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn tools(&self) -> BoxFuture<'_, Result<ToolList, ProvideError>> {
        std::future::ready(Ok(self.list.clone())).boxed()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Option<ToolOutput>, ProvideError>> {
        self.run(call).boxed()
    }
}

#[cfg(test)]
mod tests;
