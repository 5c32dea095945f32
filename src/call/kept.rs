//! Whole results of runs whose reply was cut, to be read in pages for ten minutes.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::{RunId, TenantId};

/// How long a whole result can be read.
pub const KEPT_FOR: Duration = Duration::from_mins(10);
/// Characters of one page.
pub const PAGE_CHARS: usize = 40_000;
/// Bytes kept for one tenant.
const TENANT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes kept for all tenants.
const BYTES_MAX: usize = 256 * 1024 * 1024;
const _: () = assert!(TENANT_BYTES_MAX <= BYTES_MAX);

/// A part of a whole result, which is JSON.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Page {
    /// The characters of this page.
    pub text: String,
    /// Which page it is, from 0.
    pub number: usize,
    /// How many there are.
    pub pages: usize,
}

/// A result as JSON, and where its pages start.
struct Whole {
    text: String,
    starts: Vec<usize>,
}

/// The store. The oldest result goes first when there is no room.
pub(crate) struct Kept {
    results: Mutex<Results>,
    tenant_bytes_max: usize,
    bytes_max: usize,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            results: Mutex::default(),
            tenant_bytes_max: TENANT_BYTES_MAX,
            bytes_max: BYTES_MAX,
        }
    }
}

#[derive(Default)]
struct Results {
    by_run: HashMap<(TenantId, RunId), (Instant, Arc<Whole>)>,
    order: VecDeque<(TenantId, RunId)>,
    bytes: usize,
    tenants: HashMap<TenantId, usize>,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept")
            .field("bytes", &self.lock().bytes)
            .finish_non_exhaustive()
    }
}

impl Kept {
    /// Keeps a whole result, if it is within a tenant's limit at all.
    pub(crate) fn put(&self, tenant: &TenantId, run_id: RunId, text: String) {
        let starts = text.char_indices().step_by(PAGE_CHARS).map(|(at, _)| at);
        let whole = Whole {
            starts: starts.collect(),
            text,
        };
        let mut results = self.lock();
        let now = Instant::now();
        results.expire(now);
        if self.tenant_bytes_max < whole.text.len() {
            return;
        }
        let key = (tenant.clone(), run_id);
        results.remove(&key);
        let room = |results: &Results| {
            results.bytes + whole.text.len() <= self.bytes_max
                && results.tenant_bytes(tenant) + whole.text.len() <= self.tenant_bytes_max
        };
        while !room(&results) {
            // The tenant's own results make room for its new one before anybody else's do.
            let over = self.tenant_bytes_max < results.tenant_bytes(tenant) + whole.text.len();
            let mut order = results.order.iter();
            let oldest = order.find(|(owner, _)| !over || owner == tenant).cloned();
            let Some(oldest) = oldest else { return };
            results.remove(&oldest);
        }
        results.bytes += whole.text.len();
        *results.tenants.entry(tenant.clone()).or_default() += whole.text.len();
        results.order.push_back(key.clone());
        results.by_run.insert(key, (now, whole.into()));
    }

    /// A page of a tenant's result; `None` for what is gone, was never kept, or is another's.
    pub(crate) fn page(&self, tenant: &TenantId, run_id: RunId, number: usize) -> Option<Page> {
        let whole = {
            let mut results = self.lock();
            results.expire(Instant::now());
            let (_, whole) = results.by_run.get(&(tenant.clone(), run_id))?;
            whole.clone()
        };
        let start = *whole.starts.get(number)?;
        let end = whole.starts.get(number + 1).copied();
        let text = whole.text.get(start..end.unwrap_or(whole.text.len()))?;
        Some(Page {
            text: text.to_owned(),
            number,
            pages: whole.starts.len(),
        })
    }

    /// Lets go of what has had its time.
    pub(crate) fn sweep(&self) {
        self.lock().expire(Instant::now());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Results> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Results {
    fn tenant_bytes(&self, tenant: &TenantId) -> usize {
        self.tenants.get(tenant).copied().unwrap_or_default()
    }

    fn expire(&mut self, now: Instant) {
        while let Some(oldest) = self.order.front().cloned() {
            let ended = self
                .by_run
                .get(&oldest)
                .is_none_or(|(since, _)| *since + KEPT_FOR <= now);
            if !ended {
                return;
            }
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, key: &(TenantId, RunId)) {
        self.order.retain(|kept| kept != key);
        let Some((_, whole)) = self.by_run.remove(key) else {
            return;
        };
        self.bytes = self.bytes.saturating_sub(whole.text.len());
        if let Some(bytes) = self.tenants.get_mut(&key.0) {
            *bytes = bytes.saturating_sub(whole.text.len());
            if *bytes == 0 {
                self.tenants.remove(&key.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: usize = 1_000;

    fn small() -> Kept {
        Kept {
            tenant_bytes_max: SMALL,
            bytes_max: 4 * SMALL,
            ..Kept::default()
        }
    }

    fn tenant(name: &str) -> TenantId {
        name.parse().unwrap()
    }

    fn run(number: u32) -> RunId {
        format!("w{number:08x}").parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn the_pages_of_a_result_make_the_whole_for_ten_minutes_and_its_tenant_only() {
        let (kept, a) = (Kept::default(), tenant("a"));
        let whole = "é".repeat(PAGE_CHARS * 2 + 1);
        kept.put(&a, run(1), whole.clone());
        let page = |number| kept.page(&a, run(1), number).unwrap();
        assert_eq!(page(0).pages, 3);
        let pages: String = (0..3).map(|number| page(number).text).collect();
        assert_eq!(pages, whole);
        assert_eq!(kept.page(&a, run(1), 3), None);
        assert_eq!(kept.page(&a, run(2), 0), None);
        assert_eq!(kept.page(&tenant("b"), run(1), 0), None);
        tokio::time::advance(KEPT_FOR).await;
        assert_eq!(kept.page(&a, run(1), 0), None);
        assert_eq!(kept.lock().bytes, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenants_results_make_room_for_its_own() {
        let (kept, a, b) = (small(), tenant("a"), tenant("b"));
        let half = "x".repeat(SMALL / 2);
        kept.put(&b, run(9), "small".to_owned());
        for number in 1..=3 {
            kept.put(&a, run(number), half.clone());
        }
        assert_eq!(kept.page(&a, run(1), 0), None);
        assert!(kept.page(&a, run(2), 0).is_some() && kept.page(&a, run(3), 0).is_some());
        assert!(kept.page(&b, run(9), 0).is_some());
        kept.put(&a, run(4), "x".repeat(SMALL + 1));
        assert_eq!(kept.page(&a, run(4), 0), None);
        assert_eq!(kept.lock().bytes, 2 * half.len() + "small".len());
    }

    #[tokio::test(start_paused = true)]
    async fn all_results_together_have_a_limit() {
        let kept = small();
        let half = "x".repeat(SMALL / 2);
        for number in 0..10 {
            kept.put(&tenant(&format!("t{number}")), run(1), half.clone());
        }
        assert_eq!(kept.lock().bytes, 4 * SMALL);
        assert_eq!(kept.page(&tenant("t0"), run(1), 0), None);
        assert!(kept.page(&tenant("t9"), run(1), 0).is_some());
        let results = kept.lock();
        assert_eq!(results.order.len(), results.by_run.len());
    }
}
