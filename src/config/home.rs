//! Where data lives.

use std::path::{Path, PathBuf};

/// The platform names no data folder for this user.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("no data folder is known for this user: set TOOLCRIB_HOME")]
pub struct FindHomeError;

/// The folder of everything that Toolcrib keeps: `TOOLCRIB_HOME`, or the platform's data folder.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Home(PathBuf);

impl Home {
    /// A home at a path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The platform's data folder.
    pub fn of_platform() -> Result<Self, FindHomeError> {
        let folders = directories::ProjectDirs::from("", "", "toolcrib").ok_or(FindHomeError)?;
        Ok(Self(folders.data_dir().to_owned()))
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Configuration that is read when no other is named.
    pub fn config_file(&self) -> PathBuf {
        self.0.join("toolcrib.toml")
    }

    /// Models and the ONNX runtime.
    pub fn models(&self) -> PathBuf {
        self.0.join("models")
    }

    /// Vectors and graphs, safe to delete.
    pub fn cache(&self) -> PathBuf {
        self.0.join("cache")
    }

    /// Imported catalogs: one file of normal form a source.
    pub fn catalog(&self) -> PathBuf {
        self.0.join("catalog")
    }

    /// What catalog sources gave last.
    pub fn snapshot_file(&self) -> PathBuf {
        self.0.join("catalog.snapshot")
    }

    /// Tenants and the hashes of their keys.
    pub fn tenants_file(&self) -> PathBuf {
        self.0.join("tenants.json")
    }

    /// Encrypted secrets and configuration values of all tenants.
    pub fn settings_file(&self) -> PathBuf {
        self.0.join("settings.json")
    }

    /// Key of the secrets at rest, where `TOOLCRIB_KEY` is not set.
    pub fn key_file(&self) -> PathBuf {
        self.0.join("key")
    }

    /// A folder for each tenant, in which its servers work.
    pub fn workspaces(&self) -> PathBuf {
        self.0.join("workspaces")
    }

    /// Installed MCP servers, where no other folder is configured.
    pub fn servers(&self) -> PathBuf {
        self.0.join("servers")
    }
}
