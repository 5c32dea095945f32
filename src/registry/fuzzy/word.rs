//! One word of a query, prepared to be held against thousands of tools.

use memchr::memmem::Finder;

use crate::registry::fuzzy::sought::{Letters, Like, Sought, pairs};
use crate::registry::fuzzy::{
    DESCRIPTION_CONTAINS, DESCRIPTION_WORD, KEYWORD, KEYWORD_CONTAINS, LIKENESS, NAME,
    NAME_CONTAINS, NAME_PREFIX,
};

/// Longest word that the bit-parallel distance reads.
const BITS: usize = 64;

/// A folded word.
#[derive(Debug)]
pub(super) struct Word<'a> {
    text: &'a str,
    finder: Finder<'a>,
    pairs: Box<[u16]>,
    letters: Letters,
    /// One byte a letter, so that lengths are those of the distance.
    is_plain: bool,
    distance: Distance,
}

impl<'a> Word<'a> {
    /// A word in lower case.
    pub(super) fn new(text: &'a str) -> Self {
        let distance = Distance::from(text);
        Self {
            text,
            finder: Finder::new(text),
            pairs: pairs(text).collect(),
            letters: Letters::of(text),
            is_plain: text.is_ascii(),
            distance,
        }
    }

    /// The best tier that it reaches; 0 for a tool that it is not like at all.
    pub(super) fn worth(&self, tool: &Sought) -> f32 {
        let mut best = 0.0_f32;
        if tool.near.may_hold(&self.pairs) {
            best = self.near(tool);
        }
        // A keyword that is the word goes over a name that holds it, so both were looked at.
        if DESCRIPTION_WORD < best {
            return best;
        }
        if tool.far.may_hold(&self.pairs) {
            best = best.max(self.far(&tool.description));
        }
        if 0.0 < best {
            return best;
        }
        let mut most = 0.0_f32;
        for (at, like) in tool.likes.iter().enumerate() {
            let text = if at == 0 { &tool.name } else { &tool.phrase };
            most = most.max(self.likeness(text, like, most));
        }
        LIKENESS * most
    }

    /// Likeness to a part of a text, where it can be over what was found already. Most are told
    /// apart without looking at them.
    fn likeness(&self, text: &str, like: &Like, found: f32) -> f32 {
        let (own, other) = (self.text.len(), like.length);
        let (short, long) = (own.min(other), own.max(other));
        // At least the difference of the lengths has to be edited, and each letter that the other
        // has not.
        let missing = self.letters.missing_in(like.letters);
        let missing = missing.max(like.letters.missing_in(self.letters));
        let edits = missing.max(long - short);
        if self.is_plain && like.is_plain && share(edits, long) <= found {
            return 0.0;
        }
        let part = text.get(like.at..like.at + like.length).unwrap_or_default();
        self.distance.likeness(self.text, part)
    }

    fn near(&self, tool: &Sought) -> f32 {
        if *tool.name == *self.text {
            return NAME;
        }
        if tool.name.starts_with(self.text) {
            return NAME_PREFIX;
        }
        let mut best = 0.0;
        if self.is_in(&tool.name) {
            best = NAME_CONTAINS;
        }
        for keyword in &tool.keywords {
            if **keyword == *self.text {
                return KEYWORD;
            }
            if best < KEYWORD_CONTAINS && self.is_in(keyword) {
                best = KEYWORD_CONTAINS;
            }
        }
        best
    }

    fn is_in(&self, text: &str) -> bool {
        self.finder.find(text.as_bytes()).is_some()
    }

    fn far(&self, description: &str) -> f32 {
        let mut best = 0.0;
        for at in self.finder.find_iter(description.as_bytes()) {
            let before = description.get(..at).unwrap_or_default();
            let behind = description.get(at + self.text.len()..).unwrap_or_default();
            let inside = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            if !inside(before.chars().next_back()) && !inside(behind.chars().next()) {
                return DESCRIPTION_WORD;
            }
            best = DESCRIPTION_CONTAINS;
        }
        best
    }
}

/// The edit distance from one word.
#[derive(Debug)]
enum Distance {
    /// Bit-parallel: G. Myers, "A fast bit-vector algorithm for approximate string matching based
    /// on dynamic programming", 1999. For each ASCII character, the places where the word has it.
    Bits(Box<[u64; 128]>),
    /// Step by step, for other alphabets and for very long words.
    Steps,
}

impl Distance {
    fn from(word: &str) -> Self {
        if !word.is_ascii() || BITS < word.len() {
            return Self::Steps;
        }
        let mut places = Box::new([0_u64; 128]);
        for (at, byte) in word.bytes().enumerate() {
            if let Some(bits) = places.get_mut(usize::from(byte)) {
                *bits |= 1 << at;
            }
        }
        Self::Bits(places)
    }

    /// Likeness of the word and a text: 1 less the share of edits; 0 where it is under a half.
    fn likeness(&self, word: &str, text: &str) -> f32 {
        match self {
            Self::Bits(places) if text.is_ascii() => {
                let long = word.len().max(text.len());
                share(bit_distance(places, word.len(), text), long)
            }
            Self::Bits(_) | Self::Steps => {
                let long = word.chars().count().max(text.chars().count());
                share(strsim::levenshtein(word, text), long)
            }
        }
    }
}

fn share(edits: usize, of: usize) -> f32 {
    match edits * 2 <= of && 0 < of {
        true => 1.0 - edits as f32 / of as f32,
        false => 0.0,
    }
}

fn bit_distance(places: &[u64; 128], length: usize, text: &str) -> usize {
    let last = 1_u64 << (length - 1);
    let (mut more, mut less, mut distance) = (u64::MAX, 0_u64, length);
    for byte in text.bytes() {
        let same = places.get(usize::from(byte)).copied().unwrap_or_default();
        let vertical = same | less;
        let horizontal = ((same & more).wrapping_add(more) ^ more) | same;
        let mut plus = less | !(horizontal | more);
        let mut minus = more & horizontal;
        distance += usize::from(plus & last != 0);
        distance -= usize::from(minus & last != 0);
        plus = (plus << 1) | 1;
        minus <<= 1;
        more = minus | !(vertical | plus);
        less = plus & vertical;
    }
    distance
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_ways_find_the_same_distance(word in "[a-c_]{1,64}", text in "[a-d_]{0,90}") {
            let Distance::Bits(places) = Distance::from(&word) else {
                panic!("{word} is short and plain");
            };
            let bits = bit_distance(&places, word.len(), &text);
            prop_assert_eq!(bits, strsim::levenshtein(&word, &text));
        }
    }
}
