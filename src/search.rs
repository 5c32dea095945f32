//! Search: from a sentence to three tools and a handle.
//!
//! ```text
//! query -> read -> embed -> nearest 50 -> blend 68/32 -> diversify to 3 -> mint
//! ```
//!
//! A search reads one [`Index`], which never changes; publishing swaps it. No upstream is touched
//! and no lock is held. When there is no model, or it is busy, the keyword side answers alone and
//! the answer says so.

mod ranking;
mod terms;
mod abbreviations;
mod synonyms;
mod spelling;
mod bm25;
mod keywords;
mod lexicon;
mod values;
mod reading;
mod views;
mod model;
mod embedder;
mod vectors;
mod nearest;
mod graph;
mod codes;
mod scope;
mod index;
mod candidates;
mod blend;
mod diversify;
mod answer;
mod explain;
mod shelf;
mod fields;
mod find;
mod baseline;
mod scale;
mod throughput;
#[cfg(test)]
mod sample;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rand::TryRngCore;
use rand::rngs::OsRng;
use tokio::sync::watch;
use tracing::warn;

use crate::domain::{Catalog, Query, RunId, Settings, Tenant};
use crate::handles::{Handles, MintError};

use self::candidates::{Candidate, Meaning};
use self::diversify::{Pair, Picked};
use self::reading::{Reader, Reading};
use self::scope::Allowed;

pub use self::answer::{Answer, Degraded, Pick, Readiness, Requires};
pub use self::baseline::{Baseline, Baselines};
pub use self::candidates::Lane;
pub use self::embedder::{EmbedError, Embedder};
pub use self::explain::{Explanation, Row, Word};
pub use self::fields::{Field, FieldWeights};
pub use self::find::{Backend, FindOptions, Found, Hit, Kind, Rank};
pub use self::graph::DumpGraphError;
pub use self::index::{BuildIndexError, Index, Progress};
pub use self::model::{LoadModelError, ModelFiles, Pooling, RunModelError};
pub use self::ranking::{PICKS_MAX, Ranking, VECTOR_SHARE};
pub use self::scale::{Scale, Way, measure};
pub use self::shelf::Shelf;
pub use self::throughput::{MeasureEmbeddingError, Throughput, measure_embedding};
pub use self::vectors::{UseCacheError, VectorCache};

/// Why a search gave no tools.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The catalog is empty, or holds nothing that this tenant may use.
    #[error("no tool to choose from")]
    NoCandidates {
        /// The run that ends here.
        run_id: RunId,
    },
    /// The tenant has as many live handles as it may.
    #[error("tenant has too many live handles")]
    TooManyHandles {
        /// When one is certain to have ended.
        retry_after: Duration,
    },
}

/// Answers queries. Share it by `Arc`.
pub struct Searcher {
    embedder: Option<Embedder>,
    handles: Arc<Handles>,
    settings: Arc<dyn Settings>,
    ranking: Ranking,
    index: ArcSwap<Index>,
    /// Counts the indexes that were published.
    generation: watch::Sender<u64>,
}

/// All that ranking one query gave.
struct Ranked {
    tools_total: usize,
    reading: Reading,
    model: Option<String>,
    degraded: Option<Degraded>,
    /// Best first by the blended score.
    candidates: Vec<Candidate>,
    picks: Vec<Picked>,
}

impl Searcher {
    /// With an empty index: publish one.
    pub fn new(
        embedder: Option<Embedder>,
        handles: Arc<Handles>,
        settings: Arc<dyn Settings>,
        ranking: Ranking,
    ) -> Self {
        let empty = Index::keyword_only(Arc::new(Catalog::default()), &ranking);
        Self {
            embedder,
            handles,
            settings,
            ranking,
            index: ArcSwap::from_pointee(empty),
            generation: watch::Sender::new(0),
        }
    }

    /// The best three tools for a query, and a handle that opens one of them.
    pub async fn search(&self, tenant: &Tenant, query: &Query) -> Result<Answer, SearchError> {
        // One snapshot for the whole query: slots mean nothing in the next one.
        let index = self.index.load_full();
        let mut random = OsRng.unwrap_err();
        let run_id = RunId::generate(&mut random);
        let ranked = self.rank(&index, tenant, query).await;
        if ranked.picks.is_empty() {
            return Err(SearchError::NoCandidates { run_id });
        }
        let picks: Vec<Pick> = ranked
            .picks
            .iter()
            .filter_map(|pick| ranked.candidates.get(pick.at))
            .map(|found| Pick::new(index.catalog(), found.slot, &tenant.id, &*self.settings))
            .collect();
        let tools = picks
            .iter()
            .map(|pick| (pick.id(), pick.tool().hash()))
            .collect();
        let handle = self
            .handles
            .mint(&tenant.id, run_id, tools, &mut random)
            .map_err(
                |MintError::TooMany { retry_after, .. }| SearchError::TooManyHandles {
                    retry_after,
                },
            )?;
        Ok(Answer {
            run_id,
            handle,
            picks,
            tools_total: ranked.tools_total,
            degraded: ranked.degraded,
        })
    }

