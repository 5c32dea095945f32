//! Published servers, each called through the relay, and its effect looked at where it happens: in
//! a file, a repository, a database.
//!
//! `make servers` and `make test-servers` install them; what is not there is skipped with a line.

mod database;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::{Child, Command};
use toolcrib::domain::{Definition, Input, Launch, Server, Tool};

use self::database::{Postgres, Redis, free_port};
use crate::call::{Crib, text};
use crate::program::{root, servers_folder};

/// How long a server over HTTP may take to listen.
const LISTEN_MAX: Duration = Duration::from_mins(1);

/// Where servers may be installed that only the tests use.
fn folders() -> [PathBuf; 2] {
    [servers_folder(), root().join(".test-servers")]
}

/// The program of a package, as `npm:NAME@VERSION` or `pypi:NAME@VERSION`; says so where it is not
/// installed.
fn program(package: &str) -> Option<PathBuf> {
    let found = folders().into_iter().find_map(|folder| {
        let text = std::fs::read_to_string(folder.join("installed.json")).ok()?;
        let installed: Value = serde_json::from_str(&text).ok()?;
        Some(folder.join(installed[package]["command"].as_str()?))
    });
    if found.is_none() {
        println!("skipped: `{package}` is not installed, `make servers test-servers` does that");
    }
    found
}

/// A crib over one package on standard streams, with the tools that it lists.
async fn crib(package: &str, args: &[&str], env: &[(&str, &str)]) -> Option<Crib> {
    program(package)?;
    let (command, package) = match package.split_once(':')? {
        ("npm", package) => ("npx", vec!["-y", package]),
        (_, package) => ("uvx", vec![package]),
    };
    let launch = Launch::Stdio {
        command: command.into(),
        args: package
            .iter()
            .chain(args)
            .map(|arg| arg.parse().unwrap())
            .collect(),
        env: env
            .iter()
            .map(|(name, value)| ((*name).into(), value.parse().unwrap()))
            .collect(),
    };
    Some(listed(launch).await)
}

/// A crib whose server has the tools that it lists.
async fn listed(launch: Launch) -> Crib {
    let change = |server: &mut Server| {
        server.tools.clear();
        server.launch = Some(launch);
    };
    let crib = Crib::without_python(&[], change, |options| {
        options.installed = folders().into();
        options.http_on_loopback = true;
    });
    let mut server = crib.server();
    let upstreams = crib.caller.upstreams();
    let tools = upstreams
        .list_tools(&crib.tenant, &server, &*crib.values)
        .await
        .unwrap();
    let tool = |tool: &Value| {
        let name = tool["name"].as_str().unwrap().parse().unwrap();
        let input = Input::from_schema(tool["inputSchema"].clone());
        Tool::new(Definition::new(name, "", input))
    };
    server.tools = tools.iter().map(tool).collect();
    crib.store(server);
    crib
}

fn workspace(crib: &Crib) -> PathBuf {
    crib.caller.upstreams().options().workspaces.join("local")
}

/// The text of a call that must not fail.
async fn done(crib: &Crib, tool: &str, arguments: Value) -> String {
    let result = crib.run(tool, arguments).await.unwrap().result;
    assert_ne!(result.get("isError"), Some(&json!(true)), "{result:?}");
    text(&result)
}

/// The text of a call that the server refuses.
async fn refused(crib: &Crib, tool: &str, arguments: Value) -> String {
    let result = crib.run(tool, arguments).await.unwrap().result;
    assert_eq!(result.get("isError"), Some(&json!(true)), "{result:?}");
    text(&result)
}

#[tokio::test]
async fn memory_keeps_what_it_is_told_in_its_file() {
    let file = ("MEMORY_FILE_PATH", "{{workspace}}/memory.jsonl");
    let package = "npm:@modelcontextprotocol/server-memory@2026.8.31";
    let Some(crib) = crib(package, &[], &[file]).await else {
        return;
    };
    let entity = json!({"name": "Ada", "entityType": "person", "observations": ["counts"]});
    done(&crib, "create_entities", json!({"entities": [entity]})).await;
    let kept = std::fs::read_to_string(workspace(&crib).join("memory.jsonl")).unwrap();
    assert!(kept.contains("Ada") && kept.contains("counts"), "{kept}");
    // Another process reads it again.
    let upstreams = crib.caller.upstreams();
    upstreams
        .restart(&crib.tenant.id, &crib.server().name)
        .await;
    let found = done(&crib, "search_nodes", json!({"query": "Ada"})).await;
    assert!(found.contains("counts"), "{found}");
    crib.end().await;
}

