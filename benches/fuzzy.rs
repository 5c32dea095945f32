//! The fuzzy search over 3,461 tools: `cargo bench --bench fuzzy`.
//!
//! Names and descriptions are made up of the words of a fixed list, in the lengths that published
//! tools have, and are the same each time.

use std::hint::black_box;
use std::sync::Arc;

use criterion::Criterion;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
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

fn tools() -> Vec<Arc<ToolMetadata>> {
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
    let tools = tools();
    let tools: Vec<&ToolMetadata> = tools.iter().map(AsRef::as_ref).collect();
    for (name, query) in [
        ("one word", "invoice"),
        ("three words", "create pull request"),
        (
            "a sentence",
            "post a message to the team channel when an alert fires",
        ),
        ("misspelt", "serch custmer invoce"),
        ("unknown", "zymurgy"),
    ] {
        c.bench_function(&format!("fuzzy, 3461 tools, {name}"), |bench| {
            bench.iter(|| rank(black_box(query), black_box(&tools)));
        });
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    fuzzy(&mut criterion);
    criterion.final_summary();
}
