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

/// The arguments for a package runner that has to be used.
///
/// `npx` prefers what it finds under the current directory, which is the tenant's workspace: a tool
/// that writes files could plant a package, or an `.npmrc`, and have it run. It is told to look at
/// `apart` instead, where no tool writes. `uvx` reads no configuration of the current directory.
pub(super) fn apart(command: &str, args: &[String], apart: &Path) -> Vec<String> {
    let prefix = (command == "npx").then(|| format!("--prefix={}", apart.display()));
    prefix.into_iter().chain(args.iter().cloned()).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_package_and_its_arguments_are_read_out_of_a_runner() {
        let check = |command: &str, args: &str, expected: Option<(&str, &str)>| {
            let found = match command {
                "npx" => npx(&words(args)),
                _ => uvx(&words(args)),
            };
            let expected = expected.map(|(key, rest)| (key.to_owned(), words(rest)));
            assert_eq!(found, expected, "{command} {args}");
        };
        check(
            "npx",
            "-y @a/b@1.2 stdio -y",
            Some(("npm:@a/b@1.2", "stdio -y")),
        );
        check("npx", "--yes --package=b@1 tool x", Some(("npm:b@1", "x")));
        check("npx", "-y -p b@1 tool", Some(("npm:b@1", "")));
        check("npx", "-y", None);
        check("npx", "--eval code", None);
        check("uvx", "a@1.2 --flag", Some(("pypi:a@1.2", "--flag")));
        check(
            "uvx",
            "--from a==1.2 tool --flag",
            Some(("pypi:a@1.2", "--flag")),
        );
        check(
            "uvx",
            "--with mcp<2 --python 3.11 a@1",
            Some(("pypi:a@1", "")),
        );
        check("uvx", "--from=a==1 tool", Some(("pypi:a@1", "")));
        check("uvx", "--index-url http://x a@1", None);
    }

    #[test]
    fn a_runner_does_not_look_into_the_workspace() {
        let args = words("-y a@1");
        let given = apart("npx", &args, Path::new("/data/workspaces"));
        assert_eq!(given, words("--prefix=/data/workspaces -y a@1"));
        assert_eq!(apart("uvx", &args, Path::new("/data")), args);
    }

    #[test]
    fn an_installed_package_is_started_directly() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        std::fs::write(folder.path().join("bin/tool"), "").unwrap();
        let installed =
            r#"{"npm:a@1": {"command": "bin/tool"}, "npm:b@1": {"command": "bin/gone"}}"#;
        std::fs::write(folder.path().join("installed.json"), installed).unwrap();
        let folders = [PathBuf::from("/nowhere"), folder.path().to_owned()];
        let (program, args) = find("npx", &words("-y a@1 x"), &folders).unwrap();
        assert_eq!(program, folder.path().join("bin/tool"));
        assert_eq!(args, ["x"]);
        assert_eq!(find("npx", &words("-y a@2"), &folders), None);
        assert_eq!(find("npx", &words("-y b@1"), &folders), None);
        assert_eq!(find("node", &words("-y a@1"), &folders), None);
    }
}
