//! The surface `discovery`: native and hidden tools, providers of the configuration, chained
//! servers, and scopes.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::gateway::{NO_MODEL, add_upstream, ask, folder};
use crate::program::{Folder, Program, http, root};
use crate::tenants::key_of;

/// The nth block of configuration in `docs/discovery.md`.
fn documented(nth: usize) -> String {
    let text = std::fs::read_to_string(root().join("docs/discovery.md")).unwrap();
    let blocks = text.split("```toml\n").skip(1);
    let blocks: Vec<&str> = blocks
        .map(|block| block.split("```").next().unwrap())
        .collect();
    blocks[nth].to_owned()
}

/// A script of two lines with its definition.
fn add_script(folder: &Folder, name: &str, text: &str, native: bool) {
    let scripts = folder.path().join("scripts");
    std::fs::create_dir_all(&scripts).unwrap();
    let file = scripts.join(name);
    std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    let definition = json!({
        "name": name, "description": format!("Shout what {name} is told."), "native": native,
        "keywords": ["loudly"],
        "inputSchema": { "type": "object", "required": ["text"],
            "properties": { "text": { "type": "string" } } },
    });
    std::fs::write(scripts.join(format!("{name}.json")), definition.to_string()).unwrap();
}

fn with_scripts(folder: &Folder, more: &str) {
    let config = format!(
        "[server]\nsurface = \"discovery\"\n[upstreams]\nallow_loopback = true\n[discovery]\n\
         catalog = false\n{more}\n[[discovery.scripts]]\nname = \"own\"\npath = \"{}\"\n",
        folder.path().join("scripts").display()
    );
    std::fs::write(folder.path().join("toolcrib.toml"), config).unwrap();
}

