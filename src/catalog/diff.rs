//! What changed from one catalog to the next, and what waits to be let in.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::catalog::pins::{Held, HeldChange, nameless};
use crate::catalog::snapshot::{server_to_json, tool_to_json};
use crate::domain::{Catalog, DefinitionHash, Server, ServerName, Tool, ToolId, hidden_characters};

/// Longest value shown of one field, in characters.
const VALUE_MAX: usize = 400;

/// One field of a definition, before and after; `None` where it was not there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FieldChange {
    /// Its path, such as `description` or `arguments.path.type`.
    pub field: Box<str>,
    /// What it was, hidden characters spelled out.
    pub before: Option<Box<str>>,
    /// What it is.
    pub after: Option<Box<str>>,
}

/// One difference.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Change {
    /// A server that was not there.
    NewServer(ServerName),
    /// A server that is gone, with so many tools.
    RemovedServer(ServerName, usize),
    /// A server with the same tools under another name: before and after.
    RenamedServer(ServerName, ServerName),
    /// What a server says of itself, or how it starts.
    ChangedServer(ServerName, Vec<FieldChange>),
    /// A tool that was not there.
    New(ToolId),
    /// A tool with another definition.
    Changed(ToolId, Vec<FieldChange>),
    /// A tool that is gone.
    Removed(ToolId),
    /// An equal tool under another name: before and after.
    Renamed(ToolId, ToolId),
}

/// One line each, its first character the sign: `+` new, `-` gone, `~` changed, `=` renamed; below
/// a change its fields with what they were and are.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = match self {
            Self::NewServer(name) => return write!(f, "+ server {name}"),
            Self::RemovedServer(name, tools) => {
                return write!(f, "- server {name} with {tools} tools");
            }
            Self::RenamedServer(from, to) => {
                return write!(f, "= server {from} is now {to}");
            }
            Self::New(id) => return write!(f, "+ {id}"),
            Self::Removed(id) => return write!(f, "- {id}"),
            Self::Renamed(from, to) => return write!(f, "= {from} is now {to}"),
            Self::ChangedServer(name, fields) => {
                write!(f, "~ server {name}")?;
                fields
            }
            Self::Changed(id, fields) => {
                write!(f, "~ {id}")?;
                fields
            }
        };
        for field in fields {
            write!(f, "\n    {}", field.field)?;
            for (sign, side) in [("-", &field.before), ("+", &field.after)] {
                for line in side.iter().flat_map(|text| text.lines()) {
                    write!(f, "\n      {sign} {line}")?;
                }
            }
        }
        Ok(())
    }
}

impl Change {
    /// All differences between two catalogs, by server and tool. A server whose tools are all as
    /// those of one that is gone is that one under another name.
    pub fn between(old: &Catalog, new: &Catalog) -> Vec<Self> {
        let mut changes = Vec::new();
        let renamed = renamed_servers(old, new);
        let moved: HashSet<&ServerName> = renamed.values().map(|from| &from.name).collect();
        for server in old.servers() {
            if new.server(&server.name).is_none() && !moved.contains(&server.name) {
                let change = Self::RemovedServer(server.name.clone(), server.tools.len());
                changes.push(change);
            }
        }
        for server in new.servers() {
            let from = renamed.get(&server.name).copied();
            match old.server(&server.name).or(from) {
                Some(before) if Arc::ptr_eq(before, server) => {}
                Some(before) => {
                    if before.name != server.name {
                        let (from, to) = (before.name.clone(), server.name.clone());
                        changes.push(Self::RenamedServer(from, to));
                    }
                    compare_servers(before, server, &mut changes);
                }
                None => {
                    changes.push(Self::NewServer(server.name.clone()));
                    let tools = server.tools.iter();
                    changes.extend(tools.map(|tool| Self::New(id(server, tool))));
                }
            }
        }
        changes
    }

    /// What waits of a server.
    pub fn waiting(name: &ServerName, published: Option<&Server>, held: &Held) -> Vec<Self> {
        let id = |tool: &Tool| ToolId {
            server: name.clone(),
            tool: tool.name().clone(),
        };
        let mut changes = Vec::new();
        match (&held.head, published) {
            (Some(next), Some(published)) => {
                let fields = fields(&head_json(published), &head_json(next));
                changes.push(Self::ChangedServer(name.clone(), fields));
            }
            (Some(_), None) => changes.push(Self::NewServer(name.clone())),
            (None, _) => {}
        }
        changes.extend(held.tools.iter().map(|held| match &held.change {
            HeldChange::New => Self::New(id(&held.tool)),
            HeldChange::Changed { before } => {
                Self::Changed(id(&held.tool), tool_fields(before, &held.tool))
            }
            HeldChange::Renamed { before } => Self::Renamed(id(before), id(&held.tool)),
        }));
        changes
    }
}

