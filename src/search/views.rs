//! The texts that stand for a tool before the model: four views, one vector.

use crate::domain::{Catalog, Slot};
use crate::search::terms;

/// Names what the views are made of; a change of the recipe gives new cache keys.
pub(super) const RECIPE: &str = "four views 2";
/// As [`RECIPE`], of two views.
pub(super) const RECIPE_TWO: &str = "two views 1";
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
    let titled = format!("{title}: {name}: {description}");
    // A tool without arguments has its titled view twice: each view keeps its weight.
    let with_arguments = if arguments.is_empty() {
        titled.clone()
    } else {
        format!("{titled} ({})", arguments.join(", "))
    };
    vec![
        format!("{name}: {description}"),
        titled,
        with_arguments,
        format!("{title}: {name}"),
    ]
}

/// Two views, for a model that is too slow for four.
pub(super) fn two_views(catalog: &Catalog, slot: Slot) -> Vec<String> {
    let (server, tool) = (catalog.server_of(slot), catalog.tool(slot));
    let name = spaced(tool.name().as_str());
    let title = &server.title;
    let description: String = tool
        .description()
        .chars()
        .take(DESCRIPTION_CHARS_MAX)
        .collect();
    vec![
        format!("{title}: {name}: {description}"),
        format!("{title}: {name}"),
    ]
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
