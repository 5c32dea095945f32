//! All tools that one tenant may use, for surfaces that list.

use std::fmt;
use std::sync::Arc;

use crate::domain::{Catalog, Slot, Tenant, ToolId};
use crate::search::Searcher;
use crate::search::index::Index;
use crate::search::scope::Allowed;

/// One snapshot of the index through a tenant's scope: what is not in it does not exist for the
/// tenant.
#[derive(Clone)]
pub struct Shelf {
    index: Arc<Index>,
    allowed: Allowed,
}

impl Searcher {
    /// What a tenant may use at present.
    pub fn shelf(&self, tenant: &Tenant) -> Shelf {
        Shelf::of(self.index(), tenant)
    }
}

impl Shelf {
    /// What a tenant may use of an index.
    pub fn of(index: Arc<Index>, tenant: &Tenant) -> Self {
        let allowed = index.allowed(tenant);
        Self { index, allowed }
    }

    /// The catalog that its slots belong to. It also holds what is not on the shelf: ask
    /// [`Shelf::find`] before showing anything of it.
    pub fn catalog(&self) -> &Arc<Catalog> {
        self.index.catalog()
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.allowed.count(self.catalog().len())
    }

    /// Whether there is no tool.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the tool in a slot of its catalog is on the shelf.
    pub fn holds(&self, slot: Slot) -> bool {
        self.allowed.allows(slot)
    }

    /// All tools, in the order of their ids.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.catalog().slots().filter(|slot| self.holds(*slot))
    }

    /// Where a tool stands, if it is on the shelf.
    pub fn find(&self, id: &ToolId) -> Option<Slot> {
        let found = self.catalog().find(id);
        found.filter(|slot| self.holds(*slot))
    }
}

impl fmt::Debug for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shelf({} tools)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Scope, TenantId};
    use crate::search::ranking::Ranking;
    use crate::search::sample;

    #[test]
    fn a_shelf_holds_what_the_scope_allows_and_nothing_else() {
        let index = Index::keyword_only(sample::catalog(), &Ranking::default());
        let tenant = Tenant {
            id: TenantId::local(),
            scope: Scope::new(&["weather".to_owned()]).unwrap(),
        };
        let shelf = Shelf::of(Arc::new(index), &tenant);
        let ids: Vec<String> = shelf
            .slots()
            .map(|slot| shelf.catalog().id(slot).to_string())
            .collect();
        assert_eq!(ids, ["weather/get_current", "weather/get_forecast"]);
        assert_eq!(shelf.len(), 2);
        assert!(
            shelf
                .find(&"weather/get_current".parse().unwrap())
                .is_some()
        );
        assert!(
            shelf
                .find(&"github/create_issue".parse().unwrap())
                .is_none()
        );
    }
}
