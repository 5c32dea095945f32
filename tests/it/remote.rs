//! `Caller` against remote upstreams: real HTTP on a loopback port, that misbehaves on request.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolcrib::call::{CallError, CallerSide, UpstreamError, UpstreamOptions};
use toolcrib::domain::{Launch, SecretSlot, Server};
use toolcrib::lifecycle::Lifecycle;

use crate::call::{Crib, request, text, until};

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
    /// With HTTP 500.
    Fails,
    /// With HTTP 400 and the headers of the request.
    Echoes,
    /// With HTTP 429.
    Limits,
    /// With 40 MB.
    Huge,
    /// With a redirect to another path of the same origin.
    RedirectWithin,
    /// With a redirect to another origin.
    RedirectAway,
    /// With HTTP 401.
    Unauthorized,
    /// As a server of the modern era alone.
    Modern,
    /// Knows no session after the first call.
    Forgetful,
    /// Knows no session when a call comes, however new it is.
    Amnesic,
    /// As [`Mode::Forgetful`], with what the protocol's own SDKs say then.
    ForgetfulInWords,
    /// Answers a call with HTTP 404 and an error of its own.
    NotFound,
    /// Refuses a call with an error that names no request.
    Nameless,
    /// Its stream of events ends before the answer.
    EndsEvents,
    /// As [`Mode::Forgetful`], but the call `hold` is under way for ever.
    Replaced,
    /// Never.
    Silent,
}

#[derive(Debug, Default)]
struct Remote {
    mode: Mutex<Mode>,
    calls: AtomicUsize,
    /// Calls that came, run or not.
    came: AtomicUsize,
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
    let result = match message["method"].as_str().unwrap() {
        "initialize" if mode == Mode::Modern => {
            let error =
                json!({"code": -32022, "message": "no", "data": {"supported": ["2026-07-28"]}});
            let body = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
            let kind = [(header::CONTENT_TYPE, "application/json")];
            return (StatusCode::BAD_REQUEST, kind, body.to_string()).into_response();
        }
        "server/discover" => json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "ttlMs": 0,
            "cacheScope": "private",
        }),
        "initialize" => {
            remote.initialized.fetch_add(1, Ordering::SeqCst);
            json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "remote", "version": "1"},
            })
        }
        "tools/call" => match call(&remote, mode, &headers, &message).await {
            Ok(result) => result,
            Err(response) => return response,
        },
        "notifications/cancelled" => {
            remote.cancelled.fetch_add(1, Ordering::SeqCst);
            return StatusCode::ACCEPTED.into_response();
        }
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    reply(
        &remote,
        mode,
        &json!({"jsonrpc": "2.0", "id": message["id"], "result": result}),
    )
}

/// The result of a call, or how it is answered instead.
async fn call(
    remote: &Remote,
    mode: Mode,
    headers: &HeaderMap,
    message: &Value,
) -> Result<Value, Response> {
    let session = remote.session();
    if mode == Mode::Modern {
        assert_eq!(headers["mcp-protocol-version"], "2026-07-28");
        assert_eq!(
            (&headers["mcp-method"], &headers["mcp-name"]),
            (&"tools/call".parse().unwrap(), &"echo".parse().unwrap())
        );
        let version = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        assert_eq!(version, "2026-07-28");
    }
    let known = headers
        .get("mcp-session-id")
        .is_some_and(|given| *given == *session);
    remote.came.fetch_add(1, Ordering::SeqCst);
    let calls = remote.calls.load(Ordering::SeqCst);
    let forgotten = !known || calls == 1 && session == "session-1";
    match mode {
        Mode::Amnesic => return Err(StatusCode::NOT_FOUND.into_response()),
        Mode::Forgetful | Mode::Replaced if forgotten => {
            return Err(StatusCode::NOT_FOUND.into_response());
        }
        Mode::ForgetfulInWords if forgotten => {
            return Err(error(StatusCode::NOT_FOUND, &message["id"], -32_001));
        }
        Mode::Nameless => return Err(error(StatusCode::BAD_REQUEST, &Value::Null, -32_000)),
        _ => {}
    }
    remote.calls.fetch_add(1, Ordering::SeqCst);
    match mode {
        Mode::Silent => tokio::time::sleep(Duration::from_secs(30)).await,
        Mode::Fails => return Err(StatusCode::INTERNAL_SERVER_ERROR.into_response()),
        Mode::Echoes => {
            let echo = format!("{headers:?} {}", headers["authorization"].to_str().unwrap());
            return Err((StatusCode::BAD_REQUEST, echo).into_response());
        }
        Mode::NotFound => return Err(error(StatusCode::NOT_FOUND, &message["id"], -32_602)),
        Mode::EndsEvents => {
            let kind = [(header::CONTENT_TYPE, "text/event-stream")];
            return Err((kind, ": working\n\n").into_response());
        }
        Mode::Replaced if message["params"]["arguments"]["text"] == "hold" => {
            let kind = [(header::CONTENT_TYPE, "text/event-stream")];
            let silence = futures::stream::pending::<Result<String, std::io::Error>>();
            return Err((kind, Body::from_stream(silence)).into_response());
        }
        Mode::Limits => return Err(StatusCode::TOO_MANY_REQUESTS.into_response()),
        Mode::Huge => {
            return Ok(json!({"content": [{"type": "text", "text": "x".repeat(40_000_000)}]}));
        }
        Mode::BreaksOff => {
            let part = futures::stream::iter([
                Ok("{\"jsonrpc\":\"2.0\","),
                Err(std::io::Error::other("broken")),
            ]);
            let kind = [(header::CONTENT_TYPE, "application/json")];
            return Err((kind, Body::from_stream(part)).into_response());
        }
        _ => {}
    }
    Ok(json!({
        "content": [{"type": "text", "text": message["params"]["arguments"]["text"], "x": 1}],
        "unknown": {"kept": true},
    }))
}

