//! Catalogs that others publish, read into ours: one file a format.
//!
//! ```text
//! path -> collect: documents, each with its format
//! documents -> read: servers, and a report of what was taken, merged, repaired, refused and why
//! ```
//!
//! [`read`] does no I/O and never panics; [`collect()`] and [`collect_all`] read files and nothing
//! else. What comes in is either in the result or in the report: see [`Counts::balance`].

mod collect;
mod detect;
mod report;
mod source;
mod intake;
mod schema;
mod arguments;
mod tool;
mod placeholder;
mod wiring;
mod docker;
mod docker_registry;
mod official;
mod mcpm;
mod tools_list;
mod client_config;
mod livemcpbench;
mod toolsdk;
mod openapi;
mod normal_form;

use std::fmt;
use std::str::FromStr;

use crate::catalog::import::intake::Intake;
use crate::catalog::manifest;
use crate::domain::Server;

pub use self::collect::{CollectError, Collected, FILES_MAX, collect, collect_all, group};
pub(super) use self::docker::EXTENSION as DOCKER_EXTENSION;
pub use self::report::{Counts, Note, NoteKind, Report};
pub use self::source::DOCUMENT_BYTES_MAX;
pub(super) use self::tool::{ARGUMENTS_KEY, KEYWORDS_KEY};
pub(super) use self::tools_list::{SERVER_KEY as LIST_SERVER_KEY, SERVERS_KEY as LIST_SERVERS_KEY};

/// A way to write down servers and tools.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Format {
    /// Compiled Docker MCP catalog, `version: 2` or `3`.
    Docker,
    /// Checkout of Docker's registry: a folder a server, with `server.yaml` and `tools.json`.
    DockerRegistry,
    /// The official MCP Registry: `server.json`, old or current, or pages of `GET /v0/servers`.
    OfficialRegistry,
    /// Files of the mcpm registry.
    Mcpm,
    /// Results of `tools/list`, in any envelope.
    ToolsList,
    /// `mcpServers` of desktop clients, `servers` of VS Code.
    ClientConfig,
    /// The servers of `LiveMCPBench`.
    LiveMcpBench,
    /// Index and packages of toolsdk.
    Toolsdk,
    /// `OpenAPI` 3.0 and 3.1 documents.
    OpenApi,
    /// One server a line, as [`crate::catalog::export::normal_form`] writes it.
    NormalForm,
    /// Our own catalog files.
    Toml,
}

impl Format {
    /// All formats. When several are read together, those that say more about a server come
    /// first, so that what they say wins.
    pub const ALL: [Self; 11] = [
        Self::Toml,
        Self::NormalForm,
        Self::ToolsList,
        Self::LiveMcpBench,
        Self::DockerRegistry,
        Self::Docker,
        Self::OfficialRegistry,
        Self::Mcpm,
        Self::ClientConfig,
        Self::OpenApi,
        Self::Toolsdk,
    ];

    /// The format of a document, by its name and what stands in it; `None` when it is none.
    pub fn detect(name: &str, text: &str) -> Option<Self> {
        detect::detect(name, text)
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::DockerRegistry => "docker-registry",
            Self::OfficialRegistry => "official-registry",
            Self::Mcpm => "mcpm",
            Self::ToolsList => "tools-list",
            Self::ClientConfig => "client-config",
            Self::LiveMcpBench => "live-mcp-bench",
            Self::Toolsdk => "toolsdk",
            Self::OpenApi => "open-api",
            Self::NormalForm => "normal-form",
            Self::Toml => "toml",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text names no format.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "`{0}` is no catalog format: write docker, docker-registry, official-registry, mcpm, tools-list, \
     client-config, live-mcp-bench, toolsdk, open-api, normal-form or toml"
)]
pub struct ParseFormatError(String);

impl FromStr for Format {
    type Err = ParseFormatError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.into_iter().find(|format| format.as_str() == text);
        named.ok_or_else(|| ParseFormatError(text.to_owned()))
    }
}

/// A text to read, at most [`DOCUMENT_BYTES_MAX`] long.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Document {
    /// File or URL; places in the report start with it.
    pub name: String,
    /// What stands in it.
    pub text: String,
}

/// What documents gave.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// The servers, each name once.
    pub servers: Vec<Server>,
    /// What happened on the way.
    pub report: Report,
}

/// Reads documents of one format. A document that cannot be read costs itself and no other.
pub fn read(format: Format, documents: &[Document]) -> Imported {
    let mut intake = Intake::new(format);
    intake.documents(documents.len());
    let mut sized = Vec::with_capacity(documents.len());
    for document in documents {
        if DOCUMENT_BYTES_MAX < document.text.len() {
            let bytes = document.text.len();
            let why = format!("{bytes} bytes, over the limit of {DOCUMENT_BYTES_MAX}");
            intake.refuse_document(&document.name, why);
        } else {
            sized.push(document);
        }
    }
    match format {
        Format::Docker => docker::read(&mut intake, &sized),
        Format::DockerRegistry => docker_registry::read(&mut intake, &sized),
        Format::OfficialRegistry => each(&mut intake, &sized, official::read),
        Format::Mcpm => each(&mut intake, &sized, mcpm::read),
        Format::ToolsList => tools_list::read(&mut intake, &sized),
        Format::ClientConfig => each(&mut intake, &sized, client_config::read),
        Format::LiveMcpBench => each(&mut intake, &sized, livemcpbench::read),
        Format::Toolsdk => toolsdk::read(&mut intake, &sized),
        Format::OpenApi => each(&mut intake, &sized, openapi::read),
        Format::NormalForm => normal_form::read(&mut intake, &sized),
        Format::Toml => read_toml(&mut intake, &sized),
    }
    intake.finish()
}

/// Reads documents that each stand for themselves.
fn each(
    intake: &mut Intake,
    documents: &[&Document],
    read: fn(&mut Intake, &str, &serde_json::Value),
) {
    for document in documents {
        match source::parse(document) {
            Ok(value) => read(intake, &document.name, &value),
            Err(why) => intake.refuse_document(&document.name, why),
        }
    }
}

fn read_toml(intake: &mut Intake, documents: &[&Document]) {
    for document in documents {
        let manifest = manifest::read(&document.name, &document.text);
        let Some(server) = manifest.server else {
            let faults: Vec<String> = manifest.faults.iter().map(ToString::to_string).collect();
            intake.refuse_server(&document.name, &document.name, 0, faults.join("; "));
            continue;
        };
        intake.take_as_is(&document.name, server);
    }
}

/// Where the next page of a registry starts, as its last page says.
pub fn next_cursor(page: &str) -> Option<String> {
    let value = source::json(page).ok()?;
    let metadata = &value["metadata"];
    let cursor = source::text(metadata, &["nextCursor", "next_cursor"]);
    (!cursor.is_empty()).then(|| cursor.to_owned())
}

/// Lists of tools that complete a compiled Docker catalog, by their `https` URLs: a document
/// fetched from one, under that name, is read together with the catalog.
pub fn tools_urls(catalog: &Document) -> Vec<String> {
    source::parse(catalog).map_or_else(|_| Vec::new(), |value| docker::tools_urls(&value))
}

#[cfg(test)]
mod tests;
