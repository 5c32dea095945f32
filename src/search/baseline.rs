//! Rankings as others do them, on the same catalog: what ours is measured against.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::domain::{Catalog, Embedding, Slot, Tool, ToolId};
use crate::search::bm25::Weigher;
use crate::search::embedder::{EmbedError, Embedder};
use crate::search::index::BuildIndexError;
use crate::search::model::BATCH_MAX;
use crate::search::nearest::{Matrix, dot};
use crate::search::terms;
use crate::search::vectors::{self, VectorCache};

/// Names what is embedded here.
const RECIPE: &str = "name description 1";
/// Candidates of the blend, and depth of the lists that are fused.
const POOL: usize = 50;
/// Reciprocal rank fusion as published (Cormack, Clarke and Büttcher, 2009).
const FUSION_K: f32 = 60.0;
/// Lambda of the plain blend's MMR.
const LAMBDA: f32 = 0.7;
/// Share of the vector score in the plain blend.
const SHARE: f32 = 0.68;

/// A way to rank.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Baseline {
    /// BM25 over name and description.
    Bm25,
    /// Cosine to the text `name description`.
    Cosine,
    /// 50 nearest, 0.68 cosine + 0.32 BM25 each normalized over them, MMR at 0.7.
    Plain,
    /// Reciprocal rank fusion of the two lists.
    Fusion,
}

impl Baseline {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Bm25, Self::Cosine, Self::Plain, Self::Fusion];

    /// Its name, as an option is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bm25 => "bm25",
            Self::Cosine => "cosine",
            Self::Plain => "plain",
            Self::Fusion => "rrf",
        }
    }
}

/// What the baselines rank from.
#[derive(Debug)]
pub struct Baselines {
    catalog: Arc<Catalog>,
    postings: HashMap<String, Vec<(Slot, f32)>>,
    matrix: Matrix,
}

impl Baselines {
    /// Reads and embeds a catalog the plain way.
    pub async fn build(
        catalog: Arc<Catalog>,
        embedder: &Embedder,
        cache: &VectorCache,
    ) -> Result<Self, BuildIndexError> {
        let texts: Vec<String> = catalog
            .slots()
            .map(|slot| plain_text(catalog.tool(slot)))
            .collect();
        let documents: Vec<Vec<String>> = texts.iter().map(|text| stems(text)).collect();
        let total: usize = documents.iter().map(Vec::len).sum();
        let weigher = Weigher::new(total as f32 / documents.len().max(1) as f32);
        let mut postings: HashMap<String, Vec<(Slot, f32)>> = HashMap::new();
        for (slot, document) in catalog.slots().zip(&documents) {
            for (term, weight) in weigher.weigh(document) {
                postings.entry(term).or_default().push((slot, weight));
            }
        }
        let vectors = embed(&texts, embedder, cache).await?;
        let matrix = Matrix::new(&vectors)
            .ok_or_else(|| BuildIndexError::Uneven(embedder.id().to_owned()))?;
        Ok(Self {
            catalog,
            postings,
            matrix,
        })
    }

    /// Tools in the order of a baseline, best first, at most 50.
    pub async fn order(
        &self,
        query: &str,
        baseline: Baseline,
        embedder: &Embedder,
    ) -> Result<Vec<ToolId>, EmbedError> {
        let query_vector = embedder.embed_query(query).await?;
        let cosine = |slot| dot(query_vector.as_slice(), self.matrix.row(slot));
        let near: Vec<(Slot, f32)> = best(self.catalog.slots().map(|slot| (slot, cosine(slot))));
        let scores = self.bm25(query);
        let found: Vec<Slot> = match baseline {
            Baseline::Cosine => near.iter().map(|(slot, _)| *slot).collect(),
            Baseline::Bm25 => best(scores.into_iter())
                .iter()
                .map(|(slot, _)| *slot)
                .collect(),
            Baseline::Plain => self.blend(&near, &scores),
            Baseline::Fusion => {
                let mut fused: HashMap<Slot, f32> = HashMap::new();
                for list in [near, best(scores.into_iter())] {
                    for (rank, (slot, _)) in list.into_iter().enumerate() {
                        *fused.entry(slot).or_default() += 1.0 / (FUSION_K + rank as f32 + 1.0);
                    }
                }
                best(fused.into_iter())
                    .iter()
                    .map(|(slot, _)| *slot)
                    .collect()
            }
        };
        Ok(found
            .into_iter()
            .map(|slot| self.catalog.id(slot))
            .collect())
    }

