//! Reading catalogs and labelled queries from JSON Lines.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::domain::{
    Argument, Catalog, CatalogError, Definition, Input, QUERY_CHARS_MAX, Query, Server, ServerName,
    Shape, Tool, ToolId, ToolName, clean_line,
};

/// Longest tool name taken over, in characters; room is left for a number behind it.
const NAME_CHARS_MAX: usize = 120;

/// Why a set was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadSetError {
    /// The file cannot be read.
    #[error("cannot read `{path}`")]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line is not JSON.
    #[error("{path}:{line}: not JSON", path = path.display())]
    Json {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
    /// A line lacks something.
    #[error("{path}:{line}: `{key}` is missing or of the wrong type", path = path.display())]
    Key {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong.
        key: &'static str,
    },
    /// A query's right tool is not in the catalog.
    #[error("{path}:{line}: no tool `{id}` in the catalog", path = path.display())]
    UnknownTool {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// Its id as the label gives it.
        id: String,
    },
    /// The tools make no catalog.
    #[error("tools make no catalog")]
    Catalog(#[from] CatalogError),
}

/// Where the tools of a set are.
#[derive(Clone, Debug)]
pub enum ToolSource {
    /// One tool a line: `{id, server, name, description, arguments[], server_title?}`.
    Tools(PathBuf),
    /// One server in normal form a line; the id of a tool is `server:name`.
    Catalog(PathBuf),
}

/// A query whose right tools are known.
#[derive(Clone, Debug)]
pub struct LabelledQuery {
    /// The query, cut at the longest that a search takes.
    pub query: Query,
    /// The tools that are right.
    pub relevant: HashSet<ToolId>,
    /// The kind of query, where the set says.
    pub style: Option<String>,
}

/// A catalog, and queries against it.
#[derive(Clone, Debug)]
pub struct LabelledSet {
    /// Its name: that of the file with the queries.
    pub name: String,
    /// The tools.
    pub catalog: Arc<Catalog>,
    /// The queries.
    pub queries: Vec<LabelledQuery>,
}

impl LabelledSet {
    /// Reads tools and queries. No tool is dropped: names that are not legal here are brought
    /// into the alphabet and told apart by a number, and labels follow them.
    pub fn read(tools: &ToolSource, queries: &Path) -> Result<Self, ReadSetError> {
        let servers = match tools {
            ToolSource::Tools(path) => Servers::from_tools(path)?,
            ToolSource::Catalog(path) => Servers::from_catalog(path)?,
        };
        let (catalog, ids) = servers.build()?;
        let name = queries.file_name().unwrap_or_default().to_string_lossy();
        Ok(Self {
            name: name
                .trim_end_matches(".jsonl")
                .trim_end_matches(".queries")
                .to_owned(),
            queries: read_queries(queries, &ids)?,
            catalog: Arc::new(catalog),
        })
    }
}

fn read_queries(
    path: &Path,
    ids: &HashMap<String, ToolId>,
) -> Result<Vec<LabelledQuery>, ReadSetError> {
    let mut queries = Vec::new();
    for (line, value) in lines(path)? {
        let wrong = |key| ReadSetError::Key {
            path: path.to_owned(),
            line,
            key,
        };
        let text: String = value["query"]
            .as_str()
            .ok_or_else(|| wrong("query"))?
            .trim()
            .chars()
            .take(QUERY_CHARS_MAX)
            .collect();
        let labels = value["relevant"]
            .as_array()
            .ok_or_else(|| wrong("relevant"))?;
        let mut relevant = HashSet::new();
        for label in labels {
            let label = label.as_str().ok_or_else(|| wrong("relevant"))?;
            let id = ids.get(label).ok_or_else(|| ReadSetError::UnknownTool {
                path: path.to_owned(),
                line,
                id: label.to_owned(),
            })?;
            relevant.insert(id.clone());
        }
        queries.push(LabelledQuery {
            query: text.parse().map_err(|_empty| wrong("query"))?,
            relevant,
            style: value["style"].as_str().map(str::to_owned),
        });
    }
    Ok(queries)
}

/// Servers as they are read, each with its tools and the ids that labels use for them.
#[derive(Default)]
struct Servers {
    order: Vec<Draft>,
    by_name: HashMap<String, usize>,
}

struct Draft {
    name: String,
    title: String,
    description: String,
    tools: Vec<(String, Value)>,
}

impl Servers {
    fn from_tools(path: &Path) -> Result<Self, ReadSetError> {
        let mut servers = Self::default();
        for (line, value) in lines(path)? {
            let text = |key: &'static str| {
                value[key].as_str().ok_or_else(|| ReadSetError::Key {
                    path: path.to_owned(),
                    line,
                    key,
                })
            };
            let (id, server) = (text("id")?.to_owned(), text("server")?.to_owned());
            text("name")?;
            let draft = servers.draft(&server);
            if let Some(title) = value["server_title"].as_str() {
                title.clone_into(&mut draft.title);
            }
            if let Some(description) = value["server_description"].as_str() {
                description.clone_into(&mut draft.description);
            }
            draft.tools.push((id, value));
        }
        Ok(servers)
    }

    fn from_catalog(path: &Path) -> Result<Self, ReadSetError> {
        let mut servers = Self::default();
        for (line, mut value) in lines(path)? {
            let wrong = |key| ReadSetError::Key {
                path: path.to_owned(),
                line,
                key,
            };
            let server = value["name"]
                .as_str()
                .ok_or_else(|| wrong("name"))?
                .to_owned();
            let tools = value["tools"].take();
            let Value::Array(tools) = tools else {
                return Err(wrong("tools"));
            };
            let draft = servers.draft(&server);
            value["title"]
                .as_str()
                .unwrap_or(&server)
                .clone_into(&mut draft.title);
            value["description"]
                .as_str()
                .unwrap_or_default()
                .clone_into(&mut draft.description);
            for tool in tools {
                let name = tool["name"].as_str().ok_or_else(|| wrong("name"))?;
                draft.tools.push((format!("{server}:{name}"), tool));
            }
        }
        Ok(servers)
    }

    fn draft(&mut self, name: &str) -> &mut Draft {
        let at = *self.by_name.entry(name.to_owned()).or_insert_with(|| {
            self.order.push(Draft {
                name: name.to_owned(),
                title: name.to_owned(),
                description: String::new(),
                tools: Vec::new(),
            });
            self.order.len() - 1
        });
        &mut self.order[at]
    }

    fn build(self) -> Result<(Catalog, HashMap<String, ToolId>), ReadSetError> {
        let (mut ids, mut taken, mut servers) = (HashMap::new(), HashSet::new(), Vec::new());
        for (number, draft) in self.order.into_iter().enumerate() {
            let Some(name) = server_name(&draft.name, number, &mut taken) else {
                continue;
            };
            let mut names = HashSet::new();
            let mut tools = Vec::new();
            for (id, value) in draft.tools {
                let Some(tool) = tool_name(&value, &mut names) else {
                    continue;
                };
                let id_here = ToolId {
                    server: name.clone(),
                    tool: tool.clone(),
                };
                ids.insert(id, id_here);
                let description = value["description"].as_str().unwrap_or_default();
                tools.push(Tool::new(Definition::new(tool, description, input(&value))));
            }
            let mut server = Server::new(name, tools);
            server.title = draft.title.into();
            server.description = draft.description.into();
            servers.push(Arc::new(server.cleaned()));
        }
        Ok((Catalog::new(servers)?, ids))
    }
}

