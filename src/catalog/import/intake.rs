//! Where servers of all formats arrive: names brought into the alphabet, namesakes united, and
//! every item counted.

use std::collections::HashMap;

use serde_json::Value;

use crate::catalog::import::{Format, Imported, Note, NoteKind, Report, tool};
use crate::catalog::merge;
use crate::domain::{Server, ServerName, Tool};

/// Most servers of one import.
const SERVERS_MAX: usize = 200_000;
/// Most tools of one server.
const TOOLS_MAX: usize = 10_000;
/// Longest part of a foreign text that a report repeats, in characters.
const WHAT_CHARS_MAX: usize = 120;

/// Collects what one import takes.
pub(super) struct Intake {
    format: Format,
    servers: Vec<Server>,
    /// Position of each name, and the foreign text that it stands for.
    names: HashMap<ServerName, String>,
    at: HashMap<ServerName, usize>,
    report: Report,
}

impl Intake {
    pub(super) fn new(format: Format) -> Self {
        Self {
            format,
            servers: Vec::new(),
            names: HashMap::new(),
            at: HashMap::new(),
            report: Report::default(),
        }
    }

    pub(super) fn note(
        &mut self,
        kind: NoteKind,
        place: &str,
        what: impl AsRef<str>,
        why: impl Into<String>,
    ) {
        let what = crate::domain::clean_line(what.as_ref(), WHAT_CHARS_MAX);
        self.report.notes.push(Note {
            place: place.to_owned(),
            kind,
            what,
            why: why.into(),
        });
    }

    /// A document that gives nothing.
    pub(super) fn refuse_document(&mut self, place: &str, why: impl Into<String>) {
        self.report.counts.documents_refused += 1;
        self.note(NoteKind::Refused, place, "document", why);
    }

    /// A server that is left out with its tools.
    pub(super) fn refuse_server(
        &mut self,
        place: &str,
        what: &str,
        tools: usize,
        why: impl Into<String>,
    ) {
        let counts = &mut self.report.counts;
        counts.servers_in += 1;
        counts.servers_refused += 1;
        counts.tools_in += tools;
        counts.tools_refused += tools;
        self.note(NoteKind::Refused, place, what, why);
    }

    /// A server that stands for one that is elsewhere in the documents.
    pub(super) fn merge_server(&mut self, place: &str, what: &str, why: impl Into<String>) {
        let counts = &mut self.report.counts;
        counts.servers_in += 1;
        counts.servers_merged += 1;
        self.note(NoteKind::Merged, place, what, why);
    }

    /// The name of a server here: the nearest legal one, with a number behind it when it stands
    /// for another foreign name already. `None`, and refused, when there is none.
    pub(super) fn name(&mut self, place: &str, foreign: &str, tools: usize) -> Option<ServerName> {
        // A legal name stays as it is: the nearest one to `a--b` is another.
        let legal = foreign.parse().ok();
        let Some(nearest) = legal.or_else(|| ServerName::nearest_to(foreign)) else {
            let why = "its name has no letter or digit that a server name may have";
            self.refuse_server(place, foreign, tools, why);
            return None;
        };
        if SERVERS_MAX <= self.servers.len() {
            let why = format!("the import has {SERVERS_MAX} servers already");
            self.refuse_server(place, foreign, tools, why);
            return None;
        }
        let short: String = nearest.as_str().chars().take(56).collect();
        let numbered = (2..).map(|n| format!("{short}-{n}"));
        let name = std::iter::once(nearest.to_string())
            .chain(numbered)
            .filter_map(|name| name.parse::<ServerName>().ok())
            .find(|name| self.names.get(name).is_none_or(|known| known == foreign))?;
        if self
            .names
            .insert(name.clone(), foreign.to_owned())
            .is_none()
            && name != nearest
        {
            let why = format!("`{nearest}` stands for another server, so it is `{name}`");
            self.note(NoteKind::Repaired, place, foreign, why);
        }
        Some(name)
    }

