//! From what was read to the next snapshot.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::catalog::pins::{Before, Held, Policy, judge};
use crate::catalog::refresh::read::Reading;
use crate::catalog::refresh::since::Part;
use crate::catalog::refresh::{Source, SourceOutcome, SourceReport};
use crate::catalog::scan::KnownNames;
use crate::catalog::snapshot::{Seen, Snapshot, SourceState};
use crate::domain::{Server, ServerName};

/// Servers that a source must have had before a loss of most of them is doubted.
const LOSS_FROM: usize = 10;
/// What reports call the servers that were asked.
const ASKED: &str = "asked";

/// A server that was asked for its tools.
#[derive(Debug)]
pub struct Asked {
    /// Which one.
    pub name: ServerName,
    /// The server with the tools it listed and what of them was refused, or why it gave none.
    pub answer: Result<(Server, Vec<String>), String>,
    /// Where the server spoke up by itself: what the catalog has of it, which the answer is judged
    /// against. Nobody has said that its word is to be taken.
    pub unasked_over: Option<Arc<Server>>,
}

/// All that a round has read.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) sources: Vec<Source>,
    pub(super) policies: HashMap<ServerName, Policy>,
    pub(super) known: KnownNames,
    /// One for each source.
    pub(super) readings: Vec<Reading>,
    pub(super) asked: Vec<Asked>,
}

impl Round {
    /// Changes the snapshot, and tells what became of each source.
    pub(super) fn apply(self, snapshot: &mut Snapshot) -> Vec<SourceReport> {
        let mut reports = Vec::new();
        let mut states = Vec::new();
        for (source, reading) in self.sources.iter().zip(self.readings) {
            let before = snapshot.source(&source.name).cloned();
            let mut state = before.unwrap_or_else(|| SourceState {
                name: source.name.clone(),
                ..SourceState::default()
            });
            let policy = |name: &ServerName| {
                let own = self.policies.get(name);
                own.copied().unwrap_or(source.policy)
            };
            let outcome = match reading {
                Reading::Unchanged => SourceOutcome::Unchanged,
                Reading::Failed(error) => SourceOutcome::Failed {
                    reason: chain(&error),
                },
                Reading::Read {
                    servers, refused, ..
                } if lost_most(&state, &servers, &refused) => SourceOutcome::Failed {
                    reason: doubt(&state, &servers, &refused),
                },
                Reading::Read {
                    seen,
                    servers,
                    refused,
                } => {
                    take(&mut state, seen, servers, &policy, &self.known);
                    SourceOutcome::Read { refused }
                }
                Reading::Part {
                    seen,
                    part,
                    refused,
                } => {
                    let before = (state.servers.clone(), state.held.clone());
                    state.seen = seen;
                    take_part(&mut state, part, &policy, &self.known);
                    match before == (state.servers.clone(), state.held.clone()) {
                        true => SourceOutcome::Unchanged,
                        false => SourceOutcome::Read { refused },
                    }
                }
            };
            reports.push(report(&state, outcome));
            states.push(state);
        }
        snapshot.sources = states;
        if !self.asked.is_empty() {
            snapshot.asked.name = ASKED.into();
        }
        for asked in self.asked {
            let policy = self.policies.get(&asked.name).copied();
            reports.push(answered(&mut snapshot.asked, asked, policy, &self.known));
        }
        reports
    }
}

/// Judges what one server listed.
fn answered(
    state: &mut SourceState,
    asked: Asked,
    policy: Option<Policy>,
    known: &KnownNames,
) -> SourceReport {
    let outcome = match asked.answer {
        Ok((server, refused)) => {
            take_answer(state, (server, asked.unasked_over), policy, known);
            SourceOutcome::Read { refused }
        }
        Err(reason) => SourceOutcome::Failed { reason },
    };
    let published = state.server(&asked.name);
    let held = state.held.get(&asked.name);
    SourceReport {
        name: format!("{ASKED} {}", asked.name).into(),
        outcome,
        servers: usize::from(published.is_some()),
        tools: published.map_or(0, |server| server.tools.len()),
        waiting: held.map_or(0, Held::len),
    }
}

/// Whether a damaged document has cost a source most of its servers.
fn lost_most(state: &SourceState, servers: &[Server], refused: &[String]) -> bool {
    LOSS_FROM <= state.servers.len()
        && !refused.is_empty()
        && servers.len() * 2 < state.servers.len()
}

