//! Handles: minted by a search, spent by a run, forgotten after five minutes.
//!
//! ```text
//! search: mint          run: peek -> (check) -> take, or refuse
//! ```
//!
//! A handle lives in memory only, under a hash that is bound to its tenant; it does not survive a
//! restart. Taking it is one atomic removal: of any number of simultaneous takers one wins.

mod ledger;

use std::time::Duration;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use rand::RngCore;
use tokio::time::Instant;

use crate::domain::{DefinitionHash, Handle, HandleKey, RunId, TenantId, ToolId};
use crate::handles::ledger::Ledger;

/// How long a handle is good for.
pub const LIFE: Duration = Duration::from_mins(5);
/// The refusal that spends a handle: four mistakes may be corrected, the fifth ends it.
pub const REFUSALS_MAX: u8 = 5;
/// Handles alive at one time for one tenant, unless configured.
pub const ALIVE_MAX: usize = 10_000;
/// Wrong handles in [`MISSES_WINDOW`] that lock a tenant out of runs.
///
/// At this rate a guesser of 10,000 live handles out of 2^60 needs two million years.
pub const MISSES_MAX: u32 = 100;
/// The window for counting misses, and how long a lock-out lasts.
pub const MISSES_WINDOW: Duration = Duration::from_mins(1);

/// What a handle covers.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// The search that left it.
    pub run_id: RunId,
    /// The exact tools, with the fingerprints that the search showed.
    pub tools: Vec<(ToolId, DefinitionHash)>,
    expires: Instant,
    refusals: u8,
}

/// Why no handle was minted.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MintError {
    /// The tenant has as many handles as it may.
    #[error("{alive} handles are alive, the limit")]
    TooMany {
        /// How many are alive.
        alive: usize,
        /// When the first of them is certain to have ended.
        retry_after: Duration,
    },
}

/// Why a handle opens nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TakeError {
    /// Unknown, expired, used, or another tenant's: one answer for all.
    #[error("handle is unknown, expired or used")]
    Unknown,
    /// Too many wrong handles from this tenant.
    #[error("too many wrong handles")]
    LockedOut {
        /// When to try again.
        retry_after: Duration,
    },
}

/// All live handles.
#[derive(Debug)]
pub struct Handles {
    grants: DashMap<HandleKey, (TenantId, Grant)>,
    tenants: DashMap<TenantId, Ledger>,
    alive_max: usize,
}

impl Handles {
    /// No handles, and a limit of live ones for each tenant.
    pub fn new(alive_max: usize) -> Self {
        Self {
            grants: DashMap::new(),
            tenants: DashMap::new(),
            alive_max,
        }
    }

    /// Leaves a handle for a search's tools.
    pub fn mint(
        &self,
        tenant: &TenantId,
        run_id: RunId,
        tools: Vec<(ToolId, DefinitionHash)>,
        rng: &mut dyn RngCore,
    ) -> Result<Handle, MintError> {
        let now = Instant::now();
        {
            let mut ledger = self.tenants.entry(tenant.clone()).or_default();
            if self.alive_max <= ledger.alive {
                return Err(MintError::TooMany {
                    alive: ledger.alive,
                    retry_after: LIFE,
                });
            }
            ledger.alive += 1;
        }
        let grant = Grant {
            run_id,
            tools,
            expires: now + LIFE,
            refusals: 0,
        };
        // A second draw would be needed once in 2^60 / 10,000 handles; it costs nothing to be sure.
        loop {
            let handle = Handle::generate(rng);
            if let Entry::Vacant(place) = self.grants.entry(handle.key(tenant)) {
                place.insert((tenant.clone(), grant));
                return Ok(handle);
            }
        }
    }

