//! Two scores made comparable and added up.

use crate::search::candidates::Candidate;

/// Fills in the scores of candidates, and sorts them: best first, ties by slot.
pub(super) fn blend(candidates: &mut [Candidate], vector_share: f32) {
    let cosines = candidates.iter().filter_map(|c| c.cosine);
    let (low, high) = cosines.fold((f32::MAX, f32::MIN), |(low, high), cosine| {
        (low.min(cosine), high.max(cosine))
    });
    let bm25_max = candidates.iter().map(|c| c.bm25).fold(0.0, f32::max);
    let has_vectors = low <= high;
    for candidate in candidates.iter_mut() {
        candidate.semantic = match candidate.cosine {
            Some(cosine) if low < high => (cosine - low) / (high - low),
            Some(_) => 1.0,
            None => 0.0,
        };
        let bm25 = if bm25_max <= 0.0 {
            0.0
        } else {
            candidate.bm25 / bm25_max
        };
        candidate.keyword = 0.5 * bm25 + 0.5 * candidate.coverage;
        let share = if has_vectors { vector_share } else { 0.0 };
        candidate.blended = share * candidate.semantic + (1.0 - share) * candidate.keyword;
    }
    candidates.sort_by(|a, b| b.blended.total_cmp(&a.blended).then(a.slot.cmp(&b.slot)));
}
