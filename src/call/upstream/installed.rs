//! Packages that are installed already: started directly, not through `npx` or `uvx`, which take
//! seconds and two more processes.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The program and arguments that a package runner's arguments stand for, when one of `folders`
/// has an `installed.json` that names the package.
pub(super) fn find(
    command: &str,
    args: &[String],
    folders: &[PathBuf],
) -> Option<(PathBuf, Vec<String>)> {
    let wanted = match command {
        "npx" => npx(args)?,
        "uvx" => uvx(args)?,
        _ => return None,
    };
    let program = folders
        .iter()
        .find_map(|folder| program(folder, &wanted.0))?;
    Some((program, wanted.1))
}

fn program(folder: &Path, key: &str) -> Option<PathBuf> {
    let text = std::fs::read_to_string(folder.join("installed.json")).ok()?;
    let installed: Value = serde_json::from_str(&text).ok()?;
    let relative = installed.get(key)?.get("command")?.as_str()?;
    let folder = std::path::absolute(folder).ok()?;
    let program = folder.join(relative);
    program.is_file().then_some(program)
}

/// `-y PKG@VERSION ..` or `-y --package=PKG@VERSION BIN ..`.
fn npx(args: &[String]) -> Option<(String, Vec<String>)> {
    let mut package: Option<&str> = None;
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "-y" | "--yes" | "--" => {}
            "-p" | "--package" => package = Some(rest.next()?),
            other => match other.strip_prefix("--package=") {
                Some(named) => package = Some(named),
                None if other.starts_with('-') => return None,
                None => {
                    let package = package.unwrap_or(other);
                    return Some((format!("npm:{package}"), rest.cloned().collect()));
                }
            },
        }
    }
    None
}

/// `PKG@VERSION ..` or `--from PKG==VERSION BIN ..`, with `--with` and `--python` before.
fn uvx(args: &[String]) -> Option<(String, Vec<String>)> {
    let mut package: Option<&str> = None;
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--from" => package = Some(rest.next()?),
            "--with" | "--python" => {
                rest.next()?;
            }
            other => match other.strip_prefix("--from=") {
                Some(named) => package = Some(named),
                None if other.starts_with("--with=") || other.starts_with("--python=") => {}
                None if other.starts_with('-') => return None,
                None => {
                    let package = package.unwrap_or(other).replace("==", "@");
                    return Some((format!("pypi:{package}"), rest.cloned().collect()));
                }
            },
        }
    }
    None
}
