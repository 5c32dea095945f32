//! The evaluation as a whole, on a small set of its own.

use std::path::Path;

use serde_json::json;

use super::*;

fn write(folder: &Path, name: &str, lines: &[serde_json::Value]) -> std::path::PathBuf {
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let path = folder.join(name);
    std::fs::write(&path, text.join("\n")).unwrap();
    path
}

fn tools(folder: &Path) -> ToolSource {
    let tool = |id: &str, server: &str, name: &str, description: &str| {
        json!({"id": id, "server": server, "name": name, "description": description,
            "arguments": [{"name": "q", "type": "str", "desc": "a text"}]})
    };
    ToolSource::Tools(write(
        folder,
        "t.jsonl",
        &[
            tool("A B:send", "A B", "send", "Send an email"),
            tool("A B:send#2", "A B", "send", "Send a fax"),
            tool("a-b:read", "a-b", "read", "Read an email"),
            tool("***:x", "***", "x", "Weather forecast"),
        ],
    ))
}

#[tokio::test]
async fn a_set_is_read_searched_and_scored() {
    let folder = tempfile::tempdir().unwrap();
    let queries = write(
        folder.path(),
        "small.queries.jsonl",
        &[
            json!({"query": "send a fax", "relevant": ["A B:send#2"], "style": "plain"}),
            json!({"query": "weather", "relevant": ["***:x"]}),
            json!({"query": "forecast", "relevant": ["a-b:read"]}),
        ],
    );
    let set = LabelledSet::read(&tools(folder.path()), &queries).unwrap();
    assert_eq!((set.name.as_str(), set.catalog.len()), ("small", 4));
    let cache = VectorCache::open(folder.path()).unwrap();
    let setup = Setup {
        embedder: None,
        cache: &cache,
        ranking: &Ranking::default(),
        progress: &|_, _| {},
    };
    let report = run(&set, &setup).await.unwrap();
    let json = report.to_json();
    assert_eq!(json["queries"], 3);
    assert_eq!(json["metrics"]["hit@1"], 2.0 / 3.0);
    assert_eq!(json["styles"]["plain"]["hit@3"], 1.0);
    assert!(json["latency_ms"]["without_model"]["p50"].is_f64());
    assert!(json["latency_ms"]["with_model"].is_null());
    assert!(report.to_string().contains("66.7"));
    let gate = folder.path().join("gate.json");
    std::fs::write(
        &gate,
        r#"{"small": {"hit@1": 0.66, "hit@3": 0.99}, "other": {}}"#,
    )
    .unwrap();
    let faults = Gate::read(&gate).unwrap().faults(&report);
    assert_eq!(faults, ["hit@3 of small is 0.6667, below 0.9900"]);
    let mut worse = report.clone();
    worse.hits = vec![(false, false); 3];
    let ahead = report.ahead_of(&worse);
    assert!((ahead.difference - 2.0 / 3.0).abs() < 1e-12);
    assert!(ahead.low < ahead.difference && ahead.difference < ahead.high);
    std::fs::write(&gate, "[]").unwrap();
    assert!(matches!(Gate::read(&gate), Err(ReadGateError::Form { .. })));
}

#[test]
fn a_broken_line_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let queries = write(
        folder.path(),
        "q.jsonl",
        &[json!({"query": "x", "relevant": ["nobody:nothing"]})],
    );
    let error = LabelledSet::read(&tools(folder.path()), &queries).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("q.jsonl:1: no tool `nobody:nothing` in the catalog")
    );
    std::fs::write(&queries, "\n{").unwrap();
    let error = LabelledSet::read(&tools(folder.path()), &queries).unwrap_err();
    assert!(error.to_string().ends_with("q.jsonl:2: not JSON"));
}
