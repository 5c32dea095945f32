//! Vectors on disk: one append-only file a model, each record with its checksum.
//!
//! A record is the SHA-256 of a text, its vector, and eight bytes of a SHA-256 over both. A
//! process may die at any moment: what is torn at the end is cut at the next opening, what is
//! damaged inside is skipped, and either is embedded again.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::domain::Embedding;

/// First bytes of a file; the number of dimensions follows as four bytes.
const MAGIC: &[u8; 8] = b"cribvec1";
/// Bytes before the first record.
const HEADER: u32 = 12;
/// Bytes of a text's hash.
const KEY: usize = 32;
/// Bytes of a record's checksum.
const CHECK: usize = 8;
/// A file is rewritten when it holds more than this many times what the catalog needs.
const SLACK: usize = 3;
/// Below this number of records a file is never rewritten: 100 MB, in which several catalogs may
/// keep their vectors.
const RECORDS_MIN: usize = 65_536;

/// SHA-256 over what a vector is made from.
pub(super) type Key = [u8; KEY];

/// The hash of a tool's texts under a recipe.
pub(super) fn key(recipe: &str, texts: &[String]) -> Key {
    let mut hasher = Sha256::new();
    hasher.update(recipe);
    for text in texts {
        hasher.update([0]);
        hasher.update(text);
    }
    hasher.finalize().into()
}

/// Why the cache could not be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {act} the vector cache `{path}`")]
pub struct UseCacheError {
    act: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// A folder with vectors by model, and with graphs built over them.
#[derive(Clone, Debug)]
pub struct VectorCache {
    folder: PathBuf,
}

impl VectorCache {
    /// Opens the folder, and makes it when it is not there.
    pub fn open(folder: &Path) -> Result<Self, UseCacheError> {
        std::fs::create_dir_all(folder).map_err(|source| UseCacheError {
            act: "create",
            path: folder.to_owned(),
            source,
        })?;
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// Where graphs are dumped.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The vectors of a model that are there for some keys.
    pub(super) fn read(
        &self,
        model: &str,
        dimensions: usize,
        wanted: &HashSet<Key>,
    ) -> Result<HashMap<Key, Embedding>, UseCacheError> {
        let path = self.path(model);
        let mut found = HashMap::new();
        let records = with_file(&path, |file| {
            each_record(file, dimensions, |key, vector| {
                if wanted.contains(key) {
                    found.insert(*key, vector);
                }
            })
        })
        .map_err(|source| wrong("read", &path, source))?;
        if RECORDS_MIN < records && found.len() * SLACK < records {
            self.rewrite(model, dimensions, &found)?;
        }
        Ok(found)
    }

    /// Adds vectors of a model.
    pub(super) fn append(
        &self,
        model: &str,
        dimensions: usize,
        vectors: &[(Key, Embedding)],
    ) -> Result<(), UseCacheError> {
        let path = self.path(model);
        let mut bytes = Vec::with_capacity(vectors.len() * record_bytes(dimensions));
        for (key, vector) in vectors {
            put_record(&mut bytes, key, vector);
        }
        with_file(&path, |file| {
            // The records of a whole batch in one write, behind the last whole record.
            let end = cut_torn(file, dimensions)?;
            file.seek(SeekFrom::Start(end))?;
            file.write_all(&bytes)
        })
        .map_err(|source| wrong("write", &path, source))
    }

    /// Leaves only what is needed, through a second file and a rename.
    fn rewrite(
        &self,
        model: &str,
        dimensions: usize,
        kept: &HashMap<Key, Embedding>,
    ) -> Result<(), UseCacheError> {
        let path = self.path(model);
        let fresh = path.with_extension("new");
        let mut bytes = header(dimensions);
        let mut keys: Vec<&Key> = kept.keys().collect();
        keys.sort_unstable();
        for key in keys {
            put_record(&mut bytes, key, &kept[key]);
        }
        std::fs::write(&fresh, bytes)
            .and_then(|()| std::fs::rename(&fresh, &path))
            .map_err(|source| wrong("rewrite", &path, source))
    }

    fn path(&self, model: &str) -> PathBuf {
        let safe: String = model
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .take(80)
            .collect();
        let hash = Sha256::digest(model);
        self.folder
            .join(format!("{safe}-{:02x}{:02x}.vectors", hash[0], hash[1]))
    }
}

fn wrong(act: &'static str, path: &Path, source: io::Error) -> UseCacheError {
    UseCacheError {
        act,
        path: path.to_owned(),
        source,
    }
}

/// Runs with the file locked, so that processes that share a folder do not mix their records.
fn with_file<T>(path: &Path, act: impl FnOnce(&mut File) -> io::Result<T>) -> io::Result<T> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    file.lock()?;
    act(&mut file)
}

fn record_bytes(dimensions: usize) -> usize {
    KEY + dimensions * size_of::<f32>() + CHECK
}

fn header(dimensions: usize) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(u32::try_from(dimensions).unwrap_or(u32::MAX).to_le_bytes());
    bytes
}

