//! One generation of everything a query is answered from.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use futures::stream::{self, StreamExt, TryStreamExt};
use tracing::{info, warn};

use crate::domain::{Catalog, Embedding, Slot, Tenant};
use crate::search::codes::Codes;
use crate::search::embedder::{EmbedError, Embedder};
use crate::search::fields::FieldIndex;
use crate::search::graph::{DumpName, Graph};
use crate::search::keywords::Keywords;
use crate::search::model::BATCH_MAX;
use crate::search::nearest::{Engine, Matrix, Nearest};
use crate::search::ranking::Ranking;
use crate::search::scope::{Allowed, Scopes};
use crate::search::vectors::{self, Key, UseCacheError, VectorCache};
use crate::search::views;

/// Tools whose vectors are written to disk together: what a crash can cost.
const SAVED_TOGETHER: usize = 64;

/// Why an index was not built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildIndexError {
    /// The model gave no vectors.
    #[error("cannot embed the catalog")]
    Embed(#[from] EmbedError),
    /// The vectors on disk cannot be used.
    #[error(transparent)]
    Cache(#[from] UseCacheError),
    /// The model gave vectors of different lengths.
    #[error("model `{0}` gave vectors of different lengths")]
    Uneven(String),
    /// The building thread panicked or was cancelled.
    #[error("building the index was interrupted")]
    Interrupted(#[from] tokio::task::JoinError),
}

/// Hears how many of how many tools are embedded.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Send + Sync);

/// A catalog ready to be searched. It is never changed: a refresh builds another.
#[derive(Debug)]
pub struct Index {
    catalog: Arc<Catalog>,
    pub(super) keywords: Arc<Keywords>,
    pub(super) vectors: Option<Vectors>,
    pub(super) multilingual: Option<Vectors>,
    scopes: Scopes,
    /// Made when somebody first asks by field.
    by_field: Arc<OnceLock<FieldIndex>>,
}

/// The vector side of an index.
#[derive(Debug)]
pub(super) struct Vectors {
    /// The model that made them.
    pub(super) model: String,
    pub(super) nearest: Nearest,
}

impl Index {
    /// The keyword side alone: ready at once, to answer while the vectors are made.
    pub fn keyword_only(catalog: Arc<Catalog>, ranking: &Ranking) -> Self {
        let keywords = Arc::new(Keywords::new(&catalog, ranking));
        Self {
            catalog,
            keywords,
            vectors: None,
            multilingual: None,
            scopes: Scopes::default(),
            by_field: Arc::default(),
        }
    }

    /// Both sides. What the cache has is not embedded again; what is embedded is kept there.
    pub async fn build(
        catalog: Arc<Catalog>,
        ranking: &Ranking,
        embedder: &Embedder,
        cache: &VectorCache,
        progress: Progress<'_>,
    ) -> Result<Self, BuildIndexError> {
        let (whole, own) = (catalog.clone(), ranking.clone());
        let index = tokio::task::spawn_blocking(move || Self::keyword_only(whole, &own)).await?;
        index.with_vectors(ranking, embedder, cache, progress).await
    }

    /// The same catalog with its vectors.
    pub async fn with_vectors(
        &self,
        ranking: &Ranking,
        embedder: &Embedder,
        cache: &VectorCache,
        progress: Progress<'_>,
    ) -> Result<Self, BuildIndexError> {
        let job = Building {
            catalog: &self.catalog,
            ranking,
            cache,
            progress,
        };
        let vectors = job.vectors(embedder, Recipe::FourViews).await?;
        let multilingual = match embedder.multilingual() {
            Some(second) => Some(job.vectors(second, Recipe::TwoViews).await?),
            None => None,
        };
        Ok(Self {
            catalog: self.catalog.clone(),
            keywords: self.keywords.clone(),
            vectors: Some(vectors),
            multilingual,
            scopes: Scopes::default(),
            by_field: Arc::clone(&self.by_field),
        })
    }

    /// The catalog it was built from.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Whether it has vectors.
    pub fn has_vectors(&self) -> bool {
        self.vectors.is_some()
    }

    /// The keyword side by field. The first to ask makes it, beside the runtime.
    pub(super) async fn by_field(&self) -> Option<&FieldIndex> {
        if self.by_field.get().is_none() {
            let (place, catalog) = (Arc::clone(&self.by_field), Arc::clone(&self.catalog));
            let make = move || {
                place.get_or_init(|| FieldIndex::new(&catalog));
            };
            if let Err(error) = tokio::task::spawn_blocking(make).await {
                warn!(%error, "cannot index the catalog by field");
            }
        }
        self.by_field.get()
    }

    /// What a tenant may see of it.
    pub(super) fn allowed(&self, tenant: &Tenant) -> Allowed {
        self.scopes.allowed(&self.catalog, &tenant.scope)
    }
}

/// How many texts stand for a tool.
#[derive(Clone, Copy, Debug)]
enum Recipe {
    FourViews,
    TwoViews,
}

impl Recipe {
    fn name(self) -> &'static str {
        match self {
            Self::FourViews => views::RECIPE,
            Self::TwoViews => views::RECIPE_TWO,
        }
    }

    fn texts(self, catalog: &Catalog, slot: Slot) -> Vec<String> {
        match self {
            Self::FourViews => views::views(catalog, slot),
            Self::TwoViews => views::two_views(catalog, slot),
        }
    }
}

/// What building needs all the way down.
struct Building<'a> {
    catalog: &'a Arc<Catalog>,
    ranking: &'a Ranking,
    cache: &'a VectorCache,
    progress: Progress<'a>,
}

