//! Names, pages and likenesses on whole shelves.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::domain::{Definition, Input, Scope, Server, Tenant, Tool};
use crate::search::{Backend, Index, Ranking};

fn shelf(ids: &[&str], patterns: &[&str]) -> Shelf {
    let mut servers: BTreeMap<_, Vec<Tool>> = BTreeMap::new();
    for id in ids {
        let id: ToolId = id.parse().unwrap();
        let input = Input::from_arguments(vec![]);
        let tool = Tool::new(Definition::new(id.tool, "Does it.", input));
        servers.entry(id.server).or_default().push(tool);
    }
    let servers = servers
        .into_iter()
        .map(|(name, tools)| Arc::new(Server::new(name, tools)));
    let catalog = Arc::new(Catalog::new(servers).unwrap());
    let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
    let tenant = Tenant {
        scope: Scope::new(&patterns).unwrap(),
        ..Tenant::local()
    };
    let index = Index::keyword_only(catalog, &Ranking::default());
    Shelf::of(Arc::new(index), &tenant)
}

fn toolkits(eager: Eager) -> Toolkits {
    let search = SearchToolkit {
        name: "crib".parse().unwrap(),
        limit: 5,
        rank: Rank::By(Backend::default()),
    };
    Toolkits::new(eager, Some(search))
}

/// The ids of all pages.
fn pages(toolkits: &Toolkits, shelf: &Shelf, bytes: usize) -> Vec<Vec<String>> {
    let (mut pages, mut cursor) = (Vec::new(), None);
    loop {
        let page = toolkits.page(shelf, cursor.as_deref(), |_| bytes).unwrap();
        let ids = page
            .slots
            .iter()
            .map(|slot| shelf.catalog().id(*slot).to_string());
        pages.push(ids.collect());
        cursor = page.next;
        if cursor.is_none() {
            return pages;
        }
    }
}

#[test]
fn only_eager_tools_of_the_scope_are_listed_and_all_without_a_search_toolkit() {
    let ids = ["a/x", "a/y", "b/x", "b/y"];
    let matching = || Eager::matching(&["*__x".to_owned()]).unwrap();
    let check = |toolkits: Toolkits, patterns: &[&str], expected: &[&str]| {
        let listed = pages(&toolkits, &shelf(&ids, patterns), 1).concat();
        assert_eq!(listed, expected);
    };
    check(toolkits(matching()), &[], &["a/x", "b/x"]);
    check(toolkits(matching()), &["b"], &["b/x"]);
    check(toolkits(Eager::None), &[], &[]);
    check(toolkits(Eager::All), &["!a/x"], &["a/y", "b/x", "b/y"]);
    check(Toolkits::new(Eager::None, None), &["a"], &["a/x", "a/y"]);
}

#[test]
fn what_is_eager_follows_the_catalog() {
    let toolkits = toolkits(Eager::matching(&["*__x".to_owned()]).unwrap());
    let (before, after) = (shelf(&["a/x", "b/y"], &[]), shelf(&["a/y", "b/x"], &[]));
    for _ in 0..2 {
        assert_eq!(pages(&toolkits, &before, 1).concat(), ["a/x"]);
        assert_eq!(pages(&toolkits, &after, 1).concat(), ["b/x"]);
    }
    assert_ne!(toolkits.fingerprint(&before), toolkits.fingerprint(&after));
    let same = shelf(&["a/x", "b/other"], &[]);
    assert_eq!(toolkits.fingerprint(&before), toolkits.fingerprint(&same));
}

#[test]
fn a_page_is_at_most_a_hundred_tools_or_256_kib() {
    let ids: Vec<String> = (0..201).map(|n| format!("a/t{n:03}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let shelf = shelf(&ids, &[]);
    let all = Toolkits::new(Eager::None, None);
    let sizes = |bytes| -> Vec<usize> {
        let pages = pages(&all, &shelf, bytes);
        assert_eq!(pages.concat(), ids);
        pages.iter().map(Vec::len).collect()
    };
    assert_eq!(sizes(1), [100, 100, 1]);
    assert_eq!(sizes(128 * 1024)[..2], [2, 2]);
    assert_eq!(sizes(128 * 1024 + 1)[..2], [1, 1]);
    assert_eq!(sizes(1024 * 1024)[..2], [1, 1]);
}

#[test]
fn a_cursor_stays_good_when_the_catalog_changes() {
    let ids: Vec<String> = (0..150).map(|n| format!("a/t{n:03}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let all = Toolkits::new(Eager::None, None);
    let first = all.page(&shelf(&ids, &[]), None, |_| 1).unwrap();
    // Others before it have come, and the tool that it names has gone.
    let mut later: Vec<&str> = ids.iter().copied().filter(|id| *id != "a/t099").collect();
    later.extend(["a/s1", "a/s2"]);
    let later = shelf(&later, &[]);
    let second = all.page(&later, first.next.as_deref(), |_| 1).unwrap();
    let first = later.catalog().id(second.slots[0]);
    assert_eq!(
        (first.to_string().as_str(), second.slots.len()),
        ("a/t100", 50)
    );
    assert_eq!(all.page(&later, Some("x"), |_| 1), Err(CursorError));
}

#[test]
fn the_nearest_names_are_on_the_shelf() {
    let ids = ["github/create_issue", "gitlab/create_issue", "time/now"];
    let near =
        |patterns: &[&str], name: &str| toolkits(Eager::None).nearest(&shelf(&ids, patterns), name);
    let both = ["github__create_issue", "gitlab__create_issue"];
    assert_eq!(near(&[], "github__create_isue"), both);
    assert_eq!(near(&[], "create_issue"), both);
    assert_eq!(near(&["!github"], "github__create_isue"), both[1..]);
    assert!(near(&[], "zzz").is_empty());
    assert!(near(&[], &"z".repeat(100_000)).is_empty());
}

#[test]
fn a_server_named_like_the_toolkit_keeps_its_tools() {
    let (toolkits, shelf) = (toolkits(Eager::All), shelf(&["crib/search_tools"], &[]));
    let id = "crib/search_tools".parse().unwrap();
    let name = toolkits.name_of(&id);
    assert_ne!(name, "crib__search_tools");
    assert_eq!(toolkits.find(&shelf, &name), shelf.find(&id));
    assert_eq!(toolkits.find(&shelf, "crib__search_tools"), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn every_tool_is_found_by_its_name_and_by_nobody_elses(
        ids in prop::collection::btree_set("[ab][ab-]{0,30}/[a_. é-]{0,3}b{0,60}é?", 1..40)
    ) {
        let ids: Vec<&str> = ids
            .iter()
            .map(String::as_str)
            .filter(|id| id.parse::<ToolId>().is_ok())
            .collect();
        let (toolkits, whole) = (toolkits(Eager::All), shelf(&ids, &[]));
        let nobody = shelf(&ids, &["zzz"]);
        for slot in whole.slots() {
            let name = toolkits.name_of(&whole.catalog().id(slot));
            prop_assert_eq!(toolkits.find(&whole, &name), Some(slot), "{}", name);
            prop_assert_eq!(toolkits.find(&nobody, &name), None);
        }
    }

    #[test]
    fn no_name_panics(name in any::<String>(), tail in "[a-z]{0,3}_[a-z_]{0,12}") {
        let shelf = shelf(&["a/b", "abc/d e"], &[]);
        let toolkits = toolkits(Eager::All);
        for name in [name, tail] {
            let _ = toolkits.find(&shelf, &name);
            let _ = toolkits.nearest(&shelf, &name);
        }
    }
}
