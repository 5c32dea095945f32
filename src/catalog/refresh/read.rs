//! Reading one source: bytes, documents, servers, each within its limits.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Url;
use sha2::{Digest, Sha256};

use crate::catalog::import::{self, Document, Format};
use crate::catalog::refresh::fetch::{FetchError, FetchOptions, Fetched, Fetcher};
use crate::catalog::refresh::source::{Origin, Source};
use crate::catalog::snapshot::{Seen, SeenDocument, hex};
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

/// Most pages of a registry that are followed.
const PAGES_MAX: usize = 2_000;

/// All documents that a URL leads to: it, the further pages that it names, and the lists of tools
/// that complete it. One further document that cannot be fetched is left out, and `report` is told.
pub async fn fetch_documents(
    url: &Url,
    options: FetchOptions,
    report: &(dyn Fn(String) + Send + Sync),
) -> Result<Vec<Document>, FetchError> {
    let fetcher = Fetcher::new(options);
    let (first, _) = fetch_one(&fetcher, url).await?;
    let followed = follow(&fetcher, url, first, report).await?;
    Ok(followed.documents)
}

async fn fetch_one(fetcher: &Fetcher, url: &Url) -> Result<(Document, Seen), FetchError> {
    match fetcher.fetch(url, None).await? {
        Fetched::Document(text, seen) => {
            let name = url.to_string();
            Ok((Document { name, text }, seen))
        }
        // Nothing was seen before, so that this is no answer.
        Fetched::NotModified => Err(FetchError::Status(http::StatusCode::NOT_MODIFIED)),
    }
}

/// All documents of a source, and what tells whether those behind the first have changed.
struct Followed {
    documents: Vec<Document>,
    further: Vec<SeenDocument>,
}

impl Followed {
    fn add(&mut self, document: Document, seen: Seen) {
        self.further.push(SeenDocument {
            url: document.name.clone(),
            etag: seen.etag,
            last_modified: seen.last_modified,
            digest: digest_of(&document.text),
        });
        self.documents.push(document);
    }
}

/// Whether all documents behind the first are as they were seen. That the first has not changed
/// says nothing of them.
async fn are_as_seen(fetcher: &Fetcher, further: &[SeenDocument]) -> Result<bool, FetchError> {
    for document in further {
        let Ok(url) = Url::parse(&document.url) else {
            return Ok(false);
        };
        let seen = Seen {
            etag: document.etag.clone(),
            last_modified: document.last_modified.clone(),
            ..Seen::default()
        };
        match fetcher.fetch(&url, Some(&seen)).await? {
            Fetched::NotModified => {}
            Fetched::Document(text, _) if digest_of(&text) == document.digest => {}
            Fetched::Document(..) => return Ok(false),
        }
    }
    Ok(true)
}

/// The first document, the pages behind it, and lists of tools on the same server.
async fn follow(
    fetcher: &Fetcher,
    url: &Url,
    first: Document,
    report: &(dyn Fn(String) + Send + Sync),
) -> Result<Followed, FetchError> {
    let bytes_max = ReadLimits::default().bytes_max;
    let lists = import::tools_urls(&first);
    let mut followed = Followed {
        documents: vec![first],
        further: Vec::new(),
    };
    let mut bytes = 0;
    while followed.documents.len() < PAGES_MAX
        && let Some(last) = followed.documents.last()
        && let Some(cursor) = import::next_cursor(&last.text)
    {
        bytes += last.text.len() as u64;
        if bytes_max < bytes {
            return Err(FetchError::TooLarge { max: bytes_max });
        }
        let (page, seen) = fetch_one(fetcher, &page_at(url, &cursor)).await?;
        followed.add(page, seen);
    }
    for list in lists {
        let same_host = |list: &Url| list.host_str() == url.host_str();
        let Some(list) = Url::parse(&list).ok().filter(same_host) else {
            report(format!("`{list}` is on another server and was not fetched"));
            continue;
        };
        match fetch_one(fetcher, &list).await {
            Ok((document, seen)) => followed.add(document, seen),
            Err(error) => report(format!("`{list}` was not fetched: {error}")),
        }
    }
    Ok(followed)
}

/// The URL with its `cursor` replaced.
fn page_at(url: &Url, cursor: &str) -> Url {
    let mut page = url.clone();
    let kept: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(name, _)| name != "cursor")
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    page.query_pairs_mut()
        .clear()
        .extend_pairs(kept)
        .append_pair("cursor", cursor);
    page
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
    /// Not read.
    Failed(ReadSourceError),
}

/// Reads a source, unless it is as `seen`.
pub(super) async fn read(
    source: &Source,
    seen: Option<&Seen>,
    fetcher: &Fetcher,
    limits: &ReadLimits,
) -> Reading {
    let read = try_read(source, seen, fetcher, limits).await;
    read.unwrap_or_else(Reading::Failed)
}

async fn try_read(
    source: &Source,
    seen: Option<&Seen>,
    fetcher: &Fetcher,
    limits: &ReadLimits,
) -> Result<Reading, ReadSourceError> {
    let (documents, mut next) = match &source.origin {
        Origin::Url(url) => {
            let changed = fetch_source(fetcher, url, seen).await;
            let changed = changed.map_err(|error| ReadSourceError::Fetch {
                url: url.to_string(),
                source: error,
            })?;
            match changed {
                Some(documents) => documents,
                None => return Ok(Reading::Unchanged),
            }
        }
        Origin::Path(path) => {
            let (path, limits) = (path.clone(), limits.clone());
            let format = source.format;
            let reading = tokio::task::spawn_blocking(move || read_files(&path, &limits));
            let documents = reading
                .await
                .map_err(|source| ReadSourceError::Importer { format, source })??;
            (documents, Seen::default())
        }
    };
    next.digest = digest(source.format, &documents);
    if seen.is_some_and(|seen| *seen == next) {
        return Ok(Reading::Unchanged);
    }
    let (servers, refused) = parse(source.format, documents, limits).await?;
    if servers.is_empty() {
        return Err(ReadSourceError::Nothing { refused });
    }
    Ok(Reading::Read {
        seen: next,
        servers,
        refused,
    })
}

/// All documents of a URL, with what tells whether they change; `None` when nothing has.
async fn fetch_source(
    fetcher: &Fetcher,
    url: &Url,
    seen: Option<&Seen>,
) -> Result<Option<(Vec<Document>, Seen)>, FetchError> {
    let (first, mut next) = match (fetcher.fetch(url, seen).await?, seen) {
        (Fetched::NotModified, Some(seen)) => {
            if are_as_seen(fetcher, &seen.further).await? {
                return Ok(None);
            }
            fetch_one(fetcher, url).await?
        }
        (Fetched::NotModified, None) => return Ok(None),
        (Fetched::Document(text, next), _) => {
            let name = url.to_string();
            (Document { name, text }, next)
        }
    };
    let told = |why: String| tracing::warn!(url = %url, why, "left out a list of tools");
    let followed = follow(fetcher, url, first, &told).await?;
    next.further = followed.further;
    Ok(Some((followed.documents, next)))
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

fn digest_of(text: &str) -> String {
    hex(&Sha256::digest(text))
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
