//! The tools nearest to a vector: by an exact scan, or by the graph where there are many.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::LazyLock;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::{ParallelIterator, ParallelSlice};

use crate::domain::{Embedding, Slot};
use crate::search::codes::Codes;
use crate::search::graph::{Graph, Wanted};
use crate::search::ranking::Ranking;
use crate::search::scope::Allowed;

/// A tenant who may use at most one in this many tools is served by an exact scan of those: the
/// graph would visit mostly what it must not return.
const SCAN_ONE_IN: usize = 4;
/// The codes put forward at least one tool in this many.
const SHORTLIST_ONE_IN: usize = 200;
/// From how many slots on a shortlist is gone through by several threads, each of which takes
/// [`PART`] at a time.
const PARALLEL_FROM: usize = 2_048;
const PART: usize = 512;
/// Numbers that are multiplied side by side; the compiler turns each group into SIMD.
const LANES: usize = 32;

/// A tool and its cosine to the query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Near {
    pub(super) slot: Slot,
    pub(super) cosine: f32,
}

impl Near {
    /// Higher cosine first, ties by slot.
    pub(super) fn order(self, other: Self) -> Ordering {
        other
            .cosine
            .total_cmp(&self.cosine)
            .then(self.slot.cmp(&other.slot))
    }
}

/// All vectors of a catalog, by slot, and what finds the nearest among them.
#[derive(Debug)]
pub(super) struct Nearest {
    matrix: Matrix,
    engine: Engine,
}

/// What finds the candidates of an exact comparison.
#[derive(Debug)]
pub(super) enum Engine {
    /// All are compared.
    Scan,
    /// A graph is walked.
    Graph(Graph),
    /// Signs are compared, then the best by sign.
    Codes(Codes),
}

/// Vectors of one length, one behind the other.
#[derive(Debug)]
pub(super) struct Matrix {
    dimensions: usize,
    numbers: Vec<f32>,
}

impl Matrix {
    /// From vectors in the order of slots. `None` when their lengths differ.
    pub(super) fn new(vectors: &[Embedding]) -> Option<Self> {
        let dimensions = vectors.first().map_or(0, Embedding::dimensions);
        let mut matrix = Self::with_room(dimensions, vectors.len());
        for vector in vectors {
            matrix.push(vector)?;
        }
        Some(matrix)
    }

    /// An empty one with room.
    pub(super) fn with_room(dimensions: usize, vectors: usize) -> Self {
        Self {
            dimensions,
            numbers: Vec::with_capacity(dimensions * vectors),
        }
    }

    /// Adds a vector. `None` when its length is another.
    pub(super) fn push(&mut self, vector: &Embedding) -> Option<()> {
        if vector.dimensions() != self.dimensions {
            return None;
        }
        self.numbers.extend_from_slice(vector.as_slice());
        Some(())
    }

    /// How many vectors there are.
    pub(super) fn len(&self) -> usize {
        self.numbers.len().checked_div(self.dimensions).unwrap_or(0)
    }

    /// Coordinates of a vector.
    pub(super) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The vector in a slot.
    pub(super) fn row(&self, slot: Slot) -> &[f32] {
        let start = slot.index() * self.dimensions;
        self.numbers
            .get(start..start + self.dimensions)
            .unwrap_or_default()
    }
}

impl Nearest {
    /// Over a matrix, with an engine built from it.
    pub(super) fn new(matrix: Matrix, engine: Engine) -> Self {
        Self { matrix, engine }
    }

    /// The vectors alone.
    pub(super) fn into_matrix(self) -> Matrix {
        self.matrix
    }

    /// Cosine of a query and the tool in a slot.
    pub(super) fn cosine(&self, query: &Embedding, slot: Slot) -> f32 {
        dot(query.as_slice(), self.matrix.row(slot))
    }

    /// Cosine of two tools.
    pub(super) fn likeness(&self, a: Slot, b: Slot) -> f32 {
        dot(self.matrix.row(a), self.matrix.row(b))
    }

