//! Streamable HTTP: rmcp's client over our own connections, with results kept as they came.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, Stream, StreamExt};
use http::{HeaderName, HeaderValue, StatusCode, header};
use reqwest::Url;
use reqwest::redirect::{Attempt, Policy};
use rmcp::model::{
    ClientJsonRpcMessage, ErrorCode, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    HttpStatusError, SseError, StreamableHttpClient, StreamableHttpClientTransport,
    StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
};
use secrecy::{ExposeSecret, SecretString};
use sse_stream::{Sse, SseStream};

use crate::call::resolve::Remote;
use crate::call::upstream::address::{AddressError, PublicOnly, check_url};
use crate::call::upstream::body::{bounded, read};
use crate::call::upstream::tap::{Tap, keeps_result};
use crate::call::upstream::tokens::{GetTokenError, Tokens};

pub(super) const JSON: &str = "application/json";
pub(super) const EVENT_STREAM: &str = "text/event-stream";
const SESSION_ID: &str = "mcp-session-id";
/// What the protocol's own SDKs answer for a session that they do not know.
const SESSION_UNKNOWN: ErrorCode = ErrorCode(-32_001);
/// Hops within one origin, such as `/mcp` to `/mcp/`.
const REDIRECTS_MAX: usize = 3;
/// Characters of an error page that are shown.
const ERROR_CHARS_MAX: usize = 300;

pub(super) type Failure = StreamableHttpError<reqwest::Error>;
pub(super) type Events = BoxStream<'static, Result<Sse, SseError>>;

/// Why no client can be made for a URL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum HttpError {
    /// The URL is not one that may be connected to.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A header that cannot be sent.
    #[error("the header `{0}` has a name or value that cannot be sent")]
    Header(String),
    /// TLS cannot be set up.
    #[error("cannot set up the client")]
    Client(#[source] reqwest::Error),
}

/// Limits of one client.
#[derive(Clone, Copy, Debug)]
pub(super) struct HttpLimits {
    pub(super) connect_max: Duration,
    pub(super) bytes_max: usize,
    pub(super) calls_max: usize,
    pub(super) loopback: bool,
}

/// The URL of an endpoint, checked, and a client for it.
pub(super) fn client(
    remote: &Remote,
    limits: HttpLimits,
    tap: Arc<Tap>,
    tokens: Option<Arc<Tokens>>,
) -> Result<(Url, Client), HttpError> {
    let (max, loopback) = (limits.connect_max, limits.loopback);
    let (url, http) = checked_client(&remote.url, &remote.headers, max, loopback)?;
    let client = Client {
        http,
        tap,
        tokens,
        bytes_max: limits.bytes_max,
    };
    Ok((url, client))
}

/// Streamable HTTP to a checked URL.
pub(super) fn streamable(
    url: &Url,
    client: Client,
    limits: HttpLimits,
) -> StreamableHttpClientTransport<Client> {
    let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .max_concurrent_requests(limits.calls_max)
        .max_sse_event_size(limits.bytes_max)
        .max_json_response_size(limits.bytes_max);
    StreamableHttpClientTransport::with_client(client, config)
}

/// A URL that may be connected to, and a client that connects to checked addresses only and sends
/// these headers with each request.
pub(crate) fn checked_client(
    url: &str,
    headers: &[(String, SecretString)],
    connect_max: Duration,
    loopback: bool,
) -> Result<(Url, reqwest::Client), HttpError> {
    let url = check_url(url, loopback)?;
    let mut defaults = http::HeaderMap::new();
    for (name, value) in headers {
        let wrong = || HttpError::Header(name.clone());
        let header = HeaderName::try_from(name.as_str()).map_err(|_cause| wrong())?;
        // The protocol's own headers are rmcp's.
        if header.as_str().starts_with("mcp-") || header == header::HOST {
            return Err(wrong());
        }
        let mut value = HeaderValue::try_from(value.expose_secret()).map_err(|_cause| wrong())?;
        value.set_sensitive(true);
        defaults.insert(header, value);
    }
    // Another part of the program may have installed it already, which is as good.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .default_headers(defaults)
        .connect_timeout(connect_max)
        .redirect(Policy::custom(within_origin))
        .dns_resolver(Arc::new(PublicOnly { loopback }))
        // A proxy would look the names up itself, unchecked.
        .no_proxy()
        .referer(false)
        .build()
        .map_err(HttpError::Client)?;
    Ok((url, client))
}