    fn bm25(&self, query: &str) -> HashMap<Slot, f32> {
        let mut scores: HashMap<Slot, f32> = HashMap::new();
        let unique: HashSet<String> = stems(query).into_iter().collect();
        let tools = self.catalog.len() as f32;
        let mut unique: Vec<&String> = unique.iter().collect();
        unique.sort_unstable();
        for list in unique
            .into_iter()
            .filter_map(|stem| self.postings.get(stem))
        {
            let found = list.len() as f32;
            let idf = (1.0 + (tools - found + 0.5) / (found + 0.5)).ln();
            for (slot, weight) in list {
                *scores.entry(*slot).or_default() += idf * weight;
            }
        }
        scores
    }

    fn blend(&self, near: &[(Slot, f32)], scores: &HashMap<Slot, f32>) -> Vec<Slot> {
        let word = |slot: &Slot| scores.get(slot).copied().unwrap_or(0.0);
        let low = near.last().map_or(0.0, |(_, cosine)| *cosine);
        let high = near.first().map_or(1.0, |(_, cosine)| *cosine);
        let most = near
            .iter()
            .map(|(slot, _)| word(slot))
            .fold(f32::MIN_POSITIVE, f32::max);
        let blended = near.iter().map(|(slot, cosine)| {
            let semantic = (cosine - low) / (high - low).max(f32::MIN_POSITIVE);
            (*slot, SHARE * semantic + (1.0 - SHARE) * word(slot) / most)
        });
        let blended = best(blended);
        let mut order: Vec<Slot> = Vec::new();
        while order.len() < 3.min(blended.len()) {
            let value = |(slot, score): &(Slot, f32)| {
                let like = order
                    .iter()
                    .map(|pick| dot(self.matrix.row(*pick), self.matrix.row(*slot)))
                    .fold(0.0, f32::max);
                LAMBDA * score - (1.0 - LAMBDA) * like
            };
            let left = blended.iter().filter(|(slot, _)| !order.contains(slot));
            let Some((next, _)) = left.max_by(|a, b| {
                let by_value = value(a).total_cmp(&value(b));
                by_value.then(b.0.cmp(&a.0))
            }) else {
                break;
            };
            order.push(*next);
        }
        let rest: Vec<Slot> = blended
            .into_iter()
            .map(|(slot, _)| slot)
            .filter(|slot| !order.contains(slot))
            .collect();
        order.extend(rest);
        order
    }
}

/// The best 50, best first, ties by slot.
fn best(scores: impl Iterator<Item = (Slot, f32)>) -> Vec<(Slot, f32)> {
    let mut all: Vec<(Slot, f32)> = scores.collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    all.truncate(POOL);
    all
}

fn plain_text(tool: &Tool) -> String {
    format!("{} {}", tool.name(), tool.description())
}

fn stems(text: &str) -> Vec<String> {
    terms::words(text)
        .into_iter()
        .flat_map(|word| {
            if word.parts.is_empty() {
                vec![word.whole]
            } else {
                word.parts
            }
        })
        .filter(|word| !terms::is_stop_word(word))
        .map(|word| terms::stem(&word))
        .collect()
}

async fn embed(
    texts: &[String],
    embedder: &Embedder,
    cache: &VectorCache,
) -> Result<Vec<Embedding>, BuildIndexError> {
    let keys: Vec<_> = texts
        .iter()
        .map(|text| vectors::key(RECIPE, std::slice::from_ref(text)))
        .collect();
    let wanted = keys.iter().copied().collect();
    let model = format!("{} plain", embedder.id());
    let mut known = cache.read(&model, embedder.dimensions(), &wanted)?;
    let mut missing: Vec<usize> = (0..texts.len())
        .filter(|at| !known.contains_key(&keys[*at]))
        .collect();
    missing.sort_by_key(|at| texts[*at].len());
    let mut fresh = Vec::with_capacity(missing.len());
    for batch in missing.chunks(BATCH_MAX) {
        let passages = batch.iter().map(|at| texts[*at].clone()).collect();
        let vectors = embedder.embed_passages(passages).await?;
        fresh.extend(batch.iter().map(|at| keys[*at]).zip(vectors));
    }
    cache.append(&model, embedder.dimensions(), &fresh)?;
    known.extend(fresh);
    keys.iter()
        .map(|key| known.get(key).cloned().ok_or(EmbedError::Stopped.into()))
        .collect()
}
