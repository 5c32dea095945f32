//! The texts that stand for a tool before the model: four views, one vector.

use crate::domain::{Catalog, Slot};
use crate::search::terms;

/// Names what the views are made of; a change of the recipe gives new cache keys.
pub(super) const RECIPE: &str = "four views 1";
/// As [`RECIPE`], of the single view.
pub(super) const RECIPE_SINGLE: &str = "one view 1";
/// Characters of a description that the model is shown. Its window is 256 tokens.
const DESCRIPTION_CHARS_MAX: usize = 1_600;

/// The views of a tool. The vector of a tool is their normalised mean: it beats every single one
/// on the labelled queries (`docs/ranking.md`).
pub(super) fn views(catalog: &Catalog, slot: Slot) -> Vec<String> {
    let (server, tool) = (catalog.server_of(slot), catalog.tool(slot));
    let name = spaced(tool.name().as_str());
    let title = &server.title;
    let description: String = tool
        .description()
        .chars()
        .take(DESCRIPTION_CHARS_MAX)
        .collect();
    let arguments: Vec<&str> = tool
        .input()
        .arguments()
        .iter()
        .map(|argument| &*argument.name)
        .collect();
    let mut views = vec![
        format!("{name}: {description}"),
        format!("{title}: {name}: {description}"),
        format!("{title}: {name}"),
    ];
    if !arguments.is_empty() {
        let arguments = arguments.join(", ");
        views.push(format!("{title}: {name}: {description} ({arguments})"));
    }
    views
}

/// The one view for a model that is too slow for four.
pub(super) fn single_view(catalog: &Catalog, slot: Slot) -> String {
    let (server, tool) = (catalog.server_of(slot), catalog.tool(slot));
    let name = spaced(tool.name().as_str());
    let description: String = tool
        .description()
        .chars()
        .take(DESCRIPTION_CHARS_MAX)
        .collect();
    format!("{}: {name}: {description}", server.title)
}

/// An identifier as words between spaces.
fn spaced(name: &str) -> String {
    let words = terms::words(name).into_iter().flat_map(|word| {
        if word.parts.is_empty() {
            vec![word.whole]
        } else {
            word.parts
        }
    });
    words.collect::<Vec<_>>().join(" ")
}