fn doubt(state: &SourceState, servers: &[Server], refused: &[String]) -> String {
    format!(
        "it has {} of {} servers left, and {} faults: {}",
        servers.len(),
        state.servers.len(),
        refused.len(),
        refused.first().map_or("", String::as_str)
    )
}

fn take(
    state: &mut SourceState,
    seen: Seen,
    servers: Vec<Server>,
    policy: &dyn Fn(&ServerName) -> Policy,
    known: &KnownNames,
) {
    let mut published = Vec::with_capacity(servers.len());
    let mut held = BTreeMap::new();
    let before: HashMap<&ServerName, &Server> = state
        .servers
        .iter()
        .map(|server| (&server.name, &**server))
        .collect();
    for server in servers {
        let name = server.name.clone();
        let before = Before {
            published: before.get(&name).copied(),
            held: state.held.get(&name),
        };
        let judged = judge(policy(&name), before, server, known);
        published.extend(judged.published);
        if !judged.held.is_empty() {
            held.insert(name, judged.held);
        }
    }
    drop(before);
    state.seen = seen;
    state.servers = published;
    state.held = held;
}

/// Takes what changed. All else stays as it is, what waits as well.
fn take_part(
    state: &mut SourceState,
    part: Part,
    policy: &dyn Fn(&ServerName) -> Policy,
    known: &KnownNames,
) {
    state
        .servers
        .retain(|server| !part.removed.contains(&server.name));
    state.held.retain(|name, _| !part.removed.contains(name));
    for server in part.servers {
        let name = server.name.clone();
        let before = Before {
            published: state.server(&name).map(|server| &**server),
            held: state.held.get(&name),
        };
        let judged = judge(policy(&name), before, server, known);
        let at = state.servers.iter().position(|server| server.name == name);
        match (
            at.and_then(|at| state.servers.get_mut(at)),
            judged.published,
        ) {
            (Some(place), Some(published)) => *place = published,
            (None, Some(published)) => state.servers.push(published),
            (_, None) => state.servers.retain(|server| server.name != name),
        }
        state.held.remove(&name);
        if !judged.held.is_empty() {
            state.held.insert(name, judged.held);
        }
    }
}

/// The first answer of a server that was asked is taken as the truth, where nothing in it is
/// flagged. Later ones are not: what changed is withheld, since the server no longer does what the
/// catalog says. A server that speaks up by itself is held to what the catalog has of it, `over`.
fn take_answer(
    state: &mut SourceState,
    (server, over): (Server, Option<Arc<Server>>),
    policy: Option<Policy>,
    known: &KnownNames,
) {
    let name = server.name.clone();
    let last = state.server(&name).cloned();
    let policy = match (policy, &last) {
        (Some(policy), _) => policy,
        (None, Some(_)) => Policy::Quarantine,
        (None, None) => Policy::Pin,
    };
    let is_first = last.is_none();
    let published = last.or_else(|| over.clone());
    // The server itself is as the catalog has it; only tools were asked for.
    let published = published.map(|old| Server {
        tools: old.tools.clone(),
        ..server.clone()
    });
    let before = Before {
        published: published.as_ref(),
        held: state.held.get(&name),
    };
    let judged = judge(policy, before, server, known);
    let same = |over: &Arc<Server>| {
        let now = judged.published.as_ref();
        now.is_some_and(|now| now.tools == over.tools) && judged.held.is_empty()
    };
    // It says what the catalog has: there is nothing to keep beside that.
    if is_first && over.as_ref().is_some_and(same) {
        state.held.remove(&name);
        return;
    }
    state.servers.retain(|server| server.name != name);
    state.servers.extend(judged.published);
    state.held.remove(&name);
    if !judged.held.is_empty() {
        state.held.insert(name, judged.held);
    }
}

fn report(state: &SourceState, outcome: SourceOutcome) -> SourceReport {
    SourceReport {
        name: state.name.clone(),
        outcome,
        servers: state.servers.len(),
        tools: state.tools(),
        waiting: state.held.values().map(Held::len).sum(),
    }
}

/// An error with its causes, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    crate::domain::clean_line(&text, 500)
}
