//! Import of an export is the identity, for each format.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::catalog::import::{Document, Format, read};
use crate::domain::{
    Annotations, Argument, ClientAuth, ConfigSlot, Method, OAuth, Operation, OperationBody,
    OperationParts, Provenance, SecretSlot,
};

/// Text as a catalog keeps it: clean, and not only white space.
fn words() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        "[a-zA-Z0-9 .,:;#'\"{}\\[\\]<>$&*!|%@`?-]{0,24}",
        "[äöü搜索工具 ]{0,8}",
        Just("yes".to_owned()),
        Just("null".to_owned()),
        Just("1.0".to_owned()),
        Just("- a: b".to_owned()),
    ];
    text.prop_map(|text| crate::domain::clean_line(&text, 100))
}

fn templates() -> impl Strategy<Value = Template> {
    prop::sample::select(vec![
        "plain",
        "--root={{workspace}}",
        "{{acme.team}}",
        "a {{acme.team}} b",
        "yes",
        "007",
    ])
    .prop_map(|text| text.parse().unwrap())
}

fn launches() -> impl Strategy<Value = Option<Launch>> {
    let args = prop::collection::vec(templates(), 0..4);
    let env = prop::collection::btree_map(
        "[A-Z_]{1,8}",
        prop_oneof![
            templates(),
            Just("Bearer {{secret:acme.key}}".parse().unwrap())
        ],
        0..3,
    )
    .prop_map(|map| {
        map.into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect::<Vec<_>>()
    });
    (0..7_u8, args, env).prop_map(|(kind, args, env)| match kind {
        0 => None,
        1 => Some(Launch::Stdio {
            command: "npx".into(),
            args,
            env,
        }),
        2 => Some(Launch::Docker {
            image: "acme/mcp:1.0".into(),
            args,
            env,
        }),
        3 => Some(Launch::OpenApi {
            base_url: "https://acme.example/{{acme.team}}".parse().unwrap(),
            headers: env,
            operations: operations(args.len()),
        }),
        _ => Some(Launch::Http {
            url: "https://acme.example/{{acme.team}}/mcp".parse().unwrap(),
            headers: env,
            transport: match kind {
                4 => HttpTransport::Sse,
                _ => HttpTransport::Streamable,
            },
            oauth: (kind == 5).then(|| Box::new(oauth())),
        }),
    })
}

fn oauth() -> OAuth {
    OAuth {
        token_url: "https://id.example/{{acme.team}}/token".parse().unwrap(),
        client_id: "acme".parse().unwrap(),
        client_secret: "{{secret:acme.key}}".parse().unwrap(),
        scope: Some("read write".parse().unwrap()),
        resource: None,
        auth: ClientAuth::Post,
    }
}

/// A few operations, with and without each part.
fn operations(count: usize) -> crate::domain::Operations {
    let body = |at: usize| {
        (at % 2 == 1).then(|| OperationBody {
            media_type: "application/json".into(),
            argument: (at == 3).then(|| "body".into()),
        })
    };
    let operation = |at: usize| {
        let operation = Operation::new(OperationParts {
            method: [Method::Get, Method::Post, Method::Put][at % 3],
            path: format!("/things/{{id}}/{at}").into(),
            query: vec!["q".into(); at % 2],
            joined: vec!["ids".into(); at / 2],
            headers: vec!["x-lang".into(); at / 2],
            body: body(at),
        });
        (format!("tool_{at}").parse().unwrap(), operation.unwrap())
    };
    Arc::new((0..count).map(operation).collect())
}

