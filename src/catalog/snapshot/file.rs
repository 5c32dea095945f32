//! The snapshot as a file: a header with a checksum, then JSON Lines.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::catalog::pins::{Held, HeldChange, HeldTool};
use crate::catalog::snapshot::{
    ReadRecordError, Seen, SeenDocument, Snapshot, SourceState, server_from_json, server_to_json,
    tool_from_json, tool_to_json,
};

/// Version of the layout.
const LAYOUT: u64 = 1;
/// Largest snapshot, in bytes.
const BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// Longest first line, in bytes.
const HEADER_MAX: u64 = 1_000;

/// Why a snapshot was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadSnapshotError {
    /// The disk.
    #[error("cannot read the snapshot")]
    Read(#[from] io::Error),
    /// No header, or one of another layout.
    #[error("the snapshot has no header of layout {LAYOUT}")]
    Header,
    /// Fewer bytes than the header says, or others.
    #[error("the snapshot is cut off or damaged: its checksum does not fit")]
    Checksum,
    /// A line is not JSON.
    #[error("line {line} of the snapshot is not JSON")]
    Json {
        /// Which line behind the header.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
    /// A line is no record.
    #[error("line {line} of the snapshot")]
    Record {
        /// Which line behind the header.
        line: usize,
        /// Why.
        source: ReadRecordError,
    },
}

/// Why a snapshot was not changed. The one on disk is as it was.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the snapshot at `{}`", path.display())]
pub struct ChangeSnapshotError {
    path: PathBuf,
    source: io::Error,
}

/// Where the snapshot is. Clones share what they have read.
#[derive(Clone, Debug)]
pub struct SnapshotFile {
    path: PathBuf,
    /// The last one read or written, by its header.
    last: Arc<Mutex<Option<Known>>>,
}

/// A snapshot by its header.
type Known = (String, Arc<Snapshot>);

impl SnapshotFile {
    /// A snapshot that need not exist yet.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            last: Arc::default(),
        }
    }

    /// The snapshot now: the previous one where the present one is damaged, with a warning in the
    /// log; an empty one where there is none.
    pub fn load(&self) -> Arc<Snapshot> {
        match self.read_present() {
            Ok(snapshot) => return snapshot,
            Err(ReadSnapshotError::Read(error)) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(error = %error, path = %self.path.display(),
                    "the snapshot of the catalog is not usable; taking the previous one");
            }
        }
        match read(&self.previous()) {
            Ok((_, snapshot)) => Arc::new(snapshot),
            Err(ReadSnapshotError::Read(error)) if error.kind() == io::ErrorKind::NotFound => {
                Arc::default()
            }
            Err(error) => {
                tracing::error!(error = %error, path = %self.previous().display(),
                    "the previous snapshot is not usable either; refresh the catalog");
                Arc::default()
            }
        }
    }

    /// The snapshot before the present one, if there is one.
    pub fn load_previous(&self) -> Option<Snapshot> {
        read(&self.previous()).ok().map(|(_, snapshot)| snapshot)
    }

    /// Changes the snapshot; others that change it at the same time wait. Nothing is written
    /// where nothing changed.
    pub fn change<R>(
        &self,
        change: impl FnOnce(&mut Snapshot) -> R,
    ) -> Result<(R, Arc<Snapshot>), ChangeSnapshotError> {
        let wrong = |source| ChangeSnapshotError {
            path: self.path.clone(),
            source,
        };
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(wrong)?;
        let lock = fs::File::create(self.path.with_extension("lock")).map_err(wrong)?;
        lock.lock().map_err(wrong)?;
        let present = self.load();
        let mut snapshot = Snapshot::clone(&present);
        let result = change(&mut snapshot);
        if snapshot == *present {
            return Ok((result, present));
        }
        let header = self.save(&snapshot).map_err(wrong)?;
        let snapshot = Arc::new(snapshot);
        self.remember(header, Arc::clone(&snapshot));
        Ok((result, snapshot))
    }

    fn read_present(&self) -> Result<Arc<Snapshot>, ReadSnapshotError> {
        let mut file = fs::File::open(&self.path)?;
        let header = read_header(&mut BufReader::new(&mut file))?;
        {
            let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            // A header belongs to one content, whose bytes were checked when it was read.
            if let Some((_, snapshot)) = last.as_ref().filter(|(known, _)| *known == header) {
                return Ok(Arc::clone(snapshot));
            }
        }
        let (header, snapshot) = read(&self.path)?;
        let snapshot = Arc::new(snapshot);
        self.remember(header, Arc::clone(&snapshot));
        Ok(snapshot)
    }

    fn remember(&self, header: String, snapshot: Arc<Snapshot>) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some((header, snapshot));
    }

    fn previous(&self) -> PathBuf {
        self.path.with_extension("previous")
    }

    fn save(&self, snapshot: &Snapshot) -> io::Result<String> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let mut body = Vec::new();
        write_body(snapshot, &mut body)?;
        let header = json!({
            "toolcrib_snapshot": LAYOUT,
            "bytes": body.len(),
            "sha256": hex(&Sha256::digest(&body)),
        })
        .to_string();
        let mut aside = tempfile::NamedTempFile::new_in(folder)?;
        writeln!(aside, "{header}")?;
        aside.write_all(&body)?;
        aside.as_file().sync_all()?;
        // A damaged file must not push out the previous good one.
        if self.read_present().is_ok() && read_checked(&self.path).is_ok() {
            let link =
                tempfile::Builder::new().make_in(folder, |path| fs::hard_link(&self.path, path))?;
            link.into_temp_path()
                .persist(self.previous())
                .map_err(|error| error.error)?;
        }
        aside.persist(&self.path).map_err(|error| error.error)?;
        #[cfg(unix)]
        fs::File::open(folder)?.sync_all()?;
        Ok(header)
    }
}

