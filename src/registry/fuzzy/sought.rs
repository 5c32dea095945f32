//! The texts of a tool that a query is held against, prepared once.

use crate::domain::Tool;
use crate::registry::fuzzy::{KEYWORD, NAME};

/// Bits of a set of pairs of bytes.
const PAIR_BITS: usize = 256;

/// Folded texts of one tool, with what tells at a glance that a word is not in them.
#[derive(Clone, Debug)]
pub(in crate::registry) struct Sought {
    /// The name.
    pub(super) name: Box<str>,
    /// Its words, where it has more than one.
    pub(super) parts: Box<[Box<str>]>,
    /// The name in words.
    phrase: Box<str>,
    pub(super) keywords: Box<[Box<str>]>,
    pub(super) description: Box<str>,
    /// Pairs of bytes in name and keywords.
    pub(super) near: Pairs,
    /// Pairs of bytes in the description.
    pub(super) far: Pairs,
}

impl Sought {
    /// Of a tool under a name, with further keywords.
    pub(in crate::registry) fn of(name: &str, tool: &Tool, more: &[&str]) -> Self {
        let phrase = phrase(name);
        let folded = name.to_lowercase();
        let parts: Vec<Box<str>> = phrase.split(' ').map(Into::into).collect();
        let keywords = tool.keywords().iter().map(AsRef::as_ref);
        let keywords: Box<[Box<str>]> = keywords
            .chain(more.iter().copied())
            .map(|keyword: &str| keyword.trim().to_lowercase())
            .filter(|keyword| !keyword.is_empty())
            .map(Into::into)
            .collect();
        let description = tool.description().to_lowercase();
        let mut near = Pairs::default();
        near.add(&folded);
        keywords.iter().for_each(|keyword| near.add(keyword));
        let mut far = Pairs::default();
        far.add(&description);
        Self {
            parts: if 1 < parts.len() {
                parts.into()
            } else {
                Box::default()
            },
            name: folded.into(),
            phrase: phrase.into(),
            keywords,
            description: description.into(),
            near,
            far,
        }
    }

    /// What a whole query is worth that is the name in words, or a keyword of several.
    pub(super) fn whole(&self, phrase: &str) -> f32 {
        if *self.phrase == *phrase {
            return NAME;
        }
        match self.keywords.iter().any(|keyword| **keyword == *phrase) {
            true => KEYWORD,
            false => 0.0,
        }
    }
}

/// A text as folded words with one space between them: `createPull_request` is
/// `create pull request`.
pub(super) fn phrase(text: &str) -> String {
    let mut phrase = String::with_capacity(text.len() + 4);
    let mut before_lower = false;
    for c in text.chars() {
        let splits = c.is_uppercase() && before_lower;
        if (splits || !c.is_alphanumeric()) && !phrase.ends_with(' ') && !phrase.is_empty() {
            phrase.push(' ');
        }
        if c.is_alphanumeric() {
            phrase.extend(c.to_lowercase());
        }
        before_lower = c.is_lowercase() || c.is_numeric();
    }
    phrase.truncate(phrase.trim_end().len());
    phrase
}

/// A set of pairs of neighbouring bytes; it may hold more than was added, never less.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pairs([u64; PAIR_BITS / 64]);

impl Pairs {
    /// Adds all pairs of a text.
    pub(super) fn add(&mut self, text: &str) {
        for pair in text.as_bytes().windows(2) {
            if let [first, second] = *pair {
                let at = usize::from(first.wrapping_mul(31) ^ second.wrapping_mul(17));
                if let Some(bits) = self.0.get_mut(at / 64) {
                    *bits |= 1 << (at % 64);
                }
            }
        }
    }

    /// Whether a text with these pairs may hold one with those.
    pub(super) fn may_hold(&self, others: &Self) -> bool {
        let mut both = self.0.iter().zip(&others.0);
        both.all(|(own, other)| other & !own == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_words() {
        let check = |name: &str, expected: &str| assert_eq!(phrase(name), expected);
        check("createPull_request", "create pull request");
        check("slack__post-message", "slack post message");
        check("getV2Items", "get v2 items");
        check("HTTPGet", "httpget");
        check("  spaced   out ", "spaced out");
        check("--", "");
    }
}
