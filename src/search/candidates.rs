//! The tools that are looked at for a query, with everything known about each.

use crate::domain::{Embedding, Slot};
use crate::search::index::{Index, Vectors};
use crate::search::keywords::{Fields, Keywords, Posting};
use crate::search::nearest::Near;
use crate::search::ranking::Ranking;
use crate::search::reading::Reading;
use crate::search::scope::Allowed;

/// What the best clause counts in the semantic score of a query of several. `docs/ranking.md`
/// has the figures: .3 to .5 gain about the same.
const CLAUSE_SHARE: f32 = 0.4;
/// What a term counts in a description or an argument's name, against one in the tool's name.
const TEXT_WORTH: f32 = 0.85;
/// The same for what is said about an argument.
const ARGUMENT_TEXT_WORTH: f32 = 0.5;
/// Terms of a query that synonyms are weighed against; a request has ten.
const TERMS_MAX: usize = 64;

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
    /// Rarity of the query's terms that the tool has, each by where it stands.
    pub(super) evidence: f32,
    /// Semantic score over the candidates, 0 to 1.
    pub(super) semantic: f32,
    /// Keyword score over the candidates, 0 to 1.
    pub(super) keyword: f32,
    /// Both together.
    pub(super) blended: f32,
}

/// What the query means, as vectors, and the side of the index that they belong to.
pub(super) struct Meaning<'a> {
    /// The whole query.
    pub(super) whole: Embedding,
    /// Its clauses, where it has several.
    pub(super) clauses: Vec<Embedding>,
    pub(super) side: &'a Vectors,
}

impl Meaning<'_> {
    /// How near a tool is: mostly to the whole, partly to the clause it fits best.
    pub(super) fn cosine(&self, slot: Slot) -> f32 {
        let nearest = &self.side.nearest;
        let whole = nearest.cosine(&self.whole, slot);
        let clauses = self.clauses.iter();
        match clauses
            .map(|clause| nearest.cosine(clause, slot))
            .reduce(f32::max)
        {
            Some(best) => (1.0 - CLAUSE_SHARE) * whole + CLAUSE_SHARE * best,
            None => whole,
        }
    }

    /// The nearest tools to the whole and to each clause, and of all those the nearest.
    pub(super) fn find(&self, allowed: &Allowed, ranking: &Ranking) -> Vec<Near> {
        let nearest = &self.side.nearest;
        let mut found = nearest.find(&self.whole, allowed, ranking);
        if self.clauses.is_empty() {
            return found;
        }
        for clause in &self.clauses {
            found.extend(nearest.find(clause, allowed, ranking));
        }
        found.sort_by_key(|near| near.slot);
        found.dedup_by_key(|near| near.slot);
        for near in &mut found {
            near.cosine = self.cosine(near.slot);
        }
        found.sort_by(|a, b| a.order(*b));
        found.truncate(ranking.pool);
        found
    }
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
        let near = meaning.find(allowed, ranking).into_iter();
        found.extend(near.map(|near| (near.slot, Lane::Nearest, Some(near.cosine))));
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
            let cosine = meaning.map(|meaning| meaning.cosine(slot));
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
    found
        .into_iter()
        .map(|(slot, lane, cosine)| {
            let words = Words::of(&index.keywords, reading, slot);
            Candidate {
                slot,
                lane,
                cosine,
                bm25: words.bm25,
                evidence: words.evidence,
                semantic: 0.0,
                keyword: 0.0,
                blended: 0.0,
            }
        })
        .collect()
}

/// What the words of a query say for one tool.
#[derive(Default)]
struct Words {
    bm25: f32,
    evidence: f32,
}

impl Words {
    fn of(keywords: &Keywords, reading: &Reading, slot: Slot) -> Self {
        let mut words = Self::default();
        // What each term gave, so that a synonym adds only what is better.
        let mut given = [0.0_f32; TERMS_MAX];
        for (at, term) in reading.terms.iter().enumerate() {
            let Some(posting) = keywords.find(term.at, slot) else {
                continue;
            };
            let worth = term.idf * place(posting);
            words.bm25 += posting.weight * term.idf;
            words.evidence += worth;
            if let Some(given) = given.get_mut(at) {
                *given = worth;
            }
        }
        for alternative in &reading.alternatives {
            let mut name = keywords.name(slot).iter();
            if name.any(|term| alternative.synonyms.contains(&(*term as usize))) {
                let known = alternative.term.and_then(|at| given.get(at)).copied();
                words.evidence += (alternative.worth - known.unwrap_or(0.0)).max(0.0);
            }
        }
        words
    }
}

/// What a term is worth by where it stands. In a long description words stand by chance: there
/// a term counts no more than BM25 gives it.
fn place(posting: Posting) -> f32 {
    let fields = posting.fields;
    if fields.has(Fields::NAME) || fields.has(Fields::SERVER) {
        1.0
    } else if fields.has(Fields::TEXT) || fields.has(Fields::ARGUMENTS) {
        TEXT_WORTH * posting.weight.min(1.0)
    } else {
        ARGUMENT_TEXT_WORTH
    }
}