/// The nearest legal name that is free.
fn server_name(text: &str, number: usize, taken: &mut HashSet<ServerName>) -> Option<ServerName> {
    let fallback = format!("server-{number}");
    let nearest = ServerName::nearest_to(text);
    let base = nearest
        .as_ref()
        .map_or(fallback.as_str(), ServerName::as_str);
    let short: String = base.chars().take(56).collect();
    let numbered = (2..).map(|n| format!("{short}-{n}"));
    std::iter::once(base.to_owned())
        .chain(numbered)
        .filter_map(|name| name.parse().ok())
        .find(|name: &ServerName| taken.insert(name.clone()))
}

/// The name of a tool, told apart from its namesakes on the same server.
fn tool_name(value: &Value, taken: &mut HashSet<ToolName>) -> Option<ToolName> {
    let clean = clean_line(value["name"].as_str().unwrap_or_default(), NAME_CHARS_MAX);
    let base = if clean.is_empty() { "unnamed" } else { &clean };
    let numbered = (2..).map(|n| format!("{base} {n}"));
    std::iter::once(base.to_owned())
        .chain(numbered)
        .filter_map(|name| name.parse().ok())
        .find(|name: &ToolName| taken.insert(name.clone()))
}

fn input(tool: &Value) -> Input {
    if tool["inputSchema"].is_object() {
        return Input::from_schema(tool["inputSchema"].clone());
    }
    let arguments = tool["arguments"].as_array().into_iter().flatten();
    Input::from_arguments(
        arguments
            .map(|argument| Argument {
                name: argument["name"].as_str().unwrap_or_default().into(),
                shape: argument["type"]
                    .as_str()
                    .and_then(|phrase| phrase.parse().ok())
                    .unwrap_or_else(|| Shape::of_schema(&Value::Null, &Value::Null)),
                description: argument["desc"].as_str().unwrap_or_default().into(),
                required: argument["optional"] != true,
            })
            .collect(),
    )
}

/// The JSON values of a file with their line numbers, empty lines skipped.
fn lines(path: &Path) -> Result<Vec<(usize, Value)>, ReadSetError> {
    let text = std::fs::read_to_string(path).map_err(|source| ReadSetError::File {
        path: path.to_owned(),
        source,
    })?;
    let mut values = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        if text.trim().is_empty() {
            continue;
        }
        let value = serde_json::from_str(text).map_err(|source| ReadSetError::Json {
            path: path.to_owned(),
            line,
            source,
        })?;
        values.push((line, value));
    }
    Ok(values)
}
