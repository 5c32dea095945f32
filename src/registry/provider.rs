//! Where tools come from, whoever has them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::request::Parts;

use crate::call::CallerSide;
use crate::domain::Tenant;
use crate::registry::{Arguments, ReadArgumentError, ToolList, ToolMetadata, ToolOutput};

/// Why a provider gave nothing. That it has no tool of a name is no error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProvideError {
    /// It cannot be reached, or is not well; nothing was done.
    #[error("provider `{provider}` is unavailable: {reason}")]
    Unavailable {
        /// Which one.
        provider: String,
        /// In words, for the client to read.
        reason: String,
    },
    /// It was too slow. A call may have taken effect.
    #[error("provider `{provider}` gave no answer within {} ms", after.as_millis())]
    TimedOut {
        /// Which one.
        provider: String,
        /// How long it had.
        after: Duration,
    },
    /// The call was begun, and what became of it is not known.
    #[error("the outcome of the call to provider `{provider}` is unknown: {reason}")]
    OutcomeUnknown {
        /// Which one.
        provider: String,
        /// In words, for the client to read.
        reason: String,
    },
    /// An argument that fits the schema is still wrong; nothing was done.
    #[error("the arguments do not fit")]
    Arguments(#[from] ReadArgumentError),
    /// The caller went away.
    #[error("the caller went away")]
    Cancelled,
    /// The program is about to end.
    #[error("shutting down")]
    ShuttingDown,
}

impl ProvideError {
    /// For a provider that cannot be reached or is not well.
    pub fn unavailable(provider: &str, reason: impl fmt::Display) -> Self {
        let (provider, reason) = (provider.to_owned(), reason.to_string());
        Self::Unavailable { provider, reason }
    }

    /// For a call that was begun and then lost.
    pub fn outcome_unknown(provider: &str, reason: impl fmt::Display) -> Self {
        let (provider, reason) = (provider.to_owned(), reason.to_string());
        Self::OutcomeUnknown { provider, reason }
    }
}

/// Who asks, and over what.
#[derive(Clone)]
pub struct Asker {
    /// The tenant; `local` where there are none.
    pub tenant: Arc<Tenant>,
    /// The HTTP request's method, address, headers and extensions; none on standard streams.
    /// Behind the door of `toolcrib serve` it has no credentials any more.
    pub request: Option<Parts>,
    /// What the transport adds, such as rmcp's own context.
    pub extensions: http::Extensions,
}

impl Asker {
    /// A tenant without a request.
    pub fn of(tenant: Arc<Tenant>) -> Self {
        Self {
            tenant,
            request: None,
            extensions: http::Extensions::new(),
        }
    }

    /// A header of the request, where it is text and there once.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.request.as_ref()?.headers.get_all(name).iter();
        let value = values.next()?.to_str().ok()?;
        values.next().is_none().then_some(value)
    }

    /// The path of the request, as its router was given it.
    pub fn path(&self) -> Option<&str> {
        self.request.as_ref().map(|request| request.uri.path())
    }

    /// The token of `Authorization: Bearer`.
    pub fn bearer(&self) -> Option<&str> {
        let (scheme, token) = self.header("authorization")?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    }

    /// What middleware put into the request.
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.request.as_ref()?.extensions.get()
    }
}

/// The request may hold credentials: the tenant is enough.
impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asker")
            .field("tenant", &self.tenant.id)
            .finish_non_exhaustive()
    }
}

/// One call of a tool.
#[derive(Debug)]
pub struct Call {
    /// Which tool.
    pub name: String,
    /// Its arguments, checked against its schema.
    pub arguments: Arguments,
    /// Who calls.
    pub asker: Asker,
    /// Cancellation and progress.
    pub side: CallerSide,
}

/// Has tools. What it lists is the same for everybody who reaches it: a provider for one user is
/// made for that user's requests.
pub trait ToolProvider: fmt::Debug + Send + Sync {
    /// A short name of `a-z`, `0-9` and `-`. A tenant's scope and the audit name a tool
    /// `provider/tool`.
    fn name(&self) -> &str;

    /// All tools that it lists. May be slow or fail: the last list is used then.
    fn tools(&self) -> BoxFuture<'_, Result<ToolList, ProvideError>>;

    /// Tools that it knows to fit a query and does not list, for providers with a search of their
    /// own. They are ranked anew with all others.
    fn find<'a>(
        &'a self,
        _query: &'a str,
        _most: usize,
    ) -> BoxFuture<'a, Result<ToolList, ProvideError>> {
        Box::pin(async { Ok(ToolList::default()) })
    }

    /// One tool, or `None` if it has none of the name.
    fn tool<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Arc<ToolMetadata>>, ProvideError>> {
        Box::pin(async move { Ok(self.tools().await?.find(name).cloned()) })
    }

    /// Runs a tool; `None` if it has none of the name.
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Option<ToolOutput>, ProvideError>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_without_being_shown() {
        let request = http::Request::builder()
            .uri("/users/ann/mcp")
            .header("authorization", "bearer s3cret")
            .header("x-twice", "1")
            .header("x-twice", "2")
            .extension(7_u8)
            .body(())
            .unwrap();
        let mut asker = Asker::of(Arc::new(Tenant::local()));
        assert_eq!((asker.bearer(), asker.path()), (None, None));
        asker.request = Some(request.into_parts().0);
        assert_eq!(asker.bearer(), Some("s3cret"));
        assert_eq!(asker.path(), Some("/users/ann/mcp"));
        assert_eq!(asker.header("x-twice"), None);
        assert_eq!(asker.extension::<u8>(), Some(&7));
        assert!(!format!("{asker:?}").contains("s3cret"));
    }
}
