//! The catalog as the last of the providers: its tools under their public names.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use crate::domain::{Catalog, ToolId};
use crate::registry::{ToolList, ToolMetadata, Visibility};
use crate::search::Shelf;
use crate::toolkits::{Eager, Toolkits};

/// Tools of the catalog, ready to be found; prepared once a catalog.
#[derive(Debug)]
pub struct CatalogTools {
    toolkits: Toolkits,
    native: Eager,
    known: ArcSwapOption<Known>,
}

#[derive(Debug)]
struct Known {
    catalog: Arc<Catalog>,
    list: ToolList,
}

impl CatalogTools {
    /// With those listed as they are that `native` matches.
    pub fn new(native: Eager) -> Self {
        Self {
            toolkits: Toolkits::new(Eager::None, None),
            native,
            known: ArcSwapOption::empty(),
        }
    }

    /// What stands on a shelf. The first time for a catalog this takes a while: keep it off the
    /// runtime.
    pub(super) fn on(&self, stock: &Shelf) -> ToolList {
        let all = self.all(stock.catalog());
        if stock.len() == stock.catalog().len() {
            return all;
        }
        let holds = |tool: &&Arc<ToolMetadata>| tool.slot().is_some_and(|slot| stock.holds(slot));
        ToolList::new(all.iter().filter(holds).cloned())
    }

    /// A tool's public name.
    pub(super) fn name_of(&self, id: &ToolId) -> String {
        self.toolkits.name_of(id)
    }

    fn all(&self, catalog: &Arc<Catalog>) -> ToolList {
        let known = self.known.load_full();
        if let Some(known) = known.filter(|known| Arc::ptr_eq(&known.catalog, catalog)) {
            return known.list.clone();
        }
        let list = ToolList::new(catalog.slots().map(|slot| {
            let id = catalog.id(slot);
            let visibility = match self.native.matches(&id) {
                true => Visibility::Native,
                false => Visibility::Discoverable,
            };
            let name = self.toolkits.name_of(&id);
            Arc::new(ToolMetadata::shelved(name, catalog, slot, visibility))
        }));
        self.known.store(Some(Arc::new(Known {
            catalog: Arc::clone(catalog),
            list: list.clone(),
        })));
        list
    }
}
