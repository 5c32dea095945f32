//! The id that ties a search to its run, for people and logs. It is no secret and opens nothing.

use std::fmt;
use std::str::FromStr;

use rand::RngCore;

/// A text is not a run id.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a run id is `w` followed by eight of `0-9 a-f`")]
pub struct ParseRunIdError;

/// `w` and eight hexadecimal digits, as in `w1a2b3c4d`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RunId(u32);

impl RunId {
    /// A new id.
    pub fn generate(rng: &mut dyn RngCore) -> Self {
        Self(rng.next_u32())
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "w{:08x}", self.0)
    }
}

impl FromStr for RunId {
    type Err = ParseRunIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix('w').ok_or(ParseRunIdError)?;
        let plain = digits
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if digits.len() != 8 || !plain {
            return Err(ParseRunIdError);
        }
        u32::from_str_radix(digits, 16)
            .map(Self)
            .map_err(|_cause| ParseRunIdError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn print_then_parse_is_identity() {
        for bits in [0, 1, 0x1a2b_3c4d, u32::MAX] {
            assert_eq!(RunId(bits).to_string().parse(), Ok(RunId(bits)));
        }
        assert!("w+1a2b3c4".parse::<RunId>().is_err());
        assert!("W1a2b3c4d".parse::<RunId>().is_err());
    }
}
