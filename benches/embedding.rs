//! A cold catalog against the bare model: `cargo bench --bench embedding`.
//!
//! `TOOLCRIB_BENCH_MODEL` is a folder with `model.onnx` and its tokenizer, `TOOLCRIB_BENCH_RUNTIME`
//! the ONNX Runtime library; without them nothing is measured. The catalog is
//! `../shared/catalogs/merged/catalog.jsonl` (3,461 tools) where it is there, else made up.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot be set up may stop")]

mod common;

use tokio::runtime::Builder;
use toolcrib::search::measure_embedding;

/// Threads of either side.
const THREADS: usize = 2;

fn main() {
    let Some(files) = common::model_files() else {
        println!(
            "nothing is measured: TOOLCRIB_BENCH_MODEL and TOOLCRIB_BENCH_RUNTIME are not set"
        );
        return;
    };
    let runtime = Builder::new_multi_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let catalog = common::catalog();
    let measured = measure_embedding(&catalog, &files, THREADS, folder.path());
    let cost = runtime.block_on(measured).unwrap();
    let (build, bare) = (cost.build.as_secs_f64(), cost.bare.as_secs_f64());
    println!(
        "{} tools, {} texts on {THREADS} threads: {build:.1} s, {:.2} times the bare model's {bare:.1} s",
        cost.tools,
        cost.texts,
        build / bare,
    );
}