    /// The nearest allowed tools, best first. Empty for a vector of another model.
    pub(super) fn find(
        &self,
        query: &Embedding,
        allowed: &Allowed,
        ranking: &Ranking,
    ) -> Vec<Near> {
        if query.dimensions() != self.matrix.dimensions() {
            return Vec::new();
        }
        let few = |slots: &[Slot]| slots.len() * SCAN_ONE_IN <= self.matrix.len();
        let bits = match allowed {
            Allowed::Some { slots, .. } if few(slots) => {
                return self.scan(query, slots.iter().copied(), ranking.pool);
            }
            Allowed::Some { bits, .. } => Some(&**bits),
            Allowed::All => None,
        };
        match &self.engine {
            Engine::Graph(graph) => self.walk(graph, query, bits, ranking),
            Engine::Codes(codes) => {
                let shortlist = shortlist(self.matrix.len(), ranking);
                let slots = codes.shortlist(query, shortlist, bits);
                if slots.len() < PARALLEL_FROM {
                    return self.scan(query, slots.into_iter(), ranking.pool);
                }
                // The best of each part, then of those: the order is total, whoever counts.
                let parts = slots.par_chunks(PART);
                let mut found: Vec<Near> = parts
                    .flat_map_iter(|part| self.scan(query, part.iter().copied(), ranking.pool))
                    .collect();
                found.sort_unstable_by(|a, b| a.order(*b));
                found.truncate(ranking.pool);
                found
            }
            Engine::Scan => {
                let slots = (0..self.matrix.len()).map(Slot::new);
                let slots = slots.filter(|slot| allowed.allows(*slot));
                self.scan(query, slots, ranking.pool)
            }
        }
    }

    fn walk(
        &self,
        graph: &Graph,
        query: &Embedding,
        bits: Option<&[u64]>,
        ranking: &Ranking,
    ) -> Vec<Near> {
        let wanted = Wanted {
            most: ranking.pool,
            ef: ranking.ef,
            bits,
        };
        // The graph's distances are rounded otherwise than a scan's: the order is settled here.
        let found = graph.nearest(query, wanted).into_iter();
        let mut found: Vec<Near> = found.map(|slot| self.near(query, slot)).collect();
        found.sort_by(|a, b| a.order(*b));
        found
    }

    fn near(&self, query: &Embedding, slot: Slot) -> Near {
        Near {
            slot,
            cosine: self.cosine(query, slot),
        }
    }

    fn scan(&self, query: &Embedding, slots: impl Iterator<Item = Slot>, most: usize) -> Vec<Near> {
        // A heap with the worst of the best on top.
        let mut best: BinaryHeap<Worst> = BinaryHeap::with_capacity(most + 1);
        for slot in slots {
            let near = self.near(query, slot);
            if best.len() < most {
                best.push(Worst(near));
            } else if best.peek().is_some_and(|worst| near.order(worst.0).is_lt()) {
                best.pop();
                best.push(Worst(near));
            }
        }
        let mut found: Vec<Near> = best.into_iter().map(|worst| worst.0).collect();
        found.sort_by(|a, b| a.order(*b));
        found
    }
}

/// How many the codes put forward: at least one in so many, so that recall holds as the catalog
/// grows.
fn shortlist(tools: usize, ranking: &Ranking) -> usize {
    ranking.shortlist.max(tools / SHORTLIST_ONE_IN)
}

/// Ordered so that the worst comes out of a heap first.
#[derive(PartialEq)]
struct Worst(Near);

impl Eq for Worst {}

impl Ord for Worst {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.order(other.0)
    }
}

impl PartialOrd for Worst {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Dot product, with the widest registers that the processor has. The order of additions is
/// fixed and nothing is fused, so that equal vectors give equal scores on any machine.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    static ARCH: LazyLock<Arch> = LazyLock::new(Arch::new);
    ARCH.dispatch(Dot { a, b })
}

/// Two vectors to be multiplied.
struct Dot<'a> {
    a: &'a [f32],
    b: &'a [f32],
}

