//! A small JSON file that the command line changes and the server follows.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Largest file that is read, in bytes.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A value in a file. Each read looks whether the file has changed, which costs one `stat`.
#[derive(Debug)]
pub(super) struct JsonFile<T> {
    path: PathBuf,
    seen: Mutex<Option<(Stamp, Arc<T>)>>,
}

/// What tells one version of a file from the next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
    inode: u64,
}

impl<T: Default + DeserializeOwned + Serialize> JsonFile<T> {
    /// A file that need not exist yet.
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            seen: Mutex::new(None),
        }
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The value now; the default when there is no file.
    pub(super) fn read(&self) -> io::Result<Arc<T>> {
        let stamp = match stamp(&self.path) {
            Ok(stamp) => stamp,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Arc::default()),
            Err(error) => return Err(error),
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, value)) = seen.as_ref().filter(|(at, _)| *at == stamp) {
            return Ok(Arc::clone(value));
        }
        if BYTES_MAX < stamp.bytes {
            return Err(io::Error::other(format!(
                "file has {} bytes, too many",
                stamp.bytes
            )));
        }
        let value: T = serde_json::from_slice(&fs::read(&self.path)?)?;
        let value = Arc::new(value);
        *seen = Some((stamp, Arc::clone(&value)));
        Ok(value)
    }

    /// Changes the value. Other processes that change it at the same time wait; readers see the
    /// old file or the new one, never half of one.
    pub(super) fn change<R, E: From<io::Error>>(
        &self,
        change: impl FnOnce(&mut T) -> Result<R, E>,
    ) -> Result<R, E>
    where
        T: Clone,
    {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let lock = fs::File::create(self.path.with_extension("lock"))?;
        lock.lock()?;
        let mut value = T::clone(&*self.read()?);
        let result = change(&mut value)?;
        write_private(
            &self.path,
            &serde_json::to_vec_pretty(&value).map_err(io::Error::from)?,
        )?;
        Ok(result)
    }
}

/// Writes a file that only its owner reads: aside, to the disk, then in place of the old one.
pub(super) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    // `tempfile` creates with mode 0600.
    let mut aside = tempfile::NamedTempFile::new_in(folder)?;
    aside.write_all(bytes)?;
    aside.as_file().sync_all()?;
    aside.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(unix)]
fn stamp(path: &Path) -> io::Result<Stamp> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(path)?;
    let modified = metadata.modified().ok();
    Ok(Stamp {
        modified,
        bytes: metadata.len(),
        inode: metadata.ino(),
    })
}

#[cfg(not(unix))]
fn stamp(path: &Path) -> io::Result<Stamp> {
    let metadata = fs::metadata(path)?;
    Ok(Stamp {
        modified: metadata.modified().ok(),
        bytes: metadata.len(),
        inode: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_by_one_is_seen_by_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub/numbers.json");
        let (one, other) = (
            JsonFile::<Vec<u32>>::new(path.clone()),
            JsonFile::<Vec<u32>>::new(path),
        );
        assert_eq!(*other.read().unwrap(), Vec::<u32>::new());
        for number in 0..3 {
            one.change(|list| {
                list.push(number);
                Ok::<_, io::Error>(())
            })
            .unwrap();
            assert_eq!(*other.read().unwrap(), (0..=number).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_refused_change_leaves_the_file_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = JsonFile::<Vec<u32>>::new(folder.path().join("numbers.json"));
        let refused = file.change(|list| {
            list.push(1);
            Err::<(), _>(io::Error::other("no"))
        });
        assert!(refused.is_err());
        assert!(!file.path().exists());
    }
}
