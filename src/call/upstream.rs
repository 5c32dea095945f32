//! The pool of sessions with upstream servers, one for each tenant, server, and what its callers can
//! be asked.
//!
//! ```text
//! lease: breaker -> session (found, or started once for all who wait) -> a place on it
//! call:  send -> result, or how it was lost
//! ```
//!
//! A session starts at its first use, is shared by the calls of its tenant, and closes when idle,
//! when a value it was started from changes, and at shutdown. An HTTP service without MCP has no
//! session: a lease of it holds a place and a client.

mod options;
mod slot;
mod places;
mod breaker;
mod start;
mod session;
mod waiting;
mod lease;
mod parked;
mod watch;
mod failure;
mod error;
mod child;
mod container;
mod family;
mod census;
mod limits;
mod installed;
mod lines;
mod readable;
mod stderr;
mod mask;
mod http;
mod service;
mod body;
mod sse;
mod tokens;
mod address;
mod tap;
mod lists;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use dashmap::DashMap;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::call::CallerSide;
use crate::call::input::Askable;
use crate::call::resolve::{Resolved, Target, resolve};
use crate::call::upstream::census::Census;
use crate::call::upstream::lease::Link;
use crate::call::upstream::slot::Slot;
use crate::domain::{Server, ServerName, Settings, Tenant, TenantId};
use crate::lifecycle::Lifecycle;

pub(crate) use self::child::Process;
pub use self::error::UpstreamError;
pub(crate) use self::http::HttpError;
pub(crate) use self::lease::Lease;
pub use self::lists::ListNews;
pub use self::options::UpstreamOptions;
pub(crate) use self::parked::{Answer, Asks, Parked};
pub(crate) use self::service::HttpService;

/// How long the end of all sessions may take beyond the time to kill one.
const CLOSE_MAX: Duration = Duration::from_secs(3);

/// How one session is, for people.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SessionStatus {
    /// Whose it is.
    pub tenant: TenantId,
    /// With which server.
    pub server: ServerName,
    /// Whether it can take calls.
    pub open: bool,
    /// Calls on it now.
    pub calls: usize,
    /// How long nobody has used it.
    pub idle: Duration,
    /// How long its breaker stays open, if it is.
    pub paused_for: Option<Duration>,
    /// Last words of its child, masked.
    pub stderr: String,
}

/// All sessions with upstream servers. Clones share them.
#[derive(Clone, Debug)]
pub struct Upstreams {
    pool: Arc<Pool>,
}

/// Whose session, with which server. What is declared to a server holds for its whole session, so
/// that callers who can be asked share none with those who cannot.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Key {
    tenant: TenantId,
    server: ServerName,
    askable: Askable,
}

/// What slots share.
#[derive(Debug)]
struct Pool {
    options: UpstreamOptions,
    lifecycle: Lifecycle,
    slots: DashMap<Key, Arc<Slot>>,
    sessions_started: AtomicU64,
    /// Places for sessions, in all and by tenant.
    sessions: Arc<Semaphore>,
    tenants: DashMap<TenantId, Arc<Semaphore>>,
    /// What the children use.
    census: Arc<Census>,
    /// What sessions tell of their servers' lists.
    news: Arc<ListNews>,
    /// Cancelled by [`Upstreams::close`]: nothing starts any more.
    closed: CancellationToken,
}

impl Upstreams {
    /// No session yet.
    pub fn new(options: UpstreamOptions, lifecycle: Lifecycle) -> Self {
        let sessions = Arc::new(Semaphore::new(options.sessions_max));
        Self {
            pool: Arc::new(Pool {
                options,
                lifecycle,
                slots: DashMap::new(),
                sessions_started: AtomicU64::new(0),
                sessions,
                tenants: DashMap::new(),
                census: Arc::default(),
                news: Arc::default(),
                closed: CancellationToken::new(),
            }),
        }
    }

    /// The limits and places in force.
    pub fn options(&self) -> &UpstreamOptions {
        &self.pool.options
    }

    /// What sessions tell of their servers' lists of tools. One reader takes it.
    pub fn list_news(&self) -> Arc<ListNews> {
        Arc::clone(&self.pool.news)
    }

