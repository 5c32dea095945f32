//! What a tenant shows at the door.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::RngCore;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Random bytes of a secret: 256 bits.
const SECRET_BYTES: usize = 32;
/// Random bytes of a key id.
const KEY_ID_BYTES: usize = 6;
/// Longest text that is looked at.
const TEXT_MAX: usize = 512;

/// A text is no credential. It says nothing about the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("credential is not `<key-id>.<secret>` or `toolcrib://<key-id>:<secret>@host`")]
pub struct ParseCredentialError;

/// A key id and its secret. `Debug` shows the key id alone.
#[derive(Clone)]
pub struct Credential {
    key_id: Box<str>,
    secret: Box<str>,
}

impl Credential {
    /// A new one, from the operating system's random source or a seeded one in tests.
    pub fn generate(rng: &mut dyn RngCore) -> Self {
        let (mut id, mut secret) = ([0; KEY_ID_BYTES], [0; SECRET_BYTES]);
        rng.fill_bytes(&mut id);
        rng.fill_bytes(&mut secret);
        Self {
            key_id: URL_SAFE_NO_PAD.encode(id).into(),
            secret: URL_SAFE_NO_PAD.encode(secret).into(),
        }
    }

    /// Which key it is.
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// The text for `Authorization: Bearer`.
    pub fn reveal_bearer(&self) -> String {
        format!("{}.{}", self.key_id, self.secret)
    }

    /// The connection string for a host.
    pub fn reveal_connection(&self, host: &str) -> String {
        format!("toolcrib://{}:{}@{host}", self.key_id, self.secret)
    }

    /// The only form that is stored. A plain hash is enough for a secret of 256 random bits.
    pub(super) fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.secret.as_bytes()).into()
    }

    /// Whether stored bytes are this secret's hash, in a time that does not depend on the answer.
    pub(super) fn matches(&self, hash: &[u8]) -> bool {
        self.hash().as_slice().ct_eq(hash).into()
    }
}

impl FromStr for Credential {
    type Err = ParseCredentialError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if TEXT_MAX < text.len() {
            return Err(ParseCredentialError);
        }
        let (key_id, secret) = match text.strip_prefix("toolcrib://") {
            Some(rest) => {
                let (user, _host) = rest.split_once('@').ok_or(ParseCredentialError)?;
                user.split_once(':').ok_or(ParseCredentialError)?
            }
            None => text.split_once('.').ok_or(ParseCredentialError)?,
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let fine = |part: &str| !part.is_empty() && part.chars().all(plain);
        if !fine(key_id) || !fine(secret) {
            return Err(ParseCredentialError);
        }
        Ok(Self {
            key_id: key_id.into(),
            secret: secret.into(),
        })
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credential({})", self.key_id)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn both_forms_read_back_and_debug_hides_the_secret() {
        let credential = Credential::generate(&mut StdRng::seed_from_u64(1));
        let forms = [
            credential.reveal_bearer(),
            credential.reveal_connection("crib.example:8787"),
        ];
        for text in forms {
            let read: Credential = text.parse().unwrap();
            assert!(read.matches(&credential.hash()));
            assert!(!format!("{read:?}").contains(&*read.secret));
        }
        assert_eq!(credential.secret.len(), 43);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>()) {
            let _ = text.parse::<Credential>();
            let _ = format!("toolcrib://{text}").parse::<Credential>();
        }
    }
}