/// Servers that are new by name, each to the one that is gone and had the same tools. Where several
/// did, the first by name passes for the first.
fn renamed_servers<'a>(
    old: &'a Catalog,
    new: &'a Catalog,
) -> HashMap<&'a ServerName, &'a Arc<Server>> {
    let tools = |server: &Server| -> Vec<DefinitionHash> {
        let mut hashes: Vec<_> = server.tools.iter().map(Tool::hash).collect();
        hashes.sort_unstable();
        hashes
    };
    let gone = old.servers().iter();
    let gone = gone.filter(|server| new.server(&server.name).is_none() && !server.tools.is_empty());
    let mut by_tools: HashMap<Vec<DefinitionHash>, Vec<&Arc<Server>>> = HashMap::new();
    for server in gone {
        by_tools.entry(tools(server)).or_default().push(server);
    }
    // The first by name is taken from the end.
    for servers in by_tools.values_mut() {
        servers.sort_by(|one, other| other.name.cmp(&one.name));
    }
    let mut fresh: Vec<&Arc<Server>> = new.servers().iter().collect();
    fresh.retain(|server| old.server(&server.name).is_none());
    fresh.sort_by(|one, other| one.name.cmp(&other.name));
    let mut renamed = HashMap::new();
    for server in fresh {
        if let Some(before) = by_tools.get_mut(&tools(server)).and_then(Vec::pop) {
            renamed.insert(&server.name, before);
        }
    }
    renamed
}

fn compare_servers(before: &Server, after: &Server, changes: &mut Vec<Change>) {
    let (old, new) = (head_json(before), head_json(after));
    if old != new {
        let fields = fields(&old, &new);
        changes.push(Change::ChangedServer(after.name.clone(), fields));
    }
    let known: HashMap<_, &Tool> = before.tools.iter().map(|t| (t.name(), t)).collect();
    let present: HashMap<_, &Tool> = after.tools.iter().map(|t| (t.name(), t)).collect();
    let mut gone: Vec<&Tool> = before
        .tools
        .iter()
        .filter(|tool| !present.contains_key(tool.name()))
        .collect();
    let by_body: HashMap<DefinitionHash, &Tool> =
        gone.iter().map(|tool| (nameless(tool), *tool)).collect();
    for tool in &after.tools {
        match known.get(tool.name()) {
            Some(old) if old.hash() == tool.hash() => {}
            Some(old) => {
                let fields = tool_fields(old, tool);
                changes.push(Change::Changed(id(after, tool), fields));
            }
            None => {
                let renamed = by_body.get(&nameless(tool)).copied();
                let renamed = renamed.filter(|old| gone.iter().any(|t| t.name() == old.name()));
                match renamed {
                    Some(old) => {
                        gone.retain(|tool| tool.name() != old.name());
                        changes.push(Change::Renamed(id(before, old), id(after, tool)));
                    }
                    None => changes.push(Change::New(id(after, tool))),
                }
            }
        }
    }
    let gone = gone.into_iter();
    changes.extend(gone.map(|tool| Change::Removed(id(before, tool))));
}

fn id(server: &Server, tool: &Tool) -> ToolId {
    ToolId {
        server: server.name.clone(),
        tool: tool.name().clone(),
    }
}

fn head_json(server: &Server) -> Value {
    let mut json = server_to_json(server);
    if let Some(map) = json.as_object_mut() {
        map.remove("name");
        map.remove("tools");
        map.remove("provenance");
    }
    json
}

/// Arguments are compared by name, whichever way the two sides write them.
fn tool_fields(before: &Tool, after: &Tool) -> Vec<FieldChange> {
    let json = |tool: &Tool| {
        let mut json = tool_to_json(tool);
        if let Some(map) = json.as_object_mut() {
            map.remove("keywords");
            map.remove("arguments");
            let schema = tool.input().schema().clone();
            map.insert("input_schema".to_owned(), schema);
        }
        json
    };
    fields(&json(before), &json(after))
}

