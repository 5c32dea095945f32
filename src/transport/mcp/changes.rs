//! When a guest's list of tools becomes another.

use std::sync::Arc;

use tokio::sync::watch;

use crate::transport::desk::{Desk, Guest};
use crate::transport::mcp::surface::Surface;

/// Follows one guest's list through the indexes that are published.
#[derive(Debug)]
pub(super) struct Changes {
    surface: Arc<dyn Surface>,
    desk: Arc<Desk>,
    guest: Guest,
    generations: watch::Receiver<u64>,
    seen: [u8; 32],
}

impl Changes {
    /// From now on.
    pub(super) fn new(surface: Arc<dyn Surface>, desk: Arc<Desk>, guest: Guest) -> Self {
        // First the ear, then the look: what is published between the two is compared.
        let generations = desk.generations();
        Self {
            seen: surface.fingerprint(&guest),
            generations,
            surface,
            desk,
            guest,
        }
    }

    /// Waits until the list is another; `None` when the program stops. Nothing is lost when it is
    /// dropped while it waits.
    pub(super) async fn next(&mut self) -> Option<()> {
        loop {
            tokio::select! {
                changed = self.generations.changed() => changed.ok()?,
                () = self.desk.lifecycle().stopping() => return None,
            }
            let present = self.surface.fingerprint(&self.guest);
            if present != self.seen {
                self.seen = present;
                return Some(());
            }
        }
    }
}
