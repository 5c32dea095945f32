//! The last words of a child: what it wrote to standard error, with secrets masked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::call::upstream::mask::Mask;
use crate::domain::clean_text;

/// Bytes kept.
const KEPT_BYTES_MAX: usize = 64 * 1024;
/// Characters of it that an error shows.
const SHOWN_CHARS_MAX: usize = 2_000;

/// A ring of the last bytes.
#[derive(Debug)]
pub(super) struct Stderr {
    kept: Mutex<VecDeque<u8>>,
    secrets: Arc<Mask>,
}

impl Stderr {
    pub(super) fn new(secrets: Arc<Mask>) -> Self {
        Self {
            kept: Mutex::default(),
            secrets,
        }
    }

    /// Reads to the end. It never stops reading, so that a child that writes a lot does not stall.
    pub(super) async fn read(&self, mut from: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 8 * 1024];
        while let Ok(bytes) = from.read(&mut buffer).await {
            if bytes == 0 {
                return;
            }
            self.push(buffer.get(..bytes).unwrap_or_default());
        }
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(bytes);
        let surplus = kept.len().saturating_sub(KEPT_BYTES_MAX);
        kept.drain(..surplus);
    }

    /// The text without the session's secrets.
    pub(super) fn mask(&self, text: &str) -> String {
        self.secrets.apply(text)
    }

    /// The end of it, masked and safe to print.
    pub(super) fn tail(&self) -> String {
        let bytes: Vec<u8> = {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.iter().copied().collect()
        };
        let masked = self.mask(&String::from_utf8_lossy(&bytes));
        let characters = masked.chars().count();
        let end: String = masked
            .chars()
            .skip(characters.saturating_sub(SHOWN_CHARS_MAX))
            .collect();
        clean_text(&end, SHOWN_CHARS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_words_are_kept_and_secrets_are_not() {
        let secrets = Mask::new(vec!["hunter22".into(), "abc".into()], None);
        let stderr = Stderr::new(Arc::new(secrets));
        let text = format!(
            "{}\nlogin with hunter22 at abc\u{1b}[31m!\n",
            "x".repeat(200_000)
        );
        stderr.read(text.as_bytes()).await;
        let tail = stderr.tail();
        assert!(tail.ends_with("login with [secret] at abc!"), "{tail}");
        assert!(tail.chars().count() <= SHOWN_CHARS_MAX);
        assert!(stderr.kept.lock().unwrap().len() <= KEPT_BYTES_MAX);
    }
}
