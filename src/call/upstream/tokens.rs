//! Access tokens of one tenant for one remote server (OAuth 2.0 client credentials).
//!
//! ```text
//! bearer:     the current one, or got once for all who wait
//! instead_of: another, once, where the server refuses one that should hold
//! ```
//!
//! They live in memory only.

mod endpoint;

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use tokio::time::Instant;

pub(super) use self::endpoint::GetTokenError;

use crate::call::resolve::Credentials;
use crate::call::upstream::mask::mask;
use crate::call::upstream::tokens::endpoint::{Endpoint, Given};
use crate::lifecycle::Lifecycle;

/// A token is renewed this long before its end, or in the last quarter of a short life.
const RENEWED_BEFORE: Duration = Duration::from_secs(30);
/// How long a server that has refused a renewed token as well is not offered another.
const REFUSED_PAUSE: Duration = Duration::from_secs(30);
/// Tokens that are masked in texts: those in use, and a few that were.
const MASKED_MAX: usize = 6;

/// An access token.
#[derive(Debug)]
pub(super) struct Token {
    value: SecretString,
    got: Instant,
    renewed_from: Instant,
    /// Whether it took the place of one that the server refused.
    instead: bool,
    accepted: AtomicBool,
}

impl Token {
    /// What goes behind `Bearer`.
    pub(super) fn reveal(&self) -> &str {
        self.value.expose_secret()
    }

