//! One caller of the soak: it searches, runs what it found, and compares the answer.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::program::http;

/// Of a hundred calls, how many go wrong in each hostile way.
const HOSTILE_SHARE: usize = 3;
/// Longest pause between two calls of one caller.
const PAUSE_MS_MAX: u64 = 1_600;
/// Calls until a server that starts slowly must have started.
const START_TRIES: usize = 5;
/// When a caller that hangs goes away.
const PATIENCE: Duration = Duration::from_millis(300);

/// The hostile server's tools and their arguments.
pub(super) const HOSTILE_TOOLS: &[(&str, &[(&str, &str)])] = &[
    ("mark", &[("text", "string")]),
    ("silent", &[]),
    ("slow", &[("seconds", "number")]),
    ("garbage", &[]),
    ("big", &[("bytes", "integer")]),
    ("crash", &[]),
    ("orphan", &[]),
    ("nothing", &[]),
    ("progress", &[("steps", "integer")]),
    ("refuse", &[]),
];

/// A published server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Real {
    Everything,
    Sqlite,
    Filesystem,
    Calculator,
    Memory,
}

impl Real {
    pub(super) const ALL: [Self; 5] = [
        Self::Everything,
        Self::Sqlite,
        Self::Filesystem,
        Self::Calculator,
        Self::Memory,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::Sqlite => "sqlite",
            Self::Filesystem => "filesystem",
            Self::Calculator => "calculator",
            Self::Memory => "memory",
        }
    }
}

/// What a caller got.
#[derive(Debug)]
pub(super) enum Answer {
    /// The upstream's text.
    Text(String),
    /// An error of ours, and whether the call may have run.
    Lost(String),
    /// It went away itself.
    Left,
}

/// What one caller saw.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) answered: usize,
    /// Ids that the hostile server has answered, and those that were lost on the way.
    pub(super) marked: Vec<String>,
    pub(super) marks_lost: Vec<String>,
    /// The same for rows in a database.
    pub(super) rows: usize,
    pub(super) rows_lost: usize,
    pub(super) hostile: BTreeMap<&'static str, usize>,
    /// Innocent calls without an answer, by code.
    pub(super) lost: BTreeMap<String, usize>,
    /// The longest that an innocent call took.
    pub(super) slowest: Duration,
    /// Processes that an upstream has left behind.
    pub(super) orphans: Vec<String>,
}

pub(super) struct Caller {
    http: reqwest::Client,
    url: String,
    key: String,
    number: usize,
    workspace: PathBuf,
    servers: [Real; 2],
    rng: StdRng,
    calls: u64,
    has_rows: bool,
    seen: Seen,
}

impl Caller {
    pub(super) fn new(
        (url, key): (String, String),
        number: usize,
        workspace: PathBuf,
        servers: [Real; 2],
    ) -> Self {
        Self {
            http: http(),
            url,
            key,
            number,
            workspace,
            servers,
            rng: StdRng::seed_from_u64(number as u64),
            calls: 0,
            has_rows: false,
            seen: Seen::default(),
        }
    }

    pub(super) fn take_seen(&mut self) -> Seen {
        std::mem::take(&mut self.seen)
    }

    pub(super) fn has_rows(&self) -> bool {
        self.has_rows
    }

    /// Starts the tenant's servers.
    pub(super) async fn start(&mut self) {
        self.mark().await;
        self.has_rows = self.servers.contains(&Real::Sqlite);
        if self.has_rows {
            let query = json!({"query": "CREATE TABLE IF NOT EXISTS marks (id TEXT)"});
            // A start that takes longer than a call goes on, and the next call finds it.
            let mut made = Answer::Left;
            for _try in 0..START_TRIES {
                made = self.run("create_table", "sqlite", query.clone()).await;
                if matches!(made, Answer::Text(_)) {
                    break;
                }
            }
            assert!(matches!(made, Answer::Text(_)), "{made:?}");
        }
        self.ask(self.servers[0]).await;
    }

