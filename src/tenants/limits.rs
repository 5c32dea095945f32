//! How much one tenant may ask for, so that no tenant starves the others.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::domain::TenantId;
use crate::tenants::TenantLimits;

/// What is counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Activity {
    /// `search_tools`.
    Search,
    /// `run_tool`.
    Run,
    /// A stream that waits for changes. It takes no place of a search or a run.
    Listen,
}

/// A tenant is at one of its limits.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitReached {
    /// Too many in a minute.
    #[error("too many requests a minute")]
    Rate {
        /// When the next one is allowed.
        retry_after: Duration,
    },
    /// Too many at one time.
    #[error("too many requests at one time")]
    Concurrency,
}

/// Lets one request pass; dropping it makes room for the next.
#[derive(Debug)]
pub struct Permit(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

#[derive(Debug)]
struct Meters {
    limits: TenantLimits,
    searches: DefaultDirectRateLimiter,
    runs: DefaultDirectRateLimiter,
    concurrent: Arc<Semaphore>,
    streams: Arc<Semaphore>,
}

/// The meters of all tenants.
#[derive(Debug)]
pub struct Limits {
    defaults: TenantLimits,
    meters: DashMap<TenantId, Arc<Meters>>,
    clock: DefaultClock,
}

impl Limits {
    /// With limits for tenants that have none of their own. What is `None` here is unlimited.
    pub fn new(defaults: TenantLimits) -> Self {
        Self {
            defaults,
            meters: DashMap::new(),
            clock: DefaultClock::default(),
        }
    }

    /// Admits one request of a tenant, or says which limit it is at.
    pub fn admit(
        &self,
        tenant: &TenantId,
        own: TenantLimits,
        activity: Activity,
    ) -> Result<Permit, LimitReached> {
        let meters = self.meters_of(tenant, own);
        let (places, meter) = match activity {
            Activity::Search => (&meters.concurrent, &meters.searches),
            Activity::Run => (&meters.concurrent, &meters.runs),
            Activity::Listen => (&meters.streams, &meters.searches),
        };
        let permit = Arc::clone(places)
            .try_acquire_owned()
            .map_err(|_full| LimitReached::Concurrency)?;
        meter.check().map_err(|not_until| LimitReached::Rate {
            retry_after: not_until.wait_time_from(self.clock.now()),
        })?;
        Ok(Permit(permit))
    }

    fn meters_of(&self, tenant: &TenantId, own: TenantLimits) -> Arc<Meters> {
        let limits = TenantLimits {
            searches_per_minute: own
                .searches_per_minute
                .or(self.defaults.searches_per_minute),
            runs_per_minute: own.runs_per_minute.or(self.defaults.runs_per_minute),
            concurrent: own.concurrent.or(self.defaults.concurrent),
        };
        let mut entry = self
            .meters
            .entry(tenant.clone())
            .or_insert_with(|| Arc::new(Meters::new(limits)));
        // A tenant whose limits were changed starts with fresh meters.
        if entry.limits != limits {
            *entry = Arc::new(Meters::new(limits));
        }
        Arc::clone(&entry)
    }
}

impl Meters {
    fn new(limits: TenantLimits) -> Self {
        let meter = |per_minute: Option<u32>| {
            let per_minute = per_minute
                .and_then(NonZeroU32::new)
                .unwrap_or(NonZeroU32::MAX);
            RateLimiter::direct(Quota::per_minute(per_minute))
        };
        let concurrent = limits.concurrent.unwrap_or(Semaphore::MAX_PERMITS);
        let places = || Arc::new(Semaphore::new(concurrent.min(Semaphore::MAX_PERMITS)));
        Self {
            limits,
            searches: meter(limits.searches_per_minute),
            runs: meter(limits.runs_per_minute),
            concurrent: places(),
            streams: places(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(searches: u32, concurrent: usize) -> TenantLimits {
        TenantLimits {
            searches_per_minute: Some(searches),
            runs_per_minute: Some(searches),
            concurrent: Some(concurrent),
        }
    }

    #[test]
    fn at_the_limit_passes_and_one_past_it_waits() {
        let all = Limits::new(limits(3, 10));
        let (a, b) = ("a".parse().unwrap(), "b".parse().unwrap());
        let none = TenantLimits::default();
        for _ in 0..3 {
            all.admit(&a, none, Activity::Search).unwrap();
        }
        let refused = all.admit(&a, none, Activity::Search).unwrap_err();
        let LimitReached::Rate { retry_after } = refused else {
            panic!("{refused}")
        };
        assert!(Duration::from_secs(15) < retry_after && retry_after <= Duration::from_secs(20));
        assert!(all.admit(&b, none, Activity::Search).is_ok());
        assert!(all.admit(&a, none, Activity::Run).is_ok());
    }

    #[test]
    fn a_dropped_permit_makes_room() {
        let all = Limits::new(TenantLimits::default());
        let a = "a".parse().unwrap();
        let one = all.admit(&a, limits(100, 1), Activity::Run).unwrap();
        let refused = all.admit(&a, limits(100, 1), Activity::Run).unwrap_err();
        assert_eq!(refused, LimitReached::Concurrency);
        let _stream = all.admit(&a, limits(100, 1), Activity::Listen).unwrap();
        assert!(all.admit(&a, limits(100, 1), Activity::Listen).is_err());
        drop(one);
        assert!(all.admit(&a, limits(100, 1), Activity::Run).is_ok());
    }
}
