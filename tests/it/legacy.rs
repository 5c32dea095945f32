//! The HTTP transport of 2024-11-05: a server of ours that misbehaves on request. A real one is in
//! `reference.rs`.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolcrib::call::{CallError, UpstreamError, UpstreamOptions};
use toolcrib::domain::{HttpTransport, Launch, SecretSlot, Server};
use toolcrib::lifecycle::Lifecycle;

use crate::call::{Crib, text, until};

/// What is wrong with the server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Fault {
    #[default]
    None,
    /// Its endpoint is on another origin.
    Foreign,
    /// Its stream names no endpoint, only pings.
    Pings,
    /// Its stream is one line without an end, from the start.
    EndlessStart,
    /// As above, when a call has come.
    EndlessAnswer,
    /// Its stream ends when a call has come.
    Cut,
    /// What it answers is no JSON.
    Garbage,
    /// It has forgotten the session when a call comes.
    Forgets,
    /// Its stream is elsewhere.
    Redirects,
}

#[derive(Debug, Default)]
struct Old {
    fault: Mutex<Fault>,
    /// How a POST to the stream's URL is answered, as streamable HTTP would send it.
    no_post: AtomicUsize,
    away: Mutex<String>,
    stream: Mutex<Option<mpsc::Sender<String>>>,
    opened: AtomicUsize,
    calls: AtomicUsize,
    headers: Mutex<Vec<HeaderMap>>,
}

impl Old {
    fn fault(&self) -> Fault {
        *self.fault.lock().unwrap()
    }

    /// Puts text on the stream, if it is open.
    fn say(&self, text: String) {
        if let Some(stream) = &*self.stream.lock().unwrap() {
            stream.try_send(text).unwrap();
        }
    }
}

async fn open(State(old): State<Arc<Old>>, headers: HeaderMap) -> Response {
    old.headers.lock().unwrap().push(headers);
    old.opened.fetch_add(1, Ordering::SeqCst);
    let away = old.away.lock().unwrap().clone();
    let first = match old.fault() {
        Fault::Redirects => {
            return (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, away)]).into_response();
        }
        Fault::Pings => ": hello\nevent: ping\ndata: x\n\n".repeat(100),
        Fault::EndlessStart => return events(endless()),
        Fault::Foreign => format!("event: endpoint\ndata: {away}\n\n"),
        _ => ": hello\n\nevent: endpoint\ndata: /message?session=1\n\n".to_owned(),
    };
    let (sender, receiver) = mpsc::channel(1_000);
    sender.try_send(first).unwrap();
    *old.stream.lock().unwrap() = Some(sender);
    events(futures::stream::unfold(receiver, |mut receiver| async {
        let text = receiver.recv().await?;
        Some((text, receiver))
    }))
}

/// One line that never ends.
fn endless() -> impl futures::Stream<Item = String> {
    futures::stream::repeat_with(|| "x".repeat(10_000))
}

fn events(texts: impl futures::Stream<Item = String> + Send + 'static) -> Response {
    let texts = futures::StreamExt::map(texts, Ok::<_, Infallible>);
    let kind = [(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")];
    (kind, Body::from_stream(texts)).into_response()
}

async fn message(State(old): State<Arc<Old>>, headers: HeaderMap, body: String) -> Response {
    old.headers.lock().unwrap().push(headers);
    let message: Value = serde_json::from_str(&body).unwrap();
    let result = match message["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": "2024-11-05",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "old", "version": "1"},
        }),
        "tools/call" => {
            if old.fault() == Fault::Forgets {
                return StatusCode::NOT_FOUND.into_response();
            }
            old.calls.fetch_add(1, Ordering::SeqCst);
            match old.fault() {
                Fault::Cut => {
                    old.stream.lock().unwrap().take();
                    return StatusCode::ACCEPTED.into_response();
                }
                Fault::EndlessAnswer => {
                    // Over the limit of the test, and the line has no end.
                    for _ in 0..20 {
                        old.say("x".repeat(10_000));
                    }
                    return StatusCode::ACCEPTED.into_response();
                }
                Fault::Garbage => {
                    let id = &message["id"];
                    let broken = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":["#);
                    old.say(format!("data: {broken}\n\n"));
                    return StatusCode::ACCEPTED.into_response();
                }
                _ => {}
            }
            let progress = json!({"jsonrpc": "2.0", "method": "notifications/message",
                "params": {"level": "info", "data": "working"}});
            old.say(format!("event: message\ndata: {progress}\n\n"));
            let text = &message["params"]["arguments"]["text"];
            json!({"content": [{"type": "text", "text": text, "x": 1}], "unknown": {"kept": true}})
        }
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    old.say(format!("event: message\ndata: {answer}\n\n"));
    StatusCode::ACCEPTED.into_response()
}

