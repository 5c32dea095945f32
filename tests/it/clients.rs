//! Real MCP clients against the real program: they list, search, run `echo` of the everything
//! server, get its content back, and are refused the same handle a second time.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::gateway::{self, EAGER, NO_MODEL, folder};
use crate::program::{Program, clients_folder, finish, has_servers, root};

/// One native tool of the surface `discovery`.
const NATIVE: &str = "[discovery]\nnative = [\"time__get_current_time\"]\n";
/// How often gemini is asked before a server counts as not connected.
const GEMINI_TRIES: usize = 5;
/// Longest a client may take.
const CLIENT_MAX: Duration = Duration::from_mins(1);

fn client(program: &str, args: &[&str]) -> Option<Command> {
    let folder = clients_folder();
    if !folder.join("installed.json").is_file() {
        println!("skipped {program}: no clients, `make clients` installs them");
        return None;
    }
    let script = root().join("tests/clients").join(program);
    let is_python = Path::new(program).extension().is_some_and(|e| e == "py");
    let runtime = match is_python {
        true => folder.join("python/bin/python"),
        false => "node".into(),
    };
    let there = match is_python {
        true => runtime.is_file(),
        false => folder.join("npm/node_modules").is_dir(),
    };
    if !there {
        println!("skipped {program}: its runtime is not installed");
        return None;
    }
    let mut command = Command::new(runtime);
    command
        .arg(script)
        .args(args)
        .env("TOOLCRIB_CLIENTS", folder)
        .env("NO_PROXY", "127.0.0.1");
    Some(command)
}

fn over_http(program: &str, era: Option<&str>) {
    over_http_to(program, era, "connected");
}

/// With the surface at a path of its own, so that the configuration is the same for all.
fn over_http_to(program: &str, era: Option<&str>, surface: &str) {
    if !has_servers(program) {
        return;
    }
    let era: Vec<&str> = era.map(|era| vec!["--era", era]).unwrap_or_default();
    let Some(mut command) = client(program, &era) else {
        return;
    };
    let folder = folder(&(EAGER.to_owned() + NATIVE));
    let add = folder.run(&["tenant", "add", "a"]);
    let text = String::from_utf8(add.stdout).unwrap();
    let key = text
        .lines()
        .find_map(|line| line.strip_prefix("bearer: "))
        .unwrap();
    let beside = r#"["connected", "gateway", "discovery"]"#;
    let settings = [NO_MODEL, ("TOOLCRIB_SERVER__SURFACES", beside)];
    let server = Program::start(&folder, &settings);
    command
        .arg(format!("{}/{surface}", server.url))
        .env("TOOLCRIB_BEARER", key)
        .env("TOOLCRIB_SURFACE", surface);
    let (code, output) = finish(&mut command, CLIENT_MAX);
    assert_eq!(code, Some(0), "{output}\n{}", server.log());
    assert!(output.contains("ok "), "{output}");
}

fn on_streams(program: &str, era: Option<&str>) {
    on_streams_to(program, era, "connected");
}

fn on_streams_to(program: &str, era: Option<&str>, surface: &str) {
    if !has_servers(program) {
        return;
    }
    let era: Vec<&str> = era.map(|era| vec!["--era", era]).unwrap_or_default();
    let Some(mut command) = client(program, &era) else {
        return;
    };
    let folder = folder(&(EAGER.to_owned() + NATIVE));
    let home = format!("TOOLCRIB_HOME={}", folder.path().display());
    let program = env!("CARGO_BIN_EXE_toolcrib");
    // `env` hands the settings on, since clients start servers with a clean environment.
    command.args([
        "--",
        "env",
        &home,
        "TOOLCRIB_MODEL__ENABLED=false",
        program,
        "serve",
        "--stdio",
        "--surface",
        surface,
    ]);
    command.env("TOOLCRIB_SURFACE", surface);
    let (code, output) = finish(&mut command, CLIENT_MAX);
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("ok "), "{output}");
}

#[test]
fn python_sdk_modern() {
    over_http("python_mcp.py", Some("modern"));
}

#[test]
fn python_sdk_legacy() {
    over_http("python_mcp.py", Some("legacy"));
}

#[test]
fn python_sdk_on_streams_modern() {
    on_streams("python_mcp.py", Some("modern"));
}

#[test]
fn python_sdk_on_streams_legacy() {
    on_streams("python_mcp.py", Some("legacy"));
}

#[test]
fn fastmcp_client() {
    over_http("fastmcp_client.py", None);
}

#[test]
fn typescript_sdk_v2_modern() {
    over_http("ts_v2.mjs", Some("modern"));
}

#[test]
fn typescript_sdk_v2_legacy() {
    over_http("ts_v2.mjs", Some("legacy"));
}

#[test]
fn typescript_sdk_v2_on_streams() {
    on_streams("ts_v2.mjs", Some("modern"));
}

