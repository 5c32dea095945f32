//! Making the vectors of the present catalog, while searches go on.

use std::sync::Arc;

use anyhow::Context;

use crate::app::App;
use crate::search::{Embedder, Index, Ranking, Searcher, VectorCache};

/// What came of making vectors.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Vectors {
    /// Searches use them.
    Published,
    /// There is no model to make them with.
    NoModel,
}

/// Makes vectors once.
#[derive(Debug)]
pub struct IndexJob {
    searcher: Arc<Searcher>,
    embedder: Option<Embedder>,
    ranking: Ranking,
    cache: VectorCache,
}

impl App {
    /// The job that makes the vectors of the present catalog.
    pub fn index_job(&self) -> IndexJob {
        IndexJob {
            searcher: Arc::clone(&self.searcher),
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
        let Some(embedder) = &self.embedder else {
            return Ok(Vectors::NoModel);
        };
        let present: Arc<Index> = self.searcher.index();
        let index = present
            .with_vectors(&self.ranking, embedder, &self.cache, progress)
            .await
            .context("cannot build the index")?;
        self.searcher.publish(Arc::new(index));
        Ok(Vectors::Published)
    }
}
