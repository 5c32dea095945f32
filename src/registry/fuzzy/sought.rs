//! The texts of a tool that a query is held against, prepared once.

use crate::domain::Tool;
use crate::registry::fuzzy::{KEYWORD, NAME};

/// Bits of a set of pairs of bytes.
const PAIR_BITS: usize = 1 << 10;

/// Folded texts of one tool, with what tells at a glance that a word is not in them.
#[derive(Clone, Debug)]
pub(in crate::registry) struct Sought {
    /// The name.
    pub(super) name: Box<str>,
    /// The name, then its words.
    pub(super) likes: Box<[Like]>,
    /// The name in words.
    pub(super) phrase: Box<str>,
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
        let likes = std::iter::once(Like::of(0, &folded));
        let words = phrase.split(' ').scan(0, |at, word| {
            let like = Like::of(*at, word);
            *at += word.len() + 1;
            Some(like)
        });
        let likes: Vec<Like> = likes.chain(words.filter(|like| 0 < like.length)).collect();
        Self {
            likes: likes.into(),
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

/// A text that a word may be like, and the letters in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Like {
    /// Where it stands.
    pub(super) at: usize,
    /// How long it is, in bytes.
    pub(super) length: usize,
    /// The letters in it.
    pub(super) letters: Letters,
    /// Whether it has one byte a letter.
    pub(super) is_plain: bool,
}

impl Like {
    fn of(at: usize, text: &str) -> Self {
        Self {
            at,
            length: text.len(),
            letters: Letters::of(text),
            is_plain: text.is_ascii(),
        }
    }
}

/// A set of bytes, those that are alike by their last five bits taken as one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Letters(u32);

impl Letters {
    pub(super) fn of(text: &str) -> Self {
        Self(text.bytes().fold(0, |set, byte| set | 1 << (byte & 31)))
    }

    /// How many of these the others have not: each of them takes an edit at least.
    pub(super) fn missing_in(self, others: Self) -> usize {
        (self.0 & !others.0).count_ones() as usize
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
#[derive(Clone, Copy, Debug)]
pub(super) struct Pairs([u64; PAIR_BITS / 64]);

impl Default for Pairs {
    fn default() -> Self {
        Self([0; PAIR_BITS / 64])
    }
}

impl Pairs {
    /// Adds all pairs of a text.
    pub(super) fn add(&mut self, text: &str) {
        for pair in pairs(text) {
            if let Some(bits) = self.0.get_mut(usize::from(pair / 64)) {
                *bits |= 1 << (pair % 64);
            }
        }
    }

    /// Whether a text with these pairs may hold one with those. Most do not, and the first pair
    /// that is looked for tells.
    pub(super) fn may_hold(&self, others: &[u16]) -> bool {
        others.iter().all(|pair| {
            let bits = self.0.get(usize::from(pair / 64));
            bits.is_some_and(|bits| bits >> (pair % 64) & 1 == 1)
        })
    }
}

/// The pairs of a text: five bits of each byte, so that those of letters are told apart.
pub(super) fn pairs(text: &str) -> impl Iterator<Item = u16> {
    text.as_bytes().windows(2).map(|pair| match *pair {
        [first, second] => u16::from(first & 31) << 5 | u16::from(second & 31),
        _ => 0,
    })
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
