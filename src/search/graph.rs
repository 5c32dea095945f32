//! The HNSW graph, by the crate `hnsw_rs` (Malkov and Yashunin, 2016).

use std::path::{Path, PathBuf};

use hnsw_rs::prelude::{AnnT, Distance, Hnsw, HnswIo};
use sha2::{Digest, Sha256};

use crate::domain::{Embedding, Slot};
use crate::search::nearest::{Matrix, dot};
use crate::search::scope;

/// Neighbours of a point; 0.9996 of the true 50 are found with it at `ef` 128 over 3,200 tools.
const NEIGHBOURS: usize = 16;
/// Width of the search at insertion.
const EF_BUILD: usize = 200;
/// Layers at most.
const LAYERS: usize = 16;
/// From how many vectors on several threads insert. Their order is not fixed, so the graph is
/// not the same each time; below, where it is cheap, it is.
const PARALLEL_FROM: usize = 20_000;
/// Part of the name of a dump: other parameters make another graph.
const RECIPE: &str = "hnsw 16 200 1";
/// What `hnsw_rs` appends to the name of a dump.
const PARTS: [&str; 2] = [".hnsw.graph", ".hnsw.data"];

/// One minus the cosine of unit vectors. Clamped: rounding takes a dot product over 1, and the
/// graph does not bear distances below 0.
#[derive(Clone, Copy, Debug, Default)]
struct Cosine;

impl Distance<f32> for Cosine {
    fn eval(&self, a: &[f32], b: &[f32]) -> f32 {
        (1.0 - dot(a, b)).max(0.0)
    }
}

/// Why a graph was not kept on disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DumpGraphError {
    /// The library failed.
    #[error("cannot dump the graph")]
    Dump(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The files could not be finished.
    #[error("cannot write `{path}`")]
    Write {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// What is asked of the graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    /// How many points.
    pub(super) most: usize,
    /// Width of the search.
    pub(super) ef: usize,
    /// One bit a slot: only these may be found.
    pub(super) bits: Option<&'a [u64]>,
}

/// A graph over all vectors of a catalog.
pub(super) struct Graph(Hnsw<'static, f32, Cosine>);

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Graph({} points)", self.0.get_nb_point())
    }
}

impl Graph {
    /// Builds it. Takes about a second for 3,000 vectors: call it off the runtime.
    pub(super) fn build(matrix: &Matrix) -> Self {
        let graph = Hnsw::new(NEIGHBOURS, matrix.len(), LAYERS, EF_BUILD, Cosine);
        let rows: Vec<(&[f32], usize)> = (0..matrix.len())
            .map(|at| (matrix.row(Slot::new(at)), at))
            .collect();
        if rows.len() < PARALLEL_FROM {
            for row in rows {
                graph.insert_slice(row);
            }
        } else {
            graph.parallel_insert_slice(&rows);
        }
        Self(graph)
    }

    /// The nearest points, those only whose bit is set where bits are given.
    pub(super) fn nearest(&self, query: &Embedding, wanted: Wanted<'_>) -> Vec<Slot> {
        let allowed = |at: &usize| {
            wanted
                .bits
                .is_none_or(|bits| scope::has(bits, Slot::new(*at)))
        };
        let filter = wanted
            .bits
            .map(|_| &allowed as &dyn hnsw_rs::prelude::FilterT);
        self.0
            .search_filter(
                query.as_slice(),
                wanted.most,
                wanted.ef.max(wanted.most),
                filter,
            )
            .into_iter()
            .map(|neighbour| Slot::new(neighbour.d_id))
            .collect()
    }

