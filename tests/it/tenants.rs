//! Tenants: who comes in, what they see, and that nothing of theirs leaks.

use serde_json::{Value, json};

use crate::program::{Folder, Program, root};

pub(crate) fn key_of(folder: &Folder, args: &[&str]) -> String {
    let output = folder.run(args);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("bearer: "))
        .unwrap();
    line.to_owned()
}

/// A catalog with one server that tells its secret to everybody who should not know it.
fn add_leaky_server(folder: &Folder) {
    let script = root().join("tests/it/leaky.py");
    let manifest = format!(
        r#"
name = "leaky"
title = "Leaky"
description = "Says its secret where it should not."
category = "utilities"
[launch.stdio]
command = "python3"
args = ["{}"]
env = {{ LEAKY_TOKEN = "{{{{secret:leaky.token}}}}" }}
[[secrets]]
name = "leaky.token"
description = "A token."
[provenance]
source = "test"
license = "Apache-2.0"
[[tools]]
name = "leak_and_crash"
description = "Leak the zebra token into standard error and crash."
arguments = []
[[tools]]
name = "say_much"
description = "Answer with far too many giraffes."
arguments = []
"#,
        script.display()
    );
    std::fs::create_dir_all(folder.path().join("own")).unwrap();
    std::fs::write(folder.path().join("own/leaky.toml"), manifest).unwrap();
}