    /// What a live handle covers. It stays good.
    pub fn peek(&self, tenant: &TenantId, handle: &Handle) -> Result<Grant, TakeError> {
        let now = Instant::now();
        self.check_lock(tenant, now)?;
        let found = self
            .grants
            .get(&handle.key(tenant))
            .filter(|entry| now < entry.1.expires)
            .map(|entry| entry.1.clone());
        found.ok_or_else(|| self.miss(tenant, now))
    }

    /// Spends a handle. Of simultaneous takers one gets the grant.
    pub fn take(&self, tenant: &TenantId, handle: &Handle) -> Result<Grant, TakeError> {
        let now = Instant::now();
        let Some((_, (_, grant))) = self.grants.remove(&handle.key(tenant)) else {
            return Err(self.miss(tenant, now));
        };
        self.release(tenant);
        if now < grant.expires {
            Ok(grant)
        } else {
            Err(self.miss(tenant, now))
        }
    }

    /// Counts a call that was refused before anything was sent. Says how many more are allowed;
    /// 0 means that the handle is spent.
    pub fn refuse(&self, tenant: &TenantId, handle: &Handle) -> u8 {
        let Entry::Occupied(mut entry) = self.grants.entry(handle.key(tenant)) else {
            return 0;
        };
        let grant = &mut entry.get_mut().1;
        grant.refusals += 1;
        let left = REFUSALS_MAX.saturating_sub(grant.refusals);
        if left == 0 {
            entry.remove();
            self.release(tenant);
        }
        left
    }

    /// Counts a text that is no handle at all, which is a wrong guess like any other.
    pub fn refuse_unreadable(&self, tenant: &TenantId) -> TakeError {
        let now = Instant::now();
        self.check_lock(tenant, now)
            .err()
            .unwrap_or_else(|| self.miss(tenant, now))
    }

    /// Forgets what has expired, and says how many that were. Called by the sweeper.
    pub fn sweep(&self) -> usize {
        let now = Instant::now();
        let mut ended = Vec::new();
        self.grants.retain(|_, (tenant, grant)| {
            let keep = now < grant.expires;
            if !keep {
                ended.push(tenant.clone());
            }
            keep
        });
        for tenant in &ended {
            self.release(tenant);
        }
        self.tenants
            .retain(|_, ledger| !ledger.is_idle(now, MISSES_WINDOW));
        ended.len()
    }

    /// How many handles are alive, expired but unswept ones included.
    pub fn alive(&self) -> usize {
        self.grants.len()
    }

    fn release(&self, tenant: &TenantId) {
        if let Some(mut ledger) = self.tenants.get_mut(tenant) {
            ledger.alive = ledger.alive.saturating_sub(1);
        }
    }

    fn check_lock(&self, tenant: &TenantId, now: Instant) -> Result<(), TakeError> {
        let locked = self
            .tenants
            .get(tenant)
            .and_then(|ledger| ledger.locked_for(now));
        locked.map_or(Ok(()), |retry_after| {
            Err(TakeError::LockedOut { retry_after })
        })
    }

