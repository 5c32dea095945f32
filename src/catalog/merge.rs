//! One server from several sources.
//!
//! An earlier source wins, server by server and by name. What the winner lacks it takes from the
//! next source that has it: tools where it lists none, the arguments of a tool whose arguments it
//! does not know, a way to start it, a description, a licence. Nothing else is mixed: two lists
//! of tools of one server are two versions of it, and their union is neither.

use std::collections::HashMap;
use std::fmt;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::catalog::import::{Note, NoteKind};
use crate::domain::{Server, ServerName, Tool};

/// What a source is called, such as a file or the name in the configuration.
pub type SourceName = String;

/// What an operator does not want.
#[derive(Clone, Debug, Default)]
pub struct MergeRules {
    servers: GlobSet,
    licenses: GlobSet,
}

/// A rule is not a glob.
#[derive(Debug, thiserror::Error)]
#[error("`{glob}` is not a glob")]
pub struct ParseRuleError {
    glob: String,
    source: globset::Error,
}

impl MergeRules {
    /// Leaves out servers whose name, or licence, fits a glob. Licences are compared without
    /// regard to case; an unknown licence is `unknown`.
    pub fn new(servers: &[String], licenses: &[String]) -> Result<Self, ParseRuleError> {
        Ok(Self {
            servers: globs(servers)?,
            licenses: globs(licenses)?,
        })
    }

    /// Why a server is left out, if it is.
    pub fn excludes(&self, server: &Server) -> Option<String> {
        if self.servers.is_match(server.name.as_str()) {
            return Some("its name is excluded".to_owned());
        }
        let license = match &*server.provenance.license {
            "" => "unknown",
            license => license,
        };
        let excluded = self.licenses.is_match(license);
        excluded.then(|| format!("its licence `{license}` is excluded"))
    }
}

fn globs(texts: &[String]) -> Result<GlobSet, ParseRuleError> {
    let mut set = GlobSetBuilder::new();
    for text in texts {
        let wrong = |source| ParseRuleError {
            glob: text.clone(),
            source,
        };
        let glob = GlobBuilder::new(text)
            .case_insensitive(true)
            .build()
            .map_err(wrong)?;
        set.add(glob);
    }
    set.build().map_err(|source| ParseRuleError {
        glob: texts.join(" "),
        source,
    })
}

/// Makes one list of many; the order of the sources is their precedence. The servers come out in
/// the order in which their names were first seen.
pub fn merge(
    sources: Vec<(SourceName, Vec<Server>)>,
    rules: &MergeRules,
) -> (Vec<Server>, Vec<Note>) {
    let mut servers: Vec<Server> = Vec::new();
    let mut at: HashMap<ServerName, usize> = HashMap::new();
    let mut notes = Vec::new();
    for (source, given) in sources {
        for server in given {
            let mut note = |kind, why| {
                notes.push(Note {
                    place: source.clone(),
                    kind,
                    what: server.name.to_string(),
                    why,
                });
            };
            if let Some(why) = rules.excludes(&server) {
                note(NoteKind::Refused, why);
                continue;
            }
            let known = at.get(&server.name).copied();
            let Some(first) = known.and_then(|at| servers.get_mut(at)) else {
                at.insert(server.name.clone(), servers.len());
                servers.push(server);
                continue;
            };
            let why = {
                let clone = server.clone();
                unite(first, clone).to_string()
            };
            note(NoteKind::Merged, why);
        }
    }
    (servers, notes)
}

/// What the winner took over.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct United {
    winner: String,
    taken: Vec<String>,
    left_out: usize,
}