fn put_record(bytes: &mut Vec<u8>, key: &Key, vector: &Embedding) {
    let start = bytes.len();
    bytes.extend(key);
    for x in vector.as_slice() {
        bytes.extend(x.to_le_bytes());
    }
    let check = Sha256::digest(bytes.get(start..).unwrap_or_default());
    bytes.extend(check.iter().take(CHECK));
}

/// Puts the header right and cuts a torn record. Says where the last whole record ends.
fn cut_torn(file: &mut File, dimensions: usize) -> io::Result<u64> {
    let wanted = header(dimensions);
    let mut there = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    (&*file).take(HEADER.into()).read_to_end(&mut there)?;
    if there != wanted {
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&wanted)?;
        return Ok(HEADER.into());
    }
    let length = file.metadata()?.len();
    let record = record_bytes(dimensions) as u64;
    let header = u64::from(HEADER);
    let whole = header + (length - header) / record * record;
    if whole != length {
        file.set_len(whole)?;
    }
    Ok(whole)
}

/// Reads all sound records, and says how many records there are.
fn each_record(
    file: &mut File,
    dimensions: usize,
    mut take: impl FnMut(&Key, Embedding),
) -> io::Result<usize> {
    let end = cut_torn(file, dimensions)?;
    file.seek(SeekFrom::Start(HEADER.into()))?;
    let mut reader = io::BufReader::with_capacity(1 << 20, file.take(end - u64::from(HEADER)));
    let mut record = vec![0; record_bytes(dimensions)];
    let mut records = 0;
    loop {
        match reader.read_exact(&mut record) {
            Ok(()) => records += 1,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(records),
            Err(error) => return Err(error),
        }
        let (body, check) = record.split_at(record.len() - CHECK);
        if !Sha256::digest(body).starts_with(check) {
            continue;
        }
        let (key, numbers) = body.split_at(KEY);
        let numbers = numbers
            .chunks_exact(size_of::<f32>())
            .map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            .collect();
        if let (Ok(key), Ok(vector)) = (key.try_into(), Embedding::new(numbers)) {
            take(key, vector);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(x: f32) -> Embedding {
        Embedding::new(vec![x, 1.0, 2.0]).unwrap()
    }

    fn entry(text: &str, x: f32) -> (Key, Embedding) {
        (key("r", &[text.to_owned()]), vector(x))
    }

    fn all(cache: &VectorCache, texts: &[&str]) -> usize {
        let wanted = texts.iter().map(|t| key("r", &[(*t).to_owned()])).collect();
        cache.read("m", 3, &wanted).unwrap().len()
    }

    #[test]
    fn what_was_added_is_read_back_by_text_and_model() {
        let folder = tempfile::tempdir().unwrap();
        let cache = VectorCache::open(folder.path()).unwrap();
        cache
            .append("m", 3, &[entry("a", 1.0), entry("b", 2.0)])
            .unwrap();
        cache.append("m", 3, &[entry("c", 3.0)]).unwrap();
        let wanted = [key("r", &["b".to_owned()])].into();
        let found = cache.read("m", 3, &wanted).unwrap();
        let (b, v) = entry("b", 2.0);
        assert!(
            found[&b]
                .as_slice()
                .iter()
                .zip(v.as_slice())
                .all(|(x, y)| (x - y).abs() < 1e-6)
        );
        assert!(cache.read("other", 3, &wanted).unwrap().is_empty());
        assert!(cache.read("m", 4, &wanted).unwrap().is_empty());
    }

    #[test]
    fn a_torn_tail_is_cut_and_a_damaged_record_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let cache = VectorCache::open(folder.path()).unwrap();
        cache
            .append("m", 3, &[entry("a", 1.0), entry("b", 2.0)])
            .unwrap();
        let path = cache.path("m");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend([7; 20]);
        bytes[17] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(all(&cache, &["a", "b"]), 1);
        cache.append("m", 3, &[entry("a", 1.0)]).unwrap();
        assert_eq!(all(&cache, &["a", "b"]), 2);
    }

    #[test]
    fn a_file_mostly_of_old_records_is_rewritten() {
        let folder = tempfile::tempdir().unwrap();
        let cache = VectorCache::open(folder.path()).unwrap();
        let many: Vec<_> = (0..=RECORDS_MIN)
            .map(|n| entry(&n.to_string(), 1.0 + n as f32))
            .collect();
        cache.append("m", 3, &many).unwrap();
        assert_eq!(all(&cache, &["1", "2"]), 2);
        let length = std::fs::metadata(cache.path("m")).unwrap().len();
        assert_eq!(length, u64::from(HEADER) + 2 * record_bytes(3) as u64);
        assert_eq!(all(&cache, &["1", "2", "3"]), 2);
    }
}