fn inputs() -> impl Strategy<Value = Input> {
    let phrase = prop::sample::select(vec![
        "string",
        "integer",
        "any",
        "array of string",
        "\"a or b\" or \"c\"",
        "array of (\"x\" or 1)",
        "string or null",
    ]);
    let argument = ("[a-z_]{1,8}", phrase, words(), any::<bool>());
    let arguments = prop::collection::vec(argument, 0..5).prop_map(|rows| {
        let mut seen = std::collections::HashSet::new();
        let fresh = rows.into_iter().filter(|row| seen.insert(row.0.clone()));
        let arguments = fresh.map(|(name, phrase, description, required)| Argument {
            name: name.into(),
            shape: phrase.parse().unwrap(),
            description: description.into(),
            required,
        });
        Input::from_arguments(arguments.collect())
    });
    let schemas: Vec<Value> = vec![
        json!({}),
        json!({"type": "object"}),
        json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}),
        json!({"$defs": {"a": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/a"}}}),
        json!({"type": "object", "required": ["b"], "properties": {
            "a": {"type": ["string", "null"], "default": "yes", "examples": [1.5, true, null]},
            "b": {"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "null"}]}}}),
    ];
    let schema = prop::sample::select(schemas).prop_map(Input::from_schema);
    prop_oneof![arguments, schema]
}

fn tools() -> impl Strategy<Value = Vec<Tool>> {
    let flag = || prop::option::of(any::<bool>());
    let tool = (
        "[a-zA-Z_/$]{1,12}",
        (words(), words()),
        inputs(),
        (flag(), flag()),
        prop::collection::vec("[a-z]{1,6}", 0..3),
        prop::option::of(Just(json!({"type": "object"}))),
    );
    prop::collection::vec(tool, 0..5).prop_map(|rows| {
        let mut seen = std::collections::HashSet::new();
        let fresh = rows.into_iter().filter(|row| seen.insert(row.0.clone()));
        fresh
            .map(
                |(name, (title, description), input, flags, keywords, output_schema)| {
                    Tool::new(Definition {
                        title,
                        output_schema,
                        annotations: Annotations {
                            read_only: flags.0,
                            open_world: flags.1,
                            ..Annotations::default()
                        },
                        keywords,
                        ..Definition::new(name.parse().unwrap(), description, input)
                    })
                },
            )
            .collect()
    })
}

fn servers() -> impl Strategy<Value = Server> {
    let texts = (words(), words(), words(), words(), words());
    (
        "[a-z][a-z0-9-]{0,8}[a-z]",
        texts,
        launches(),
        tools(),
        any::<bool>(),
    )
        .prop_map(
            |(name, (title, description, license, tag, about), launch, tools, optional)| {
                let mut server = Server::new(name.parse().unwrap(), tools);
                // Without tools and launch there is nothing to keep; a missing title is filled in.
                server.launch = match server.tools.is_empty() {
                    true => launch.or_else(|| {
                        let url = "https://a.example".parse().ok();
                        url.map(|url| Launch::http(url, Vec::new()))
                    }),
                    false => launch,
                };
                if !title.is_empty() {
                    server.title = title.into();
                }
                server.description = description.into();
                server.tags = vec![tag.into()];
                server.secrets.push(SecretSlot {
                    name: "acme.key".parse().unwrap(),
                    description: about.as_str().into(),
                    optional,
                });
                server.config.push(ConfigSlot {
                    name: "acme.team".parse().unwrap(),
                    description: about.into(),
                    default: optional.then(|| "{{workspace}}/x".parse().unwrap()),
                    optional,
                });
                server.provenance = Provenance {
                    source: "test:acme".into(),
                    version: "1.0".into(),
                    license: license.into(),
                };
                server.cleaned()
            },
        )
}

fn catalogs() -> impl Strategy<Value = Catalog> {
    prop::collection::btree_map("[a-z]{1,6}", servers(), 0..4).prop_map(|servers| {
        let mut seen = std::collections::HashSet::new();
        let fresh = servers
            .into_values()
            .filter(|server| seen.insert(server.name.clone()));
        Catalog::new(fresh.map(Arc::new)).unwrap()
    })
}

fn check(catalog: &Catalog, format: Format, name: &str, text: String) {
    let document = Document {
        name: name.to_owned(),
        text,
    };
    let imported = read(format, &[document]);
    let notes: Vec<String> = imported
        .report
        .notes
        .iter()
        .filter(|note| note.kind != crate::catalog::import::NoteKind::Empty)
        .map(ToString::to_string)
        .collect();
    assert_eq!(notes, Vec::<String>::new());
    assert!(imported.report.counts.balance());
    let again = Catalog::new(imported.servers.into_iter().map(Arc::new)).unwrap();
    assert_eq!(again.servers(), catalog.servers());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn import_of_a_normal_form_is_the_identity(catalog in catalogs()) {
        check(&catalog, Format::NormalForm, "export.jsonl", normal_form(&catalog));
    }

    #[test]
    fn import_of_a_docker_catalog_is_the_identity(catalog in catalogs()) {
        check(&catalog, Format::Docker, "export.yaml", docker_v3(&catalog));
    }

    #[test]
    fn import_of_a_tools_list_is_the_identity(catalog in catalogs()) {
        check(&catalog, Format::ToolsList, "export.json", tools_list(&catalog));
    }
}
