//! What several benches start from.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib::domain::{Catalog, Definition, Input, Server, Tool};
use toolcrib::eval::{LabelledSet, ToolSource};
use toolcrib::search::{ModelFiles, Pooling};

/// Tools of the made-up catalog.
const TOOLS: usize = 3_461;

/// The catalog of 3,461 tools, or as many made-up ones.
pub(crate) fn catalog() -> Arc<Catalog> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let file = shared.join("catalogs/merged/catalog.jsonl");
    let queries = shared.join("eval/catalog150.queries.jsonl");
    if file.exists() {
        let set = LabelledSet::read(&ToolSource::Catalog(file), &queries);
        return set.unwrap().catalog;
    }
    let verbs = [
        "create", "list", "delete", "search", "update", "send", "read",
    ];
    let nouns = [
        "issue", "message", "file", "table", "page", "event", "image",
    ];
    let tool = |n: usize| {
        let (verb, noun) = (verbs[n % 7], nouns[n / 7 % 7]);
        Tool::new(Definition::new(
            format!("{verb}_{noun}_{n}").parse().unwrap(),
            format!("Can {verb} the {noun} of project {n}"),
            Input::from_arguments(vec![]),
        ))
    };
    let servers = (0..TOOLS).step_by(10).map(|first| {
        let tools = (first..TOOLS.min(first + 10)).map(tool).collect();
        Arc::new(Server::new(
            format!("server-{first}").parse().unwrap(),
            tools,
        ))
    });
    Arc::new(Catalog::new(servers).unwrap())
}

#[expect(clippy::disallowed_methods, reason = "a bench has no configuration")]
/// The files of the model to measure, where the environment names one.
pub(crate) fn model_files() -> Option<ModelFiles> {
    let folder = PathBuf::from(std::env::var("TOOLCRIB_BENCH_MODEL").ok()?);
    Some(ModelFiles {
        id: "bench".into(),
        runtime: std::env::var("TOOLCRIB_BENCH_RUNTIME").ok()?.into(),
        onnx: folder.join("model.onnx"),
        tokenizer: folder.join("tokenizer.json"),
        config: folder.join("config.json"),
        tokenizer_config: folder.join("tokenizer_config.json"),
        special_tokens_map: folder.join("special_tokens_map.json"),
        pooling: Pooling::Mean,
        query_prefix: String::new(),
        passage_prefix: String::new(),
        tokens_max: 256,
    })
}
