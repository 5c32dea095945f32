//! Models and the ONNX runtime on disk: which there are, fetching them by hash, checking them.
//!
//! ```text
//! fetch: pip download by hash -> take files out -> convert -> check -> put in place at once
//! ```

mod pins;
mod fetch;
mod python;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

pub use self::fetch::{FetchError, Progress};
pub use self::pins::{Bundle, ModelPin, PinnedFile, Pins, Pooling, ReadPinsError, RuntimePin};

/// A file on disk is not what is pinned.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FileFault {
    /// Not there.
    Missing(PathBuf),
    /// There, and not readable.
    Unreadable(PathBuf, String),
    /// There, with other content.
    Changed {
        /// The file.
        path: PathBuf,
        /// The pinned hash.
        expected: String,
        /// The hash found.
        found: String,
    },
}

impl std::fmt::Display for FileFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing(path) => write!(f, "`{}` is missing", path.display()),
            Self::Unreadable(path, why) => write!(f, "`{}`: {why}", path.display()),
            Self::Changed {
                path,
                expected,
                found,
            } => write!(
                f,
                "`{}` has SHA-256 {found} where {expected} is pinned",
                path.display()
            ),
        }
    }
}

/// The models folder and what belongs into it.
#[derive(Clone, Debug)]
pub struct Models {
    folder: PathBuf,
    pins: Pins,
}

impl Models {
    /// The pinned models, in a folder that need not exist.
    pub fn new(folder: PathBuf) -> Result<Self, ReadPinsError> {
        Ok(Self {
            folder,
            pins: Pins::builtin()?,
        })
    }

    /// What is pinned.
    pub fn pins(&self) -> &Pins {
        &self.pins
    }

    /// Where a bundle's files are, or would be.
    pub fn folder_of(&self, bundle: &Bundle) -> PathBuf {
        self.folder.join(&bundle.folder)
    }

    /// Whether all files of a bundle are there. Looks at no content.
    pub fn is_present(&self, bundle: &Bundle) -> bool {
        let folder = self.folder_of(bundle);
        bundle.kept().all(|file| folder.join(&file.name).is_file())
    }

    /// What is wrong with a bundle's files on disk.
    pub fn verify(&self, bundle: &Bundle) -> Vec<FileFault> {
        let folder = self.folder_of(bundle);
        bundle
            .kept()
            .filter_map(|file| check_file(&folder.join(&file.name), &file.sha256))
            .collect()
    }

    /// Brings a bundle, unless it is there whole. Says whether it had to.
    ///
    /// Nothing half done is left in place: files are made aside and moved at the end.
    pub fn fetch(&self, bundle: &Bundle, progress: &dyn Progress) -> Result<bool, FetchError> {
        if self.is_present(bundle) && self.verify(bundle).is_empty() {
            return Ok(false);
        }
        fetch::fetch(&self.folder, bundle, progress)?;
        Ok(true)
    }
}

fn check_file(path: &Path, expected: &str) -> Option<FileFault> {
    match sha256_of(path) {
        Ok(found) if found == expected => None,
        Ok(found) => Some(FileFault::Changed {
            path: path.to_owned(),
            expected: expected.to_owned(),
            found,
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Some(FileFault::Missing(path.to_owned()))
        }
        Err(error) => Some(FileFault::Unreadable(path.to_owned(), error.to_string())),
    }
}

fn sha256_of(path: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    io::copy(&mut fs::File::open(path)?, &mut hasher)?;
    Ok(format!("{:x}", hasher.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_and_a_changed_file_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let models = Models::new(folder.path().to_owned()).unwrap();
        let bundle = models.pins().default_model().unwrap().bundle.clone();
        let place = models.folder_of(&bundle);
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("config.json"), "{}").unwrap();
        let faults = models.verify(&bundle);
        assert_eq!(faults.len(), bundle.kept().count());
        let changed = faults
            .iter()
            .filter(|f| matches!(f, FileFault::Changed { .. }))
            .count();
        assert_eq!(changed, 1);
        assert!(!models.is_present(&bundle));
    }
}
