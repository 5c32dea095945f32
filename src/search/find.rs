//! A ranked list of tools, for surfaces that show more than three and leave no handle.
//!
//! ```text
//! query -> read -> embed -> each back end's list -> fuse by reciprocal rank -> the best few
//! ```

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use crate::domain::{Catalog, Query, Slot, Tenant, Tool, ToolId};
use crate::search::answer::Degraded;
use crate::search::candidates::{self, Meaning};
use crate::search::fields::{FieldIndex, FieldWeights};
use crate::search::index::Index;
use crate::search::ranking::Ranking;
use crate::search::reading::{Reader, Reading};
use crate::search::scope::Allowed;
use crate::search::{Embedder, Searcher, blend, terms};

/// Added to a rank before its reciprocal counts: Cormack, Clarke and Buettcher, "Reciprocal Rank
/// Fusion", 2009.
const FUSION_K: f32 = 60.0;

/// What a back end goes by.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Kind {
    /// The words of the query.
    Keyword,
    /// Its meaning.
    Semantic,
    /// Both, blended as in `search_tools`.
    #[default]
    Hybrid,
}

/// One way to rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Backend {
    /// What it goes by.
    pub kind: Kind,
    /// Fields that its keyword side looks at, each with its weight. Without, it is the keyword
    /// side of `search_tools`. Vectors are of whole definitions.
    pub fields: Option<FieldWeights>,
}

/// How a list is ranked.
#[derive(Clone, Debug, PartialEq)]
pub enum Rank {
    /// By one back end.
    By(Backend),
    /// By several, fused by reciprocal rank.
    Fused(Vec<Backend>),
}

/// What to look for, beside the query.
#[derive(Clone, Debug, PartialEq)]
pub struct FindOptions {
    /// Tools at most.
    pub most: usize,
    /// How they are ranked.
    pub rank: Rank,
}

impl FindOptions {
    /// So many tools, ranked as `search_tools` ranks its candidates.
    pub fn hybrid(most: usize) -> Self {
        Self {
            most,
            rank: Rank::By(Backend::default()),
        }
    }
}

/// A tool that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Where it stands in the catalog of [`Found`].
    pub slot: Slot,
    /// How well it fits; comparable within one answer only.
    pub score: f32,
}

/// What a query found, best first, ties by tool id.
#[derive(Clone)]
pub struct Found {
    /// The tools.
    pub hits: Vec<Hit>,
    /// How many tools this tenant may use.
    pub tools_total: usize,
    /// Why the ranking is less good than it could be.
    pub degraded: Option<Degraded>,
    catalog: Arc<Catalog>,
}

impl Found {
    /// The tool of a hit.
    pub fn tool(&self, hit: Hit) -> &Tool {
        self.catalog.tool(hit.slot)
    }

    /// Its id.
    pub fn id(&self, hit: Hit) -> ToolId {
        self.catalog.id(hit.slot)
    }
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Found({} of {})", self.hits.len(), self.tools_total)
    }
}

impl Searcher {
    /// The tools that fit a query best. Leaves no handle.
    pub async fn find(&self, tenant: &Tenant, query: &Query, options: &FindOptions) -> Found {
        // One snapshot for the whole query: slots mean nothing in the next one.
        let index = self.index();
        let allowed = index.allowed(tenant);
        let reader = Reader {
            keywords: &index.keywords,
            lexicon: self.embedder.as_ref().and_then(Embedder::lexicon),
        };
        let reading = reader.read(query.as_str());
        let backends = match &options.rank {
            Rank::By(backend) => std::slice::from_ref(backend),
            Rank::Fused(backends) => backends,
        };
        let by_words = backends.iter().all(|b| b.kind == Kind::Keyword);
        let (meaning, degraded) = if by_words {
            (None, None)
        } else {
            match self.embed(&index, &reading).await {
                Ok(meaning) => (Some(meaning), None),
                Err(degraded) => (None, Some(degraded)),
            }
        };
        let mut ranking = self.ranking.clone();
        ranking.pool = ranking.pool.max(options.most);
        let by_field = match backends.iter().any(|backend| backend.fields.is_some()) {
            true => index.by_field().await,
            false => None,
        };
        let asked = Asked {
            index: &index,
            by_field,
            allowed: &allowed,
            reading: &reading,
            meaning: meaning.as_ref(),
            ranking: &ranking,
        };
        let lists: Vec<Vec<Hit>> = backends.iter().map(|b| asked.list(b)).collect();
        let mut hits = match &options.rank {
            Rank::By(_) => lists.into_iter().flatten().collect(),
            Rank::Fused(_) => fuse(&lists),
        };
        hits.truncate(options.most);
        Found {
            hits,
            tools_total: allowed.count(index.catalog().len()),
            degraded,
            catalog: Arc::clone(index.catalog()),
        }
    }
}

/// One query with all that its back ends need.
struct Asked<'a> {
    index: &'a Index,
    by_field: Option<&'a FieldIndex>,
    allowed: &'a Allowed,
    reading: &'a Reading,
    meaning: Option<&'a Meaning<'a>>,
    ranking: &'a Ranking,
}

