//! Laws that hold for every format, whatever comes in.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// Keys that some format gives a meaning.
const KEYS: [&str; 48] = [
    "name",
    "title",
    "description",
    "tools",
    "arguments",
    "inputSchema",
    "properties",
    "type",
    "required",
    "registry",
    "image",
    "secrets",
    "env",
    "config",
    "value",
    "remote",
    "url",
    "headers",
    "packages",
    "registryType",
    "registry_name",
    "identifier",
    "version",
    "server",
    "servers",
    "_meta",
    "isLatest",
    "remotes",
    "installations",
    "command",
    "args",
    "mcpServers",
    "packageName",
    "runtime",
    "category",
    "path",
    "openapi",
    "paths",
    "get",
    "parameters",
    "schema",
    "$ref",
    "requestBody",
    "content",
    "launch",
    "stdio",
    "provenance",
    "toolsUrl",
];

fn values() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "",
        "a",
        "3.0.0",
        "npx",
        "docker",
        "run",
        "npm",
        "oci",
        "object",
        "string",
        "int",
        "https://a.example/mcp",
        "${KEY}",
        "{{a.b}}",
        "{{",
        "#/paths",
        "true",
        "\u{202e}x",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i16>().prop_map(Value::from),
        word.prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(7, 80, 6, |inner| {
        let key = prop_oneof![
            prop::sample::select(KEYS.to_vec()).prop_map(str::to_owned),
            "[a-z]{1,3}"
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..7)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Reads a text as every format, under every name, and holds the sums.
fn check(text: &str) {
    for format in Format::ALL {
        for name in [
            "x/server.yaml",
            "x/tools.json",
            "x.jsonl",
            "x.json",
            "x.toml",
        ] {
            let document = Document {
                name: name.to_owned(),
                text: text.to_owned(),
            };
            let imported = read(format, &[document.clone(), document]);
            let counts = imported.report.counts;
            assert!(counts.balance(), "{format} {name}: {counts:?}");
            for server in &imported.servers {
                assert_eq!(server.check_launch(), Ok(()), "{format} {name}");
            }
            let names: std::collections::HashSet<_> =
                imported.servers.iter().map(|server| &server.name).collect();
            assert_eq!(names.len(), imported.servers.len(), "{format} {name}");
        }
    }
}

#[test]
fn a_format_prints_as_it_is_read() {
    for format in Format::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    assert!("csv".parse::<Format>().is_err());
}

#[test]
fn a_document_past_the_limit_is_refused_unread() {
    let document = |bytes: usize| Document {
        name: "large.json".to_owned(),
        text: " ".repeat(bytes),
    };
    let why = |bytes| {
        let imported = read(Format::Mcpm, &[document(bytes)]);
        imported.report.notes[0].why.clone()
    };
    assert!(why(DOCUMENT_BYTES_MAX + 1).contains("over the limit"));
    assert!(!why(DOCUMENT_BYTES_MAX).contains("over the limit"));
}

#[test]
fn the_last_page_of_a_registry_names_no_further_one() {
    let page = r#"{"servers": [], "metadata": {"nextCursor": "a/b", "count": 1}}"#;
    assert_eq!(next_cursor(page).as_deref(), Some("a/b"));
    assert_eq!(next_cursor(r#"{"servers": [], "metadata": {}}"#), None);
    assert_eq!(next_cursor("<html>"), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn nothing_panics_and_nothing_is_lost(value in values()) {
        check(&value.to_string());
    }

    #[test]
    fn no_text_panics(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn no_text_breaks_the_detection(text in any::<String>(), value in values()) {
        for name in ["a.json", "a.yaml", "a.jsonl", "a"] {
            let _ = Format::detect(name, &text);
            let _ = Format::detect(name, &value.to_string());
        }
    }
}
