//! `Caller` against the published reference servers, where they are installed.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib::call::CallerSide;
use toolcrib::domain::{Definition, HttpTransport, Input, Launch, Server, Tool};

use crate::call::{Crib, request, text};
use crate::program::{has_servers, servers_folder};

/// The folder of `make servers`, or the one that `TOOLCRIB_INSTALLED` names.
fn installed(test: &str) -> Option<PathBuf> {
    let named = std::env::var_os("TOOLCRIB_INSTALLED").map(PathBuf::from);
    named.or_else(|| has_servers(test).then(servers_folder))
}

/// A crib over one package, whose tools it has been asked for.
async fn crib(command: &str, args: &[&str]) -> Option<(Crib, Vec<Value>)> {
    let folder = installed(args.last()?)?;
    let launch = |server: &mut Server| {
        server.tools.clear();
        server.launch = Some(Launch::Stdio {
            command: command.into(),
            args: args.iter().map(|arg| arg.parse().unwrap()).collect(),
            env: vec![],
        });
    };
    let crib = Crib::without_python(&[], launch, |options| options.installed = vec![folder]);
    let mut server = crib.server();
    let upstreams = crib.caller.upstreams();
    let listed = upstreams
        .list_tools(&crib.tenant, &server, &*crib.values)
        .await
        .unwrap();
    server.tools = listed
        .iter()
        .map(|tool| {
            let name = tool["name"].as_str().unwrap().parse().unwrap();
            Tool::new(Definition::new(
                name,
                "",
                Input::from_schema(tool["inputSchema"].clone()),
            ))
        })
        .collect();
    crib.store(server);
    Some((crib, listed))
}

#[tokio::test]
async fn everything() {
    let package = "@modelcontextprotocol/server-everything@2026.8.31";
    let Some((crib, listed)) = crib("npx", &["-y", package]).await else {
        return;
    };
    assert!(10 <= listed.len(), "{}", listed.len());
    let echo = crib.run("echo", json!({"message": "hello"})).await.unwrap();
    assert!(text(&echo.result).contains("hello"));
    let env = crib.run("get-env", json!({})).await.unwrap();
    let env: Value = serde_json::from_str(&text(&env.result)).unwrap();
    let allowed = BTreeSet::from(["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"]);
    for name in env.as_object().unwrap().keys() {
        assert!(allowed.contains(name.as_str()), "{name} was passed on");
    }
    let wrong = crib
        .run("echo", json!({"massage": "hello"}))
        .await
        .unwrap_err();
    assert_eq!(wrong.code(), "INVALID_ARGUMENTS");
    crib.end().await;
}

#[tokio::test]
async fn everything_keeps_pictures_and_reports_progress() {
    let package = "@modelcontextprotocol/server-everything@2026.8.31";
    let Some((crib, listed)) = crib("npx", &["-y", package]).await else {
        return;
    };
    let names: Vec<&str> = listed
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    let picture = names
        .iter()
        .find(|name| name.contains("tiny-image"))
        .unwrap();
    let result = crib.run(picture, json!({})).await.unwrap().result;
    let blocks = result["content"].as_array().unwrap();
    assert!(
        blocks
            .iter()
            .any(|block| block["type"] == "image" && block["data"].is_string())
    );
    let long = names
        .iter()
        .find(|name| name.contains("long-running"))
        .unwrap();
    let (sender, mut steps) = tokio::sync::mpsc::channel(16);
    let side = CallerSide {
        progress: Some(sender),
        ..CallerSide::default()
    };
    let call = request(
        &crib.mint(&[long]),
        long,
        json!({"duration": 1, "steps": 4}),
    );
    crib.caller.call(&crib.tenant, call, side).await.unwrap();
    assert_eq!(steps.recv().await.unwrap().total, Some(4.0));
    crib.end().await;
}

#[tokio::test]
async fn filesystem_writes_into_the_tenants_workspace_only() {
    let package = "@modelcontextprotocol/server-filesystem@2026.8.31";
    let Some((crib, _)) = crib("npx", &["-y", package, "{{workspace}}"]).await else {
        return;
    };
    let workspace = crib.caller.upstreams().options().workspaces.join("local");
    let inside = workspace.join("note.txt");
    let note = json!({"path": inside, "content": "kept"});
    crib.run("write_file", note).await.unwrap();
    assert_eq!(std::fs::read_to_string(inside).unwrap(), "kept");
    let outside = json!({"path": "/etc/passwd"});
    let refused = crib.run("read_text_file", outside).await.unwrap();
    assert_eq!(refused.result["isError"], true);
    crib.end().await;
}

