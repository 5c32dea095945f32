//! The HTTP transport of 2024-11-05: a stream of events, and another URL for what is sent.
//!
//! rmcp speaks streamable HTTP only. The stream is the session: when it ends, so does the session,
//! and nothing is taken up again.

use futures::{FutureExt, StreamExt};
use http::{StatusCode, header};
use reqwest::Url;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::service::{RoleClient, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::{HttpStatusError, StreamableHttpError};
use sse_stream::{Sse, SseStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::call::upstream::body::bounded;
use crate::call::upstream::http::{Client, EVENT_STREAM, Events, Failure, JSON, origin};
use crate::call::upstream::lines::unread;

/// Events that may come before the one that names the endpoint, such as pings.
const EVENTS_BEFORE_MAX: usize = 16;
/// Longest URL of an endpoint, in bytes.
const ENDPOINT_BYTES_MAX: usize = 4_096;

/// An open stream, and where to send.
pub(super) struct Stream {
    client: Client,
    endpoint: Url,
    events: Events,
    /// Cancelled when the stream has ended: what is still being sent is given up.
    gone: CancellationToken,
    _gone: DropGuard,
}

/// Opens the stream and waits for the endpoint. Endless only as far as the caller's patience.
pub(super) async fn open(url: &Url, client: Client) -> Result<Stream, Failure> {
    let get = |token: Option<&str>| get(&client, url, token.map(str::to_owned)).boxed();
    let (base, mut events) = client.authorized(get).await?;
    for _before in 0..EVENTS_BEFORE_MAX {
        let event = match events.next().await {
            Some(event) => event?,
            None => break,
        };
        if event.event.as_deref() == Some("endpoint") {
            let endpoint = endpoint(&base, event.data.as_deref().unwrap_or_default())?;
            let gone = CancellationToken::new();
            return Ok(Stream {
                client,
                endpoint,
                events,
                _gone: gone.clone().drop_guard(),
                gone,
            });
        }
    }
    Err(unexpected("its stream names no endpoint"))
}

async fn get(client: &Client, url: &Url, token: Option<String>) -> Result<(Url, Events), Failure> {
    let mut request = client
        .http
        .get(url.clone())
        .header(header::ACCEPT, EVENT_STREAM);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let response = request.send().await.map_err(StreamableHttpError::Client)?;
    check(response.status())?;
    let kind = response.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.to_ascii_lowercase().starts_with(EVENT_STREAM) {
        let kind = Some(kind.to_owned());
        return Err(StreamableHttpError::UnexpectedContentType(kind));
    }
    let base = response.url().clone();
    let bytes = bounded(response.bytes_stream(), client.bytes_max);
    Ok((base, SseStream::from_bytes_stream(bytes).boxed()))
}

/// The URL that the stream names. It may not lead away: our headers would go with it.
fn endpoint(base: &Url, text: &str) -> Result<Url, Failure> {
    let text = text.trim();
    let joined = (!text.is_empty() && text.len() <= ENDPOINT_BYTES_MAX)
        .then(|| base.join(text).ok())
        .flatten();
    let url = joined.ok_or_else(|| unexpected("its endpoint is no URL"))?;
    if origin(&url) != origin(base) || !url.username().is_empty() || url.password().is_some() {
        return Err(unexpected("its endpoint is on another origin"));
    }
    Ok(url)
}

fn check(status: StatusCode) -> Result<(), Failure> {
    if status.is_success() {
        Ok(())
    } else if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
        Err(HttpStatusError::new(status.as_u16(), None).into())
    } else {
        let text = format!("HTTP {status}");
        Err(StreamableHttpError::UnexpectedServerResponse(text.into()))
    }
}

fn unexpected(why: &'static str) -> Failure {
    StreamableHttpError::UnexpectedServerResponse(why.into())
}

async fn post(
    client: &Client,
    endpoint: &Url,
    body: Vec<u8>,
    token: Option<String>,
) -> Result<(), Failure> {
    let mut request = client
        .http
        .post(endpoint.clone())
        .header(header::CONTENT_TYPE, JSON)
        .body(body);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let response = request.send().await.map_err(StreamableHttpError::Client)?;
    check(response.status())
}

impl Stream {
    /// The message of an event, if it is one.
    fn message(&self, event: &Sse) -> Option<ServerJsonRpcMessage> {
        if event.event.as_deref().is_some_and(|kind| kind != "message") {
            return None;
        }
        let data = event.data.as_deref()?.as_bytes();
        let broken = || unread(data, "the answer is no valid JSON".to_owned());
        self.client.tap.incoming(data).or_else(broken)
    }
}

impl Transport<RoleClient> for Stream {
    type Error = Failure;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.client.tap.outgoing(&message);
        let (client, endpoint) = (self.client.clone(), self.endpoint.clone());
        let gone = self.gone.clone();
        async move {
            let body = serde_json::to_vec(&message)?;
            let post = |token: Option<&str>| {
                let token = token.map(str::to_owned);
                post(&client, &endpoint, body.clone(), token).boxed()
            };
            let sent = tokio::select! {
                sent = client.authorized(post) => sent,
                () = gone.cancelled() => return Err(StreamableHttpError::UnexpectedEndOfStream),
            };
            if let Err(StreamableHttpError::UnexpectedServerResponse(text)) = &sent
                && (text.starts_with("HTTP 404") || text.starts_with("HTTP 410"))
            {
                // It knows this session no more: the next call gets another.
                gone.cancel();
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let event = tokio::select! {
                event = self.events.next() => event,
                () = self.gone.cancelled() => None,
            };
            let Some(Ok(event)) = event else {
                self.gone.cancel();
                return None;
            };
            if let Some(message) = self.message(&event) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.gone.cancel();
        self.events = futures::stream::empty().boxed();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_stays_on_its_origin() {
        let base = Url::parse("https://a.example:8443/mcp/sse?x=1").unwrap();
        let check = |text: &str, expected: Option<&str>| {
            let found = endpoint(&base, text).ok().map(String::from);
            assert_eq!(found.as_deref(), expected, "{text}");
        };
        check("/m?s=1", Some("https://a.example:8443/m?s=1"));
        check("m", Some("https://a.example:8443/mcp/m"));
        check(
            "https://a.example:8443/m\n",
            Some("https://a.example:8443/m"),
        );
        for away in [
            "",
            "http://a.example:8443/m",
            "https://a.example/m",
            "https://b.example:8443/m",
            "//b.example:8443/m",
            "https://user@a.example:8443/m",
            "https://:pass@a.example:8443/m",
            "\\\\b.example\\m",
            "javascript:alert(1)",
            "https://[::1",
        ] {
            check(away, None);
        }
        check(&format!("/{}", "x".repeat(ENDPOINT_BYTES_MAX)), None);
    }
}
