//! Operations against a service on a socket.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::call::CallerSide;
use crate::domain::Tenant;
use crate::registry::{Arguments, Asker};

/// Answers one request with what it was asked for.
async fn echo(listener: &TcpListener) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut bytes = vec![0; 8_192];
    let count = stream.read(&mut bytes).await.unwrap();
    let request = String::from_utf8_lossy(&bytes[..count]).into_owned();
    let body = json!({ "asked": request.lines().next() }).to_string();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await.unwrap();
    request
}

fn document() -> Document {
    Document {
        name: "tickets.yaml".to_owned(),
        text: std::fs::read_to_string("tests/data/import/openapi.yaml").unwrap(),
    }
}

fn call(name: &str, arguments: Value) -> Call {
    let Value::Object(map) = arguments else {
        panic!("arguments are an object");
    };
    Call {
        name: name.to_owned(),
        arguments: Arguments::from(map),
        asker: Asker::of(Arc::new(Tenant::local())),
        side: CallerSide::default(),
    }
}

#[tokio::test]
async fn arguments_go_where_the_document_says() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1/", listener.local_addr().unwrap());
    let options = OpenApiOptions {
        base,
        headers: vec![("x-key".to_owned(), "k".into())],
        loopback: true,
    };
    let provider = OpenApiProvider::new("tickets", &document(), &options).unwrap();
    assert_eq!(provider.tools().await.unwrap().len(), 4);
    let check = async |name: &str, arguments: Value, line: &str, body: &str| {
        let (ran, request) = tokio::join!(provider.call(call(name, arguments)), echo(&listener));
        let (head, sent) = request.split_once("\r\n\r\n").unwrap();
        assert_eq!(head.lines().next(), Some(line));
        assert!(head.to_lowercase().contains("x-key: k"), "{head}");
        assert_eq!(sent, body);
        let output = ran.unwrap().unwrap();
        assert_eq!(output, ToolOutput::json(json!({ "asked": line })));
    };
    let get = json!({ "ticket_id": "a/b c", "language": "de" });
    check(
        "getTicket",
        get,
        "GET /v1/tickets/a%2Fb%20c?language=de HTTP/1.1",
        "",
    )
    .await;
    let buy = json!({ "name": "ann", "day": null, "seats": [1, 2] });
    let body = r#"{"name":"ann","day":null,"seats":[1,2]}"#;
    check("buyTicket", buy, "POST /v1/tickets HTTP/1.1", body).await;
    check(
        "put_poster",
        json!({ "body": "raw" }),
        "PUT /v1/poster HTTP/1.1",
        "raw",
    )
    .await;
    let up = provider
        .call(call("getTicket", json!({ "ticket_id": ".." })))
        .await;
    assert!(matches!(up, Err(ProvideError::Arguments(_))), "{up:?}");
    assert!(
        provider
            .call(call("none", json!({})))
            .await
            .unwrap()
            .is_none()
    );
}

#[test]
fn a_service_at_home_needs_leave_and_a_document_needs_operations() {
    let options = |base: &str| OpenApiOptions {
        base: base.to_owned(),
        headers: Vec::new(),
        loopback: false,
    };
    for base in [
        "http://127.0.0.1:1",
        "https://10.0.0.1/",
        "http://api.example/",
    ] {
        let refused = OpenApiProvider::new("x", &document(), &options(base));
        assert!(
            matches!(refused, Err(ReadOpenApiError::Service { .. })),
            "{base}"
        );
    }
    let text = "openapi: 2.0\n".to_owned();
    let empty = Document {
        name: "empty.yaml".to_owned(),
        text,
    };
    let refused = OpenApiProvider::new("x", &empty, &options("https://api.example/"));
    assert!(matches!(refused, Err(ReadOpenApiError::Document { .. })));
}
