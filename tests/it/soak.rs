//! Many tenants, many calls, some of them failing in each hostile way: no wrong answer, no call run
//! twice, nothing left behind.
//!
//! It runs for `TOOLCRIB_SOAK_SECONDS`, or a few seconds.

use std::collections::HashMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolcrib::call::CallerSide;
use toolcrib::domain::Tenant;

use crate::call::{Crib, request, text};

/// Tenants, each with a process of its own and callers of its own.
const TENANTS: usize = 8;
/// Callers of one tenant at one time.
const CALLERS: usize = 3;

fn seconds() -> u64 {
    let given = std::env::var_os("TOOLCRIB_SOAK_SECONDS");
    given
        .and_then(|text| text.to_str()?.parse().ok())
        .unwrap_or(4)
}

/// Resident memory in MiB and open descriptors of this process.
fn usage() -> (usize, usize) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = kib.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<usize>().ok());
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    (kib.unwrap_or_default() / 1024, open)
}

/// What one caller saw: ids that were answered, and ids that were lost on the way.
#[derive(Default)]
struct Seen {
    answered: Vec<String>,
    lost: Vec<String>,
}

async fn caller(crib: &Crib, tenant: Tenant, seed: u64, end: Instant) -> Seen {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut result = Seen::default();
    while Instant::now() < end {
        let hostile = match rng.random_range(0..100) {
            0..3 => Some(("crash", json!({}))),
            3..6 => Some(("silent", json!({}))),
            6..9 => Some(("garbage", json!({}))),
            9..12 => Some(("big", json!({"bytes": 40_000}))),
            12..15 => Some(("nothing", json!({}))),
            15..18 => Some(("progress", json!({"steps": 200}))),
            _ => None,
        };
        if let Some((tool, arguments)) = hostile {
            let cancel = CancellationToken::new();
            let side = CallerSide {
                cancel: cancel.clone(),
                ..CallerSide::default()
            };
            let call = request(&crib.mint_for(&tenant, &[tool]), tool, arguments);
            let call = crib.caller.call(&tenant, call, side);
            // Half of those that hang are cancelled, half are dropped.
            if tool == "silent" && rng.random() {
                let later = async {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    cancel.cancel();
                };
                let (_cancelled, ()) = tokio::join!(call, later);
            } else {
                let _dropped = tokio::time::timeout(Duration::from_millis(300), call).await;
            }
            continue;
        }
        let id = format!("{seed}-{}", result.answered.len() + result.lost.len());
        let call = request(
            &crib.mint_for(&tenant, &["mark"]),
            "mark",
            json!({"text": id}),
        );
        match crib.caller.call(&tenant, call, CallerSide::default()).await {
            Ok(outcome) => {
                assert_eq!(text(&outcome.result), id);
                result.answered.push(id);
            }
            // A neighbour's crash, or the pause after several.
            Err(error) => {
                assert!(
                    ["UPSTREAM_CRASHED", "UPSTREAM_UNAVAILABLE"].contains(&error.code()),
                    "{error:?}"
                );
                result.lost.push(id);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    result
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_runs_twice_and_nothing_is_left_behind() {
    let Some(crib) = Crib::new(&[]) else { return };
    let end = Instant::now() + Duration::from_secs(seconds());
    let tenants: Vec<Tenant> = (0..TENANTS)
        .map(|number| Tenant {
            id: format!("tenant-{number}").parse().unwrap(),
            ..Tenant::local()
        })
        .collect();
    let callers = (0..TENANTS * CALLERS).map(|number| {
        let tenant = tenants[number % TENANTS].clone();
        caller(&crib, tenant, number as u64, end)
    });
    let started = usage();
    let seen = futures::future::join_all(callers).await;
    let running = usage();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for line in crib.counted() {
        if let Some(id) = line.strip_prefix("mark:") {
            *counts.entry(id.to_owned()).or_default() += 1;
        }
    }
    let answered: usize = seen.iter().map(|seen| seen.answered.len()).sum();
    let lost: usize = seen.iter().map(|seen| seen.lost.len()).sum();
    println!("{answered} answered, {lost} lost, {started:?} to {running:?} (MiB, descriptors)");
    for seen in &seen {
        for id in &seen.answered {
            assert_eq!(counts.get(id), Some(&1), "{id}");
        }
        for id in &seen.lost {
            assert!(counts.get(id).is_none_or(|count| *count == 1), "{id}");
        }
    }
    assert!(lost < answered, "{answered} answered, {lost} lost");
    // Four descriptors a session, and some to spare.
    assert!(
        running.1 <= started.1 + 6 * TENANTS,
        "{started:?} to {running:?}"
    );
    crib.end().await;
    let ended = usage();
    assert!(ended.1 <= started.1 + 2, "{started:?} to {ended:?}");
    assert!(ended.0 <= started.0 + 64, "{started:?} to {ended:?}");
}