impl Building<'_> {
    async fn vectors(
        &self,
        embedder: &Embedder,
        recipe: Recipe,
    ) -> Result<Vectors, BuildIndexError> {
        let texts: Vec<Vec<String>> = self
            .catalog
            .slots()
            .map(|slot| recipe.texts(self.catalog, slot))
            .collect();
        let keys: Vec<Key> = texts
            .iter()
            .map(|texts| vectors::key(recipe.name(), texts))
            .collect();
        let vectors = self.embed(embedder, texts, &keys).await?;
        let matrix = Matrix::new(&vectors)
            .ok_or_else(|| BuildIndexError::Uneven(embedder.id().to_owned()))?;
        drop(vectors);
        let name = DumpName::new(embedder.id(), keys.iter());
        let (cache, ranking) = (self.cache.clone(), self.ranking.clone());
        let nearest = tokio::task::spawn_blocking(move || {
            let tools = matrix.len();
            let engine = if ranking.codes_from <= tools {
                Engine::Codes(Codes::new(&matrix))
            } else if ranking.graph_from <= tools {
                Engine::Graph(graph_of(&matrix, &cache, &name))
            } else {
                Engine::Scan
            };
            Nearest::new(matrix, engine)
        })
        .await?;
        Ok(Vectors {
            model: embedder.id().to_owned(),
            nearest,
        })
    }

    /// A vector for each tool: from the cache, else from the model.
    async fn embed(
        &self,
        embedder: &Embedder,
        texts: Vec<Vec<String>>,
        keys: &[Key],
    ) -> Result<Vec<Embedding>, BuildIndexError> {
        let (model, dimensions) = (embedder.id(), embedder.dimensions());
        let wanted: HashSet<Key> = keys.iter().copied().collect();
        let mut known = self.cache.read(model, dimensions, &wanted)?;
        let mut missing: Vec<(Key, Vec<String>)> = keys
            .iter()
            .copied()
            .zip(texts)
            .filter(|(key, _)| !known.contains_key(key))
            .collect();
        // Texts of like length side by side: a batch is padded to its longest.
        missing.sort_by_key(|(key, texts)| (texts.iter().map(String::len).sum::<usize>(), *key));
        missing.dedup_by_key(|(key, _)| *key);
        let mut done = known.len();
        let total = done + missing.len();
        (self.progress)(done, total);
        for group in missing.chunks(SAVED_TOGETHER) {
            let fresh =
                embed_group(embedder, group, &|more| (self.progress)(done + more, total)).await?;
            self.cache.append(model, dimensions, &fresh)?;
            done += fresh.len();
            known.extend(fresh);
        }
        if !missing.is_empty() {
            info!(tools = missing.len(), model, "embedded tools");
        }
        // Through the same rounding as a vector from disk: a warm start ranks as a cold one.
        let vector = |key| {
            let vector = known.get(key).ok_or(EmbedError::Stopped)?;
            Ok(Embedding::new(vector.as_slice().to_vec()).unwrap_or_else(|_none| vector.clone()))
        };
        keys.iter().map(vector).collect()
    }
}

/// Embeds all texts of some tools, and takes the mean of each tool's.
async fn embed_group(
    embedder: &Embedder,
    group: &[(Key, Vec<String>)],
    progress: &(dyn Fn(usize) + Send + Sync),
) -> Result<Vec<(Key, Embedding)>, EmbedError> {
    let mut texts: Vec<(&str, usize)> = group
        .iter()
        .enumerate()
        .flat_map(|(at, (_, texts))| texts.iter().map(move |text| (text.as_str(), at)))
        .collect();
    texts.sort_by_key(|(text, at)| (text.len(), *text, *at));
    // A tool without arguments has one of its texts twice: it is embedded once.
    let same: Vec<&[(&str, usize)]> = texts.chunk_by(|a, b| a.0 == b.0).collect();
    let batches: Vec<Vec<String>> = same
        .chunks(BATCH_MAX)
        .map(|batch| batch.iter().map(|same| same[0].0.to_owned()).collect())
        .collect();
    let mut vectors_made = stream::iter(batches)
        .map(|batch| embedder.embed_passages(batch))
        .buffered(embedder.workers());
    let mut sums: Vec<Vec<f32>> = vec![vec![0.0; embedder.dimensions()]; group.len()];
    let mut done = 0;
    let mut waiting = same.iter();
    while let Some(batch) = vectors_made.try_next().await? {
        done += batch.len();
        // The batch leads: `zip` asks its left side first, and would lose a text else.
        for (vector, same) in batch.into_iter().zip(waiting.by_ref()) {
            for (_, at) in *same {
                for (sum, x) in sums[*at].iter_mut().zip(vector.as_slice()) {
                    *sum += x;
                }
            }
        }
        progress(done * group.len() / same.len().max(1));
    }
    group
        .iter()
        .zip(sums)
        .map(|((key, _), sum)| {
            let mean =
                Embedding::new(sum).map_err(|source| EmbedError::Run(Arc::new(source.into())))?;
            Ok((*key, mean))
        })
        .collect()
}

/// The graph from disk, else built and kept.
fn graph_of(matrix: &Matrix, cache: &VectorCache, name: &DumpName) -> Graph {
    if let Some(graph) = Graph::load(cache.folder(), name, matrix.len()) {
        return graph;
    }
    let graph = Graph::build(matrix);
    if let Err(error) = graph.dump(cache.folder(), name) {
        // The index is whole; only the next start is slower.
        warn!(%error, "cannot keep the graph on disk");
    }
    graph
}
