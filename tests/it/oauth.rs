//! Access tokens for remote upstreams: a token endpoint and a server on loopback that count.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, post};
use serde_json::{Value, json};
use toolcrib::call::{CallError, CallerSide, UpstreamError};
use toolcrib::domain::{
    ClientAuth, HttpTransport, Launch, OAuth, Scope, SecretSlot, Server, Tenant,
};
use toolcrib::lifecycle::Lifecycle;

use crate::call::{Crib, request, text};

/// A token endpoint, and the server that takes its tokens.
#[derive(Debug, Default)]
struct Harbour {
    /// Forms that were posted, with the header in front.
    asked: Mutex<Vec<String>>,
    /// Seconds that a token lives.
    life: AtomicU64,
    refreshes: AtomicBool,
    down: AtomicBool,
    /// Tokens up to this one are taken no more.
    revoked: AtomicUsize,
    /// Bearer and what it was shown for, in order.
    shown: Mutex<Vec<(String, String)>>,
    calls: AtomicUsize,
}

impl Harbour {
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Tokens shown with calls.
    fn called_with(&self) -> Vec<String> {
        let shown = self.shown.lock().unwrap();
        let calls = shown.iter().filter(|(_, what)| what == "tools/call");
        calls.map(|(token, _)| token.clone()).collect()
    }
}

async fn token(State(harbour): State<Arc<Harbour>>, headers: HeaderMap, form: String) -> Response {
    let shown = headers
        .get(header::AUTHORIZATION)
        .map_or("none", |value| value.to_str().unwrap());
    let number = {
        let mut asked = harbour.asked.lock().unwrap();
        asked.push(format!("{shown} {form}"));
        asked.len()
    };
    // All who are to wait for this answer do.
    tokio::time::sleep(Duration::from_millis(100)).await;
    if harbour.down.load(Ordering::SeqCst) {
        let error =
            json!({"error": "invalid_client", "error_description": format!("{shown} {form}")});
        return (StatusCode::UNAUTHORIZED, error.to_string()).into_response();
    }
    let mut answer = json!({
        "access_token": format!("token-{number}"),
        "token_type": "Bearer",
        "expires_in": harbour.life.load(Ordering::SeqCst),
    });
    if harbour.refreshes.load(Ordering::SeqCst) {
        answer["refresh_token"] = format!("refresh-{number}").into();
    }
    answer.to_string().into_response()
}

async fn mcp(
    State(harbour): State<Arc<Harbour>>,
    method: Method,
    headers: HeaderMap,
    body: String,
) -> Response {
    if method != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let message: Value = serde_json::from_str(&body).unwrap();
    let what = message["method"].as_str().unwrap().to_owned();
    let bearer = headers
        .get(header::AUTHORIZATION)
        .map_or("none", |value| value.to_str().unwrap())
        .trim_start_matches("Bearer ")
        .to_owned();
    harbour
        .shown
        .lock()
        .unwrap()
        .push((bearer.clone(), what.clone()));
    let number: usize = bearer.trim_start_matches("token-").parse().unwrap_or(0);
    if number <= harbour.revoked.load(Ordering::SeqCst) {
        let challenge = [(header::WWW_AUTHENTICATE, "Bearer error=\"invalid_token\"")];
        return (StatusCode::UNAUTHORIZED, challenge).into_response();
    }
    let result = match what.as_str() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "harbour", "version": "1"},
        }),
        "tools/call" if message["params"]["arguments"]["text"] == "echo" => {
            let echo = format!("you came with {bearer}");
            return (StatusCode::BAD_REQUEST, echo).into_response();
        }
        "tools/call" => {
            harbour.calls.fetch_add(1, Ordering::SeqCst);
            json!({"content": [{"type": "text", "text": "done"}]})
        }
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, answer.to_string()).into_response()
}

