//! An OpenAPI document from import to run: a service on a loopback port, the real program between.

use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::program::{Folder, Program};
use crate::refresh::listen;

/// What the service was asked: method, target, two headers, and the body.
#[derive(Clone, Debug, PartialEq)]
struct Asked {
    line: String,
    key: String,
    language: String,
    body: String,
}

type Log = Arc<Mutex<Vec<Asked>>>;

async fn answer(
    State(log): State<Log>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> Response {
    let header = |name: &str| {
        let value = headers.get(name).map(|value| value.to_str().unwrap());
        value.unwrap_or_default().to_owned()
    };
    log.lock().unwrap().push(Asked {
        line: format!("{method} {uri}"),
        key: header("authorization"),
        language: header("x-lang"),
        body,
    });
    match uri.path() {
        "/v1/lamps/away" => {
            let away = [(header::LOCATION, "https://evil.example/")];
            (StatusCode::FOUND, away).into_response()
        }
        "/v1/lamps/huge" => {
            let chunk = Bytes::from(vec![b'0'; 1024 * 1024]);
            let chunks = (0..20).map(move |_| Ok::<_, std::io::Error>(chunk.clone()));
            Body::from_stream(futures::stream::iter(chunks)).into_response()
        }
        "/v1/lamps/broken" => {
            let parts = [Ok("{\"half\":"), Err(std::io::Error::other("gone"))];
            Body::from_stream(futures::stream::iter(parts)).into_response()
        }
        "/v1/lamps/missing" => {
            let text = format!("no such lamp for {}", header("authorization"));
            (StatusCode::NOT_FOUND, text).into_response()
        }
        _ => axum::Json(json!({"lamp": uri.path(), "lit": true})).into_response(),
    }
}

fn document(url: &str) -> String {
    let id =
        json!({"name": "lamp_id", "in": "path", "required": true, "schema": {"type": "string"}});
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Lamps", "version": "1.0.0", "license": {"name": "MIT"}},
        "servers": [{"url": url}],
        "security": [{"token": []}],
        "paths": {
            "/lamps/{lamp_id}": {
                "parameters": [id],
                "get": {"operationId": "look_at_lamp", "summary": "Look whether a lamp is lit.",
                    "parameters": [
                        {"name": "fields", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                        {"name": "x-lang", "in": "header", "schema": {"type": "string"}}]},
                "put": {"operationId": "set_lamp", "summary": "Set colour and brightness of a lamp.",
                    "requestBody": {"required": true, "content": {"application/json": {"schema": {
                        "type": "object", "required": ["colour"], "properties": {
                            "colour": {"type": "string"}, "brightness": {"type": "integer"}}}}}}},
                "trace": {"operationId": "trace_lamp", "summary": "Trace the request of a lamp."},
            }},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    })
    .to_string()
}

struct Lamps {
    program: Program,
    log: Log,
    _folder: Folder,
}

impl Lamps {
    /// The document imported by the command, its secret set, and the program serving it.
    async fn start() -> Self {
        let log = Log::default();
        let router = axum::Router::new().fallback(answer).with_state(log.clone());
        let url = listen(router).await;
        let folder = Folder::new();
        let path = folder.path().join("lamps.json");
        std::fs::write(&path, document(&format!("{url}/v1"))).unwrap();
        let text = tokio::task::block_in_place(|| {
            let output = folder.run(&[
                "catalog",
                "import",
                "auto",
                path.to_str().unwrap(),
                "--notes",
            ]);
            let text = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{text}");
            text
        });
        assert!(text.contains("`trace` is no method that is sent"), "{text}");
        let config = "[model]\nenabled = false\n[catalog]\nbuiltin = false\n\
            [upstreams]\nallow_loopback = true\n";
        std::fs::write(folder.path().join("toolcrib.toml"), config).unwrap();
        let mut command = folder.command();
        command.args(["secret", "set", "lamps.token"]);
        command.stdin(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"s3cret-of-lamps\n").unwrap();
        assert!(
            tokio::task::block_in_place(|| child.wait())
                .unwrap()
                .success()
        );
        let program = Program::start(&folder, &[]);
        program.ready().await;
        Self {
            program,
            log,
            _folder: folder,
        }
    }

