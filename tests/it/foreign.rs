//! Readers of foreign bytes: each takes anything, arbitrary or a valid document with a few changes,
//! without a panic and within its bounds.
//!
//! A reader is a plain function of bytes, so that a fuzzer can run it as it stands. What is private
//! to a module has its laws there.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config as Cases, TestRunner};
use rand::SeedableRng;
use rand::rngs::StdRng;
use secrecy::SecretString;
use serde_json::Value;
use toolcrib::catalog::import::{self, Document, Format};
use toolcrib::catalog::snapshot::{Snapshot, SnapshotFile, SourceState};
use toolcrib::catalog::{builtin, export, load, manifest};
use toolcrib::config::{Config, Environment, Home};
use toolcrib::domain::{Handle, Query, RunId, Settings, Shape, TenantId, ToolId, Trace};
use toolcrib::registry::{OpenApiOptions, OpenApiProvider};
use toolcrib::tenants::{Credential, Directory, TenantLimits, Vault};

use crate::program::root;

/// Inputs of each reader.
const CASES: u32 = 64;
/// Longest arbitrary input, in bytes.
const BYTES_MAX: usize = 512;
/// Of a longer valid document the beginning is changed: the rest is more of the same.
const SEED_BYTES_MAX: usize = 16 * 1024;

struct Reader {
    name: &'static str,
    read: fn(&[u8]),
    seeds: fn() -> Vec<Vec<u8>>,
}