async fn serve() -> (Arc<Harbour>, String) {
    let harbour = Arc::new(Harbour::default());
    harbour.life.store(3_600, Ordering::SeqCst);
    let router = axum::Router::new()
        .route("/token", post(token))
        .route("/mcp", any(mcp))
        .with_state(harbour.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    Lifecycle::new().spawn(async move { axum::serve(listener, router).await });
    (harbour, origin)
}

fn oauth(origin: &str) -> OAuth {
    OAuth {
        token_url: format!("{origin}/token").parse().unwrap(),
        client_id: "{{secret:test.id}}".parse().unwrap(),
        client_secret: "{{secret:test.secret}}".parse().unwrap(),
        scope: None,
        resource: None,
        auth: ClientAuth::Basic,
    }
}

/// A crib whose tenant has a client at the endpoint.
fn crib(origin: &str, change: impl FnOnce(&mut OAuth)) -> Crib {
    let crib = bare(origin, change);
    crib.values.set_secret("test.id", "harbour-client");
    crib.values.set_secret("test.secret", "canary-4711");
    crib
}

/// As [`crib`], without values.
fn bare(origin: &str, change: impl FnOnce(&mut OAuth)) -> Crib {
    let mut tokens = oauth(origin);
    change(&mut tokens);
    let remote = |server: &mut Server| {
        for name in ["test.id", "test.secret"] {
            server.secrets.push(SecretSlot {
                name: name.parse().unwrap(),
                description: Box::default(),
                optional: true,
            });
        }
        server.launch = Some(Launch::Http {
            url: format!("{origin}/mcp").parse().unwrap(),
            headers: vec![],
            transport: HttpTransport::Streamable,
            oauth: Some(Box::new(tokens)),
        });
    };
    Crib::without_python(&[], remote, |options| {
        options.http_on_loopback = true;
        options.connect_max = Duration::from_secs(5);
    })
}

async fn done(crib: &Crib) {
    let outcome = crib.run("echo", json!({"text": "x"})).await.unwrap();
    assert_eq!(text(&outcome.result), "done");
}

/// The reason of a call that was not sent, or was turned away.
fn unavailable(error: CallError) -> (String, bool) {
    match error {
        CallError::Upstream { source, .. } => match *source {
            UpstreamError::Unavailable { reason, sent, .. } => (reason, sent),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn many_calls_at_once_ask_for_one_token() {
    let (harbour, origin) = serve().await;
    let crib = crib(&origin, |_| {});
    let calls = (0..64).map(|_| done(&crib));
    futures::future::join_all(calls).await;
    assert_eq!(harbour.calls.load(Ordering::SeqCst), 64);
    // `harbour-client:canary-4711`
    let asked = "Basic aGFyYm91ci1jbGllbnQ6Y2FuYXJ5LTQ3MTE= grant_type=client_credentials";
    assert_eq!(harbour.asked(), [asked]);
    assert!(harbour.called_with().iter().all(|token| token == "token-1"));
    crib.end().await;
}

#[tokio::test]
async fn scope_resource_and_credentials_go_into_the_form_where_that_is_asked() {
    let (harbour, origin) = serve().await;
    let crib = crib(&origin, |oauth| {
        oauth.auth = ClientAuth::Post;
        oauth.scope = Some("read write".parse().unwrap());
        oauth.resource = Some("https://a.example/mcp".parse().unwrap());
    });
    done(&crib).await;
    let asked = "none grant_type=client_credentials&scope=read%20write&\
                 resource=https%3A%2F%2Fa.example%2Fmcp&\
                 client_id=harbour-client&client_secret=canary-4711";
    assert_eq!(harbour.asked(), [asked]);
    crib.end().await;
}

#[tokio::test]
async fn a_token_that_has_expired_is_renewed_once_for_all() {
    let (harbour, origin) = serve().await;
    harbour.life.store(1, Ordering::SeqCst);
    let crib = crib(&origin, |_| {});
    done(&crib).await;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    harbour.life.store(3_600, Ordering::SeqCst);
    let before = harbour.asked().len();
    futures::future::join_all((0..16).map(|_| done(&crib))).await;
    assert_eq!(harbour.asked().len(), before + 1);
    let last = format!("token-{}", before + 1);
    assert!(
        harbour.called_with()[1..]
            .iter()
            .all(|token| *token == last)
    );
    crib.end().await;
}

#[tokio::test]
async fn a_refresh_token_is_used_where_there_is_one_and_given_up_where_it_is_refused() {
    let (harbour, origin) = serve().await;
    harbour.refreshes.store(true, Ordering::SeqCst);
    let crib = crib(&origin, |_| {});
    done(&crib).await;
    harbour.revoked.store(1, Ordering::SeqCst);
    done(&crib).await;
    let asked = harbour.asked();
    let refreshed = "grant_type=refresh_token&refresh_token=refresh-1";
    assert!(asked[1].ends_with(refreshed), "{asked:?}");
    // Both ways are tried before it is given up.
    harbour.down.store(true, Ordering::SeqCst);
    harbour.revoked.store(2, Ordering::SeqCst);
    let error = crib.run("echo", json!({"text": "x"})).await.unwrap_err();
    let (reason, _) = unavailable(error);
    assert!(reason.contains("invalid_client"), "{reason}");
    let asked = harbour.asked();
    assert_eq!(asked.len(), 4, "{asked:?}");
    assert!(asked[2].ends_with("refresh_token=refresh-2"), "{asked:?}");
    assert!(asked[3].ends_with("client_credentials"), "{asked:?}");
    crib.end().await;
}

#[tokio::test]
async fn a_token_that_is_refused_is_renewed_once_and_the_call_runs_once() {
    let (harbour, origin) = serve().await;
    let crib = crib(&origin, |_| {});
    done(&crib).await;
    harbour.revoked.store(1, Ordering::SeqCst);
    futures::future::join_all((0..8).map(|_| done(&crib))).await;
    assert_eq!(harbour.asked().len(), 2);
    assert_eq!(harbour.calls.load(Ordering::SeqCst), 9);
    crib.end().await;
}

#[tokio::test]
async fn a_server_that_refuses_every_token_is_told_as_that_after_one_renewal() {
    let (harbour, origin) = serve().await;
    let crib = crib(&origin, |_| {});
    done(&crib).await;
    harbour.revoked.store(usize::MAX, Ordering::SeqCst);
    for _ in 0..2 {
        let error = crib.run("echo", json!({"text": "x"})).await.unwrap_err();
        assert_eq!(error.code(), "UPSTREAM_UNAVAILABLE");
        let (reason, _) = unavailable(error);
        assert_eq!(
            reason,
            "HTTP 401: the server refuses access tokens that were issued just now"
        );
    }
    assert_eq!(harbour.asked().len(), 2);
    assert_eq!(harbour.calls.load(Ordering::SeqCst), 1);
    crib.end().await;
}

#[tokio::test]
async fn an_endpoint_that_gives_no_token_costs_no_handle_and_shows_no_secret() {
    let (harbour, origin) = serve().await;
    harbour.down.store(true, Ordering::SeqCst);
    let crib = crib(&origin, |oauth| oauth.auth = ClientAuth::Post);
    let handle = crib.mint(&["echo"]);
    let error = crib
        .with_handle(&handle, "echo", json!({"text": "x"}))
        .await;
    let error = error.unwrap_err();
    assert!(!error.spent());
    let (reason, sent) = unavailable(error);
    assert!(!sent);
    let start = "no access token: the token endpoint answered HTTP 401: invalid_client: none";
    assert!(reason.starts_with(start), "{reason}");
    let masked = "client_id=[secret]&client_secret=[secret]";
    assert!(reason.ends_with(masked), "{reason}");
    harbour.down.store(false, Ordering::SeqCst);
    let outcome = crib
        .with_handle(&handle, "echo", json!({"text": "x"}))
        .await;
    assert_eq!(text(&outcome.unwrap().result), "done");
    crib.end().await;
}

#[tokio::test]
async fn an_endpoint_that_goes_away_between_calls_costs_no_handle() {
    let (harbour, origin) = serve().await;
    harbour.life.store(1, Ordering::SeqCst);
    let crib = crib(&origin, |_| {});
    done(&crib).await;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    harbour.down.store(true, Ordering::SeqCst);
    let asked = harbour.asked().len();
    let calls = (0..16).map(|_| crib.run("echo", json!({"text": "x"})));
    for outcome in futures::future::join_all(calls).await {
        let error = outcome.unwrap_err();
        assert!(!error.spent());
        let (reason, sent) = unavailable(error);
        assert!(reason.contains("invalid_client") && !sent, "{reason}");
    }
    // One request for all who waited, and its failure for all of them.
    assert_eq!(harbour.asked().len(), asked + 1);
    crib.end().await;
}

#[tokio::test]
async fn a_token_endpoint_inside_is_not_asked() {
    let (harbour, origin) = serve().await;
    for url in [
        "https://169.254.169.254/token",
        "http://example.com/token",
        "https://[::ffff:10.0.0.1]/token",
        "https://user:pass@a.example/token",
    ] {
        let crib = crib(&origin, |oauth| oauth.token_url = url.parse().unwrap());
        let error = crib.run("echo", json!({"text": "x"})).await.unwrap_err();
        assert!(!error.spent());
        let (reason, _) = unavailable(error);
        let start = "no access token: the token endpoint cannot be used: ";
        assert!(reason.contains(start), "{url}: {reason}");
        crib.end().await;
    }
    assert!(harbour.shown.lock().unwrap().is_empty());
}

#[tokio::test]
async fn values_that_are_not_set_are_missing_even_where_the_catalog_calls_them_optional() {
    let (harbour, origin) = serve().await;
    let crib = bare(&origin, |_| {});
    crib.values.set_secret("test.id", "harbour-client");
    let error = crib.run("echo", json!({"text": "x"})).await.unwrap_err();
    assert_eq!(
        (error.code(), error.spent()),
        ("MISSING_CREDENTIALS", false)
    );
    match error {
        CallError::MissingCredentials { secrets, .. } => {
            assert_eq!(secrets, ["test.secret".parse().unwrap()]);
        }
        other => panic!("{other:?}"),
    }
    assert!(harbour.asked().is_empty());
    crib.end().await;
}

#[tokio::test]
async fn a_token_is_its_tenants_own_and_new_when_its_secret_is() {
    let (harbour, origin) = serve().await;
    let crib = crib(&origin, |_| {});
    let other = Tenant {
        id: "other".parse().unwrap(),
        scope: Scope::everything(),
    };
    let call = async |tenant: &Tenant| {
        let call = request(
            &crib.mint_for(tenant, &["echo"]),
            "echo",
            json!({"text": "x"}),
        );
        crib.caller
            .call(tenant, call, CallerSide::default())
            .await
            .unwrap();
    };
    for (name, value) in [("test.id", "other-client"), ("test.secret", "other-4711")] {
        crib.values.set_secret_of(&other.id, name, value);
    }
    call(&crib.tenant).await;
    call(&other).await;
    call(&crib.tenant).await;
    call(&other).await;
    let expected = ["token-1", "token-2", "token-1", "token-2"];
    assert_eq!(harbour.called_with(), expected);
    assert_eq!(harbour.asked().len(), 2);
    crib.values
        .set_secret_of(&other.id, "test.secret", "changed-4711");
    call(&other).await;
    assert_eq!(harbour.called_with().last().unwrap(), "token-3");
    crib.end().await;
}

#[tokio::test]
async fn a_token_that_a_server_sends_back_is_masked() {
    let (_harbour, origin) = serve().await;
    let crib = crib(&origin, |_| {});
    let error = crib.run("echo", json!({"text": "echo"})).await.unwrap_err();
    let shown = format!("{error:?}");
    assert!(
        shown.contains("you came with [secret]") && !shown.contains("token-1"),
        "{shown}"
    );
    crib.end().await;
}