#[tokio::test]
async fn git_commits_into_a_repository() {
    let Some(crib) = crib("pypi:mcp-server-git@2026.10.19", &[], &[]).await else {
        return;
    };
    let repository = workspace(&crib).join("repository");
    let git = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.arg("-C").arg(&repository).args(args);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    std::fs::create_dir_all(&repository).unwrap();
    git(&["init", "--quiet"]);
    git(&["config", "user.name", "Test"]);
    git(&["config", "user.email", "test@example.com"]);
    std::fs::write(repository.join("note.txt"), "kept").unwrap();
    let path = json!(repository);
    let files = json!({"repo_path": path, "files": ["note.txt"]});
    done(&crib, "git_add", files).await;
    let commit = json!({"repo_path": path, "message": "Keep a note"});
    done(&crib, "git_commit", commit).await;
    assert_eq!(git(&["log", "--format=%s"]).trim(), "Keep a note");
    assert_eq!(git(&["show", "HEAD:note.txt"]), "kept");
    crib.end().await;
}

#[tokio::test]
async fn sqlite_rows_are_there_for_the_next_process() {
    let args = ["--db-path", "{{workspace}}/rows.db"];
    let Some(crib) = crib("pypi:mcp-server-sqlite@2025.4.25", &args, &[]).await else {
        return;
    };
    let sql = |query: &str| json!({"query": query});
    done(&crib, "create_table", sql("CREATE TABLE rows (word TEXT)")).await;
    done(
        &crib,
        "write_query",
        sql("INSERT INTO rows VALUES ('zebra')"),
    )
    .await;
    let upstreams = crib.caller.upstreams();
    upstreams
        .restart(&crib.tenant.id, &crib.server().name)
        .await;
    let rows = done(&crib, "read_query", sql("SELECT word FROM rows")).await;
    assert_eq!(rows, "[{'word': 'zebra'}]");
    crib.end().await;
}

