//! Pinning: a definition that was let in stays as it was until somebody approves another.
//!
//! | policy | first sight of a server | a changed tool | a new tool of a known server |
//! |---|---|---|---|
//! | `trust` | published | published | published |
//! | `pin` | published, what is flagged as high waits | waits; the old one stays | waits |
//! | `quarantine` | waits | waits; the old one is withheld | waits |
//!
//! What is gone from its source is gone here. A tool that has another name and is otherwise equal
//! passes as the one it was, under `pin`, where the scanner finds nothing.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::catalog::scan::{Finding, KnownNames, Severity, scan_server, scan_tool, worst};
use crate::domain::{Definition, DefinitionHash, Provenance, Server, Tool, ToolName};

/// How far a source or server is trusted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Policy {
    /// Everything is published at once.
    Trust,
    /// The first sight is trusted, changes wait.
    #[default]
    Pin,
    /// Everything waits.
    Quarantine,
}

/// The name of a policy is unknown.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is no policy: write trust, pin or quarantine")]
pub struct ParsePolicyError(String);

impl FromStr for Policy {
    type Err = ParsePolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "trust" => Ok(Self::Trust),
            "pin" => Ok(Self::Pin),
            "quarantine" => Ok(Self::Quarantine),
            other => Err(ParsePolicyError(other.to_owned())),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Trust => "trust",
            Self::Pin => "pin",
            Self::Quarantine => "quarantine",
        })
    }
}

/// Why a tool waits.
#[derive(Clone, Debug, PartialEq)]
pub enum HeldChange {
    /// It was not there before.
    New,
    /// It was there with another definition.
    Changed {
        /// The approved definition.
        before: Tool,
    },
    /// It was there under another name.
    Renamed {
        /// The approved name.
        before: Tool,
    },
}

/// A tool that waits to be approved.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldTool {
    /// Why.
    pub change: HeldChange,
    /// The tool as its source has it now.
    pub tool: Tool,
}

/// What of one server waits to be approved.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Held {
    /// The server without tools, where what it says of itself or how it starts waits.
    pub head: Option<Arc<Server>>,
    /// Its tools that wait.
    pub tools: Vec<HeldTool>,
}

impl Held {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.head.is_none() && self.tools.is_empty()
    }

    /// How many of the things that wait have a finding of the highest severity.
    pub fn flagged(&self, known: &KnownNames) -> usize {
        let head = self.head.iter().map(|head| scan_server(head, known));
        let tools = self.tools.iter().map(|held| scan_tool(&held.tool, known));
        head.chain(tools)
            .filter(|findings| is_flagged(findings))
            .count()
    }

    /// How many things wait.
    pub fn len(&self) -> usize {
        usize::from(self.head.is_some()) + self.tools.len()
    }
}

/// A server after judgement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// What is published of it.
    pub published: Option<Arc<Server>>,
    /// What waits.
    pub held: Held,
}

/// What is known of a server from before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Before<'a> {
    /// What is published of it.
    pub published: Option<&'a Server>,
    /// What waits.
    pub held: Option<&'a Held>,
}

impl Before<'_> {
    /// All definitions that were approved, withheld ones included.
    fn approved(&self) -> HashMap<&ToolName, &Tool> {
        let withheld = self.held.iter().flat_map(|held| &held.tools);
        let withheld = withheld.filter_map(|held| match &held.change {
            HeldChange::New => None,
            HeldChange::Changed { before } | HeldChange::Renamed { before } => Some(before),
        });
        let published = self.published.iter().flat_map(|server| &server.tools);
        withheld
            .chain(published)
            .map(|tool| (tool.name(), tool))
            .collect()
    }

    fn is_first_sight(&self) -> bool {
        self.published.is_none() && self.held.is_none_or(Held::is_empty)
    }
}

