//! What is wrong with a catalog file, where, and what to do.

use std::fmt;

/// One fault of one file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fault {
    /// The file.
    pub file: Box<str>,
    /// Line in it, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: Box<str>,
    /// What to do about it.
    pub remedy: Box<str>,
}

impl Fault {
    /// A fault at a line.
    pub fn new(
        file: &str,
        line: usize,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            file: file.into(),
            line,
            message: message.into().into(),
            remedy: remedy.into().into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            message,
            remedy,
        } = self;
        write!(f, "{file}:{line}: {message}\n    remedy: {remedy}")
    }
}
