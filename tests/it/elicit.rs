//! Upstreams that ask for input while a tool runs: in the modern era with a sealed `requestState`,
//! in the legacy one within the call.

use std::time::Duration;

use serde_json::{Map, Value, json};
use toolcrib::call::{
    Askable, CallError, CallOutcome, CallRequest, CallerSide, Ending, InputAnswer,
};
use toolcrib::domain::{Tenant, ToolId};

use crate::call::{Crib, request, text, until};
use crate::gateway::{NO_MODEL, folder};
use crate::program::{Folder, Program, http, root};

const FORM: Askable = Askable {
    form: true,
    url: false,
};

fn side(askable: Option<Askable>) -> CallerSide {
    CallerSide {
        askable,
        ..CallerSide::default()
    }
}

fn other() -> Tenant {
    Tenant {
        id: "other".parse().unwrap(),
        ..Tenant::local()
    }
}

/// A run that was asked: what to retry it with.
struct Run {
    request: CallRequest,
    answer: InputAnswer,
}

impl Crib {
    async fn ask(&self, tool: &str, arguments: Value) -> Run {
        let request = request(&self.mint(&[tool]), tool, arguments);
        let call = self
            .caller
            .call(&self.tenant, request.clone(), side(Some(FORM)));
        let asked = call.await.unwrap();
        assert!(asked.run_id.is_some());
        Run::of(request, &asked)
    }

    async fn retry(&self, run: &Run) -> Result<CallOutcome, CallError> {
        self.retry_for(&self.tenant, run).await
    }

    async fn retry_for(&self, tenant: &Tenant, run: &Run) -> Result<CallOutcome, CallError> {
        let side = CallerSide {
            answer: Some(run.answer.clone()),
            ..side(Some(FORM))
        };
        self.caller.call(tenant, run.request.clone(), side).await
    }
}

impl Run {
    fn of(request: CallRequest, asked: &CallOutcome) -> Self {
        assert!(asked.asks, "{asked:?}");
        assert_eq!(asked.result["resultType"], "input_required");
        let questions = asked.result["inputRequests"].as_object().unwrap();
        let accept = json!({"action": "accept", "content": {"name": "Ada"}});
        let responses = questions.keys().map(|key| (key.clone(), accept.clone()));
        Self {
            request,
            answer: InputAnswer {
                state: asked.result["requestState"].as_str().unwrap().to_owned(),
                responses: responses.collect::<Map<_, _>>(),
            },
        }
    }

    fn change(&self, change: impl FnOnce(&mut CallRequest)) -> Self {
        let mut request = self.request.clone();
        change(&mut request);
        Self {
            request,
            answer: self.answer.clone(),
        }
    }
}

/// What the upstream was sent: in the modern era with the retry, in the legacy one as answers.
fn seen(outcome: &CallOutcome) -> Value {
    serde_json::from_str(&text(&outcome.result)).unwrap()
}

#[tokio::test]
async fn a_modern_upstream_gets_the_answer_and_its_own_state_back() {
    let Some(crib) = Crib::new(&["--modern"]) else {
        return;
    };
    let run = crib.ask("ask", json!({"b": 1, "a": [2]})).await;
    assert!(!run.answer.state.contains('1') || 60 < run.answer.state.len());
    let outcome = crib.retry(&run).await.unwrap();
    assert!(!outcome.asks && outcome.run_id.is_some());
    let accept = json!({"action": "accept", "content": {"name": "Ada"}});
    assert_eq!(
        seen(&outcome),
        json!({"state": "1", "responses": {"who": accept}, "arguments": {"b": 1, "a": [2]}})
    );
    assert_eq!(crib.count("ask"), 2);
    crib.end().await;
}

#[tokio::test]
async fn a_legacy_upstream_gets_the_answer_within_its_call() {
    let Some(crib) = Crib::new(&[]) else { return };
    let run = crib.ask("twice", json!({})).await;
    let again = Run::of(run.request.clone(), &crib.retry(&run).await.unwrap());
    assert_ne!(run.answer.state, again.answer.state);
    let outcome = crib.retry(&again).await.unwrap();
    let accept = json!({"action": "accept", "content": {"name": "Ada"}});
    assert_eq!(seen(&outcome), json!([accept, accept]));
    assert_eq!(crib.counted(), ["start", "twice", "answered"]);
    crib.end().await;
}