const READERS: [Reader; 14] = [
    Reader {
        name: "tool id",
        read: tool_id,
        seeds: || texts(&["slack/post_message", "a/b/c"]),
    },
    Reader {
        name: "handle and run id",
        read: handle_and_run,
        seeds: || texts(&["Xk3_9aQe2L", "w1a2b3c4d"]),
    },
    Reader {
        name: "query",
        read: query,
        seeds: || texts(&["post a message to a channel"]),
    },
    Reader {
        name: "shape",
        read: shape,
        seeds: || texts(&["array of string", "\"a\" or \"b\"", "integer"]),
    },
    Reader {
        name: "trace",
        read: trace,
        seeds: || texts(&["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]),
    },
    Reader {
        name: "credential",
        read: credential,
        seeds: || texts(&["key.secret", "toolcrib://key:secret@host:8787"]),
    },
    Reader {
        name: "catalog file",
        read: catalog_file,
        seeds: catalog_files,
    },
    Reader {
        name: "import",
        read: imports,
        seeds: published,
    },
    Reader {
        name: "page of a registry",
        read: page,
        seeds: published,
    },
    Reader {
        name: "OpenAPI provider",
        read: openapi,
        seeds: || vec![sample("openapi.yaml")],
    },
    Reader {
        name: "configuration",
        read: configuration,
        seeds: || vec![Config::default().to_toml().into_bytes()],
    },
    Reader {
        name: "vault",
        read: vault,
        seeds: || vec![whole_vault()],
    },
    Reader {
        name: "tenants",
        read: tenants,
        seeds: || vec![whole_tenants()],
    },
    Reader {
        name: "snapshot with pins",
        read: snapshot,
        seeds: || vec![whole_snapshot()],
    },
];

fn tool_id(bytes: &[u8]) {
    if let Ok(id) = text(bytes).parse::<ToolId>() {
        assert_eq!(id.to_string().parse().as_ref(), Ok(&id));
    }
}

fn handle_and_run(bytes: &[u8]) {
    let text = text(bytes);
    if let Ok(handle) = text.parse::<Handle>() {
        assert_eq!(handle.reveal(), text);
    }
    if let Ok(run) = text.parse::<RunId>() {
        assert_eq!(run.to_string(), text);
    }
}

fn query(bytes: &[u8]) {
    if let Ok(query) = text(bytes).parse::<Query>() {
        assert_eq!(query.as_str().parse().as_ref(), Ok(&query));
    }
}

fn shape(bytes: &[u8]) {
    if let Ok(shape) = text(bytes).parse::<Shape>() {
        assert_eq!(shape.to_string().parse().as_ref(), Ok(&shape));
    }
}

fn trace(bytes: &[u8]) {
    let text = text(bytes);
    if let Some(trace) = Trace::read(Some(&text), Some(&text)) {
        assert_eq!(trace.parent(), text);
        assert_eq!(trace.id().len(), 32);
    }
}

fn credential(bytes: &[u8]) {
    if let Ok(credential) = text(bytes).parse::<Credential>() {
        let again: Credential = credential.reveal_bearer().parse().unwrap();
        assert_eq!(again.reveal_bearer(), credential.reveal_bearer());
    }
}

fn catalog_file(bytes: &[u8]) {
    let read = manifest::read("server.toml", &text(bytes));
    assert_eq!(read.server.is_some(), read.faults.is_empty());
}

fn imports(bytes: &[u8]) {
    let text = text(bytes);
    for name in ["a.json", "a.yaml", "a.jsonl"] {
        let Some(format) = Format::detect(name, &text) else {
            continue;
        };
        let document = Document {
            name: name.to_owned(),
            text: text.clone(),
        };
        let imported = import::read(format, &[document]);
        assert!(
            imported.report.counts.balance(),
            "{format}: {:?}",
            imported.report
        );
        let lines = export::lines(&imported.servers);
        assert_eq!(lines.lines().count(), imported.servers.len());
    }
}

fn page(bytes: &[u8]) {
    let text = text(bytes);
    if let Some(cursor) = import::next_cursor(&text) {
        assert!(!cursor.is_empty() && cursor.len() <= text.len());
    }
    let document = Document {
        name: "catalog.yaml".to_owned(),
        text,
    };
    let _ = import::tools_urls(&document);
}

fn openapi(bytes: &[u8]) {
    let document = Document {
        name: "openapi.yaml".to_owned(),
        text: text(bytes),
    };
    let options = OpenApiOptions {
        base: "https://service.example/".to_owned(),
        headers: Vec::new(),
        loopback: false,
    };
    let _ = OpenApiProvider::new("service", &document, &options);
}

fn configuration(bytes: &[u8]) {
    let path = placed("toolcrib.toml", bytes);
    let home = Home::at(path.parent().unwrap());
    if let Ok(config) = Config::read(Some(&path), &home, &Environment::default()) {
        fs::write(&path, config.to_toml()).unwrap();
        let again = Config::read(Some(&path), &home, &Environment::default()).unwrap();
        assert_eq!(again.to_toml(), config.to_toml());
    }
}

fn vault(bytes: &[u8]) {
    let vault = open_vault(placed("settings.json", bytes));
    let (tenant, name) = (TenantId::local(), "slack.bot_token".parse().unwrap());
    let found = vault.secret(&tenant, &name);
    if let Ok(Some(secret)) = found {
        use secrecy::ExposeSecret;
        // A changed seal does not open: what opens is what was sealed.
        assert_eq!(secret.expose_secret(), "t0ken");
    }
    let _ = vault.configs(&tenant);
}

fn tenants(bytes: &[u8]) {
    let directory = Directory::new(placed("tenants.json", bytes));
    let _ = directory.list();
    let stranger = Credential::generate(&mut StdRng::seed_from_u64(9));
    assert!(!matches!(directory.authenticate(&stranger), Ok(Some(_))));
}

fn snapshot(bytes: &[u8]) {
    let file = SnapshotFile::new(placed("catalog.snapshot", bytes));
    let snapshot = file.load();
    // A snapshot is whole or none.
    let tools = tools_of(&snapshot);
    assert!(matches!(tools, 0 | 2), "{tools}");
}

fn tools_of(snapshot: &Snapshot) -> usize {
    snapshot.states().map(SourceState::tools).sum()
}

/// Text of bytes, as a reader of a file gets it.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

thread_local! {
    static FOLDER: RefCell<Option<tempfile::TempDir>> = const { RefCell::new(None) };
}

/// A file with these bytes, in a folder of this thread that is otherwise empty.
fn placed(name: &str, bytes: &[u8]) -> PathBuf {
    FOLDER.with_borrow_mut(|folder| {
        // Another folder each time: readers remember files by their stamps.
        let folder = folder.insert(tempfile::tempdir().unwrap());
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    })
}

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn sample(name: &str) -> Vec<u8> {
    fs::read(root().join("tests/data/import").join(name)).unwrap()
}

fn catalog_files() -> Vec<Vec<u8>> {
    let files = builtin().into_iter().take(6);
    files.map(|file| file.text.as_bytes().to_vec()).collect()
}

/// A document of each format that others publish.
fn published() -> Vec<Vec<u8>> {
    let catalog = load(&[builtin()]).catalog;
    let ours = [
        export::normal_form(&catalog),
        export::docker_v3(&catalog),
        export::tools_list(&catalog),
    ];
    let theirs = [
        "client-config.json",
        "docker-catalog.yaml",
        "mcpm.json",
        "official.json",
        "openapi.yaml",
    ];
    let theirs = theirs.iter().map(|name| sample(name));
    ours.into_iter()
        .map(String::into_bytes)
        .chain(theirs)
        .collect()
}

fn open_vault(path: PathBuf) -> Vault {
    let key = SecretString::from("a passphrase of some length");
    let mut rng = StdRng::seed_from_u64(3);
    Vault::open(path, Path::new("unused"), Some(&key), &mut rng).unwrap()
}

fn whole_vault() -> Vec<u8> {
    let path = placed("settings.json", b"{\"version\":1,\"tenants\":{}}");
    let (vault, tenant) = (open_vault(path.clone()), TenantId::local());
    let secret = SecretString::from("t0ken");
    let (name, plain) = (
        "slack.bot_token".parse().unwrap(),
        "slack.team".parse().unwrap(),
    );
    let mut rng = StdRng::seed_from_u64(4);
    vault.set_secret(&tenant, &name, &secret, &mut rng).unwrap();
    vault.set_config(&tenant, &plain, "T1").unwrap();
    fs::read(path).unwrap()
}

fn whole_tenants() -> Vec<u8> {
    let path = placed("tenants.json", b"{\"version\":1,\"tenants\":[]}");
    let directory = Directory::new(path.clone());
    let mut rng = StdRng::seed_from_u64(5);
    let id = "team".parse().unwrap();
    directory
        .add(
            &id,
            &["slack/*".to_owned()],
            TenantLimits::default(),
            &mut rng,
        )
        .unwrap();
    fs::read(path).unwrap()
}

fn whole_snapshot() -> Vec<u8> {
    use std::sync::Arc;
    use toolcrib::domain::{Definition, Input, Server, Tool};

    let path = placed("catalog.snapshot", b"");
    fs::remove_file(&path).unwrap();
    let tool = |name: &str| {
        let schema = serde_json::json!({ "type": "object" });
        let name = name.parse().unwrap();
        Tool::new(Definition::new(
            name,
            "Polish a statue.",
            Input::from_schema(schema),
        ))
    };
    let server = Server::new("temple".parse().unwrap(), vec![tool("a"), tool("b")]);
    let changed = SnapshotFile::new(path.clone()).change(|snapshot| {
        let state = SourceState {
            name: "team".into(),
            servers: vec![Arc::new(server)],
            ..SourceState::default()
        };
        snapshot.sources.push(state);
    });
    changed.unwrap();
    fs::read(path).unwrap()
}

/// One change to a document.
#[derive(Clone, Debug)]
enum Edit {
    Flip(Index, u8),
    Insert(Index, &'static str),
    Cut(Index, usize),
    Repeat(Index, usize),
    Truncate(Index),
}

/// Pieces that readers give a meaning, and some that they must not.
const PIECES: [&str; 20] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "\n",
    "- ",
    "null",
    "true",
    "-1",
    "1e999",
    "99999999999999999999",
    "\u{202e}",
    "\u{0}",
    "\\u0000",
    "*a",
    "&a ",
    "#",
];

fn edits() -> impl Strategy<Value = Edit> {
    let at = || any::<Index>();
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Edit::Flip(at, byte)),
        (at(), prop::sample::select(&PIECES[..])).prop_map(|(at, piece)| Edit::Insert(at, piece)),
        (at(), 1_usize..64).prop_map(|(at, bytes)| Edit::Cut(at, bytes)),
        (at(), 1_usize..64).prop_map(|(at, bytes)| Edit::Repeat(at, bytes)),
        at().prop_map(Edit::Truncate),
    ]
}

