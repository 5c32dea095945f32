//! The nearest-50 step at sizes: `cargo bench --bench scale -- 3461 11287 100000 1000000`.
//!
//! The vectors are made up, clustered, and the same each time. The graph is built up to 11,287
//! tools, beyond which it takes minutes; a million take 3 GB.

#![expect(clippy::print_stdout, reason = "the table is what it is for")]

use toolcrib::search::{Ranking, Way, measure};

/// Largest size that the graph is built at.
const GRAPH_MAX: usize = 11_287;

fn main() {
    let sizes: Vec<usize> = std::env::args()
        .filter_map(|size| size.parse().ok())
        .collect();
    println!("| vectors | engine | build | recall@50 | p50 | p99 |");
    println!("|---|---|---|---|---|---|");
    for tools in sizes {
        for way in [Way::Scan, Way::Graph, Way::Codes] {
            if way == Way::Graph && GRAPH_MAX < tools {
                continue;
            }
            let Some(scale) = measure(tools, 1, way, &Ranking::default()) else {
                continue;
            };
            println!(
                "| {tools} | {way:?} | {:.2} s | {:.4} | {:.2} ms | {:.2} ms |",
                scale.build.as_secs_f64(),
                scale.recall_50,
                scale.p50.as_secs_f64() * 1_000.0,
                scale.p99.as_secs_f64() * 1_000.0,
            );
        }
    }
}
