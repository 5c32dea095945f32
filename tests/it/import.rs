//! Import and export through the real program, and over the real catalogs where they are.

use std::fs;

use serde_json::Value;
use toolcrib::catalog::import::{Format, collect, collect_all, read};

use crate::program::{Folder, root, shared};

/// What each part of the real catalogs gives at least: `(folder, format, servers, tools)`.
const REAL: [(&str, Format, usize, usize); 9] = [
    ("docker-mcp-registry", Format::DockerRegistry, 300, 760),
    ("mcpm/servers", Format::Mcpm, 339, 2_247),
    ("official-registry", Format::OfficialRegistry, 259, 4),
    ("tools-list", Format::ToolsList, 10, 204),
    (
        "claude-desktop/mcpverse_mcpServers.json",
        Format::ClientConfig,
        45,
        0,
    ),
    ("livemcpbench/tools.json", Format::LiveMcpBench, 70, 527),
    ("toolsdk", Format::Toolsdk, 840, 8_010),
    ("merged/catalog.jsonl", Format::NormalForm, 340, 3_461),
    ("merged/extended.jsonl", Format::NormalForm, 1_063, 11_287),
];

fn output(folder: &Folder, args: &[&str]) -> String {
    let output = folder.run(args);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{args:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn fixtures() -> String {
    root().join("tests/data/import").display().to_string()
}

#[test]
fn nothing_in_the_real_catalogs_is_lost_in_silence() {
    for (part, format, servers, tools) in REAL {
        let Some(path) = shared(&format!("catalogs/{part}")) else {
            println!("skipped nothing_in_the_real_catalogs_is_lost_in_silence: no {part}");
            continue;
        };
        let (groups, _) = collect_all(&path, None).unwrap();
        let group = groups.iter().find(|group| group.format == format);
        let imported = read(format, &group.unwrap().documents);
        let counts = imported.report.counts;
        println!("{part}: {counts:?}");
        assert!(counts.balance(), "{part}: {counts:?}");
        assert!(servers <= counts.servers_out, "{part}: {counts:?}");
        assert!(tools <= counts.tools_out, "{part}: {counts:?}");
        let refused = counts.documents_refused + counts.servers_refused + counts.tools_refused;
        assert_eq!(
            imported.report.refused().count(),
            refused,
            "{part}: one reason each"
        );
        for server in &imported.servers {
            assert_eq!(server.check_launch(), Ok(()), "{part}: {}", server.name);
        }
    }
}

#[test]
fn all_real_catalogs_come_in_with_one_command_and_can_be_searched() {
    let Some(path) = shared("catalogs") else {
        println!("skipped all_real_catalogs_come_in_with_one_command_and_can_be_searched");
        return;
    };
    let folder = Folder::new();
    let path = path.display().to_string();
    let report = output(
        &folder,
        &[
            "catalog", "import", "auto", &path, "--json", "--name", "real",
        ],
    );
    let report: Value = serde_json::from_str(&report).unwrap();
    let count = |key: &str| report[key].as_u64().unwrap();
    assert!(
        241 <= count("servers_with_tools"),
        "{}",
        report["servers_with_tools"]
    );
    assert!(3_188 <= count("tools"));
    assert!(2_700 <= count("tools_with_arguments"));
    let file = folder.path().join("catalog/real.jsonl");
    let first = fs::read_to_string(&file).unwrap();
    output(
        &folder,
        &[
            "catalog", "import", "auto", &path, "--json", "--name", "real",
        ],
    );
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        first,
        "a second import changes nothing"
    );
    let listed = output(&folder, &["catalog", "list", "--json"]);
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    let tools: u64 = listed
        .iter()
        .map(|server| server["tools"].as_u64().unwrap())
        .sum();
    assert!(
        count("tools") <= tools,
        "what was imported is in the catalog"
    );
    let check = folder.run(&["catalog", "check"]);
    assert!(
        check.status.success(),
        "{}",
        String::from_utf8_lossy(&check.stdout)
    );
}

#[test]
fn an_import_can_be_listed_filtered_and_exported() {
    let folder = Folder::new();
    let report = output(&folder, &["catalog", "import", "auto", &fixtures()]);
    insta::assert_snapshot!(report.replace(&fixtures(), "FIXTURES"));
    let names = |filter: &[&str]| -> Vec<String> {
        let listed = output(&folder, &[&["catalog", "list", "--json"], filter].concat());
        let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
        let name = |server: &Value| server["name"].as_str().unwrap().to_owned();
        listed.iter().map(name).collect()
    };
    assert_eq!(names(&["--source", "mcpm"]), ["orchard"]);
    assert_eq!(
        names(&["--source", "docker", "--license", "mit"]),
        ["harbour-chat"]
    );
    assert_eq!(names(&["--category", "farming"]), ["orchard"]);
    assert_eq!(
        names(&["--license", "unknown", "--source", "open-api"]),
        Vec::<String>::new()
    );
    for (format, file) in [
        ("normal-form", "all.jsonl"),
        ("docker", "all.yaml"),
        ("tools-list", "all.json"),
    ] {
        let file = folder.path().join(file);
        output(
            &folder,
            &["catalog", "export", format, "-o", file.to_str().unwrap()],
        );
        let (format, documents) = collect(&file).unwrap();
        let again = read(format, &documents);
        let servers = again.servers.len();
        assert_eq!(servers, names(&[]).len(), "{format}");
    }
}

#[test]
fn what_an_operator_excludes_stays_out() {
    let folder = Folder::new();
    let arguments = [
        "catalog",
        "import",
        "auto",
        &fixtures(),
        "--json",
        "--exclude",
        "harbour-*",
        "--exclude-license",
        "apache*",
    ];
    let report: Value = serde_json::from_str(&output(&folder, &arguments)).unwrap();
    let excluded: Vec<&Value> = report["notes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|note| note["why"].as_str().unwrap().contains("excluded"))
        .collect();
    let names: Vec<&str> = excluded
        .iter()
        .map(|note| note["what"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["harbour-chat", "orchard", "museum-tickets"]);
}

#[test]
fn a_path_with_nothing_to_take_is_an_error_and_writes_nothing() {
    let folder = Folder::new();
    let file = folder.path().join("bomb.json");
    fs::write(&file, "[".repeat(10_000)).unwrap();
    let run = folder.run(&["catalog", "import", "tools-list", file.to_str().unwrap()]);
    assert_eq!(run.status.code(), Some(1));
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(text.contains("recursion limit"), "{text}");
    let run = folder.run(&["catalog", "import", "what", file.to_str().unwrap()]);
    assert!(!run.status.success());
    assert!(
        String::from_utf8(run.stderr)
            .unwrap()
            .contains("is no catalog format")
    );
    assert!(!folder.path().join("catalog").exists());
}

/// A web server that knows a few paths, each answered once a connection.
fn serve(pages: &'static [(&'static str, &'static str)]) -> String {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().unwrap().unwrap();
            while lines
                .next()
                .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
            {}
            let path = first.split(' ').nth(1).unwrap();
            let found = pages.iter().find(|(known, _)| *known == path);
            let (status, body) = found.map_or(("404 Not Found", ""), |(_, body)| ("200 OK", body));
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            )
            .unwrap();
        }
    });
    format!("http://{address}")
}