#[test]
fn typescript_sdk_v1() {
    over_http("ts_v1.mjs", None);
}

#[test]
fn inspector_strict_modern() {
    over_http("inspector.mjs", Some("modern"));
}

#[test]
fn inspector_strict_legacy() {
    over_http("inspector.mjs", Some("legacy"));
}

#[test]
fn mcp_remote() {
    over_http("mcp_remote.mjs", None);
}

/// `gemini mcp list` connects to each server in its settings; it needs no model for that.
#[test]
fn gemini_connects_over_http_and_on_streams() {
    let gemini = clients_folder().join("npm/node_modules/.bin/gemini");
    if !gemini.is_file() {
        println!("skipped gemini: it is not installed, `make clients` does that");
        return;
    }
    let folder = folder("");
    let add = folder.run(&["tenant", "add", "a"]);
    let text = String::from_utf8(add.stdout).unwrap();
    let key = text.lines().find_map(|line| line.strip_prefix("bearer: "));
    let server = Program::start(&folder, &[NO_MODEL]);
    let own = gateway::folder("");
    let entry = |key: &str| json!({ "httpUrl": server.url, "headers": { "Authorization": format!("Bearer {key}") } });
    let settings = json!({ "mcpServers": {
        "over-http": entry(key.unwrap()),
        "on-streams": {
            "command": env!("CARGO_BIN_EXE_toolcrib"), "args": ["serve", "--stdio"],
            "env": { "TOOLCRIB_HOME": own.path(), "TOOLCRIB_MODEL__ENABLED": "false" },
        },
        "wrong-key": entry("wrong.key"),
    } });
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".gemini")).unwrap();
    let file = home.path().join(".gemini/settings.json");
    std::fs::write(file, settings.to_string()).unwrap();
    let mut command = Command::new("node");
    command
        .arg(gemini)
        .args(["mcp", "list"])
        .current_dir(home.path())
        .env("HOME", home.path())
        .env("NO_PROXY", "127.0.0.1")
        // Servers of a folder that is not trusted are not asked.
        .env("GEMINI_CLI_TRUST_WORKSPACE", "true");
    // It gives each server five seconds, which a machine under load may not keep: asked again then.
    let mut output = String::new();
    for _try in 0..GEMINI_TRIES {
        let (code, said) = finish(&mut command, 3 * CLIENT_MAX);
        assert_eq!(code, Some(0), "{said}");
        let is_wrong = |line: &str| line.contains("wrong-key") && line.ends_with("- Connected");
        assert!(!said.lines().any(is_wrong), "{said}");
        output = said;
        if output.matches("- Connected").count() == 2 {
            break;
        }
    }
    for name in ["over-http", "on-streams", "wrong-key"] {
        let line = output.lines().find(|line| line.contains(name));
        let line = line.unwrap_or_else(|| panic!("no {name}: {output}"));
        let connected = line.ends_with("- Connected");
        assert_eq!(connected, name != "wrong-key", "{output}");
    }
}

#[test]
fn python_sdk_modern_at_the_gateway() {
    over_http_to("python_mcp.py", Some("modern"), "gateway");
}

#[test]
fn python_sdk_legacy_at_the_gateway() {
    over_http_to("python_mcp.py", Some("legacy"), "gateway");
}

#[test]
fn python_sdk_on_streams_at_the_gateway() {
    on_streams_to("python_mcp.py", Some("modern"), "gateway");
}

#[test]
fn fastmcp_client_at_the_gateway() {
    over_http_to("fastmcp_client.py", None, "gateway");
}

#[test]
fn typescript_sdk_v2_at_the_gateway() {
    over_http_to("ts_v2.mjs", Some("modern"), "gateway");
}

#[test]
fn typescript_sdk_v1_at_the_gateway() {
    over_http_to("ts_v1.mjs", None, "gateway");
}

#[test]
fn inspector_strict_modern_at_the_gateway() {
    over_http_to("inspector.mjs", Some("modern"), "gateway");
}

#[test]
fn inspector_strict_legacy_at_the_gateway() {
    over_http_to("inspector.mjs", Some("legacy"), "gateway");
}

#[test]
fn python_sdk_modern_at_discovery() {
    over_http_to("python_mcp.py", Some("modern"), "discovery");
}

#[test]
fn python_sdk_legacy_at_discovery() {
    over_http_to("python_mcp.py", Some("legacy"), "discovery");
}

#[test]
fn python_sdk_on_streams_at_discovery() {
    on_streams_to("python_mcp.py", Some("modern"), "discovery");
}

#[test]
fn inspector_strict_modern_at_discovery() {
    over_http_to("inspector.mjs", Some("modern"), "discovery");
}

#[test]
fn inspector_strict_legacy_at_discovery() {
    over_http_to("inspector.mjs", Some("legacy"), "discovery");
}

#[test]
fn typescript_sdk_v2_at_discovery() {
    over_http_to("ts_v2.mjs", Some("modern"), "discovery");
}