impl fmt::Display for United {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` has it already", self.winner)?;
        if !self.taken.is_empty() {
            write!(f, "; it took over {}", self.taken.join(", "))?;
        }
        match self.left_out {
            0 => Ok(()),
            tools => write!(f, "; {tools} other tools were left out"),
        }
    }
}

/// Fills what a server lacks from a later one of the same name.
pub(super) fn unite(first: &mut Server, later: Server) -> United {
    let mut united = United {
        winner: first.provenance.source.to_string(),
        ..United::default()
    };
    if first.launch.is_none() && later.launch.is_some() {
        first.launch = later.launch;
        first.secrets = later.secrets;
        first.config = later.config;
        united.taken.push("the way to start it".to_owned());
    }
    let texts = [
        (&mut first.description, later.description, "the description"),
        (&mut first.category, later.category, "the category"),
        (&mut first.owner, later.owner, "the owner"),
        (
            &mut first.provenance.license,
            later.provenance.license,
            "the licence",
        ),
    ];
    for (own, other, what) in texts {
        if own.is_empty() && !other.is_empty() {
            *own = other;
            united.taken.push(what.to_owned());
        }
    }
    if first.tools.is_empty() {
        if !later.tools.is_empty() {
            united.taken.push(format!("{} tools", later.tools.len()));
        }
        first.tools = later.tools;
        return united;
    }
    let own: HashMap<String, usize> = (0..)
        .zip(&first.tools)
        .map(|(at, tool)| (tool.name().to_string(), at))
        .collect();
    let mut completed = 0;
    for tool in later.tools {
        match own.get(tool.name().as_str()).copied() {
            None => united.left_out += 1,
            Some(at) => {
                if let Some(known) = first.tools.get_mut(at)
                    && says_more(&tool, known)
                {
                    *known = tool;
                    completed += 1;
                }
            }
        }
    }
    if 0 < completed {
        united
            .taken
            .push(format!("the arguments of {completed} tools"));
    }
    united
}

/// Whether a definition knows arguments where the other takes anything.
fn says_more(later: &Tool, known: &Tool) -> bool {
    let is_open = known.input().schema().get("properties").is_none();
    is_open && !later.input().arguments().is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::{Definition, Input, Launch};

    fn server(source: &str, name: &str, tools: &[&str]) -> Server {
        let tools = tools.iter().map(|tool| {
            let input = Input::from_schema(json!({"type": "object"}));
            Tool::new(Definition::new(tool.parse().unwrap(), source, input))
        });
        let mut server = Server::new(name.parse().unwrap(), tools.collect());
        server.provenance.source = source.into();
        server
    }

    fn check(sources: Vec<Server>, expected: &[&str]) -> (Vec<Server>, Vec<Note>) {
        let sources = sources
            .into_iter()
            .map(|server| (server.provenance.source.to_string(), vec![server]));
        let (servers, notes) = merge(sources.collect(), &MergeRules::default());
        let tools: Vec<String> = servers
            .iter()
            .flat_map(|server| {
                let row = |tool: &Tool| format!("{}/{}", server.name, tool.name());
                server.tools.iter().map(row)
            })
            .collect();
        assert_eq!(tools, expected);
        (servers, notes)
    }

    #[test]
    fn the_earlier_source_wins_and_says_so() {
        let sources = vec![server("one", "a", &["x"]), server("two", "a", &["y"])];
        let (_, notes) = check(sources, &["a/x"]);
        assert_eq!(
            notes[0].to_string(),
            "two: merged a: `one` has it already; 1 other tools were left out"
        );
    }

    #[test]
    fn a_server_without_tools_takes_those_of_the_next() {
        let mut later = server("two", "a", &["y"]);
        later.provenance.license = "MIT".into();
        let url = "https://example.com".parse().unwrap();
        later.launch = Some(Launch::http(url, vec![]));
        let (servers, _) = check(vec![server("one", "a", &[]), later], &["a/y"]);
        assert_eq!(&*servers[0].provenance.source, "one");
        assert_eq!(&*servers[0].provenance.license, "MIT");
        assert!(servers[0].launch.is_some());
    }

    #[test]
    fn a_tool_known_by_name_alone_takes_over_its_arguments() {
        let mut later = server("two", "a", &[]);
        let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
        let input = Input::from_schema(schema);
        later.tools = vec![Tool::new(Definition::new("x".parse().unwrap(), "", input))];
        let (servers, _) = check(vec![server("one", "a", &["x"]), later], &["a/x"]);
        assert_eq!(servers[0].tools[0].input().arguments().len(), 1);
    }

    #[test]
    fn names_and_licences_are_excluded_by_glob() {
        let mut gpl = server("one", "b", &["x"]);
        gpl.provenance.license = "GPL-3.0".into();
        let sources = vec![
            ("s".to_owned(), vec![server("one", "acme-a", &["x"]), gpl]),
            ("s".to_owned(), vec![server("one", "c", &["x"])]),
        ];
        let rules = MergeRules::new(&["acme-*".into()], &["gpl*".into()]).unwrap();
        let (servers, notes) = merge(sources, &rules);
        assert_eq!(servers.len(), 1);
        let reasons: Vec<_> = notes.iter().map(|note| note.why.as_str()).collect();
        let expected = ["its name is excluded", "its licence `GPL-3.0` is excluded"];
        assert_eq!(reasons, expected);
        let unknown = MergeRules::new(&[], &["unknown".into()]).unwrap();
        assert!(unknown.excludes(&server("one", "d", &[])).is_some());
        assert!(MergeRules::new(&["[".into()], &[]).is_err());
    }
}
