//! Calls that wait for their caller's answer: the sealed state that the caller keeps meanwhile, and
//! what is kept here.
//!
//! A state is encrypted and authenticated under a key of this process, and bound to its tenant. What
//! it opens to says of which tool, arguments and run it is, so that it fits no other call. It is let
//! through once, within [`ASKED_FOR`].

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use rand::RngCore;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::call::upstream::Parked;
use crate::domain::{RunId, TenantId, ToolId};

/// How long a caller may take to answer.
pub const ASKED_FOR: Duration = Duration::from_mins(5);
/// States that were let through and are remembered. Past it answers wait.
const USED_MAX: usize = 100_000;
/// Calls of one tenant whose upstream waits within the call.
const TENANT_PARKED_MAX: usize = 16;
/// Calls of all tenants whose upstream waits within the call.
const PARKED_MAX: usize = 256;
const _: () = assert!(TENANT_PARKED_MAX <= PARKED_MAX);
/// Bytes of a nonce of `XChaCha20`.
const NONCE_BYTES: usize = 24;
/// Longest text that is looked at.
const STATE_BYTES_MAX: usize = 128 * 1024;
/// What a state is, for the seal: nothing else is ever sealed under this key.
const PURPOSE: &str = "toolcrib requestState 1 ";

/// Names one state.
pub(super) type Nonce = [u8; NONCE_BYTES];

/// The call that a state belongs to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Stub {
    pub(super) tool: ToolId,
    /// The tool's definition hash.
    pub(super) definition: [u8; 32],
    /// Of the arguments as they were sent.
    pub(super) arguments: [u8; 32],
    /// The search's run; none for a direct call.
    pub(super) run_id: Option<RunId>,
    /// Of the handle that was spent; none for a direct call.
    pub(super) handle: Option<[u8; 32]>,
    /// How often it has asked.
    pub(super) round: u64,
}

/// What a state opens to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Opened {
    pub(super) stub: Stub,
    /// The upstream session that asked.
    pub(super) session: u64,
    /// What comes next.
    pub(super) next: Next,
}

/// How the call goes on when the answer comes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Next {
    /// It is sent again with the upstream's own state, where it gave one.
    Send(Option<String>),
    /// The upstream waits within the call, which is kept here.
    Unpark,
}

/// All that wait. States need no place here; what they are spent by does.
pub(super) struct Asked {
    cipher: XChaCha20Poly1305,
    born: Instant,
    used: DashMap<Nonce, Instant>,
    parked: Mutex<HashMap<Nonce, Place>>,
}

struct Place {
    tenant: TenantId,
    parked: Parked,
    /// Ends the task that would let go of it.
    _taken: DropGuard,
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked")
            .field("parked", &self.places().len())
            .finish_non_exhaustive()
    }
}

/// A state is not let through.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum PassError {
    /// It was before.
    Used,
    /// Too many are remembered.
    Full,
}

impl Asked {
    /// Nothing waits; a new key.
    pub(super) fn new(rng: &mut dyn RngCore) -> Self {
        let mut key = [0; 32];
        rng.fill_bytes(&mut key);
        Self {
            cipher: XChaCha20Poly1305::new(&Key::from(key)),
            born: Instant::now(),
            used: DashMap::new(),
            parked: Mutex::default(),
        }
    }

    /// Seals what a call will go on with; `None` if it cannot be sealed, which is too long a text.
    pub(super) fn seal(
        &self,
        tenant: &TenantId,
        opened: &Opened,
        rng: &mut dyn RngCore,
    ) -> Option<(Nonce, String)> {
        let mut nonce = [0; NONCE_BYTES];
        rng.fill_bytes(&mut nonce);
        let expires = self.born.elapsed() + ASKED_FOR;
        let plain = encode(opened, expires).to_string();
        let binding = binding(tenant);
        let payload = Payload {
            msg: plain.as_bytes(),
            aad: binding.as_bytes(),
        };
        let sealed = self.cipher.encrypt(XNonce::from_slice(&nonce), payload);
        let text = BASE64.encode([&nonce[..], &sealed.ok()?].concat());
        (text.len() <= STATE_BYTES_MAX).then_some((nonce, text))
    }

