//! Text cut into words and words into terms: the same for catalog and query.

use std::cell::RefCell;
use std::ops::Range;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{canonical_combining_class, decompose_canonical};

/// Longest word kept, in characters. Longer ones are data (keys, encoded blobs), not words.
const WORD_CHARS_MAX: usize = 40;
/// A compound of more parts is a sentence in camel case: nobody writes it as one word.
const COMPOUND_PARTS_MAX: usize = 3;

/// Words that carry no meaning in a request for a tool or in a description of one.
const STOP_WORDS: &str = " a about am an and any are as at be been being but by can could did do \
    does doing for from had has have having he her here hers him his how i if in into is it its \
    just let lets ll m may me might mine must my myself no not now of off on once only or other \
    our ours out own please re s shall she should so some such t than that the their theirs them \
    then there these they this those through to too under until up us use used uses using ve very \
    via was we were what when where which while who whom whose why will with would you your yours \
    want wants need needs like help tell know thing things something someone anything ";

thread_local! {
    static STEMMER: RefCell<Stemmer> = RefCell::new(Stemmer::create(Algorithm::English));
}

/// A word as it stands in a text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Word {
    /// Lower case, without accents.
    pub(super) whole: String,
    /// What it is made of: `pull` and `request` of `pullRequest`. Empty for a plain word.
    pub(super) parts: Vec<String>,
}

impl Word {
    fn plain(whole: String) -> Self {
        Self {
            whole,
            parts: Vec::new(),
        }
    }
}

/// Whether a word says nothing by itself.
pub(super) fn is_stop_word(word: &str) -> bool {
    // The list is one string: 150 short comparisons are slower than one search with `memchr`.
    word.len() <= 9 && STOP_WORDS.contains(&format!(" {word} "))
}

/// Whether a word is in another alphabet than Latin.
pub(super) fn is_not_latin(word: &str) -> bool {
    word.chars().any(|c| '\u{024F}' < c && c.is_alphabetic())
}

/// The stem of a lower-case word; words of other scripts stand for themselves.
pub(super) fn stem(word: &str) -> String {
    if word.is_ascii() {
        STEMMER.with_borrow(|stemmer| stemmer.stem(word).into_owned())
    } else {
        word.to_owned()
    }
}

/// A word and where it stands in its text, in bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Span {
    pub(super) word: Word,
    pub(super) range: Range<usize>,
}

/// The words of a text in order: split at anything that is neither letter nor digit, compounds
/// at `-` and changes of case, runs of Chinese, Japanese and Korean into overlapping pairs.
pub(super) fn words(text: &str) -> Vec<Word> {
    spans(text).into_iter().map(|span| span.word).collect()
}

/// As [`words`], with places.
pub(super) fn spans(text: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut run = Run::default();
    for (at, c) in text.char_indices() {
        let script = Script::of(c);
        let inside = !run.chars.is_empty();
        let joins = inside && (c == '-' && run.script == Script::Spaced || is_mark(c));
        if !joins && (script != run.script || !c.is_alphanumeric()) {
            run.flush(&mut spans);
            run.script = script;
        }
        if joins || c.is_alphanumeric() {
            run.chars.push((at, c));
        }
    }
    run.flush(&mut spans);
    spans
}

/// Whether a character is an accent of the one before it.
fn is_mark(c: char) -> bool {
    canonical_combining_class(c) != 0
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Script {
    /// Words stand between spaces.
    Spaced,
    /// Words stand side by side.
    Dense,
}

impl Script {
    fn of(c: char) -> Self {
        match u32::from(c) {
            0x3040..=0x30FF
            | 0x3400..=0x4DBF
            | 0x4E00..=0x9FFF
            | 0xAC00..=0xD7AF
            | 0xF900..=0xFAFF
            | 0x20000..=0x3FFFF => Self::Dense,
            _ => Self::Spaced,
        }
    }
}

/// Characters side by side that belong to one word, or to one run of a dense script.
struct Run {
    script: Script,
    chars: Vec<(usize, char)>,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            script: Script::Spaced,
            chars: Vec::new(),
        }
    }
}