#[tokio::test]
async fn a_refusal_of_the_person_is_passed_on() {
    let Some(crib) = Crib::new(&[]) else { return };
    let mut run = crib.ask("ask", json!({})).await;
    let decline = json!({"question": {"action": "decline"}});
    run.answer.responses = decline.as_object().unwrap().clone();
    assert_eq!(
        seen(&crib.retry(&run).await.unwrap()),
        json!([{"action": "decline"}])
    );
    crib.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_retries_one_is_let_through() {
    for flags in [&["--modern"][..], &[]] {
        let Some(crib) = Crib::new(flags) else { return };
        let run = crib.ask("ask", json!({})).await;
        let retries = (0..16).map(|_| crib.retry(&run));
        let mut won = 0;
        for retry in futures::future::join_all(retries).await {
            match retry {
                Ok(outcome) => won += usize::from(!outcome.asks),
                Err(error) => assert!(matches!(error, CallError::InvalidState), "{error:?}"),
            }
        }
        assert_eq!(won, 1, "{flags:?}");
        let late = crib.retry(&run).await.unwrap_err();
        assert_eq!(late.code(), "INVALID_TOKEN");
        crib.end().await;
    }
}

#[tokio::test]
async fn a_state_fits_no_other_call() {
    for flags in [&["--modern"][..], &[]] {
        let Some(crib) = Crib::new(flags) else { return };
        let run = crib.ask("ask", json!({"a": 1, "b": "x"})).await;
        let calls = crib.count("ask");
        let mut forged = run.change(|_| {});
        let last = forged.answer.state.pop().unwrap();
        forged
            .answer
            .state
            .push(if last == 'A' { 'B' } else { 'A' });
        let other_handle = crib.mint(&["ask"]);
        let wrong = [
            ("forged", forged),
            (
                "arguments",
                run.change(|it| it.arguments = Some(json!({"a": 2, "b": "x"}))),
            ),
            ("no arguments", run.change(|it| it.arguments = None)),
            ("tool", run.change(|it| it.tool_name = "insist".to_owned())),
            (
                "server",
                run.change(|it| it.server_name = Some("twin".to_owned())),
            ),
            (
                "run",
                run.change(|it| it.run_id = Some("w00000000".to_owned())),
            ),
            ("handle", run.change(|it| it.handle = other_handle)),
            ("no handle", run.change(|it| it.handle = String::new())),
        ];
        for (what, wrong) in wrong {
            let refused = crib.retry(&wrong).await.unwrap_err();
            assert!(
                matches!(refused, CallError::InvalidState),
                "{what}: {refused:?}"
            );
        }
        let foreign = crib.retry_for(&other(), &run).await.unwrap_err();
        assert!(matches!(foreign, CallError::InvalidState), "{foreign:?}");
        let tool: ToolId = "test/ask".parse().unwrap();
        let direct = crib.caller.call_directly(
            &crib.tenant,
            &tool,
            json!({"a": 1, "b": "x"}),
            CallerSide {
                answer: Some(run.answer.clone()),
                ..side(Some(FORM))
            },
        );
        assert!(matches!(direct.await.unwrap_err(), CallError::InvalidState));
        assert_eq!(crib.count("ask"), calls);
        // The order of keys, and the form of the arguments, are no difference.
        let text = Some(Value::from(r#"{"b": "x", "a": 1}"#));
        let same = run.change(|it| it.arguments = text);
        assert!(!crib.retry(&same).await.unwrap().asks);
        crib.end().await;
    }
}

#[tokio::test]
async fn wrong_states_lock_a_guesser_out() {
    let Some(crib) = Crib::new(&["--modern"]) else {
        return;
    };
    let mut run = crib.ask("ask", json!({})).await;
    run.answer.state = "guess".to_owned();
    let mut codes = Vec::new();
    for _ in 0..=toolcrib::handles::MISSES_MAX {
        codes.push(crib.retry(&run).await.unwrap_err().code());
    }
    assert_eq!(codes.first(), Some(&"INVALID_TOKEN"));
    assert_eq!(codes.last(), Some(&"RATE_LIMITED"));
    crib.end().await;
}

#[tokio::test]
async fn a_tool_that_changed_or_a_session_that_ended_is_not_sent_to() {
    let Some(crib) = Crib::new(&["--modern"]) else {
        return;
    };
    let run = crib.ask("ask", json!({})).await;
    let server = &"test".parse().unwrap();
    crib.caller
        .upstreams()
        .restart(&crib.tenant.id, server)
        .await;
    let refused = crib.retry(&run).await.unwrap_err();
    assert!(matches!(refused, CallError::InvalidState), "{refused:?}");
    let run = crib.ask("ask", json!({})).await;
    let mut changed = crib.server();
    changed.tools.retain(|tool| tool.name().as_str() != "ask");
    crib.store(changed);
    let refused = crib.retry(&run).await.unwrap_err();
    assert!(matches!(refused, CallError::InvalidState), "{refused:?}");
    assert_eq!(crib.count("ask"), 2);
    crib.end().await;
}

#[tokio::test]
async fn an_answer_that_is_none_can_be_mended() {
    let Some(crib) = Crib::new(&[]) else { return };
    let mut run = crib.ask("ask", json!({})).await;
    let good = std::mem::take(&mut run.answer.responses);
    for wrong in [json!({}), json!({"question": {"action": "perhaps"}})] {
        run.answer.responses = wrong.as_object().unwrap().clone();
        let refused = crib.retry(&run).await.unwrap_err();
        assert_eq!(refused.code(), "INVALID_ARGUMENTS", "{refused:?}");
    }
    run.answer.responses = good;
    assert!(!crib.retry(&run).await.unwrap().asks);
    crib.end().await;
}

#[tokio::test]
async fn an_upstream_is_told_what_the_caller_declared_and_no_more() {
    let both = Askable {
        form: true,
        url: true,
    };
    for flags in [&["--modern"][..], &[]] {
        let Some(crib) = Crib::new(flags) else { return };
        for (askable, expected) in [
            (None, json!({})),
            (Some(Askable::default()), json!({})),
            (Some(FORM), json!({"elicitation": {"form": {}}})),
            (Some(both), json!({"elicitation": {"form": {}, "url": {}}})),
            (None, json!({})),
        ] {
            let request = request(&crib.mint(&["declared"]), "declared", json!({}));
            let call = crib.caller.call(&crib.tenant, request, side(askable));
            assert_eq!(seen(&call.await.unwrap()), expected, "{flags:?}");
        }
        // One session for each kind of caller. The modern era is tried second.
        let starts = 3 * (1 + flags.len());
        assert_eq!(crib.count("start"), starts, "{flags:?}");
        crib.end().await;
    }
}

#[tokio::test]
async fn nothing_hangs_where_nobody_can_be_asked() {
    let Some(crib) = Crib::new(&[]) else { return };
    let declined = crib.run("twice", json!({})).await.unwrap();
    let decline = json!({"action": "decline"});
    assert_eq!(seen(&declined), json!([decline, decline]));
    crib.end().await;
    let Some(crib) = Crib::new(&["--modern"]) else {
        return;
    };
    let refused = crib.run("ask", json!({})).await.unwrap_err();
    assert_eq!(refused.code(), "UPSTREAM_UNAVAILABLE", "{refused:?}");
    assert!(refused.spent());
    let request = request(&crib.mint(&["sample"]), "sample", json!({}));
    let call = crib.caller.call(&crib.tenant, request, side(Some(FORM)));
    let refused = call.await.unwrap_err();
    let chain = toolcrib::telemetry::Chain(&refused).to_string();
    assert!(chain.contains("sampling/createMessage"), "{chain}");
    crib.end().await;
}

#[tokio::test]
async fn a_legacy_question_among_several_calls_is_asked_of_nobody() {
    let Some(crib) = Crib::new(&[]) else { return };
    let other = request(&crib.mint(&["slow"]), "slow", json!({"seconds": 2}));
    let caller = crib.caller.clone();
    let tenant = crib.tenant.clone();
    let slow = crib
        .lifecycle
        .spawn(async move { caller.call(&tenant, other, side(Some(FORM))).await });
    until("the other call runs", || crib.count("slow") == 1).await;
    let request = request(&crib.mint(&["ask"]), "ask", json!({}));
    let call = crib.caller.call(&crib.tenant, request, side(Some(FORM)));
    assert_eq!(seen(&call.await.unwrap()), json!([{"action": "decline"}]));
    assert_eq!(text(&slow.await.unwrap().unwrap().result), "late");
    crib.end().await;
}

#[tokio::test]
async fn an_upstream_that_asks_for_ever_is_ended() {
    let Some(crib) = Crib::new(&["--modern"]) else {
        return;
    };
    let mut run = crib.ask("insist", json!({})).await;
    for _ in 0..9 {
        run = Run::of(run.request.clone(), &crib.retry(&run).await.unwrap());
    }
    let refused = crib.retry(&run).await.unwrap_err();
    assert_eq!(refused.code(), "UPSTREAM_UNAVAILABLE", "{refused:?}");
    assert_eq!(crib.count("insist"), 11);
    crib.end().await;
}

#[tokio::test]
async fn the_same_handle_without_an_answer_is_told_that_it_was_asked() {
    let Some(crib) = Crib::new(&[]) else { return };
    let run = crib.ask("ask", json!({})).await;
    let again = |ending| {
        let call = crib
            .caller
            .call(&crib.tenant, run.request.clone(), side(Some(FORM)));
        async move {
            match call.await.unwrap_err() {
                CallError::AlreadyRan { ending: found, .. } => assert_eq!(found, ending),
                other => panic!("{other:?}"),
            }
        }
    };
    Box::pin(again(Ending::Asked)).await;
    crib.retry(&run).await.unwrap();
    Box::pin(again(Ending::Answered)).await;
    crib.end().await;
}

#[tokio::test]
async fn questions_that_nobody_answers_are_bounded_and_end_with_the_program() {
    let Some(crib) = Crib::new(&[]) else { return };
    let mut parked = 0;
    for _ in 0..17 {
        let request = request(&crib.mint(&["ask"]), "ask", json!({}));
        let call = crib.caller.call(&crib.tenant, request, side(Some(FORM)));
        // While one call waits, a question on its session is about none for certain.
        parked += usize::from(call.await.unwrap().asks);
    }
    assert_eq!(parked, 1);
    crib.lifecycle.stop();
    assert!(crib.lifecycle.wait(Duration::from_secs(5)).await);
    crib.end().await;
}

#[tokio::test]
async fn a_direct_call_is_asked_too() {
    for flags in [&["--modern"][..], &[]] {
        let Some(crib) = Crib::new(flags) else { return };
        let tool: ToolId = "test/ask".parse().unwrap();
        let call = |answer| {
            let side = CallerSide {
                answer,
                ..side(Some(FORM))
            };
            crib.caller
                .call_directly(&crib.tenant, &tool, json!({"x": 1}), side)
        };
        let asked = call(None).await.unwrap();
        assert_eq!(asked.run_id, None);
        let run = Run::of(request("", "ask", json!({})), &asked);
        assert!(!call(Some(run.answer.clone())).await.unwrap().asks);
        let late = call(Some(run.answer)).await.unwrap_err();
        assert!(matches!(late, CallError::InvalidState), "{late:?}");
        crib.end().await;
    }
}

const MODERN: &str = "2026-07-28";
const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// All surfaces over two servers that ask, one of each era.
fn asking_folder() -> Folder {
    let folder = folder(
        "[server]\nsurfaces = [\"connected\", \"gateway\", \"discovery\"]\n\
         [tools.search]\ntoolkit = \"crib\"\n[catalog]\nbuiltin = false\n",
    );
    let tool =
        |name: &str, text: &str| json!({ "name": name, "description": text, "arguments": [] });
    let server = |name: &str, flags: &[&str]| {
        let script = root().join("tests/it/upstream.py").display().to_string();
        let args: Vec<&str> = [&*script]
            .into_iter()
            .chain(flags.iter().copied())
            .collect();
        json!({ "name": name, "title": name,
            "launch": { "stdio": { "command": "python3", "args": args, "env": {} } },
            "tools": [tool("ask", &format!("Ask the {name} who you are.")),
                tool("meta", &format!("Look at the metadata of the {name}."))] })
    };
    let lines = [server("heron", &["--modern"]), server("parrot", &[])];
    let path = folder.path().join("asking.jsonl");
    std::fs::write(&path, lines.map(|line| line.to_string()).join("\n")).unwrap();
    let imported = folder.run(&["catalog", "import", "normal-form", path.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&imported.stderr).into_owned();
    assert!(imported.status.success(), "{said}");
    folder
}

/// `tools/call` of a client of the modern era that can fill in forms.
async fn call(program: &Program, path: &str, tool: &str, more: Value) -> Value {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
    });
    let mut params = json!({ "name": tool });
    for (key, value) in more.as_object().unwrap() {
        match key.strip_prefix("_meta.") {
            Some(key) => meta[key] = value.clone(),
            None => params[key] = value.clone(),
        }
    }
    params["_meta"] = meta;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = http()
        .post(format!("{}{path}", program.url))
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", MODERN)
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool)
        .body(body.to_string());
    let response = request.send().await.unwrap();
    let (status, text) = (response.status(), response.text().await.unwrap());
    let message: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status}: {text}"));
    assert!(message.get("error").is_none(), "{message}");
    message["result"].clone()
}