impl WithSimd for Dot<'_> {
    type Output = f32;

    #[expect(
        clippy::inline_always,
        reason = "only what is inlined here is compiled for the wider registers"
    )]
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f32 {
        let (a_groups, a_rest) = self.a.as_chunks::<LANES>();
        let (b_groups, b_rest) = self.b.as_chunks::<LANES>();
        let mut sums = [0.0_f32; LANES];
        for (x, y) in a_groups.iter().zip(b_groups) {
            for lane in 0..LANES {
                sums[lane] += x[lane] * y[lane];
            }
        }
        let rest: f32 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
        sums.iter().sum::<f32>() + rest
    }
}

#[cfg(test)]
pub(in crate::search) mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    pub(in crate::search) fn vectors(count: usize, seed: u64) -> Vec<Embedding> {
        let mut rng = StdRng::seed_from_u64(seed);
        (0..count)
            .map(|_| {
                Embedding::new((0..24).map(|_| rng.random_range(-1.0..1.0)).collect()).unwrap()
            })
            .collect()
    }

    #[test]
    fn a_scan_finds_the_nearest_in_order_and_only_what_is_allowed() {
        let vectors = vectors(300, 1);
        let nearest = Nearest::new(Matrix::new(&vectors).unwrap(), Engine::Scan);
        let ranking = Ranking {
            pool: 10,
            ..Ranking::default()
        };
        let mut expected: Vec<Near> = (0..300)
            .map(|at| Near {
                slot: Slot::new(at),
                cosine: nearest.cosine(&vectors[7], Slot::new(at)),
            })
            .collect();
        expected.sort_by(|a, b| a.order(*b));
        let found = nearest.find(&vectors[7], &Allowed::All, &ranking);
        assert_eq!(found, expected[..10]);
        let some = Allowed::from_slots(300, (0..300).filter(|at| at % 3 == 0).map(Slot::new));
        let found = nearest.find(&vectors[7], &some, &ranking);
        expected.retain(|near| near.slot.index() % 3 == 0);
        assert_eq!(found, expected[..10]);
    }

    #[test]
    fn a_vector_of_another_length_finds_nothing() {
        let nearest = Nearest::new(Matrix::new(&vectors(5, 1)).unwrap(), Engine::Scan);
        let other = Embedding::new(vec![1.0; 3]).unwrap();
        assert!(
            nearest
                .find(&other, &Allowed::All, &Ranking::default())
                .is_empty()
        );
    }

    #[test]
    fn graph_and_codes_agree_with_the_scan() {
        let vectors = vectors(800, 2);
        let matrix = || Matrix::new(&vectors).unwrap();
        let graph = Engine::Graph(Graph::build(&matrix()));
        agrees(&vectors, &Nearest::new(matrix(), graph));
        let codes = Engine::Codes(Codes::new(&matrix()));
        agrees(&vectors, &Nearest::new(matrix(), codes));
    }

    fn agrees(vectors: &[Embedding], with: &Nearest) {
        let vectors = vectors.to_vec();
        let without = Nearest::new(Matrix::new(&vectors).unwrap(), Engine::Scan);
        let (mut hits, mut filtered) = (0, 0);
        let half = Allowed::from_slots(800, (0..800).filter(|at| at % 2 == 0).map(Slot::new));
        let ranking = Ranking {
            shortlist: 400,
            ..Ranking::default()
        };
        for query in self::vectors(20, 3) {
            for (allowed, count) in [(&Allowed::All, &mut hits), (&half, &mut filtered)] {
                let exact = without.find(&query, allowed, &ranking);
                let found = with.find(&query, allowed, &ranking);
                assert_eq!(found.len(), 50);
                assert!(found.iter().all(|near| allowed.allows(near.slot)));
                *count += found.iter().filter(|near| exact.contains(near)).count();
            }
        }
        assert!(950 <= hits && 900 <= filtered, "{hits} {filtered}");
    }
}
