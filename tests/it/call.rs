//! `Caller` against a real upstream process that misbehaves on request (`upstream.py`).

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use rand::SeedableRng;
use rand::rngs::StdRng;
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use toolcrib::call::{
    CallError, CallOutcome, CallRequest, Caller, CallerSide, UpstreamError, UpstreamOptions,
    Upstreams,
};
use toolcrib::domain::{
    Catalog, Definition, Input, Launch, ReadSettingError, RunId, SecretSlot, Server, SettingName,
    Settings, Tenant, TenantId, Tool, ToolId,
};
use toolcrib::handles::{ALIVE_MAX, Handles};
use toolcrib::lifecycle::Lifecycle;

/// Settings in memory, by tenant and name.
#[derive(Debug, Default)]
struct Values {
    secrets: Mutex<HashMap<(TenantId, SettingName), String>>,
    config: Mutex<HashMap<(TenantId, SettingName), String>>,
}

impl Settings for Values {
    fn secret(
        &self,
        tenant: &TenantId,
        name: &SettingName,
    ) -> Result<Option<SecretString>, ReadSettingError> {
        let key = (tenant.clone(), name.clone());
        let secrets = self.secrets.lock().unwrap();
        Ok(secrets.get(&key).cloned().map(SecretString::from))
    }

    fn has_secret(&self, tenant: &TenantId, name: &SettingName) -> bool {
        let key = (tenant.clone(), name.clone());
        self.secrets.lock().unwrap().contains_key(&key)
    }

    fn config(&self, tenant: &TenantId, name: &SettingName) -> Option<String> {
        let key = (tenant.clone(), name.clone());
        self.config.lock().unwrap().get(&key).cloned()
    }
}

/// A crib with one upstream, and what its tests look at.
pub(crate) struct Crib {
    pub(crate) caller: Arc<Caller>,
    catalog: Arc<ArcSwap<Catalog>>,
    handles: Arc<Handles>,
    pub(crate) values: Arc<Values>,
    lifecycle: Lifecycle,
    folder: tempfile::TempDir,
    pub(crate) tenant: Tenant,
}

const TOOLS: [&str; 17] = [
    "echo",
    "faithful",
    "crash",
    "silent",
    "env",
    "pid",
    "argv",
    "cwd",
    "grandchild",
    "orphan",
    "big",
    "refuse",
    "progress",
    "garbage",
    "slow",
    "nothing",
    "deaf",
];

fn tools() -> Vec<Tool> {
    let strict = json!({
        "type": "object",
        "properties": {"text": {"type": "string"}, "times": {"type": "integer", "minimum": 1}},
        "required": ["text"],
        "additionalProperties": false,
    });
    let tool = |name: &&str| {
        let schema = match *name {
            "echo" => strict.clone(),
            _ => json!({"type": "object"}),
        };
        let input = Input::from_schema(schema);
        Tool::new(Definition::new(name.parse().unwrap(), "test", input))
    };
    TOOLS.iter().map(tool).collect()
}

/// A server whose process is `upstream.py` with some flags.
fn server(folder: &tempfile::TempDir, flags: &[&str]) -> Server {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/upstream.py");
    let count = format!("--count={}", folder.path().join("count").display());
    let mut args = vec![script.display().to_string(), count];
    args.extend(flags.iter().map(ToString::to_string));
    let mut server = Server::new("test".parse().unwrap(), tools());
    server.launch = Some(Launch::Stdio {
        command: "python3".into(),
        args: args.iter().map(|arg| arg.parse().unwrap()).collect(),
        env: vec![],
    });
    server
}

fn options(folder: &tempfile::TempDir) -> UpstreamOptions {
    UpstreamOptions {
        workspaces: folder.path().join("workspaces"),
        kill_after: Duration::from_millis(500),
        ..UpstreamOptions::default()
    }
}

impl Crib {
    /// With one upstream, started with some flags; `None`, and a line that says so, where there is
    /// no Python.
    fn new(flags: &[&str]) -> Option<Self> {
        Self::with(flags, |_| {}, |_| {})
    }

    pub(crate) fn with(
        flags: &[&str],
        change: impl FnOnce(&mut Server),
        tune: impl FnOnce(&mut UpstreamOptions),
    ) -> Option<Self> {
        if std::process::Command::new("python3")
            .arg("--version")
            .output()
            .is_err()
        {
            println!("skipped: no python3");
            return None;
        }
        Some(Self::without_python(flags, change, tune))
    }

    /// With one upstream, changed.
    pub(crate) fn without_python(
        flags: &[&str],
        change: impl FnOnce(&mut Server),
        tune: impl FnOnce(&mut UpstreamOptions),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut server = server(&folder, flags);
        change(&mut server);
        let catalog = Catalog::new([Arc::new(server)]).unwrap();
        let catalog = Arc::new(ArcSwap::from_pointee(catalog));
        let mut options = options(&folder);
        tune(&mut options);
        let lifecycle = Lifecycle::new();
        let handles = Arc::new(Handles::new(ALIVE_MAX));
        let values = Arc::new(Values::default());
        let upstreams = Upstreams::new(options, lifecycle.clone());
        let caller = Caller::new(catalog.clone(), handles.clone(), values.clone(), upstreams);
        Self {
            caller: Arc::new(caller),
            catalog,
            handles,
            values,
            lifecycle,
            folder,
            tenant: Tenant::local(),
        }
    }