impl Asked<'_> {
    /// A back end's list, best first, ties by slot. Without a model words stand in for meaning.
    fn list(&self, backend: &Backend) -> Vec<Hit> {
        let by_field = self.by_field.zip(backend.fields);
        match (backend.kind, self.meaning, by_field) {
            (Kind::Semantic, Some(meaning), _) => self.near(meaning),
            (Kind::Hybrid, Some(meaning), Some((fields, weights))) => {
                self.mixed(meaning, self.worded(fields, weights))
            }
            (Kind::Hybrid, Some(_), None) => self.blended(self.meaning),
            (_, _, Some((fields, weights))) => self.worded(fields, weights),
            (_, _, None) => self.blended(None),
        }
    }

    fn near(&self, meaning: &Meaning<'_>) -> Vec<Hit> {
        let near = meaning.find(self.allowed, self.ranking).into_iter();
        near.map(|near| Hit {
            slot: near.slot,
            score: near.cosine,
        })
        .collect()
    }

    /// The best by weighted fields. Words that no ranking of `search_tools` knows may still stand
    /// in an output schema.
    fn worded(&self, fields: &FieldIndex, weights: FieldWeights) -> Vec<Hit> {
        let known = self.reading.terms.iter().map(|term| term.stem.to_string());
        let unknown = self.reading.unknown.iter().map(|word| terms::stem(word));
        let mut stems: Vec<String> = known.chain(unknown).collect();
        stems.sort_unstable();
        stems.dedup();
        let mut hits = fields.best(&stems, weights, |slot| self.allowed.allows(slot));
        hits.truncate(self.ranking.pool);
        hits
    }

    /// Nearness and weighted words, each over the candidates from 0 to 1, in the shares of
    /// `search_tools`.
    fn mixed(&self, meaning: &Meaning<'_>, worded: Vec<Hit>) -> Vec<Hit> {
        let most = worded.first().map_or(1.0, |hit| hit.score);
        let words: HashMap<Slot, f32> = worded
            .into_iter()
            .map(|hit| (hit.slot, hit.score / most))
            .collect();
        let mut hits = self.near(meaning);
        let near: HashSet<Slot> = hits.iter().map(|hit| hit.slot).collect();
        let more = words.keys().filter(|slot| !near.contains(slot));
        hits.extend(more.map(|slot| Hit {
            slot: *slot,
            score: meaning.cosine(*slot),
        }));
        let cosines = hits.iter().map(|hit| hit.score);
        let (low, high) = cosines.fold((f32::MAX, f32::MIN), |(low, high), cosine| {
            (low.min(cosine), high.max(cosine))
        });
        let share = self.ranking.vector_share;
        for hit in &mut hits {
            let semantic = match low < high {
                true => (hit.score - low) / (high - low),
                false => 1.0,
            };
            let keyword = words.get(&hit.slot).copied().unwrap_or(0.0);
            hit.score = share * semantic + (1.0 - share) * keyword;
        }
        sort(&mut hits);
        hits
    }

    fn blended(&self, meaning: Option<&Meaning<'_>>) -> Vec<Hit> {
        let (reading, ranking) = (self.reading, self.ranking);
        let mut candidates =
            candidates::gather(self.index, reading, meaning, self.allowed, ranking);
        blend::blend(&mut candidates, reading, ranking.vector_share);
        let hits = candidates.into_iter().map(|candidate| Hit {
            slot: candidate.slot,
            score: candidate.blended,
        });
        hits.collect()
    }
}

/// Lists made one: each gives a tool the reciprocal of its rank.
fn fuse(lists: &[Vec<Hit>]) -> Vec<Hit> {
    let mut sums: HashMap<Slot, f32> = HashMap::new();
    for list in lists {
        for (rank, hit) in (1_u16..).zip(list) {
            *sums.entry(hit.slot).or_default() += 1.0 / (FUSION_K + f32::from(rank));
        }
    }
    let mut hits: Vec<Hit> = sums
        .into_iter()
        .map(|(slot, score)| Hit { slot, score })
        .collect();
    sort(&mut hits);
    hits
}

/// Best first, ties by slot.
fn sort(hits: &mut [Hit]) {
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.slot.cmp(&b.slot)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(slots: &[usize]) -> Vec<Hit> {
        let hit = |slot: &usize| Hit {
            slot: Slot::new(*slot),
            score: 1.0,
        };
        slots.iter().map(hit).collect()
    }

    #[test]
    fn a_tool_in_both_lists_comes_before_the_best_of_one() {
        let fused = fuse(&[list(&[1, 2, 3]), list(&[4, 2])]);
        let order: Vec<usize> = fused.iter().map(|hit| hit.slot.index()).collect();
        assert_eq!(order, [2, 1, 4, 3]);
        assert!((fused[0].score - 2.0 / 62.0).abs() < 1e-6);
        assert!((fused[1].score - 1.0 / 61.0).abs() < 1e-6);
    }
}
