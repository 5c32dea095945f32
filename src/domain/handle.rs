//! The check that a search leaves and a run spends.

use std::fmt;
use std::str::FromStr;

use rand::RngCore;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::domain::TenantId;

/// Characters of a handle.
const CHARS: usize = 10;
/// 64 characters: each carries six bits.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A text is not a handle. It says nothing about the text: a handle is a secret.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a handle is {CHARS} characters of `A-Z a-z 0-9 - _`")]
pub struct ParseHandleError;

/// Ten characters of `A-Z a-z 0-9 - _`, 60 random bits that encode nothing.
///
/// It is a secret: `Debug` hides it, it has no `Display`, only [`Handle::reveal`] gives the text, for
/// the reply, and two are compared in a time that does not depend on where they differ.
#[derive(Clone, Eq)]
pub struct Handle([u8; CHARS]);

impl PartialEq for Handle {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Handle {
    /// A new handle. `rng` is the operating system's source, or a seeded one in tests.
    pub fn generate(rng: &mut dyn RngCore) -> Self {
        let mut bytes = [0; CHARS];
        rng.fill_bytes(&mut bytes);
        // 64 divides 256: the low six bits of a uniform byte are uniform.
        Self(bytes.map(|byte| ALPHABET[usize::from(byte & 63)]))
    }

    /// The text, for the one reply that hands it out.
    pub fn reveal(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The only form in which a handle is stored or logged: bound to its tenant, so that one
    /// tenant's handle is unknown to all others.
    pub fn key(&self, tenant: &TenantId) -> HandleKey {
        let mut hasher = Sha256::new();
        hasher.update(self.0);
        hasher.update(tenant.as_str().as_bytes());
        HandleKey(hasher.finalize().into())
    }
}

impl FromStr for Handle {
    type Err = ParseHandleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes: [u8; CHARS] = text
            .as_bytes()
            .try_into()
            .map_err(|_cause| ParseHandleError)?;
        if bytes.iter().all(|byte| ALPHABET.contains(byte)) {
            Ok(Self(bytes))
        } else {
            Err(ParseHandleError)
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handle(..)")
    }
}

/// SHA-256 over a handle and its tenant. Prints its first eight hexadecimal digits.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct HandleKey([u8; 32]);

impl HandleKey {
    /// The hash as bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for HandleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .take(4)
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for HandleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn print_then_parse_is_identity_and_debug_hides_it() {
        let handle = Handle::generate(&mut StdRng::seed_from_u64(7));
        assert_eq!(handle.reveal().parse::<Handle>().unwrap(), handle);
        assert_eq!(format!("{handle:?}"), "Handle(..)");
    }

    #[test]
    fn ten_million_handles_are_unique_and_uniform() {
        const HANDLES: usize = 10_000_000;
        let mut rng = StdRng::from_os_rng();
        let mut places = [0_u8; 128];
        for (place, byte) in (0..).zip(ALPHABET) {
            places[usize::from(*byte)] = place;
        }
        let mut counts = [0_u32; 64];
        let mut seen: Vec<u64> = Vec::with_capacity(HANDLES);
        for _ in 0..HANDLES {
            let mut packed = 0;
            for byte in Handle::generate(&mut rng).0 {
                let place = places[usize::from(byte)];
                counts[usize::from(place)] += 1;
                packed = packed << 6 | u64::from(place);
            }
            seen.push(packed);
        }
        // A mean of 1,562,500 of each; seven standard deviations are 8,700. Two of ten million
        // are the same once in 23,000 runs.
        assert!(counts.iter().all(|count| count.abs_diff(1_562_500) < 8_700));
        seen.sort_unstable();
        assert!(seen.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_handle_has_another_key_for_each_tenant() {
        let handle = Handle::generate(&mut StdRng::seed_from_u64(1));
        let (a, b) = ("a".parse().unwrap(), "b".parse().unwrap());
        assert_ne!(handle.key(&a), handle.key(&b));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>()) {
            let _ = text.parse::<Handle>();
        }
    }
}