impl Run {
    fn flush(&mut self, spans: &mut Vec<Span>) {
        while self.chars.last().is_some_and(|(_, c)| *c == '-') {
            self.chars.pop();
        }
        let chars: Vec<char> = self.chars.iter().map(|(_, c)| *c).collect();
        if let (Some((start, _)), Some((last, c))) = (self.chars.first(), self.chars.last()) {
            let range = *start..last + c.len_utf8();
            let words = match (self.script, chars.as_slice()) {
                (Script::Spaced, _) => spaced(&chars),
                (Script::Dense, [one]) => vec![Word::plain(one.to_string())],
                (Script::Dense, many) => {
                    let pairs = many.windows(2);
                    pairs
                        .map(|pair| Word::plain(pair.iter().collect()))
                        .collect()
                }
            };
            spans.extend(words.into_iter().map(|word| Span {
                word,
                range: range.clone(),
            }));
        }
        self.chars.clear();
    }
}

/// The words of a run without spaces: one, or the parts of a long compound.
fn spaced(run: &[char]) -> Vec<Word> {
    let mut parts: Vec<String> = Vec::new();
    let mut start = 0;
    for at in 1..=run.len() {
        let boundary = at == run.len() || run[at] == '-' || run[at - 1] == '-' || camel(run, at);
        if boundary {
            if run[start] != '-' {
                parts.push(fold(&run[start..at]));
            }
            start = at;
        }
    }
    parts.retain(|part| !part.is_empty() && part.chars().count() <= WORD_CHARS_MAX);
    match parts.len() {
        0 | 1 => parts.into_iter().map(Word::plain).collect(),
        n if n <= COMPOUND_PARTS_MAX => vec![Word {
            whole: parts.concat(),
            parts,
        }],
        _ => parts.into_iter().map(Word::plain).collect(),
    }
}

/// Whether a part of a compound begins here: `pull|Request`, `XML|Parser`.
fn camel(run: &[char], at: usize) -> bool {
    let (before, here) = (run[at - 1], run[at]);
    let starts = here.is_uppercase() && (before.is_lowercase() || before.is_ascii_digit());
    let ends_acronym = before.is_uppercase()
        && here.is_uppercase()
        && run.get(at + 1).is_some_and(|next| next.is_lowercase());
    starts || ends_acronym
}

/// Lower case without accents, compatibility forms resolved.
fn fold(chars: &[char]) -> String {
    let mut folded = String::with_capacity(chars.len());
    for c in chars.iter().copied().nfkc().flat_map(char::to_lowercase) {
        if c.is_ascii() {
            folded.push(c);
        } else if c.is_alphanumeric() {
            decompose_canonical(c, |part| {
                if !is_mark(part) {
                    folded.push(part);
                }
            });
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &str) {
        let found: Vec<String> = words(text)
            .into_iter()
            .map(|word| {
                if word.parts.is_empty() {
                    word.whole
                } else {
                    format!("{}({})", word.whole, word.parts.join("+"))
                }
            })
            .collect();
        assert_eq!(found.join(" "), expected);
    }

    #[test]
    fn names_are_split_as_people_read_them() {
        check("slack_post_message", "slack post message");
        check(
            "createPullRequest",
            "createpullrequest(create+pull+request)",
        );
        check("on GitHub", "on github(git+hub)");
        check("XMLParser", "xmlparser(xml+parser)");
        check("an e-mail, k8s!", "an email(e+mail) k8s");
        check("getVeryLongNameOfTool", "get very long name of tool");
        check("--flag- a", "flag a");
    }

    #[test]
    fn scripts_without_spaces_give_pairs() {
        check("查询火车票 ok", "查询 询火 火车 车票 ok");
        check("Über Straße é e\u{301}t", "uber straße e et");
        assert_eq!(spans("a é-b")[1].range, 2..6);
    }

    #[test]
    fn stems_and_stop_words() {
        assert_eq!(stem("messages"), stem("message"));
        assert!(is_stop_word("the") && !is_stop_word("th") && !is_stop_word("search"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>()) {
            for word in words(&text) {
                prop_assert!(!word.whole.is_empty());
                stem(&word.whole);
            }
        }
    }
}