    /// A server's tools as it lists them, each a definition as JSON.
    pub async fn list_tools(
        &self,
        tenant: &Tenant,
        server: &Server,
        settings: &dyn Settings,
    ) -> Result<Vec<Value>, UpstreamError> {
        let workspaces = &self.pool.options.workspaces;
        let resolved = resolve(server, &tenant.id, settings, workspaces)?;
        let side = CallerSide::default();
        let lease = self.lease(&tenant.id, resolved, &side).await?;
        lease.list_tools().await
    }

    /// A session that is ready for a call: nothing is sent yet.
    pub(crate) async fn lease(
        &self,
        tenant: &TenantId,
        resolved: Resolved,
        side: &CallerSide,
    ) -> Result<Lease, UpstreamError> {
        if self.pool.lifecycle.is_stopping() || self.pool.closed.is_cancelled() {
            return Err(UpstreamError::ShuttingDown);
        }
        let started = Instant::now();
        let server = resolved.server.clone();
        let askable = side.askable.unwrap_or_default();
        let key = Key {
            tenant: tenant.clone(),
            server: server.clone(),
            askable,
        };
        let slot = self.pool.slots.entry(key);
        let slot = slot.or_insert_with(|| Slot::new(askable).into()).clone();
        let end = started + self.pool.options.call_max;
        let leased = async {
            let link = match &resolved.target {
                Target::Service { .. } => Link::Service(slot.service(&self.pool, resolved)?),
                _session => Link::Session(slot.session(&self.pool, tenant, resolved).await?),
            };
            let places = link.places();
            let place = tokio::time::timeout(self.pool.options.wait_max, places.acquire_owned());
            match place.await {
                Ok(Ok(place)) => {
                    if let Link::Session(session) = &link {
                        // Before the handle is taken: without a token nothing is sent.
                        slot.token(session, &server).await?;
                    }
                    Ok((link, place))
                }
                _full => Err(UpstreamError::Busy {
                    what: "calls to this server",
                    retry_after: self.pool.options.wait_max,
                }),
            }
        };
        let (link, place) = tokio::select! {
            leased = leased => leased?,
            () = side.cancel.cancelled() => return Err(UpstreamError::Cancelled { sent: false }),
            () = self.pool.lifecycle.cancelled() => return Err(UpstreamError::ShuttingDown),
            () = tokio::time::sleep_until(end) => {
                return Err(UpstreamError::Timeout {
                    server,
                    after: self.pool.options.call_max,
                    stderr: String::new(),
                    sent: false,
                });
            }
        };
        Ok(Lease {
            pool: self.pool.clone(),
            link,
            slot,
            server,
            started,
            _place: place,
        })
    }

    /// Ends all sessions with their process groups, for good, and says whether nothing is left.
    pub async fn close(&self) -> bool {
        self.pool.closed.cancel();
        // Each session gives its place back when nothing of it is left.
        let all = u32::try_from(self.pool.options.sessions_max).unwrap_or(u32::MAX);
        let limit = 2 * self.pool.options.kill_after + CLOSE_MAX;
        let places = self.pool.sessions.acquire_many(all);
        tokio::time::timeout(limit, places).await.is_ok()
    }

    /// Forgets sessions that have ended and servers with nothing to remember. Called by the
    /// sweeper.
    pub fn sweep(&self) {
        // Nobody can take a slot while the map looks at it: one that only the map has is unused.
        self.pool
            .slots
            .retain(|_, slot| 1 < Arc::strong_count(slot) || slot.tidy());
    }

    /// Ends one tenant's sessions with a server, so that the next call starts it anew.
    pub async fn restart(&self, tenant: &TenantId, server: &ServerName) {
        let meant = |key: &Key| key.tenant == *tenant && key.server == *server;
        let slots: Vec<Arc<Slot>> = self
            .pool
            .slots
            .iter()
            .filter(|entry| meant(entry.key()))
            .map(|entry| entry.value().clone())
            .collect();
        for slot in slots {
            slot.close().await;
        }
    }

    /// How each session is, by tenant and server.
    pub fn status(&self) -> Vec<SessionStatus> {
        let mut all: Vec<SessionStatus> = self
            .pool
            .slots
            .iter()
            .filter_map(|entry| {
                let key = entry.key().clone();
                entry.value().status(key.tenant, key.server)
            })
            .collect();
        all.sort_by(|a, b| (&a.tenant, &a.server).cmp(&(&b.tenant, &b.server)));
        all
    }
}