async fn listed(program: &Program, path: &str) -> Vec<String> {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let answer = ask(program, None, path, &body).await;
    let tools = answer["result"]["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

async fn found(program: &Program, arguments: Value) -> Vec<String> {
    let result = program.call(None, "tool_search", arguments).await;
    let tools = result["structuredContent"]["tools"]
        .as_array()
        .unwrap()
        .iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

fn shout(name: &str) -> Value {
    json!({ "name": name, "arguments": { "text": "hey; id" } })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documented_configuration_lists_what_the_page_says() {
    let folder = folder(&documented(0));
    let program = Program::start(&folder, &[NO_MODEL]);
    let native = [
        "tool_search",
        "execute_tool",
        "time__convert_time",
        "time__get_current_time",
    ];
    assert_eq!(listed(&program, "").await, native);
    let everything = listed(&program, "?show_all=true").await;
    assert_eq!(
        everything.len(),
        100 + 2,
        "a page of a hundred, and our two"
    );
    let best = found(&program, json!({ "query": "get_current_time" })).await;
    assert_eq!(best[0], "time__get_current_time");
    assert_eq!(found(&program, json!({ "query": "get" })).await.len(), 10);
    assert_eq!(
        found(&program, json!({ "max_results": 300 })).await.len(),
        100
    );
    // The other documented configuration is read with its providers.
    let path = folder.path().join("second.toml");
    std::fs::write(&path, documented(1)).unwrap();
    let checked = folder.run(&["--config", path.to_str().unwrap(), "config", "check"]);
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.success(), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_core_ranks_the_catalog_where_that_is_chosen() {
    let folder = folder("[server]\nsurface = \"discovery\"\n[discovery]\nsearch = \"hybrid\"\n");
    add_upstream(&folder, "parrot");
    let program = Program::start(&folder, &[NO_MODEL]);
    let arguments = json!({ "query": "say a sentence like a parrot", "max_results": 3 });
    let result = program.call(None, "tool_search", arguments).await;
    let tools = &result["structuredContent"]["tools"];
    assert_eq!(tools[0]["name"], "parrot__echo");
    assert_eq!(tools[0]["score"], 1.0, "the first of a list");
    let ran = json!({ "name": "parrot__echo", "arguments": { "text": "hello" } });
    let ran = program.call(None, "execute_tool", ran).await;
    assert_eq!(ran["content"][0]["text"], "hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_are_tools_that_come_and_go() {
    let folder = folder("");
    add_script(&folder, "shout", "echo \"$1\" | tr a-z A-Z", false);
    add_script(&folder, "listed", "exit 3", true);
    with_scripts(&folder, "");
    let program = Program::start(&folder, &[NO_MODEL]);
    assert_eq!(
        listed(&program, "").await,
        ["tool_search", "execute_tool", "listed"]
    );
    assert_eq!(
        found(&program, json!({ "query": "loudly" })).await,
        ["listed", "shout"]
    );
    let said = program.call(None, "execute_tool", shout("shout")).await;
    assert_eq!(said["content"][0]["text"], "--TEXT=HEY; ID\n");
    let wrong = json!({ "name": "shout", "arguments": {} });
    let wrong = program.call(None, "execute_tool", wrong).await;
    assert_eq!(wrong["structuredContent"]["error"], "INVALID_ARGUMENTS");
    let failed = program.call(None, "listed", json!({ "text": "x" })).await;
    assert_eq!(failed["isError"], true);
    std::fs::remove_file(folder.path().join("scripts/shout")).unwrap();
    let gone = program.call(None, "execute_tool", shout("shout")).await;
    assert_eq!(gone["structuredContent"]["error"], "UNKNOWN_TOOL");
    let log = program.log();
    assert!(
        log.contains("tool=\"own/shout\"") && log.contains("operation=\"tool_search\""),
        "{log}"
    );
    assert!(!log.contains("hey; id"), "arguments stay out of the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_chained_server_hides_is_found_ranked_and_run_through_it() {
    let behind = folder("");
    add_script(&behind, "shout", "echo \"$1\"", false);
    add_script(&behind, "whisper", "echo \"$1\"", true);
    with_scripts(&behind, "");
    let behind_it = Program::start(&behind, &[NO_MODEL]);
    let front = folder("");
    add_script(&front, "shouting", "echo front", false);
    let remote = format!(
        "[[discovery.remote]]\nname = \"behind\"\nurl = \"{}\"",
        behind_it.url
    );
    with_scripts(&front, &remote);
    let program = Program::start(&front, &[NO_MODEL]);
    let all = listed(&program, "?show_all=true").await;
    assert_eq!(
        all,
        ["tool_search", "execute_tool", "shouting", "whisper"],
        "it hides `shout`"
    );
    // Found by its own search, and ranked anew: the exact name first.
    assert_eq!(
        found(&program, json!({ "query": "shout" })).await[..2],
        ["shout", "shouting"]
    );
    let said = program.call(None, "execute_tool", shout("shout")).await;
    assert_eq!(said["content"][0]["text"], "--text=hey; id\n", "{said}");
    let listed = program.call(None, "execute_tool", shout("whisper")).await;
    assert_eq!(listed["content"][0]["text"], "--text=hey; id\n");
    // Without it the others stay.
    drop(behind_it);
    let arguments = json!({ "query": "shout" });
    let result = program.call(None, "tool_search", arguments).await;
    assert!(
        result["structuredContent"].to_string().contains("shouting"),
        "{result}"
    );
    let own = program.call(None, "execute_tool", shout("shouting")).await;
    assert_eq!(own["content"][0]["text"], "front\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_http_service_is_tools_by_its_document() {
    let service = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = service.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let (mut stream, _) = service.accept().await.unwrap();
        let mut bytes = vec![0; 8_192];
        let count = stream.read(&mut bytes).await.unwrap();
        let answer =
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 13\r\n\r\n{\"ticket\": 7}";
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    });
    let folder = folder("");
    let document = root().join("tests/data/import/openapi.yaml");
    let openapi = format!(
        "[[discovery.openapi]]\nname = \"museum\"\npath = \"{}\"\nurl = \"http://{address}\"\n",
        document.display()
    );
    add_script(&folder, "shout", "echo", false);
    with_scripts(&folder, &openapi);
    let program = Program::start(&folder, &[NO_MODEL]);
    assert_eq!(
        found(&program, json!({ "query": "buy a ticket" })).await[0],
        "buyTicket"
    );
    let get = json!({ "name": "getTicket", "arguments": { "ticket_id": "7", "language": "en" } });
    let got = program.call(None, "execute_tool", get).await;
    assert_eq!(got["structuredContent"], json!({ "ticket": 7 }));
    let request = serving.await.unwrap();
    assert!(
        request.starts_with("GET /tickets/7?language=en HTTP/1.1"),
        "{request}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_tenant_may_not_use_does_not_exist_for_it() {
    let folder = folder("[server]\nsurface = \"discovery\"\n");
    add_upstream(&folder, "parrot");
    let a = key_of(
        &folder,
        &["tenant", "add", "a", "--allow", "parrot", "--allow", "time"],
    );
    let b = key_of(&folder, &["tenant", "add", "b", "--allow", "!parrot"]);
    let program = Program::start(&folder, &[NO_MODEL]);
    let (a, b) = (Some(a.as_str()), Some(b.as_str()));
    let say = json!({ "name": "parrot__echo", "arguments": { "text": "x" } });
    // The other goes first each time, so that whatever is kept is warm.
    for arguments in [
        json!({ "query": "parrot__echo" }),
        json!({ "query": "say a sentence" }),
    ] {
        let own = program
            .call(a, "tool_search", arguments.clone())
            .await
            .to_string();
        assert!(own.contains("parrot__echo"), "{own}");
        let foreign = program.call(b, "tool_search", arguments).await.to_string();
        assert!(!foreign.contains("parrot__"), "{foreign}");
    }
    let ran = program.call(a, "execute_tool", say.clone()).await;
    assert_eq!(ran["content"][0]["text"], "x");
    let foreign = program.call(b, "execute_tool", say).await;
    let invented = json!({ "name": "ostrich__echo", "arguments": { "text": "x" } });
    let invented = program.call(b, "execute_tool", invented).await;
    let text = foreign["structuredContent"]
        .to_string()
        .replace("parrot__echo", "ostrich__echo");
    assert!(text.contains("UNKNOWN_TOOL"), "{text}");
    let hints = [&foreign, &invented].map(|result| result["structuredContent"]["error"].clone());
    assert_eq!(hints[0], hints[1]);
    let hint = foreign["structuredContent"]["hint"].to_string();
    assert!(!hint.contains("parrot"), "{hint}");
    let page = http()
        .get(format!("{}/metrics", program.admin))
        .send()
        .await
        .unwrap();
    let page = page.text().await.unwrap();
    assert!(
        page.contains("tool_search") && !page.contains("parrot"),
        "{page}"
    );
}
