//! Stopping in the middle of things leaves nothing behind.

use std::time::Duration;

use serde_json::json;

use crate::program::{Folder, Program, has_servers, pause};

/// All descendants of a process.
fn descendants(of: u32) -> Vec<u32> {
    let mut parents: Vec<(u32, u32)> = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
            continue;
        };
        let after_name = stat.rsplit(") ").next().unwrap_or_default();
        if let Some(parent) = after_name
            .split(' ')
            .nth(1)
            .and_then(|text| text.parse().ok())
        {
            parents.push((pid, parent));
        }
    }
    let mut found = vec![of];
    let mut at = 0;
    while at < found.len() {
        let parent = found[at];
        found.extend(
            parents
                .iter()
                .filter(|(_, p)| *p == parent)
                .map(|(pid, _)| *pid),
        );
        at += 1;
    }
    found.split_off(1)
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

async fn stop_during_a_run(seconds: u32, grace_s: &str, limit: Duration) -> (String, Vec<u32>) {
    let folder = Folder::new();
    let settings = [
        ("TOOLCRIB_MODEL__ENABLED", "false"),
        ("TOOLCRIB_SERVER__GRACE_S", grace_s),
    ];
    let mut program = Program::start(&folder, &settings);
    let found = program.search(None, "trigger long running operation").await;
    let run = json!({
        "capability_token": found["capability_token"],
        "tool_name": "trigger-long-running-operation",
        "arguments": { "duration": seconds, "steps": 2 },
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "run_tool", "arguments": run } });
    let answer = tokio::spawn(program.post(None, &body).send());
    let mut children = Vec::new();
    while children.is_empty() {
        pause();
        children = descendants(program.pid());
    }
    // The child is there; the call reaches it within a moment.
    for _ in 0..50 {
        pause();
        children = descendants(program.pid());
    }
    program.signal("-TERM");
    assert!(
        program.ends_within(limit),
        "still running: {}",
        program.log()
    );
    let text = match answer.await.unwrap() {
        Ok(response) => response.text().await.unwrap_or_default(),
        Err(_closed) => String::new(),
    };
    let left = children.into_iter().filter(|pid| is_alive(*pid)).collect();
    (text, left)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_ends_within_the_grace_period_is_answered() {
    if !has_servers("a_run_that_ends_within_the_grace_period_is_answered") {
        return;
    }
    let (text, left) = stop_during_a_run(3, "20", Duration::from_secs(25)).await;
    assert!(text.contains("Long running operation completed"), "{text}");
    assert_eq!(left, Vec::<u32>::new(), "processes left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_does_not_is_cancelled_and_no_process_is_left() {
    if !has_servers("a_run_that_does_not_is_cancelled_and_no_process_is_left") {
        return;
    }
    let (text, left) = stop_during_a_run(60, "1", Duration::from_secs(15)).await;
    assert!(!text.contains("Long running operation completed"), "{text}");
    assert_eq!(left, Vec::<u32>::new(), "processes left");
}
