//! Fetching a document: what has not changed is not sent, what is too large is not read to its
//! end, and what fails for a moment is tried again.

use std::time::Duration;

use futures::StreamExt;
use http::{HeaderMap, StatusCode, header};
use reqwest::Url;
use reqwest::redirect::{Action, Attempt, Policy};

use crate::catalog::refresh::source::is_loopback;
use crate::catalog::snapshot::Seen;

/// Redirects that are followed.
const REDIRECTS_MAX: usize = 3;
/// Longest `ETag` or `Last-Modified` that is kept, in characters.
const VALIDATOR_MAX: usize = 500;

/// Limits of fetching. [`Default`] is the documented configuration.
#[derive(Clone, Debug)]
pub struct FetchOptions {
    /// Largest document, in bytes.
    pub bytes_max: u64,
    /// Longest wait for a connection.
    pub connect_max: Duration,
    /// Longest attempt, the document included.
    pub attempt_max: Duration,
    /// Attempts in all.
    pub attempts: u32,
    /// Wait before the second attempt; doubled before each further one.
    pub back_off: Duration,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            bytes_max: 64 * 1024 * 1024,
            connect_max: Duration::from_secs(10),
            attempt_max: Duration::from_mins(1),
            attempts: 3,
            back_off: Duration::from_secs(1),
        }
    }
}

/// Why a document was not fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// Another status than 200 and 304.
    #[error("the server answered {0}")]
    Status(StatusCode),
    /// A redirect to another server, or one too many.
    #[error("a redirect to `{0}` was not followed: it leaves the server, or is one too many")]
    Redirect(Box<str>),
    /// More bytes than allowed.
    #[error("the document is over the limit of {max} bytes")]
    TooLarge {
        /// The limit.
        max: u64,
    },
    /// A registry that names page after page.
    #[error("it has more than {max} pages")]
    TooManyPages {
        /// The limit.
        max: usize,
    },
    /// It took too long.
    #[error("no whole answer within {after:?}")]
    Timeout {
        /// The limit.
        after: Duration,
    },
    /// Connection or transfer.
    #[error("cannot fetch the document")]
    Transfer(#[source] reqwest::Error),
    /// Not UTF-8.
    #[error("the document is not UTF-8 text")]
    NotText,
}

impl FetchError {
    /// Whether another attempt may end otherwise.
    fn is_passing(&self) -> bool {
        match self {
            Self::Status(status) => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            Self::Transfer(_) | Self::Timeout { .. } => true,
            Self::Redirect(_)
            | Self::TooLarge { .. }
            | Self::TooManyPages { .. }
            | Self::NotText => false,
        }
    }
}

/// An answer.
#[derive(Debug)]
pub(super) enum Fetched {
    /// As it was.
    NotModified,
    /// The document, with what tells it from the next; the digest is not set.
    Document(String, Seen),
}

/// Fetches documents.
#[derive(Debug)]
pub(super) struct Fetcher {
    options: FetchOptions,
}

impl Fetcher {
    pub(super) fn new(options: FetchOptions) -> Self {
        Self { options }
    }

    /// The document at a URL, unless it is as `seen`.
    pub(super) async fn fetch(
        &self,
        url: &Url,
        seen: Option<&Seen>,
    ) -> Result<Fetched, FetchError> {
        let client = self.client(url).map_err(FetchError::Transfer)?;
        let mut wait = self.options.back_off;
        let mut attempt = 1;
        loop {
            let limit = self.options.attempt_max;
            let once = tokio::time::timeout(limit, self.fetch_once(&client, url, seen)).await;
            let error = match once {
                Ok(Ok(fetched)) => return Ok(fetched),
                Ok(Err(error)) => error,
                Err(_elapsed) => FetchError::Timeout { after: limit },
            };
            if !error.is_passing() || self.options.attempts <= attempt {
                return Err(error);
            }
            tokio::time::sleep(wait).await;
            wait *= 2;
            attempt += 1;
        }
    }

    fn client(&self, url: &Url) -> Result<reqwest::Client, reqwest::Error> {
        // Another part of the program may have installed it already, which is as good.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .connect_timeout(self.options.connect_max)
            .redirect(Policy::custom(within_server))
            .referer(false)
            .user_agent(concat!("toolcrib/", env!("CARGO_PKG_VERSION")));
        match is_loopback(url) {
            true => client.no_proxy().build(),
            false => client.build(),
        }
    }

    async fn fetch_once(
        &self,
        client: &reqwest::Client,
        url: &Url,
        seen: Option<&Seen>,
    ) -> Result<Fetched, FetchError> {
        let mut request = client.get(url.clone());
        if let Some(etag) = seen.and_then(|seen| seen.etag.as_deref()) {
            request = request.header(header::IF_NONE_MATCH, etag);
        }
        if let Some(date) = seen.and_then(|seen| seen.last_modified.as_deref()) {
            request = request.header(header::IF_MODIFIED_SINCE, date);
        }
        let response = request.send().await.map_err(FetchError::Transfer)?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_MODIFIED if seen.is_some() => return Ok(Fetched::NotModified),
            status if status.is_redirection() => {
                let to = response.headers().get(header::LOCATION);
                let to = to.and_then(|to| to.to_str().ok()).unwrap_or_default();
                let to = crate::domain::clean_line(to, 200);
                return Err(FetchError::Redirect(to.into()));
            }
            status => return Err(FetchError::Status(status)),
        }
        let max = self.options.bytes_max;
        let too_large = || FetchError::TooLarge { max };
        if response.content_length().is_some_and(|bytes| max < bytes) {
            return Err(too_large());
        }
        let next = Seen {
            etag: validator(response.headers(), &header::ETAG),
            last_modified: validator(response.headers(), &header::LAST_MODIFIED),
            ..Seen::default()
        };
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(FetchError::Transfer)?;
            let length = body.len().saturating_add(chunk.len());
            if u64::try_from(length).map_or(true, |length| max < length) {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        let text = String::from_utf8(body).map_err(|_not_text| FetchError::NotText)?;
        Ok(Fetched::Document(text, next))
    }
}

fn validator(headers: &HeaderMap, name: &header::HeaderName) -> Option<String> {
    let text = headers.get(name)?.to_str().ok()?;
    (text.len() <= VALIDATOR_MAX).then(|| text.to_owned())
}

/// Follows a few redirects within one server. Whoever is there can be held to what it says;
/// whoever it names cannot.
fn within_server(attempt: Attempt<'_>) -> Action {
    let place = |url: &Url| {
        let host = url.host_str().map(str::to_owned);
        (url.scheme().to_owned(), host, url.port_or_known_default())
    };
    let first = attempt.previous().first().map(place);
    if first == Some(place(attempt.url())) && attempt.previous().len() <= REDIRECTS_MAX {
        attempt.follow()
    } else {
        attempt.stop()
    }
}
