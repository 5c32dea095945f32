//! What an agent asks for, in its own words.

use std::fmt;
use std::str::FromStr;

/// Longest query, in characters after trimming.
pub const QUERY_CHARS_MAX: usize = 2_000;

/// Why a text is not a query.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseQueryError {
    /// Nothing but white space.
    #[error("query is empty")]
    Empty,
    /// The text is over the limit.
    #[error("query is {chars} characters long, over the limit of {QUERY_CHARS_MAX}")]
    TooLong {
        /// Length after trimming.
        chars: usize,
    },
}

/// A search query: 1 to 2,000 characters, without white space around it.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct Query(Box<str>);

impl Query {
    /// The query as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Query {
    type Err = ParseQueryError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let chars = text.chars().count();
        match chars {
            0 => Err(ParseQueryError::Empty),
            chars if QUERY_CHARS_MAX < chars => Err(ParseQueryError::TooLong { chars }),
            _ => Ok(Self(text.into())),
        }
    }
}

/// Queries may hold private matters: the log shows their length only.
impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Query({} characters)", self.0.chars().count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_trimmed_then_measured_in_characters() {
        let at_limit = "é".repeat(QUERY_CHARS_MAX);
        assert_eq!(
            format!("  {at_limit}\n").parse::<Query>().unwrap().as_str(),
            at_limit
        );
        assert_eq!(
            "é".repeat(QUERY_CHARS_MAX + 1).parse::<Query>(),
            Err(ParseQueryError::TooLong { chars: 2_001 })
        );
        assert_eq!(" \n\t".parse::<Query>(), Err(ParseQueryError::Empty));
    }

    #[test]
    fn debug_does_not_show_the_text() {
        let query: Query = "fire Bob".parse().unwrap();
        assert_eq!(format!("{query:?}"), "Query(8 characters)");
    }
}
