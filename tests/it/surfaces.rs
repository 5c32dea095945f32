//! Several surfaces on one process: the same catalog, tenants, limits and memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::{Value, json};

use crate::gateway::{EAGER, NO_MODEL, add_upstream, ask, folder};
use crate::program::{Folder, Program, http};
use crate::tenants::key_of;

/// Clients of one tenant at one time.
const CLIENTS: usize = 16;

/// Kinds of requests that they make in turn.
const KINDS: usize = 8;

/// Every surface that this build has, beside the default one.
const BESIDE: &str = r#"["connected", "gateway", "discovery"]"#;

#[tokio::test(flavor = "multi_thread")]
async fn each_surface_has_its_path_behind_the_same_door() {
    let folder = folder(EAGER);
    let key = key_of(&folder, &["tenant", "add", "a", "--allow", "time"]);
    let program = Program::start(&folder, &[NO_MODEL, ("TOOLCRIB_SERVER__SURFACES", BESIDE)]);
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    for (path, tools) in [
        ("", 5),
        ("/gateway", 5),
        ("/connected", 2),
        ("/discovery", 2),
    ] {
        let listed = ask(&program, Some(&key), path, &list).await;
        let listed = listed["result"]["tools"].as_array().unwrap();
        assert_eq!(listed.len(), tools, "{path}: {listed:?}");
        let url = format!("{}{path}", program.url);
        let refused = http()
            .post(&url)
            .body(list.to_string())
            .send()
            .await
            .unwrap();
        assert_eq!(refused.status(), 401, "{path}");
        let refused = http().post(&url).header("host", "evil.example");
        assert_eq!(refused.send().await.unwrap().status(), 421, "{path}");
    }
    let nowhere = http()
        .post(format!("{}/elsewhere", program.url))
        .bearer_auth(&key);
    assert_eq!(nowhere.send().await.unwrap().status(), 404);
}

/// One client's next request, by a counter, so that all kinds are interleaved.
fn request(turn: usize, own: &str, foreign: &str) -> Value {
    let (echo, say) = (format!("{own}__echo"), json!({ "text": "x" }));
    let (tool, arguments) = match turn % KINDS {
        0 => return json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }),
        1 => ("crib__search_tools", json!({ "query": "say a sentence" })),
        2 => ("crib__describe_tool", json!({ "name": echo })),
        3 => (
            "crib__describe_tool",
            json!({ "name": format!("{own}__faithfull") }),
        ),
        4 => (
            "crib__execute_tool",
            json!({ "name": echo, "arguments": say }),
        ),
        // Asked for by name, it is as if nobody had it; the name itself is the asker's.
        5 => (
            "crib__execute_tool",
            json!({ "name": format!("{foreign}__echo") }),
        ),
        6 => (echo.as_str(), say),
        _ => (
            "crib__search_tools",
            json!({ "query": format!("{foreign} echo") }),
        ),
    };
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": tool, "arguments": arguments } })
}

async fn client(
    program: &Program,
    key: &str,
    seed: usize,
    names: [&str; 2],
    end: Instant,
) -> usize {
    let [own, foreign] = names;
    let mut answers = 0;
    while Instant::now() < end {
        let turn = seed + answers;
        let body = request(turn, own, foreign);
        let path = ["", "/gateway"][turn / KINDS % 2];
        let answer = ask(program, Some(key), path, &body).await.to_string();
        let answer = match turn % KINDS {
            5 => {
                assert!(answer.contains("UNKNOWN_TOOL"), "{answer}");
                answer.replace(&format!("there is no tool `{foreign}__echo`"), "")
            }
            _ => answer,
        };
        assert!(!answer.contains(foreign), "{body} -> {answer}");
        assert!(
            !answer.contains("RATE_LIMITED") && !answer.contains("BUSY"),
            "{answer}"
        );
        answers += 1;
    }
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_ever_names_a_foreign_tool() {
    let given = std::env::var_os("TOOLCRIB_SCOPES_SECONDS");
    let seconds = given.and_then(|text| text.to_str()?.parse().ok());
    let folder = folder(
        "[server]\nsurface = \"gateway\"\nsurfaces = [\"gateway\"]\n\
        [tools.eager]\npolicy = \"all\"\n[tools.search]\ntoolkit = \"crib\"\n\
        [limits]\nsearches_per_minute = 1000000\nruns_per_minute = 1000000\n",
    );
    for server in ["magpie", "toucan"] {
        add_upstream(&folder, server);
    }
    let a = key_of(
        &folder,
        &["tenant", "add", "a", "--allow", "magpie", "--allow", "time"],
    );
    let b = key_of(
        &folder,
        &["tenant", "add", "b", "--allow", "toucan", "--allow", "time"],
    );
    let program = Arc::new(Program::start(&folder, &[NO_MODEL]));
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(3));
    let clients = (0..2 * CLIENTS).map(|n| {
        let (program, key) = (Arc::clone(&program), [&a, &b][n % 2].clone());
        let names = [["magpie", "toucan"], ["toucan", "magpie"]][n % 2];
        tokio::spawn(async move { client(&program, &key, n, names, end).await })
    });
    let answers = join_all(clients).await.into_iter().map(Result::unwrap);
    let answers: usize = answers.sum();
    println!("{answers} answers to {} clients", 2 * CLIENTS);
    assert!(
        2 * KINDS * CLIENTS <= answers,
        "each client has asked everything: {answers}"
    );
}

