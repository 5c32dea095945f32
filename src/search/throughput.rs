//! Measuring what embedding a catalog costs over what its texts cost the bare model.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::Catalog;
use crate::search::embedder::Embedder;
use crate::search::index::{BuildIndexError, Index};
use crate::search::model::{BATCH_MAX, LoadModelError, Model, ModelFiles, RunModelError};
use crate::search::ranking::Ranking;
use crate::search::vectors::{UseCacheError, VectorCache};
use crate::search::views;

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureEmbeddingError {
    /// The model cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadModelError),
    /// The model failed.
    #[error(transparent)]
    Run(#[from] RunModelError),
    /// The folder for the vectors cannot be used.
    #[error(transparent)]
    Cache(#[from] UseCacheError),
    /// The index was not built.
    #[error(transparent)]
    Build(#[from] BuildIndexError),
}

/// What embedding a catalog took.
#[derive(Clone, Copy, Debug)]
pub struct Throughput {
    /// Tools.
    pub tools: usize,
    /// Texts that stand for them.
    pub texts: usize,
    /// From the catalog to a searchable index, with nothing on disk before.
    pub build: Duration,
    /// The same texts through as many bare models, sorted by length, in full batches.
    pub bare: Duration,
}

/// Builds the index of a catalog in an empty folder, and runs the same texts through the model
/// alone, both on so many threads.
pub async fn measure_embedding(
    catalog: &Arc<Catalog>,
    files: &ModelFiles,
    threads: usize,
    folder: &Path,
) -> Result<Throughput, MeasureEmbeddingError> {
    let views = |slot| views::views(catalog, slot);
    let mut texts: Vec<String> = catalog.slots().flat_map(views).collect();
    texts.sort_by_key(String::len);
    let bare = bare(files, &texts, threads)?;
    let embedder = Embedder::load(files, threads)?;
    let cache = VectorCache::open(folder)?;
    let start = Instant::now();
    let ranking = Ranking::default();
    Index::build(catalog.clone(), &ranking, &embedder, &cache, &|_, _| {}).await?;
    Ok(Throughput {
        tools: catalog.len(),
        texts: texts.len(),
        build: start.elapsed(),
        bare,
    })
}

/// Each thread has a model of its own and every so many-th batch.
fn bare(
    files: &ModelFiles,
    texts: &[String],
    threads: usize,
) -> Result<Duration, MeasureEmbeddingError> {
    let models = (0..threads).map(|_| Model::load(files));
    let models = models.collect::<Result<Vec<_>, _>>()?;
    let start = Instant::now();
    std::thread::scope(|scope| {
        let working: Vec<_> = models
            .into_iter()
            .enumerate()
            .map(|(at, mut model)| {
                scope.spawn(move || -> Result<(), RunModelError> {
                    for batch in texts.chunks(BATCH_MAX).skip(at).step_by(threads) {
                        model.embed(batch, BATCH_MAX)?;
                    }
                    Ok(())
                })
            })
            .collect();
        working.into_iter().try_for_each(|thread| {
            let done = thread.join();
            done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })?;
    Ok(start.elapsed())
}
