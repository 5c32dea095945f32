//! The nearest known word to a misspelt one.
//!
//! Symmetric deletion (`SymSpell`): two words within one edit share a form with one letter taken
//! out. So each known word is filed under all its one-letter deletions, and a lookup is a few
//! hash probes however many words there are.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Shortest word that is corrected: among three letters everything is one edit from something.
const CHARS_MIN: usize = 4;
/// Shortest word that may be two edits away.
const TWO_EDITS_FROM: usize = 7;
/// Longest word that is filed.
const CHARS_MAX: usize = 24;

/// Known words, filed for correction.
#[derive(Debug, Default)]
pub(super) struct Spelling {
    words: Vec<(Box<str>, u32)>,
    by_deletion: HashMap<u64, Vec<u32>>,
}

impl Spelling {
    /// Files words with how often each occurs.
    pub(super) fn new(words: impl IntoIterator<Item = (Box<str>, u32)>) -> Self {
        let mut spelling = Self::default();
        for (word, count) in words {
            let chars: Vec<char> = word.chars().collect();
            let worth = (CHARS_MIN..=CHARS_MAX).contains(&chars.len());
            if !worth || chars.iter().any(|c| !c.is_alphabetic()) {
                continue;
            }
            let at = u32::try_from(spelling.words.len()).unwrap_or(u32::MAX);
            for form in forms(&chars) {
                spelling.by_deletion.entry(form).or_default().push(at);
            }
            spelling.words.push((word, count));
        }
        spelling
    }

    /// The nearest known word: fewest edits, then the same first letter, then the most frequent,
    /// then by alphabet. `None` when nothing is near.
    pub(super) fn correct(&self, word: &str) -> Option<&str> {
        let chars: Vec<char> = word.chars().collect();
        if chars.len() < CHARS_MIN || CHARS_MAX < chars.len() {
            return None;
        }
        let edits_max = if chars.len() < TWO_EDITS_FROM { 1 } else { 2 };
        let mut best: Option<(usize, bool, u32, &str)> = None;
        for at in forms(&chars)
            .into_iter()
            .filter_map(|form| self.by_deletion.get(&form))
            .flatten()
        {
            let Some((known, count)) = self.words.get(*at as usize) else {
                continue;
            };
            let edits = strsim::osa_distance(word, known);
            if edits_max < edits {
                continue;
            }
            let key = (
                edits,
                known.chars().next() != chars.first().copied(),
                u32::MAX - count,
                &**known,
            );
            if best.is_none_or(|found| key < found) {
                best = Some(key);
            }
        }
        best.map(|(_, _, _, known)| known)
    }
}

/// Hashes of a word and of its one-letter deletions.
fn forms(chars: &[char]) -> Vec<u64> {
    let hash = |skip: Option<usize>| {
        let mut hasher = DefaultHasher::new();
        for (at, c) in chars.iter().enumerate() {
            if Some(at) != skip {
                c.hash(&mut hasher);
            }
        }
        hasher.finish()
    };
    let mut forms: Vec<u64> = (0..chars.len()).map(|at| hash(Some(at))).collect();
    forms.push(hash(None));
    forms.sort_unstable();
    forms.dedup();
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, expected: Option<&str>) {
        let known = [
            "search", "send", "telegram", "message", "github", "excel", "row", "postgres",
        ];
        let spelling = Spelling::new(known.map(|word| (word.into(), 1)));
        assert_eq!(spelling.correct(word), expected, "{word}");
    }

    #[test]
    fn slips_of_the_finger_are_corrected_and_other_words_are_not() {
        check("serch", Some("search"));
        check("sned", Some("send"));
        check("mesage", Some("message"));
        check("telegrm", Some("telegram"));
        check("githb", Some("github"));
        check("exel", Some("excel"));
        check("postgress", Some("postgres"));
        check("rwo", None);
        check("banana", None);
    }

    #[test]
    fn the_more_frequent_of_two_equally_near_words_wins() {
        let spelling = Spelling::new([("cart".into(), 1), ("card".into(), 5)]);
        assert_eq!(spelling.correct("carx"), Some("card"));
    }
}
