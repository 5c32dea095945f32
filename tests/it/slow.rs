//! Clients that ask and do not read, over raw sockets.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use toolcrib::lifecycle::Lifecycle;
use toolcrib::transport::http::Patient;

use crate::call::until;
use crate::program::{Folder, Program};

/// A body without an end that counts how many of its kind are alive.
struct Endless(Arc<AtomicUsize>);

impl Drop for Endless {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl futures::Stream for Endless {
    type Item = Result<Bytes, std::io::Error>;

    fn poll_next(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(Some(Ok(Bytes::from_static(&[b'x'; 16 * 1024]))))
    }
}

/// Connects with a small buffer, sends, and reads nothing.
async fn ask(address: &str, request: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(address.parse().unwrap()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn an_answer_that_nobody_reads_is_given_up() {
    let (alive, opened) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, all) = (alive.clone(), opened.clone());
    let answer = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        all.fetch_add(1, Ordering::SeqCst);
        let body = Endless(counted.clone());
        async move { Body::from_stream(body) }
    };
    let router = axum::Router::new().fallback(answer);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let listener = Patient::new(listener, Duration::from_millis(300));
    Lifecycle::new().spawn(async move { axum::serve(listener, router).await });
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(ask(&address, "GET / HTTP/1.1\r\nHost: a\r\n\r\n").await);
    }
    until("all answers are given up", || {
        opened.load(Ordering::SeqCst) == 8 && alive.load(Ordering::SeqCst) == 0
    })
    .await;
    drop(clients);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_do_not_read_hold_no_place() {
    let folder = Folder::new();
    let program = Program::start(&folder, &[]);
    let search = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "search_tools", "arguments": {"query": "echo a message back to me"}},
    })
    .to_string();
    let address = program.url.trim_start_matches("http://");
    let address = address.trim_end_matches("/mcp").to_owned();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{search}",
        search.len()
    );
    // More than a tenant may have under way at one time.
    let mut clients = Vec::new();
    for _ in 0..80 {
        clients.push(ask(&address, &request).await);
    }
    for client in &clients {
        client.readable().await.unwrap();
    }
    let found = program.search(None, "echo a message back to me").await;
    assert!(found["capability_token"].is_string(), "{found}");
    drop(clients);
}