    /// Searches, and runs one of the tools that were found.
    async fn run(&self, tool: &str, arguments: Value) -> Value {
        let found = self
            .program
            .search(None, "look at a lamp, set its colour")
            .await;
        let request = json!({"capability_token": found["capability_token"], "tool_name": tool,
            "arguments": arguments});
        self.program.call(None, "run_tool", request).await
    }

    fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_is_found_and_run_as_its_document_says() {
    let lamps = Lamps::start().await;
    let found = lamps
        .program
        .search(None, "look whether a lamp is lit")
        .await;
    let first = &found["tool_candidates"][0];
    assert_eq!(first["tool_details"]["name"], "look_at_lamp", "{found}");
    assert_eq!(first["tool_details"]["annotations"]["read_only"], true);
    let arguments = json!({"lamp_id": "hall/2 a", "fields": ["lit", "x&y"], "x-lang": "de"});
    let result = lamps.run("look_at_lamp", arguments).await;
    assert_eq!(result["isError"], false, "{result}");
    let lit = json!({"lamp": "/v1/lamps/hall%2F2%20a", "lit": true});
    assert_eq!(result["structuredContent"], lit);
    assert_eq!(serde_json::from_str::<Value>(text(&result)).unwrap(), lit);
    let set = json!({"lamp_id": "1", "colour": "red", "brightness": 7});
    lamps.run("set_lamp", set).await;
    let asked = |line: &str, language: &str, body: &str| Asked {
        line: line.to_owned(),
        key: "Bearer s3cret-of-lamps".to_owned(),
        language: language.to_owned(),
        body: body.to_owned(),
    };
    assert_eq!(
        lamps.asked(),
        [
            asked(
                "GET /v1/lamps/hall%2F2%20a?fields=lit&fields=x%26y",
                "de",
                ""
            ),
            asked("PUT /v1/lamps/1", "", r#"{"colour":"red","brightness":7}"#),
        ]
    );
    let missing = lamps
        .run("look_at_lamp", json!({"lamp_id": "missing"}))
        .await;
    assert_eq!(missing["isError"], true);
    let expected = "HTTP 404 Not Found\nno such lamp for Bearer [secret]";
    assert_eq!(text(&missing), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_lead_elsewhere_are_refused_before_anything_is_sent() {
    let lamps = Lamps::start().await;
    let found = lamps.program.search(None, "look at a lamp").await;
    for (name, value) in [
        ("lamp_id", "../admin"),
        ("lamp_id", "a/../../admin"),
        ("x-lang", "de\r\nx-admin: 1"),
        ("stray", "1"),
    ] {
        let mut arguments = json!({"lamp_id": "1"});
        arguments[name] = value.into();
        let request = json!({"capability_token": found["capability_token"],
            "tool_name": "look_at_lamp", "arguments": arguments});
        let refused = lamps.program.call(None, "run_tool", request).await;
        let error = &refused["structuredContent"];
        assert_eq!(error["error"], "INVALID_ARGUMENTS", "{refused}");
        assert!(text(&refused).contains(&format!("/{name}")), "{refused}");
    }
    assert_eq!(lamps.asked(), []);
    // The four refusals have left the handle good.
    let request = json!({"capability_token": found["capability_token"],
        "tool_name": "look_at_lamp", "arguments": {"lamp_id": "1"}});
    let result = lamps.program.call(None, "run_tool", request).await;
    assert_eq!(result["structuredContent"]["lit"], true, "{result}");
    assert_eq!(lamps.asked().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_misbehaves_is_asked_once_and_bounded() {
    let lamps = Lamps::start().await;
    let away = lamps.run("look_at_lamp", json!({"lamp_id": "away"})).await;
    assert_eq!(away["isError"], true, "{away}");
    assert!(text(&away).contains("another address, which is not followed"));
    let huge = lamps.run("look_at_lamp", json!({"lamp_id": "huge"})).await;
    assert_eq!(huge["isError"], true, "{huge}");
    assert!(
        text(&huge).contains("the answer is over 4194304 bytes"),
        "{huge}"
    );
    let broken = lamps
        .run("look_at_lamp", json!({"lamp_id": "broken"}))
        .await;
    let error = &broken["structuredContent"];
    assert_eq!(error["error"], "OUTCOME_UNKNOWN", "{broken}");
    // Nothing was sent twice.
    assert_eq!(lamps.asked().len(), 3);
}