    /// What a state stands for. Forged, foreign and expired ones are one answer.
    pub(super) fn open(&self, tenant: &TenantId, text: &str) -> Option<(Nonce, Opened)> {
        if STATE_BYTES_MAX < text.len() {
            return None;
        }
        let bytes = BASE64.decode(text).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>()?;
        let binding = binding(tenant);
        let payload = Payload {
            msg: sealed,
            aad: binding.as_bytes(),
        };
        let plain = self.cipher.decrypt(XNonce::from_slice(nonce), payload);
        let (opened, expires) = decode(&serde_json::from_slice(&plain.ok()?).ok()?)?;
        (self.born.elapsed() < expires).then_some((*nonce, opened))
    }

    /// Lets a state through, once.
    pub(super) fn pass(&self, nonce: Nonce) -> Result<(), PassError> {
        if USED_MAX <= self.used.len() {
            return Err(PassError::Full);
        }
        match self.used.entry(nonce) {
            Entry::Occupied(_) => Err(PassError::Used),
            Entry::Vacant(place) => {
                place.insert(Instant::now());
                Ok(())
            }
        }
    }

    /// Keeps a call whose upstream waits. It is let go when nobody answers, and when the program
    /// stops. Without room it comes back.
    pub(super) fn park(
        self: &Arc<Self>,
        tenant: &TenantId,
        nonce: Nonce,
        parked: Parked,
    ) -> Result<(), Box<Parked>> {
        let lifecycle = parked.lifecycle().clone();
        let taken = CancellationToken::new();
        {
            let mut places = self.places();
            let own = places.values().filter(|place| place.tenant == *tenant);
            if PARKED_MAX <= places.len() || TENANT_PARKED_MAX <= own.count() {
                return Err(Box::new(parked));
            }
            let place = Place {
                tenant: tenant.clone(),
                parked,
                _taken: taken.clone().drop_guard(),
            };
            places.insert(nonce, place);
        }
        let (asked, stop) = (Arc::clone(self), lifecycle.clone());
        lifecycle.spawn(async move {
            tokio::select! {
                () = taken.cancelled() => return,
                () = tokio::time::sleep(ASKED_FOR) => {}
                () = stop.stopping() => {}
            }
            // Dropped outside of the lock: the upstream is told.
            let _let_go = asked.unpark(nonce);
        });
        Ok(())
    }

    /// Takes a kept call, once.
    pub(super) fn unpark(&self, nonce: Nonce) -> Option<Parked> {
        let place = self.places().remove(&nonce)?;
        Some(place.parked)
    }

    /// Forgets used states that have expired. Called by the sweeper.
    pub(super) fn sweep(&self) {
        self.used.retain(|_, used| used.elapsed() < ASKED_FOR);
    }

    fn places(&self) -> std::sync::MutexGuard<'_, HashMap<Nonce, Place>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn binding(tenant: &TenantId) -> String {
    PURPOSE.to_owned() + tenant.as_str()
}

fn encode(opened: &Opened, expires: Duration) -> Value {
    let Opened {
        stub,
        session,
        next,
    } = opened;
    let text = |bytes: &[u8; 32]| BASE64.encode(bytes);
    let (parked, state) = match next {
        Next::Send(state) => (false, state.as_deref()),
        Next::Unpark => (true, None),
    };
    json!({
        "expires": u64::try_from(expires.as_millis()).unwrap_or_default(),
        "tool": stub.tool.to_string(),
        "definition": text(&stub.definition),
        "arguments": text(&stub.arguments),
        "run": stub.run_id.map(|run| run.to_string()),
        "handle": stub.handle.as_ref().map(text),
        "round": stub.round,
        "session": session,
        "parked": parked,
        "state": state,
    })
}

