//! Two scores made comparable and added up.

use crate::search::candidates::Candidate;
use crate::search::reading::Reading;

/// Terms that make a query's point: who has its two rarest has all it takes.
const TELLING_TERMS: usize = 2;
/// Rarity taken for a word of a foreign query that no tool has.
const UNKNOWN_RARITY: f32 = 8.0;
/// Share of BM25 in the keyword score when it answers alone.
const BM25_SHARE: f32 = 0.5;

/// Fills in the scores of candidates, and sorts them: best first, ties by slot.
///
/// Semantic: from the furthest candidate to the nearest. Keyword: evidence against the best
/// candidate's, or against the rarity of the query's two rarest terms where nobody has as
/// much. So a paraphrase, whose few shared words prove little, is left to the vectors.
pub(super) fn blend(candidates: &mut [Candidate], reading: &Reading, vector_share: f32) {
    let cosines = candidates.iter().filter_map(|c| c.cosine);
    let (low, high) = cosines.fold((f32::MAX, f32::MIN), |(low, high), cosine| {
        (low.min(cosine), high.max(cosine))
    });
    let most = |of: fn(&Candidate) -> f32| candidates.iter().map(of).fold(0.0, f32::max);
    let (bm25_max, evidence_max) = (most(|c| c.bm25), most(|c| c.evidence));
    let telling = telling(reading);
    let share = if low <= high { vector_share } else { 0.0 };
    let part = |of: f32, whole: f32| if whole <= 0.0 { 0.0 } else { of / whole };
    for candidate in candidates.iter_mut() {
        candidate.semantic = match candidate.cosine {
            Some(cosine) if low < high => (cosine - low) / (high - low),
            Some(_) => 1.0,
            None => 0.0,
        };
        candidate.keyword = part(candidate.evidence, telling.max(evidence_max));
        if share <= 0.0 {
            // Alone, the keyword side needs more steps than the evidence has.
            candidate.keyword = BM25_SHARE * part(candidate.bm25, bm25_max)
                + (1.0 - BM25_SHARE) * candidate.keyword;
        }
        candidate.blended = share * candidate.semantic + (1.0 - share) * candidate.keyword;
    }
    candidates.sort_by(|a, b| {
        let by_score = b.blended.total_cmp(&a.blended);
        by_score.then(a.slot.cmp(&b.slot))
    });
}

/// The rarities of the rarest terms of a query, added up.
fn telling(reading: &Reading) -> f32 {
    let mut rarities: Vec<f32> = reading.terms.iter().map(|term| term.idf).collect();
    if reading.foreign {
        rarities.extend(reading.unknown.iter().map(|_| UNKNOWN_RARITY));
    }
    if rarities.is_empty() {
        rarities.extend(reading.alternatives.iter().map(|other| 2.0 * other.worth));
    }
    rarities.sort_by(|a, b| b.total_cmp(a));
    rarities.iter().take(TELLING_TERMS).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Slot;
    use crate::search::candidates::Lane;
    use crate::search::reading::QueryTerm;

    fn candidate(slot: usize, cosine: Option<f32>, evidence: f32) -> Candidate {
        Candidate {
            slot: Slot::new(slot),
            lane: Lane::Nearest,
            cosine,
            bm25: evidence,
            evidence,
            semantic: 0.0,
            keyword: 0.0,
            blended: 0.0,
        }
    }

    fn reading(rarities: &[f32]) -> Reading {
        let term = |idf: &f32| QueryTerm {
            stem: "x".into(),
            at: 0,
            idf: *idf,
            from: "x".into(),
        };
        Reading {
            terms: rarities.iter().map(term).collect(),
            ..Reading::default()
        }
    }

    fn order(mut candidates: Vec<Candidate>, reading: &Reading) -> Vec<usize> {
        blend(&mut candidates, reading, 0.68);
        assert!(candidates.iter().all(|c| (0.0..=1.0).contains(&c.blended)));
        candidates.iter().map(|c| c.slot.index()).collect()
    }

    #[test]
    fn full_evidence_beats_a_slightly_nearer_tool_and_weak_evidence_does_not() {
        let three = |evidence| {
            vec![
                candidate(0, Some(0.60), 0.0),
                candidate(1, Some(0.55), evidence),
                candidate(2, Some(0.30), 0.0),
            ]
        };
        let asked = reading(&[5.0, 4.0, 3.0]);
        assert_eq!(order(three(12.0), &asked), [1, 0, 2]);
        assert_eq!(order(three(3.0), &asked), [0, 1, 2]);
    }

    #[test]
    fn ties_break_by_slot_and_without_vectors_words_decide() {
        let same = vec![
            candidate(2, None, 1.0),
            candidate(1, None, 1.0),
            candidate(0, None, 0.5),
        ];
        assert_eq!(order(same, &reading(&[1.0])), [1, 2, 0]);
    }
}
