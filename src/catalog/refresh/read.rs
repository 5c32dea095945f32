//! Reading one source: bytes, documents, servers, each within its limits.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::catalog::import::{self, Document, Format};
use crate::catalog::refresh::fetch::{FetchError, Fetcher};
use crate::catalog::refresh::follow::{Place, fetch_source};
use crate::catalog::refresh::since::{Part, is_due, newest, now, url_since};
use crate::catalog::refresh::source::{Origin, Source};
use crate::catalog::snapshot::{Seen, SourceState, hex};
use crate::domain::{Server, ServerName};

/// Endings of the files that are read below a folder.
const ENDINGS: [&str; 5] = ["toml", "json", "jsonl", "yaml", "yml"];
/// Folders below folders that are looked into.
const DEPTH_MAX: usize = 8;

/// Limits of reading. [`Default`] is the documented configuration.
#[derive(Clone, Debug)]
pub struct ReadLimits {
    /// All files of a source, in bytes.
    pub bytes_max: u64,
    /// Files of a source.
    pub files_max: usize,
    /// Longest time to make servers of documents.
    pub parse_max: Duration,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self {
            bytes_max: 256 * 1024 * 1024,
            files_max: 50_000,
            parse_max: Duration::from_mins(1),
        }
    }
}

/// Why a source was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadSourceError {
    /// The web.
    #[error("cannot fetch `{url}`")]
    Fetch {
        /// From where.
        url: String,
        /// Why.
        source: FetchError,
    },
    /// The disk.
    #[error("cannot read `{}`", path.display())]
    File {
        /// Which file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It takes too long to read.
    #[error("its documents were not read within {after:?}")]
    Slow {
        /// The limit.
        after: Duration,
    },
    /// The importer broke down.
    #[error("the importer of `{format}` broke down")]
    Importer {
        /// Which one.
        format: Format,
        /// Why.
        source: tokio::task::JoinError,
    },
    /// Nothing came of it.
    #[error("there is no server in it{}", .refused.first().map(|first| format!(": {first}")).unwrap_or_default())]
    Nothing {
        /// What was refused.
        refused: Vec<String>,
    },
}

/// A source that was read, or not.
#[derive(Debug)]
pub(super) enum Reading {
    /// As it was.
    Unchanged,
    /// Read, with what was refused.
    Read {
        seen: Seen,
        servers: Vec<Server>,
        refused: Vec<String>,
    },
    /// What changed since the last reading; all else is as it was.
    Part {
        seen: Seen,
        part: Part,
        refused: Vec<String>,
    },
    /// Not read.
    Failed(ReadSourceError),
}

/// What sources are read with.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) fetcher: &'a Fetcher,
    pub(super) limits: &'a ReadLimits,
    /// Stands for the policies of single servers: when they change, everything is judged again.
    pub(super) policies: String,
    /// Registries that can say what changed are still read whole after this time.
    pub(super) whole_after: Duration,
}

impl Reader<'_> {
    /// Reads a source, unless it is as it was seen last.
    pub(super) async fn read(&self, source: &Source, state: Option<&SourceState>) -> Reading {
        let read = self.try_read(source, state).await;
        read.unwrap_or_else(Reading::Failed)
    }

    async fn try_read(
        &self,
        source: &Source,
        state: Option<&SourceState>,
    ) -> Result<Reading, ReadSourceError> {
        let lists_from = source.lists_from.join(",");
        let mark = format!("{} {} {lists_from} ", source.policy, self.policies);
        // What was read or judged by other settings is read and judged again, changed or not.
        let state = state.filter(|state| state.seen.digest.starts_with(&mark));
        if let Some(state) = state
            && let Some(part) = self.try_part(source, state, &mark).await?
        {
            return Ok(part);
        }
        let seen = state.map(|state| &state.seen);
        let (documents, mut next) = match &source.origin {
            Origin::Url(url) => {
                let from = Place {
                    url,
                    lists_from: &source.lists_from,
                };
                let changed = fetch_source(self.fetcher, from, seen).await;
                let changed = changed.map_err(|error| ReadSourceError::Fetch {
                    url: url.to_string(),
                    source: error,
                })?;
                match changed {
                    Some(documents) => documents,
                    None => return Ok(as_it_was(seen)),
                }
            }
            Origin::Path(path) => {
                let (path, limits) = (path.clone(), self.limits.clone());
                let format = source.format;
                let reading = tokio::task::spawn_blocking(move || read_files(&path, &limits));
                let documents = reading
                    .await
                    .map_err(|source| ReadSourceError::Importer { format, source })??;
                (documents, Seen::default())
            }
        };
        next.digest = mark + &digest(source.format, &documents);
        if source.format == Format::OfficialRegistry && matches!(source.origin, Origin::Url(_)) {
            next.newest = newest(&documents);
            next.whole_at = next.newest.as_ref().map(|_| now());
        }
        let same = |seen: &Seen| {
            let whole_at = next.whole_at;
            *seen == next
                || Seen {
                    whole_at,
                    ..seen.clone()
                } == next
        };
        if seen.is_some_and(same) {
            return Ok(as_it_was(seen));
        }
        let (servers, refused) = parse(source.format, documents, self.limits).await?;
        if servers.is_empty() {
            return Err(ReadSourceError::Nothing { refused });
        }
        Ok(Reading::Read {
            seen: next,
            servers,
            refused,
        })
    }

    /// What changed in a registry since it was last read. `None` where only a whole reading can
    /// tell: it is time for one, or the registry does not know the question.
    async fn try_part(
        &self,
        source: &Source,
        state: &SourceState,
        mark: &str,
    ) -> Result<Option<Reading>, ReadSourceError> {
        let (Origin::Url(url), Some(since)) = (&source.origin, &state.seen.newest) else {
            return Ok(None);
        };
        let asked = url_since(url, since);
        let Some(asked) = asked.filter(|_| !is_due(state.seen.whole_at, self.whole_after)) else {
            return Ok(None);
        };
        let from = Place {
            url: &asked,
            lists_from: &source.lists_from,
        };
        let documents = match fetch_source(self.fetcher, from, None).await {
            Ok(Some((documents, _))) => documents,
            Ok(None) => return Ok(None),
            Err(FetchError::Status(status)) if status.is_client_error() => return Ok(None),
            Err(source) => {
                let url = asked.to_string();
                return Err(ReadSourceError::Fetch { url, source });
            }
        };
        let mut seen = state.seen.clone();
        let latest = newest(&documents).max(seen.newest.clone());
        if latest != seen.newest {
            // The next whole reading compares with nothing from before.
            seen = Seen {
                digest: format!("{mark}part"),
                newest: latest,
                whole_at: seen.whole_at,
                ..Seen::default()
            };
        }
        let (servers, refused) = parse(source.format, documents.clone(), self.limits).await?;
        let part = Part::of(state, servers, &documents);
        Ok(part.map(|part| Reading::Part {
            seen,
            part,
            refused,
        }))
    }
}

