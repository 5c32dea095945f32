//! Which servers have said that their list of tools is another.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::domain::{ServerName, TenantId};

/// Servers whose news wait to be looked at. More than there can be sessions are never told at once.
const WAITING_MAX: usize = 4_096;

/// News of lists that changed, by session. A server that says it a hundred times is there once.
#[derive(Debug, Default)]
pub struct ListNews {
    changed: Mutex<BTreeSet<(TenantId, ServerName)>>,
    told: Notify,
}

impl ListNews {
    /// A session has said that its server's list is another.
    pub(super) fn tell(&self, tenant: TenantId, server: ServerName) {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        if changed.len() < WAITING_MAX {
            changed.insert((tenant, server));
        }
        self.told.notify_one();
    }

    /// Waits until somebody has told something. It may have been taken meanwhile.
    pub async fn told(&self) {
        self.told.notified().await;
    }

    /// All that was told since the last time.
    pub fn take(&self) -> BTreeSet<(TenantId, ServerName)> {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_told_twice_is_there_once_and_nothing_told_is_missed() {
        let news = ListNews::default();
        for _ in 0..3 {
            news.tell("a".parse().unwrap(), "notes".parse().unwrap());
        }
        news.told().await;
        assert_eq!(news.take().len(), 1);
        assert!(news.take().is_empty());
    }

    #[test]
    fn a_flood_is_bounded() {
        let news = ListNews::default();
        for at in 0..=WAITING_MAX {
            let server = format!("s{at}").parse().unwrap();
            news.tell("a".parse().unwrap(), server);
        }
        assert_eq!(news.take().len(), WAITING_MAX);
    }
}