fn read_header(reader: &mut impl BufRead) -> Result<String, ReadSnapshotError> {
    let mut header = String::new();
    let taken = reader.take(HEADER_MAX).read_line(&mut header);
    taken.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => ReadSnapshotError::Header,
        _ => ReadSnapshotError::Read(error),
    })?;
    Ok(header.trim_end().to_owned())
}

/// Checks and reads a file, and gives its header with it.
fn read(path: &Path) -> Result<(String, Snapshot), ReadSnapshotError> {
    let (header, text) = read_checked(path)?;
    Ok((header, read_body(&text)?))
}

/// Header and body of a file, its checksum compared and its lines not yet looked at.
fn read_checked(path: &Path) -> Result<(String, String), ReadSnapshotError> {
    let file = fs::File::open(path)?;
    if BYTES_MAX < file.metadata()?.len() {
        return Err(ReadSnapshotError::Checksum);
    }
    let mut reader = BufReader::new(file);
    let header = read_header(&mut reader)?;
    let said: Value =
        serde_json::from_str(&header).map_err(|_not_json| ReadSnapshotError::Header)?;
    if said["toolcrib_snapshot"].as_u64() != Some(LAYOUT) {
        return Err(ReadSnapshotError::Header);
    }
    let mut body = Vec::new();
    reader.read_to_end(&mut body)?;
    let fits = said["bytes"].as_u64() == u64::try_from(body.len()).ok()
        && said["sha256"].as_str() == Some(&hex(&Sha256::digest(&body)));
    if !fits {
        return Err(ReadSnapshotError::Checksum);
    }
    let text = String::from_utf8(body).map_err(|_not_text| ReadSnapshotError::Checksum)?;
    Ok((header, text))
}

