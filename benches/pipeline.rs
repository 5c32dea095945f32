//! What one search costs: `cargo bench --bench pipeline`.
//!
//! The catalog is `../shared/catalogs/merged/catalog.jsonl` (3,461 tools) where it is there, else
//! as many made-up tools. With `TOOLCRIB_BENCH_MODEL` (a folder with `model.onnx` and its
//! tokenizer) and `TOOLCRIB_BENCH_RUNTIME` (the ONNX Runtime library) the model is measured too;
//! without them the keyword side alone.

#![expect(clippy::unwrap_used, reason = "a bench that cannot be set up may stop")]

mod common;

use std::path::Path;
use std::sync::Arc;

use criterion::Criterion;
use rand::SeedableRng;
use rand::rngs::StdRng;
use secrecy::SecretString;
use tokio::runtime::{Builder, Runtime};

use toolcrib::domain::{
    Catalog, Definition, Input, Query, ReadSettingError, RunId, SettingName, Settings, Tenant,
    TenantId, Tool,
};
use toolcrib::handles::Handles;
use toolcrib::search::{Embedder, Index, Ranking, Searcher, VectorCache};

/// Queries that are asked in turn.
const QUERIES: [&str; 5] = [
    "post a message to a Slack channel",
    "create a new issue in a GitHub repository",
    "search the web for recent information",
    "convert 100 euros to dollars",
    "who has been breaking the build",
];

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    mint_and_take(&mut criterion);
    let catalog = common::catalog();
    let embedder = common::model_files().map(|files| Embedder::load(&files, 1).unwrap());
    let index = build(&runtime, catalog, embedder.as_ref());
    let handles = Arc::new(Handles::new(usize::MAX));
    let searcher = Searcher::new(
        embedder.clone(),
        handles.clone(),
        Arc::new(NothingSet),
        Ranking::default(),
    );
    searcher.publish(Arc::new(index));
    let tenant = Tenant::local();
    let queries: Vec<Query> = QUERIES.iter().map(|text| text.parse().unwrap()).collect();

    let mut turn = 0;
    criterion.bench_function("search without the model", |bench| {
        bench.iter(|| {
            turn += 1;
            let query = &queries[turn % queries.len()];
            let answer = runtime.block_on(searcher.search(&tenant, query)).unwrap();
            handles.take(&tenant.id, &answer.handle).unwrap()
        });
    });
    let Some(embedder) = embedder else {
        return criterion.final_summary();
    };
    // A number at the end makes each text new, so that no vector comes from the cache.
    let fresh = |turn: &mut usize| {
        *turn += 1;
        format!("{} {turn}", QUERIES[*turn % QUERIES.len()])
    };
    criterion.bench_function("embed one query", |bench| {
        bench.iter(|| {
            runtime
                .block_on(embedder.embed_query(&fresh(&mut turn)))
                .unwrap()
        });
    });
    criterion.bench_function("search with the model", |bench| {
        bench.iter(|| {
            let query = fresh(&mut turn).parse().unwrap();
            let answer = runtime.block_on(searcher.search(&tenant, &query)).unwrap();
            handles.take(&tenant.id, &answer.handle).unwrap()
        });
    });
    criterion.final_summary();
}

fn mint_and_take(criterion: &mut Criterion) {
    let handles = Handles::new(usize::MAX);
    let tenant = Tenant::local();
    let mut random = StdRng::seed_from_u64(1);
    let tool = Tool::new(Definition::new(
        "post".parse().unwrap(),
        "",
        Input::from_arguments(vec![]),
    ));
    let tools = vec![("slack/post".parse().unwrap(), tool.hash()); 3];
    criterion.bench_function("mint and take", |bench| {
        bench.iter(|| {
            let run_id = RunId::generate(&mut random);
            let handle = handles
                .mint(&tenant.id, run_id, tools.clone(), &mut random)
                .unwrap();
            handles.take(&tenant.id, &handle).unwrap()
        });
    });
}

fn build(runtime: &Runtime, catalog: Arc<Catalog>, embedder: Option<&Embedder>) -> Index {
    let index = Index::keyword_only(catalog, &Ranking::default());
    let Some(embedder) = embedder else {
        return index;
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-vectors");
    let cache = VectorCache::open(&folder).unwrap();
    let ranking = Ranking::default();
    let built = index.with_vectors(&ranking, embedder, &cache, &|_, _| {});
    runtime.block_on(built).unwrap()
}

/// A tenant that has set nothing.
struct NothingSet;

impl Settings for NothingSet {
    fn secret(
        &self,
        _: &TenantId,
        _: &SettingName,
    ) -> Result<Option<SecretString>, ReadSettingError> {
        Ok(None)
    }

    fn has_secret(&self, _: &TenantId, _: &SettingName) -> bool {
        false
    }

    fn config(&self, _: &TenantId, _: &SettingName) -> Option<String> {
        None
    }
}