/// Decides what of a server is published now and what waits. Judging twice is judging once.
pub fn judge(policy: Policy, before: Before<'_>, read: Server, known: &KnownNames) -> Judged {
    if policy == Policy::Trust {
        return Judged {
            published: Some(Arc::new(read)),
            held: Held::default(),
        };
    }
    let approved = before.approved();
    let present: HashSet<&ToolName> = read.tools.iter().map(Tool::name).collect();
    let gone: HashMap<DefinitionHash, &Tool> = approved
        .values()
        .filter(|tool| !present.contains(tool.name()))
        .map(|tool| (nameless(tool), *tool))
        .collect();
    let trusting = policy == Policy::Pin;
    let mut judged = Vec::new();
    let mut held = Held::default();
    for tool in &read.tools {
        let change = match approved.get(tool.name()) {
            Some(known) if known.hash() == tool.hash() => {
                judged.push(tool.clone());
                continue;
            }
            Some(known) => {
                if trusting {
                    judged.push((*known).clone());
                }
                HeldChange::Changed {
                    before: (*known).clone(),
                }
            }
            None => {
                let renamed = gone.get(&nameless(tool));
                let welcome = before.is_first_sight() || renamed.is_some();
                if trusting && welcome && !is_flagged(&scan_tool(tool, known)) {
                    judged.push(tool.clone());
                    continue;
                }
                match renamed {
                    Some(old) => HeldChange::Renamed {
                        before: (*old).clone(),
                    },
                    None => HeldChange::New,
                }
            }
        };
        let tool = tool.clone();
        held.tools.push(HeldTool { change, tool });
    }
    let published = judge_head(policy, before, &read, known);
    if published
        .as_ref()
        .is_none_or(|server| !is_same_head(server, &read))
    {
        held.head = Some(Arc::new(without_tools(&read)));
    }
    let Some(mut published) = published else {
        hold_rest(&mut held, &read);
        return Judged {
            published: None,
            held,
        };
    };
    if held.head.is_none() {
        published.provenance = read.provenance;
    }
    published.tools = judged;
    Judged {
        published: Some(Arc::new(published)),
        held,
    }
}

fn is_flagged(findings: &[Finding]) -> bool {
    worst(findings) == Some(Severity::High)
}

/// Without its server no tool is let in: what would have been is new.
fn hold_rest(held: &mut Held, read: &Server) {
    let waiting: HashSet<ToolName> = held
        .tools
        .iter()
        .map(|held| held.tool.name().clone())
        .collect();
    let rest = read
        .tools
        .iter()
        .filter(|tool| !waiting.contains(tool.name()));
    held.tools.extend(rest.map(|tool| HeldTool {
        change: HeldChange::New,
        tool: tool.clone(),
    }));
}

/// The server itself as it is published, its tools not looked at; `None` while it waits.
fn judge_head(
    policy: Policy,
    before: Before<'_>,
    read: &Server,
    known: &KnownNames,
) -> Option<Server> {
    if let Some(published) = before.published {
        return Some(without_tools(published));
    }
    let clean = !is_flagged(&scan_server(read, known));
    let welcome = policy == Policy::Pin && before.is_first_sight() && clean;
    welcome.then(|| without_tools(read))
}

/// Lets in what waits of a server: all of it, or one tool with the server that it needs.
///
/// Gives the server as it is published then, or `None` where no such tool waits.
pub fn approve(
    published: Option<&Server>,
    held: &mut Held,
    only: Option<&ToolName>,
) -> Option<Server> {
    let is_meant = |held: &HeldTool| only.is_none_or(|name| held.tool.name() == name);
    if only.is_some() && !held.tools.iter().any(is_meant) {
        return None;
    }
    let mut server = match (published, &held.head) {
        (Some(published), Some(next)) if only.is_none() => Server {
            tools: published.tools.clone(),
            ..Server::clone(next)
        },
        (Some(published), _) => published.clone(),
        (None, Some(next)) => Server::clone(next),
        (None, None) => return None,
    };
    if only.is_none() || published.is_none() {
        held.head = None;
    }
    let (let_in, waiting) = std::mem::take(&mut held.tools)
        .into_iter()
        .partition(is_meant);
    held.tools = waiting;
    for HeldTool { change, tool } in let_in {
        if let HeldChange::Renamed { before } = &change {
            server.tools.retain(|old| old.name() != before.name());
        }
        match server
            .tools
            .iter_mut()
            .find(|old| old.name() == tool.name())
        {
            Some(place) => *place = tool,
            None => server.tools.push(tool),
        }
    }
    Some(server)
}

/// Fingerprint of everything but the name.
pub(super) fn nameless(tool: &Tool) -> DefinitionHash {
    let mut definition: Definition = tool.definition();
    if let Ok(name) = "-".parse() {
        definition.name = name;
    }
    Tool::new(definition).hash()
}

/// Whether two servers say and start the same. A newer version alone is no difference.
fn is_same_head(one: &Server, other: &Server) -> bool {
    let plain = |server: &Server| Server {
        provenance: Provenance::default(),
        ..without_tools(server)
    };
    plain(one) == plain(other)
}

fn without_tools(server: &Server) -> Server {
    Server {
        tools: Vec::new(),
        name: server.name.clone(),
        title: server.title.clone(),
        description: server.description.clone(),
        category: server.category.clone(),
        tags: server.tags.clone(),
        owner: server.owner.clone(),
        launch: server.launch.clone(),
        secrets: server.secrets.clone(),
        config: server.config.clone(),
        provenance: server.provenance.clone(),
    }
}

#[cfg(test)]
mod tests;
