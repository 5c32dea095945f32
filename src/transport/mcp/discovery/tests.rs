//! Lists in pages, and what asks for all of them.

use super::*;
use crate::registry::{ToolMetadata, ToolRegistry, ToolSpec};

fn offered(name: &str) -> Offered {
    let spec = ToolSpec::new(name, "Does it.").unwrap();
    Offered {
        tool: Arc::new(ToolMetadata::from(spec)),
        owner: Owner::Provider(Arc::new(ToolRegistry::new("own").unwrap())),
    }
}

#[test]
fn pages_follow_each_other_without_a_gap() {
    let all: Vec<Offered> = (0..250)
        .rev()
        .map(|n| offered(&format!("t{n:03}")))
        .collect();
    let (mut names, mut cursor, mut pages) = (Vec::new(), None, 0);
    loop {
        let (page, next) = page::page(all.iter().collect(), cursor.as_deref()).unwrap();
        names.extend(page.iter().map(|tool| tool.name.to_string()));
        pages += 1;
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    let expected: Vec<String> = (0..250).map(|n| format!("t{n:03}")).collect();
    assert_eq!((names, pages), (expected, 3));
    assert!(page::page(all.iter().collect(), Some("no cursor!")).is_err());
    assert!(page::page(all.iter().collect(), Some(&"a".repeat(1_028))).is_err());
}

#[test]
fn a_header_or_a_key_asks_for_everything() {
    let check = |uri: &str, header: Option<&str>, expected: bool| {
        let mut request = http::Request::builder().uri(uri);
        if let Some(value) = header {
            request = request.header("X-MCP-Show-All", value);
        }
        let ask = Ask {
            guest: Guest::local(),
            parts: Some(request.body(()).unwrap().into_parts().0),
        };
        assert_eq!(shows_all(&ask), expected, "{uri} {header:?}");
    };
    check("/mcp", None, false);
    check("/mcp", Some("true"), true);
    check("/mcp", Some("TRUE"), true);
    check("/mcp", Some("1"), false);
    check("/mcp?show_all=true", None, true);
    check("/mcp?a=b&show_all=true", Some("false"), true);
    check("/mcp?show_all=false", None, false);
    check("/mcp?not_show_all=true", None, false);
}

#[test]
fn a_scope_is_over_providers_and_our_own_names_are_nobody_elses() {
    let mut guest = Guest::local();
    let check = |guest: &Guest, name: &str, expected: bool| {
        assert_eq!(is_open(guest, &offered(name)), expected, "{name}");
    };
    check(&guest, "t", true);
    check(&guest, "tool_search", false);
    check(&guest, "execute_tool", false);
    let tenant = crate::domain::Tenant {
        scope: crate::domain::Scope::new(&["own/a*".to_owned()]).unwrap(),
        ..(*guest.tenant).clone()
    };
    guest.tenant = Arc::new(tenant);
    check(&guest, "apple", true);
    check(&guest, "pear", false);
}

#[test]
fn what_is_too_long_together_is_named() {
    let long = |n: usize| {
        let spec = ToolSpec::new(&format!("t{n}"), "x").unwrap();
        let schema = json!({"type": "object", "description": "y".repeat(60_000)});
        let tool = Arc::new(ToolMetadata::from(spec.schema(schema).unwrap()));
        (
            Offered {
                tool,
                ..offered("o")
            },
            0.5,
        )
    };
    let body = show(&[long(0), long(1), long(2)], 9, &["late".to_owned()]);
    assert_eq!(body["tools"].as_array().unwrap().len(), 2);
    assert_eq!(body["left_out"], json!(["t2"]));
    assert_eq!(
        body["message"],
        "These are 2 of 9 tools. Not all answered in time: late."
    );
}

#[test]
fn a_list_has_names_that_clients_take() {
    assert!(is_listable("a_B-1.c") && is_listable(&"a".repeat(128)));
    assert!(!is_listable("a b") && !is_listable("a/b") && !is_listable("ä"));
    assert!(!is_listable(&"a".repeat(129)));
}