/// Resident memory of a process, in KiB.
fn memory(program: &Program) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", program.pid()));
    let status = status.unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap()
}

/// A program after the same searches at `/mcp/connected`, and at the others where it has them.
async fn warmed(folder: &Folder, surfaces: &str, paths: &[&str]) -> usize {
    let settings = [("TOOLCRIB_SERVER__SURFACES", surfaces)];
    let program = Program::start(folder, &settings);
    program.ready().await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    for turn in 0..200 {
        let path = paths[turn % paths.len()];
        ask(&program, None, path, &list).await;
        let tool = match path {
            "/gateway" => "crib__search_tools",
            "/discovery" => "tool_search",
            _ => "search_tools",
        };
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params":
            { "name": tool, "arguments": { "query": format!("post message {turn}") } } });
        let answer = ask(&program, None, path, &body).await;
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    memory(&program)
}

#[tokio::test(flavor = "multi_thread")]
async fn all_surfaces_at_once_take_little_more_memory_than_one() {
    let folder = folder(&EAGER.replace("surface = \"gateway\"", "surface = \"connected\""));
    // Once for what the disk keeps.
    warmed(&folder, "[\"connected\"]", &["/connected"]).await;
    let one = warmed(&folder, "[\"connected\"]", &["/connected"]).await;
    let all = warmed(&folder, BESIDE, &["/connected", "/gateway", "/discovery"]).await;
    println!("one surface {one} KiB, all {all} KiB");
    assert!(
        all <= one + one / 10,
        "one surface {one} KiB, all {all} KiB"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn all_surfaces_count_against_one_limit() {
    let folder = folder(EAGER);
    let settings = [
        NO_MODEL,
        ("TOOLCRIB_SERVER__SURFACES", BESIDE),
        ("TOOLCRIB_LIMITS__SEARCHES_PER_MINUTE", "3"),
    ];
    let program = Program::start(&folder, &settings);
    let call = |tool: &str| {
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": tool, "arguments": { "query": "the time", "name": "time__now" } } })
    };
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert!(ask(&program, None, "", &list).await.get("error").is_none());
    for (path, tool) in [
        ("/connected", "search_tools"),
        ("/gateway", "crib__search_tools"),
    ] {
        let found = ask(&program, None, path, &call(tool)).await;
        assert_eq!(found["result"]["isError"], false, "{found}");
    }
    for (path, tool) in [
        ("/connected", "search_tools"),
        ("/gateway", "crib__search_tools"),
        ("/gateway", "crib__describe_tool"),
    ] {
        let refused = ask(&program, None, path, &call(tool)).await;
        assert_eq!(
            refused["result"]["structuredContent"]["error"], "RATE_LIMITED",
            "{tool}"
        );
    }
    let refused = ask(&program, None, "", &list).await;
    let text = refused["error"]["message"].as_str().unwrap();
    assert!(
        text.contains("too many requests a minute. Try again in"),
        "{text}"
    );
    let unlisted = ask(&program, None, "/gateway", &call("time__nothing")).await;
    let text = unlisted["error"]["message"].as_str().unwrap();
    assert!(text.contains("too many requests a minute"), "{text}");
}
