//! What the relay adds: one warm stdio upstream, called directly by rmcp and through `Caller`, and
//! many calls at one time.
//!
//! The upstream is `tests/it/upstream.py`; without Python nothing is measured.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a bench stops at the first thing that is wrong, and says what it measured"
)]

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use arc_swap::ArcSwap;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService, serve_client};
use secrecy::SecretString;
use serde_json::json;
use tokio::process::{Child, Command};
use tokio::runtime::Runtime;
use toolcrib::call::{CallRequest, Caller, CallerSide, UpstreamOptions, Upstreams};
use toolcrib::domain::{
    Catalog, Definition, Input, Launch, ReadSettingError, RunId, Server, SettingName, Settings,
    Tenant, TenantId, Tool, ToolId,
};
use toolcrib::handles::Handles;
use toolcrib::lifecycle::Lifecycle;

/// Calls at one time in the throughput run.
const AT_ONCE: u64 = 64;

struct Nothing;

impl Settings for Nothing {
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

fn script() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/upstream.py")
}

fn python() -> Option<String> {
    let asked = std::process::Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output();
    let path = String::from_utf8(asked.ok()?.stdout).ok()?;
    Some(path.trim().to_owned()).filter(|path| !path.is_empty())
}

/// The caller and handles over one upstream.
struct Relay {
    caller: Caller,
    handles: Arc<Handles>,
    catalog: Arc<ArcSwap<Catalog>>,
    tenant: Tenant,
    id: ToolId,
}

impl Relay {
    fn new(python: &str) -> Self {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        let input = Input::from_schema(schema);
        let tool = Tool::new(Definition::new("echo".parse().unwrap(), "", input));
        let mut server = Server::new("test".parse().unwrap(), vec![tool]);
        server.launch = Some(Launch::Stdio {
            command: python.into(),
            args: vec![script().display().to_string().parse().unwrap()],
            env: vec![],
        });
        let catalog = Catalog::new([Arc::new(server)]).unwrap();
        let catalog = Arc::new(ArcSwap::from_pointee(catalog));
        let handles = Arc::new(Handles::new(1_000_000));
        let upstreams = Upstreams::new(UpstreamOptions::default(), Lifecycle::new());
        Self {
            caller: Caller::new(
                catalog.clone(),
                handles.clone(),
                Arc::new(Nothing),
                upstreams,
            ),
            handles,
            catalog,
            tenant: Tenant::local(),
            id: "test/echo".parse().unwrap(),
        }
    }

    async fn call(&self) {
        let catalog = self.catalog.load();
        let hash = catalog.tool(catalog.find(&self.id).unwrap()).hash();
        let mut rng = StdRng::from_os_rng();
        let run_id = RunId::generate(&mut rng);
        let covered = vec![(self.id.clone(), hash)];
        let handle = self
            .handles
            .mint(&self.tenant.id, run_id, covered, &mut rng);
        let request = CallRequest {
            handle: handle.unwrap().reveal().to_owned(),
            tool_name: "echo".to_owned(),
            server_name: None,
            arguments: Some(json!({"text": "x"})),
            run_id: None,
        };
        self.caller
            .call(&self.tenant, request, CallerSide::default())
            .await
            .unwrap();
    }
}

async fn direct(python: &str) -> (Child, RunningService<RoleClient, ()>) {
    let mut child = Command::new(python)
        .arg(script())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let streams = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let client = serve_client((), streams).await.unwrap();
    (child, client)
}

fn relay(criterion: &mut Criterion) {
    let Some(python) = python() else {
        println!("skipped: no python3");
        return;
    };
    let runtime = Runtime::new().unwrap();
    let (_child, client) = runtime.block_on(direct(&python));
    let relay = Relay::new(&python);
    runtime.block_on(relay.call());
    let mut group = criterion.benchmark_group("relay");
    group.bench_function("one call, rmcp alone", |bench| {
        bench.iter(|| {
            let arguments = json!({"text": "x"}).as_object().unwrap().clone();
            let params = CallToolRequestParams::new("echo").with_arguments(arguments);
            runtime.block_on(client.call_tool(params)).unwrap()
        });
    });
    group.bench_function("one call, through Caller", |bench| {
        bench.iter(|| runtime.block_on(relay.call()));
    });
    group.throughput(Throughput::Elements(AT_ONCE));
    group.bench_function("64 calls at one time, through Caller", |bench| {
        bench.iter(|| {
            let calls = (0..AT_ONCE).map(|_| relay.call());
            runtime.block_on(futures::future::join_all(calls))
        });
    });
    group.finish();
    runtime.block_on(relay.caller.upstreams().close());
}

criterion_group!(benches, relay);
criterion_main!(benches);
