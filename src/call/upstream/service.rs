//! An HTTP service that speaks no MCP: one request for one call, and its answer as a result.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use reqwest::Url;
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::call::CallerSide;
use crate::call::upstream::failure::{RequestFailure, chain};
use crate::call::upstream::http::{HttpError, checked_client};

use crate::call::upstream::mask::mask;
use crate::call::upstream::waiting::CallLimits;
use crate::domain::{Operation, Operations, Placed, ToolName};
use crate::lifecycle::Lifecycle;

/// Largest answer, in bytes. Agents read a few thousand characters of it.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A connection that nobody has used for this time is let go.
const UNUSED_MAX: Duration = Duration::from_mins(5);

/// Where a service is, and what each request carries.
#[derive(Debug)]
pub(crate) struct HttpService {
    base: Url,
    http: reqwest::Client,
    /// Headers that no argument replaces.
    own: Vec<HeaderName>,
}

/// What a service answered.
pub(crate) struct Answer {
    status: StatusCode,
    kind: String,
    location: bool,
    retry_after: Option<String>,
    /// `None` past the limit.
    body: Option<Vec<u8>>,
}

impl HttpService {
    /// A service at an address that may be connected to.
    pub(crate) fn new(
        base: &str,
        headers: &[(String, SecretString)],
        connect_max: Duration,
        loopback: bool,
    ) -> Result<Self, HttpError> {
        let (base, http) = checked_client(base, headers, connect_max, loopback)?;
        let names = headers.iter();
        let own = names.filter_map(|(name, _)| HeaderName::try_from(name.as_str()).ok());
        Ok(Self {
            base,
            http,
            own: own.collect(),
        })
    }

    /// Sends one request and reads the answer. Dropped, it ends the connection.
    pub(crate) async fn ask(
        &self,
        operation: &Operation,
        placed: Placed,
    ) -> Result<Answer, reqwest::Error> {
        let mut url = self.base.clone();
        let root = self.base.path().trim_end_matches('/');
        url.set_path(&format!("{root}{}", placed.path));
        if !placed.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&placed.query);
        }
        let mut headers = HeaderMap::new();
        headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("application/json, */*;q=0.5"),
        );
        let mut put = |name: &str, value: &str| {
            let name = HeaderName::try_from(name).ok();
            if let Some((name, value)) = name.zip(HeaderValue::try_from(value).ok())
                && !self.own.contains(&name)
            {
                headers.insert(name, value);
            }
        };
        for (name, value) in &placed.headers {
            put(name, value);
        }
        if let Some((kind, _)) = &placed.body {
            put(header::CONTENT_TYPE.as_str(), kind);
        }
        let method = operation.parts().method.as_str();
        // It is one of the seven that are spelled out there.
        let method = http::Method::from_bytes(method.as_bytes()).unwrap_or_default();
        let mut request = self.http.request(method, url).headers(headers);
        if let Some((_, body)) = placed.body {
            request = request.body(body);
        }
        let response = request.send().await?;
        let text = |name: HeaderName| {
            let value = response.headers().get(name)?;
            Some(value.to_str().ok()?.to_owned())
        };
        let mut answer = Answer {
            status: response.status(),
            kind: text(header::CONTENT_TYPE).unwrap_or_default(),
            location: response.headers().contains_key(header::LOCATION),
            retry_after: text(header::RETRY_AFTER),
            body: None,
        };
        let (mut body, mut parts) = (Vec::new(), response.bytes_stream());
        while let Some(part) = parts.next().await {
            let part = part?;
            if ANSWER_BYTES_MAX < body.len() + part.len() {
                return Ok(answer);
            }
            body.extend_from_slice(&part);
        }
        answer.body = Some(body);
        Ok(answer)
    }
}

