//! Clients of the gateway are told when a tool that they are shown becomes another.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::gateway::{NO_MODEL, folder};
use crate::program::{Folder, Program, http};
use crate::tenants::key_of;

const MODERN: &str = "2026-07-28";

/// A catalog with an eager and a cold tool of some generation each.
fn write_catalog(path: &Path, eager: usize, cold: usize) {
    let tool = |name: &str, generation: usize| {
        json!({ "name": name, "description": format!("Polish a statue, generation {generation}."),
            "arguments": [] })
    };
    let line = json!({ "name": "zebra", "title": "Zebra",
        "tools": [tool("shown", eager), tool("hidden", cold)] });
    let aside = path.with_extension("aside");
    std::fs::write(&aside, line.to_string()).unwrap();
    std::fs::rename(aside, path).unwrap();
}

fn source(refresh_s: u64) -> (Folder, PathBuf) {
    let folder = folder("");
    let path = folder.path().join("source.jsonl");
    let config = format!(
        "[server]\nsurface = \"gateway\"\n[tools.eager]\npolicy = \"explicit\"\n\
         match = [\"zebra__shown\"]\n[tools.search]\n\
         [catalog]\nbuiltin = false\nrefresh_s = {refresh_s}\n\
         [[catalog.sources]]\nname = \"team\"\nformat = \"normal-form\"\npath = \"{}\"\n\
         policy = \"trust\"\n",
        path.display()
    );
    std::fs::write(folder.path().join("toolcrib.toml"), config).unwrap();
    write_catalog(&path, 1, 1);
    let refreshed = folder.run(&["catalog", "refresh"]);
    assert!(refreshed.status.success());
    (folder, path)
}

/// Opens a stream of changes, once it is acknowledged.
async fn listen(program: &Program, key: &str) -> (reqwest::Response, String) {
    let method = "subscriptions/listen";
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        },
        "notifications": { "toolsListChanged": true },
    } });
    let request = http()
        .post(&program.url)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", MODERN)
        .header("mcp-method", method)
        .bearer_auth(key)
        .body(body.to_string());
    let mut response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    let mut heard = String::new();
    while !heard.contains("acknowledged") {
        let chunk = response.chunk().await.unwrap().unwrap();
        heard += std::str::from_utf8(&chunk).unwrap();
    }
    (response, heard)
}

async fn refresh(program: &Program) {
    let url = format!("{}/admin/refresh", program.admin);
    let report = http().post(url).send().await.unwrap();
    let report: Value = serde_json::from_str(&report.text().await.unwrap()).unwrap();
    assert_eq!(report["published"], true, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_tells_of_eager_tools_of_ones_own_and_of_nothing_else() {
    let (folder, path) = source(0);
    let a = key_of(&folder, &["tenant", "add", "a"]);
    let b = key_of(&folder, &["tenant", "add", "b", "--allow", "zebra/hidden"]);
    let program = Program::start(&folder, &[NO_MODEL]);
    let (own, own_heard) = listen(&program, &a).await;
    let (foreign, foreign_heard) = listen(&program, &b).await;
    assert!(
        own_heard.contains("\"toolsListChanged\":true"),
        "{own_heard}"
    );
    write_catalog(&path, 1, 2);
    refresh(&program).await;
    write_catalog(&path, 2, 2);
    refresh(&program).await;
    program.signal("-TERM");
    let told = own_heard + &own.text().await.unwrap();
    assert_eq!(told.matches("tools/list_changed").count(), 1, "{told}");
    assert!(
        told.contains("\"result\""),
        "the stream ends in order: {told}"
    );
    let told = foreign_heard + &foreign.text().await.unwrap();
    assert_eq!(told.matches("tools/list_changed").count(), 0, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_has_no_more_streams_than_requests_at_one_time() {
    let (folder, _path) = source(0);
    let a = key_of(&folder, &["tenant", "add", "a"]);
    let program = Program::start(&folder, &[NO_MODEL, ("TOOLCRIB_LIMITS__CONCURRENT", "1")]);
    let (first, _) = listen(&program, &a).await;
    let (second, mut heard) = listen(&program, &a).await;
    heard += &second.text().await.unwrap();
    assert!(heard.contains("too many requests at one time"), "{heard}");
    // A stream takes no place of a call.
    let found = json!({ "query": "polish a statue" });
    let found = program.call(Some(&a), "crib__search_tools", found).await;
    assert_eq!(found["isError"], false, "{found}");
    // Its place is free again when the client has gone.
    drop(first);
    let start = Instant::now();
    loop {
        let (mut stream, mut heard) = listen(&program, &a).await;
        let wait = tokio::time::timeout(Duration::from_millis(100), stream.chunk()).await;
        match wait {
            Err(_nothing_more) => break,
            Ok(chunk) => heard += std::str::from_utf8(&chunk.unwrap().unwrap()).unwrap(),
        }
        assert!(heard.contains("too many requests at one time"), "{heard}");
        assert!(start.elapsed() < Duration::from_secs(30), "{heard}");
    }
}

#[test]
fn on_standard_streams_the_older_era_is_told_unasked() {
    let (folder, path) = source(1);
    let mut child = folder
        .command()
        .args(["serve", "--stdio"])
        .env(NO_MODEL.0, NO_MODEL.1)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut say = |message: Value| writeln!(input, "{message}").unwrap();
    say(
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } } }),
    );
    let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(
        answer["result"]["capabilities"]["tools"]["listChanged"],
        true
    );
    say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    say(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }));
    let listed: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(listed["result"]["tools"][3]["name"], "zebra__shown");
    write_catalog(&path, 2, 1);
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(lines.next()));
    let told = receiver.recv_timeout(Duration::from_mins(1));
    child.kill().unwrap();
    child.wait().unwrap();
    let told = told.unwrap().unwrap().unwrap();
    assert!(told.contains("notifications/tools/list_changed"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_the_older_era_is_promised_nothing() {
    let (folder, _path) = source(0);
    let program = Program::start(&folder, &[NO_MODEL]);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } } });
    let answer = crate::gateway::ask(&program, None, "", &body).await;
    let tools = answer["result"]["capabilities"]["tools"]
        .as_object()
        .unwrap();
    assert!(tools.get("listChanged").is_none(), "{answer}");
}
