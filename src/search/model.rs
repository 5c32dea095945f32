//! The embedding model itself: fastembed on ONNX Runtime, from local files only.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use fastembed::{
    InitOptionsUserDefined, OutputKey, TextEmbedding, TokenizerFiles, UserDefinedEmbeddingModel,
};
use ort::environment::Environment;

use crate::domain::{Embedding, EmbeddingError};

/// Texts that go through the model at once. More gains nothing: `docs/ranking.md`.
pub(super) const BATCH_MAX: usize = 8;

/// Where a model has the vectors of its tokens.
const TOKEN_VECTORS: &[OutputKey] = &[
    OutputKey::OnlyOne,
    OutputKey::ByName("last_hidden_state"),
    OutputKey::ByName("token_embeddings"),
];

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
    /// The text could not be cut into tokens.
    #[error("tokenizer failed")]
    Tokens(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The model gave no vector for each token.
    #[error("model gives no vectors of tokens")]
    NoTokenVectors,
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
pub(super) struct Model {
    model: TextEmbedding,
    pooling: Pooling,
}

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
            .map(|model| Self {
                model,
                pooling: files.pooling,
            })
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
            .model
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

    /// Embeds a text and some parts of it, in one run: a part's vector is the mean of its tokens'
    /// vectors, each of which has seen the whole text (late chunking: Günther et al., 2024). A part
    /// beyond the model's window has the vector of the whole.
    pub(super) fn embed_parts(
        &mut self,
        text: &str,
        parts: &[Range<usize>],
    ) -> Result<Vec<Embedding>, RunModelError> {
        if parts.is_empty() || self.pooling == Pooling::First {
            let parts = parts.iter().map(|part| text.get(part.clone()));
            let texts = std::iter::once(Some(text)).chain(parts);
            let texts: Vec<String> = texts.map(|text| text.unwrap_or_default().into()).collect();
            return self.embed(&texts, 1);
        }
        let failed = |source| RunModelError::Failed(Box::new(source));
        let encoded = self.model.tokenizer.encode(text, true);
        let encoded = encoded.map_err(RunModelError::Tokens)?;
        let outputs = self.model.transform([text], Some(1)).map_err(failed)?;
        let outputs = outputs.into_raw();
        let output = outputs.first().ok_or(RunModelError::NoTokenVectors)?;
        let vectors = output.select_output(&TOKEN_VECTORS).map_err(failed)?;
        let (&[1, tokens, dimensions], Some(numbers)) = (vectors.shape(), vectors.as_slice())
        else {
            return Err(RunModelError::NoTokenVectors);
        };
        if tokens != encoded.len() {
            return Err(RunModelError::NoTokenVectors);
        }
        let rows = || numbers.chunks_exact(dimensions);
        let whole = mean(&mut rows(), dimensions).ok_or(RunModelError::NoTokenVectors)?;
        let of_part = |part: &Range<usize>| {
            let within = rows().zip(encoded.get_offsets());
            let within = within.filter(|(_, (start, end))| *start < part.end && part.start < *end);
            mean(&mut within.map(|(row, _)| row), dimensions).unwrap_or_else(|| whole.clone())
        };
        let parts: Vec<Vec<f32>> = parts.iter().map(of_part).collect();
        std::iter::once(whole)
            .chain(parts)
            .map(|vector| Embedding::new(vector).map_err(RunModelError::from))
            .collect()
    }
}

/// The mean of token vectors. `None` of none.
fn mean(tokens: &mut dyn Iterator<Item = &[f32]>, dimensions: usize) -> Option<Vec<f32>> {
    let mut sum = vec![0.0_f32; dimensions];
    let mut count = 0_usize;
    for token in tokens {
        count += 1;
        for (sum, x) in sum.iter_mut().zip(token) {
            *sum += x;
        }
    }
    sum.iter_mut().for_each(|sum| *sum /= count as f32);
    (0 < count).then_some(sum)
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
