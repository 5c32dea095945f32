//! Scripts of a folder, run for real.

use std::path::Path;

use serde_json::json;

use super::*;
use crate::call::CallerSide;
use crate::domain::Tenant;
use crate::registry::{Arguments, Asker};

fn write(folder: &Path, name: &str, script: &str, definition: &Value) {
    let program = folder.join(name);
    // Written under another name first: a file that is open for writing cannot be started.
    let made = folder.join("made");
    std::fs::write(&made, script).unwrap();
    std::fs::set_permissions(&made, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(made, &program).unwrap();
    std::fs::write(folder.join(format!("{name}.json")), definition.to_string()).unwrap();
}

fn definition(name: &str, pass: &str) -> Value {
    json!({
        "name": name, "description": "Says it.", "pass": pass, "keywords": ["say"],
        "inputSchema": { "type": "object", "properties": {
            "text": { "type": "string" }, "n": { "type": "integer" } } },
    })
}

fn limits() -> ScriptLimits {
    ScriptLimits {
        run_max: Duration::from_secs(20),
        output_bytes_max: 1_000,
    }
}

async fn call(
    provider: &ScriptFolder,
    name: &str,
    arguments: Value,
) -> Result<Option<ToolOutput>, ProvideError> {
    let Value::Object(map) = arguments else {
        panic!("arguments are an object");
    };
    let call = Call {
        name: name.to_owned(),
        arguments: Arguments::from(map),
        asker: Asker::of(Arc::new(Tenant::local())),
        side: CallerSide::default(),
    };
    provider.call(call).await
}

#[tokio::test]
async fn a_script_gets_its_arguments_as_they_are_and_a_clean_environment() {
    let folder = tempfile::tempdir().unwrap();
    let show = "#!/bin/sh\nfor a in \"$@\"; do echo \"[$a]\"; done\nenv | sort | cut -d= -f1 | tr '\\n' ' '\n";
    write(
        folder.path(),
        "show",
        show,
        &definition("show", "arguments"),
    );
    write(
        folder.path(),
        "give",
        "#!/bin/sh\ncat\n",
        &definition("give", "stdin"),
    );
    let provider = ScriptFolder::new("own", folder.path(), limits()).unwrap();
    let text = "; touch x `id` $(id) \"'";
    let output = call(&provider, "show", json!({ "text": text, "n": 3 }))
        .await
        .unwrap()
        .unwrap();
    let result = output.into_result();
    let said = result["content"][0]["text"].as_str().unwrap();
    let (options, environment) = said.rsplit_once("]\n").unwrap();
    assert_eq!(options, format!("[--text={text}]\n[--n=3"));
    let own: Vec<&str> = environment
        .split_whitespace()
        .filter(|name| *name != "_")
        .collect();
    assert_eq!(own, ["LANG", "PATH", "PWD"]);
    let output = call(&provider, "give", json!({ "n": 3 }))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(output, ToolOutput::json(json!({ "n": 3 })));
    let unknown = call(&provider, "show", json!({ "other": 1 })).await;
    assert!(
        matches!(unknown, Err(ProvideError::Arguments(_))),
        "{unknown:?}"
    );
    assert!(call(&provider, "none", json!({})).await.unwrap().is_none());
}

#[tokio::test]
async fn what_changes_in_the_folder_is_seen_at_the_next_look() {
    let folder = tempfile::tempdir().unwrap();
    let provider = ScriptFolder::new("own", folder.path(), limits()).unwrap();
    let names = async || {
        let list = provider.tools().await.unwrap();
        list.iter()
            .map(|tool| tool.name().to_owned())
            .collect::<Vec<_>>()
    };
    assert!(names().await.is_empty());
    write(
        folder.path(),
        "a",
        "#!/bin/sh\necho 1\n",
        &definition("first", "arguments"),
    );
    std::fs::write(folder.path().join("b"), "not to be started").unwrap();
    std::fs::write(
        folder.path().join("b.json"),
        definition("b", "arguments").to_string(),
    )
    .unwrap();
    std::fs::write(folder.path().join("c.json"), "{").unwrap();
    assert_eq!(names().await, ["first"]);
    write(
        folder.path(),
        "a",
        "#!/bin/sh\necho 1\n",
        &definition("another", "arguments"),
    );
    assert_eq!(names().await, ["another"]);
    std::fs::remove_file(folder.path().join("a")).unwrap();
    assert!(names().await.is_empty());
    drop(folder);
    assert!(matches!(
        provider.tools().await,
        Err(ProvideError::Unavailable { .. })
    ));
}

#[tokio::test]
async fn a_script_is_held_to_its_limits_with_all_that_it_starts() {
    let folder = tempfile::tempdir().unwrap();
    let slow = "#!/bin/sh\nsleep 300 &\necho $! > child\nwait\n";
    let chatty = |bytes: usize| format!("#!/bin/sh\nhead -c {bytes} /dev/zero | tr '\\0' x\n");
    write(
        folder.path(),
        "slow",
        slow,
        &definition("slow", "arguments"),
    );
    write(
        folder.path(),
        "most",
        &chatty(1_000),
        &definition("most", "arguments"),
    );
    write(
        folder.path(),
        "over",
        &chatty(1_001),
        &definition("over", "arguments"),
    );
    write(
        folder.path(),
        "fails",
        "#!/bin/sh\necho why >&2\nexit 3\n",
        &definition("fails", "arguments"),
    );
    let provider = ScriptFolder::new("own", folder.path(), limits()).unwrap();
    let run = async |name: &str| call(&provider, name, json!({})).await.unwrap().unwrap();
    assert_eq!(run("most").await, ToolOutput::text("x".repeat(1_000)));
    assert!(run("over").await.is_error());
    assert_eq!(
        run("fails").await,
        ToolOutput::error("the script ended with exit code 3\nwhy")
    );
    let short = ScriptLimits {
        run_max: Duration::from_secs(2),
        ..limits()
    };
    let provider = ScriptFolder::new("own", folder.path(), short).unwrap();
    let ended = call(&provider, "slow", json!({})).await;
    assert!(
        matches!(ended, Err(ProvideError::TimedOut { .. })),
        "{ended:?}"
    );
    let child = std::fs::read_to_string(folder.path().join("child")).unwrap();
    let state = std::fs::read_to_string(format!("/proc/{}/stat", child.trim()));
    // Gone, or dead and not yet collected by whoever adopted it.
    assert!(
        state.is_err() || state.unwrap().contains(") Z "),
        "the child lives"
    );
}