/// A JSON-RPC error with an HTTP status.
fn error(status: StatusCode, id: &Value, code: i32) -> Response {
    let error = json!({"code": code, "message": "no such thing"});
    let body = json!({"jsonrpc": "2.0", "id": id, "error": error});
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, body.to_string()).into_response()
}

fn reply(remote: &Remote, mode: Mode, message: &Value) -> Response {
    let (kind, body) = if mode == Mode::Events {
        let noise = json!({"jsonrpc": "2.0", "method": "notifications/message",
            "params": {"level": "info", "data": "working"}});
        let events = format!(": hello\n\ndata: {noise}\n\nevent: message\ndata: {message}\n\n");
        ("text/event-stream", events)
    } else {
        ("application/json; charset=utf-8", message.to_string())
    };
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (
            header::HeaderName::from_static("mcp-session-id"),
            remote.session(),
        ),
    ];
    (headers, body).into_response()
}

impl Remote {
    /// The session id of the last `initialize`.
    fn session(&self) -> String {
        format!("session-{}", self.initialized.load(Ordering::SeqCst))
    }
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
    Lifecycle::new().spawn(async move { axum::serve(listener, router).await });
    (remote, url)
}

fn crib(url: &str, tune: impl FnOnce(&mut UpstreamOptions)) -> Crib {
    let remote = |server: &mut Server| {
        server.secrets.push(SecretSlot {
            name: "test.token".parse().unwrap(),
            description: Box::default(),
            optional: true,
        });
        let token = "Bearer {{secret:test.token}}".parse().unwrap();
        let headers = vec![("Authorization".into(), token)];
        server.launch = Some(Launch::http(url.parse().unwrap(), headers));
    };
    Crib::without_python(&[], remote, |options| {
        options.http_on_loopback = true;
        tune(options);
    })
}

