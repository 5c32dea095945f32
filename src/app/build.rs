//! Making the vectors of a catalog, while searches go on.

use std::sync::{Arc, OnceLock};

use anyhow::Context;
use tokio::sync::Mutex;

use crate::app::App;
use crate::domain::Catalog;
use crate::search::{Embedder, Index, Ranking, Searcher, VectorCache};
use crate::telemetry::count_embedded;

/// What came of making vectors.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Vectors {
    /// Searches use them.
    Published,
    /// There is no model to make them with.
    NoModel,
}

/// What builds an index.
#[derive(Debug)]
pub(super) struct Builder {
    /// Held by whoever builds: of two indexes built at once the older could be published last.
    pub(super) turn: Arc<Mutex<()>>,
    pub(super) embedder: Option<Embedder>,
    ranking: Ranking,
    cache: VectorCache,
}

impl Builder {
    /// The index without vectors, built beside the runtime.
    pub(super) async fn keyword_side(&self, catalog: Arc<Catalog>) -> anyhow::Result<Arc<Index>> {
        let ranking = self.ranking.clone();
        let building =
            tokio::task::spawn_blocking(move || Index::keyword_only(catalog, &ranking)).await;
        Ok(Arc::new(building?))
    }

    /// The index with its vectors; `None` where there is no model.
    pub(super) async fn vectors(
        &self,
        index: &Index,
        progress: &(dyn Fn(usize, usize) + Send + Sync),
    ) -> anyhow::Result<Option<Index>> {
        let Some(embedder) = &self.embedder else {
            return Ok(None);
        };
        let (ranking, cache) = (&self.ranking, &self.cache);
        // The first word says how many have no vector yet.
        let missing = OnceLock::new();
        let told = |done: usize, total: usize| {
            missing.get_or_init(|| total.saturating_sub(done));
            progress(done, total);
        };
        let whole = index.with_vectors(ranking, embedder, cache, &told).await;
        let whole = whole.context("cannot build the index")?;
        count_embedded(missing.get().copied().unwrap_or_default());
        Ok(Some(whole))
    }
}

/// Makes vectors once.
#[derive(Debug)]
pub struct IndexJob {
    searcher: Arc<Searcher>,
    builder: Builder,
}

impl App {
    /// The job that makes the vectors of the present catalog.
    pub fn index_job(&self) -> IndexJob {
        IndexJob {
            searcher: Arc::clone(&self.searcher),
            builder: self.builder(),
        }
    }

    pub(super) fn builder(&self) -> Builder {
        Builder {
            turn: Arc::clone(&self.turn),
            embedder: self.embedder.clone(),
            ranking: self.place.ranking(),
            cache: self.cache.clone(),
        }
    }
}

impl IndexJob {
    /// Makes the vectors and publishes them. `progress` is told texts done and texts in all.
    pub async fn run(
        self,
        progress: &(dyn Fn(usize, usize) + Send + Sync),
    ) -> anyhow::Result<Vectors> {
        let _one = self.builder.turn.lock().await;
        let present: Arc<Index> = self.searcher.index();
        if present.has_vectors() {
            // A refresh was first.
            return Ok(Vectors::Published);
        }
        let Some(index) = self.builder.vectors(&present, progress).await? else {
            return Ok(Vectors::NoModel);
        };
        self.searcher.publish(Arc::new(index));
        Ok(Vectors::Published)
    }
}
