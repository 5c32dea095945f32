//! What became of everything that came in.

use std::fmt;

/// What happened to an item.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum NoteKind {
    /// Left out, for a reason.
    Refused,
    /// It was there already: one was made of two.
    Merged,
    /// Taken, but not as it was written.
    Repaired,
    /// A server without tools: it can be asked for them.
    Empty,
    /// Taken as it was; there is something to know about it.
    Noted,
}

impl fmt::Display for NoteKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "refused",
            Self::Merged => "merged",
            Self::Repaired => "repaired",
            Self::Empty => "empty",
            Self::Noted => "noted",
        })
    }
}

/// One line of a report.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Note {
    /// File and position: `file#/json/pointer` or `file:line`.
    pub place: String,
    /// What happened.
    pub kind: NoteKind,
    /// The item: a document, a server, or `server/tool`.
    pub what: String,
    /// The reason.
    pub why: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            kind,
            what,
            why,
        } = self;
        write!(f, "{place}: {kind} {what}: {why}")
    }
}

/// How many came in, and where each of them went.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Documents given.
    pub documents_in: usize,
    /// Documents that could not be read at all.
    pub documents_refused: usize,
    /// Servers found in the documents.
    pub servers_in: usize,
    /// Servers in the result.
    pub servers_out: usize,
    /// Servers left out.
    pub servers_refused: usize,
    /// Servers that another one of the same name took in.
    pub servers_merged: usize,
    /// Tools found in the documents.
    pub tools_in: usize,
    /// Tools in the result.
    pub tools_out: usize,
    /// Tools left out.
    pub tools_refused: usize,
    /// Tools that were there already.
    pub tools_merged: usize,
}

impl Counts {
    /// Whether nothing was lost in silence: in = out + refused + merged.
    pub fn balance(&self) -> bool {
        self.servers_in == self.servers_out + self.servers_refused + self.servers_merged
            && self.tools_in == self.tools_out + self.tools_refused + self.tools_merged
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.documents_in += other.documents_in;
        self.documents_refused += other.documents_refused;
        self.servers_in += other.servers_in;
        self.servers_out += other.servers_out;
        self.servers_refused += other.servers_refused;
        self.servers_merged += other.servers_merged;
        self.tools_in += other.tools_in;
        self.tools_out += other.tools_out;
        self.tools_refused += other.tools_refused;
        self.tools_merged += other.tools_merged;
    }
}

/// What an import did.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Report {
    /// One line for each item that was not taken just as it was.
    pub notes: Vec<Note>,
    /// The sums.
    pub counts: Counts,
}

impl Report {
    /// What was refused, each with its place and reason.
    pub fn refused(&self) -> impl Iterator<Item = &Note> {
        let is_refused = |note: &&Note| note.kind == NoteKind::Refused;
        self.notes.iter().filter(is_refused)
    }
}
