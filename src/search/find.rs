//! A ranked list of tools, for surfaces that show more than three and leave no handle.
//!
//! ```text
//! query -> read -> embed -> each back end's list -> fuse by reciprocal rank -> the best few
//! ```

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::domain::{Catalog, Query, Slot, Tenant, Tool, ToolId};
use crate::search::answer::Degraded;
use crate::search::candidates::{self, Meaning};
use crate::search::index::Index;
use crate::search::ranking::Ranking;
use crate::search::reading::{Reader, Reading};
use crate::search::scope::Allowed;
use crate::search::{Embedder, Searcher, blend};

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
        let asked = Asked {
            index: &index,
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
    allowed: &'a Allowed,
    reading: &'a Reading,
    meaning: Option<&'a Meaning<'a>>,
    ranking: &'a Ranking,
}

impl Asked<'_> {
    /// A back end's list, best first, ties by slot. Without a model words stand in for meaning.
    fn list(&self, backend: &Backend) -> Vec<Hit> {
        match (backend.kind, self.meaning) {
            (Kind::Semantic, Some(meaning)) => {
                let near = meaning.find(self.allowed, self.ranking).into_iter();
                near.map(|near| Hit {
                    slot: near.slot,
                    score: near.cosine,
                })
                .collect()
            }
            (Kind::Hybrid, Some(_)) => self.blended(self.meaning),
            (Kind::Keyword, _) | (_, None) => self.blended(None),
        }
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
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.slot.cmp(&b.slot)));
    hits
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
