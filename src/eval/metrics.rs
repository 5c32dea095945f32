//! How good one answer is.

use std::collections::HashSet;

use crate::domain::ToolId;

/// Depths at which recall is taken.
pub(super) const RECALL_AT: [usize; 3] = [3, 5, 50];
/// Depth of MRR and nDCG.
const DEPTH: usize = 10;

/// The score of one query.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Score {
    pub(super) hit_1: f64,
    pub(super) hit_3: f64,
    pub(super) recall: [f64; 3],
    pub(super) mrr_10: f64,
    pub(super) ndcg_10: f64,
}

impl Score {
    /// Of a list, best first, against the set of right tools.
    pub(super) fn of(found: &[ToolId], relevant: &HashSet<ToolId>) -> Self {
        let hits: Vec<bool> = found.iter().map(|id| relevant.contains(id)).collect();
        let within = |depth: usize| hits.iter().take(depth).filter(|hit| **hit).count();
        let flag = |yes: bool| if yes { 1.0 } else { 0.0 };
        let first = hits.iter().take(DEPTH).position(|hit| *hit);
        let gain = |place: usize| 1.0 / (place as f64 + 2.0).log2();
        let gained: f64 = (0..DEPTH.min(hits.len()))
            .filter(|at| hits[*at])
            .map(gain)
            .sum();
        let ideal: f64 = (0..DEPTH.min(relevant.len())).map(gain).sum();
        let all = relevant.len().max(1) as f64;
        Self {
            hit_1: flag(0 < within(1)),
            hit_3: flag(0 < within(3)),
            recall: RECALL_AT.map(|depth| within(depth) as f64 / all),
            mrr_10: first.map_or(0.0, |place| 1.0 / (place as f64 + 1.0)),
            ndcg_10: if ideal <= 0.0 { 0.0 } else { gained / ideal },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "the figures are exact in binary")]
    fn figures_are_those_of_the_textbook() {
        let ids = |names: &[&str]| -> Vec<ToolId> {
            names
                .iter()
                .map(|n| format!("s/{n}").parse().unwrap())
                .collect()
        };
        let relevant: HashSet<ToolId> = ids(&["b", "d"]).into_iter().collect();
        let score = Score::of(&ids(&["a", "b", "c", "d"]), &relevant);
        assert_eq!((score.hit_1, score.hit_3), (0.0, 1.0));
        assert_eq!(score.recall, [0.5, 1.0, 1.0]);
        assert_eq!(score.mrr_10, 0.5);
        let expected = (1.0 / 3_f64.log2() + 1.0 / 5_f64.log2()) / (1.0 + 1.0 / 3_f64.log2());
        assert!((score.ndcg_10 - expected).abs() < 1e-12);
        assert_eq!(Score::of(&[], &relevant), Score::default());
    }
}
