//! The refresh job against a local web server that does what the worst of them do.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use toolcrib::catalog::import::Format;
use toolcrib::catalog::pins::Policy;
use toolcrib::catalog::refresh::{
    FetchOptions, Origin, Publish, RefreshJob, RefreshOptions, RefreshReport, Source, SourceOutcome,
};
use toolcrib::catalog::snapshot::SnapshotFile;
use toolcrib::domain::Catalog;

/// Largest document that the tests let through, in bytes.
const BYTES_MAX: u64 = 8 * 1024 * 1024;

/// What the web server answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mode {
    /// Two tools, with an `ETag`.
    Good,
    /// The same behind a redirect within the server.
    RedirectWithin,
    ServerError,
    /// The first half of what was announced, then the end of the connection.
    HalfABody,
    /// Five gigabytes of zeros, announced or not.
    Huge,
    HugeAnnounced,
    /// Ten thousand arrays, each in the other.
    Nested,
    /// A document that doubles when its references are followed.
    YamlBomb,
    /// To a server with good tools, which is another.
    RedirectAway,
    /// An answer that does not come.
    Silent,
    /// A good document without a server.
    Empty,
    /// Bytes that are no text.
    NotText,
}

struct Web {
    mode: Mutex<Mode>,
    requests: AtomicUsize,
    not_modified: AtomicUsize,
    sent: Arc<AtomicU64>,
    away: String,
    away_asked: Arc<AtomicBool>,
}

const GOOD: &str = concat!(
    r#"{"name": "notes", "title": "Notes", "description": "Notes.", "tools": ["#,
    r#"{"name": "read_note", "description": "Reads a note.", "arguments": []}, "#,
    r#"{"name": "list_notes", "description": "Lists notes.", "arguments": []}]}"#,
    "\n"
);

