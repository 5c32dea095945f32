//! From pins and files to a loaded model.

use std::path::PathBuf;

use anyhow::Context;

use crate::app::Place;
use crate::models::{ModelPin, Models};
use crate::search::{Embedder, ModelFiles, Pooling};
use crate::telemetry::Chain;

/// Copies of the multilingual model: each takes 350 MB.
const SECOND_WORKERS: usize = 1;

/// How the embedding model is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ModelState {
    /// Loaded.
    Loaded {
        /// Its name.
        name: String,
    },
    /// The configuration wants none.
    Disabled,
    /// Not usable; the ranking is by keywords.
    Missing {
        /// Why, and what to do.
        reason: String,
    },
}

/// Loads the configured model, and the multilingual one where it is configured and fetched. A model
/// that is not there is no error: the ranking is then by keywords and says so. A name that no pin
/// has is one.
pub async fn load_embedder(place: &Place) -> anyhow::Result<(Option<Embedder>, ModelState)> {
    let section = &place.config.model;
    if !section.enabled {
        return Ok((None, ModelState::Disabled));
    }
    let models = place.models()?;
    let pin = models.pins().model(&section.name).with_context(|| {
        format!(
            "there is no model `{}`: `toolcrib models list` shows all",
            section.name
        )
    })?;
    if !models.is_present(&pin.bundle) || runtime_library(&models).is_none_or(|l| !l.is_file()) {
        let reason = format!(
            "model `{}` is not fetched: run `toolcrib models fetch`",
            pin.name
        );
        tracing::warn!(model = %pin.name, "model is not fetched; ranking by keywords");
        return Ok((None, ModelState::Missing { reason }));
    }
    let second = models.pins().model(&section.multilingual);
    let second = second.filter(|second| models.is_present(&second.bundle));
    // Side by side: the second model takes a second to load.
    let (embedder, second) = tokio::try_join!(load_one(&models, pin, section.threads), async {
        match second {
            Some(second) => load_one(&models, second, SECOND_WORKERS).await,
            None => Ok(None),
        }
    })?;
    let Some(embedder) = embedder else {
        let reason = format!(
            "model `{}` does not load: run `toolcrib models verify`",
            pin.name
        );
        return Ok((None, ModelState::Missing { reason }));
    };
    let embedder = match second {
        Some(second) => embedder.with_multilingual(second),
        None => embedder,
    };
    let name = pin.name.clone();
    Ok((Some(embedder), ModelState::Loaded { name }))
}

async fn load_one(
    models: &Models,
    pin: &ModelPin,
    workers: usize,
) -> anyhow::Result<Option<Embedder>> {
    let files = model_files(models, pin)?;
    match tokio::task::spawn_blocking(move || Embedder::load(&files, workers)).await? {
        Ok(embedder) => Ok(Some(embedder)),
        Err(error) => {
            tracing::error!(model = %pin.name, error = %Chain(&error), "cannot load the model");
            Ok(None)
        }
    }
}

/// The ONNX runtime's library of this platform, or where it would be.
pub fn runtime_library(models: &Models) -> Option<PathBuf> {
    let bundle = &models.pins().runtime()?.bundle;
    Some(models.folder_of(bundle).join(&bundle.files.first()?.name))
}

fn model_files(models: &Models, pin: &ModelPin) -> anyhow::Result<ModelFiles> {
    let folder = models.folder_of(&pin.bundle);
    let runtime = runtime_library(models)
        .context("no ONNX runtime is pinned for this platform: set model.enabled = false")?;
    Ok(ModelFiles {
        // Vectors are cached under the id; other weights make other vectors.
        id: format!(
            "{}-{}",
            pin.name,
            pin.bundle.converted.first().map_or("", |f| &f.sha256)
        ),
        runtime,
        onnx: folder.join("model.onnx"),
        tokenizer: folder.join("tokenizer.json"),
        config: folder.join("config.json"),
        tokenizer_config: folder.join("tokenizer_config.json"),
        special_tokens_map: folder.join("special_tokens_map.json"),
        pooling: match pin.pooling {
            crate::models::Pooling::Mean => Pooling::Mean,
            crate::models::Pooling::Cls => Pooling::First,
        },
        query_prefix: pin.query_prefix.clone(),
        passage_prefix: pin.passage_prefix.clone(),
        tokens_max: pin.tokens_max,
    })
}
