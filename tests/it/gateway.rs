//! The surface `gateway`: eager and cold tools, the search toolkit, scopes, and changes.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::program::{Folder, Program, has_servers, http, root, shared};
use crate::tenants::key_of;

/// Three eager tools and a search toolkit.
pub(crate) const EAGER: &str = "[server]\nsurface = \"gateway\"\n[tools.eager]\npolicy = \"explicit\"\n\
    match = [\"everything__echo\", \"time__*\"]\n[tools.search]\ntoolkit = \"crib\"\n";

/// A folder with a configuration; no model, unless it is for one.
pub(crate) fn folder(config: &str) -> Folder {
    let folder = Folder::new();
    std::fs::write(folder.path().join("toolcrib.toml"), config).unwrap();
    folder
}

pub(crate) const NO_MODEL: (&str, &str) = ("TOOLCRIB_MODEL__ENABLED", "false");

/// A JSON-RPC answer at a path of the program.
pub(crate) async fn ask(program: &Program, key: Option<&str>, path: &str, body: &Value) -> Value {
    let url = format!("{}{path}", program.url);
    let request = http()
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2025-11-25")
        .body(body.to_string());
    let request = match key {
        Some(key) => request.bearer_auth(key),
        None => request,
    };
    let response = request.send().await.unwrap();
    let (status, text) = (response.status(), response.text().await.unwrap());
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status}: {text}"))
}

/// All pages of `tools/list`.
async fn list(program: &Program, key: Option<&str>) -> (Vec<Value>, usize) {
    let (mut tools, mut pages, mut cursor) = (Vec::new(), 0, Value::Null);
    loop {
        let mut body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
        if !cursor.is_null() {
            body["params"] = json!({ "cursor": cursor });
        }
        let result = ask(program, key, "", &body).await["result"].clone();
        let page = result["tools"].as_array().unwrap();
        assert!(page.len() <= 103, "{}", page.len());
        tools.extend(page.iter().cloned());
        pages += 1;
        cursor = result["nextCursor"].clone();
        if cursor.is_null() {
            return (tools, pages);
        }
    }
}

fn names(tools: &[Value]) -> Vec<&str> {
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
    names.collect()
}

