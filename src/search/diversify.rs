//! Three that add something to one another: maximal marginal relevance (Carbonell and Goldstein,
//! 1998), with likeness counted only where it is great.

use crate::domain::Slot;
use crate::search::candidates::Candidate;
use crate::search::ranking::PICKS_MAX;

/// Likeness up to which two tools say different things. Tools of one vendor are this alike and
/// still three different answers: without the threshold MMR at .7 costs two points of hit@3.
const ALIKE_FROM: f32 = 0.8;
/// Likeness from which two tools are one.
const COPY_FROM: f32 = 0.98;
/// Likeness from which two tools of one name on different servers are one.
const NAMESAKE_FROM: f32 = 0.9;
/// What a copy loses.
const COPY_PENALTY: f32 = 0.3;
/// What a third tool of one server loses.
const CROWD_PENALTY: f32 = 0.05;
/// Candidates that are looked at. The thirtieth is never a third pick.
const DEPTH: usize = 30;

/// A pick: where it stands among the candidates, and its score when it was picked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Picked {
    pub(super) at: usize,
    pub(super) score: f32,
}

/// What is known of two tools.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    /// Cosine of their vectors.
    pub(super) likeness: f32,
    /// Whether they are of one server.
    pub(super) same_server: bool,
    /// Whether they have one name.
    pub(super) same_name: bool,
}

impl Pair {
    fn is_copy(self) -> bool {
        let namesakes = self.same_name && !self.same_server;
        COPY_FROM <= self.likeness || namesakes && NAMESAKE_FROM <= self.likeness
    }
}

/// Picks from candidates that stand best first. The first is always picked; copies and a third
/// tool of one server give way to others of like score.
pub(super) fn pick(
    candidates: &[Candidate],
    lambda: f32,
    pair: impl Fn(Slot, Slot) -> Pair,
) -> Vec<Picked> {
    let looked_at = &candidates[..candidates.len().min(DEPTH)];
    let mut picks: Vec<Picked> = Vec::with_capacity(PICKS_MAX);
    while picks.len() < PICKS_MAX {
        let mut best: Option<Picked> = None;
        for (at, candidate) in looked_at.iter().enumerate() {
            if picks.iter().any(|pick| pick.at == at) {
                continue;
            }
            let pairs = picks
                .iter()
                .map(|pick| pair(looked_at[pick.at].slot, candidate.slot));
            let score = score(candidate.blended, lambda, pairs);
            if best.is_none_or(|best| best.score < score) {
                best = Some(Picked { at, score });
            }
        }
        let Some(best) = best else { break };
        picks.push(best);
    }
    picks
}

fn score(blended: f32, lambda: f32, pairs: impl Iterator<Item = Pair>) -> f32 {
    let (mut like, mut copy, mut neighbours) = (0.0_f32, false, 0);
    for pair in pairs {
        like = like.max((pair.likeness - ALIKE_FROM) / (1.0 - ALIKE_FROM));
        copy |= pair.is_copy();
        neighbours += usize::from(pair.same_server);
    }
    let mut score = lambda * blended - (1.0 - lambda) * like;
    if copy {
        score -= COPY_PENALTY;
    }
    if 2 <= neighbours {
        score -= CROWD_PENALTY;
    }
    score
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::candidates::Lane;

    fn candidates(scores: &[f32]) -> Vec<Candidate> {
        let candidate = |(slot, blended): (usize, &f32)| Candidate {
            slot: Slot::new(slot),
            lane: Lane::Nearest,
            cosine: None,
            bm25: 0.0,
            evidence: 0.0,
            semantic: 0.0,
            keyword: 0.0,
            blended: *blended,
        };
        scores.iter().enumerate().map(candidate).collect()
    }

    fn picked(scores: &[f32], pair: impl Fn(usize, usize) -> Pair) -> Vec<usize> {
        pick(&candidates(scores), 0.9, |a, b| pair(a.index(), b.index()))
            .iter()
            .map(|pick| pick.at)
            .collect()
    }

    const APART: Pair = Pair {
        likeness: 0.5,
        same_server: false,
        same_name: false,
    };

    #[test]
    fn without_likeness_the_order_stays() {
        assert_eq!(picked(&[0.9, 0.8, 0.7, 0.6], |_, _| APART), [0, 1, 2]);
        assert_eq!(picked(&[0.9, 0.8], |_, _| APART), [0, 1]);
        assert!(picked(&[], |_, _| APART).is_empty());
    }

    #[test]
    fn a_copy_gives_way_to_a_tool_of_another_server() {
        let pair = |a: usize, b: usize| {
            let copies = a.min(b) == 0 && a.max(b) == 1;
            Pair {
                likeness: if copies { 0.93 } else { 0.5 },
                same_name: copies,
                ..APART
            }
        };
        assert_eq!(picked(&[0.9, 0.88, 0.7, 0.65], pair), [0, 2, 3]);
        assert_eq!(picked(&[0.9, 0.88, 0.7], pair), [0, 2, 1]);
    }

    #[test]
    fn a_third_tool_of_one_server_gives_way_to_an_equal_one_only() {
        let pair = |a: usize, b: usize| Pair {
            same_server: a < 3 && b < 3,
            ..APART
        };
        assert_eq!(picked(&[0.9, 0.8, 0.7, 0.68], pair), [0, 1, 3]);
        assert_eq!(picked(&[0.9, 0.8, 0.7, 0.6], pair), [0, 1, 2]);
    }
}
