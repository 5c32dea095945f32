//! One bit a coordinate: a shortlist from a hundred thousand vectors and more without a graph.
//!
//! The sign of each coordinate is kept. Few differing signs mean a small angle (Charikar, 2002),
//! so the nearest by signs, a few thousand of them, hold nearly all of the truly nearest, and
//! those are told apart by their real vectors. Building takes one pass.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSlice, ParallelSliceMut};

use crate::domain::{Embedding, Slot};
use crate::search::nearest::Matrix;
use crate::search::scope;

/// Bits of a machine word.
const WORD: usize = 64;
/// Words of a code that are compared in one fixed step: 384 dimensions.
const STEP: usize = 6;
/// From how many codes on several threads compare.
const PARALLEL_FROM: usize = 200_000;
/// Codes that one thread takes at a time.
const PART: usize = 1 << 15;

/// The signs of all vectors, by slot.
#[derive(Debug)]
pub(super) struct Codes {
    /// Words of one code; a multiple of [`STEP`].
    words: usize,
    bits: Vec<u64>,
}

impl Codes {
    /// Takes the signs of vectors.
    pub(super) fn new(matrix: &Matrix) -> Self {
        let words = matrix.dimensions().div_ceil(WORD).next_multiple_of(STEP);
        let mut bits = Vec::with_capacity(words * matrix.len());
        for at in 0..matrix.len() {
            bits.extend(signs(matrix.row(Slot::new(at)), words));
        }
        Self { words, bits }
    }

    /// The slots with the fewest signs other than the query's, about `most` of them: all that
    /// are as near as the last. Of those only whose bit is set where bits are given.
    pub(super) fn shortlist(
        &self,
        query: &Embedding,
        most: usize,
        allowed: Option<&[u64]>,
    ) -> Vec<Slot> {
        let query = signs(query.as_slice(), self.words);
        let mut differing = vec![0_u16; self.bits.len() / self.words.max(1)];
        let may = |at: usize| allowed.is_none_or(|bits| scope::has(bits, Slot::new(at)));
        let compare = |part: usize, differing: &mut [u16]| {
            let start = part * PART;
            let bits = self.bits.get(start * self.words..).unwrap_or_default();
            Arch::new().dispatch(Compare {
                bits,
                query: &query,
                differing,
            });
            // How many allowed codes differ in so many bits.
            let mut counts = vec![0_usize; self.words * WORD + 1];
            for (at, differing) in (start..).zip(differing) {
                counts[usize::from(*differing)] += usize::from(may(at));
            }
            counts
        };
        let pick = |part: usize, differing: &[u16], limit: usize| -> Vec<Slot> {
            let near = (part * PART..).zip(differing);
            near.filter(|(at, differing)| usize::from(**differing) <= limit && may(*at))
                .map(|(at, _)| Slot::new(at))
                .collect()
        };
        // Each slot's count is its own and sums have no order: threads change nothing.
        if differing.len() < PARALLEL_FROM {
            let parts = differing.chunks_mut(PART).enumerate();
            let counts = parts.map(|(part, differing)| compare(part, differing));
            let limit = limit(&counts.reduce(add).unwrap_or_default(), most);
            let parts = differing.chunks(PART).enumerate();
            return parts
                .flat_map(|(part, differing)| pick(part, differing, limit))
                .collect();
        }
        let parts = differing.par_chunks_mut(PART).enumerate();
        let counts = parts.map(|(part, differing)| compare(part, differing));
        let limit = limit(&counts.reduce_with(add).unwrap_or_default(), most);
        let parts = differing.par_chunks(PART).enumerate();
        parts
            .flat_map_iter(|(part, differing)| pick(part, differing, limit))
            .collect()
    }
}

fn add(mut sums: Vec<usize>, more: Vec<usize>) -> Vec<usize> {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum += more;
    }
    sums
}

/// The number of differing bits within which at least `most` codes are.
fn limit(counts: &[usize], most: usize) -> usize {
    let mut total = 0;
    let within = counts.iter().position(|count| {
        total += count;
        most <= total
    });
    within.unwrap_or(counts.len())
}

/// The signs of a vector, one bit each.
fn signs(vector: &[f32], words: usize) -> Vec<u64> {
    let mut code = vec![0_u64; words];
    for (at, x) in vector.iter().enumerate() {
        code[at / WORD] |= u64::from(0.0 < *x) << (at % WORD);
    }
    code
}

/// Counts the differing bits of a query and all codes.
struct Compare<'a> {
    bits: &'a [u64],
    query: &'a [u64],
    differing: &'a mut [u16],
}

impl WithSimd for Compare<'_> {
    type Output = ();

    #[expect(
        clippy::inline_always,
        reason = "only what is inlined here is compiled for the wider registers"
    )]
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let (query, _) = self.query.as_chunks::<STEP>();
        let codes = self.bits.chunks_exact(self.query.len().max(1));
        for (code, differing) in codes.zip(self.differing) {
            let (steps, _) = code.as_chunks::<STEP>();
            let mut count = 0;
            for (code, query) in steps.iter().zip(query) {
                for word in 0..STEP {
                    count += (code[word] ^ query[word]).count_ones();
                }
            }
            *differing = u16::try_from(count).unwrap_or(u16::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::nearest::tests::vectors;

    #[test]
    fn the_shortlist_holds_the_nearest_by_sign_and_only_allowed_slots() {
        let vectors = vectors(500, 3);
        let codes = Codes::new(&Matrix::new(&vectors).unwrap());
        let found = codes.shortlist(&vectors[9], 20, None);
        assert!(found.contains(&Slot::new(9)));
        assert!((20..60).contains(&found.len()), "{}", found.len());
        let mut bits = vec![0_u64; 8];
        bits[0] = 0b111;
        let few = codes.shortlist(&vectors[9], 20, Some(&bits));
        assert_eq!(few, [0, 1, 2].map(Slot::new));
    }
}