fn decode(plain: &Value) -> Option<(Opened, Duration)> {
    let text = |key: &str| plain.get(key).and_then(Value::as_str);
    let number = |key: &str| plain.get(key).and_then(Value::as_u64);
    let bytes = |text: &str| BASE64.decode(text).ok()?.try_into().ok();
    let stub = Stub {
        tool: text("tool")?.parse().ok()?,
        definition: bytes(text("definition")?)?,
        arguments: bytes(text("arguments")?)?,
        run_id: match text("run") {
            Some(run) => Some(run.parse().ok()?),
            None => None,
        },
        handle: match text("handle") {
            Some(handle) => Some(bytes(handle)?),
            None => None,
        },
        round: number("round")?,
    };
    let next = match plain.get("parked")?.as_bool()? {
        true => Next::Unpark,
        false => Next::Send(text("state").map(str::to_owned)),
    };
    let opened = Opened {
        stub,
        session: number("session")?,
        next,
    };
    Some((opened, Duration::from_millis(number("expires")?)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    fn opened(state: Option<&str>) -> Opened {
        Opened {
            stub: Stub {
                tool: "slack/post".parse().unwrap(),
                definition: [1; 32],
                arguments: [2; 32],
                run_id: Some("w1a2b3c4d".parse().unwrap()),
                handle: Some([3; 32]),
                round: 1,
            },
            session: 7,
            next: state.map_or(Next::Unpark, |state| Next::Send(Some(state.to_owned()))),
        }
    }

    fn tenant(name: &str) -> TenantId {
        name.parse().unwrap()
    }

    fn asked(seed: u64) -> (Asked, StdRng) {
        let mut rng = StdRng::seed_from_u64(seed);
        (Asked::new(&mut rng), rng)
    }

    #[tokio::test(start_paused = true)]
    async fn a_state_opens_for_its_tenant_under_its_key_in_its_time() {
        let (asked, mut rng) = asked(1);
        let a = tenant("a");
        let direct = Opened {
            stub: Stub {
                run_id: None,
                handle: None,
                ..opened(None).stub
            },
            next: Next::Send(None),
            ..opened(None)
        };
        for whole in [opened(Some("theirs")), opened(None), direct] {
            let (nonce, text) = asked.seal(&a, &whole, &mut rng).unwrap();
            assert_eq!(asked.open(&a, &text), Some((nonce, whole.clone())));
            assert_eq!(asked.open(&tenant("b"), &text), None);
            let other = Asked::new(&mut rng);
            assert_eq!(other.open(&a, &text), None);
        }
        let (_, text) = asked.seal(&a, &opened(None), &mut rng).unwrap();
        tokio::time::advance(Duration::from_secs(299)).await;
        assert!(asked.open(&a, &text).is_some());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(asked.open(&a, &text), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_state_passes_once_and_is_forgotten_when_it_has_expired() {
        let (asked, _) = asked(2);
        assert_eq!(asked.pass([1; NONCE_BYTES]), Ok(()));
        assert_eq!(asked.pass([1; NONCE_BYTES]), Err(PassError::Used));
        assert_eq!(asked.pass([2; NONCE_BYTES]), Ok(()));
        asked.sweep();
        assert_eq!(asked.pass([1; NONCE_BYTES]), Err(PassError::Used));
        tokio::time::advance(ASKED_FOR).await;
        asked.sweep();
        assert!(asked.used.is_empty());
    }

    #[test]
    fn a_sealed_state_shows_nothing() {
        let (asked, mut rng) = asked(3);
        let (_, text) = asked
            .seal(&tenant("a"), &opened(Some("s3cret")), &mut rng)
            .unwrap();
        let bytes = BASE64.decode(&text).unwrap();
        let shown = String::from_utf8_lossy(&bytes);
        assert!(!shown.contains("s3cret") && !shown.contains("slack"));
        let long = "x".repeat(STATE_BYTES_MAX);
        assert_eq!(
            asked.seal(&tenant("a"), &opened(Some(&long)), &mut rng),
            None
        );
    }

    proptest! {
        #[test]
        fn a_changed_state_never_opens(at in 0_usize..400, bit in 0_u8..8, cut in any::<bool>()) {
            let (asked, mut rng) = asked(4);
            let (_, text) = asked.seal(&tenant("a"), &opened(Some("theirs")), &mut rng).unwrap();
            let mut bytes = BASE64.decode(&text).unwrap();
            let at = at % bytes.len();
            if cut {
                bytes.truncate(at);
            } else {
                bytes[at] ^= 1 << bit;
            }
            prop_assert_eq!(asked.open(&tenant("a"), &BASE64.encode(&bytes)), None);
        }

        #[test]
        fn no_text_breaks_the_reader(text in "\\PC{0,200}") {
            prop_assert_eq!(asked(5).0.open(&tenant("a"), &text), None);
        }
    }
}
