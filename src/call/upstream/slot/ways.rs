//! Which way a session is started, and the access tokens of a server that takes some.

use std::sync::Arc;

use tracing::warn;

use crate::call::resolve::{Remote, Resolved, Target};
use crate::call::upstream::failure::StartFailure;
use crate::call::upstream::session::Session;
use crate::call::upstream::slot::Slot;
use crate::call::upstream::start::{Era, start};
use crate::call::upstream::tokens::Tokens;
use crate::call::upstream::watch::Permits;
use crate::call::upstream::{Pool, UpstreamError};
use crate::domain::{HttpTransport, ServerName};

impl Slot {
    /// The era that the server spoke last, else the legacy one, and the modern one or the older
    /// transport where that is refused.
    pub(super) async fn try_eras(
        &self,
        pool: &Pool,
        resolved: &Resolved,
        permits: Arc<Permits>,
    ) -> Result<Arc<Session>, StartFailure> {
        let tokens = self.tokens(pool, resolved);
        let fixed = matches!(
            &resolved.target,
            Target::Remote(Remote {
                transport: HttpTransport::Sse,
                ..
            })
        );
        let era = match fixed {
            true => Era::Sse,
            false => self.state().era,
        };
        let first = start(
            resolved,
            pool,
            (era, self.askable),
            (permits.clone(), tokens.clone()),
        )
        .await;
        let other = match (&first, era) {
            (Err(failure), Era::Legacy) => failure.instead,
            (Err(_), Era::Modern | Era::Sse) if !fixed => Some(Era::Legacy),
            _ => None,
        };
        let Some(other) = other else {
            return first;
        };
        let second = start(resolved, pool, (other, self.askable), (permits, tokens)).await;
        match second {
            Ok(session) => {
                self.state().era = other;
                Ok(session)
            }
            // The first try says what is wrong; the second one was a guess.
            Err(_guess) => first,
        }
    }

    /// The tokens for these values, kept from session to session.
    fn tokens(&self, pool: &Pool, resolved: &Resolved) -> Option<Arc<Tokens>> {
        let Target::Remote(remote) = &resolved.target else {
            return None;
        };
        let credentials = remote.credentials.as_ref()?;
        let new = || {
            let (options, lifecycle) = (&pool.options, pool.lifecycle.clone());
            let loopback = options.http_on_loopback;
            let credentials = credentials.clone();
            Arc::new(Tokens::new(
                credentials,
                options.connect_max,
                loopback,
                lifecycle,
            ))
        };
        Some(self.state().tokens.get_or_insert_with(new).clone())
    }

    /// Sees to an access token for a call on an open session. A token endpoint that gives none
    /// counts as the server's failure.
    pub(in crate::call::upstream) async fn token(
        &self,
        session: &Session,
        server: &ServerName,
    ) -> Result<(), UpstreamError> {
        let got = session.token().await;
        got.map_err(|(error, first)| {
            if first {
                warn!(server = %server, reason = %error, "got no access token");
                self.fail();
            }
            UpstreamError::Unavailable {
                server: server.clone(),
                reason: session.mask(&error.to_string()),
                stderr: String::new(),
                sent: false,
                retry_after: None,
            }
        })
    }
}
