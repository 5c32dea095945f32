//! The fuzzy search over 3,461 tools: `cargo bench --bench fuzzy`.
//!
//! The catalog is `../shared/catalogs/merged/catalog.jsonl` where it is there; else names and
//! descriptions are made up of the words of a fixed list, in the lengths that published tools have,
//! and are the same each time.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use criterion::Criterion;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use toolcrib::registry::{ToolMetadata, ToolSpec, rank};

const TOOLS: usize = 3_461;
const WORDS: [&str; 40] = [
    "create",
    "list",
    "update",
    "delete",
    "get",
    "search",
    "message",
    "channel",
    "issue",
    "pull",
    "request",
    "branch",
    "file",
    "folder",
    "user",
    "team",
    "invoice",
    "payment",
    "customer",
    "order",
    "weather",
    "forecast",
    "calendar",
    "event",
    "email",
    "thread",
    "page",
    "comment",
    "database",
    "query",
    "table",
    "row",
    "metric",
    "dashboard",
    "alert",
    "image",
    "video",
    "document",
    "report",
    "workflow",
];

fn words(rng: &mut StdRng, count: usize, between: &str) -> String {
    let words: Vec<&str> = (0..count)
        .filter_map(|_| WORDS.choose(rng).copied())
        .collect();
    words.join(between)
}

fn published() -> Option<Vec<Arc<ToolMetadata>>> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/catalogs/merged/catalog.jsonl");
    let text = std::fs::read_to_string(path).ok()?;
    let servers = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let tools = servers.flat_map(|server| {
        let name = server["name"].as_str().unwrap_or_default().to_owned();
        let tools = server["tools"].as_array().cloned().unwrap_or_default();
        tools.into_iter().filter_map(move |tool| {
            let own = tool["name"].as_str()?;
            let text = tool["description"].as_str().unwrap_or_default();
            let spec = ToolSpec::new(&format!("{name}__{own}"), text).ok()?;
            Some(Arc::new(spec.keywords([name.as_str(), own]).into()))
        })
    });
    Some(tools.collect())
}

fn made_up() -> Vec<Arc<ToolMetadata>> {
    let mut rng = StdRng::seed_from_u64(1);
    (0..TOOLS)
        .filter_map(|n| {
            let parts = rng.random_range(2..5);
            let name = format!("{}_{n}", words(&mut rng, parts, "_"));
            let length = rng.random_range(8..60);
            let text = words(&mut rng, length, " ");
            let spec = ToolSpec::new(&name, &text).ok()?;
            let keywords = [words(&mut rng, 1, ""), words(&mut rng, 1, "")];
            Some(Arc::new(spec.keywords(keywords).into()))
        })
        .collect()
}

fn fuzzy(c: &mut Criterion) {
    let tools = published().unwrap_or_else(made_up);
    let tools: Vec<&ToolMetadata> = tools.iter().map(AsRef::as_ref).collect();
    for (name, query) in [
        ("one word", "invoice"),
        ("three words", "create pull request"),
        (
            "a sentence",
            "post a message to the team channel when an alert fires",
        ),
        (
            "a long sentence",
            "list all open issues in a github repository assigned to me and sorted by date of last update",
        ),
        ("misspelt", "serch custmer invoce"),
        ("unknown", "zymurgy"),
    ] {
        c.bench_function(&format!("fuzzy, {} tools, {name}", tools.len()), |bench| {
            bench.iter(|| rank(black_box(query), black_box(&tools)));
        });
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    fuzzy(&mut criterion);
    criterion.final_summary();
}
