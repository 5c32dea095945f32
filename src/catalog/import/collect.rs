//! From a file or folder to documents: the only part of an import that reads files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::catalog::import::{DOCUMENT_BYTES_MAX, Document, Format, Note, NoteKind};

/// Most files of one folder.
pub const FILES_MAX: usize = 100_000;
/// Deepest folder that is looked into.
const FOLDERS_MAX: usize = 12;
/// Most bytes of all documents together.
const TOTAL_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Endings of files that can be documents. All others are passed over.
const ENDINGS: [&str; 6] = ["json", "jsonl", "ndjson", "yaml", "yml", "toml"];

/// Why a path gave no documents.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectError {
    /// A file or folder cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// More files, or larger ones, than an import takes.
    #[error("`{}` holds more than {FILES_MAX} files or {TOTAL_BYTES_MAX} bytes", path.display())]
    TooLarge {
        /// The folder.
        path: PathBuf,
    },
    /// Nothing there has a format that we read.
    #[error("nothing in `{}` has a format that is known: name it", path.display())]
    NoFormat {
        /// The path.
        path: PathBuf,
    },
    /// Several formats where one is asked for.
    #[error("`{}` holds `{first}` and `{second}`: import it with `auto`", path.display())]
    SeveralFormats {
        /// The path.
        path: PathBuf,
        /// One of them.
        first: Format,
        /// Another.
        second: Format,
    },
}

/// Documents of one format.
#[derive(Clone, Debug)]
pub struct Collected {
    /// Their format.
    pub format: Format,
    /// The documents, by name.
    pub documents: Vec<Document>,
}

/// The documents of a file or folder that holds one format.
pub fn collect(path: &Path) -> Result<(Format, Vec<Document>), CollectError> {
    let (mut groups, _) = collect_all(path, None)?;
    let first = groups.pop();
    match (first, groups.pop()) {
        (Some(only), None) => Ok((only.format, only.documents)),
        (Some(one), Some(other)) => Err(CollectError::SeveralFormats {
            path: path.to_owned(),
            first: other.format,
            second: one.format,
        }),
        (None, _) => Err(CollectError::NoFormat {
            path: path.to_owned(),
        }),
    }
}

/// The documents of a file or folder by format, in the order of [`Format::ALL`], and a note for
/// each file that could be one and is none. With a format given, all of them are read as that.
pub fn collect_all(
    path: &Path,
    format: Option<Format>,
) -> Result<(Vec<Collected>, Vec<Note>), CollectError> {
    let mut files = Vec::new();
    list(path, 0, &mut files)?;
    if path.is_dir() {
        files.retain(|file| is_document(file));
    }
    files.sort();
    let mut documents = Vec::with_capacity(files.len());
    let (mut notes, mut total) = (Vec::new(), 0);
    for file in files {
        match read(&file)? {
            Ok(document) => {
                total += document.text.len();
                if TOTAL_BYTES_MAX < total {
                    return Err(CollectError::TooLarge {
                        path: path.to_owned(),
                    });
                }
                documents.push(document);
            }
            Err(note) => notes.push(note),
        }
    }
    let (groups, more) = group(documents, format);
    notes.extend(more);
    Ok((groups, notes))
}

/// Documents that are there already, by format, as [`collect_all`] gives them.
pub fn group(documents: Vec<Document>, format: Option<Format>) -> (Vec<Collected>, Vec<Note>) {
    let mut notes = Vec::new();
    let groups = match format {
        Some(format) => vec![Collected { format, documents }],
        None => sort_out(documents, &mut notes),
    };
    (groups, notes)
}

/// Finds the format of each document. The `tools.json` beside a `server.yaml` belongs to it, as
/// do lists of tools to a compiled Docker catalog in the folder above.
fn sort_out(documents: Vec<Document>, notes: &mut Vec<Note>) -> Vec<Collected> {
    let folder = |name: &str| {
        name.rsplit_once('/')
            .map_or("", |(folder, _)| folder)
            .to_owned()
    };
    let detected: Vec<(Document, Option<Format>)> = documents
        .into_iter()
        .map(|document| {
            let format = Format::detect(&document.name, &document.text);
            (document, format)
        })
        .collect();
    let folders_of = |format: Format| -> std::collections::HashSet<String> {
        let found = detected.iter().filter(|(_, found)| *found == Some(format));
        found.map(|(document, _)| folder(&document.name)).collect()
    };
    let registry = folders_of(Format::DockerRegistry);
    let compiled = folders_of(Format::Docker);
    let mut groups: Vec<Collected> = Vec::new();
    for (document, format) in detected {
        let own = folder(&document.name);
        let format = match format {
            Some(Format::ToolsList) if document.name.ends_with("/tools.json") => {
                if registry.contains(&own) {
                    Some(Format::DockerRegistry)
                } else if compiled.contains(&own) || compiled.contains(&folder(&own)) {
                    Some(Format::Docker)
                } else {
                    format
                }
            }
            _ => format,
        };
        let Some(format) = format else {
            notes.push(Note {
                place: document.name,
                kind: NoteKind::Refused,
                what: "document".to_owned(),
                why: "it has no format that is known".to_owned(),
            });
            continue;
        };
        match groups.iter_mut().find(|group| group.format == format) {
            Some(group) => group.documents.push(document),
            None => groups.push(Collected {
                format,
                documents: vec![document],
            }),
        }
    }
    groups.sort_by_key(|group| Format::ALL.iter().position(|known| *known == group.format));
    groups
}

fn list(path: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), CollectError> {
    let wrong = |source| CollectError::Read {
        path: path.to_owned(),
        source,
    };
    // Links below the path given are not followed: they may lead anywhere, or round in a circle.
    let kind = match depth {
        0 => fs::metadata(path),
        _ => fs::symlink_metadata(path),
    }
    .map_err(wrong)?;
    if kind.is_file() {
        if FILES_MAX <= files.len() {
            return Err(CollectError::TooLarge {
                path: path.to_owned(),
            });
        }
        files.push(path.to_owned());
    }
    if !kind.is_dir() || FOLDERS_MAX < depth {
        return Ok(());
    }
    for entry in fs::read_dir(path).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            list(&entry.path(), depth + 1, files)?;
        }
    }
    Ok(())
}

fn is_document(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.contains(&ending.to_ascii_lowercase().as_str()))
}

/// A document, or why the file is none.
fn read(path: &Path) -> Result<Result<Document, Note>, CollectError> {
    let wrong = |source| CollectError::Read {
        path: path.to_owned(),
        source,
    };
    let name = path.display().to_string();
    let refused = |why: String| Note {
        place: path.display().to_string(),
        kind: NoteKind::Refused,
        what: "document".to_owned(),
        why,
    };
    let bytes = fs::metadata(path).map_err(wrong)?.len();
    if DOCUMENT_BYTES_MAX < usize::try_from(bytes).unwrap_or(usize::MAX) {
        let why = format!("{bytes} bytes, over the limit of {DOCUMENT_BYTES_MAX}");
        return Ok(Err(refused(why)));
    }
    let bytes = fs::read(path).map_err(wrong)?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => Ok(Document { name, text }),
        Err(error) => Err(refused(format!("it is not UTF-8: {error}"))),
    })
}
