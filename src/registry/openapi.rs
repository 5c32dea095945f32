//! An HTTP service described by an OpenAPI document, each operation a tool.
//!
//! The importer reads definitions and operations; the request is the one that catalog servers get.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use secrecy::SecretString;

use crate::call::{HttpError, HttpService};
use crate::catalog::import::{self, Document, Format};
use crate::domain::{Launch, Operations, ParseNameError, ServerName};
use crate::registry::provider::{Call, ProvideError, ToolProvider};
use crate::registry::{ReadArgumentError, ToolList, ToolMetadata, ToolOutput, Visibility};

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
    service: HttpService,
    secrets: Vec<SecretString>,
    operations: Operations,
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
        let imported = import::read(Format::OpenApi, std::slice::from_ref(document));
        let Some(server) = imported.servers.first() else {
            let notes = imported.report.notes.iter().map(ToString::to_string);
            return Err(refuse(notes.collect::<Vec<_>>().join("; ")));
        };
        let operations = match &server.launch {
            Some(Launch::OpenApi { operations, .. }) => operations.clone(),
            _ => return Err(refuse("it has no operation that can be run".to_owned())),
        };
        let tools = server.tools.iter();
        let tools = tools.filter(|tool| operations.contains_key(tool.name()));
        let tools = tools.map(|tool| ToolMetadata::new(tool.clone(), Visibility::Discoverable));
        let list = ToolList::new(tools.map(Arc::new));
        let service = |error: HttpError| ReadOpenApiError::Service {
            url: options.base.clone(),
            reason: error.to_string(),
        };
        let made = HttpService::new(
            &options.base,
            &options.headers,
            CONNECT_MAX,
            options.loopback,
        );
        let headers = options.headers.iter();
        Ok(Self {
            name: name.parse()?,
            service: made.map_err(service)?,
            secrets: headers.map(|(_, secret)| secret.clone()).collect(),
            operations,
            list,
        })
    }

    async fn run(&self, call: Call) -> Result<Option<ToolOutput>, ProvideError> {
        let found = self
            .operations
            .iter()
            .find(|(tool, _)| tool.as_str() == call.name);
        let Some((_, operation)) = found else {
            return Ok(None);
        };
        let placed = operation.place(&call.arguments.into_map());
        let placed = placed.map_err(ReadArgumentError::from)?;
        tokio::select! {
            answer = tokio::time::timeout(ANSWER_MAX, self.service.ask(operation, placed)) => {
                match answer {
                    Ok(Ok(answer)) => {
                        let result = answer.into_result(&self.secrets);
                        Ok(Some(ToolOutput::from_result(result)))
                    }
                    Ok(Err(error)) => Err(self.failure(&error)),
                    Err(_elapsed) => Err(ProvideError::TimedOut {
                        provider: self.name().to_owned(),
                        after: ANSWER_MAX,
                    }),
                }
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
