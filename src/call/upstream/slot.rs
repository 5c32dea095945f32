//! The place of one tenant's session with one server: started once for all who wait, replaced when
//! it has ended.

mod ways;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::call::input::Askable;
use crate::call::resolve::{ResolveError, Resolved, Target};
use crate::call::upstream::breaker::Breaker;
use crate::call::upstream::failure::{chain, failure};
use crate::call::upstream::mask::mask;
use crate::call::upstream::service::{HeldService, HttpService, Linked};
use crate::call::upstream::session::{Held, Session};
use crate::call::upstream::start::Era;
use crate::call::upstream::tokens::Tokens;
use crate::call::upstream::{Pool, SessionStatus, UpstreamError};
use crate::domain::{ServerName, TenantId};

/// A session, or the place for one.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// What the callers of its sessions can be asked.
    askable: Askable,
    /// Held while a session starts: those who wait for it find it ready.
    session: Arc<tokio::sync::Mutex<Option<Arc<Session>>>>,
    waiting: AtomicUsize,
    state: Mutex<State>,
}

/// What is known of a server from its sessions so far.
#[derive(Debug, Default)]
struct State {
    breaker: Breaker,
    era: Era,
    /// The last failed start: those who waited for it share its error.
    failed: Option<(Instant, Failed)>,
    /// For the status, which waits for nobody.
    current: Option<Arc<Session>>,
    /// In place of a session, where the server is an HTTP service.
    service: Option<Arc<Linked>>,
    /// Access tokens, where the server takes some. They outlive its sessions.
    tokens: Option<Arc<Tokens>>,
    /// Values that the failures and tokens belong to: with others the server gets a fresh chance.
    fingerprint: [u8; 32],
}

#[derive(Clone, Debug)]
struct Failed {
    reason: String,
    stderr: String,
    timed_out: bool,
    after: Duration,
}

