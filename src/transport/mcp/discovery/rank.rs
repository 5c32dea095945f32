//! Tools in the order in which a search shows them.

use std::collections::HashMap;

use crate::domain::Query;
use crate::registry::{Offered, Owner, ToolMetadata, rank};
use crate::search::FindOptions;
use crate::transport::desk::{Desk, Guest};
use crate::transport::mcp::discovery::CatalogTools;

/// Added to a rank before its reciprocal counts; the first of a list has the score 1.
const FUSION_K: f32 = 60.0;

/// How a query is held against tools.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Match {
    /// By the tiers of the fuzzy match.
    #[default]
    Fuzzy,
    /// The catalog's as `search_tools` ranks its candidates, all others by the fuzzy match, both
    /// lists fused by reciprocal rank.
    Hybrid,
}

/// A tool with its score.
type Ranked = Vec<(Offered, f32)>;

/// All, by name: to no query all fit alike.
pub(super) fn by_name(mut tools: Vec<Offered>, most: usize) -> Ranked {
    tools.sort_by(|a, b| a.tool.name().cmp(b.tool.name()));
    tools
        .into_iter()
        .take(most)
        .map(|offered| (offered, 1.0))
        .collect()
}

/// Those that the words of a query fit, beside the runtime: thousands take milliseconds.
pub(super) async fn fuzzy(query: Query, tools: Vec<Offered>, most: usize) -> Ranked {
    let ranking = tokio::task::spawn_blocking(move || {
        let metadata: Vec<&ToolMetadata> = tools.iter().map(|offered| &*offered.tool).collect();
        let best = rank(query.as_str(), &metadata).into_iter().take(most);
        best.filter_map(|scored| Some((tools.get(scored.at)?.clone(), scored.score)))
            .collect()
    });
    // Only a panic gives nothing, and the runtime has told of it.
    ranking.await.unwrap_or_default()
}

/// The catalog's by the core's ranking among all others.
pub(super) async fn hybrid(
    desk: &Desk,
    guest: &Guest,
    query: &Query,
    tools: Vec<Offered>,
    (names, most): (&CatalogTools, usize),
) -> Ranked {
    let is_catalogs = |offered: &Offered| matches!(offered.owner, Owner::Catalog);
    let (catalog, others): (Vec<_>, Vec<_>) = tools.into_iter().partition(is_catalogs);
    // By name and not by slot: the catalog may have changed since the tools were listed. One whose
    // name a provider has taken is not among them.
    let mut catalog: HashMap<String, Offered> = catalog
        .into_iter()
        .map(|offered| (offered.tool.name().to_owned(), offered))
        .collect();
    let options = FindOptions::hybrid(most);
    let (found, others) = tokio::join!(
        desk.ranked(guest, query, &options),
        fuzzy(query.clone(), others, most)
    );
    let hits = found.hits.iter();
    let hits = hits.filter_map(|hit| catalog.remove(&names.name_of(&found.id(*hit))));
    let mut fused: Ranked = reciprocal(hits)
        .chain(reciprocal(others.into_iter().map(|(offered, _)| offered)))
        .collect();
    // Stable, and providers go first among equals.
    fused.sort_by(|(a, first), (b, second)| {
        let better = second.total_cmp(first);
        better.then_with(|| is_catalogs(a).cmp(&is_catalogs(b)))
    });
    fused.truncate(most);
    fused
}

fn reciprocal(list: impl Iterator<Item = Offered>) -> impl Iterator<Item = (Offered, f32)> {
    let score = |at: usize| (FUSION_K + 1.0) / (FUSION_K + 1.0 + at as f32);
    list.enumerate()
        .map(move |(at, offered)| (offered, score(at)))
}
