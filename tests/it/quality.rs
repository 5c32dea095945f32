//! The search quality that a change may not fall below, on the labelled queries of machines that
//! have them; `docs/eval-gate.json` holds the figures.

use toolcrib::app::{Place, load_embedder};
use toolcrib::config::Environment;
use toolcrib::eval::{Gate, LabelledSet, Setup, ToolSource, run};
use toolcrib::search::VectorCache;

use crate::program::{Folder, has_model, root, shared};

async fn check(name: &str) {
    let queries = shared(&format!("eval/{name}.queries.jsonl"));
    let tools = shared(&format!("eval/{name}.tools.jsonl")).map(ToolSource::Tools);
    let source = tools.or_else(|| {
        let catalog = shared("catalogs/merged/catalog.jsonl");
        catalog.map(ToolSource::Catalog)
    });
    let (Some(queries), Some(source)) = (queries, source) else {
        println!("skipped {name}: no labelled queries here");
        return;
    };
    if !has_model(name) {
        return;
    }
    let folder = Folder::new();
    let mut env = Environment::default();
    env.home = Some(folder.path().to_owned());
    // The English model alone, whatever else is fetched on this machine.
    env.sections
        .insert("model.multilingual".to_owned(), String::new());
    let place = Place::find(None, env).unwrap();
    let (embedder, _) = load_embedder(&place).await.unwrap();
    let set = LabelledSet::read(&source, &queries).unwrap();
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
async fn catalog150_stays_as_good_as_it_was() {
    check("catalog150").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn azure_e2e_stays_as_good_as_it_was() {
    check("azure_e2e").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mongodb_accuracy_stays_as_good_as_it_was() {
    check("mongodb_accuracy").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn livemcpbench_tasks_stays_as_good_as_it_was() {
    check("livemcpbench_tasks").await;
}