async fn answer(State(web): State<Arc<Web>>, uri: Uri, headers: HeaderMap) -> Response {
    web.requests.fetch_add(1, Ordering::SeqCst);
    let mode = *web.mode.lock().unwrap();
    let zeros = |web: &Web| {
        let sent = web.sent.clone();
        let chunk = Bytes::from(vec![b'0'; 1024 * 1024]);
        let chunks = (0..5 * 1024).map(move |_| {
            sent.fetch_add(1024 * 1024, Ordering::SeqCst);
            Ok::<_, std::io::Error>(chunk.clone())
        });
        Body::from_stream(futures::stream::iter(chunks))
    };
    match mode {
        Mode::RedirectWithin if uri.path() != "/moved" => {
            (StatusCode::FOUND, [(header::LOCATION, "/moved")]).into_response()
        }
        Mode::Good | Mode::RedirectWithin => {
            if headers
                .get(header::IF_NONE_MATCH)
                .is_some_and(|tag| tag == "\"1\"")
            {
                web.not_modified.fetch_add(1, Ordering::SeqCst);
                return StatusCode::NOT_MODIFIED.into_response();
            }
            ([(header::ETAG, "\"1\"")], GOOD).into_response()
        }
        Mode::ServerError => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Mode::HalfABody => {
            let half = Bytes::from_static(&GOOD.as_bytes()[..GOOD.len() / 2]);
            let parts = futures::stream::iter([Ok(half), Err(std::io::Error::other("gone"))]);
            Body::from_stream(parts).into_response()
        }
        Mode::Huge => zeros(&web).into_response(),
        Mode::HugeAnnounced => {
            let length = [(header::CONTENT_LENGTH, (5_u64 << 30).to_string())];
            (length, zeros(&web)).into_response()
        }
        Mode::Nested => ("[".repeat(10_000) + &"]".repeat(10_000)).into_response(),
        Mode::YamlBomb => {
            let level = |level: usize| {
                let row = vec![format!("*a{}", level - 1); 9].join(", ");
                format!("a{level}: &a{level} [{row}]\n")
            };
            let levels: String = (1..20).map(level).collect();
            ("a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned() + &levels).into_response()
        }
        Mode::RedirectAway => {
            (StatusCode::FOUND, [(header::LOCATION, web.away.clone())]).into_response()
        }
        Mode::Silent => std::future::pending().await,
        Mode::Empty => "\n\n".into_response(),
        Mode::NotText => vec![0xff_u8, 0xfe, 0x00].into_response(),
    }
}

/// Serves on loopback and says where.
pub(crate) async fn listen(router: axum::Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

async fn web() -> (Arc<Web>, String) {
    let asked = Arc::new(AtomicBool::new(false));
    let inside = asked.clone();
    let away = axum::Router::new().fallback(move || {
        inside.store(true, Ordering::SeqCst);
        async { GOOD }
    });
    let web = Arc::new(Web {
        mode: Mutex::new(Mode::Good),
        requests: AtomicUsize::new(0),
        not_modified: AtomicUsize::new(0),
        sent: Arc::default(),
        away: listen(away).await,
        away_asked: asked,
    });
    let router = axum::Router::new().fallback(answer).with_state(web.clone());
    let url = listen(router).await + "/catalog.jsonl";
    (web, url)
}

/// Keeps what is published.
#[derive(Default)]
pub(crate) struct Recorder(Mutex<Vec<Arc<Catalog>>>);

impl Publish for Recorder {
    async fn publish(&self, catalog: Arc<Catalog>) {
        self.0.lock().unwrap().push(catalog);
    }
}

impl Recorder {
    /// What was published last.
    pub(crate) fn last(&self) -> Arc<Catalog> {
        self.0.lock().unwrap().last().unwrap().clone()
    }

    fn ids(&self) -> Vec<String> {
        let last = self.last();
        last.slots().map(|slot| last.id(slot).to_string()).collect()
    }

    /// How often something was published.
    pub(crate) fn times(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

struct Setup {
    folder: tempfile::TempDir,
    job: RefreshJob,
    recorder: Recorder,
}

impl Setup {
    fn new(origin: Origin, policy: Policy) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = RefreshOptions {
            sources: vec![Source {
                name: "team".into(),
                format: Format::NormalForm,
                origin,
                policy,
                lists_from: Vec::new(),
            }],
            fetch: FetchOptions {
                bytes_max: BYTES_MAX,
                attempt_max: Duration::from_secs(2),
                attempts: 2,
                back_off: Duration::from_millis(10),
                ..FetchOptions::default()
            },
            ..RefreshOptions::default()
        };
        let file = SnapshotFile::new(folder.path().join("catalog.snapshot"));
        Self {
            job: RefreshJob::new(options, file, Arc::default()),
            recorder: Recorder::default(),
            folder,
        }
    }

    fn of_url(url: &str) -> Self {
        Self::new(Origin::of_url(url, true).unwrap(), Policy::Pin)
    }

    async fn round(&mut self) -> RefreshReport {
        let own = Catalog::default();
        self.job.run(&own, vec![], &self.recorder).await.unwrap()
    }

    fn snapshot(&self) -> SnapshotFile {
        SnapshotFile::new(self.folder.path().join("catalog.snapshot"))
    }
}

#[tokio::test]
async fn a_second_round_is_answered_304_and_does_no_work() {
    let (web, url) = web().await;
    let mut setup = Setup::of_url(&url);
    let first = setup.round().await;
    assert_eq!(
        setup.recorder.ids(),
        ["notes/list_notes", "notes/read_note"]
    );
    assert_eq!(first.changes.len(), 3);
    let snapshot = setup.folder.path().join("catalog.snapshot");
    let written = std::fs::metadata(&snapshot).unwrap().modified().unwrap();
    let second = setup.round().await;
    assert_eq!(web.not_modified.load(Ordering::SeqCst), 1);
    assert_eq!(second.sources[0].outcome, SourceOutcome::Unchanged);
    assert!(!second.published && second.changes.is_empty());
    assert_eq!(setup.recorder.times(), 1);
    let still = std::fs::metadata(&snapshot).unwrap().modified().unwrap();
    assert_eq!(written, still, "nothing is written");
}

#[tokio::test]
async fn a_redirect_within_the_server_is_followed() {
    let (web, url) = web().await;
    *web.mode.lock().unwrap() = Mode::RedirectWithin;
    let mut setup = Setup::of_url(&url);
    setup.round().await;
    assert_eq!(setup.recorder.ids().len(), 2);
}

/// What one bad answer leads to: the source fails for this reason in bounded time, and its last
/// good tools stay.
async fn check(mode: Mode, reason: &str) -> Arc<Web> {
    let (web, url) = web().await;
    let mut setup = Setup::of_url(&url);
    setup.round().await;
    *web.mode.lock().unwrap() = mode;
    let start = Instant::now();
    let report = setup.round().await;
    assert!(start.elapsed() < Duration::from_secs(10), "{mode:?}");
    let SourceOutcome::Failed { reason: said } = &report.sources[0].outcome else {
        panic!("{mode:?}: {report:?}");
    };
    assert!(said.contains(reason), "{mode:?}: {said}");
    assert_eq!(report.sources[0].tools, 2, "{mode:?}");
    assert_eq!(setup.recorder.times(), 1, "{mode:?}");
    assert_eq!(setup.snapshot().load().sources[0].tools(), 2, "{mode:?}");
    // And the next good answer is taken again.
    *web.mode.lock().unwrap() = Mode::Good;
    assert_eq!(setup.round().await.failed(), 0, "{mode:?}");
    web
}

#[tokio::test]
async fn what_passes_is_tried_again_and_then_given_up() {
    let web = check(Mode::ServerError, "500 Internal Server Error").await;
    assert_eq!(web.requests.load(Ordering::SeqCst), 1 + 2 + 1);
    check(Mode::Silent, "no whole answer within 2s").await;
}

#[tokio::test]
async fn half_a_body_is_no_catalog() {
    check(Mode::HalfABody, "cannot fetch the document").await;
}

#[tokio::test]
async fn five_gigabytes_are_cut_off_at_the_limit() {
    let web = check(Mode::Huge, "over the limit of 8388608 bytes").await;
    let sent = web.sent.load(Ordering::SeqCst);
    assert!(sent < 8 * BYTES_MAX, "{sent} bytes were sent");
    let web = check(Mode::HugeAnnounced, "over the limit of 8388608 bytes").await;
    let sent = web.sent.load(Ordering::SeqCst);
    assert!(sent < 8 * BYTES_MAX, "{sent} bytes were sent");
}

#[tokio::test]
async fn nested_doubled_empty_and_binary_documents_are_no_catalogs() {
    check(Mode::Nested, "recursion limit exceeded").await;
    check(Mode::YamlBomb, "there is no server in it").await;
    check(Mode::Empty, "there is no server in it").await;
    check(Mode::NotText, "not UTF-8").await;
}

#[tokio::test]
async fn a_redirect_to_another_server_is_not_followed() {
    let web = check(Mode::RedirectAway, "a redirect to").await;
    assert!(!web.away_asked.load(Ordering::SeqCst));
}

/// A catalog file of so many servers with two tools each.
fn lines(servers: usize, generation: usize) -> String {
    let line = |server: usize| {
        let tool = |name: &str| {
            json!({"name": name, "description": format!("Does {name} in generation {generation}."),
                "arguments": [{"name": "path", "type": "string", "desc": "Path."}]})
        };
        let tools = [tool("read"), tool("write")];
        json!({"name": format!("s{server}"), "title": "S", "tools": tools}).to_string() + "\n"
    };
    (0..servers).map(line).collect()
}

#[tokio::test]
async fn a_damaged_file_that_lost_most_servers_is_doubted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.jsonl");
    let mut setup = Setup::new(Origin::Path(path.clone()), Policy::Trust);
    let whole = lines(20, 1);
    std::fs::write(&path, &whole).unwrap();
    setup.round().await;
    std::fs::write(&path, &whole.as_bytes()[..whole.len() / 3]).unwrap();
    let report = setup.round().await;
    assert_eq!((report.failed(), report.sources[0].tools), (1, 40));
    // Fewer servers without a fault are what the source wants.
    std::fs::write(&path, lines(5, 1)).unwrap();
    let report = setup.round().await;
    assert_eq!((report.failed(), report.sources[0].tools), (0, 10));
    std::fs::remove_file(&path).unwrap();
    let report = setup.round().await;
    assert_eq!((report.failed(), report.sources[0].tools), (1, 10));
}

#[tokio::test]
async fn what_changes_at_a_pinned_source_waits_and_the_approved_definition_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.jsonl");
    let mut setup = Setup::new(Origin::Path(path.clone()), Policy::Pin);
    std::fs::write(&path, lines(2, 1)).unwrap();
    setup.round().await;
    std::fs::write(&path, lines(3, 2)).unwrap();
    let report = setup.round().await;
    assert_eq!(report.waiting, 4);
    // The server that is new is taken at its first sight.
    assert_eq!(setup.recorder.ids().len(), 6);
    let catalog = setup.recorder.0.lock().unwrap().last().unwrap().clone();
    let slot = catalog.find(&"s0/read".parse().unwrap()).unwrap();
    let text = catalog.tool(slot).description();
    assert_eq!(text, "Does read in generation 1.");
    // A source that goes back has nothing left that waits.
    std::fs::write(&path, lines(2, 1)).unwrap();
    assert_eq!(setup.round().await.waiting, 0);
}
