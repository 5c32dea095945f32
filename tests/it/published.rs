//! The refresh job against what others publish, in their formats, from a local web server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use toolcrib::catalog::import::Format;
use toolcrib::catalog::pins::Policy;
use toolcrib::catalog::refresh::{
    FetchOptions, Origin, RefreshJob, RefreshOptions, Source, SourceOutcome,
};
use toolcrib::catalog::snapshot::SnapshotFile;
use toolcrib::domain::Catalog;

use crate::refresh::{Recorder, listen};

/// A web server of documents by path and query, each with its text as `ETag`.
#[derive(Default)]
struct Web {
    documents: Mutex<HashMap<String, String>>,
    answers: Mutex<Vec<(String, StatusCode)>>,
}

impl Web {
    fn put(&self, path: &str, text: String) {
        self.documents.lock().unwrap().insert(path.to_owned(), text);
    }

    /// The statuses of the answers since the last call.
    fn answered(&self) -> Vec<(String, u16)> {
        let answers = std::mem::take(&mut *self.answers.lock().unwrap());
        let mut answers: Vec<_> = answers
            .into_iter()
            .map(|(path, status)| (path, status.as_u16()))
            .collect();
        answers.sort();
        answers
    }
}

async fn answer(State(web): State<Arc<Web>>, uri: Uri, headers: HeaderMap) -> Response {
    let path = uri.path_and_query().unwrap().to_string();
    let text = web.documents.lock().unwrap().get(&path).cloned();
    let Some(text) = text else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let tag = format!("\"{:x}\"", text.len() * 31 + text.matches('2').count());
    let known = headers.get(header::IF_NONE_MATCH);
    let same = known.is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let (status, text) = match same {
        true => (StatusCode::NOT_MODIFIED, String::new()),
        false => (StatusCode::OK, text),
    };
    web.answers.lock().unwrap().push((path, status));
    (status, [(header::ETAG, tag)], text).into_response()
}

struct Setup {
    web: Arc<Web>,
    origin: String,
    recorder: Recorder,
    job: RefreshJob,
    options: RefreshOptions,
    folder: tempfile::TempDir,
}

impl Setup {
    async fn new(sources: &[(&str, Format, &str)]) -> Self {
        let web: Arc<Web> = Arc::default();
        let router = axum::Router::new().fallback(answer).with_state(web.clone());
        let origin = listen(router).await;
        let source = |(name, format, path): &(&str, Format, &str)| Source {
            name: (*name).into(),
            format: *format,
            origin: Origin::of_url(&format!("{origin}{path}"), true).unwrap(),
            policy: Policy::Trust,
            lists_from: Vec::new(),
        };
        let folder = tempfile::tempdir().unwrap();
        let options = RefreshOptions {
            sources: sources.iter().map(source).collect(),
            fetch: FetchOptions {
                attempts: 1,
                attempt_max: Duration::from_secs(5),
                ..FetchOptions::default()
            },
            ..RefreshOptions::default()
        };
        let file = SnapshotFile::new(folder.path().join("catalog.snapshot"));
        Self {
            web,
            origin,
            recorder: Recorder::default(),
            job: RefreshJob::new(options.clone(), file, Arc::default()),
            options,
            folder,
        }
    }

    /// As a restart with another policy of the first source.
    fn policy(&mut self, policy: Policy) {
        self.options.sources[0].policy = policy;
        let file = SnapshotFile::new(self.folder.path().join("catalog.snapshot"));
        self.job = RefreshJob::new(self.options.clone(), file, Arc::default());
    }

    fn servers(&self) -> Vec<String> {
        let last = self.recorder.last();
        let servers = last.servers().iter();
        servers.map(|server| server.name.to_string()).collect()
    }

    /// Of the first tool.
    fn description(&self) -> String {
        let last = self.recorder.last();
        let first = last.slots().next().unwrap();
        last.tool(first).description().to_owned()
    }

