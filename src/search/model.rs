//! The embedding model itself: fastembed on ONNX Runtime, from local files only.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use fastembed::{InitOptionsUserDefined, TextEmbedding, TokenizerFiles, UserDefinedEmbeddingModel};
use ort::environment::Environment;

use crate::domain::{Embedding, EmbeddingError};

/// Texts that go through the model at once. More gains nothing: `docs/ranking.md`.
pub(super) const BATCH_MAX: usize = 8;

/// How the vectors of a text's tokens become one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pooling {
    /// Their mean.
    Mean,
    /// The first one.
    First,
}

/// Where a model lies on disk, and how it wants to be used.
#[derive(Clone, Debug)]
pub struct ModelFiles {
    /// Names model and weights; vectors are cached under it, so other weights need another id.
    pub id: String,
    /// The ONNX Runtime library.
    pub runtime: PathBuf,
    /// The model.
    pub onnx: PathBuf,
    /// `tokenizer.json`.
    pub tokenizer: PathBuf,
    /// `config.json`.
    pub config: PathBuf,
    /// `tokenizer_config.json`.
    pub tokenizer_config: PathBuf,
    /// `special_tokens_map.json`.
    pub special_tokens_map: PathBuf,
    /// How token vectors become one.
    pub pooling: Pooling,
    /// Stands before each query; may be empty.
    pub query_prefix: String,
    /// Stands before each text of the catalog; may be empty.
    pub passage_prefix: String,
    /// Longest text, in tokens.
    pub tokens_max: usize,
}

/// Why a model was not loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadModelError {
    /// The library is missing, broken or too old.
    #[error("cannot load ONNX Runtime from `{path}`; run `toolcrib models fetch`")]
    Runtime {
        /// Where it should be.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file of the model is missing or cannot be read.
    #[error("cannot read model file `{path}`; run `toolcrib models fetch`")]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The files are there and are no model.
    #[error("cannot load model `{id}`; run `toolcrib models verify`")]
    Model {
        /// Which one.
        id: String,
        /// Why.
        source: Box<fastembed::Error>,
    },
    /// The model's thread could not be started.
    #[error("cannot start the thread of model `{id}`")]
    Thread {
        /// Which one.
        id: String,
        /// Why.
        source: std::io::Error,
    },
    /// The model loads and does not work.
    #[error("model `{id}` does not embed a text; run `toolcrib models verify`")]
    Probe {
        /// Which one.
        id: String,
        /// Why.
        source: RunModelError,
    },
}

/// Why a model gave no vectors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunModelError {
    /// The model failed.
    #[error("model failed")]
    Failed(#[source] Box<fastembed::Error>),
    /// The model gave a vector without direction.
    #[error("model gave no usable vector")]
    Vector(#[from] EmbeddingError),
    /// The model gave another number of vectors than texts.
    #[error("model gave {vectors} vectors for {texts} texts")]
    Count {
        /// Vectors.
        vectors: usize,
        /// Texts.
        texts: usize,
    },
}

/// One process has one ONNX environment, whatever number of models it loads.
static ENVIRONMENT: Mutex<Option<Environment>> = Mutex::new(None);

/// A loaded model. It takes `&mut self`: one owner.
pub(super) struct Model(TextEmbedding);

impl Model {
    /// Loads a model that computes on one thread: threads inside one run wait for each other
    /// spinning, which costs more than it gains as soon as the cores have other work.
    pub(super) fn load(files: &ModelFiles) -> Result<Self, LoadModelError> {
        let environment = environment(&files.runtime)?;
        let tokenizer = TokenizerFiles {
            tokenizer_file: read(&files.tokenizer)?,
            config_file: read(&files.config)?,
            special_tokens_map_file: read(&files.special_tokens_map)?,
            tokenizer_config_file: read(&files.tokenizer_config)?,
        };
        let pooling = match files.pooling {
            Pooling::Mean => fastembed::Pooling::Mean,
            Pooling::First => fastembed::Pooling::Cls,
        };
        let model =
            UserDefinedEmbeddingModel::new(read(&files.onnx)?, tokenizer).with_pooling(pooling);
        let options = InitOptionsUserDefined::new()
            .with_environment(environment)
            .with_max_length(files.tokens_max)
            .with_intra_threads(1);
        TextEmbedding::try_new_from_user_defined(model, options)
            .map(Self)
            .map_err(|source| LoadModelError::Model {
                id: files.id.clone(),
                source: Box::new(source),
            })
    }

    /// Embeds texts, `at_once` in one run; these are padded to the longest of them.
    pub(super) fn embed(
        &mut self,
        texts: &[String],
        at_once: usize,
    ) -> Result<Vec<Embedding>, RunModelError> {
        let vectors = self
            .0
            .embed(texts, Some(at_once))
            .map_err(|source| RunModelError::Failed(Box::new(source)))?;
        if vectors.len() != texts.len() {
            return Err(RunModelError::Count {
                vectors: vectors.len(),
                texts: texts.len(),
            });
        }
        vectors
            .into_iter()
            .map(|vector| Embedding::new(vector).map_err(RunModelError::from))
            .collect()
    }
}

/// The process's environment. The library is loaded once: a later path is not looked at.
fn environment(runtime: &Path) -> Result<Environment, LoadModelError> {
    let mut shared = ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(environment) = &*shared {
        return Ok(environment.clone());
    }
    let wrong = |source| LoadModelError::Runtime {
        path: runtime.to_owned(),
        source,
    };
    // Before anything else of `ort`: its first use panics when the library is not loaded.
    let builder = ort::init_from(runtime).map_err(|source| wrong(Box::new(source)))?;
    let environment = builder
        .with_telemetry(false)
        .build()
        .map_err(|source| wrong(Box::new(source)))?;
    *shared = Some(environment.clone());
    Ok(environment)
}

fn read(path: &Path) -> Result<Vec<u8>, LoadModelError> {
    std::fs::read(path).map_err(|source| LoadModelError::File {
        path: path.to_owned(),
        source,
    })
}
