//! Places for sessions: where there is none, the longest idle session makes room.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::call::upstream::slot::Slot;
use crate::call::upstream::watch::Permits;
use crate::call::upstream::{Pool, UpstreamError};
use crate::domain::TenantId;

impl Pool {
    /// Places for one more session: the tenant's and everybody's. Where there is none, the longest
    /// idle session makes room, or a bounded wait does.
    pub(super) async fn places(&self, tenant: &TenantId) -> Result<Permits, UpstreamError> {
        let own = {
            let max = self.options.tenant_sessions_max;
            let own = self.tenants.entry(tenant.clone());
            own.or_insert_with(|| Arc::new(Semaphore::new(max))).clone()
        };
        let own = self.place(own, Some(tenant)).await?;
        let all = self.place(self.sessions.clone(), None).await?;
        Ok(vec![own, all])
    }

    async fn place(
        &self,
        places: Arc<Semaphore>,
        tenant: Option<&TenantId>,
    ) -> Result<OwnedSemaphorePermit, UpstreamError> {
        if let Ok(place) = places.clone().try_acquire_owned() {
            return Ok(place);
        }
        self.make_room(tenant);
        let waited = tokio::time::timeout(self.options.wait_max, places.acquire_owned()).await;
        match waited {
            Ok(Ok(place)) => Ok(place),
            _full => Err(UpstreamError::Busy {
                what: "servers in use",
                retry_after: self.options.wait_max,
            }),
        }
    }

    fn make_room(&self, tenant: Option<&TenantId>) {
        let mut idle: Vec<(Duration, Arc<Slot>)> = self
            .slots
            .iter()
            .filter(|entry| tenant.is_none_or(|tenant| entry.key().0 == *tenant))
            .filter_map(|entry| Some((entry.value().idle()?, entry.value().clone())))
            .collect();
        idle.sort_by_key(|(idle, _)| std::cmp::Reverse(*idle));
        let _none = idle.iter().find(|(_, slot)| slot.close_if_idle());
    }
}
