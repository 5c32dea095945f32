//! Tools under their public names, `toolkit__tool`: which of them a list shows as they are, and
//! how any of them is found by name.
//!
//! A toolkit is a server. Everything here sees the catalog through a [`Shelf`], so that what a
//! caller may not use has no name, no place in a list and no likeness to anything.

mod name;
mod eager;
mod page;
mod nearest;

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use sha2::{Digest, Sha256};

use crate::domain::{Catalog, Slot, ToolId};
use crate::search::{Rank, Shelf};

pub use self::eager::{Eager, ParseEagerError};
pub use self::name::{NAME_CHARS_MAX, ParseToolkitError, ToolkitName};
pub use self::page::{CursorError, Page};

/// The three tools that stand for all cold ones.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchToolkit {
    /// What their names begin with.
    pub name: ToolkitName,
    /// Matches of a search, at most and by default.
    pub limit: usize,
    /// How matches are ranked.
    pub rank: Rank,
}

/// Names, lists and likenesses of the tools of a shelf. Share it by `Arc`.
#[derive(Debug)]
pub struct Toolkits {
    eager: Eager,
    search: Option<SearchToolkit>,
    listed: ArcSwapOption<Listed>,
}

/// What is eager in one catalog, whoever asks.
#[derive(Debug)]
struct Listed {
    catalog: Arc<Catalog>,
    slots: Vec<Slot>,
}

impl Toolkits {
    /// With a policy, and the search toolkit if there is one.
    pub fn new(eager: Eager, search: Option<SearchToolkit>) -> Self {
        Self {
            eager,
            search,
            listed: ArcSwapOption::empty(),
        }
    }

    /// The search toolkit.
    pub fn search(&self) -> Option<&SearchToolkit> {
        self.search.as_ref()
    }

    /// A tool's public name: at most [`NAME_CHARS_MAX`] of `A-Z a-z 0-9 _ -`, the same for
    /// every caller and in every catalog, and no other tool's.
    pub fn name_of(&self, id: &ToolId) -> String {
        name::public(id, self.toolkit())
    }

    /// The tool of a public name, if it is on the shelf.
    pub fn find(&self, tools: &Shelf, name: &str) -> Option<Slot> {
        name::find(tools, name, self.toolkit())
    }

    /// Public names on the shelf that are like this one, most alike first.
    pub fn nearest(&self, tools: &Shelf, name: &str) -> Vec<String> {
        nearest::nearest(tools, name, |id| self.name_of(id))
    }

    /// One page of the tools that are listed as they are: eager ones, or all where no search
    /// toolkit leads to the others. `weigh` tells the bytes of one.
    pub fn page(
        &self,
        tools: &Shelf,
        cursor: Option<&str>,
        weigh: impl Fn(Slot) -> usize,
    ) -> Result<Page, CursorError> {
        match self.eager_slots(tools) {
            None => page::page(tools, tools.slots(), cursor, weigh),
            Some(listed) => {
                let slots = listed.slots.iter().copied();
                let slots = slots.filter(|slot| tools.holds(*slot));
                page::page(tools, slots, cursor, weigh)
            }
        }
    }

    /// Changes when a listed tool of the shelf comes, goes or is defined anew.
    pub fn fingerprint(&self, tools: &Shelf) -> [u8; 32] {
        let mut hash = Sha256::new();
        let mut add = |slot: Slot| {
            let id = tools.catalog().id(slot).to_string();
            hash.update(id.as_bytes());
            hash.update([0]);
            hash.update(tools.catalog().tool(slot).hash().to_string().as_bytes());
        };
        match self.eager_slots(tools) {
            None => tools.slots().for_each(&mut add),
            Some(listed) => {
                let slots = listed.slots.iter().copied();
                slots.filter(|slot| tools.holds(*slot)).for_each(&mut add);
            }
        }
        hash.finalize().into()
    }

    fn toolkit(&self) -> Option<&ToolkitName> {
        self.search.as_ref().map(|search| &search.name)
    }

    /// The eager tools of a shelf's catalog, matched once a catalog; `None` where all are listed.
    fn eager_slots(&self, tools: &Shelf) -> Option<Arc<Listed>> {
        if self.search.is_none() || matches!(self.eager, Eager::All) {
            return None;
        }
        let catalog = tools.catalog();
        let known = self.listed.load_full();
        if let Some(known) = known.filter(|known| Arc::ptr_eq(&known.catalog, catalog)) {
            return Some(known);
        }
        let slots = catalog.slots();
        let listed = Arc::new(Listed {
            slots: slots
                .filter(|slot| self.eager.matches(&catalog.id(*slot)))
                .collect(),
            catalog: Arc::clone(catalog),
        });
        self.listed.store(Some(Arc::clone(&listed)));
        Some(listed)
    }
}

#[cfg(test)]
mod tests;