/// Counts a waiter for as long as it lives.
struct Waiter<'a>(&'a AtomicUsize);

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Slot {
    /// The place of sessions whose callers can be asked this.
    pub(super) fn new(askable: Askable) -> Self {
        Self {
            askable,
            ..Self::default()
        }
    }

    /// An open session, held for the caller.
    pub(super) async fn session(
        self: &Arc<Self>,
        pool: &Arc<Pool>,
        tenant: &TenantId,
        resolved: Resolved,
    ) -> Result<Held, UpstreamError> {
        let asked = Instant::now();
        let ahead = self.waiting.fetch_add(1, Ordering::AcqRel);
        let _waiter = Waiter(&self.waiting);
        if pool.options.waiting_max <= ahead {
            return Err(UpstreamError::Busy {
                what: "calls that wait for this server",
                retry_after: pool.options.wait_max,
            });
        }
        let place = self.session.clone().lock_owned().await;
        if let Some(session) = place.as_ref()
            && session.fingerprint == resolved.fingerprint
            && let Some(held) = session.hold()
        {
            return Ok(held);
        }
        self.check(&resolved, asked)?;
        self.start(pool, tenant, resolved, place).await
    }

    /// An HTTP service, held for the caller. Nothing is connected to before the call.
    pub(super) fn service(
        &self,
        pool: &Pool,
        resolved: Resolved,
    ) -> Result<HeldService, UpstreamError> {
        self.check(&resolved, Instant::now())?;
        let Resolved {
            server,
            target,
            secrets,
            fingerprint,
            ..
        } = resolved;
        let Target::Service {
            base_url,
            headers,
            operations,
        } = target
        else {
            return Err(ResolveError::NoLaunch(server).into());
        };
        let mut state = self.state();
        let known = state.service.as_ref();
        let known = known.filter(|linked| linked.fingerprint == fingerprint);
        let linked = if let Some(linked) = known {
            linked.clone()
        } else {
            let options = &pool.options;
            let (connect_max, loopback) = (options.connect_max, options.http_on_loopback);
            let made = HttpService::new(&base_url, &headers, connect_max, loopback);
            let made = made.map_err(|error| UpstreamError::Unavailable {
                server,
                reason: mask(&chain(&error), &secrets),
                stderr: String::new(),
                sent: false,
                retry_after: None,
            })?;
            let linked = Arc::new(Linked::new(made, fingerprint, options.calls_max));
            state.service.insert(linked).clone()
        };
        Ok(HeldService {
            linked,
            operations,
            secrets,
            lifecycle: pool.lifecycle.clone(),
        })
    }

    /// Whether a start may be tried now.
    fn check(&self, resolved: &Resolved, asked: Instant) -> Result<(), UpstreamError> {
        let mut state = self.state();
        if state.fingerprint != resolved.fingerprint {
            state.fingerprint = resolved.fingerprint;
            state.breaker.succeed();
            state.failed = None;
            state.tokens = None;
        }
        let pause = state.breaker.open_for(Instant::now());
        let shared = state.failed.as_ref().filter(|(at, _)| asked <= *at);
        match (shared, pause) {
            (Some((_, failed)), pause) => Err(unavailable(&resolved.server, failed.clone(), pause)),
            (None, Some(pause)) => {
                let failed = state.failed.clone().map_or_else(
                    || Failed {
                        reason: "it failed several times in a row".to_owned(),
                        stderr: String::new(),
                        timed_out: false,
                        after: Duration::ZERO,
                    },
                    |(_, failed)| failed,
                );
                let failed = Failed {
                    timed_out: false,
                    ..failed
                };
                Err(unavailable(&resolved.server, failed, Some(pause)))
            }
            (None, None) => Ok(()),
        }
    }

    /// Starts a session in a task of its own: it goes on when the caller gives up, so that the
    /// next one finds it.
    async fn start(
        self: &Arc<Self>,
        pool: &Arc<Pool>,
        tenant: &TenantId,
        resolved: Resolved,
        mut place: OwnedMutexGuard<Option<Arc<Session>>>,
    ) -> Result<Held, UpstreamError> {
        if let Some(old) = place.take() {
            // Its calls end in their own time.
            old.retire();
        }
        let permits = Arc::new(pool.places(tenant).await?);
        let (slot, pool) = (self.clone(), pool.clone());
        let server = resolved.server.clone();
        let lifecycle = pool.lifecycle.clone();
        let started = lifecycle.spawn(async move {
            let started = tokio::select! {
                started = slot.try_eras(&pool, &resolved, permits) => started,
                // A process that is dropped while it starts is killed with its group.
                () = pool.closed.cancelled() => Err(failure("it was closed".to_owned())),
                () = pool.lifecycle.cancelled() => Err(failure("it was closed".to_owned())),
            };
            let mut state = slot.state();
            match started {
                Ok(session) => {
                    debug!(server = %resolved.server, "started upstream session");
                    state.failed = None;
                    state.current = Some(session.clone());
                    let held = session.hold();
                    *place = Some(session);
                    // One that has ended in this moment is told as what it is.
                    held.ok_or_else(|| Failed {
                        reason: "it ended as soon as it had started".to_owned(),
                        stderr: String::new(),
                        timed_out: false,
                        after: Duration::ZERO,
                    })
                }
                Err(failure) => {
                    warn!(
                        server = %resolved.server,
                        reason = %failure.reason,
                        "upstream session did not start"
                    );
                    let failed = Failed {
                        reason: failure.reason,
                        stderr: failure.stderr,
                        timed_out: failure.timed_out,
                        after: pool.options.connect_max,
                    };
                    let now = Instant::now();
                    state.breaker.fail(now);
                    state.failed = Some((now, failed.clone()));
                    Err(failed)
                }
            }
        });
        match started.await {
            Ok(Ok(held)) => Ok(held),
            Ok(Err(failed)) => Err(unavailable(&server, failed, None)),
            Err(_ended) => Err(UpstreamError::ShuttingDown),
        }
    }

    /// A call was answered.
    pub(super) fn succeed(&self) {
        self.state().breaker.succeed();
    }

    /// A call was lost or too slow. After several in a row the session is started anew.
    pub(super) fn fail(&self) {
        let mut state = self.state();
        let now = Instant::now();
        state.breaker.fail(now);
        if state.breaker.open_for(now).is_some()
            && let Some(session) = &state.current
        {
            session.retire();
        }
    }

    /// Ends the session, and waits until nothing of it is left. One that starts at this moment is
    /// waited for, and ended.
    pub(super) async fn close(&self) {
        if let Some(session) = self.session.lock().await.take() {
            session.close();
            session.gone().await;
        }
        let mut state = self.state();
        state.current = None;
        state.service = None;
    }

    /// Ends the session when no call holds it, and says whether it did.
    pub(super) fn close_if_idle(&self) -> bool {
        let current = self.state().current.clone();
        current.is_some_and(|session| session.retire_if_free())
    }

    /// How long nobody has used the session; `None` where there is none to end.
    pub(super) fn idle(&self) -> Option<Duration> {
        let current = self.state().current.clone()?;
        (current.is_open() && current.is_free()).then(|| current.idle())
    }

    /// Lets go of a session that has ended, and says whether anything is left to remember.
    pub(super) fn tidy(&self) -> bool {
        let Ok(mut place) = self.session.try_lock() else {
            return true;
        };
        place.take_if(|session| !session.is_open());
        let mut state = self.state();
        state.current.take_if(|session| !session.is_open());
        let unused =
            |linked: &mut Arc<Linked>| Arc::strong_count(linked) == 1 && linked.is_unused();
        state.service.take_if(unused);
        let paused = state.breaker.open_for(Instant::now()).is_some();
        place.is_some()
            || state.current.is_some()
            || state.service.is_some()
            || paused
            || state.era != Era::Legacy
    }

    /// How it is, unless it was never used.
    pub(super) fn status(&self, tenant: TenantId, server: ServerName) -> Option<SessionStatus> {
        let state = self.state();
        let session = state.current.as_ref();
        let failed = state
            .failed
            .as_ref()
            .map(|(_, failed)| failed.stderr.clone());
        if session.is_none() && failed.is_none() {
            return None;
        }
        Some(SessionStatus {
            tenant,
            server,
            open: session.is_some_and(|session| session.is_open()),
            calls: session.map_or(0, |session| session.calls()),
            idle: session.map_or(Duration::ZERO, |session| session.idle()),
            paused_for: state.breaker.open_for(Instant::now()),
            stderr: match session {
                Some(session) => session.stderr_tail(),
                None => failed.unwrap_or_default(),
            },
        })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unavailable(server: &ServerName, failed: Failed, pause: Option<Duration>) -> UpstreamError {
    let server = server.clone();
    if failed.timed_out {
        return UpstreamError::Timeout {
            server,
            after: failed.after,
            stderr: failed.stderr,
            sent: false,
        };
    }
    UpstreamError::Unavailable {
        server,
        reason: failed.reason,
        stderr: failed.stderr,
        sent: false,
        retry_after: pause,
    }
}
