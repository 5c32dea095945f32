//! Secrets that no text about a session may show: the tenant's values, and tokens got with them.

use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};

use crate::call::upstream::tokens::Tokens;

/// Shorter values would mask ordinary words.
const MASKED_CHARS_MIN: usize = 4;

/// The secrets of one session.
#[derive(Debug, Default)]
pub(super) struct Mask {
    secrets: Vec<SecretString>,
    tokens: Option<Arc<Tokens>>,
}

impl Mask {
    pub(super) fn new(secrets: Vec<SecretString>, tokens: Option<Arc<Tokens>>) -> Self {
        Self { secrets, tokens }
    }

    /// The text with every known secret replaced.
    pub(super) fn apply(&self, text: &str) -> String {
        let masked = mask(text, &self.secrets);
        match &self.tokens {
            Some(tokens) => tokens.mask(&masked),
            None => masked,
        }
    }
}

/// The text with these secrets replaced.
pub(super) fn mask(text: &str, secrets: &[SecretString]) -> String {
    let mut masked = text.to_owned();
    for secret in secrets {
        let value = secret.expose_secret().trim();
        if MASKED_CHARS_MIN <= value.chars().count() {
            masked = masked.replace(value, "[secret]");
        }
    }
    masked
}
