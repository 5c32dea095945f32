//! The published catalog on disk: what each source gave last, and what waits.
//!
//! ```text
//! save: beside -> fsync -> present kept as previous -> rename
//! load: present; the previous one where that is cut off or damaged
//! ```
//!
//! One file holds a whole generation, so that a crash leaves the old one or the new one.

mod file;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::pins::Held;
use crate::domain::{Server, ServerName};

pub(super) use self::file::hex;
pub use self::file::{ChangeSnapshotError, ReadSnapshotError, SnapshotFile};
pub use crate::catalog::record::{
    ReadRecordError, server_from_json, server_to_json, tool_from_json, tool_to_json,
};

/// What tells whether a source has changed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Seen {
    /// `ETag` of the last answer.
    pub etag: Option<String>,
    /// `Last-Modified` of the last answer.
    pub last_modified: Option<String>,
    /// SHA-256 of what was read, with the format it was read in.
    pub digest: String,
    /// The documents behind the first: pages of a registry, lists of tools.
    pub further: Vec<SeenDocument>,
    /// Time of the newest update in a registry, as it writes it.
    pub newest: Option<String>,
    /// When a registry that can say what changed was last read whole, in seconds since 1970.
    pub whole_at: Option<u64>,
}

/// What tells whether a document behind the first has changed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SeenDocument {
    /// Where it is.
    pub url: String,
    /// `ETag` of the last answer.
    pub etag: Option<String>,
    /// `Last-Modified` of the last answer.
    pub last_modified: Option<String>,
    /// SHA-256 of its text.
    pub digest: String,
}

/// What one source gave last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceState {
    /// Name of the source.
    pub name: Box<str>,
    /// What tells whether it has changed.
    pub seen: Seen,
    /// What is published of it.
    pub servers: Vec<Arc<Server>>,
    /// What waits, by server.
    pub held: BTreeMap<ServerName, Held>,
}

impl SourceState {
    /// What is published of a server.
    pub fn server(&self, name: &ServerName) -> Option<&Arc<Server>> {
        self.servers.iter().find(|server| server.name == *name)
    }

    /// What waits, server by server.
    pub fn waiting(&self) -> impl Iterator<Item = &Held> {
        self.held.values()
    }

    /// Tools that are published.
    pub fn tools(&self) -> usize {
        self.servers.iter().map(|server| server.tools.len()).sum()
    }
}

/// What all sources gave last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// In the order of the configuration.
    pub sources: Vec<SourceState>,
    /// Servers that were asked for their tools; the answer goes over what sources say.
    pub asked: SourceState,
}

impl Snapshot {
    /// The state of a source.
    pub fn source(&self, name: &str) -> Option<&SourceState> {
        self.sources.iter().find(|source| &*source.name == name)
    }

    /// All states.
    pub fn states(&self) -> impl Iterator<Item = &SourceState> {
        self.sources.iter().chain([&self.asked])
    }

    /// All states, to change them.
    pub fn states_mut(&mut self) -> impl Iterator<Item = &mut SourceState> {
        self.sources.iter_mut().chain([&mut self.asked])
    }

    /// How many things wait.
    pub fn waiting(&self) -> usize {
        let held = self.states().flat_map(|state| state.held.values());
        held.map(Held::len).sum()
    }
}