#[test]
fn a_registry_is_imported_page_by_page_from_its_url() {
    let url = serve(&[
        (
            "/v0/servers?limit=1",
            r#"{"servers": [{"server": {"name": "io.example/one", "version": "1.0.0", "packages":
                [{"registryType": "npm", "identifier": "one", "version": "1.0.0"}]}}],
                "metadata": {"nextCursor": "io.example/one", "count": 1}}"#,
        ),
        (
            "/v0/servers?limit=1&cursor=io.example%2Fone",
            r#"{"servers": [{"server": {"name": "io.example/two", "version": "1.0.0", "packages":
                [{"registryType": "pypi", "identifier": "two", "version": "1.0.0"}]}}],
                "metadata": {"count": 1}}"#,
        ),
    ]);
    let folder = Folder::new();
    let import = |allow: &str| {
        let mut command = folder.command();
        command.env("TOOLCRIB_CATALOG__ALLOW_LOOPBACK", allow);
        let page = format!("{url}/v0/servers?limit=1");
        command.args(["catalog", "import", "auto", &page, "--name", "registry"]);
        command.output().unwrap()
    };
    let refused = import("false");
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is not https"));
    let taken = import("true");
    assert!(
        taken.status.success(),
        "{}",
        String::from_utf8_lossy(&taken.stderr)
    );
    let file = fs::read_to_string(folder.path().join("catalog/registry.jsonl")).unwrap();
    let names: Vec<Value> = file
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].clone())
        .collect();
    assert_eq!(names, ["io-example-one", "io-example-two"]);
}
