//! Catalogs that others publish, read into servers.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::catalog::manifest;
use crate::catalog::snapshot::server_from_json;
use crate::domain::Server;

/// How a catalog is written.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Format {
    /// One server in normal form a line.
    NormalForm,
    /// Catalog files, one server each.
    Toml,
}

/// The name of a format is unknown.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is no catalog format: write normal-form or toml")]
pub struct ParseFormatError(String);

impl FromStr for Format {
    type Err = ParseFormatError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "normal-form" => Ok(Self::NormalForm),
            "toml" => Ok(Self::Toml),
            other => Err(ParseFormatError(other.to_owned())),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NormalForm => "normal-form",
            Self::Toml => "toml",
        })
    }
}

/// A text to read, not yet looked at.
#[derive(Clone, Debug)]
pub struct Document {
    /// What a report calls it.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// What became of documents.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What was refused: where, and why.
    pub refused: Vec<String>,
}

/// What documents gave.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// All servers that are good.
    pub servers: Vec<Server>,
    /// What became of the rest.
    pub report: Report,
}

/// Reads documents of one format. Nothing is lost without a line in the report.
pub fn read(format: Format, documents: &[Document]) -> Imported {
    let mut imported = Imported::default();
    for document in documents {
        match format {
            Format::NormalForm => read_lines(document, &mut imported),
            Format::Toml => {
                let manifest = manifest::read(&document.name, &document.text);
                imported.servers.extend(manifest.server);
                let faults = manifest.faults.iter().map(ToString::to_string);
                imported.report.refused.extend(faults);
            }
        }
    }
    imported
}

fn read_lines(document: &Document, imported: &mut Imported) {
    let lines = (1..).zip(document.text.lines());
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let value: Result<Value, _> = serde_json::from_str(line);
        let server = value
            .map_err(|error| error.to_string())
            .and_then(|value| server_from_json(&value).map_err(|error| error.to_string()));
        match server {
            Ok(server) => imported.servers.push(server.cleaned()),
            Err(error) => {
                let refused = format!("{}:{number}: {error}", document.name);
                imported.report.refused.push(refused);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_line_costs_itself_alone() {
        let text =
            "{\"name\": \"a\", \"tools\": [{\"name\": \"x\"}]}\n\nnot json\n{\"name\": \"B\"}\n";
        let document = Document {
            name: "c.jsonl".to_owned(),
            text: text.to_owned(),
        };
        let imported = read(Format::NormalForm, &[document]);
        assert_eq!(imported.servers.len(), 1);
        insta::assert_snapshot!(imported.report.refused.join("\n"), @r#"
        c.jsonl:3: expected ident at line 1 column 2
        c.jsonl:4: `name` is missing or not as it should be: "B"
        "#);
    }
}
