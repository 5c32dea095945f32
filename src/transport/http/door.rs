//! Who comes in: a tenant by its key, or everyone on an open loopback server.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::telemetry::Chain;
use crate::tenants::{Credential, Directory};
use crate::transport::desk::Guest;

/// Decides for each request whose it is.
#[derive(Debug)]
pub struct Door {
    directory: Arc<Directory>,
    may_be_open: bool,
}

impl Door {
    /// A door that asks the directory. `may_be_open` lets everyone in while there is no tenant;
    /// give it on loopback only.
    pub fn new(directory: Arc<Directory>, may_be_open: bool) -> Self {
        Self {
            directory,
            may_be_open,
        }
    }

    fn guest(&self, headers: &HeaderMap) -> Result<Guest, Refusal> {
        let stored = |error| {
            tracing::error!(error = %Chain(&error), "cannot read the tenants");
            Refusal::Unavailable
        };
        if self.may_be_open && self.directory.is_empty().map_err(stored)? {
            return Ok(Guest::local());
        }
        let credential = credential(headers)?;
        let found = self.directory.authenticate(&credential).map_err(stored)?;
        let (tenant, limits) = found.ok_or(Refusal::Wrong)?;
        Ok(Guest {
            tenant: Arc::new(tenant),
            limits,
            trace: None,
        })
    }
}

/// Why a request stays out. What is wrong with a key is not told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Refusal {
    Missing,
    Wrong,
    Unavailable,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (challenge, text) = match self {
            Self::Missing => (
                r#"Bearer realm="toolcrib""#,
                "a key is needed: send `Authorization: Bearer <key-id>.<secret>`",
            ),
            Self::Wrong => (
                r#"Bearer realm="toolcrib", error="invalid_token""#,
                "this key is not known here: `toolcrib tenant list` shows the keys there are",
            ),
            Self::Unavailable => {
                let text = "the list of tenants cannot be read; try again later";
                return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
            }
        };
        let headers = [(header::WWW_AUTHENTICATE, challenge)];
        (StatusCode::UNAUTHORIZED, headers, text).into_response()
    }
}

fn credential(headers: &HeaderMap) -> Result<Credential, Refusal> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().ok_or(Refusal::Missing)?;
    if values.next().is_some() {
        return Err(Refusal::Wrong);
    }
    let text = value.to_str().map_err(|_not_ascii| Refusal::Wrong)?;
    let (scheme, key) = text.split_once(' ').ok_or(Refusal::Wrong)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Refusal::Wrong);
    }
    key.trim().parse().map_err(|_unreadable| Refusal::Wrong)
}

/// Puts the guest into the request, or refuses it.
pub(super) async fn admit(
    State(door): State<Arc<Door>>,
    mut request: Request,
    next: Next,
) -> Response {
    match door.guest(request.headers()) {
        Ok(guest) => {
            request.extensions_mut().insert(guest);
            // From here on nobody needs the key, and what nobody has nobody leaks.
            request.headers_mut().remove(header::AUTHORIZATION);
            request.headers_mut().remove(header::COOKIE);
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;
    use crate::tenants::TenantLimits;

    #[test]
    fn only_one_bearer_key_opens() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Arc::new(Directory::new(folder.path().join("tenants.json")));
        let door = Door::new(Arc::clone(&directory), true);
        let mut rng = StdRng::seed_from_u64(1);
        let acme = "acme".parse().unwrap();
        assert_eq!(
            door.guest(&HeaderMap::new()).unwrap().tenant.id.as_str(),
            "local"
        );
        let key = directory
            .add(&acme, &[], TenantLimits::default(), &mut rng)
            .unwrap();
        let key = key.reveal_bearer();
        let check = |values: &[&str], expected: Result<&str, Refusal>| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, value.parse().unwrap());
            }
            let guest = door.guest(&headers);
            let id = guest
                .as_ref()
                .map(|guest| guest.tenant.id.as_str())
                .map_err(|r| *r);
            assert_eq!(id, expected, "{values:?}");
        };
        check(&[], Err(Refusal::Missing));
        check(&[&format!("Bearer {key}")], Ok("acme"));
        check(&[&format!("bearer {key}")], Ok("acme"));
        let (id, secret) = key.split_once('.').unwrap();
        check(
            &[&format!("Bearer toolcrib://{id}:{secret}@crib.example")],
            Ok("acme"),
        );
        check(&[&format!("Basic {key}")], Err(Refusal::Wrong));
        check(&[&key], Err(Refusal::Wrong));
        check(&[&format!("Bearer {key}x")], Err(Refusal::Wrong));
        check(
            &[&format!("Bearer {key}"), &format!("Bearer {key}")],
            Err(Refusal::Wrong),
        );
        directory.rotate(&acme, true, &mut rng).unwrap();
        check(&[&format!("Bearer {key}")], Err(Refusal::Wrong));
    }
}