/// The leaves in which two values differ.
fn fields(before: &Value, after: &Value) -> Vec<FieldChange> {
    let mut found = Vec::new();
    compare("", Some(before), Some(after), &mut found);
    found
}

fn compare(
    path: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    found: &mut Vec<FieldChange>,
) {
    if before == after {
        return;
    }
    let empty = Map::new();
    match (before, after) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let added = new.keys().filter(|key| !old.contains_key(*key));
            for key in old.keys().chain(added) {
                let inner = match path {
                    "" => key.clone(),
                    _ => format!("{path}.{key}"),
                };
                compare(&inner, old.get(key), new.get(key), found);
            }
        }
        (None, Some(Value::Object(new))) if !new.is_empty() && path.is_empty() => {
            compare(path, Some(&Value::Object(empty)), after, found);
        }
        _ => found.push(FieldChange {
            field: visible(path).into(),
            before: before.map(shown),
            after: after.map(shown),
        }),
    }
}

fn shown(value: &Value) -> Box<str> {
    let text = match value {
        Value::String(text) => visible(text),
        other => visible(&other.to_string()),
    };
    crate::domain::shorten(&text, VALUE_MAX).into()
}

/// The text with its hidden characters spelled out, so that a person sees what a model would.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        // Line breaks and tabs are not among the hidden.
        if hidden_characters(c.encode_utf8(&mut [0; 4])) == 0 {
            shown.push(c);
        } else {
            shown.extend(c.escape_unicode());
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalog::snapshot::server_from_json;

    fn catalog(servers: &[Value]) -> Catalog {
        let servers = servers
            .iter()
            .map(|json| Arc::new(server_from_json(json).unwrap()));
        Catalog::new(servers).unwrap()
    }

    #[test]
    fn every_kind_of_change_is_told_apart() {
        let tool = |name: &str, description: &str, argument: &str| {
            json!({"name": name, "description": description,
                "arguments": [{"name": "path", "type": argument, "desc": "Path"}]})
        };
        let old = catalog(&[
            json!({"name": "a", "title": "A", "tools": [
                tool("same", "Same", "string"), tool("gone", "Gone", "string"),
                tool("old_name", "Moves", "string"), tool("edit", "Edits", "string")]}),
            json!({"name": "b", "title": "B", "tools": [tool("x", "X", "string")]}),
        ]);
        let new = catalog(&[
            json!({"name": "a", "title": "A!", "tools": [
                tool("same", "Same", "string"), tool("new_name", "Moves", "string"),
                tool("edit", "Edits\u{200b} all", "integer"), tool("fresh", "Fresh", "string")]}),
            json!({"name": "c", "title": "C", "tools": [tool("y", "Y", "string")]}),
        ]);
        assert_eq!(Change::between(&old, &old), []);
        let lines: Vec<String> = Change::between(&old, &new)
            .iter()
            .map(ToString::to_string)
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        - server b with 1 tools
        ~ server a
            title
              - A
              + A!
        = a/old_name is now a/new_name
        ~ a/edit
            description
              - Edits
              + Edits\u{200b} all
            input_schema.properties.path.type
              - string
              + integer
        + a/fresh
        - a/gone
        + server c
        + c/y
        ");
    }

    #[test]
    fn a_server_with_the_tools_of_one_that_is_gone_was_renamed() {
        let server = |name: &str, title: &str, tools: &[&str]| {
            let tools: Vec<Value> = tools
                .iter()
                .map(|name| json!({"name": name, "description": "Does it."}))
                .collect();
            json!({"name": name, "title": title, "tools": tools})
        };
        let old = catalog(&[
            server("mail", "Mail", &["read", "send"]),
            server("twin-a", "Twin", &["spin"]),
            server("twin-b", "Twin", &["spin"]),
            server("stays", "Stays", &["wait"]),
            server("empty", "Empty", &[]),
        ]);
        let new = catalog(&[
            server("post", "Post", &["send", "read"]),
            server("twin-c", "Twin", &["spin"]),
            server("copy", "Stays", &["wait"]),
            server("stays", "Stays", &["wait"]),
            server("void", "Empty", &[]),
        ]);
        let lines: Vec<String> = Change::between(&old, &new)
            .iter()
            .map(ToString::to_string)
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        - server empty with 0 tools
        - server twin-b with 1 tools
        + server copy
        + copy/wait
        = server mail is now post
        ~ server post
            title
              - Mail
              + Post
        = server twin-a is now twin-c
        + server void
        ");
    }
}