    async fn round(&mut self) -> Vec<SourceOutcome> {
        let own = Catalog::default();
        let report = self.job.run(&own, vec![], &self.recorder).await.unwrap();
        report.sources.into_iter().map(|s| s.outcome).collect()
    }
}

fn docker_catalog() -> String {
    let path = crate::program::root().join("tests/data/import/docker-catalog.yaml");
    std::fs::read_to_string(path).unwrap()
}

/// A page of a registry with one server.
fn page(name: &str, version: u32, next: Option<&str>) -> String {
    let server = json!({
        "name": format!("io.example/{name}"), "description": format!("Version {version} of {name}."),
        "version": format!("{version}.0.0"),
        "remotes": [{"type": "streamable-http", "url": format!("https://{name}.example/mcp")}],
    });
    json!({"servers": [{"server": server}], "metadata": {"nextCursor": next, "count": 1}})
        .to_string()
}

#[tokio::test]
async fn a_docker_catalog_and_a_registry_in_pages_are_taken_once() {
    let sources = [
        ("docker", Format::Docker, "/catalog.yaml"),
        ("registry", Format::OfficialRegistry, "/v0/servers?limit=1"),
    ];
    let mut setup = Setup::new(&sources).await;
    let (first, second) = ("/v0/servers?limit=1", "/v0/servers?limit=1&cursor=b");
    setup.web.put("/catalog.yaml", docker_catalog());
    setup.web.put(first, page("alpha", 1, Some("b")));
    setup.web.put(second, page("beta", 1, None));
    setup.round().await;
    let servers = setup.servers();
    for name in ["harbour-chat", "parcels"] {
        assert!(servers.iter().any(|server| server == name), "{servers:?}");
    }
    for name in ["alpha", "beta"] {
        assert!(
            servers.iter().any(|server| server.contains(name)),
            "{servers:?}"
        );
    }
    setup.web.answered();

    // Nothing has changed: every document is asked for, none is sent, and nothing is done.
    let outcomes = setup.round().await;
    assert_eq!(
        outcomes,
        [SourceOutcome::Unchanged, SourceOutcome::Unchanged]
    );
    assert_eq!(setup.recorder.times(), 1);
    let answers = setup.web.answered();
    assert!(
        answers.iter().any(|(path, _)| path == second),
        "{answers:?}"
    );
    assert!(
        answers.iter().all(|(_, status)| *status == 304),
        "{answers:?}"
    );

    // A change on the second page is seen though the first is as it was.
    setup.web.put(second, page("gamma2", 2, None));
    let outcomes = setup.round().await;
    assert_eq!(outcomes[0], SourceOutcome::Unchanged);
    let servers = setup.servers();
    assert!(
        servers.iter().any(|server| server.contains("gamma2")),
        "{servers:?}"
    );
    assert!(
        servers.iter().all(|server| !server.contains("beta")),
        "{servers:?}"
    );
}

/// A page of a registry that says when its entries changed: name, version, second, whether deleted.
fn dated(entries: &[(&str, u32, u32, bool)], next: Option<&str>) -> String {
    let entry = |(name, version, second, deleted): &(&str, u32, u32, bool)| {
        let status = if *deleted { "deleted" } else { "active" };
        json!({
            "server": {
                "name": format!("io.example/{name}"), "version": format!("{version}.0.0"),
                "description": format!("Version {version} of {name}."),
                "remotes": [{"type": "streamable-http", "url": format!("https://{name}.example/mcp")}],
            },
            "_meta": {"io.modelcontextprotocol.registry/official": {
                "status": status, "updatedAt": format!("2026-01-01T00:00:{second:02}.5Z"),
                "isLatest": true}},
        })
    };
    let entries: Vec<_> = entries.iter().map(entry).collect();
    json!({"servers": entries, "metadata": {"nextCursor": next, "count": 1}}).to_string()
}

/// Where what changed since a second is.
fn since(second: u32) -> String {
    format!("/v0/servers?limit=1&updated_since=2026-01-01T00%3A00%3A{second:02}Z")
}