/// Bytes in hexadecimal.
pub(in crate::catalog) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn write_body(snapshot: &Snapshot, out: &mut Vec<u8>) -> io::Result<()> {
    for (kind, state) in snapshot
        .sources
        .iter()
        .map(|source| ("source", source))
        .chain([("asked", &snapshot.asked)])
    {
        let seen = &state.seen;
        let line = json!({ kind: {
            "name": &*state.name,
            "etag": seen.etag,
            "last_modified": seen.last_modified,
            "digest": seen.digest,
            "newest": seen.newest,
            "whole_at": seen.whole_at,
            "further": seen.further.iter().map(document_to_json).collect::<Vec<_>>(),
        }});
        writeln!(out, "{line}")?;
        for server in &state.servers {
            writeln!(out, "{}", json!({ "server": server_to_json(server) }))?;
        }
        for (name, held) in &state.held {
            let tools: Vec<Value> = held.tools.iter().map(held_to_json).collect();
            let head = held.head.as_deref().map(server_to_json);
            let line = json!({ "held": { "name": name.as_str(), "head": head, "tools": tools } });
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

fn held_to_json(held: &HeldTool) -> Value {
    let mut json = json!({ "tool": tool_to_json(&held.tool) });
    match &held.change {
        HeldChange::New => {}
        HeldChange::Changed { before } => json["changed"] = tool_to_json(before),
        HeldChange::Renamed { before } => json["renamed"] = tool_to_json(before),
    }
    json
}

fn held_from_json(json: &Value) -> Result<HeldTool, ReadRecordError> {
    let change = match (json.get("changed"), json.get("renamed")) {
        (Some(before), _) => HeldChange::Changed {
            before: tool_from_json(before)?,
        },
        (None, Some(before)) => HeldChange::Renamed {
            before: tool_from_json(before)?,
        },
        (None, None) => HeldChange::New,
    };
    let tool = tool_from_json(&json["tool"])?;
    Ok(HeldTool { change, tool })
}

fn read_body(text: &str) -> Result<Snapshot, ReadSnapshotError> {
    let mut snapshot = Snapshot::default();
    let mut present = SourceState::default();
    let mut is_asked = true;
    for (line, text) in (1..).zip(text.lines()) {
        let json: Value = serde_json::from_str(text)
            .map_err(|source| ReadSnapshotError::Json { line, source })?;
        let record = |source| ReadSnapshotError::Record { line, source };
        if let Some(server) = json.get("server") {
            let server = server_from_json(server).map_err(record)?;
            present.servers.push(Arc::new(server));
        } else if let Some(held) = json.get("held") {
            let head = match &held["head"] {
                Value::Null => None,
                head => Some(Arc::new(server_from_json(head).map_err(record)?)),
            };
            let tools = held["tools"].as_array().into_iter().flatten();
            let tools = tools.map(held_from_json).collect::<Result<_, _>>();
            let tools = tools.map_err(record)?;
            let name = held["name"].as_str().unwrap_or_default().parse();
            let name = name.map_err(|_not_a_name| ReadSnapshotError::Checksum)?;
            present.held.insert(name, Held { head, tools });
        } else {
            let (asked, head) = match json.get("asked") {
                Some(head) => (true, head),
                None => (false, &json["source"]),
            };
            let done = std::mem::replace(&mut present, read_state(head));
            put(&mut snapshot, is_asked, done);
            is_asked = asked;
        }
    }
    put(&mut snapshot, is_asked, present);
    Ok(snapshot)
}

fn put(snapshot: &mut Snapshot, is_asked: bool, state: SourceState) {
    match is_asked {
        true => snapshot.asked = state,
        false => snapshot.sources.push(state),
    }
}

fn read_state(json: &Value) -> SourceState {
    let text = |key: &str| json[key].as_str().map(str::to_owned);
    SourceState {
        name: text("name").unwrap_or_default().into(),
        seen: Seen {
            etag: text("etag"),
            last_modified: text("last_modified"),
            digest: text("digest").unwrap_or_default(),
            newest: text("newest"),
            whole_at: json["whole_at"].as_u64(),
            further: json["further"]
                .as_array()
                .into_iter()
                .flatten()
                .map(read_document)
                .collect(),
        },
        ..SourceState::default()
    }
}

fn read_document(json: &Value) -> SeenDocument {
    let text = |key: &str| json[key].as_str().map(str::to_owned);
    SeenDocument {
        url: text("url").unwrap_or_default(),
        etag: text("etag"),
        last_modified: text("last_modified"),
        digest: text("digest").unwrap_or_default(),
    }
}

fn document_to_json(document: &SeenDocument) -> Value {
    json!({
        "url": document.url,
        "etag": document.etag,
        "last_modified": document.last_modified,
        "digest": document.digest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{builtin, load};

    fn snapshot(servers: usize) -> Snapshot {
        let catalog = load(&[builtin()]).catalog;
        let mut held = Held::default();
        let tools = &catalog.servers()[0].tools;
        held.head = Some(catalog.servers()[1].clone());
        for change in [
            HeldChange::New,
            HeldChange::Changed {
                before: tools[1].clone(),
            },
            HeldChange::Renamed {
                before: tools[1].clone(),
            },
        ] {
            held.tools.push(HeldTool {
                change,
                tool: tools[0].clone(),
            });
        }
        let state = SourceState {
            name: "a".into(),
            seen: Seen {
                etag: Some("\"1\"".to_owned()),
                last_modified: None,
                digest: "00".to_owned(),
                newest: Some("2026-01-02T03:04:05Z".to_owned()),
                whole_at: Some(7),
                further: vec![SeenDocument {
                    url: "https://a.example/?cursor=1".to_owned(),
                    etag: None,
                    last_modified: Some("today".to_owned()),
                    digest: "11".to_owned(),
                }],
            },
            servers: catalog.servers()[..servers].to_vec(),
            held: [(catalog.servers()[0].name.clone(), held)].into(),
        };
        Snapshot {
            asked: SourceState {
                name: "asked".into(),
                servers: catalog.servers()[..1].to_vec(),
                ..SourceState::default()
            },
            sources: vec![
                SourceState {
                    name: "b".into(),
                    ..state.clone()
                },
                state,
            ],
        }
    }

    fn write(file: &SnapshotFile, snapshot: &Snapshot) {
        file.change(|present| *present = snapshot.clone()).unwrap();
    }

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("catalog.snapshot");
        write(&SnapshotFile::new(path.clone()), &snapshot(5));
        assert_eq!(*SnapshotFile::new(path).load(), snapshot(5));
    }

    #[test]
    fn a_cut_or_damaged_snapshot_falls_back_to_the_previous() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("catalog.snapshot");
        let file = || SnapshotFile::new(path.clone());
        assert_eq!(*file().load(), Snapshot::default());
        write(&file(), &snapshot(2));
        write(&file(), &snapshot(3));
        let good = fs::read(&path).unwrap();
        let mut flipped = good.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 1;
        for bad in [&good[..good.len() - 1], &good[..50], &[], &flipped] {
            fs::write(&path, bad).unwrap();
            assert_eq!(*file().load(), snapshot(2));
        }
        // The next write keeps the good one as previous, not the damaged one.
        write(&file(), &snapshot(4));
        assert_eq!(file().load_previous(), Some(snapshot(2)));
        assert_eq!(*file().load(), snapshot(4));
        fs::remove_file(&path).unwrap();
        assert_eq!(*file().load(), snapshot(2));
    }

    #[test]
    fn nothing_is_written_where_nothing_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("catalog.snapshot");
        let file = SnapshotFile::new(path.clone());
        write(&file, &snapshot(1));
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        write(&file, &snapshot(1));
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
    }
}