/// Follows 307 and 308 within one origin; elsewhere our headers would leak.
fn within_origin(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let same = attempt
        .previous()
        .first()
        .is_some_and(|first| origin(first) == origin(attempt.url()));
    let keeps_method = matches!(
        attempt.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    if same && keeps_method && attempt.previous().len() <= REDIRECTS_MAX {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

pub(super) fn origin(url: &Url) -> (String, Option<String>, Option<u16>) {
    let host = url.host_str().map(str::to_owned);
    (url.scheme().to_owned(), host, url.port_or_known_default())
}

/// Connections to one server for one tenant.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) http: reqwest::Client,
    pub(super) tap: Arc<Tap>,
    tokens: Option<Arc<Tokens>>,
    pub(super) bytes_max: usize,
}

impl Client {
    /// Sends with an access token where the server takes some. One that is refused is replaced and
    /// the request sent again, once: a server that answers 401 has not accepted it.
    pub(super) async fn authorized<'a, T>(
        &self,
        send: impl Fn(Option<&str>) -> BoxFuture<'a, Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let Some(tokens) = &self.tokens else {
            return send(None).await;
        };
        let failed = |error: GetTokenError| Failure::Io(std::io::Error::other(error));
        let mut token = tokens.bearer().await.map_err(failed)?;
        for last in [false, true] {
            match send(Some(token.reveal())).await {
                Err(error) if is_unauthorized(&error) && last => break,
                Err(error) if is_unauthorized(&error) => {
                    token = tokens.instead_of(&token).await.map_err(failed)?;
                }
                answer => {
                    token.accept();
                    return answer;
                }
            }
        }
        Err(failed(GetTokenError::Refused))
    }

    /// Posts a request whose result is kept as JSON.
    async fn post_kept(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session_id: Option<&str>,
        (token, headers): (Option<String>, HashMap<HeaderName, HeaderValue>),
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let mut request = self
            .http
            .post(uri)
            .header(header::ACCEPT, format!("{EVENT_STREAM}, {JSON}"))
            .headers(headers.into_iter().collect())
            .header(header::CONTENT_TYPE, JSON)
            .body(serde_json::to_vec(message)?);
        if let Some(id) = session_id {
            request = request.header(SESSION_ID, id);
        }
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.map_err(StreamableHttpError::Client)?;
        let status = response.status();
        let value = |name: &str| {
            let value = response.headers().get(name)?;
            Some(value.to_str().ok()?.to_owned())
        };
        let (kind, session) = (value("content-type").unwrap_or_default(), value(SESSION_ID));
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if status.is_success() && essence.eq_ignore_ascii_case(EVENT_STREAM) {
            let events = self.events(response.bytes_stream());
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        let body = read(response.bytes_stream(), self.bytes_max).await?;
        let body = body.ok_or(StreamableHttpError::ResponseBodyTooLarge {
            max_size: self.bytes_max,
        })?;
        let is_json = essence.eq_ignore_ascii_case(JSON);
        let answer = is_json.then(|| self.tap.incoming(&body)).flatten();
        if let Some(answer) = answer.filter(|answer| is_answer(answer, message, status)) {
            return Ok(StreamableHttpPostResponse::Json(answer, session));
        }
        if status == StatusCode::NOT_FOUND && session_id.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if status.is_success() && !is_json {
            return Err(StreamableHttpError::UnexpectedContentType(Some(kind)));
        }
        if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
            return Err(HttpStatusError::new(status.as_u16(), None).into());
        }
        let text: String = String::from_utf8_lossy(&body)
            .chars()
            .take(ERROR_CHARS_MAX)
            .collect();
        let text = format!("HTTP {status}: {text}");
        Err(StreamableHttpError::UnexpectedServerResponse(text.into()))
    }

    /// Server-sent events, with the results in them sealed.
    fn events(
        &self,
        bytes: impl Stream<Item = Result<Bytes, reqwest::Error>> + Send + 'static,
    ) -> Events {
        self.seal(SseStream::from_bytes_stream(bounded(bytes, self.bytes_max)).boxed())
    }

    fn seal(&self, events: Events) -> Events {
        let tap = self.tap.clone();
        events
            .map(move |event| {
                event.map(|mut event| {
                    if let Some(sealed) = event.data.as_deref().and_then(|data| tap.sealed(data)) {
                        event.data = Some(sealed);
                    }
                    event
                })
            })
            .boxed()
    }
}

