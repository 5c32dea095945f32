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
    CallError, CallOutcome, CallRequest, Caller, CallerSide, Ending, StepProblem, UpstreamOptions,
    Upstreams,
};
use toolcrib::domain::{
    Catalog, Definition, Input, Launch, ReadSettingError, RunId, Scope, SecretSlot, Server,
    SettingName, Settings, Tenant, TenantId, Tool, ToolId,
};
use toolcrib::handles::{ALIVE_MAX, Handles};
use toolcrib::lifecycle::Lifecycle;

/// Settings in memory, by tenant and name.
#[derive(Debug, Default)]
pub(crate) struct Values {
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

impl Values {
    /// Sets a secret of the local tenant.
    pub(crate) fn set_secret(&self, name: &str, value: &str) {
        self.set_secret_of(&TenantId::local(), name, value);
    }

    /// Sets a secret of any tenant.
    pub(crate) fn set_secret_of(&self, tenant: &TenantId, name: &str, value: &str) {
        let key = (tenant.clone(), name.parse().unwrap());
        self.secrets.lock().unwrap().insert(key, value.to_owned());
    }
}

/// A crib with one upstream, and what its tests look at.
pub(crate) struct Crib {
    pub(crate) caller: Arc<Caller>,
    pub(crate) catalog: Arc<ArcSwap<Catalog>>,
    pub(crate) handles: Arc<Handles>,
    pub(crate) values: Arc<Values>,
    pub(crate) lifecycle: Lifecycle,
    folder: tempfile::TempDir,
    pub(crate) tenant: Tenant,
}

const TOOLS: [&str; 29] = [
    "echo",
    "mark",
    "faithful",
    "crash",
    "silent",
    "env",
    "pid",
    "argv",
    "cwd",
    "grandchild",
    "detached",
    "escaped",
    "orphan",
    "big",
    "refuse",
    "progress",
    "garbage",
    "slow",
    "nothing",
    "deaf",
    "bomb",
    "hog",
    "allocate",
    "ask",
    "insist",
    "twice",
    "sample",
    "declared",
    "meta",
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

/// The interpreter itself: a wrapper script in its place would add processes and variables.
pub(crate) fn python() -> Option<String> {
    let asked = std::process::Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output();
    let path = String::from_utf8(asked.ok()?.stdout).ok()?;
    Some(path.trim().to_owned()).filter(|path| !path.is_empty())
}

/// A server whose process is `upstream.py` with some flags.
fn server(folder: &tempfile::TempDir, flags: &[&str]) -> Server {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/upstream.py");
    let count = format!("--count={}", folder.path().join("count").display());
    let mut args = vec![script.display().to_string(), count];
    args.extend(flags.iter().map(ToString::to_string));
    let mut server = Server::new("test".parse().unwrap(), tools());
    server.launch = Some(Launch::Stdio {
        command: python().unwrap_or_else(|| "python3".to_owned()).into(),
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
    pub(crate) fn new(flags: &[&str]) -> Option<Self> {
        Self::with(flags, |_| {}, |_| {})
    }

    pub(crate) fn with(
        flags: &[&str],
        change: impl FnOnce(&mut Server),
        tune: impl FnOnce(&mut UpstreamOptions),
    ) -> Option<Self> {
        if python().is_none() {
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

    pub(crate) fn mint(&self, tools: &[&str]) -> String {
        let ids: Vec<String> = tools.iter().map(|tool| format!("test/{tool}")).collect();
        self.mint_ids(&ids)
    }

    /// As [`Crib::mint`], for another tenant.
    pub(crate) fn mint_for(&self, tenant: &Tenant, tools: &[&str]) -> String {
        let ids: Vec<String> = tools.iter().map(|tool| format!("test/{tool}")).collect();
        self.mint_ids_for(tenant, &ids)
    }

    fn mint_ids(&self, ids: &[impl AsRef<str>]) -> String {
        self.mint_ids_for(&self.tenant, ids)
    }

    fn mint_ids_for(&self, tenant: &Tenant, ids: &[impl AsRef<str>]) -> String {
        let catalog = self.catalog.load();
        let covered = ids.iter().map(|id| {
            let id: ToolId = id.as_ref().parse().unwrap();
            let hash = catalog.tool(catalog.find(&id).unwrap()).hash();
            (id, hash)
        });
        let mut rng = StdRng::from_os_rng();
        let run_id = RunId::generate(&mut rng);
        let handle = self
            .handles
            .mint(&tenant.id, run_id, covered.collect(), &mut rng);
        handle.unwrap().reveal().to_owned()
    }

    pub(crate) async fn with_handle(
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

    /// As [`Crib::run`], by the tool's id and without arguments.
    pub(crate) async fn run_id(&self, id: &str) -> Result<CallOutcome, CallError> {
        let handle = self.mint_ids(&[id]);
        let (_, tool) = id.split_once('/').unwrap();
        self.with_handle(&handle, tool, json!({})).await
    }

    /// The one server, to be changed.
    pub(crate) fn server(&self) -> Server {
        let catalog = self.catalog.load();
        Server::clone(catalog.server(&"test".parse().unwrap()).unwrap())
    }

    /// Puts a changed server in its place.
    pub(crate) fn store(&self, server: Server) {
        let catalog = Catalog::new([Arc::new(server)]).unwrap();
        self.catalog.store(Arc::new(catalog));
    }

    /// Adds a second server, `twin`, that is like the first.
    pub(crate) fn add_twin(&self) {
        let first = self
            .catalog
            .load()
            .server(&"test".parse().unwrap())
            .unwrap()
            .clone();
        let mut twin = Server::clone(&first);
        twin.name = "twin".parse().unwrap();
        let both = Catalog::new([first, Arc::new(twin)]).unwrap();
        self.catalog.store(Arc::new(both));
    }

    pub(crate) async fn text(&self, tool: &str) -> String {
        text(&self.run(tool, json!({})).await.unwrap().result)
    }

    /// What reached the upstream, in order.
    pub(crate) fn counted(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join("count")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn count(&self, what: &str) -> usize {
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

pub(crate) fn request(handle: &str, tool: &str, arguments: Value) -> CallRequest {
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
pub(crate) fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
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
        crib.lifecycle.spawn(async move {
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

#[tokio::test(start_paused = true)]
async fn a_handle_is_good_for_five_minutes_once_and_for_its_tenant_only() {
    let crib = Crib::without_python(&[], |_| {}, |_| {});
    let handle = crib.mint(&["echo"]);
    let other = Tenant {
        id: "other".parse().unwrap(),
        ..Tenant::local()
    };
    let foreign = crib.caller.call(
        &other,
        request(&handle, "echo", json!({})),
        CallerSide::default(),
    );
    assert_eq!(foreign.await.unwrap_err().code(), "INVALID_TOKEN");
    tokio::time::advance(Duration::from_mins(5)).await;
    let late = crib
        .with_handle(&handle, "echo", json!({"text": "x"}))
        .await;
    assert_eq!(late.unwrap_err().code(), "INVALID_TOKEN");
    for unreadable in ["", "short", "not a handle at all", "aaaaaaaaa!"] {
        let error = crib
            .with_handle(unreadable, "echo", json!({}))
            .await
            .unwrap_err();
        assert_eq!(error.code(), "INVALID_TOKEN");
    }
}

#[tokio::test]
async fn a_second_use_is_refused() {
    let Some(crib) = Crib::new(&[]) else { return };
    let handle = crib.mint(&["echo"]);
    crib.with_handle(&handle, "echo", json!({"text": "x"}))
        .await
        .unwrap();
    let again = crib
        .with_handle(&handle, "echo", json!({"text": "x"}))
        .await
        .unwrap_err();
    assert_eq!(again.code(), "INVALID_TOKEN");
    // Who spent it is told how that ended.
    let CallError::AlreadyRan { ending, .. } = again else {
        panic!("{again:?}")
    };
    assert_eq!(ending, Ending::Answered);
    assert_eq!(crib.count("echo"), 1);
    crib.end().await;
}

#[tokio::test]
async fn a_call_that_the_handle_does_not_cover_names_what_it_covers() {
    let crib = Crib::without_python(&[], |_| {}, |_| {});
    let handle = crib.mint(&["echo", "pid"]);
    let check = async |request: CallRequest, expected: StepProblem| {
        let called = crib
            .caller
            .call(&crib.tenant, request, CallerSide::default())
            .await;
        match called.unwrap_err() {
            CallError::InvalidStep {
                problem, offered, ..
            } => {
                assert_eq!(problem, expected);
                let offered: Vec<_> = offered.iter().map(ToString::to_string).collect();
                assert_eq!(offered, ["test/echo", "test/pid"]);
            }
            other => panic!("{other:?}"),
        }
    };
    check(request(&handle, "env", json!({})), StepProblem::NotOffered).await;
    let elsewhere = CallRequest {
        server_name: Some("elsewhere".to_owned()),
        ..request(&handle, "echo", json!({}))
    };
    check(elsewhere, StepProblem::NotOffered).await;
    let other_run = CallRequest {
        run_id: Some("w00000000".to_owned()),
        ..request(&handle, "echo", json!({}))
    };
    check(other_run, StepProblem::OtherRun).await;
}

#[tokio::test]
async fn a_tool_that_the_tenant_may_no_longer_use_is_not_offered() {
    let mut crib = Crib::without_python(&[], |_| {}, |_| {});
    let handle = crib.mint(&["echo", "pid"]);
    crib.tenant.scope = Scope::new(&["!test/echo".to_owned()]).unwrap();
    match crib
        .with_handle(&handle, "echo", json!({"text": "x"}))
        .await
        .unwrap_err()
    {
        CallError::InvalidStep { offered, .. } => assert_eq!(offered.len(), 1),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn two_tools_of_one_name_need_their_server() {
    let Some(crib) = Crib::new(&[]) else { return };
    crib.add_twin();
    let handle = crib.mint_ids(&["test/pid", "twin/pid"]);
    let error = crib
        .with_handle(&handle, "pid", json!({}))
        .await
        .unwrap_err();
    assert!(matches!(
        error,
        CallError::InvalidStep {
            problem: StepProblem::Ambiguous,
            ..
        }
    ));
    let request = CallRequest {
        server_name: Some("twin".to_owned()),
        ..request(&handle, "pid", json!({}))
    };
    let outcome = crib
        .caller
        .call(&crib.tenant, request, CallerSide::default())
        .await
        .unwrap();
    assert_eq!(outcome.tool.to_string(), "twin/pid");
    crib.end().await;
}

#[tokio::test]
async fn a_changed_definition_is_not_run() {
    let crib = Crib::without_python(&[], |_| {}, |_| {});
    let handle = crib.mint(&["echo"]);
    let mut server = Server::clone(
        crib.catalog
            .load()
            .server(&"test".parse().unwrap())
            .unwrap(),
    );
    let input = Input::from_schema(json!({"type": "object"}));
    server.tools = vec![Tool::new(Definition::new(
        "echo".parse().unwrap(),
        "poisoned",
        input,
    ))];
    crib.catalog
        .store(Arc::new(Catalog::new([Arc::new(server)]).unwrap()));
    let error = crib
        .with_handle(&handle, "echo", json!({"text": "x"}))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "TOOL_CHANGED");
    assert!(!error.spent());
}

#[tokio::test]
async fn a_missing_secret_is_named_and_setting_it_lets_the_same_handle_run() {
    let needs_token = |server: &mut Server| {
        server.secrets.push(SecretSlot {
            name: "test.token".parse().unwrap(),
            description: Box::default(),
            optional: false,
        });
        if let Some(Launch::Stdio { env, .. }) = &mut server.launch {
            env.push(("TOKEN".into(), "{{secret:test.token}}".parse().unwrap()));
        }
    };
    let Some(crib) = Crib::with(&[], needs_token, |_| {}) else {
        return;
    };
    let handle = crib.mint(&["env"]);
    match crib
        .with_handle(&handle, "env", json!({}))
        .await
        .unwrap_err()
    {
        CallError::MissingCredentials {
            secrets,
            config,
            left,
            ..
        } => {
            assert_eq!(secrets, ["test.token".parse().unwrap()]);
            assert!(config.is_empty());
            assert_eq!(left, Some(4));
        }
        other => panic!("{other:?}"),
    }
    crib.values.set_secret("test.token", "canary-4711");
    let outcome = crib.with_handle(&handle, "env", json!({})).await.unwrap();
    let seen: HashMap<String, String> = serde_json::from_str(&text(&outcome.result)).unwrap();
    assert_eq!(seen["TOKEN"], "canary-4711");
    let allowed = [
        "PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TOKEN",
    ];
    for name in seen.keys() {
        assert!(allowed.contains(&name.as_str()), "{name} was passed on");
    }
    crib.end().await;
}

#[tokio::test]
async fn another_secret_starts_another_session() {
    let optional = |server: &mut Server| {
        server.secrets.push(SecretSlot {
            name: "test.token".parse().unwrap(),
            description: Box::default(),
            optional: true,
        });
        if let Some(Launch::Stdio { env, .. }) = &mut server.launch {
            env.push(("TOKEN".into(), "{{secret:test.token}}".parse().unwrap()));
        }
    };
    let Some(crib) = Crib::with(&[], optional, |_| {}) else {
        return;
    };
    let first = crib.text("pid").await;
    assert_eq!(crib.text("pid").await, first);
    crib.values.set_secret("test.token", "rotated");
    assert_ne!(crib.text("pid").await, first);
    until("the old session is gone", || !runs(&first)).await;
    crib.end().await;
}

#[tokio::test]
async fn tenants_share_no_process() {
    let Some(mut crib) = Crib::new(&[]) else {
        return;
    };
    let (first, folder) = (crib.text("pid").await, crib.text("cwd").await);
    assert!(folder.ends_with("/workspaces/local"), "{folder}");
    crib.tenant.id = "other".parse().unwrap();
    assert_ne!(crib.text("pid").await, first);
    assert!(crib.text("cwd").await.ends_with("/workspaces/other"));
    crib.end().await;
}

#[tokio::test]
async fn a_direct_call_is_checked_like_any_other() {
    let Some(crib) = Crib::new(&[]) else { return };
    let direct = async |tool: &str, arguments: Value| {
        let tool = tool.parse().unwrap();
        let side = CallerSide::default();
        crib.caller
            .call_directly(&crib.tenant, &tool, arguments, side)
            .await
    };
    let outcome = direct("test/echo", json!({"text": "direct"}))
        .await
        .unwrap();
    assert_eq!(text(&outcome.result), "direct");
    assert_eq!(outcome.run_id, None);
    let wrong = direct("test/echo", json!({})).await.unwrap_err();
    assert!(matches!(
        wrong,
        CallError::InvalidArguments { left: None, .. }
    ));
    let unknown = direct("test/nothing-like-it", json!({})).await.unwrap_err();
    assert!(matches!(unknown, CallError::UnknownTool { .. }));
    crib.end().await;
}

#[tokio::test]
async fn an_upstreams_refusal_is_its_result() {
    let Some(crib) = Crib::new(&[]) else { return };
    let result = crib.run("refuse", json!({})).await.unwrap().result;
    let expected = json!({
        "content": [
            {"type": "text", "text": "MCP error -32602: no such thing"},
            {"type": "text", "text": "{\"why\":\"test\"}"},
        ],
        "isError": true,
    });
    assert_eq!(Value::Object(result), expected);
    crib.end().await;
}

#[tokio::test]
async fn all_pages_of_a_tool_list_are_read_and_a_liar_is_not_asked_for_ever() {
    let Some(crib) = Crib::new(&[]) else { return };
    let server = crib
        .catalog
        .load()
        .server(&"test".parse().unwrap())
        .unwrap()
        .clone();
    let listed = crib
        .caller
        .upstreams()
        .list_tools(&crib.tenant, &server, &*crib.values)
        .await;
    let listed = listed.unwrap();
    assert_eq!(listed.len(), 6);
    assert_eq!(
        listed[5],
        json!({"name": "tool-2-1", "inputSchema": {"type": "object"}, "x-more": 2})
    );
    crib.end().await;
    let Some(liar) = Crib::new(&["--liar"]) else {
        return;
    };
    let server = liar
        .catalog
        .load()
        .server(&"test".parse().unwrap())
        .unwrap()
        .clone();
    let listed = liar
        .caller
        .upstreams()
        .list_tools(&liar.tenant, &server, &*liar.values)
        .await;
    assert_eq!(listed.unwrap().len(), 4);
    liar.end().await;
}

#[tokio::test]
async fn progress_reaches_the_caller_who_asked_for_it() {
    let Some(crib) = Crib::new(&[]) else { return };
    let (sender, mut steps) = tokio::sync::mpsc::channel(8);
    let side = CallerSide {
        progress: Some(sender),
        ..CallerSide::default()
    };
    let request = request(
        &crib.mint(&["progress"]),
        "progress",
        json!({"steps": 3, "pause": 0.02}),
    );
    let outcome = crib.caller.call(&crib.tenant, request, side).await.unwrap();
    assert_eq!(text(&outcome.result), "done");
    for number in 1..=3 {
        let step = steps.recv().await.unwrap();
        assert_eq!((step.progress, step.total), (f64::from(number), Some(9.0)));
        assert_eq!(step.message, Some(format!("step {number}")));
    }
    crib.end().await;
}

#[tokio::test]
async fn a_server_of_the_modern_era_is_found_out_and_remembered() {
    let Some(crib) = Crib::new(&["--modern"]) else {
        return;
    };
    assert_eq!(
        text(&crib.run("echo", json!({"text": "m"})).await.unwrap().result),
        "m"
    );
    assert_eq!(crib.count("start"), 2);
    crib.caller
        .upstreams()
        .restart(&crib.tenant.id, &"test".parse().unwrap())
        .await;
    assert_eq!(
        text(&crib.run("echo", json!({"text": "n"})).await.unwrap().result),
        "n"
    );
    assert_eq!(crib.count("start"), 3);
    crib.end().await;
}

#[tokio::test]
async fn nothing_starts_while_the_program_stops() {
    let Some(crib) = Crib::new(&[]) else { return };
    let pid = crib.text("pid").await;
    crib.lifecycle.stop();
    let error = crib.run("pid", json!({})).await.unwrap_err();
    assert_eq!(error.code(), "SHUTTING_DOWN");
    assert!(!error.spent());
    assert!(crib.lifecycle.wait(Duration::from_secs(5)).await);
    assert!(!runs(&pid));
}