#[tokio::test]
async fn python_servers_run_too() {
    for (package, tool, arguments, expected) in [
        (
            "mcp-server-time@2026.10.19",
            "convert_time",
            json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
            "T21:00",
        ),
        (
            "mcp-server-calculator@0.2.1",
            "calculate",
            json!({"expression": "6*7"}),
            "42",
        ),
    ] {
        let Some((crib, _)) = crib("uvx", &[package]).await else {
            return;
        };
        let outcome = crib.run(tool, arguments).await.unwrap();
        assert!(
            text(&outcome.result).contains(expected),
            "{:?}",
            outcome.result
        );
        crib.end().await;
    }
}

/// Arguments that a server cannot do without.
fn needed(package: &str) -> &'static [&'static str] {
    match package {
        name if name.contains("server-filesystem") => &["{{workspace}}"],
        name if name.contains("server-sqlite") => &["--db-path", "{{workspace}}/test.db"],
        _ => &[],
    }
}

#[tokio::test]
async fn every_installed_server_lists_its_tools_and_ends() {
    let Some(folder) = installed("a test of the reference servers") else {
        return;
    };
    let text = std::fs::read_to_string(folder.join("installed.json")).unwrap();
    let packages: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
    let all = packages.keys().map(|key| async move {
        let (runner, mut args) = match key.split_once(':').unwrap() {
            ("npm", package) => ("npx", vec!["-y", package]),
            (_, package) => ("uvx", vec![package]),
        };
        args.extend(needed(key));
        let (crib, listed) = crib(runner, &args).await.unwrap();
        println!("{key}: {} tools", listed.len());
        assert!(!listed.is_empty(), "{key}");
        crib.end().await;
    });
    futures::future::join_all(all).await;
}

/// What the relay adds to a call. Printed, and bounded loosely: other tests run at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_through_the_relay_takes_milliseconds() {
    let package = "@modelcontextprotocol/server-everything@2026.8.31";
    let Some((crib, _)) = crib("npx", &["-y", package]).await else {
        return;
    };
    let mut times = Vec::new();
    for _ in 0..200 {
        let started = tokio::time::Instant::now();
        crib.run("echo", json!({"message": "x"})).await.unwrap();
        times.push(started.elapsed());
    }
    times.sort_unstable();
    println!("warm call: p50 {:?}, p99 {:?}", times[100], times[198]);
    assert!(times[100] < Duration::from_millis(50));
    crib.end().await;
}

/// The same server over HTTP: sessions, events and progress of the TypeScript SDK.
#[tokio::test]
async fn everything_over_http() {
    everything_over("streamableHttp", "mcp", HttpTransport::Streamable).await;
}

/// The same over the older transport, as its entry says, and found out by trying.
#[tokio::test]
async fn everything_over_a_stream_of_events() {
    everything_over("sse", "sse", HttpTransport::Sse).await;
    everything_over("sse", "sse", HttpTransport::Streamable).await;
}

async fn everything_over(speaks: &str, path: &str, transport: HttpTransport) {
    let Some(folder) = installed("a test of the reference servers") else {
        return;
    };
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let program = folder.join("npm/node_modules/.bin/mcp-server-everything");
    let mut server = tokio::process::Command::new(program)
        .arg(speaks)
        .env("PORT", port.to_string())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let address = format!("127.0.0.1:{port}");
    while tokio::net::TcpStream::connect(&address).await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let launch = |server: &mut Server| {
        server.launch = Some(Launch::Http {
            url: format!("http://{address}/{path}").parse().unwrap(),
            headers: vec![],
            transport,
            oauth: None,
        });
        let input = Input::from_schema(json!({"type": "object"}));
        let names = ["echo", "trigger-long-running-operation"];
        let tool = |name: &str| Definition::new(name.parse().unwrap(), "", input.clone());
        server.tools = names.map(|name| Tool::new(tool(name))).into();
    };
    let crib = Crib::without_python(&[], launch, |options| options.http_on_loopback = true);
    let echo = crib
        .run("echo", json!({"message": "over http"}))
        .await
        .unwrap();
    assert!(text(&echo.result).contains("over http"));
    let (sender, mut steps) = tokio::sync::mpsc::channel(16);
    let side = CallerSide {
        progress: Some(sender),
        ..CallerSide::default()
    };
    let long = "trigger-long-running-operation";
    let call = request(
        &crib.mint(&[long]),
        long,
        json!({"duration": 1, "steps": 2}),
    );
    crib.caller.call(&crib.tenant, call, side).await.unwrap();
    assert_eq!(steps.recv().await.unwrap().total, Some(2.0));
    crib.end().await;
    server.kill().await.unwrap();
}