#[tokio::test]
async fn a_registry_is_asked_for_what_changed_and_read_whole_on_demand() {
    let sources = [("registry", Format::OfficialRegistry, "/v0/servers?limit=1")];
    let mut setup = Setup::new(&sources).await;
    let (first, second) = ("/v0/servers?limit=1", "/v0/servers?limit=1&cursor=b");
    setup
        .web
        .put(first, dated(&[("alpha", 1, 1, false)], Some("b")));
    setup.web.put(
        second,
        dated(&[("beta", 1, 5, false), ("delta", 1, 3, false)], None),
    );
    setup.round().await;
    assert_eq!(setup.web.answered().len(), 2);

    // Nothing changed: one request, and nothing is written.
    setup
        .web
        .put(&since(5), dated(&[("beta", 1, 5, false)], None));
    let file = setup.folder.path().join("catalog.snapshot");
    let written = std::fs::read(&file).unwrap();
    assert_eq!(setup.round().await, [SourceOutcome::Unchanged]);
    assert_eq!(setup.web.answered(), [(since(5), 200)]);
    assert_eq!(std::fs::read(&file).unwrap(), written);
    assert_eq!(setup.recorder.times(), 1);

    // One is new, one changed, one is deleted; the rest is kept.
    let news = [
        ("gamma", 1, 7, false),
        ("alpha", 2, 8, false),
        ("delta", 1, 9, true),
    ];
    setup.web.put(&since(5), dated(&news, None));
    let outcomes = setup.round().await;
    assert!(
        matches!(outcomes[0], SourceOutcome::Read { .. }),
        "{outcomes:?}"
    );
    assert_eq!(setup.web.answered(), [(since(5), 200)]);
    let names = |setup: &Setup| {
        let mut names = setup.servers();
        names.sort();
        names
    };
    let all = ["io-example-alpha", "io-example-beta", "io-example-gamma"];
    assert_eq!(names(&setup), all);
    let last = setup.recorder.last();
    let alpha = last.server(&"io-example-alpha".parse().unwrap()).unwrap();
    assert_eq!(&*alpha.provenance.version, "2.0.0");

    // What is gone without a word is seen by a whole reading alone.
    setup
        .web
        .put(first, dated(&[("alpha", 2, 8, false)], Some("b")));
    setup
        .web
        .put(second, dated(&[("gamma", 1, 7, false)], None));
    setup.web.put(&since(9), dated(&[], None));
    assert_eq!(setup.round().await, [SourceOutcome::Unchanged]);
    assert_eq!(setup.web.answered(), [(since(9), 200)]);
    setup.job.read_whole_next();
    setup.round().await;
    assert_eq!(setup.web.answered().len(), 2);
    assert_eq!(names(&setup), ["io-example-alpha", "io-example-gamma"]);

    // A registry that does not know the question is read whole.
    assert_eq!(setup.round().await, [SourceOutcome::Unchanged]);
    let answers = setup.web.answered();
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert!(
        answers.iter().all(|(_, status)| *status == 304),
        "{answers:?}"
    );
}

#[tokio::test]
async fn a_registry_is_read_whole_when_its_time_has_come() {
    let sources = [("registry", Format::OfficialRegistry, "/v0/servers?limit=1")];
    let mut setup = Setup::new(&sources).await;
    setup.options.whole_after = Duration::ZERO;
    setup.policy(Policy::Trust);
    let first = "/v0/servers?limit=1";
    setup.web.put(first, dated(&[("alpha", 1, 1, false)], None));
    setup
        .web
        .put(&since(1), dated(&[("beta", 1, 2, false)], None));
    setup.round().await;
    setup.round().await;
    let whole = |status| (first.to_owned(), status);
    assert_eq!(setup.web.answered(), [whole(200), whole(304)]);
    assert_eq!(setup.servers(), ["io-example-alpha"]);
}

