//! State that clients keep for us and cannot change: sealed under a key that ends with the process.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, AeadCore, KeyInit, OsRng, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use rmcp::model::ErrorData;

/// Bytes of a nonce of `XChaCha20`.
const NONCE_BYTES: usize = 24;

/// Seals and opens.
pub(crate) struct Seal(XChaCha20Poly1305);

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    pub(crate) fn new() -> Self {
        let key = XChaCha20Poly1305::generate_key(&mut OsRng);
        Self(XChaCha20Poly1305::new(&key))
    }

    /// The state as text, for the request of that name alone.
    pub(crate) fn close(&self, state: &[u8], name: &str) -> Result<String, ErrorData> {
        let nonce = XChaCha20Poly1305::generate_nonce(&mut OsRng);
        let payload = Payload {
            msg: state,
            aad: name.as_bytes(),
        };
        let sealed = self.0.encrypt(&nonce, payload);
        let sealed =
            sealed.map_err(|_opaque| ErrorData::internal_error("cannot seal the state", None))?;
        Ok(URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat()))
    }

    /// The state again, unless somebody has touched the text or sends it elsewhere.
    pub(crate) fn open(&self, text: &str, name: &str) -> Result<Vec<u8>, ErrorData> {
        let opened = URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| {
            let (nonce, sealed) = bytes.split_at_checked(NONCE_BYTES)?;
            let payload = Payload {
                msg: sealed,
                aad: name.as_bytes(),
            };
            self.0.decrypt(XNonce::from_slice(nonce), payload).ok()
        });
        opened.ok_or_else(|| ErrorData::invalid_params("`requestState` is not ours", None))
    }
}
