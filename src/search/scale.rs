//! Measuring the nearest-50 step on made-up vectors, at sizes that no published catalog has.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::time::Instant;

use crate::domain::Embedding;
use crate::search::codes::Codes;
use crate::search::graph::Graph;
use crate::search::nearest::{Engine, Matrix, Nearest};
use crate::search::ranking::Ranking;
use crate::search::scope::Allowed;

/// Coordinates, as the default model has.
const DIMENSIONS: usize = 384;
/// Tools about one matter.
const CLUSTER: usize = 40;
/// Matters of one field.
const FIELD: usize = 50;
/// Queries that are asked.
const QUERIES: usize = 200;

/// An engine to measure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// All vectors.
    Scan,
    /// The graph.
    Graph,
    /// Sign codes.
    Codes,
}

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// How many vectors.
    pub tools: usize,
    /// Time to build the engine, the vectors being there.
    pub build: Duration,
    /// Share of the true 50 that are found.
    pub recall_50: f64,
    /// Half of the searches took at most this.
    pub p50: Duration,
    /// All but a hundredth of the searches took at most this.
    pub p99: Duration,
}

/// Builds an engine over clustered vectors of a seed, and asks it queries near some of them.
/// Nothing if the vectors cannot be made.
pub fn measure(tools: usize, seed: u64, way: Way, ranking: &Ranking) -> Option<Scale> {
    let (matrix, queries) = world(tools, seed)?;
    let exact = Nearest::new(matrix, Engine::Scan);
    let expected: Vec<_> = queries
        .iter()
        .map(|query| exact.find(query, &Allowed::All, ranking))
        .collect();
    let matrix = exact.into_matrix();
    let start = Instant::now();
    let engine = match way {
        Way::Scan => Engine::Scan,
        Way::Graph => Engine::Graph(Graph::build(&matrix)),
        Way::Codes => Engine::Codes(Codes::new(&matrix)),
    };
    let build = start.elapsed();
    let nearest = Nearest::new(matrix, engine);
    let (mut times, mut hits, mut all) = (Vec::new(), 0, 0);
    for (query, expected) in queries.iter().zip(&expected) {
        let start = Instant::now();
        let found = nearest.find(query, &Allowed::All, ranking);
        times.push(start.elapsed());
        hits += found.iter().filter(|near| expected.contains(near)).count();
        all += expected.len();
    }
    times.sort_unstable();
    Some(Scale {
        tools,
        build,
        recall_50: hits as f64 / all.max(1) as f64,
        p50: times.get(times.len() / 2).copied()?,
        p99: times.get(times.len() * 99 / 100).copied()?,
    })
}

/// Vectors in fields of clusters, as tools lie: like ones side by side, and all in one half of
/// the space. Queries lie beside some of them.
fn world(tools: usize, seed: u64) -> Option<(Matrix, Vec<Embedding>)> {
    let mut random = StdRng::seed_from_u64(seed);
    let common = direction(&mut random);
    let mut matrix = Matrix::with_room(DIMENSIONS, tools);
    let (mut field, mut cluster) = (common.clone(), common.clone());
    for at in 0..tools {
        if at % (CLUSTER * FIELD) == 0 {
            field = mix(&common, &direction(&mut random), 0.8);
        }
        if at % CLUSTER == 0 {
            cluster = mix(&field, &direction(&mut random), 0.8);
        }
        let vector = mix(&cluster, &direction(&mut random), 0.8);
        matrix.push(&Embedding::new(vector).ok()?)?;
    }
    let queries = (0..QUERIES)
        .map(|_| {
            let near = matrix.row(crate::domain::Slot::new(
                random.random_range(0..tools.max(1)),
            ));
            Embedding::new(mix(near, &direction(&mut random), 0.8)).ok()
        })
        .collect::<Option<Vec<_>>>()?;
    Some((matrix, queries))
}

/// A direction drawn evenly enough: a sum of uniform numbers is nearly normal.
fn direction(random: &mut StdRng) -> Vec<f32> {
    let scale = (DIMENSIONS as f32).sqrt().recip();
    (0..DIMENSIONS)
        .map(|_| {
            let sum: f32 = (0..3).map(|_| random.random_range(-1.0_f32..1.0)).sum();
            sum * scale
        })
        .collect()
}

/// One vector and a share of another.
fn mix(a: &[f32], b: &[f32], share: f32) -> Vec<f32> {
    a.iter().zip(b).map(|(x, y)| x + share * y).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_finds_nearly_all_of_the_true_nearest() {
        let ranking = Ranking {
            shortlist: 200,
            ..Ranking::default()
        };
        for (way, least) in [(Way::Scan, 1.0), (Way::Graph, 0.9), (Way::Codes, 0.95)] {
            let scale = measure(600, 7, way, &ranking).unwrap();
            assert!(least <= scale.recall_50, "{way:?} {}", scale.recall_50);
        }
    }
}