#[tokio::test]
async fn a_remote_tool_runs_and_its_result_is_unchanged_as_json_and_as_events() {
    for mode in [Mode::Json, Mode::Events, Mode::RedirectWithin, Mode::Modern] {
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

fn upstream(error: CallError) -> UpstreamError {
    match error {
        CallError::Upstream { source, .. } => *source,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_redirect_to_another_origin_is_not_followed() {
    let (elsewhere, away) = serve(Mode::Json).await;
    let (remote, url) = serve(Mode::RedirectAway).await;
    *remote.away.lock().unwrap() = away;
    let crib = crib(&url, |_| {});
    crib.values.set_secret("test.token", "canary-4711");
    let error = crib.run("echo", json!({"text": "x"})).await.unwrap_err();
    assert!(!error.spent());
    match upstream(error) {
        UpstreamError::Unavailable { reason, .. } => {
            assert!(reason.contains("HTTP 307"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    assert!(elsewhere.headers.lock().unwrap().is_empty());
    crib.end().await;
}

#[tokio::test]
async fn an_inside_address_is_not_connected_to() {
    for url in [
        "http://127.0.0.1:9/mcp",
        "https://127.0.0.1:9/mcp",
        "https://169.254.169.254/mcp",
        "https://localhost:9/mcp",
        "https://[::1]:9/mcp",
        "http://example.com/mcp",
    ] {
        let crib = crib(url, |options| options.http_on_loopback = false);
        let error = crib.run("echo", json!({"text": "x"})).await.unwrap_err();
        assert_eq!(
            (error.code(), error.spent()),
            ("UPSTREAM_UNAVAILABLE", false),
            "{url}"
        );
        match upstream(error) {
            UpstreamError::Unavailable { reason, .. } => assert!(
                reason.contains("not a public one") || reason.contains("is not https"),
                "{url}: {reason}"
            ),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn the_servers_own_headers_are_all_that_it_gets_and_errors_show_none() {
    let (remote, url) = serve(Mode::Json).await;
    let crib = crib(&url, |_| {});
    crib.values.set_secret("test.token", "canary-4711");
    crib.run("echo", json!({"text": "x"})).await.unwrap();
    {
        let seen = remote.headers.lock().unwrap();
        let allowed = [
            "authorization",
            "accept",
            "content-type",
            "content-length",
            "host",
            "mcp-session-id",
            "mcp-protocol-version",
        ];
        for headers in &*seen {
            assert_eq!(headers["authorization"], "Bearer canary-4711");
            for name in headers.keys() {
                assert!(allowed.contains(&name.as_str()), "{name}");
            }
        }
    }
    *remote.mode.lock().unwrap() = Mode::Echoes;
    let error = crib.run("echo", json!({"text": "x"})).await.unwrap_err();
    let shown = format!("{error:?}");
    assert!(
        shown.contains("Bearer [secret]") && !shown.contains("canary"),
        "{shown}"
    );
    crib.end().await;
}

#[tokio::test]
async fn a_call_whose_answer_is_lost_is_unknown_and_not_sent_again() {
    for mode in [Mode::BreaksOff, Mode::Fails, Mode::Huge, Mode::EndsEvents] {
        let (remote, url) = serve(mode).await;
        let crib = crib(&url, |_| {});
        let error = crib.run("echo", json!({"text": "x"})).await.unwrap_err();
        assert_eq!(
            (error.code(), error.spent()),
            ("OUTCOME_UNKNOWN", true),
            "{mode:?} {error:?}"
        );
        assert_eq!(remote.calls.load(Ordering::SeqCst), 1, "{mode:?}");
        crib.end().await;
    }
}

#[tokio::test]
async fn a_call_that_is_turned_away_is_not_unknown() {
    let (remote, url) = serve(Mode::Json).await;
    let crib = crib(&url, |_| {});
    crib.run("echo", json!({"text": "x"})).await.unwrap();
    for mode in [Mode::Limits, Mode::Unauthorized, Mode::Nameless] {
        *remote.mode.lock().unwrap() = mode;
        let error = crib.run("echo", json!({"text": "x"})).await.unwrap_err();
        assert_eq!(error.code(), "UPSTREAM_UNAVAILABLE", "{mode:?} {error:?}");
    }
    crib.end().await;
}

#[tokio::test]
async fn a_server_that_forgot_the_session_gets_a_new_one_and_the_call_once() {
    for mode in [Mode::Forgetful, Mode::ForgetfulInWords] {
        let (remote, url) = serve(mode).await;
        let crib = crib(&url, |_| {});
        for _ in 0..2 {
            let outcome = crib.run("echo", json!({"text": "x"})).await.unwrap();
            assert_eq!(text(&outcome.result), "x");
        }
        assert_eq!(remote.initialized.load(Ordering::SeqCst), 2, "{mode:?}");
        assert_eq!(remote.came.load(Ordering::SeqCst), 3, "{mode:?}");
        assert_eq!(remote.calls.load(Ordering::SeqCst), 2, "{mode:?}");
        crib.end().await;
    }
}

#[tokio::test]
async fn a_server_that_forgets_every_session_gets_the_call_twice_and_no_more() {
    let (remote, url) = serve(Mode::Amnesic).await;
    let crib = crib(&url, |_| {});
    let error = crib.run("echo", json!({"text": "x"})).await.unwrap_err();
    assert_eq!(error.code(), "UPSTREAM_UNAVAILABLE", "{error:?}");
    assert_eq!(remote.initialized.load(Ordering::SeqCst), 2);
    assert_eq!(remote.came.load(Ordering::SeqCst), 2);
    assert_eq!(remote.calls.load(Ordering::SeqCst), 0);
    crib.end().await;
}

#[tokio::test]
async fn a_call_that_ran_and_was_answered_with_404_is_not_sent_again() {
    let (remote, url) = serve(Mode::NotFound).await;
    let crib = crib(&url, |_| {});
    let outcome = crib.run("echo", json!({"text": "x"})).await.unwrap();
    assert_eq!(text(&outcome.result), "MCP error -32602: no such thing");
    assert_eq!(remote.initialized.load(Ordering::SeqCst), 1);
    assert_eq!(remote.came.load(Ordering::SeqCst), 1);
    crib.end().await;
}

#[tokio::test]
async fn a_call_under_way_when_its_session_is_replaced_is_unknown_and_not_sent_again() {
    let (remote, url) = serve(Mode::Replaced).await;
    let crib = crib(&url, |_| {});
    let held = crib.run("echo", json!({"text": "hold"}));
    let other = async {
        until("it is under way", || {
            remote.calls.load(Ordering::SeqCst) == 1
        })
        .await;
        crib.run("echo", json!({"text": "x"})).await
    };
    let (held, other) = tokio::join!(held, other);
    assert_eq!(text(&other.unwrap().result), "x");
    let error = held.unwrap_err();
    assert_eq!(
        (error.code(), error.spent()),
        ("OUTCOME_UNKNOWN", true),
        "{error:?}"
    );
    assert_eq!(remote.initialized.load(Ordering::SeqCst), 2);
    assert_eq!(remote.calls.load(Ordering::SeqCst), 2);
    crib.end().await;
}

#[tokio::test]
async fn a_caller_that_goes_away_is_known_to_the_remote_server() {
    let (remote, url) = serve(Mode::Silent).await;
    let crib = crib(&url, |_| {});
    let cancel = CancellationToken::new();
    let side = CallerSide {
        cancel: cancel.clone(),
        ..CallerSide::default()
    };
    let call = request(&crib.mint(&["echo"]), "echo", json!({"text": "x"}));
    let call = crib.caller.call(&crib.tenant, call, side);
    let cancelling = async {
        until("it is under way", || {
            remote.calls.load(Ordering::SeqCst) == 1
        })
        .await;
        cancel.cancel();
    };
    let (called, ()) = tokio::join!(call, cancelling);
    assert!(matches!(
        upstream(called.unwrap_err()),
        UpstreamError::Cancelled { sent: true }
    ));
    until("the server hears of it", || {
        remote.cancelled.load(Ordering::SeqCst) == 1
    })
    .await;
    crib.end().await;
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_unavailable_and_costs_no_handle() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let crib = crib(&url, |_| {});
    let error = crib.run("echo", json!({"text": "x"})).await.unwrap_err();
    assert_eq!(
        (error.code(), error.spent()),
        ("UPSTREAM_UNAVAILABLE", false),
        "{error:?}"
    );
    crib.end().await;
}

#[tokio::test]
async fn a_server_that_accepts_and_says_nothing_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let crib = crib(&url, |options| {
        options.connect_max = Duration::from_millis(300);
    });
    let error = crib.run("echo", json!({"text": "x"})).await.unwrap_err();
    assert_eq!(
        (error.code(), error.spent()),
        ("UPSTREAM_TIMEOUT", false),
        "{error:?}"
    );
    crib.end().await;
}

/// A real server of the protocol's own SDK, which speaks both eras.
#[derive(Clone)]
struct Sdk;

impl rmcp::ServerHandler for Sdk {
    fn get_info(&self) -> rmcp::model::ServerConfig {
        let capabilities = rmcp::model::ServerCapabilities::builder()
            .enable_tools()
            .build();
        rmcp::model::ServerConfig::new(capabilities)
    }

    async fn call_tool(
        &self,
        request: rmcp::model::CallToolRequestParams,
        _context: rmcp::service::RequestContext<rmcp::RoleServer>,
    ) -> Result<rmcp::model::CallToolResponse, rmcp::ErrorData> {
        let text = request.arguments.unwrap_or_default()["text"].to_string();
        let content = vec![rmcp::model::ContentBlock::text(text)];
        Ok(rmcp::model::CallToolResult::success(content).into())
    }
}

#[tokio::test]
async fn servers_of_the_sdk_answer_with_sessions_and_without() {
    for stateful in [true, false] {
        let config = rmcp::transport::StreamableHttpServerConfig::default()
            .with_legacy_session_mode(stateful)
            .with_json_response(!stateful);
        let service = rmcp::transport::StreamableHttpService::new(
            || Ok(Sdk),
            Arc::new(LocalSessionManager::default()),
            config,
        );
        let router = axum::Router::new().nest_service("/mcp", service);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        Lifecycle::new().spawn(async move { axum::serve(listener, router).await });
        let crib = crib(&url, |_| {});
        for _ in 0..3 {
            let outcome = crib.run("echo", json!({"text": "sdk"})).await.unwrap();
            assert_eq!(text(&outcome.result), "\"sdk\"");
        }
        crib.end().await;
    }
}