    /// Writes the graph into a folder, with a checksum beside it. Older graphs of the same model
    /// are removed.
    pub(super) fn dump(&self, folder: &Path, name: &DumpName) -> Result<(), DumpGraphError> {
        name.remove_others(folder);
        self.0
            .file_dump(folder, &name.full)
            .map_err(|source| DumpGraphError::Dump(source.into()))?;
        let path = folder.join(format!("{}.sha256", name.full));
        let wrong = |source| DumpGraphError::Write {
            path: path.clone(),
            source,
        };
        let sum = checksum(folder, name).map_err(wrong)?;
        std::fs::write(&path, sum).map_err(wrong)
    }

    /// Reads a dump back, when one is there and sound. The library ends the process over a
    /// truncated file, so nothing is read whose checksum does not fit.
    pub(super) fn load(folder: &Path, name: &DumpName, points: usize) -> Option<Self> {
        let wanted = std::fs::read(folder.join(format!("{}.sha256", name.full))).ok()?;
        if checksum(folder, name).ok()? != wanted {
            return None;
        }
        // The loader borrows itself for as long as the graph lives. It is two hundred bytes and
        // there is one for each start, so it is given away rather than tied to the graph.
        let loader: &'static HnswIo = Box::leak(Box::new(HnswIo::new(folder, &name.full)));
        let graph = loader.load_hnsw_with_dist(Cosine).ok()?;
        (graph.get_nb_point() == points).then_some(Self(graph))
    }
}

/// Names a dump after what it was built from.
#[derive(Clone, Debug)]
pub(super) struct DumpName {
    full: String,
    prefix: String,
}

impl DumpName {
    /// For the graph of a model over vectors with these keys, in order.
    pub(super) fn new<'a, I: Iterator<Item = &'a [u8; 32]>>(model: &str, keys: I) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(RECIPE);
        for key in keys {
            hasher.update(key);
        }
        let digest = hex(&hasher.finalize());
        let prefix = format!(
            "graph-{}",
            hex(&Sha256::digest(model)).get(..8).unwrap_or("0")
        );
        Self {
            full: format!("{prefix}-{}", digest.get(..24).unwrap_or("0")),
            prefix,
        }
    }

    /// Removes dumps of the same model over other vectors. What cannot be removed stays, which
    /// costs room and nothing else.
    fn remove_others(&self, folder: &Path) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(&self.prefix) && !name.starts_with(&self.full) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

fn checksum(folder: &Path, name: &DumpName) -> std::io::Result<Vec<u8>> {
    let mut sum = String::new();
    for part in PARTS {
        let mut file = std::fs::File::open(folder.join(format!("{}{part}", name.full)))?;
        let mut hasher = Sha256::new();
        std::io::copy(&mut file, &mut hasher)?;
        sum.push_str(&hex(&hasher.finalize()));
        sum.push('\n');
    }
    Ok(sum.into_bytes())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;

    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::nearest::tests::vectors;

    #[test]
    fn a_dump_is_read_back_and_a_damaged_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let vectors = vectors(200, 5);
        let graph = Graph::build(&Matrix::new(&vectors).unwrap());
        let name = DumpName::new("m", [[1; 32], [2; 32]].iter());
        assert!(Graph::load(folder.path(), &name, 200).is_none());
        graph.dump(folder.path(), &name).unwrap();
        let again = Graph::load(folder.path(), &name, 200).unwrap();
        let wanted = Wanted {
            most: 10,
            ef: 64,
            bits: None,
        };
        let found = again.nearest(&vectors[3], wanted);
        assert_eq!(found[0], Slot::new(3));
        assert_eq!(found, graph.nearest(&vectors[3], wanted));
        assert!(Graph::load(folder.path(), &name, 199).is_none());
        let data = folder.path().join(format!("{}.hnsw.data", name.full));
        let bytes = std::fs::read(&data).unwrap();
        std::fs::write(&data, &bytes[..bytes.len() - 9]).unwrap();
        assert!(Graph::load(folder.path(), &name, 200).is_none());
        let other = DumpName::new("m", [[3; 32]].iter());
        graph.dump(folder.path(), &other).unwrap();
        assert!(!data.exists());
    }
}
