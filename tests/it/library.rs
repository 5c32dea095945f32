//! The registry in other programs: the examples as processes, and many users at one time.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use futures::future::try_join_all;
use serde_json::{Value, json};
use toolcrib::embed::Crib;
use toolcrib::registry::{Asker, Call, ToolOutput, ToolProvider, ToolRegistry, ToolSpec};

use crate::program::http;

/// A running example.
struct Example {
    child: Child,
    url: String,
}

impl Example {
    fn start(name: &str) -> Self {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_toolcrib"));
        let example = program.with_file_name("examples").join(name);
        let mut child = Command::new(&example)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "{}: {error}; `cargo build --examples` makes it",
                    example.display()
                )
            });
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let url = line
            .trim()
            .strip_prefix("listening on ")
            .unwrap()
            .to_owned();
        Self { child, url }
    }

    async fn call(&self, key: &str, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        request(&self.url, key, "tools/call", params).await["result"].clone()
    }

    async fn list(&self, key: &str) -> Vec<String> {
        let answer = request(&self.url, key, "tools/list", json!({})).await;
        names(&answer["result"]["tools"])
    }

    async fn find(&self, key: &str, query: &str) -> Vec<String> {
        let found = self
            .call(key, "tool_search", json!({ "query": query }))
            .await;
        names(&found["structuredContent"]["tools"])
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn request(url: &str, key: &str, method: &str, params: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let response = http()
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2025-11-25")
        .header("x-user-key", key)
        .body(body.to_string())
        .send()
        .await
        .unwrap();
    let (status, text) = (response.status(), response.text().await.unwrap());
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status}: {text}"))
}

