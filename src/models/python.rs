//! Running `python3`, for pip and the conversion scripts.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Last lines of a failed program that are worth showing.
const LINES_SHOWN: usize = 8;

/// Why `python3` did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunPythonError {
    /// Not installed, or not in `PATH`.
    #[error("`python3` does not start: install Python 3 with pip and put it in PATH")]
    Start(#[source] io::Error),
    /// It ran and failed.
    #[error("`python3 {what}` failed:\n{output}")]
    Failed {
        /// The module or script.
        what: String,
        /// The end of its output.
        output: String,
    },
}

/// Runs `python3` with arguments; its output is shown when it fails.
pub(super) fn run(
    what: &str,
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<(), RunPythonError> {
    let output = Command::new("python3")
        .args(args)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
        .stdin(Stdio::null())
        .output()
        .map_err(RunPythonError::Start)?;
    if output.status.success() {
        return Ok(());
    }
    Err(RunPythonError::Failed {
        what: what.to_owned(),
        output: end_of(&output),
    })
}

/// Whether `python3 -m pip` works, and where `python3` is not enough.
pub(super) fn check_pip() -> Result<(), RunPythonError> {
    run("-m pip --version", ["-m", "pip", "--version"])
}

fn end_of(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let start = lines.len().saturating_sub(LINES_SHOWN);
    lines.get(start..).unwrap_or_default().join("\n")
}

/// A folder below which scripts are unpacked.
pub(super) fn unpack_tools(folder: &std::path::Path) -> io::Result<PathBuf> {
    let tools = folder.join("tools");
    std::fs::create_dir_all(&tools)?;
    for (name, text) in [
        ("st2onnx.py", include_str!("../../models/tools/st2onnx.py")),
        (
            "convert_e5.py",
            include_str!("../../models/tools/convert_e5.py"),
        ),
        (
            "smooth.minilm.json",
            include_str!("../../models/tools/smooth.minilm.json"),
        ),
    ] {
        std::fs::write(tools.join(name), text)?;
    }
    Ok(tools)
}