#[tokio::test]
async fn what_waits_goes_on_waiting_while_only_changes_are_read() {
    let sources = [("registry", Format::OfficialRegistry, "/v0/servers?limit=1")];
    let mut setup = Setup::new(&sources).await;
    setup.policy(Policy::Quarantine);
    let two = [("alpha", 1, 1, false), ("beta", 1, 2, false)];
    setup.web.put("/v0/servers?limit=1", dated(&two, None));
    setup
        .web
        .put(&since(2), dated(&[("beta", 2, 3, false)], None));
    setup.round().await;
    setup.round().await;
    let file = SnapshotFile::new(setup.folder.path().join("catalog.snapshot"));
    let snapshot = file.load();
    let held = &snapshot.sources[0].held;
    let versions: Vec<&str> = held
        .values()
        .map(|held| &*held.head.as_ref().unwrap().provenance.version)
        .collect();
    assert_eq!(versions, ["1.0.0", "2.0.0"]);
    assert_eq!(setup.recorder.times(), 0);
}

#[tokio::test]
async fn a_yaml_bomb_in_a_docker_catalog_is_refused_and_the_tools_stay() {
    let sources = [("docker", Format::Docker, "/catalog.yaml")];
    let mut setup = Setup::new(&sources).await;
    setup.web.put("/catalog.yaml", docker_catalog());
    setup.round().await;
    let row = |of: usize| vec![format!("*a{of}"); 9].join(", ");
    let level = |level: usize| format!("a{level}: &a{level} [{}]\n", row(level - 1));
    let levels = (1..20).map(level).collect::<Vec<_>>().concat();
    let bomb = format!(
        "version: 3\na0: &a0 [x, x, x]\n{levels}registry:\n  s:\n    title: *a19\n    type: server\n"
    );
    setup.web.put("/catalog.yaml", bomb);
    let outcomes = setup.round().await;
    let SourceOutcome::Failed { reason } = &outcomes[0] else {
        panic!("{outcomes:?}");
    };
    assert!(reason.contains("budget breached: Aliases"), "{reason}");
    assert_eq!(setup.recorder.times(), 1);
    assert!(setup.servers().contains(&"parcels".to_owned()));
}

#[tokio::test]
async fn a_source_is_judged_again_when_its_policy_changes() {
    let sources = [("registry", Format::OfficialRegistry, "/v0/servers")];
    let mut setup = Setup::new(&sources).await;
    setup.web.put("/v0/servers", page("alpha", 1, None));
    setup.policy(Policy::Quarantine);
    setup.round().await;
    assert_eq!(setup.recorder.times(), 0, "everything waits");
    setup.policy(Policy::Trust);
    setup.round().await;
    assert!(setup.servers()[0].contains("alpha"));
    assert_eq!(setup.round().await, [SourceOutcome::Unchanged]);
}

#[tokio::test]
async fn a_list_of_tools_that_fails_is_asked_for_again_and_never_lost() {
    let sources = [("docker", Format::Docker, "/catalog.yaml")];
    let mut setup = Setup::new(&sources).await;
    let catalog = format!(
        "version: 3\nregistry:\n  parcels:\n    title: Parcels\n    type: server\n    image: \
         parcels:1\n    toolsUrl: {}/tools.json\n    tools:\n      - name: track\n",
        setup.origin
    );
    let list = r#"[{"name": "track", "description": "Where it is.", "arguments": []}]"#;
    setup.web.put("/catalog.yaml", catalog);
    setup.round().await;
    assert_eq!(setup.description(), "");
    // The catalog is as it was, and still the list is asked for.
    setup.web.put("/tools.json", list.to_owned());
    setup.round().await;
    assert_eq!(setup.description(), "Where it is.");
    assert_eq!(setup.round().await, [SourceOutcome::Unchanged]);
    // A list that was there and fails leaves everything as it is.
    setup.web.documents.lock().unwrap().remove("/tools.json");
    let outcomes = setup.round().await;
    assert!(
        matches!(outcomes[0], SourceOutcome::Failed { .. }),
        "{outcomes:?}"
    );
    assert_eq!(setup.description(), "Where it is.");
}