fn names(tools: &Value) -> Vec<String> {
    let tools = tools.as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_office_has_a_database_email_and_documents() {
    let office = Example::start("office");
    assert_eq!(
        office.list("").await,
        ["tool_search", "execute_tool", "query_orders"]
    );
    assert_eq!(
        office.find("", "sql").await,
        ["insert_order", "query_orders"]
    );
    assert_eq!(office.find("", "send a message").await[0], "send_email");
    assert_eq!(office.find("", "find document").await[0], "find_document");
    let run = async |name: &str, arguments: Value| {
        let asked = json!({ "name": name, "arguments": arguments });
        office.call("", "execute_tool", asked).await
    };
    let inserted = run("insert_order", json!({ "customer": "Alan", "total": 99.5 })).await;
    assert_eq!(inserted["structuredContent"], json!({ "orders": 3 }));
    let orders = office
        .call("", "query_orders", json!({ "least": 90 }))
        .await;
    let customers = &orders["structuredContent"]["orders"];
    assert_eq!(customers[0]["customer"], "Ada");
    assert_eq!(customers[1]["customer"], "Alan");
    let sent = run(
        "send_email",
        json!({ "to": "a@b.example", "subject": "Hi", "body": "x" }),
    )
    .await;
    assert_eq!(
        sent["content"][0]["text"],
        "sent `Hi` to a@b.example, 1 characters"
    );
    let wrong = run("send_email", json!({ "to": "nobody", "subject": "Hi" })).await;
    assert_eq!(wrong["structuredContent"]["error"], "INVALID_ARGUMENTS");
    // Written with rmcp's macros, and called with rmcp's own context.
    let read = run("find_document", json!({ "word": "rules" })).await;
    assert_eq!(read["content"][0]["text"], "Holiday rules, Travel rules");
}

#[tokio::test(flavor = "multi_thread")]
async fn middleware_brings_each_user_their_own_tools() {
    let program = Example::start("per_user");
    let (ann, bob) = ("key-of-ann", "key-of-bob");
    assert_eq!(
        program.list(ann).await,
        ["tool_search", "execute_tool", "add"]
    );
    assert_eq!(
        program.find(ann, "read notes").await[0],
        "read_notes_of_ann"
    );
    assert_eq!(
        program.find(bob, "read notes").await[0],
        "read_notes_of_bob"
    );
    let who = json!({ "name": "whoami" });
    for (key, name) in [(ann, "ann"), (bob, "bob")] {
        let said = program.call(key, "execute_tool", who.clone()).await;
        assert_eq!(said["content"][0]["text"], name);
    }
    let foreign = json!({ "name": "read_notes_of_ann" });
    let foreign = program.call(bob, "execute_tool", foreign).await;
    assert_eq!(foreign["structuredContent"]["error"], "UNKNOWN_TOOL");
    let sum = program.call(bob, "add", json!({ "a": 2, "b": 3 })).await;
    assert_eq!(sum["content"][0]["text"], "5");
    let response = http().post(&program.url).body("{}").send().await.unwrap();
    assert_eq!(response.status(), 401);
}

/// A secret tool of one user, made anew for each request.
fn own(user: &str) -> Arc<dyn ToolProvider> {
    let registry = ToolRegistry::new(&format!("of-{user}")).unwrap();
    let spec = ToolSpec::new(
        &format!("diary_of_{user}"),
        &format!("Open the diary of {user}."),
    );
    let said = user.to_owned();
    let handler = move |_call: Call| {
        let said = said.clone();
        async move { Ok(ToolOutput::text(format!("dear {said}"))) }
    };
    registry.register(spec.unwrap().native(), handler).unwrap();
    Arc::new(registry)
}

/// Sixteen clients of one user; every reply is looked through for the other's name.
async fn clients_of(url: String, user: &'static str, other: &'static str) {
    let client = async || {
        for turn in 0..12 {
            let mine = json!({ "name": format!("diary_of_{user}") });
            let foreign = json!({ "name": format!("diary_of_{other}") });
            let (method, params) = match turn % 6 {
                0 => ("tools/list", json!({})),
                1 => (
                    "tools/call",
                    json!({ "name": "tool_search", "arguments": {} }),
                ),
                2 => {
                    let query = json!({ "query": "open the diary" });
                    (
                        "tools/call",
                        json!({ "name": "tool_search", "arguments": query }),
                    )
                }
                3 => (
                    "tools/call",
                    json!({ "name": "execute_tool", "arguments": mine }),
                ),
                4 => ("tools/call", mine),
                _ => (
                    "tools/call",
                    json!({ "name": "execute_tool", "arguments": foreign }),
                ),
            };
            let asked_for_other = params.to_string().contains(other);
            let answer = request(&url, user, method, params).await;
            let reply = answer.to_string();
            match asked_for_other {
                // What was asked for is repeated, as a name that nobody has.
                true => {
                    let refusal = &answer["result"]["structuredContent"];
                    assert_eq!(refusal["error"], "UNKNOWN_TOOL", "{reply}");
                    assert!(!reply.contains(&format!("dear {other}")), "{reply}");
                    let hint = refusal["hint"].as_str().unwrap();
                    assert!(!hint.contains(other) && hint.contains(user), "{hint}");
                }
                false => {
                    assert!(!reply.contains(other) && reply.contains(user), "{reply}");
                }
            }
        }
    };
    futures::future::join_all((0..16).map(|_| client())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_reply_to_one_user_ever_names_anothers_tool() {
    let make = |asker: &Asker| {
        asker
            .header("x-user-key")
            .map(own)
            .into_iter()
            .collect::<Vec<_>>()
    };
    let crib = Crib::builder().per_request(make).build();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let app = axum::Router::new().merge(crib.router("/mcp"));
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });
    let pairs = [("xavier", "yolanda"), ("yolanda", "xavier")];
    let users = pairs.map(|(user, other)| tokio::spawn(clients_of(url.clone(), user, other)));
    try_join_all(users).await.unwrap();
    let page = toolcrib::telemetry::metrics_page();
    assert!(page.contains("tool_search"), "{page}");
    assert!(
        !page.contains("xavier") && !page.contains("yolanda"),
        "{page}"
    );
    crib.close().await;
    serving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crib_is_a_handler_for_any_transport_of_rmcp() {
    use rmcp::ServiceExt;
    let crib = Crib::builder().provider(own("zoe")).build();
    let (client_end, server_end) = tokio::io::duplex(4_096);
    let handler = crib.handler();
    let serving = tokio::spawn(async move {
        let session = handler.serve(server_end).await.unwrap();
        session.waiting().await.unwrap();
    });
    let client = ().serve(client_end).await.unwrap();
    let tools = client.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["tool_search", "execute_tool", "diary_of_zoe"]);
    let call = rmcp::model::CallToolRequestParams::new("diary_of_zoe");
    let result = client.call_tool(call).await.unwrap();
    assert!(serde_json::to_string(&result).unwrap().contains("dear zoe"));
    client.cancel().await.unwrap();
    serving.await.unwrap();
}
