//! Upstream processes that take too much: what they may use is limited, and the caller is told.

use serde_json::json;
use toolcrib::call::{CallError, UpstreamError, UpstreamOptions};

use crate::call::{Crib, runs, until};

const MIB: u64 = 1024 * 1024;

/// How a crash is told.
fn reason(error: CallError) -> String {
    assert_eq!(error.code(), "UPSTREAM_CRASHED", "{error:?}");
    match error {
        CallError::Upstream { source, .. } => match *source {
            UpstreamError::Crashed { reason, .. } => reason,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn crib(tune: impl FnOnce(&mut UpstreamOptions)) -> Option<Crib> {
    Crib::with(&[], |_| {}, tune)
}

#[tokio::test]
async fn a_fork_bomb_is_ended_with_all_its_processes() {
    let Some(crib) = crib(|options| options.processes_max = 40) else {
        return;
    };
    // Half of them leave their group, and half have lost their parent.
    let error = crib
        .run("bomb", json!({"processes": 150}))
        .await
        .unwrap_err();
    let reason = reason(error);
    assert!(
        reason.contains("processes, over the limit of 40"),
        "{reason}"
    );
    let lines = crib.counted();
    let pids = lines.iter().filter_map(|line| line.strip_prefix("bomb:"));
    let pids: Vec<&str> = pids.collect();
    assert!(!pids.is_empty());
    until("all are gone", || pids.iter().all(|pid| !runs(pid))).await;
    // The next call finds a new process.
    crib.text("pid").await;
    crib.end().await;
}

#[tokio::test]
async fn processes_that_use_too_much_memory_together_are_ended() {
    let Some(crib) = crib(|options| options.memory_bytes_max = 200 * MIB) else {
        return;
    };
    // Each is within the limit of one process.
    let error = crib
        .run("hog", json!({"processes": 5, "mib": 60}))
        .await
        .unwrap_err();
    let reason = reason(error);
    assert!(
        reason.contains("MiB of memory, over the limit of 200"),
        "{reason}"
    );
    crib.text("pid").await;
    crib.end().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_gets_no_memory_past_its_limit() {
    let Some(crib) = crib(|options| options.memory_bytes_max = 200 * MIB) else {
        return;
    };
    let answer = |outcome: toolcrib::call::CallOutcome| crate::call::text(&outcome.result);
    let within = json!({"mib": 50});
    assert_eq!(
        answer(crib.run("allocate", within).await.unwrap()),
        "got it"
    );
    let past = json!({"mib": 400});
    assert_eq!(answer(crib.run("allocate", past).await.unwrap()), "refused");
    crib.end().await;
}

#[tokio::test]
async fn a_bomb_at_the_start_is_ended_too() {
    let tune = |options: &mut UpstreamOptions| options.processes_max = 40;
    let Some(crib) = Crib::with(&["--bomb", "--mute"], |_| {}, tune) else {
        return;
    };
    let error = crib.run("pid", json!({})).await.unwrap_err();
    assert_eq!(error.code(), "UPSTREAM_UNAVAILABLE", "{error:?}");
    let CallError::Upstream { source, .. } = error else {
        panic!("{error:?}")
    };
    assert!(
        source.to_string().contains("over the limit of 40"),
        "{source}"
    );
    crib.end().await;
}