impl Answer {
    /// As a tool's result. An answer that is no success says its status and is an error; secrets
    /// that it repeats are masked, since services like to say which key was wrong.
    pub(crate) fn into_result(self, secrets: &[SecretString]) -> Map<String, Value> {
        let Some(body) = self.body else {
            let text = format!("the answer is over {ANSWER_BYTES_MAX} bytes: ask for less");
            return result(vec![json!({ "type": "text", "text": text })], true);
        };
        if !self.status.is_success() {
            let mut lines = vec![format!("HTTP {}", self.status)];
            if self.status.is_redirection() && self.location {
                lines.push("it points to another address, which is not followed".to_owned());
            }
            if let Some(after) = &self.retry_after {
                lines.push(format!("Retry-After: {after}"));
            }
            lines.push(String::from_utf8_lossy(&body).into_owned());
            let text = mask(lines.join("\n").trim_end(), secrets);
            return result(vec![json!({ "type": "text", "text": text })], true);
        }
        let essence = self.kind.split(';').next().unwrap_or_default();
        let essence = essence.trim().to_ascii_lowercase();
        let family = essence.split('/').next().unwrap_or_default();
        if matches!(family, "image" | "audio") {
            let data = STANDARD.encode(&body);
            let block = json!({ "type": family, "data": data, "mimeType": essence });
            return result(vec![block], false);
        }
        let Ok(text) = String::from_utf8(body) else {
            let text = format!(
                "HTTP {}: a file of the type `{essence}`, which is no text",
                self.status
            );
            return result(vec![json!({ "type": "text", "text": text })], false);
        };
        let structured = serde_json::from_str::<Value>(&text).ok();
        let text = match text.is_empty() {
            true => format!("HTTP {}", self.status),
            false => text,
        };
        let mut result = result(vec![json!({ "type": "text", "text": text })], false);
        if let Some(structured @ Value::Object(_)) = structured {
            result.insert("structuredContent".to_owned(), structured);
        }
        result
    }
}

fn result(content: Vec<Value>, is_error: bool) -> Map<String, Value> {
    let mut result = Map::new();
    result.insert("content".to_owned(), content.into());
    result.insert("isError".to_owned(), is_error.into());
    result
}

/// A service as one tenant reaches it.
#[derive(Debug)]
pub(super) struct Linked {
    service: HttpService,
    /// Of the values that it was made from.
    pub(super) fingerprint: [u8; 32],
    /// A place for each call at one time.
    pub(super) places: Arc<Semaphore>,
    used: Mutex<Instant>,
}

impl Linked {
    pub(super) fn new(service: HttpService, fingerprint: [u8; 32], calls_max: usize) -> Self {
        Self {
            service,
            fingerprint,
            places: Arc::new(Semaphore::new(calls_max)),
            used: Mutex::new(Instant::now()),
        }
    }

    /// Whether nobody has used it for long.
    pub(super) fn is_unused(&self) -> bool {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        UNUSED_MAX < used.elapsed()
    }
}

/// A service that is held for one call.
#[derive(Debug)]
pub(super) struct HeldService {
    pub(super) linked: Arc<Linked>,
    pub(super) operations: Operations,
    pub(super) secrets: Vec<SecretString>,
    pub(super) lifecycle: Lifecycle,
}

impl HeldService {
    /// One call. It is sent once, whatever becomes of it.
    pub(super) async fn call(
        &self,
        tool: &ToolName,
        arguments: &Map<String, Value>,
        side: &CallerSide,
        limits: CallLimits,
    ) -> Result<Map<String, Value>, RequestFailure> {
        let Some(operation) = self.operations.get(tool) else {
            return Err(RequestFailure::Unsent(NO_OPERATION.to_owned()));
        };
        let placed = operation.place(arguments);
        let placed = placed.map_err(|error| RequestFailure::Unsent(error.to_string()))?;
        let used = &self.linked.used;
        *used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        tokio::select! {
            answer = self.linked.service.ask(operation, placed) => match answer {
                Ok(answer) => Ok(answer.into_result(&self.secrets)),
                Err(error) => Err(failure(error)),
            },
            () = side.cancel.cancelled() => Err(RequestFailure::Cancelled),
            () = tokio::time::sleep_until(limits.first) => {
                Err(RequestFailure::Timeout(limits.started.elapsed()))
            }
            () = self.lifecycle.cancelled() => Err(RequestFailure::Lost {
                reason: "the program ended".to_owned(),
                crashed: false,
            }),
        }
    }
}

/// Why a tool of a service cannot be run.
pub(super) const NO_OPERATION: &str =
    "the catalog does not say how this tool of an HTTP service is asked for";

/// The address stays out: it holds arguments.
fn failure(error: reqwest::Error) -> RequestFailure {
    let unsent = error.is_connect() || error.is_builder();
    let reason = chain(&error.without_url());
    match unsent {
        true => RequestFailure::Unsent(reason),
        false => RequestFailure::Lost {
            reason,
            crashed: false,
        },
    }
}