/// Asks, answers, and gives the text of the result.
async fn ask_and_answer(program: &Program, path: &str, tool: &str, arguments: Value) -> String {
    let asked = call(program, path, tool, json!({ "arguments": arguments })).await;
    assert_eq!(asked["resultType"], "input_required", "{path}: {asked}");
    let questions = asked["inputRequests"].as_object().unwrap();
    let (key, question) = questions.iter().next().unwrap();
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["message"], "Who are you?");
    let accept = json!({ key: { "action": "accept", "content": { "name": "Ada" } } });
    let retry = json!({ "arguments": arguments, "inputResponses": accept,
        "requestState": asked["requestState"] });
    let result = call(program, path, tool, retry.clone()).await;
    assert_eq!(result["resultType"], "complete", "{path}: {result}");
    let again = call(program, path, tool, retry).await;
    let refused = &again["structuredContent"]["error"];
    assert_eq!(refused, "INVALID_TOKEN", "{path}: {again}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn through_every_surface_a_client_answers_what_a_tool_asks() {
    let folder = asking_folder();
    let program = Program::start(&folder, &[NO_MODEL]);
    for server in ["heron", "parrot"] {
        let query = format!("Ask the {server} who you are");
        let found = call(
            &program,
            "/connected",
            "search_tools",
            json!({ "arguments": { "query": query } }),
        );
        let found = found.await["structuredContent"].clone();
        let run = json!({ "capability_token": found["capability_token"], "tool_name": "ask",
            "server_name": server, "arguments": {} });
        let name = format!("{server}__ask");
        let execute = json!({ "name": name, "arguments": {} });
        for (path, tool, arguments) in [
            ("/connected", "run_tool", run),
            ("/gateway", &*name, json!({})),
            ("/gateway", "crib__execute_tool", execute.clone()),
            ("/discovery", "execute_tool", execute),
        ] {
            let text = ask_and_answer(&program, path, tool, arguments).await;
            assert!(text.contains(r#""name": "Ada""#), "{path}: {text}");
        }
    }
    let legacy = program.call(None, "search_tools", json!({ "query": "ask the parrot" }));
    let found = legacy.await["structuredContent"].clone();
    let run = json!({ "capability_token": found["capability_token"], "tool_name": "ask",
        "server_name": "parrot", "arguments": {} });
    let declined = program.call(None, "run_tool", run).await;
    let text = declined["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("decline"), "{declined}");
    let outcomes = program.audited(1);
    let counted = |what: &str| outcomes.iter().filter(|outcome| *outcome == what).count();
    assert_eq!(
        (counted("INPUT_REQUIRED"), counted("INVALID_TOKEN")),
        (8, 8)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_goes_to_the_upstream_and_into_the_audit_unless_it_is_malformed() {
    let folder = asking_folder();
    let program = Program::start(&folder, &[NO_MODEL]);
    for server in ["heron", "parrot"] {
        let name = format!("{server}__meta");
        let sent = |meta: Value| {
            let (program, name) = (&program, name.clone());
            async move {
                let result = call(program, "/gateway", &name, meta).await;
                let text = result["content"][0]["text"].as_str().unwrap().to_owned();
                serde_json::from_str::<Value>(&text).unwrap()
            }
        };
        let whole = json!({ "_meta.traceparent": TRACE, "_meta.tracestate": "vendor=1",
            "_meta.own": "ours" });
        let seen = sent(whole).await;
        assert_eq!(
            (&seen["traceparent"], &seen["tracestate"]),
            (&TRACE.into(), &"vendor=1".into())
        );
        assert_eq!(seen.get("own"), None, "{seen}");
        let wrong = json!({ "_meta.traceparent": "00-xyz", "_meta.tracestate": "vendor=1" });
        let seen = sent(wrong).await;
        assert!(
            seen.get("traceparent").is_none() && seen.get("tracestate").is_none(),
            "{seen}"
        );
    }
    program.audited(4);
    let log = program.log();
    let audit = || log.lines().filter(|line| line.contains(" audit: "));
    let traced = r#"trace_id="0af7651916cd43dd8448eb211c80319c""#;
    assert_eq!(
        audit().filter(|line| line.contains(traced)).count(),
        2,
        "{log}"
    );
    assert_eq!(
        audit()
            .filter(|line| line.contains(r#"trace_id="-""#))
            .count(),
        2,
        "{log}"
    );
    let page = http()
        .get(format!("{}/metrics", program.admin))
        .send()
        .await
        .unwrap();
    let page = page.text().await.unwrap();
    let counted = r#"mcp_client_operation_duration_seconds_count{mcp_method_name="tools/call",network_transport="pipe",error_type="ok"} 4"#;
    assert!(page.contains(counted), "{page}");
}
