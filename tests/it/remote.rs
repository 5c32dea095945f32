//! `Caller` against remote upstreams: real HTTP on a loopback port, that misbehaves on request.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use toolcrib::call::{CallerSide, UpstreamError, UpstreamOptions, Upstreams};
use toolcrib::domain::{Launch, SecretSlot, Server, Tenant};

use crate::call::{Crib, text};

/// How the remote server answers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Mode {
    /// With JSON.
    #[default]
    Json,
    /// With server-sent events.
    Events,
    /// Its answer breaks off after the call was read.
    BreaksOff,
    /// With a redirect to another path of the same origin.
    RedirectWithin,
    /// With a redirect to another origin.
    RedirectAway,
    /// With HTTP 401.
    Unauthorized,
    /// Knows no session after the first call.
    Forgetful,
    /// Never.
    Silent,
}

#[derive(Debug, Default)]
struct Remote {
    mode: Mutex<Mode>,
    calls: AtomicUsize,
    initialized: AtomicUsize,
    headers: Mutex<Vec<HeaderMap>>,
    away: Mutex<String>,
    cancelled: AtomicUsize,
}

async fn answer(
    State(remote): State<Arc<Remote>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> Response {
    remote.headers.lock().unwrap().push(headers.clone());
    let mode = *remote.mode.lock().unwrap();
    if method != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    match mode {
        Mode::RedirectWithin if uri.path() == "/mcp" => {
            return (
                StatusCode::TEMPORARY_REDIRECT,
                [(header::LOCATION, "/mcp/")],
            )
                .into_response();
        }
        Mode::RedirectAway => {
            let away = remote.away.lock().unwrap().clone();
            return (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, away)]).into_response();
        }
        Mode::Unauthorized => {
            let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
            return (StatusCode::UNAUTHORIZED, challenge).into_response();
        }
        _ => {}
    }
    let message: Value = serde_json::from_str(&body).unwrap();
    let id = message["id"].clone();
    let result = match message["method"].as_str().unwrap() {
        "initialize" => {
            remote.initialized.fetch_add(1, Ordering::SeqCst);
            json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "remote", "version": "1"},
            })
        }
        "tools/call" => {
            let session = format!("session-{}", remote.initialized.load(Ordering::SeqCst));
            let known = headers
                .get("mcp-session-id")
                .is_some_and(|given| *given == *session);
            let calls = remote.calls.load(Ordering::SeqCst);
            if mode == Mode::Forgetful && (!known || calls == 1 && session == "session-1") {
                return StatusCode::NOT_FOUND.into_response();
            }
            remote.calls.fetch_add(1, Ordering::SeqCst);
            match mode {
                Mode::Silent => {
                    tokio::time::sleep(Duration::from_secs(30)).await;
                    json!({})
                }
                Mode::BreaksOff => {
                    let part = futures::stream::iter([
                        Ok("{\"jsonrpc\":\"2.0\","),
                        Err(std::io::Error::other("broken")),
                    ]);
                    let kind = [(header::CONTENT_TYPE, "application/json")];
                    return (kind, Body::from_stream(part)).into_response();
                }
                _ => json!({
                    "content": [{"type": "text", "text": message["params"]["arguments"]["text"], "x": 1}],
                    "unknown": {"kept": true},
                }),
            }
        }
        "notifications/cancelled" => {
            remote.cancelled.fetch_add(1, Ordering::SeqCst);
            return StatusCode::ACCEPTED.into_response();
        }
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    let session = format!("session-{}", remote.initialized.load(Ordering::SeqCst));
    let reply = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    let (kind, reply) = match mode {
        Mode::Events => {
            let noise = json!({"jsonrpc": "2.0", "method": "notifications/message",
                "params": {"level": "info", "data": "working"}});
            let events = format!(": hello\n\ndata: {noise}\n\nevent: message\ndata: {reply}\n\n");
            ("text/event-stream", events)
        }
        _ => ("application/json; charset=utf-8", reply),
    };
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::HeaderName::from_static("mcp-session-id"), session),
    ];
    (headers, reply).into_response()
}

/// Serves on a port of its own; the URL ends in `/mcp`.
async fn serve(mode: Mode) -> (Arc<Remote>, String) {
    let remote = Arc::new(Remote::default());
    *remote.mode.lock().unwrap() = mode;
    let router = axum::Router::new()
        .fallback(answer)
        .with_state(remote.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (remote, url)
}

fn crib(url: &str, tune: impl FnOnce(&mut UpstreamOptions)) -> Crib {
    let remote = |server: &mut Server| {
        server.secrets.push(SecretSlot {
            name: "test.token".parse().unwrap(),
            description: Box::default(),
            optional: true,
        });
        server.launch = Some(Launch::Http {
            url: url.parse().unwrap(),
            headers: vec![(
                "Authorization".into(),
                "Bearer {{secret:test.token}}".parse().unwrap(),
            )],
        });
    };
    Crib::without_python(&[], remote, |options| {
        options.http_on_loopback = true;
        tune(options);
    })
}

#[tokio::test]
async fn a_remote_tool_runs_and_its_result_is_unchanged_as_json_and_as_events() {
    for mode in [Mode::Json, Mode::Events, Mode::RedirectWithin] {
        let (remote, url) = serve(mode).await;
        let crib = crib(&url, |_| {});
        let outcome = crib.run("echo", json!({"text": "hello"})).await.unwrap();
        let expected = json!({
            "content": [{"type": "text", "text": "hello", "x": 1}],
            "unknown": {"kept": true},
        });
        assert_eq!(Value::Object(outcome.result), expected, "{mode:?}");
        assert_eq!(remote.calls.load(Ordering::SeqCst), 1);
        crib.end().await;
    }
}