/// Nothing changed. A registry that was read whole to see that is not so for some time again.
fn as_it_was(seen: Option<&Seen>) -> Reading {
    match seen.filter(|seen| seen.newest.is_some()) {
        Some(seen) => Reading::Part {
            seen: Seen {
                whole_at: Some(now()),
                ..seen.clone()
            },
            part: Part::default(),
            refused: Vec::new(),
        },
        None => Reading::Unchanged,
    }
}

async fn parse(
    format: Format,
    documents: Vec<Document>,
    limits: &ReadLimits,
) -> Result<(Vec<Server>, Vec<String>), ReadSourceError> {
    let after = limits.parse_max;
    // What hangs is left behind on its thread; nothing waits for it.
    let reading = tokio::task::spawn_blocking(move || {
        let imported = import::read(format, &documents);
        let mut refused: Vec<String> = imported.report.refused().map(ToString::to_string).collect();
        let servers = without_doubles(imported.servers, &mut refused);
        (servers, refused)
    });
    let read = tokio::time::timeout(after, reading).await;
    let read = read.map_err(|_elapsed| ReadSourceError::Slow { after })?;
    read.map_err(|source| ReadSourceError::Importer { format, source })
}

/// Of servers or tools of one name the first stays.
fn without_doubles(servers: Vec<Server>, refused: &mut Vec<String>) -> Vec<Server> {
    let mut names: HashSet<ServerName> = HashSet::new();
    let mut kept = Vec::with_capacity(servers.len());
    for mut server in servers {
        if !names.insert(server.name.clone()) {
            refused.push(format!("server `{}` is there twice", server.name));
            continue;
        }
        let mut tools = HashSet::new();
        let name = server.name.clone();
        server.tools.retain(|tool| {
            let first = tools.insert(tool.name().clone());
            if !first {
                refused.push(format!("tool `{name}/{}` is there twice", tool.name()));
            }
            first
        });
        kept.push(server);
    }
    kept
}

fn digest(format: Format, documents: &[Document]) -> String {
    let mut hash = Sha256::new();
    hash.update(format.to_string());
    for document in documents {
        for text in [&document.name, &document.text] {
            hash.update(text.len().to_le_bytes());
            hash.update(text);
        }
    }
    hex(&hash.finalize())
}

/// One file, or all files below a folder, by path.
fn read_files(path: &Path, limits: &ReadLimits) -> Result<Vec<Document>, ReadSourceError> {
    let mut paths = Vec::new();
    if path.is_dir() {
        find_files(path, DEPTH_MAX, limits, &mut paths)?;
        paths.sort();
    } else {
        paths.push(path.to_owned());
    }
    let mut room = limits.bytes_max;
    let mut documents = Vec::with_capacity(paths.len());
    for path in paths {
        let wrong = |source| ReadSourceError::File {
            path: path.clone(),
            source,
        };
        let about = fs::metadata(&path).map_err(wrong)?;
        if !about.is_file() {
            return Err(wrong(io::Error::other("it is not a file")));
        }
        room = room.checked_sub(about.len()).ok_or_else(|| {
            let message = format!("the source is over the limit of {} bytes", limits.bytes_max);
            wrong(io::Error::other(message))
        })?;
        let text = fs::read_to_string(&path).map_err(wrong)?;
        let name = path.display().to_string();
        documents.push(Document { name, text });
    }
    Ok(documents)
}

fn find_files(
    folder: &Path,
    depth: usize,
    limits: &ReadLimits,
    found: &mut Vec<PathBuf>,
) -> Result<(), ReadSourceError> {
    let wrong = |source| ReadSourceError::File {
        path: folder.to_owned(),
        source,
    };
    for entry in fs::read_dir(folder).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(wrong)?);
        let ending = path.extension().and_then(|ending| ending.to_str());
        if kind.is_dir() && 0 < depth {
            find_files(&path, depth - 1, limits, found)?;
        } else if kind.is_file() && ending.is_some_and(|ending| ENDINGS.contains(&ending)) {
            if limits.files_max <= found.len() {
                let message = format!("it holds more than {} files", limits.files_max);
                return Err(wrong(io::Error::other(message)));
            }
            found.push(path);
        }
    }
    Ok(())
}