    /// The server took it.
    pub(super) fn accept(&self) {
        self.accepted.store(true, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct State {
    current: Option<Arc<Token>>,
    refresh: Option<SecretString>,
    /// The last failure: those who waited for it share it.
    failed: Option<(Instant, GetTokenError)>,
    /// Whether that failure was counted.
    counted: bool,
    /// Values that no text may show.
    issued: VecDeque<SecretString>,
}

/// The tokens.
pub(super) struct Tokens {
    endpoint: Endpoint,
    lifecycle: Lifecycle,
    /// Held while a token is got: those who wait find it ready.
    turn: Arc<tokio::sync::Mutex<()>>,
    state: Mutex<State>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let any = self.state().current.is_some();
        f.debug_struct("Tokens")
            .field("any", &any)
            .finish_non_exhaustive()
    }
}

impl Tokens {
    /// None yet.
    pub(super) fn new(
        credentials: Credentials,
        connect_max: Duration,
        loopback: bool,
        lifecycle: Lifecycle,
    ) -> Self {
        Self {
            endpoint: Endpoint::new(credentials, connect_max, loopback),
            lifecycle,
            turn: Arc::default(),
            state: Mutex::default(),
        }
    }

    /// A token that holds for a while.
    pub(super) async fn bearer(self: &Arc<Self>) -> Result<Arc<Token>, GetTokenError> {
        let current = self.state().current.clone();
        match current.filter(|token| Instant::now() < token.renewed_from) {
            Some(token) => Ok(token),
            None => self.renewed(None).await,
        }
    }

    /// Another token where the server has refused `token`: the one that somebody has got meanwhile,
    /// or a new one. A server that refuses that as well gets no third for a while.
    pub(super) async fn instead_of(
        self: &Arc<Self>,
        token: &Arc<Token>,
    ) -> Result<Arc<Token>, GetTokenError> {
        let in_vain = token.instead
            && !token.accepted.load(Ordering::Relaxed)
            && token.got.elapsed() < REFUSED_PAUSE;
        if in_vain {
            return Err(GetTokenError::Refused);
        }
        self.renewed(Some(token)).await
    }

    /// Waits for its turn, and gets a token unless the turn before has. It goes on when the caller
    /// gives up, so that the next one finds it.
    async fn renewed(
        self: &Arc<Self>,
        refused: Option<&Arc<Token>>,
    ) -> Result<Arc<Token>, GetTokenError> {
        let asked = Instant::now();
        let turn = self.turn.clone().lock_owned().await;
        if let Some(known) = self.known(asked, refused) {
            return known;
        }
        let (own, instead) = (self.clone(), refused.is_some());
        let got = self.lifecycle.spawn(async move {
            let began = Instant::now();
            let given = tokio::select! {
                given = own.get() => given,
                () = own.lifecycle.cancelled() => Err(GetTokenError::Stopped),
            };
            let kept = own.keep(given, began, instead);
            drop(turn);
            kept
        });
        got.await.unwrap_or(Err(GetTokenError::Stopped))
    }

    /// What came of the turn before, for one who asked before it ended.
    fn known(
        &self,
        asked: Instant,
        refused: Option<&Arc<Token>>,
    ) -> Option<Result<Arc<Token>, GetTokenError>> {
        let state = self.state();
        let current = state.current.as_ref().filter(|token| {
            let other = refused.is_none_or(|refused| !Arc::ptr_eq(refused, token));
            // One that is got for somebody may be short-lived; it is good for all who waited.
            other && (Instant::now() < token.renewed_from || asked <= token.got)
        });
        let failed = state.failed.as_ref().filter(|(at, _)| asked <= *at);
        match (current, failed) {
            (Some(token), _) => Some(Ok(token.clone())),
            (None, Some((_, error))) => Some(Err(error.clone())),
            (None, None) => None,
        }
    }

    fn keep(
        &self,
        given: Result<Given, GetTokenError>,
        began: Instant,
        instead: bool,
    ) -> Result<Arc<Token>, GetTokenError> {
        let mut state = self.state();
        let now = Instant::now();
        match given {
            Ok(given) => {
                state.issued.push_back(given.access.clone());
                state.issued.extend(given.refresh.clone());
                let surplus = state.issued.len().saturating_sub(MASKED_MAX);
                state.issued.drain(..surplus);
                let margin = RENEWED_BEFORE.min(given.life / 4);
                let token = Arc::new(Token {
                    value: given.access,
                    got: now,
                    // Counted from before the request: its way back is part of its life.
                    renewed_from: began + given.life.saturating_sub(margin),
                    instead,
                    accepted: AtomicBool::new(false),
                });
                state.failed = None;
                state.current = Some(token.clone());
                // An endpoint that gives no new one leaves the old one in force.
                state.refresh = given.refresh.or(state.refresh.take());
                Ok(token)
            }
            Err(error) => {
                state.current = None;
                state.failed = Some((now, error.clone()));
                state.counted = false;
                Err(error)
            }
        }
    }

    /// By the refresh token where there is one, else, and where that is no longer taken, by the
    /// credentials.
    async fn get(&self) -> Result<Given, GetTokenError> {
        let refresh = self.state().refresh.clone();
        if let Some(refresh) = refresh {
            match self.endpoint.refresh(&refresh).await {
                Err(GetTokenError::Denied { .. }) => self.state().refresh = None,
                other => return other,
            }
        }
        self.endpoint.get().await
    }

    /// Whether the last failure is told for the first time: however many waited for it, it is one.
    pub(super) fn failed_first(&self) -> bool {
        let mut state = self.state();
        state.failed.is_some() && !std::mem::replace(&mut state.counted, true)
    }

    /// The text without tokens and without what they are got with.
    pub(super) fn mask(&self, text: &str) -> String {
        let issued: Vec<SecretString> = self.state().issued.iter().cloned().collect();
        mask(&self.endpoint.mask(text), &issued)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::upstream::tokens::endpoint::LIFE_MAX;
    use crate::domain::ClientAuth;

    fn tokens() -> Arc<Tokens> {
        let credentials = Credentials {
            token_url: "https://id.example/token".to_owned(),
            client_id: "harbour".into(),
            client_secret: "canary-4711".into(),
            scope: None,
            resource: None,
            auth: ClientAuth::Basic,
        };
        let lifecycle = Lifecycle::new();
        Arc::new(Tokens::new(
            credentials,
            Duration::from_secs(1),
            false,
            lifecycle,
        ))
    }

    #[test]
    fn nothing_that_is_secret_is_shown() {
        let tokens = tokens();
        let given = Given {
            access: "access-canary".into(),
            life: LIFE_MAX,
            refresh: Some("refresh-canary".into()),
        };
        let now = Instant::now();
        let token = tokens.keep(Ok(given), now, false).unwrap();
        // `harbour:canary-4711`, as a server may echo it.
        let basic = "aGFyYm91cjpjYW5hcnktNDcxMQ==";
        let text = format!("canary-4711 access-canary refresh-canary {basic}");
        assert_eq!(tokens.mask(&text), "[secret] [secret] [secret] [secret]");
        let shown = format!("{tokens:?} {token:?}");
        assert!(!shown.contains("canary"), "{shown}");
    }

    #[tokio::test]
    async fn a_token_that_replaced_a_refused_one_is_not_replaced_at_once() {
        let tokens = tokens();
        let given = |access: &str| {
            Ok(Given {
                access: access.into(),
                life: LIFE_MAX,
                refresh: None,
            })
        };
        let now = Instant::now();
        let first = tokens.keep(given("first"), now, false).unwrap();
        let second = tokens.keep(given("second"), now, true).unwrap();
        // Somebody has renewed it meanwhile.
        let found = tokens.instead_of(&first).await.unwrap();
        assert_eq!(found.reveal(), "second");
        let refused = tokens.instead_of(&second).await.unwrap_err();
        assert_eq!(refused, GetTokenError::Refused);
    }
}