/// A catalog file with the misbehaving server as `toolkit`, under other names as well.
pub(crate) fn add_upstream(folder: &Folder, server: &str) {
    let script = root().join("tests/it/upstream.py");
    let count = folder.path().join("calls");
    let tool = |name: &str, text: &str, arguments: Value| json!({ "name": name, "description": text, "arguments": arguments });
    let text = json!([{ "name": "text", "type": "string", "desc": "What to say." }]);
    let line = json!({
        "name": server, "title": "Parrot",
        "launch": { "stdio": { "command": "python3",
            "args": [script, format!("--count={}", count.display())], "env": {} } },
        "tools": [
            tool("echo", "Say a sentence like a parrot.", text.clone()),
            tool("faithful", "Give a parrot of every kind.", json!([])),
            { "name": "structured", "description": "Give rows of parrots.",
                "inputSchema": { "type": "object", "properties": { "rows": { "type": "integer" } } },
                "outputSchema": { "type": "object", "required": ["rows"] } },
            tool("big", "Give far too many parrots.",
                json!([{ "name": "bytes", "type": "integer", "desc": "How much." }])),
        ],
    });
    let own = folder.path().join("own");
    std::fs::create_dir_all(&own).unwrap();
    let path = own.join(format!("{server}.jsonl"));
    std::fs::write(&path, line.to_string()).unwrap();
    let imported = folder.run(&["catalog", "import", "normal-form", path.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&imported.stderr).into_owned();
    assert!(imported.status.success(), "{said}");
}

/// The largest published catalog that is there, else one that is made up: at least 241 servers.
fn many_servers(folder: &Folder) -> usize {
    let path = shared("catalogs/merged/catalog.jsonl").unwrap_or_else(|| made_up(folder));
    let config = format!(
        "[model]\nenabled = false\n[catalog]\nrefresh_s = 0\n[[catalog.sources]]\nname = \"many\"\nformat = \"normal-form\"\n\
         path = \"{}\"\npolicy = \"trust\"\n",
        path.display()
    );
    let file = folder.path().join("toolcrib.toml");
    let before = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, before + &config).unwrap();
    let output = folder.run(&["catalog", "refresh"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let listed = folder.run(&["catalog", "list", "--json"]);
    let servers: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let servers = servers.as_array().unwrap();
    assert!(241 <= servers.len(), "{} servers", servers.len());
    let counts = servers
        .iter()
        .map(|server| server["tools"].as_u64().unwrap());
    usize::try_from(counts.sum::<u64>()).unwrap()
}

fn made_up(folder: &Folder) -> PathBuf {
    let line = |server: usize| {
        let tool = |n: usize| {
            json!({ "name": format!("polish a {n}{}", "/very".repeat(n)),
                "description": format!("Polish statue {n} of temple {server}."), "arguments": [] })
        };
        let tools: Vec<Value> = (0..14).map(tool).collect();
        json!({ "name": format!("temple-{server}"), "title": "Temple", "tools": tools }).to_string()
    };
    let lines: Vec<String> = (0..241).map(line).collect();
    let path = folder.path().join("many.jsonl");
    std::fs::write(&path, lines.join("\n")).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn three_eager_tools_of_thousands_make_a_list_of_six() {
    let folder = folder(EAGER);
    let tools = many_servers(&folder);
    let program = Program::start(&folder, &[NO_MODEL]);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let answer = ask(&program, None, "", &body).await;
    let bytes = answer.to_string().len();
    println!("{tools} tools, tools/list has {bytes} bytes");
    assert!(bytes < 8 * 1024, "{bytes} bytes");
    let listed = answer["result"]["tools"].as_array().unwrap();
    assert_eq!(
        names(listed),
        [
            "crib__search_tools",
            "crib__describe_tool",
            "crib__execute_tool",
            "everything__echo",
            "time__convert_time",
            "time__get_current_time",
        ]
    );
    assert_eq!(answer["result"]["nextCursor"], Value::Null);
    assert_eq!(answer["result"]["ttlMs"], 300_000);
    assert_eq!(answer["result"]["cacheScope"], "private");
    let echo = &listed[3];
    assert_eq!(echo["inputSchema"]["required"], json!(["message"]));
    assert_eq!(echo["annotations"]["readOnlyHint"], true);
    let found = json!({ "query": "post a message to a slack channel", "max_results": 3 });
    let found = program.call(None, "crib__search_tools", found).await;
    let matches = found["structuredContent"]["tools"].as_array().unwrap();
    assert_eq!(matches.len(), 3);
    for one in matches {
        let keys: Vec<&String> = one.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["name", "description"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_search_toolkit_everything_is_listed_in_pages() {
    let folder = folder("[server]\nsurface = \"gateway\"\n");
    let tools = many_servers(&folder);
    let program = Program::start(&folder, &[NO_MODEL]);
    let (listed, pages) = list(&program, None).await;
    assert_eq!(listed.len(), tools);
    assert!(tools / 100 <= pages, "{pages} pages");
    let unique: BTreeSet<&str> = names(&listed).into_iter().collect();
    assert_eq!(unique.len(), tools, "no two tools share a name");
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    for name in unique {
        assert!(name.len() <= 64 && name.chars().all(plain), "{name}");
    }
    assert!(
        listed
            .iter()
            .all(|tool| tool["inputSchema"]["type"] == "object")
    );
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list",
        "params": { "cursor": "nonsense" } });
    let refused = ask(&program, None, "", &body).await;
    assert_eq!(refused["error"]["code"], -32602);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cold_tool_is_found_described_and_run_by_its_name() {
    let folder = folder(EAGER);
    add_upstream(&folder, "parrot");
    let program = Program::start(&folder, &[NO_MODEL]);
    let found = json!({ "query": "say a sentence like a parrot" });
    let found = program.call(None, "crib__search_tools", found).await;
    let first = &found["structuredContent"]["tools"][0];
    assert_eq!(first["name"], "parrot__echo");
    let names = json!({ "names": ["parrot__echo", "everything__echo", "parrot__ecco"] });
    let described = program.call(None, "crib__describe_tool", names).await;
    let described = &described["structuredContent"];
    let properties = &described["tools"][0]["inputSchema"]["properties"];
    assert_eq!(properties["text"]["type"], "string");
    let (listed, _) = list(&program, None).await;
    assert_eq!(described["tools"][1], listed[3], "as tools/list shows it");
    assert_eq!(described["unknown"][0]["nearest"][0], "parrot__echo");

    let execute = |name: &str, arguments: Value| {
        let request = json!({ "name": name, "arguments": arguments });
        program.call(None, "crib__execute_tool", request)
    };
    let direct = program.call(None, "parrot__faithful", json!({})).await;
    let executed = execute("parrot__faithful", json!({})).await;
    assert_eq!(direct, executed);
    assert_eq!(
        direct["content"][0]["x-more"],
        Value::Null,
        "rmcp's own types"
    );
    assert!(
        direct["_meta"].get("toolcrib/workflow_run_id").is_none(),
        "unchanged"
    );
    let said = execute("parrot__echo", json!({ "text": "hello" })).await;
    assert_eq!(said["content"][0]["text"], "hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_run_is_refused_at_once_and_says_what_would_do() {
    let folder = folder(EAGER);
    add_upstream(&folder, "parrot");
    let program = Program::start(&folder, &[NO_MODEL]);
    let execute = |name: &str, arguments: Value| {
        let request = json!({ "name": name, "arguments": arguments });
        program.call(None, "crib__execute_tool", request)
    };
    execute("parrot__echo", json!({ "text": "hello" })).await;
    let calls = || std::fs::read_to_string(folder.path().join("calls")).unwrap();
    let before = calls();
    for result in [
        execute("parrot__echo", json!({ "txt": "hello" })).await,
        program
            .call(None, "parrot__echo", json!({ "txt": "hello" }))
            .await,
    ] {
        let refusal = &result["structuredContent"];
        assert_eq!(refusal["error"], "INVALID_ARGUMENTS");
        assert!(
            refusal["message"]
                .as_str()
                .unwrap()
                .contains("did you mean `text`?")
        );
        assert!(!refusal.to_string().contains("token"), "{refusal}");
    }
    let unknown = execute("parrot__eco", json!({})).await["structuredContent"].clone();
    assert_eq!(unknown["error"], "UNKNOWN_TOOL");
    assert!(unknown["hint"].as_str().unwrap().contains("parrot__echo"));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "parrot__eco", "arguments": {} } });
    let unknown = ask(&program, None, "", &body).await;
    assert_eq!(unknown["error"]["code"], -32602);
    assert!(
        unknown["error"]["message"]
            .as_str()
            .unwrap()
            .contains("parrot__echo")
    );
    assert_eq!(calls(), before, "none of these came as far as the server");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_is_cut_can_be_read_whole() {
    let folder = folder(EAGER);
    add_upstream(&folder, "parrot");
    let settings = [NO_MODEL, ("TOOLCRIB_UPSTREAMS__RESULT_CHARS_MAX", "2000")];
    let program = Program::start(&folder, &settings);
    let cut = program
        .call(None, "parrot__big", json!({ "bytes": 9_000 }))
        .await;
    let resource = cut["_meta"]["toolcrib/truncated"]["resource"]
        .as_str()
        .unwrap();
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read",
        "params": { "uri": resource } });
    let whole = ask(&program, None, "", &body).await;
    let whole = whole["result"]["contents"][0]["text"]
        .as_str()
        .unwrap()
        .len();
    assert!(9_000 <= whole, "{whole}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_tenant_may_not_use_does_not_exist_for_it() {
    let folder = folder(
        "[server]\nsurface = \"gateway\"\n[tools.eager]\npolicy = \"all\"\n\
        [tools.search]\ntoolkit = \"crib\"\nlimit = 50\n",
    );
    for server in ["parrot", "magpie"] {
        add_upstream(&folder, server);
    }
    let a = key_of(
        &folder,
        &["tenant", "add", "a", "--allow", "parrot", "--allow", "time"],
    );
    let b = key_of(&folder, &["tenant", "add", "b", "--allow", "!parrot"]);
    let program = Program::start(&folder, &[NO_MODEL]);
    let (a, b) = (Some(a.as_str()), Some(b.as_str()));
    let say = json!({ "name": "parrot__echo", "arguments": { "text": "x" } });
    // The other tenant goes first each time, so that whatever is kept is warm.
    let (listed, _) = list(&program, a).await;
    assert_eq!(names(&listed).len(), 3 + 4 + 2);
    assert!(
        list(&program, b)
            .await
            .0
            .iter()
            .all(|tool| !tool.to_string().contains("parrot__"))
    );
    for (tool, arguments) in [
        (
            "crib__search_tools",
            json!({ "query": "say a sentence like a parrot" }),
        ),
        ("crib__search_tools", json!({ "query": "parrot__echo" })),
    ] {
        let own = program.call(a, tool, arguments.clone()).await.to_string();
        assert!(own.contains("parrot__echo"), "{own}");
        let foreign = program.call(b, tool, arguments).await.to_string();
        assert!(!foreign.contains("parrot__"), "{foreign}");
        assert!(foreign.contains("magpie__echo"), "{foreign}");
    }
    let ran = program.call(a, "crib__execute_tool", say.clone()).await;
    assert_eq!(ran["content"][0]["text"], "x");
    let named = program
        .call(a, "crib__describe_tool", json!({ "name": "parrot__echo" }))
        .await;
    assert_eq!(named["isError"], false);
    // For the other it is a name like any that nobody has.
    for (tool, arguments) in [
        ("crib__execute_tool", say.clone()),
        ("crib__describe_tool", json!({ "name": "parrot__echo" })),
    ] {
        let foreign = program.call(b, tool, arguments.clone()).await;
        let arguments: Value =
            serde_json::from_str(&arguments.to_string().replace("parrot", "ostrich")).unwrap();
        let nobodys = program.call(b, tool, arguments).await;
        assert_eq!(
            foreign.to_string().replace("parrot", "ostrich"),
            nobodys.to_string()
        );
        assert_eq!(foreign["structuredContent"]["error"], "UNKNOWN_TOOL");
    }
    for name in ["parrot__echo", "ostrich__echo"] {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": name, "arguments": {} } });
        assert_eq!(ask(&program, b, "", &body).await["error"]["code"], -32602);
    }
    let page = http().get(format!("{}/metrics", program.admin));
    let page = page.send().await.unwrap().text().await.unwrap();
    assert!(
        page.contains("toolkit__search_tools") && !page.contains("parrot__"),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_to_rank_answers() {
    for (options, first) in [
        ("type = \"keyword\"", "parrot__echo"),
        ("type = \"semantic\"", "parrot__echo"),
        ("fields = [\"name\"]\ntype = \"keyword\"", ""),
        (
            "fields = [\"description\"]\nweights = { description = 2.0 }",
            "parrot__echo",
        ),
        (
            "index = [\"keyword\", { type = \"keyword\", fields = [\"description\"] }]",
            "parrot__echo",
        ),
    ] {
        let folder = folder(&format!("{EAGER}{options}\n"));
        add_upstream(&folder, "parrot");
        let program = Program::start(&folder, &[NO_MODEL]);
        let query = json!({ "query": "a sentence like", "max_results": 1 });
        let found = program.call(None, "crib__search_tools", query).await;
        let tools = found["structuredContent"]["tools"].as_array().unwrap();
        let names = names(tools).concat();
        assert_eq!(names, first, "{options}: {found}");
    }
    let folder = folder(&format!(
        "{EAGER}type = \"keyword\"\nindex = [\"semantic\"]\n"
    ));
    let refused = folder.run(&["serve"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        said.contains("both `type` and `index`, which exclude each other"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_configuration_does_what_the_page_says() {
    if !has_servers("the_pages_configuration_does_what_the_page_says") {
        return;
    }
    let page = std::fs::read_to_string(root().join("docs/gateway.md")).unwrap();
    let blocks: Vec<&str> = page
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert_eq!(blocks.len(), 4);
    let served = folder(blocks[0]);
    let program = Program::start(&served, &[]);
    program.ready().await;
    let (listed, _) = list(&program, None).await;
    assert_eq!(listed.len(), 6);
    let query = json!({ "query": "echo a message back to me", "max_results": 5 });
    let found = program.call(None, "crib__search_tools", query).await;
    assert!(found.to_string().contains("everything__echo"), "{found}");
    let run = json!({ "name": "everything__echo", "arguments": { "message": "hello" } });
    let result = program.call(None, "crib__execute_tool", run).await;
    assert_eq!(
        result["content"],
        json!([{ "type": "text", "text": "Echo: hello" }])
    );
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let beside = ask(&program, None, "/connected", &body).await;
    assert_eq!(
        names(beside["result"]["tools"].as_array().unwrap()),
        ["search_tools", "run_tool"]
    );
    for block in &blocks[1..] {
        let config = format!("[server]\nsurface = \"gateway\"\n{block}");
        let served = folder(&config);
        let program = Program::start(&served, &[]);
        program.ready().await;
        let query = json!({ "query": "post a message to a slack channel" });
        let found = program.call(None, "crib__search_tools", query).await;
        let first = &found["structuredContent"]["tools"][0]["name"];
        assert_eq!(first, "slack__slack_post_message", "{block}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_result_that_breaks_a_listed_schema_is_an_error_that_says_it_ran() {
    let folder = folder(EAGER);
    add_upstream(&folder, "parrot");
    let settings = [NO_MODEL, ("TOOLCRIB_UPSTREAMS__RESULT_CHARS_MAX", "2000")];
    let program = Program::start(&folder, &settings);
    let few = program
        .call(None, "parrot__structured", json!({ "rows": 2 }))
        .await;
    assert_eq!(few["structuredContent"]["rows"], json!(["zebra", "zebra"]));
    assert_ne!(few["isError"], true);
    let many = json!({ "rows": 900 });
    let direct = program.call(None, "parrot__structured", many.clone()).await;
    assert_eq!(
        direct["isError"], true,
        "a client that knows the schema takes nothing else"
    );
    assert!(
        direct["content"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("The tool has run")
    );
    assert_eq!(direct["content"][1]["text"], "short");
    let request = json!({ "name": "parrot__structured", "arguments": many });
    let executed = program.call(None, "crib__execute_tool", request).await;
    assert_ne!(
        executed["isError"], true,
        "nobody was promised a schema here"
    );
    assert_eq!(executed["content"][0]["text"], "short");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_leaves_one_line_in_the_audit_and_no_text_of_its_own() {
    let folder = folder(EAGER);
    add_upstream(&folder, "parrot");
    let program = Program::start(&folder, &[NO_MODEL]);
    let secret = "xylophone";
    let calls = [
        ("crib__search_tools", json!({ "query": secret })),
        ("crib__search_tools", json!({ "query": 7 })),
        ("crib__describe_tool", json!({ "name": secret })),
        ("crib__execute_tool", json!({ "name": secret })),
        (
            "crib__execute_tool",
            json!({ "arguments": { "text": secret } }),
        ),
        (
            "crib__execute_tool",
            json!({ "name": "parrot__echo", "arguments": { "text": secret } }),
        ),
        (
            "crib__execute_tool",
            json!({ "name": "parrot__echo", "arguments": { "txt": secret } }),
        ),
        ("parrot__echo", json!({ "text": secret })),
    ];
    for (tool, arguments) in &calls {
        program.call(None, tool, arguments.clone()).await;
    }
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "xylophone__play", "arguments": {} } });
    ask(&program, None, "", &body).await;
    let outcomes = program.audited(calls.len() + 1);
    let log = program.log();
    assert_eq!(
        outcomes,
        [
            "ok",
            "INVALID_QUERY",
            "UNKNOWN_TOOL",
            "UNKNOWN_TOOL",
            "INVALID_ARGUMENTS",
            "ok",
            "INVALID_ARGUMENTS",
            "ok",
            "UNKNOWN_TOOL",
        ],
        "{log}"
    );
    assert!(!log.contains(secret), "{log}");
}