    /// How the candidates of a query came to their places. Leaves no handle.
    pub async fn explain(
        &self,
        tenant: &Tenant,
        query: &Query,
    ) -> Result<Explanation, SearchError> {
        let index = self.index.load_full();
        let ranked = self.rank(&index, tenant, query).await;
        if ranked.picks.is_empty() {
            let run_id = RunId::generate(&mut OsRng.unwrap_err());
            return Err(SearchError::NoCandidates { run_id });
        }
        Ok(Explanation::of(&index, ranked))
    }

    /// Puts an index in the place of the present one. Searches under way end on the old one.
    pub fn publish(&self, index: Arc<Index>) {
        self.index.store(index);
        self.generation.send_modify(|generation| *generation += 1);
    }

    /// Hears of each index that is published.
    pub fn generations(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// The present index.
    pub fn index(&self) -> Arc<Index> {
        self.index.load_full()
    }

    /// What a search can be answered from at present.
    pub fn readiness(&self) -> Readiness {
        let index = self.index.load();
        let tools = index.catalog().len();
        match (tools, &self.embedder, index.has_vectors()) {
            (0, _, _) => Readiness::Empty,
            (tools, Some(_), true) => Readiness::Ready { tools },
            (tools, _, _) => Readiness::KeywordOnly { tools },
        }
    }

    /// The pipeline, without its end.
    async fn rank(&self, index: &Index, tenant: &Tenant, query: &Query) -> Ranked {
        let allowed = index.allowed(tenant);
        let reader = Reader {
            keywords: &index.keywords,
            lexicon: self.embedder.as_ref().and_then(Embedder::lexicon),
        };
        let reading = reader.read(query.as_str());
        let meaning = self.embed(index, &reading).await;
        self.rank_read(index, &allowed, reading, meaning)
    }

    /// Everything between the model and the handle: short, and never waits.
    fn rank_read(
        &self,
        index: &Index,
        allowed: &Allowed,
        reading: Reading,
        meaning: Result<Meaning<'_>, Degraded>,
    ) -> Ranked {
        let ranking = &self.ranking;
        let degraded = meaning.as_ref().err().copied();
        let meaning = meaning.ok();
        let mut candidates =
            candidates::gather(index, &reading, meaning.as_ref(), allowed, ranking);
        blend::blend(&mut candidates, &reading, ranking.vector_share);
        let catalog = index.catalog();
        let picks = diversify::pick(&candidates, ranking.lambda, |a, b| Pair {
            likeness: meaning
                .as_ref()
                .map_or(0.0, |meaning| meaning.side.nearest.likeness(a, b)),
            same_server: Arc::ptr_eq(catalog.server_of(a), catalog.server_of(b)),
            same_name: catalog.tool(a).name() == catalog.tool(b).name(),
        });
        Ranked {
            tools_total: allowed.count(index.catalog().len()),
            reading,
            model: meaning.map(|meaning| meaning.side.model.clone()),
            degraded,
            candidates,
            picks,
        }
    }

    /// The vector of a query as it was read, or why there is none.
    async fn embed<'a>(
        &self,
        index: &'a Index,
        reading: &Reading,
    ) -> Result<Meaning<'a>, Degraded> {
        let main = self.embedder.as_ref().ok_or(Degraded::ModelMissing)?;
        let (embedder, side) = match (main.multilingual(), &index.multilingual) {
            (Some(second), Some(side)) if reading.foreign => (second, side),
            _ => (main, index.vectors.as_ref().ok_or(Degraded::IndexBuilding)?),
        };
        let vectors = embedder.embed_query_parts(&reading.text, &reading.clauses);
        match vectors.await {
            Ok(vectors) => {
                let (whole, clauses) = vectors.split_first().ok_or(Degraded::ModelFailed)?;
                Ok(Meaning {
                    whole: whole.clone(),
                    clauses: clauses.to_vec(),
                    side,
                })
            }
            Err(EmbedError::Busy) => Err(Degraded::ModelBusy),
            Err(error @ (EmbedError::Stopped | EmbedError::Run(_))) => {
                warn!(error = %crate::search::answer::chain(&error), "cannot embed a query");
                Err(Degraded::ModelFailed)
            }
        }
    }
}

impl std::fmt::Debug for Searcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Searcher")
            .field("readiness", &self.readiness())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
