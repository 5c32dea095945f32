//! What commands print: results to standard output, everything about them to standard error.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

/// Where a command prints. A reader that has gone away is no error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    color: bool,
}

impl Output {
    /// Standard output and error. Colours only for terminals.
    pub(super) fn new() -> Self {
        Self {
            color: io::stdout().is_terminal(),
        }
    }

    /// A line of the result.
    pub(super) fn line(self, text: impl AsRef<str>) {
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{}", text.as_ref());
    }

    /// A result as JSON.
    pub(super) fn json(self, value: &impl Serialize) -> anyhow::Result<()> {
        self.line(serde_json::to_string_pretty(value)?);
        Ok(())
    }

    /// A line about the work.
    pub(super) fn note(self, text: impl AsRef<str>) {
        let mut out = io::stderr().lock();
        let _ = writeln!(out, "{}", text.as_ref());
    }

    /// Text that stands out on a terminal.
    pub(super) fn strong(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Text that stands back on a terminal.
    pub(super) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Good news.
    pub(super) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Bad news.
    pub(super) fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    /// Rows in columns as wide as they need to be; the last one is not padded.
    pub(super) fn table(self, rows: &[Vec<String>]) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |at: usize| {
            let cells = rows.iter().filter_map(|row| row.get(at));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in rows {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                line.push_str(cell);
                if at + 1 < row.len() {
                    let width = widths.get(at).copied().unwrap_or(0);
                    let padding = width.saturating_sub(cell.chars().count()) + 2;
                    line.extend(std::iter::repeat_n(' ', padding));
                }
            }
            self.line(line);
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        match self.color {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }
}
