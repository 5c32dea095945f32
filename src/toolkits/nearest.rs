//! Names that a caller may have meant.

use crate::domain::ToolId;
use crate::search::Shelf;

/// Names offered.
const NAMES_MAX: usize = 3;
/// Tools that are compared: on a shelf of more, those at its end are not offered.
const COMPARED_MAX: usize = 20_000;
/// Names less alike than this are no help.
const LIKENESS_MIN: f64 = 0.75;
/// Longest name that is compared, in characters.
const CHARS_MAX: usize = 200;

/// The most alike names on a shelf, ties by name.
pub(super) fn nearest(
    shelf: &Shelf,
    wanted: &str,
    name_of: impl Fn(&ToolId) -> String,
) -> Vec<String> {
    let wanted: String = wanted.chars().take(CHARS_MAX).collect();
    let wanted_tool = wanted.split_once("__").map_or(&*wanted, |(_, tool)| tool);
    let mut found: Vec<(f64, ToolId)> = Vec::new();
    for slot in shelf.slots().take(COMPARED_MAX) {
        let id = shelf.catalog().id(slot);
        let whole = super::name::whole(&id);
        // The tool alone as well: the toolkit is what callers forget.
        let likeness = strsim::jaro_winkler(&wanted, &whole)
            .max(strsim::jaro_winkler(wanted_tool, id.tool.as_str()));
        if LIKENESS_MIN <= likeness {
            found.push((likeness, id));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    found
        .iter()
        .take(NAMES_MAX)
        .map(|(_, id)| name_of(id))
        .collect()
}