#[tokio::test]
async fn fetch_reads_a_page() {
    let page = "<html><head><title>Cranes</title></head><body><article><h1>Cranes</h1>\
                <p>Forty-two cranes stand in the harbour, and none of them is a bird.</p></article></body></html>";
    let pages = axum::Router::new().route(
        "/cranes",
        axum::routing::get(move || async move { axum::response::Html(page) }),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/cranes", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, pages).await });
    // The server itself refuses addresses inside, unless it is told not to.
    let package = "pypi:mcp-server-fetch@2026.10.24";
    let Some(closed) = crib(package, &[], &[]).await else {
        return;
    };
    let said = refused(&closed, "fetch", json!({"url": url})).await;
    assert!(said.contains("not a public address"), "{said}");
    closed.end().await;
    let crib = crib(package, &["--allow-private-ips"], &[]).await.unwrap();
    let said = done(&crib, "fetch", json!({"url": url})).await;
    assert!(said.contains("Forty-two cranes"), "{said}");
    crib.end().await;
    serving.abort();
}

#[tokio::test]
async fn excel_writes_a_workbook() {
    let folder = ("EXCEL_FILES_PATH", "{{workspace}}");
    let Some(crib) = crib("pypi:excel-mcp-server@2.2.2", &["stdio"], &[folder]).await else {
        return;
    };
    let path = "book.xlsx";
    done(&crib, "create_workbook", json!({"path": path})).await;
    let rows = json!([["animal", "legs"], ["ostrich", 2]]);
    let range = json!({"path": path, "sheet": "Sheet1", "at": "B2", "rows": rows});
    done(&crib, "write_range", range).await;
    let book = std::fs::read(workspace(&crib).join(path)).unwrap();
    assert!(book.starts_with(b"PK"));
    let range = json!({"path": path, "sheet": "Sheet1", "range": "B3:C3"});
    let said = done(&crib, "read_range", range).await;
    assert!(said.contains("ostrich"), "{said}");
    crib.end().await;
}

#[tokio::test]
async fn postgres_rows_are_read_and_none_is_written() {
    let package = "npm:@modelcontextprotocol/server-postgres@0.6.2";
    let (Some(_program), Some(postgres)) = (program(package), Postgres::start()) else {
        return;
    };
    postgres.sql("CREATE TABLE animals (name text); INSERT INTO animals VALUES ('okapi')");
    let crib = crib(package, &[&postgres.url()], &[]).await.unwrap();
    let sql = |sql: &str| json!({"sql": sql});
    let said = done(&crib, "query", sql("SELECT name FROM animals")).await;
    assert!(said.contains("okapi"), "{said}");
    let insert = sql("INSERT INTO animals VALUES ('yak')");
    let said = refused(&crib, "query", insert).await;
    assert!(said.contains("read-only"), "{said}");
    assert_eq!(postgres.sql("SELECT count(*) FROM animals").trim(), "1");
    crib.end().await;
}

#[tokio::test]
async fn redis_keys_are_set() {
    let package = "npm:@modelcontextprotocol/server-redis@2025.4.25";
    let (Some(_program), Some(redis)) = (program(package), Redis::start()) else {
        return;
    };
    let crib = crib(package, &[&redis.url()], &[]).await.unwrap();
    done(&crib, "set", json!({"key": "animal", "value": "quokka"})).await;
    assert_eq!(redis.ask("GET animal"), "$6\r\nquokka\r\n");
    let said = done(&crib, "get", json!({"key": "animal"})).await;
    assert_eq!(said, "quokka");
    crib.end().await;
}

/// A server over HTTP, on a port of its own.
struct Remote {
    child: Child,
    url: String,
}

impl Remote {
    async fn start(package: &str, args: &[&str]) -> Option<Self> {
        let program = program(package)?;
        let port = free_port();
        let args = args
            .iter()
            .map(|arg| arg.replace("PORT", &port.to_string()));
        let home = tempfile::tempdir().unwrap();
        let mut child = Command::new(program)
            .args(args)
            .env("HOME", home.path())
            .current_dir(home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let address = format!("127.0.0.1:{port}");
        let listening = async {
            while tokio::net::TcpStream::connect(&address).await.is_err() {
                assert!(child.try_wait().unwrap().is_none(), "{package} ended");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(LISTEN_MAX, listening).await.unwrap();
        Some(Self {
            child,
            url: format!("http://{address}/mcp"),
        })
    }

    async fn crib(&self) -> Crib {
        listed(Launch::http(self.url.parse().unwrap(), vec![])).await
    }
}

#[tokio::test]
async fn context7_over_http_lists_its_tools_and_answers() {
    let args = ["--transport", "http", "--port", "PORT"];
    let Some(mut remote) = Remote::start("npm:@upstash/context7-mcp@4.1.1", &args).await else {
        return;
    };
    let crib = remote.crib().await;
    assert_eq!(crib.server().tools.len(), 2);
    // What it says needs its own service, which tests do not have; that it says it is the relay's.
    let question = json!({"libraryName": "tokio", "query": "spawn a task"});
    let result = crib.run("resolve-library-id", question).await.unwrap();
    assert!(!text(&result.result).is_empty());
    crib.end().await;
    remote.child.kill().await.unwrap();
}

#[tokio::test]
async fn mongodb_over_http_lists_its_tools_and_says_what_it_misses() {
    let args = [
        "--readOnly",
        "--transport",
        "http",
        "--httpPort",
        "PORT",
        "--telemetry",
        "disabled",
    ];
    let Some(mut remote) = Remote::start("npm:mongodb-mcp-server@3.0.4", &args).await else {
        return;
    };
    let crib = remote.crib().await;
    assert!(10 < crib.server().tools.len());
    let said = refused(&crib, "list-databases", json!({"connectionId": "none"})).await;
    assert!(said.contains("connect"), "{said}");
    crib.end().await;
    remote.child.kill().await.unwrap();
}

/// The first of some folders that holds a program.
fn on_path(program: &str, more: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path)
        .chain(more.iter().cloned())
        .collect();
    let found = folders
        .iter()
        .map(|folder: &PathBuf| Path::join(folder, program));
    let found = found.into_iter().find(|path| path.is_file());
    if found.is_none() {
        println!("skipped: no `{program}` on this machine");
    }
    found
}