    fn miss(&self, tenant: &TenantId, now: Instant) -> TakeError {
        let mut ledger = self.tenants.entry(tenant.clone()).or_default();
        ledger.miss(now, MISSES_MAX, MISSES_WINDOW);
        TakeError::Unknown
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use serde_json::Value;

    use super::*;

    fn tools() -> Vec<(ToolId, DefinitionHash)> {
        vec![(
            "slack/post".parse().unwrap(),
            DefinitionHash::of(&Value::Null),
        )]
    }

    fn mint(handles: &Handles, tenant: &TenantId, seed: u64) -> Result<Handle, MintError> {
        let mut rng = StdRng::seed_from_u64(seed);
        let run_id = RunId::generate(&mut rng);
        handles.mint(tenant, run_id, tools(), &mut rng)
    }

    fn tenant(name: &str) -> TenantId {
        name.parse().unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn of_64_simultaneous_takers_one_wins() {
        let (handles, a) = (Arc::new(Handles::new(ALIVE_MAX)), tenant("a"));
        for seed in 0..50 {
            let handle = mint(&handles, &a, seed).unwrap();
            let tasks: Vec<_> = (0..64)
                .map(|_| {
                    let (handles, a, handle) = (handles.clone(), a.clone(), handle.clone());
                    tokio::task::spawn_blocking(move || handles.take(&a, &handle).is_ok())
                })
                .collect();
            let mut wins = 0;
            for task in tasks {
                wins += u32::from(task.await.unwrap());
            }
            assert_eq!(wins, 1);
            handles.tenants.clear();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_handle_lives_five_minutes() {
        let (handles, a) = (Handles::new(ALIVE_MAX), tenant("a"));
        let handle = mint(&handles, &a, 1).unwrap();
        tokio::time::advance(Duration::from_millis(299_999)).await;
        assert_eq!(handles.peek(&a, &handle).unwrap().tools, tools());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(handles.peek(&a, &handle), Err(TakeError::Unknown));
        assert_eq!(handles.take(&a, &handle), Err(TakeError::Unknown));
    }

    #[tokio::test(start_paused = true)]
    async fn a_used_a_foreign_and_an_unknown_handle_look_alike() {
        let (handles, a, b) = (Handles::new(ALIVE_MAX), tenant("a"), tenant("b"));
        let handle = mint(&handles, &a, 1).unwrap();
        assert_eq!(handles.peek(&b, &handle), Err(TakeError::Unknown));
        assert_eq!(handles.take(&b, &handle), Err(TakeError::Unknown));
        assert!(handles.take(&a, &handle).is_ok());
        assert_eq!(handles.take(&a, &handle), Err(TakeError::Unknown));
        assert_eq!(handles.refuse_unreadable(&a), TakeError::Unknown);
    }

    #[tokio::test(start_paused = true)]
    async fn the_fifth_refusal_spends_it() {
        let (handles, a) = (Handles::new(ALIVE_MAX), tenant("a"));
        let handle = mint(&handles, &a, 1).unwrap();
        let left: Vec<_> = (0..4).map(|_| handles.refuse(&a, &handle)).collect();
        assert_eq!(left, [4, 3, 2, 1]);
        assert!(handles.peek(&a, &handle).is_ok());
        assert_eq!(handles.refuse(&a, &handle), 0);
        assert_eq!(handles.peek(&a, &handle), Err(TakeError::Unknown));
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenant_at_its_limit_is_refused_and_the_others_are_not() {
        let (handles, a, b) = (Handles::new(2), tenant("a"), tenant("b"));
        let first = mint(&handles, &a, 1).unwrap();
        mint(&handles, &a, 2).unwrap();
        let refused = mint(&handles, &a, 3).unwrap_err();
        assert_eq!(
            refused,
            MintError::TooMany {
                alive: 2,
                retry_after: LIFE
            }
        );
        assert!(mint(&handles, &b, 4).is_ok());
        handles.take(&a, &first).unwrap();
        assert!(mint(&handles, &a, 5).is_ok());
        tokio::time::advance(LIFE).await;
        assert_eq!(handles.sweep(), 3);
        assert!(mint(&handles, &a, 6).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn guessing_locks_the_guesser_out_and_nobody_else() {
        let (handles, a, b) = (Handles::new(ALIVE_MAX), tenant("a"), tenant("b"));
        let (good, other) = (
            mint(&handles, &a, 1).unwrap(),
            mint(&handles, &b, 2).unwrap(),
        );
        for _ in 0..MISSES_MAX {
            assert_eq!(handles.peek(&a, &other), Err(TakeError::Unknown));
        }
        assert!(matches!(
            handles.peek(&a, &good),
            Err(TakeError::LockedOut { .. })
        ));
        assert!(handles.peek(&b, &other).is_ok());
        tokio::time::advance(MISSES_WINDOW).await;
        assert!(handles.peek(&a, &good).is_ok());
    }
}