fn set_secret(folder: &Folder, tenant: &str, value: &str) {
    use std::io::Write;
    let mut child = folder
        .command()
        .env("TOOLCRIB_CATALOG__PATHS", folder.path().join("own"))
        .args(["secret", "set", "leaky.token", "--tenant", tenant])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(value.as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_sees_its_own_tools_and_its_handles_open_for_it_alone() {
    let folder = Folder::new();
    let a = key_of(
        &folder,
        &[
            "tenant",
            "add",
            "a",
            "--allow",
            "slack",
            "--allow",
            "everything",
        ],
    );
    let b = key_of(&folder, &["tenant", "add", "b", "--allow", "!slack"]);
    let program = Program::start(&folder, &[("TOOLCRIB_MODEL__ENABLED", "false")]);
    let (a, b) = (Some(a.as_str()), Some(b.as_str()));

    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let refused = program.post(None, &list).send().await.unwrap();
    assert_eq!(refused.status(), 401);
    assert!(
        refused.headers()["www-authenticate"]
            .to_str()
            .unwrap()
            .starts_with("Bearer")
    );
    assert_eq!(
        program
            .post(Some("x.y"), &list)
            .send()
            .await
            .unwrap()
            .status(),
        401
    );
    assert_eq!(program.post(a, &list).send().await.unwrap().status(), 200);

    let servers = |found: &Value| -> Vec<String> {
        let candidates = found["tool_candidates"].as_array().unwrap();
        candidates
            .iter()
            .map(|c| c["server_name"].as_str().unwrap().to_owned())
            .collect()
    };
    let query = "post a message to a slack channel";
    let found = program.search(a, query).await;
    assert_eq!(servers(&found)[0], "slack");
    assert!(!servers(&program.search(b, query).await).contains(&"slack".to_owned()));

    let run = json!({ "capability_token": found["capability_token"],
        "tool_name": "slack_post_message", "arguments": { "channel_id": "C", "text": "x" } });
    let foreign = program.call(b, "run_tool", run.clone()).await;
    let unknown = json!({ "capability_token": "AAAAAAAAAA", "tool_name": "slack_post_message" });
    let unknown = program.call(b, "run_tool", unknown).await;
    assert_eq!(
        foreign, unknown,
        "a foreign handle and an unknown one look alike"
    );
    let own = program.call(a, "run_tool", run).await;
    assert_eq!(own["structuredContent"]["error"], "MISSING_CREDENTIALS");
    let hint = own["structuredContent"]["hint"].as_str().unwrap();
    assert!(
        hint.contains("toolcrib secret set slack.bot_token"),
        "{hint}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_in_any_log_error_metric_or_process_list() {
    const CANARY: &str = "canary-7f3a9c51d2";
    let folder = Folder::new();
    add_leaky_server(&folder);
    let key = key_of(&folder, &["tenant", "add", "a"]);
    set_secret(&folder, "a", CANARY);
    let own = folder.path().join("own");
    let settings = [
        ("TOOLCRIB_MODEL__ENABLED", "false"),
        ("TOOLCRIB_CATALOG__PATHS", own.to_str().unwrap()),
        ("TOOLCRIB_LOG__LEVEL", "trace"),
    ];
    let program = Program::start(&folder, &settings);
    let found = program.search(Some(&key), "leak the zebra token").await;
    assert_eq!(found["tool_candidates"][0]["server_name"], "leaky");
    let token = found["capability_token"].as_str().unwrap();
    let run = json!({ "capability_token": token, "tool_name": "leak_and_crash" });
    let result = program.call(Some(&key), "run_tool", run).await;
    assert_eq!(
        result["structuredContent"]["error"], "UPSTREAM_CRASHED",
        "{result}"
    );
    assert!(
        result.to_string().contains("token is"),
        "the last words are shown: {result}"
    );
    let metrics = crate::program::http()
        .get(format!("{}/metrics", program.admin))
        .send()
        .await;
    let metrics = metrics.unwrap().text().await.unwrap();
    // The log comes through a pipe of its own, a moment later.
    while !program.log().contains("operation=\"run_tool\"") {
        crate::program::pause();
    }
    let log = program.log();
    let (_, secret) = key.split_once('.').unwrap();
    for (place, text) in [
        ("log", &log),
        ("metrics", &metrics),
        ("error", &result.to_string()),
    ] {
        assert!(!text.contains(CANARY), "the secret is in the {place}");
        assert!(!text.contains(token), "the handle is in the {place}");
        assert!(!text.contains(secret), "the key is in the {place}");
        assert!(
            place == "error" || !text.contains("zebra"),
            "the query is in the {place}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_result_can_be_read_whole_by_its_tenant_alone() {
    let folder = Folder::new();
    add_leaky_server(&folder);
    let a = key_of(&folder, &["tenant", "add", "a"]);
    let b = key_of(&folder, &["tenant", "add", "b"]);
    set_secret(&folder, "a", "canary");
    let own = folder.path().join("own");
    let settings = [
        ("TOOLCRIB_MODEL__ENABLED", "false"),
        ("TOOLCRIB_CATALOG__PATHS", own.to_str().unwrap()),
    ];
    let program = Program::start(&folder, &settings);
    let found = program.search(Some(&a), "far too many giraffes").await;
    let run = json!({ "capability_token": found["capability_token"], "tool_name": "say_much" });
    let result = program.call(Some(&a), "run_tool", run).await;
    let uri = result["_meta"]["toolcrib/truncated"]["resource"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        result["content"][0]["text"]
            .as_str()
            .unwrap()
            .chars()
            .count()
            <= 45_000
    );
    let read = |key: String, page: usize| {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read",
            "params": { "uri": format!("{uri}?page={page}") } });
        let request = program.post(Some(&key), &body).send();
        async move { request.await.unwrap().json::<Value>().await.unwrap() }
    };
    let first = read(a.clone(), 0).await["result"]["contents"][0].clone();
    let pages = first["_meta"]["toolcrib/pages"].as_u64().unwrap();
    let mut whole = first["text"].as_str().unwrap().to_owned();
    for page in 1..usize::try_from(pages).unwrap() {
        let next = read(a.clone(), page).await;
        whole += next["result"]["contents"][0]["text"].as_str().unwrap();
    }
    let whole: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(whole["content"][0]["text"], "zebra ".repeat(20_000));
    let refused = read(b, 0).await;
    let told = &refused["error"]["data"]["uri"];
    assert_eq!(told, &format!("{uri}?page=0"), "another tenant: {refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_over_its_rate_is_told_when_to_come_back() {
    let folder = Folder::new();
    let key = key_of(
        &folder,
        &["tenant", "add", "a", "--searches-per-minute", "2"],
    );
    let program = Program::start(&folder, &[("TOOLCRIB_MODEL__ENABLED", "false")]);
    let query = json!({ "query": "echo" });
    for _ in 0..2 {
        let result = program
            .call(Some(&key), "search_tools", query.clone())
            .await;
        assert_eq!(result["isError"], false);
    }
    let result = program.call(Some(&key), "search_tools", query).await;
    assert_eq!(result["structuredContent"]["error"], "RATE_LIMITED");
    let hint = result["structuredContent"]["hint"].as_str().unwrap();
    assert!(hint.starts_with("Try again in "), "{hint}");
}

#[test]
fn a_server_without_tenants_does_not_listen_for_the_whole_network() {
    let folder = Folder::new();
    let args = [
        "serve",
        "--listen",
        "0.0.0.0:0",
        "--admin-listen",
        "127.0.0.1:0",
    ];
    let output = folder
        .command()
        .env("TOOLCRIB_MODEL__ENABLED", "false")
        .args(args)
        .output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("toolcrib tenant add NAME"), "{text}");
}
