//! The real program in a folder of its own, and a client that speaks raw JSON-RPC to it.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib::config::Home;

/// How long the program may take to serve, a cold model on a busy machine included.
const START_MAX: Duration = Duration::from_mins(1);

/// A data folder, with the fetched models of this machine where there are any.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        if let Some(models) = fetched_models() {
            std::os::unix::fs::symlink(&models, folder.path().join("models")).unwrap();
            // Vectors are the same for all tests: who makes them first makes them for all.
            let cache = models.with_file_name("cache");
            std::fs::create_dir_all(&cache).unwrap();
            std::os::unix::fs::symlink(cache, folder.path().join("cache")).unwrap();
        }
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn command(&self) -> Command {
        // Another build of the program: the soak measures the one that is released.
        let other = std::env::var_os("TOOLCRIB_TEST_PROGRAM");
        let built = || env!("CARGO_BIN_EXE_toolcrib").into();
        let mut command = Command::new(other.unwrap_or_else(built));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TOOLCRIB_")) {
            command.env_remove(name);
        }
        command.env("TOOLCRIB_HOME", self.path());
        command.env("TOOLCRIB_UPSTREAMS__INSTALLED", servers_folder());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command()
            .args(args)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }
}

/// The checkout.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Where `make servers` installs.
pub(crate) fn servers_folder() -> PathBuf {
    root().join(".servers")
}

/// Where `make clients` installs.
pub(crate) fn clients_folder() -> PathBuf {
    root().join(".clients")
}

/// Labelled queries and real catalogs, on machines that have them.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("TOOLCRIB_SHARED").map(PathBuf::from);
    let found = folder
        .unwrap_or_else(|| root().join("../shared"))
        .join(path);
    found.exists().then_some(found)
}

/// Whether the reference servers are there; says so when they are not.
pub(crate) fn has_servers(test: &str) -> bool {
    let there = servers_folder().join("installed.json").is_file();
    if !there {
        println!("skipped {test}: no reference servers, `make servers` installs them");
    }
    there
}

/// Whether the model is there; says so when it is not.
pub(crate) fn has_model(test: &str) -> bool {
    let there = fetched_models().is_some();
    if !there {
        println!("skipped {test}: no model, `toolcrib models fetch` brings it");
    }
    there
}

fn fetched_models() -> Option<PathBuf> {
    let home = std::env::var_os("TOOLCRIB_HOME").map(Home::at);
    let models = home.or_else(|| Home::of_platform().ok())?.models();
    models
        .join("minilm-int8/model.onnx")
        .is_file()
        .then_some(models)
}

/// A running server.
pub(crate) struct Program {
    child: Child,
    pub(crate) url: String,
    pub(crate) admin: String,
    log: Arc<Mutex<String>>,
}

impl Program {
    /// Starts `toolcrib serve` with settings as `TOOLCRIB_SECTION__KEY`.
    pub(crate) fn start(folder: &Folder, settings: &[(&str, &str)]) -> Self {
        let mut child = folder
            .command()
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--admin-listen",
                "127.0.0.1:0",
            ])
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (mut lines, inside) = (BufReader::new(child.stderr.take().unwrap()), log.clone());
        std::thread::spawn(move || {
            let mut line = String::new();
            while lines.read_line(&mut line).is_ok_and(|read| 0 < read) {
                inside.lock().unwrap().push_str(&line);
                line.clear();
            }
        });
        let mut program = Self {
            child,
            url: String::new(),
            admin: String::new(),
            log,
        };
        program.url = program.wait_for(" at http://", "/mcp") + "/mcp";
        program.admin = program.wait_for("admin: http://", "/readyz");
        program
    }

    /// Text between two marks in the log, once it is there.
    fn wait_for(&mut self, before: &str, after: &str) -> String {
        let start = Instant::now();
        loop {
            let log = self.log();
            if let Some((_, rest)) = log.split_once(before)
                && let Some((address, _)) = rest.split_once(after)
            {
                return format!("http://{address}");
            }
            let ended = self.child.try_wait().unwrap();
            assert!(
                ended.is_none() && start.elapsed() < START_MAX,
                "not serving: {log}"
            );
            pause();
        }
    }

    /// All that it has logged.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// The outcomes in the audit, once there are so many lines of it.
    pub(crate) fn audited(&self, lines: usize) -> Vec<String> {
        let start = Instant::now();
        while self.log().matches(" audit: ").count() < lines {
            assert!(start.elapsed() < Duration::from_secs(20), "{}", self.log());
            pause();
        }
        let outcome = |line: &str| {
            let (_, behind) = line.split_once("outcome=\"")?;
            Some(behind.split('"').next()?.to_owned())
        };
        let log = self.log();
        let audit = log.lines().filter(|line| line.contains(" audit: "));
        audit.map(|line| outcome(line).unwrap()).collect()
    }

    /// Waits until `/readyz` says yes.
    pub(crate) async fn ready(&self) {
        let start = Instant::now();
        let client = http();
        while client
            .get(format!("{}/readyz", self.admin))
            .send()
            .await
            .unwrap()
            .status()
            != 200
        {
            assert!(start.elapsed() < 2 * START_MAX, "not ready: {}", self.log());
            pause();
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        assert!(
            Command::new("kill")
                .args([name, &pid])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Waits for the end, and says whether it came in time.
    pub(crate) fn ends_within(&mut self, limit: Duration) -> bool {
        let start = Instant::now();
        while start.elapsed() < limit {
            if self.child.try_wait().unwrap().is_some() {
                return true;
            }
            pause();
        }
        false
    }

    /// Calls a tool in the legacy era, and gives the tool's result.
    pub(crate) async fn call(&self, key: Option<&str>, tool: &str, arguments: Value) -> Value {
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments },
        });
        let response = self.post(key, &body).send().await.unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        let message: Value =
            serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status}: {text}"));
        assert!(message.get("error").is_none(), "{message}");
        message["result"].clone()
    }

    /// Searches, and gives the result's JSON object.
    pub(crate) async fn search(&self, key: Option<&str>, query: &str) -> Value {
        let result = self
            .call(key, "search_tools", json!({ "query": query }))
            .await;
        let text: Value =
            serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(
            text, result["structuredContent"],
            "text and structured content are the same"
        );
        text
    }

    pub(crate) fn post(&self, key: Option<&str>, body: &Value) -> reqwest::RequestBuilder {
        let request = http()
            .post(&self.url)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", "2025-11-25")
            .body(body.to_string());
        match key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = Command::new("kill")
            .args(["-TERM", &self.pid().to_string()])
            .status();
        if !self.ends_within(Duration::from_secs(10)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

pub(crate) fn http() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// Between two looks at a process, which no paused clock can stand for.
pub(crate) fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

/// Runs a program that must not outlive `limit`, and gives its exit code and output.
pub(crate) fn finish(command: &mut Command, limit: Duration) -> (Option<i32>, String) {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let read = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = err.read_to_string(&mut text);
        text
    });
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if limit < start.elapsed() {
            child.kill().unwrap();
            break child.wait().unwrap();
        }
        pause();
    };
    let mut text = String::new();
    let _ = out.read_to_string(&mut text);
    (status.code(), text + &read.join().unwrap())
}