fn apply(document: &mut Vec<u8>, edit: &Edit) {
    let end = document.len();
    if end == 0 {
        return;
    }
    match edit {
        Edit::Flip(at, byte) => document[at.index(end)] = *byte,
        Edit::Insert(at, piece) => {
            let at = at.index(end);
            document.splice(at..at, piece.bytes());
        }
        Edit::Cut(at, bytes) => {
            let at = at.index(end);
            document.drain(at..end.min(at + bytes));
        }
        Edit::Repeat(at, bytes) => {
            let at = at.index(end);
            let piece = document[at..end.min(at + bytes)].to_vec();
            document.splice(at..at, piece);
        }
        Edit::Truncate(at) => document.truncate(at.index(end)),
    }
}

/// One input in four is arbitrary bytes, the others are changed valid documents.
fn inputs(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let seeds = seeds.into_iter().map(|mut seed| {
        seed.truncate(SEED_BYTES_MAX);
        seed
    });
    let changed = (
        prop::sample::select(seeds.collect::<Vec<_>>()),
        prop::collection::vec(edits(), 1..6),
    );
    let changed = changed.prop_map(|(mut document, edits)| {
        for edit in &edits {
            apply(&mut document, edit);
        }
        document
    });
    prop_oneof![
        1 => prop::collection::vec(any::<u8>(), 0..BYTES_MAX),
        3 => changed,
    ]
}

#[test]
fn no_reader_breaks_on_foreign_bytes() {
    for reader in READERS {
        let cases = Cases {
            cases: CASES,
            failure_persistence: None,
            ..Cases::default()
        };
        let result = TestRunner::new(cases).run(&inputs((reader.seeds)()), |bytes| {
            (reader.read)(&bytes);
            Ok(())
        });
        if let Err(error) = result {
            panic!("{}: {error}", reader.name);
        }
    }
}

/// What the inputs are changes of is read: otherwise the readers would only ever refuse.
#[test]
fn the_documents_that_are_changed_are_valid() {
    let files = builtin();
    for file in files.iter().take(6) {
        assert!(manifest::read(&file.name, &file.text).server.is_some());
    }
    for seed in published() {
        let text = text(&seed);
        let known = ["a.json", "a.yaml", "a.jsonl"];
        assert!(
            known
                .iter()
                .any(|name| Format::detect(name, &text).is_some())
        );
    }
    let stored: Value = serde_json::from_slice(&whole_tenants()).unwrap();
    assert_eq!(stored["tenants"][0]["id"], "team");
    let vault = open_vault(placed("settings.json", &whole_vault()));
    let name = "slack.bot_token".parse().unwrap();
    assert!(vault.secret(&TenantId::local(), &name).unwrap().is_some());
    let file = SnapshotFile::new(placed("catalog.snapshot", &whole_snapshot()));
    assert_eq!(tools_of(&file.load()), 2);
}