    fn mint(&self, tools: &[&str]) -> String {
        let catalog = self.catalog.load();
        let covered = tools.iter().map(|tool| {
            let id = ToolId {
                server: "test".parse().unwrap(),
                tool: tool.parse().unwrap(),
            };
            let hash = catalog.tool(catalog.find(&id).unwrap()).hash();
            (id, hash)
        });
        let mut rng = StdRng::from_os_rng();
        let run_id = RunId::generate(&mut rng);
        let handle = self
            .handles
            .mint(&self.tenant.id, run_id, covered.collect(), &mut rng);
        handle.unwrap().reveal().to_owned()
    }

    async fn with_handle(
        &self,
        handle: &str,
        tool: &str,
        arguments: Value,
    ) -> Result<CallOutcome, CallError> {
        let request = request(handle, tool, arguments);
        self.caller
            .call(&self.tenant, request, CallerSide::default())
            .await
    }

    /// Mints a handle and runs the tool.
    pub(crate) async fn run(&self, tool: &str, arguments: Value) -> Result<CallOutcome, CallError> {
        self.with_handle(&self.mint(&[tool]), tool, arguments).await
    }

    async fn text(&self, tool: &str) -> String {
        text(&self.run(tool, json!({})).await.unwrap().result)
    }

    /// What reached the upstream, in order.
    fn counted(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join("count")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn count(&self, what: &str) -> usize {
        self.counted().iter().filter(|line| *line == what).count()
    }

    pub(crate) async fn end(self) {
        assert!(self.caller.upstreams().close().await);
        self.lifecycle.stop();
        assert!(
            self.lifecycle.wait(Duration::from_secs(5)).await,
            "a task is left"
        );
    }
}

fn request(handle: &str, tool: &str, arguments: Value) -> CallRequest {
    CallRequest {
        handle: handle.to_owned(),
        tool_name: tool.to_owned(),
        server_name: None,
        arguments: Some(arguments),
        run_id: None,
    }
}

pub(crate) fn text(result: &Map<String, Value>) -> String {
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

/// Whether a process runs; one that has ended and waits to be collected does not.
fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..200 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("never happened: {what}");
}

#[tokio::test]
async fn a_handle_runs_its_tool() {
    let Some(crib) = Crib::new(&[]) else { return };
    let outcome = crib.run("echo", json!({"text": "hello"})).await.unwrap();
    assert_eq!(text(&outcome.result), "hello");
    assert_eq!(outcome.truncated, None);
    assert!(outcome.run_id.is_some());
    assert_eq!(crib.counted(), ["start", "echo"]);
    crib.end().await;
}

#[tokio::test]
async fn a_result_comes_through_unchanged() {
    let Some(crib) = Crib::new(&[]) else { return };
    let outcome = crib.run("faithful", json!({})).await.unwrap();
    let expected = json!({
        "content": [
            {"type": "text", "text": "a", "x-more": {"kept": true}, "annotations": {"priority": 0.5}},
            {"type": "hologram", "data": [1, 2.5, null]},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        ],
        "structuredContent": {"b": 1, "a": [true, null]},
        "isError": true,
        "_meta": {"vendor/key": {"z": 1}},
        "unknown": "kept too",
    });
    assert_eq!(
        Value::Object(outcome.result).to_string(),
        expected.to_string()
    );
    crib.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_64_simultaneous_calls_one_reaches_the_upstream() {
    let Some(crib) = Crib::new(&[]) else { return };
    let handle = crib.mint(&["echo"]);
    let calls = (0..64).map(|_| {
        let (caller, tenant, handle) = (crib.caller.clone(), crib.tenant.clone(), handle.clone());
        tokio::spawn(async move {
            let request = request(&handle, "echo", json!({"text": "x"}));
            caller.call(&tenant, request, CallerSide::default()).await
        })
    });
    let mut won = 0;
    for call in futures::future::join_all(calls).await {
        match call.unwrap() {
            Ok(_) => won += 1,
            Err(error) => assert_eq!(error.code(), "INVALID_TOKEN", "{error:?}"),
        }
    }
    assert_eq!((won, crib.count("echo"), crib.count("start")), (1, 1, 1));
    crib.end().await;
}

#[tokio::test]
async fn bad_arguments_keep_the_handle_and_the_fifth_spends_it() {
    let Some(crib) = Crib::new(&[]) else { return };
    let handle = crib.mint(&["echo"]);
    let wrong = json!({"txt": "x", "times": 0});
    for expected in [4, 3, 2, 1] {
        match crib.with_handle(&handle, "echo", wrong.clone()).await {
            Err(CallError::InvalidArguments { problems, left, .. }) => {
                assert_eq!(left, Some(expected));
                assert_eq!(problems.len(), 3, "{problems:?}");
                let unknown = problems.iter().find(|p| p.path == "/txt").unwrap();
                assert_eq!(unknown.nearest.as_deref(), Some("text"));
            }
            other => panic!("{other:?}"),
        }
    }
    let fifth = crib.with_handle(&handle, "echo", wrong).await.unwrap_err();
    assert!(fifth.spent());
    let late = crib
        .with_handle(&handle, "echo", json!({"text": "x"}))
        .await
        .unwrap_err();
    assert_eq!(late.code(), "INVALID_TOKEN");
    assert!(crib.counted().is_empty());
    crib.end().await;
}
