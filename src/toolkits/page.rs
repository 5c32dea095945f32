//! A long list in pages.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::domain::{Catalog, Slot, ToolId};
use crate::search::Shelf;

/// Most tools of a page.
const TOOLS_MAX: usize = 100;
/// Most bytes of a page's tools; a single larger one is a page of its own.
const BYTES_MAX: usize = 256 * 1024;
/// Longest cursor, in characters.
const CURSOR_CHARS_MAX: usize = 1_024;

/// A cursor is none that a page gave.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the cursor is none that a page gave")]
pub struct CursorError;

/// One page.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Its tools, in the order of their ids.
    pub slots: Vec<Slot>,
    /// What the next page begins behind; none on the last one.
    pub next: Option<String>,
}

/// The page behind a cursor, or the first. A cursor is the id of the last tool that was listed, so
/// that it stays good when the catalog changes between two pages.
pub(super) fn page(
    shelf: &Shelf,
    slots: impl Iterator<Item = Slot>,
    cursor: Option<&str>,
    weigh: impl Fn(Slot) -> usize,
) -> Result<Page, CursorError> {
    let start = match cursor {
        None => 0,
        Some(cursor) => behind(shelf.catalog(), &read(cursor)?),
    };
    let mut page = Page {
        slots: Vec::new(),
        next: None,
    };
    let mut bytes = 0;
    for slot in slots.filter(|slot| start <= slot.index()) {
        bytes += weigh(slot);
        let full = TOOLS_MAX <= page.slots.len() || BYTES_MAX < bytes;
        if let Some(last) = page.slots.last().filter(|_| full) {
            let id = shelf.catalog().id(*last).to_string();
            page.next = Some(URL_SAFE_NO_PAD.encode(id));
            break;
        }
        page.slots.push(slot);
    }
    Ok(page)
}

fn read(cursor: &str) -> Result<ToolId, CursorError> {
    if CURSOR_CHARS_MAX < cursor.len() {
        return Err(CursorError);
    }
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.and_then(|text| text.parse().ok()).ok_or(CursorError)
}

/// The first slot behind an id, whether there is such a tool or not.
fn behind(catalog: &Catalog, id: &ToolId) -> usize {
    let (mut low, mut high) = (0, catalog.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let slot = Slot::new(middle);
        let other = (&catalog.server_of(slot).name, catalog.tool(slot).name());
        if other <= (&id.server, &id.tool) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cursor_is_read_back_and_anything_else_is_refused() {
        let id: ToolId = "a/b c".parse().unwrap();
        assert_eq!(read(&URL_SAFE_NO_PAD.encode(id.to_string())), Ok(id));
        for text in [
            "",
            "a/b",
            "%%%",
            &"a".repeat(1_025),
            &URL_SAFE_NO_PAD.encode("ab"),
        ] {
            assert_eq!(read(text), Err(CursorError), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>()) {
            let _ = read(&text);
        }
    }
}