/// Whether a message is the answer to a request: a result, or an error whatever the status. One
/// that names no request would never reach its caller. With 404, an error that a server may give
/// for a session it does not know is none: that request was not processed, and is sent again.
fn is_answer(
    message: &ServerJsonRpcMessage,
    request: &ClientJsonRpcMessage,
    status: StatusCode,
) -> bool {
    let JsonRpcMessage::Request(request) = request else {
        return false;
    };
    let same = |id: &RequestId| match id {
        RequestId::Number(_) => *id == request.id,
        RequestId::String(text) => **text == request.id.to_string(),
    };
    match message {
        JsonRpcMessage::Response(response) => {
            let good = status.is_success() || status == StatusCode::NOT_FOUND;
            good && same(&response.id)
        }
        JsonRpcMessage::Error(error) => {
            let unknown = status == StatusCode::NOT_FOUND && error.error.code == SESSION_UNKNOWN;
            !unknown && error.id.as_ref().is_some_and(same)
        }
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => false,
    }
}

/// Whether a server asks for another access token.
fn is_unauthorized(error: &Failure) -> bool {
    match error {
        StreamableHttpError::AuthRequired(_) => true,
        StreamableHttpError::UnexpectedServerResponse(text) => text.starts_with("HTTP 401"),
        StreamableHttpError::Client(error) => error.status() == Some(StatusCode::UNAUTHORIZED),
        _ => false,
    }
}

impl StreamableHttpClient for Client {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.tap.outgoing(&message);
        let kept =
            matches!(&message, JsonRpcMessage::Request(request) if keeps_result(&request.request));
        if kept {
            let (uri, id) = (&uri, session_id.as_deref());
            let post = |token: Option<&str>| {
                let beside = (token.map(str::to_owned), headers.clone());
                self.post_kept(uri, &message, id, beside).boxed()
            };
            return self.authorized(post).await;
        }
        let post = |token: Option<&str>| {
            let (uri, message) = (uri.clone(), message.clone());
            let token = token.map(str::to_owned).or_else(|| auth_header.clone());
            let (id, headers) = (session_id.clone(), headers.clone());
            self.http
                .post_message(uri, message, id, token, headers)
                .boxed()
        };
        self.authorized(post).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let delete = |token: Option<&str>| {
            let token = token.map(str::to_owned).or_else(|| auth_header.clone());
            let (uri, id, headers) = (uri.clone(), session_id.clone(), headers.clone());
            self.http.delete_session(uri, id, token, headers).boxed()
        };
        self.authorized(delete).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Failure> {
        let get = |token: Option<&str>| {
            let token = token.map(str::to_owned).or_else(|| auth_header.clone());
            let (uri, id, headers) = (uri.clone(), session_id.clone(), headers.clone());
            self.http
                .get_stream(uri, id, last_event_id.clone(), token, headers)
                .boxed()
        };
        let events = self.authorized(get).await?;
        Ok(self.seal(events))
    }
}
