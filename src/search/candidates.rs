//! The tools that are looked at for a query, with everything known about each.

use crate::domain::{Embedding, Slot};
use crate::search::index::{Index, Vectors};
use crate::search::keywords::{Fields, Keywords, QueryTerm, Reading};
use crate::search::ranking::Ranking;
use crate::search::scope::Allowed;

/// What brought a tool among the candidates.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lane {
    /// Its vector is near the query's.
    Nearest,
    /// Its words are those of the query.
    Keywords,
}

/// One candidate.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) slot: Slot,
    pub(super) lane: Lane,
    /// Cosine to the query, where there are vectors.
    pub(super) cosine: Option<f32>,
    /// Sum of BM25 weight times rarity.
    pub(super) bm25: f32,
    /// Share of the query's terms, by rarity, that the tool has.
    pub(super) coverage: f32,
    /// Semantic score over the candidates, 0 to 1.
    pub(super) semantic: f32,
    /// Keyword score over the candidates, 0 to 1.
    pub(super) keyword: f32,
    /// Both together.
    pub(super) blended: f32,
}

/// What the query means, as a vector, and the side of the index that it belongs to.
pub(super) struct Meaning<'a> {
    pub(super) vector: Embedding,
    pub(super) side: &'a Vectors,
}

/// The nearest tools, and those that the keywords are sure of.
pub(super) fn gather(
    index: &Index,
    reading: &Reading,
    meaning: Option<&Meaning<'_>>,
    allowed: &Allowed,
    ranking: &Ranking,
) -> Vec<Candidate> {
    let mut found: Vec<(Slot, Lane, Option<f32>)> = Vec::new();
    if let Some(meaning) = meaning {
        let near = meaning.side.nearest.find(&meaning.vector, allowed, ranking);
        found.extend(
            near.into_iter()
                .map(|near| (near.slot, Lane::Nearest, Some(near.cosine))),
        );
    }
    let lane = match meaning {
        Some(_) => ranking.lane,
        None => ranking.pool,
    };
    for (slot, _) in index
        .keywords
        .best(reading, lane, |slot| allowed.allows(slot))
    {
        if found.iter().all(|(known, ..)| *known != slot) {
            let cosine = meaning.map(|m| m.side.nearest.cosine(&m.vector, slot));
            found.push((slot, Lane::Keywords, cosine));
        }
    }
    if found.is_empty() {
        // Nothing is near and no word fits: a vague query still gets candidates.
        let first = index.catalog().slots().filter(|slot| allowed.allows(*slot));
        found.extend(
            first
                .take(ranking.pool)
                .map(|slot| (slot, Lane::Keywords, None)),
        );
    }
    let total = reading.idf_total();
    found
        .into_iter()
        .map(|(slot, lane, cosine)| {
            let words = Words::of(&index.keywords, &reading.terms, slot);
            Candidate {
                slot,
                lane,
                cosine,
                bm25: words.bm25,
                coverage: share(words.anywhere, total),
                semantic: 0.0,
                keyword: 0.0,
                blended: 0.0,
            }
        })
        .collect()
}

fn share(part: f32, total: f32) -> f32 {
    if total <= 0.0 { 0.0 } else { part / total }
}

/// Sums over the terms of a query that a tool has.
#[derive(Default)]
struct Words {
    bm25: f32,
    anywhere: f32,
}

impl Words {
    fn of(keywords: &Keywords, terms: &[QueryTerm], slot: Slot) -> Self {
        let mut words = Self::default();
        for term in terms {
            let Some(posting) = keywords.find(term, slot) else {
                continue;
            };
            words.bm25 += posting.weight * term.idf;
            words.anywhere += term.idf * place(posting.fields);
        }
        words
    }
}

/// What a term is worth by where it stands.
fn place(fields: Fields) -> f32 {
    if fields.has(Fields::NAME) || fields.has(Fields::SERVER) {
        1.0
    } else if fields.has(Fields::TEXT) {
        0.8
    } else {
        0.5
    }
}
