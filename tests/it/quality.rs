//! The search quality that a change may not fall below, on the labelled queries of machines that
//! have them; `docs/eval-gate.json` holds the figures. Two sets that an unoptimized build measures in
//! seconds; `make eval` holds all of them to the gate.

use toolcrib::app::{Place, load_embedder};
use toolcrib::config::Environment;
use toolcrib::eval::{Gate, LabelledSet, Setup, ToolSource, run};
use toolcrib::search::VectorCache;

use crate::program::{Folder, has_model, root, shared};

async fn check(name: &str) {
    let queries = shared(&format!("eval/{name}.queries.jsonl"));
    let tools = shared(&format!("eval/{name}.tools.jsonl"));
    let (Some(queries), Some(tools)) = (queries, tools) else {
        println!("skipped {name}: no labelled queries here");
        return;
    };
    if !has_model(name) {
        return;
    }
    let folder = Folder::new();
    let home = Some(folder.path().to_owned());
    let mut env = Environment {
        home,
        ..Environment::default()
    };
    // The English model alone, whatever else is fetched on this machine.
    env.sections
        .insert("model.multilingual".to_owned(), String::new());
    let place = Place::find(None, env).unwrap();
    let (embedder, _) = load_embedder(&place).await.unwrap();
    let set = LabelledSet::read(&ToolSource::Tools(tools), &queries).unwrap();
    let setup = Setup {
        embedder: embedder.as_ref(),
        cache: &VectorCache::open(&place.home.cache()).unwrap(),
        ranking: &place.ranking(),
        progress: &|_, _| (),
    };
    let report = run(&set, &setup).await.unwrap();
    let gate = Gate::read(&root().join("docs/eval-gate.json")).unwrap();
    assert_eq!(gate.faults(&report), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn azure_e2e_stays_as_good_as_it_was() {
    check("azure_e2e").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mongodb_accuracy_stays_as_good_as_it_was() {
    check("mongodb_accuracy").await;
}
