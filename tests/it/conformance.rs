//! The official conformance suite, against the fixture on our HTTP stack and against the program.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::program::{finish, root};

/// Longest that all its runs may take.
const SUITE_MAX: Duration = Duration::from_mins(9);

#[test]
fn the_frozen_sets_of_requirements_are_met() {
    let (suite, script) = (root().join(".conformance"), "tests/conformance/run.py");
    let program = env!("CARGO_BIN_EXE_toolcrib");
    let fixture = Path::new(program).with_file_name("examples/conformance_fixture");
    let needed = [
        &suite.join("installed.json"),
        &root().join(script),
        &fixture,
    ];
    if let Some(missing) = needed.iter().find(|path| !path.is_file()) {
        let missing = missing.display();
        println!("skipped: no {missing}, `make suite` and `cargo build --examples` bring it");
        return;
    }
    let mut command = Command::new("python3");
    command.arg(root().join(script)).arg(&fixture);
    command.arg(program).arg(suite);
    let (code, output) = finish(&mut command, SUITE_MAX);
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("fixture, 2026-07-28: "), "{output}");
}
