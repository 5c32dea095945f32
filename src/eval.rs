//! Measuring the ranking on labelled queries.
//!
//! A [`LabelledSet`] is a catalog and queries whose right tools are known; [`run`] searches each
//! query as an agent would, through [`Searcher`], and gives a [`Report`].

mod set;
mod metrics;
mod report;
mod gate;

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio::time::Instant;

use crate::domain::{ReadSettingError, SettingName, Settings, Tenant, TenantId, ToolId};
use crate::handles::Handles;
use crate::search::{
    Baseline, Baselines, BuildIndexError, EmbedError, Embedder, Index, Progress, Ranking, Searcher,
    VectorCache,
};

use self::metrics::Score;

pub use self::gate::{Gate, ReadGateError};
pub use self::report::{Interval, Latency, Metrics, Report};
pub use self::set::{LabelledQuery, LabelledSet, ReadSetError, ToolSource};

/// Why a set was not measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunEvalError {
    /// The catalog of the set could not be indexed.
    #[error("cannot index the catalog of set `{set}`")]
    Build {
        /// Which set.
        set: String,
        /// Why.
        source: BuildIndexError,
    },
    /// A baseline could not embed a query.
    #[error("cannot embed a query of set `{set}`")]
    Embed {
        /// Which set.
        set: String,
        /// Why.
        source: EmbedError,
    },
}

/// What a set is measured with.
pub struct Setup<'a> {
    /// The model; without it the keyword side is measured alone.
    pub embedder: Option<&'a Embedder>,
    /// Where vectors are kept.
    pub cache: &'a VectorCache,
    /// The tunables.
    pub ranking: &'a Ranking,
    /// Hears of the embedding of the catalog.
    pub progress: Progress<'a>,
}

impl std::fmt::Debug for Setup<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup")
            .field("embedder", &self.embedder)
            .field("ranking", &self.ranking)
            .finish_non_exhaustive()
    }
}

/// Searches every query of a set, and scores what comes.
///
/// Hits are counted on the three tools that a search answers with; recall, MRR and nDCG go on
/// behind them with the other candidates by blended score. Each query is searched twice: first
/// with the model, then with its vector in the cache, which times everything but the model.
pub async fn run(set: &LabelledSet, setup: &Setup<'_>) -> Result<Report, RunEvalError> {
    let searcher = searcher(set, setup)
        .await
        .map_err(|source| RunEvalError::Build {
            set: set.name.clone(),
            source,
        })?;
    let tenant = Tenant::local();
    let mut scores = Vec::with_capacity(set.queries.len());
    let (mut with_model, mut without_model) = (Vec::new(), Vec::new());
    for labelled in &set.queries {
        for times in [&mut with_model, &mut without_model] {
            let start = Instant::now();
            // A query that finds nothing is timed too, and scored below.
            let _ = searcher.search(&tenant, &labelled.query).await;
            times.push(start.elapsed());
        }
        let found: Vec<ToolId> = match searcher.explain(&tenant, &labelled.query).await {
            Ok(explanation) => explanation.rows.into_iter().map(|row| row.id).collect(),
            Err(_nothing) => Vec::new(),
        };
        scores.push(Score::of(&found, &labelled.relevant));
    }
    let with_model = setup.embedder.map(|_| Latency::of(with_model));
    let latency = (Latency::of(without_model), with_model);
    Ok(Report::new(set, &scores, latency))
}

/// Scores the baselines on a set, in the order asked for. They are not timed.
pub async fn run_baselines(
    set: &LabelledSet,
    baselines: &[Baseline],
    embedder: &Embedder,
    cache: &VectorCache,
) -> Result<Vec<Report>, RunEvalError> {
    let built = Baselines::build(set.catalog.clone(), embedder, cache)
        .await
        .map_err(|source| RunEvalError::Build {
            set: set.name.clone(),
            source,
        })?;
    let mut reports = Vec::with_capacity(baselines.len());
    for baseline in baselines {
        let mut scores = Vec::with_capacity(set.queries.len());
        for labelled in &set.queries {
            let found = built
                .order(labelled.query.as_str(), *baseline, embedder)
                .await
                .map_err(|source| RunEvalError::Embed {
                    set: set.name.clone(),
                    source,
                })?;
            scores.push(Score::of(&found, &labelled.relevant));
        }
        reports.push(Report::new(set, &scores, (Latency::default(), None)));
    }
    Ok(reports)
}

async fn searcher(set: &LabelledSet, setup: &Setup<'_>) -> Result<Searcher, BuildIndexError> {
    let index = match setup.embedder {
        Some(embedder) => {
            let (catalog, cache) = (set.catalog.clone(), setup.cache);
            Index::build(catalog, setup.ranking, embedder, cache, setup.progress).await?
        }
        None => Index::keyword_only(set.catalog.clone(), setup.ranking),
    };
    let handles = Arc::new(Handles::new(usize::MAX));
    let (embedder, ranking) = (setup.embedder.cloned(), setup.ranking.clone());
    let searcher = Searcher::new(embedder, handles, Arc::new(NothingSet), ranking);
    searcher.publish(Arc::new(index));
    Ok(searcher)
}

/// A tenant that has set nothing: what a search requires does not change what it finds.
struct NothingSet;

impl Settings for NothingSet {
    fn secret(
        &self,
        _: &TenantId,
        _: &SettingName,
    ) -> Result<Option<SecretString>, ReadSettingError> {
        Ok(None)
    }

    fn has_secret(&self, _: &TenantId, _: &SettingName) -> bool {
        false
    }

    fn config(&self, _: &TenantId, _: &SettingName) -> Option<String> {
        None
    }
}

/// Milliseconds with a fraction.
fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests;
