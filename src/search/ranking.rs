//! What the ranking can be tuned by, with the values that the labelled queries gave.

/// Share of the vector score in the blend. `docs/ranking.md` has the figures: hit@3 is flat from
/// .60 to .80.
pub const VECTOR_SHARE: f32 = 0.68;

/// Tools that a search answers with.
pub const PICKS_MAX: usize = 3;

/// Tunables of the ranking. The defaults are the design's.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// Share of the vector score in the blend, 0 to 1; the keyword score has the rest.
    pub vector_share: f32,
    /// How much a pick's own score counts against its likeness to earlier picks, 0 to 1.
    /// At 1 nothing is diversified.
    pub lambda: f32,
    /// How many nearest tools are candidates.
    pub pool: usize,
    /// How many more candidates the keyword lane may add.
    pub lane: usize,
    /// Width of the graph search.
    pub ef: usize,
    /// From how many tools on the graph takes the place of the exact scan.
    pub graph_from: usize,
    /// From how many tools on sign codes take the place of the graph, which is slow to build.
    pub codes_from: usize,
    /// How many tools the codes put forward for exact comparison, at least.
    pub shortlist: usize,
    /// Abbreviations beside the built-in ones, as `(short, long)`; an entry replaces a built-in
    /// one, and an empty long form removes it.
    pub abbreviations: Vec<(Box<str>, Box<str>)>,
}

impl Default for Ranking {
    fn default() -> Self {
        Self {
            vector_share: VECTOR_SHARE,
            lambda: 0.9,
            pool: 50,
            lane: 20,
            ef: 64,
            graph_from: 1_000,
            codes_from: 20_000,
            shortlist: 2_000,
            abbreviations: Vec::new(),
        }
    }
}