async fn no_post(State(old): State<Arc<Old>>) -> StatusCode {
    let status = old.no_post.load(Ordering::SeqCst);
    StatusCode::from_u16(u16::try_from(status).unwrap()).unwrap()
}

/// Serves on a port of its own; the URL is that of the stream.
async fn serve(fault: Fault) -> (Arc<Old>, String) {
    let old = Arc::new(Old::default());
    *old.fault.lock().unwrap() = fault;
    old.no_post.store(405, Ordering::SeqCst);
    let router = axum::Router::new()
        .route("/sse", get(open).post(no_post))
        .route("/message", post(message))
        .with_state(old.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/sse", listener.local_addr().unwrap());
    Lifecycle::new().spawn(async move { axum::serve(listener, router).await });
    (old, url)
}

fn crib(url: &str, transport: HttpTransport, tune: impl FnOnce(&mut UpstreamOptions)) -> Crib {
    let remote = |server: &mut Server| {
        server.secrets.push(SecretSlot {
            name: "test.token".parse().unwrap(),
            description: Box::default(),
            optional: true,
        });
        let token = "Bearer {{secret:test.token}}".parse().unwrap();
        server.launch = Some(Launch::Http {
            url: url.parse().unwrap(),
            headers: vec![("Authorization".into(), token)],
            transport,
            oauth: None,
        });
    };
    let crib = Crib::without_python(&[], remote, |options| {
        options.http_on_loopback = true;
        tune(options);
    });
    crib.values.set_secret("test.token", "canary-4711");
    crib
}

async fn echo(crib: &Crib) -> Result<Value, CallError> {
    let outcome = crib.run("echo", json!({"text": "hello"})).await?;
    Ok(Value::Object(outcome.result))
}

#[tokio::test]
async fn a_tool_runs_over_a_stream_and_its_result_is_unchanged() {
    let (old, url) = serve(Fault::None).await;
    let crib = crib(&url, HttpTransport::Sse, |_| {});
    for _ in 0..2 {
        let expected = json!({
            "content": [{"type": "text", "text": "hello", "x": 1}],
            "unknown": {"kept": true},
        });
        assert_eq!(echo(&crib).await.unwrap(), expected);
    }
    assert_eq!(old.opened.load(Ordering::SeqCst), 1);
    for headers in &*old.headers.lock().unwrap() {
        assert_eq!(headers["authorization"], "Bearer canary-4711");
        let allowed = [
            "authorization",
            "accept",
            "content-type",
            "content-length",
            "host",
        ];
        for name in headers.keys() {
            assert!(allowed.contains(&name.as_str()), "{name}");
        }
    }
    crib.end().await;
}

#[tokio::test]
async fn a_server_without_streamable_http_is_spoken_to_over_a_stream() {
    for status in [404, 405] {
        let (old, url) = serve(Fault::None).await;
        old.no_post.store(status, Ordering::SeqCst);
        let crib = crib(&url, HttpTransport::Streamable, |_| {});
        echo(&crib).await.unwrap();
        echo(&crib).await.unwrap();
        assert_eq!(old.opened.load(Ordering::SeqCst), 1);
        crib.end().await;
    }
    let (old, url) = serve(Fault::None).await;
    old.no_post.store(403, Ordering::SeqCst);
    let crib = crib(&url, HttpTransport::Streamable, |_| {});
    echo(&crib).await.unwrap_err();
    assert_eq!(old.opened.load(Ordering::SeqCst), 0);
    crib.end().await;
}

#[tokio::test]
async fn a_stream_that_does_not_say_where_to_send_costs_no_handle() {
    let (elsewhere, away) = serve(Fault::None).await;
    for (fault, why) in [
        (Fault::Foreign, "its endpoint is on another origin"),
        (Fault::Pings, "its stream names no endpoint"),
        (Fault::EndlessStart, "too large"),
        (Fault::Redirects, "HTTP 307"),
    ] {
        let (old, url) = serve(fault).await;
        *old.away.lock().unwrap() = away.clone();
        let crib = crib(&url, HttpTransport::Sse, |options| {
            options.message_bytes_max = 100_000;
        });
        let error = echo(&crib).await.unwrap_err();
        assert!(!error.spent(), "{fault:?}");
        match error {
            CallError::Upstream { source, .. } => match *source {
                UpstreamError::Unavailable { reason, .. } => {
                    assert!(reason.contains(why), "{fault:?}: {reason}");
                }
                other => panic!("{fault:?}: {other:?}"),
            },
            other => panic!("{fault:?}: {other:?}"),
        }
        crib.end().await;
    }
    assert!(elsewhere.headers.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_call_whose_stream_is_lost_is_unknown_and_not_sent_again() {
    for fault in [Fault::Cut, Fault::EndlessAnswer, Fault::Garbage] {
        let (old, url) = serve(fault).await;
        let crib = crib(&url, HttpTransport::Sse, |options| {
            options.message_bytes_max = 100_000;
        });
        let error = echo(&crib).await.unwrap_err();
        assert_eq!(
            (error.code(), error.spent()),
            ("OUTCOME_UNKNOWN", true),
            "{fault:?} {error:?}"
        );
        assert_eq!(old.calls.load(Ordering::SeqCst), 1, "{fault:?}");
        *old.fault.lock().unwrap() = Fault::None;
        echo(&crib).await.unwrap();
        assert_eq!(old.calls.load(Ordering::SeqCst), 2, "{fault:?}");
        crib.end().await;
    }
}

#[tokio::test]
async fn a_server_that_forgot_the_session_is_told_as_that_and_gets_a_new_one() {
    let (old, url) = serve(Fault::None).await;
    let crib = crib(&url, HttpTransport::Sse, |_| {});
    echo(&crib).await.unwrap();
    *old.fault.lock().unwrap() = Fault::Forgets;
    let error = echo(&crib).await.unwrap_err();
    assert!(error.spent(), "{error:?}");
    assert_eq!(old.calls.load(Ordering::SeqCst), 1);
    *old.fault.lock().unwrap() = Fault::None;
    until("the old session has ended", || {
        crib.caller
            .upstreams()
            .status()
            .iter()
            .all(|session| !session.open)
    })
    .await;
    let outcome = crib.run("echo", json!({"text": "again"})).await.unwrap();
    assert_eq!(text(&outcome.result), "again");
    assert_eq!(old.opened.load(Ordering::SeqCst), 2);
    crib.end().await;
}

#[tokio::test]
async fn the_stream_ends_with_its_session() {
    let (old, url) = serve(Fault::None).await;
    let crib = crib(&url, HttpTransport::Sse, |_| {});
    echo(&crib).await.unwrap();
    let stream = old.stream.lock().unwrap().clone().unwrap();
    crib.end().await;
    until("the server's stream is closed", || stream.is_closed()).await;
}
