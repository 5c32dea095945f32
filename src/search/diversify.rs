//! Three that add something to one another: maximal marginal relevance (Carbonell and Goldstein,
//! 1998).

use crate::domain::Slot;
use crate::search::candidates::Candidate;
use crate::search::ranking::PICKS_MAX;

/// A pick: where it stands among the candidates, and its score when it was picked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Picked {
    pub(super) at: usize,
    pub(super) score: f32,
}

/// Picks from candidates that stand best first. The first is always picked.
pub(super) fn pick(
    candidates: &[Candidate],
    lambda: f32,
    likeness: impl Fn(Slot, Slot) -> f32,
) -> Vec<Picked> {
    let mut picks: Vec<Picked> = Vec::with_capacity(PICKS_MAX);
    while picks.len() < PICKS_MAX {
        let mut best: Option<Picked> = None;
        for (at, candidate) in candidates.iter().enumerate() {
            if picks.iter().any(|pick| pick.at == at) {
                continue;
            }
            let like = picks
                .iter()
                .map(|pick| likeness(candidates[pick.at].slot, candidate.slot))
                .fold(0.0, f32::max);
            let score = lambda * candidate.blended - (1.0 - lambda) * like;
            if best.is_none_or(|best| best.score < score) {
                best = Some(Picked { at, score });
            }
        }
        let Some(best) = best else { break };
        picks.push(best);
    }
    picks
}
