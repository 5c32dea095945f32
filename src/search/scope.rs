//! Which slots of one catalog a tenant may see.

use std::sync::Arc;

use dashmap::DashMap;

use crate::domain::{Catalog, Scope, Slot};

/// Scopes remembered for one catalog. Beyond it all are forgotten and computed again.
const SCOPES_MAX: usize = 1_024;

/// The tools that a scope allows in one catalog.
#[derive(Clone, Debug)]
pub(super) enum Allowed {
    /// All of them.
    All,
    /// These.
    Some {
        /// In order.
        slots: Arc<[Slot]>,
        /// One bit a slot.
        bits: Arc<[u64]>,
    },
}

impl Allowed {
    /// From slots in order, of a catalog with so many tools.
    pub(super) fn from_slots(tools: usize, slots: impl Iterator<Item = Slot>) -> Self {
        let slots: Arc<[Slot]> = slots.collect();
        let mut bits = vec![0_u64; tools.div_ceil(64)];
        for slot in &*slots {
            bits[slot.index() / 64] |= 1 << (slot.index() % 64);
        }
        Self::Some {
            slots,
            bits: bits.into(),
        }
    }

    /// Whether a slot is among them.
    pub(super) fn allows(&self, slot: Slot) -> bool {
        match self {
            Self::All => true,
            Self::Some { bits, .. } => has(bits, slot),
        }
    }

    /// How many they are, of a catalog with so many tools.
    pub(super) fn count(&self, tools: usize) -> usize {
        match self {
            Self::All => tools,
            Self::Some { slots, .. } => slots.len(),
        }
    }
}

/// Whether a slot's bit is set.
pub(super) fn has(bits: &[u64], slot: Slot) -> bool {
    bits.get(slot.index() / 64)
        .is_some_and(|word| word >> (slot.index() % 64) & 1 == 1)
}

/// What each scope allows in one catalog, worked out once.
#[derive(Debug, Default)]
pub(super) struct Scopes(DashMap<Vec<String>, Allowed>);

impl Scopes {
    /// What a scope allows. The first time this matches every tool of the catalog.
    pub(super) fn allowed(&self, catalog: &Catalog, scope: &Scope) -> Allowed {
        if scope.is_everything() {
            return Allowed::All;
        }
        if let Some(known) = self.0.get(scope.patterns()) {
            return known.clone();
        }
        let slots = catalog
            .slots()
            .filter(|slot| scope.allows(&catalog.id(*slot)));
        let allowed = Allowed::from_slots(catalog.len(), slots);
        if SCOPES_MAX <= self.0.len() {
            self.0.clear();
        }
        self.0.insert(scope.patterns().to_vec(), allowed.clone());
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::sample;

    #[test]
    fn a_scope_is_turned_into_slots() {
        let (catalog, scopes) = (sample::catalog(), Scopes::default());
        let scope = Scope::new(&["slack".into(), "git*/create_*".into()]).unwrap();
        for _ in 0..2 {
            let allowed = scopes.allowed(&catalog, &scope);
            assert_eq!(allowed.count(catalog.len()), 6);
            for slot in catalog.slots() {
                assert_eq!(allowed.allows(slot), scope.allows(&catalog.id(slot)));
            }
        }
    }
}