    /// Calls, with pauses, until a moment.
    pub(super) async fn until(&mut self, end: Instant) {
        while Instant::now() < end {
            let draw: usize = self.rng.random_range(0..100);
            let ways = HOSTILE_TOOLS.get(1..).unwrap_or_default();
            match ways.get(draw / HOSTILE_SHARE) {
                Some((way, _)) => self.go_wrong(way).await,
                None if draw < 65 => self.mark().await,
                None => {
                    // Another server than its own: few do, since each is one more process.
                    let other = self.rng.random_range(0..200) == 0;
                    self.ask(self.servers[usize::from(other)]).await;
                }
            }
            let pause = self.rng.random_range(0..PAUSE_MS_MAX);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }

    fn id(&mut self) -> String {
        self.calls += 1;
        format!("{}-{}", self.number, self.calls)
    }

    async fn mark(&mut self) {
        let (id, started) = (self.id(), Instant::now());
        let answer = self.run("mark", "test", json!({"text": id})).await;
        self.seen.slowest = self.seen.slowest.max(started.elapsed());
        match answer {
            Answer::Text(text) => {
                assert_eq!(text, id);
                self.seen.answered += 1;
                self.seen.marked.push(id);
            }
            lost => {
                self.lose(lost);
                self.seen.marks_lost.push(id);
            }
        }
    }

    /// A call of a real server, whose effect is looked at.
    async fn ask(&mut self, server: Real) {
        let id = self.id();
        let file = self.workspace.join(format!("note-{}", self.number));
        let (tool, arguments, expected) = match server {
            Real::Everything => ("echo", json!({"message": id}), format!("Echo: {id}")),
            Real::Sqlite => {
                let query = format!("INSERT INTO marks VALUES ('{id}')");
                let expected = "[{'affected_rows': 1}]".to_owned();
                ("write_query", json!({"query": query}), expected)
            }
            Real::Filesystem => (
                "write_file",
                json!({"path": file, "content": id}),
                format!("Successfully wrote to {}", file.display()),
            ),
            Real::Calculator => {
                let expression = format!("{} * 1000 + {}", self.number, self.calls);
                let expected = (self.number as u64 * 1000 + self.calls).to_string();
                ("calculate", json!({"expression": expression}), expected)
            }
            Real::Memory => {
                let entity = json!({"name": id, "entityType": "mark", "observations": [id]});
                ("create_entities", json!({"entities": [entity]}), id.clone())
            }
        };
        match self.run(tool, server.name(), arguments).await {
            Answer::Text(text) if server == Real::Memory => {
                assert!(text.contains(&expected), "{text}");
            }
            Answer::Text(text) => assert_eq!(text, expected),
            lost => {
                self.lose(lost);
                self.seen.rows_lost += usize::from(server == Real::Sqlite);
                return;
            }
        }
        self.seen.answered += 1;
        self.seen.rows += usize::from(server == Real::Sqlite);
        if server == Real::Filesystem {
            assert_eq!(std::fs::read_to_string(file).unwrap(), id);
        }
    }

    /// A call that fails, each way in its own manner.
    async fn go_wrong(&mut self, way: &'static str) {
        *self.seen.hostile.entry(way).or_default() += 1;
        let bytes = match self.rng.random_range(0..20) {
            0 => 20_000_000,
            _ => 300_000,
        };
        let arguments = match way {
            "slow" => json!({"seconds": 0.5}),
            "big" => json!({"bytes": bytes}),
            "progress" => json!({"steps": 500}),
            _ => json!({}),
        };
        // Most who wait for nothing go away; some stay until they are told.
        let leaves = way == "silent" && self.rng.random_range(0..10) != 0;
        let answer = match leaves {
            true => tokio::time::timeout(PATIENCE, self.run(way, "test", arguments)).await,
            false => Ok(self.run(way, "test", arguments).await),
        };
        let answer = answer.unwrap_or(Answer::Left);
        match (way, answer) {
            // A neighbour's crash, and the pause after several, may come first.
            (_, Answer::Lost(code)) => {
                let own = match way {
                    "silent" => "UPSTREAM_TIMEOUT",
                    "nothing" => "OUTCOME_UNKNOWN",
                    _ => "UPSTREAM_CRASHED",
                };
                let codes = [
                    own,
                    "UPSTREAM_CRASHED",
                    "UPSTREAM_UNAVAILABLE",
                    "UPSTREAM_TIMEOUT",
                    "BUSY",
                ];
                assert!(codes.contains(&code.as_str()), "{way}: {code}");
            }
            (_, Answer::Left) => assert!(leaves),
            ("slow", Answer::Text(text)) => assert_eq!(text, "late"),
            ("garbage", Answer::Text(text)) => assert_eq!(text, "after the noise"),
            ("progress", Answer::Text(text)) => assert_eq!(text, "done"),
            ("refuse", Answer::Text(text)) => assert_eq!(text, "MCP error -32602: no such thing"),
            ("big", Answer::Text(text)) => {
                assert!(
                    text.starts_with("xxx") && text.len() <= 45_000,
                    "{}",
                    text.len()
                );
            }
            ("orphan", Answer::Text(pid)) => self.seen.orphans.push(pid),
            (way, answer) => panic!("{way}: {answer:?}"),
        }
    }

    fn lose(&mut self, answer: Answer) {
        let Answer::Lost(code) = answer else {
            panic!("{answer:?}")
        };
        // A timeout is no neighbour's doing: they are counted apart, and few.
        let codes = [
            "UPSTREAM_CRASHED",
            "UPSTREAM_UNAVAILABLE",
            "UPSTREAM_TIMEOUT",
            "BUSY",
        ];
        assert!(codes.contains(&code.as_str()), "{code}");
        *self.seen.lost.entry(code).or_default() += 1;
    }

    /// Searches for a tool and runs it with the handle.
    pub(super) async fn run(&self, tool: &str, server: &str, arguments: Value) -> Answer {
        let found = self
            .call("search_tools", json!({"query": format!("{server} {tool}")}))
            .await;
        let found = &found["structuredContent"];
        let candidates = found["tool_candidates"].as_array();
        let offered = candidates.into_iter().flatten().any(|candidate| {
            candidate["server_name"] == server && candidate["tool_details"]["name"] == tool
        });
        assert!(offered, "{server} {tool}: {found}");
        let request = json!({
            "capability_token": found["capability_token"],
            "tool_name": tool, "server_name": server, "arguments": arguments,
        });
        let result = self.call("run_tool", request).await;
        match result["structuredContent"]["error"].as_str() {
            Some(code) => {
                if code == "UPSTREAM_TIMEOUT" && tool != "silent" {
                    println!("{tool}: {}", result["structuredContent"]["message"]);
                }
                Answer::Lost(code.to_owned())
            }
            None => Answer::Text(result["content"][0]["text"].as_str().unwrap().to_owned()),
        }
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments },
        });
        let request = self
            .http
            .post(&self.url)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", "2025-11-25")
            .bearer_auth(&self.key)
            .body(body.to_string());
        let response = request.send().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        let mut message: Value =
            serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status}: {text}"));
        assert!(message["result"].is_object(), "{message}");
        message["result"].take()
    }
}