    /// The tools of a server: `(place, definition)` each.
    pub(super) fn tools(
        &mut self,
        server: &ServerName,
        definitions: Vec<(String, &Value)>,
    ) -> Vec<Tool> {
        let mut tools: Vec<Tool> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        for (place, definition) in definitions {
            self.report.counts.tools_in += 1;
            let read = match tools.len() < TOOLS_MAX {
                true => tool::read(definition),
                false => Err(format!("the server has {TOOLS_MAX} tools already")),
            };
            let foreign = match definition.as_str() {
                Some(name) => name,
                None => definition["name"].as_str().unwrap_or("tool without a name"),
            };
            let what = format!("{server}/{foreign}");
            let (tool, repairs) = match read {
                Ok(read) => read,
                Err(why) => {
                    self.report.counts.tools_refused += 1;
                    self.note(NoteKind::Refused, &place, what, why);
                    continue;
                }
            };
            if let Some(at) = known.get(tool.name().as_str()) {
                self.report.counts.tools_merged += 1;
                let same = tools
                    .get(*at)
                    .is_some_and(|first| first.hash() == tool.hash());
                let why = match same {
                    true => "the same tool is there already",
                    false => "a tool of this name is there already; the first one stays",
                };
                self.note(NoteKind::Merged, &place, what, why);
                continue;
            }
            for why in repairs {
                self.note(NoteKind::Repaired, &place, &what, why);
            }
            known.insert(tool.name().to_string(), tools.len());
            tools.push(tool);
        }
        tools
    }

    /// Takes a server whose name came from [`Intake::name`]. Where the source does not say it,
    /// the provenance names format and foreign name.
    pub(super) fn take(&mut self, place: &str, mut server: Server) {
        let foreign = self.names.get(&server.name).cloned().unwrap_or_default();
        if server.provenance.source.is_empty() {
            server.provenance.source = format!("{}:{foreign}", self.format).into();
        }
        if server.title.is_empty() {
            server.title = foreign.as_str().into();
        }
        let mut server = server.cleaned();
        let from = &mut server.provenance;
        for text in [&mut from.source, &mut from.version, &mut from.license] {
            *text = crate::domain::clean_line(text, WHAT_CHARS_MAX * 2).into();
        }
        if server.tools.is_empty() && server.launch.is_none() {
            let why = "it has no tools and no way to start it and ask";
            self.refuse_server(place, &foreign, 0, why);
            return;
        }
        self.place_server(place, server);
    }

    /// Takes a server that was checked elsewhere.
    pub(super) fn take_as_is(&mut self, place: &str, server: Server) {
        self.report.counts.tools_in += server.tools.len();
        self.place_server(place, server);
    }

    fn place_server(&mut self, place: &str, server: Server) {
        self.report.counts.servers_in += 1;
        if let Some(at) = self.at.get(&server.name).copied() {
            self.report.counts.servers_merged += 1;
            let (name, later) = (server.name.clone(), server.tools.len());
            let Some(first) = self.servers.get_mut(at) else {
                return;
            };
            let before = first.tools.len();
            let why = merge::unite(first, server).to_string();
            self.report.counts.tools_merged += later - (first.tools.len() - before);
            self.note(NoteKind::Merged, place, name.as_str(), why);
            return;
        }
        if server.tools.is_empty() {
            let why = "it lists no tools; asking it would";
            self.note(NoteKind::Empty, place, server.name.as_str(), why);
        }
        self.at.insert(server.name.clone(), self.servers.len());
        self.servers.push(server);
    }

    /// Counts documents as they are given.
    pub(super) fn documents(&mut self, given: usize) {
        self.report.counts.documents_in = given;
    }

    pub(super) fn finish(mut self) -> Imported {
        let counts = &mut self.report.counts;
        counts.servers_out = self.servers.len();
        counts.tools_out = self.servers.iter().map(|server| server.tools.len()).sum();
        Imported {
            servers: self.servers,
            report: self.report,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(foreign: &[&str]) -> Vec<String> {
        let mut intake = Intake::new(Format::ToolsList);
        let named = foreign.iter().map(|foreign| intake.name("x", foreign, 0));
        named
            .map(|name| name.map_or_else(String::new, |name| name.to_string()))
            .collect()
    }

    #[test]
    fn foreign_names_that_come_out_alike_are_told_apart() {
        let found = names(&["SQLite", "sqlite", "SQLite", "sq lite", "!!"]);
        assert_eq!(found, ["sqlite", "sqlite-2", "sqlite", "sq-lite", ""]);
    }

    #[test]
    fn a_legal_name_stays_as_it_is() {
        assert_eq!(names(&["o-6----3rn", "a-"]), ["o-6----3rn", "a-"]);
    }
}
