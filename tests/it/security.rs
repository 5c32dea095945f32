//! Every attack in `docs/security.md` has tests, and they are there.

use std::collections::HashSet;
use std::path::Path;

use crate::program::root;

/// Names of all tests in the sources below a folder.
fn tests_below(folder: &Path, names: &mut HashSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests_below(&path, names);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let mut marked = false;
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                let line = line.trim();
                let name = line.strip_prefix("async ").unwrap_or(line);
                if let Some(name) = name.strip_prefix("fn ").filter(|_| marked) {
                    names.insert(name.split('(').next().unwrap_or_default().to_owned());
                }
                marked = line.starts_with("#[test]")
                    || line.starts_with("#[tokio::test")
                    || marked && line.starts_with("#[");
            }
        }
    }
}

#[test]
fn every_attack_has_its_tests() {
    let mut names = HashSet::new();
    for folder in ["src", "tests/it"] {
        tests_below(&root().join(folder), &mut names);
    }
    let page = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
    // A heading, a line, and one row for each attack.
    assert_eq!(rows.len(), 2 + 19);
    for row in &rows[2..] {
        let tests = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let tests: Vec<&str> = tests.split_whitespace().collect();
        assert!(!tests.is_empty(), "{row}");
        for test in tests {
            let name = test.trim_matches('`');
            assert!(names.contains(name), "no test is called `{name}`");
        }
    }
}
