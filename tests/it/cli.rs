//! The command line: what it prints for programs, its exit codes, and its help in need.

use serde_json::Value;

use crate::program::{Folder, has_model, has_servers, root};

fn json(folder: &Folder, args: &[&str]) -> Value {
    let output = folder.run(args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn failing(folder: &Folder, args: &[&str], code: i32) -> String {
    let output = folder.run(args);
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
    text
}

#[test]
fn searches_of_the_contract_find_their_tools() {
    if !has_model("searches_of_the_contract_find_their_tools") {
        return;
    }
    let folder = Folder::new();
    let found = |query: &str| -> Vec<String> {
        let result = json(&folder, &["search", "--json", query]);
        let candidates = result["tool_candidates"].as_array().unwrap();
        let name = |c: &Value| {
            let tool = c["tool_details"]["name"].as_str().unwrap();
            format!("{}/{tool}", c["server_name"].as_str().unwrap())
        };
        candidates.iter().map(name).collect()
    };
    assert_eq!(
        found("post a message to a Slack channel")[0],
        "slack/slack_post_message"
    );
    assert_eq!(
        found("create a new issue in a GitHub repository")[0],
        "github-official/issue_write"
    );
    let web = found("search the web for recent information");
    assert!(
        web.contains(&"brave/brave_web_search".to_owned()),
        "{web:?}"
    );
    assert_eq!(
        web,
        found("search the web for recent information"),
        "the same answer again"
    );
}

#[test]
fn a_run_prints_what_the_tool_said() {
    if !has_servers("a_run_prints_what_the_tool_said") {
        return;
    }
    let folder = Folder::new();
    let args = r#"{"message": "hello"}"#;
    let output = folder.run(&["run", "everything/echo", "--args", args]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Echo: hello\n");
    let raw = json(
        &folder,
        &["run", "everything/echo", "--args", args, "--json"],
    );
    assert_eq!(raw["content"][0]["text"], "Echo: hello");
    let text = failing(&folder, &["run", "everything/ecko"], 1);
    assert!(text.contains("did you mean `everything/echo`?"), "{text}");
    let text = failing(
        &folder,
        &["run", "everything/echo", "--args", r#"{"mesage": "x"}"#],
        1,
    );
    assert!(
        text.contains("INVALID_ARGUMENTS") && text.contains("`message`"),
        "{text}"
    );
}

#[test]
fn get_env_of_a_run_shows_the_allowed_environment_alone() {
    if !has_servers("get_env_of_a_run_shows_the_allowed_environment_alone") {
        return;
    }
    let folder = Folder::new();
    let output = folder
        .command()
        .env("CANARY_OF_THE_OPERATOR", "canary")
        .env("TOOLCRIB_KEY", "a passphrase of the operator")
        .args(["run", "everything/get-env", "--json"])
        .output()
        .unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = result["content"][0]["text"].as_str().unwrap();
    let shown: serde_json::Map<String, Value> = serde_json::from_str(text).unwrap();
    let allowed = [
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "TZ",
        "TMPDIR",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
    ];
    let surprises: Vec<_> = shown
        .keys()
        .filter(|name| !allowed.contains(&name.as_str()))
        .collect();
    assert!(surprises.is_empty(), "{surprises:?}");
}

#[test]
fn lists_are_json_on_request() {
    let folder = Folder::new();
    let servers = json(&folder, &["catalog", "list", "--json"]);
    let slack = servers
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == "slack")
        .unwrap();
    let keys: Vec<&String> = slack.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        ["name", "title", "category", "tools", "source", "license"]
    );
    assert_eq!(slack["tools"], 8);
    let models = json(&folder, &["models", "list", "--json"]);
    assert_eq!(models[0]["name"], "minilm-int8");
    let config = json(&folder, &["config", "show", "--json"]);
    assert_eq!(config["server"]["listen"], "127.0.0.1:8787");
    let tool = json(
        &folder,
        &["catalog", "show", "slack/slack_post_message", "--json"],
    );
    assert_eq!(tool["input_schema"]["required"][0], "channel_id");
}

#[test]
fn secrets_are_set_listed_and_removed_and_never_shown() {
    use std::io::Write;
    let folder = Folder::new();
    let text = failing(&folder, &["secret", "set", "slack.bot_token", "xoxb-1"], 1);
    assert!(text.contains("is a secret: leave the value out"), "{text}");
    let text = failing(&folder, &["secret", "set", "slack.bot_tokn"], 1);
    assert!(text.contains("did you mean `slack.bot_token`?"), "{text}");
    let mut child = folder
        .command()
        .args(["secret", "set", "slack.bot_token"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"xoxb-canary\n")
        .unwrap();
    assert!(child.wait().unwrap().success());
    json(&folder, &["secret", "list", "--json"]);
    assert!(
        folder
            .run(&["secret", "set", "slack.team_id", "T0"])
            .status
            .success()
    );
    let listed = json(&folder, &["secret", "list", "--json"]);
    assert_eq!(listed["secrets"][0], "slack.bot_token");
    assert_eq!(listed["config"]["slack.team_id"], "T0");
    assert!(!listed.to_string().contains("canary"));
    assert!(
        folder
            .run(&["secret", "remove", "slack.bot_token"])
            .status
            .success()
    );
    failing(&folder, &["secret", "remove", "slack.bot_token"], 1);
}

#[test]
fn check_ends_with_3_when_there_are_faults() {
    let folder = Folder::new();
    assert!(folder.run(&["catalog", "check"]).status.success());
    let own = folder.path().join("own.toml");
    std::fs::write(&own, "name = \"own\"\n").unwrap();
    let text = failing(&folder, &["catalog", "check", own.to_str().unwrap()], 3);
    assert!(text.contains("own.toml:1: `title` is missing"), "{text}");
    assert!(text.contains("remedy: add `title"), "{text}");
}

#[test]
fn a_launch_without_an_exact_version_fails_the_check() {
    let folder = Folder::new();
    let own = folder.path().join("time.toml");
    let good = include_str!("../../catalog/time.toml");
    let loose = good.replace("mcp-server-time@2026.10.19", "mcp-server-time");
    assert_ne!(good, loose);
    std::fs::write(&own, loose).unwrap();
    let text = failing(&folder, &["catalog", "check", own.to_str().unwrap()], 3);
    assert!(text.contains("mcp-server-time"), "{text}");
    std::fs::write(&own, good).unwrap();
    let checked = folder.run(&["catalog", "check", own.to_str().unwrap()]);
    assert!(checked.status.success());
}

#[test]
fn usage_errors_end_with_2_and_bad_configuration_with_1() {
    let folder = Folder::new();
    failing(&folder, &["serch"], 2);
    failing(&folder, &["eval", "--queries", "x"], 2);
    std::fs::write(folder.path().join("toolcrib.toml"), "[server]\nlisen = 1\n").unwrap();
    let text = failing(&folder, &["config", "check"], 1);
    assert!(
        text.contains("unknown field `lisen`") && text.contains("line 2"),
        "{text}"
    );
}

#[test]
fn eval_prints_the_metrics_of_the_contract() {
    if !has_model("eval_prints_the_metrics_of_the_contract") {
        return;
    }
    let folder = Folder::new();
    let data = root().join("tests/data");
    let (tools, queries) = (
        data.join("small.tools.jsonl"),
        data.join("small.queries.jsonl"),
    );
    let report = json(
        &folder,
        &[
            "eval",
            "--json",
            "--tools",
            tools.to_str().unwrap(),
            "--queries",
            queries.to_str().unwrap(),
        ],
    );
    for metric in [
        "hit@1",
        "hit@3",
        "recall@3",
        "recall@5",
        "recall@50",
        "mrr@10",
        "ndcg@10",
    ] {
        let value = report["metrics"][metric]
            .as_f64()
            .unwrap_or_else(|| panic!("no {metric}"));
        assert!((0.0..=1.0).contains(&value), "{metric} {value}");
    }
    assert_eq!(
        (&report["queries"], &report["tools"]),
        (&Value::from(4), &Value::from(5))
    );
    assert_eq!(report["metrics"]["hit@3"], 1.0);
    assert!(report["latency_ms"].is_object() && report["styles"].is_object());
}

#[test]
fn doctor_names_what_is_wrong_and_what_to_do() {
    let folder = Folder::new();
    std::fs::remove_file(folder.path().join("models")).ok();
    let text = failing(&folder, &["doctor"], 3);
    assert!(
        text.contains("remedy: run `toolcrib models fetch`"),
        "{text}"
    );
    let text = failing(&folder, &["models", "verify"], 3);
    assert!(text.contains("nothing is fetched yet"), "{text}");
}
