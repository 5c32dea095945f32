//! How a query is read: what the model is shown, and which terms are looked for.

use std::ops::Range;

use crate::search::keywords::Keywords;
use crate::search::lexicon::{self, Lexicon};
use crate::search::terms::{self, Span};
use crate::search::values;

/// Clauses of a long query that the model is shown beside the whole.
const CLAUSES_MAX: usize = 8;
/// Words of a clause that stands for itself; shorter ones join their neighbour.
const CLAUSE_WORDS_MIN: usize = 4;
/// `Mrs` and `Prof`.
const TITLE_BYTES_MAX: usize = 4;
/// What a synonym in a tool's name counts, against the word itself.
const SYNONYM_WORTH: f32 = 0.85;
/// Rarity of a word that the catalog does not have but whose synonyms it has.
const SYNONYM_RARITY: f32 = 4.0;

/// One term of a query.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct QueryTerm {
    /// The stem as the catalog has it.
    pub(super) stem: Box<str>,
    /// Its place in the dictionary.
    pub(super) at: usize,
    /// Rarity.
    pub(super) idf: f32,
    /// The word of the query that it came from.
    pub(super) from: Box<str>,
}

/// A word of the query, with what else would do in a tool's name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Alternative {
    /// The term that it stands in for, by its place in [`Reading::terms`], where there is one.
    pub(super) term: Option<usize>,
    /// Places of the synonyms in the dictionary.
    pub(super) synonyms: Vec<usize>,
    /// What it is worth.
    pub(super) worth: f32,
}

/// A query as the keyword side understands it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reading {
    /// Known terms, each once.
    pub(super) terms: Vec<QueryTerm>,
    /// Synonyms of terms and of unknown words.
    pub(super) alternatives: Vec<Alternative>,
    /// Words that the catalog does not know.
    pub(super) unknown: Vec<Box<str>>,
    /// What the model reads: the query with misspelt words corrected, short forms written out,
    /// and quoted values left out.
    pub(super) text: String,
    /// Parts of a long text, each a wish of its own.
    pub(super) clauses: Vec<Range<usize>>,
    /// Whether an English model can make little of it.
    pub(super) foreign: bool,
}

/// Reads a query with the words of a catalog and of a language.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    pub(super) keywords: &'a Keywords,
    pub(super) lexicon: Option<&'a Lexicon>,
}

/// What a first pass over the words found.
#[derive(Default)]
struct Draft {
    /// Replacements of parts of the text, in order.
    edits: Vec<(Range<usize>, String)>,
    /// Words to look for, and the words they came from.
    wanted: Vec<(String, String)>,
    /// Words that are no stop words.
    words: usize,
    /// Of them, those that an English reader would stop at.
    strange: usize,
}

impl Reader<'_> {
    /// Reads a query.
    pub(super) fn read(self, query: &str) -> Reading {
        let plain = values::leave_out(query);
        let draft = self.draft(&plain, true);
        let foreign = 0 < draft.words && draft.words <= 2 * draft.strange;
        // What looks misspelt to an English reader is right in another language.
        let draft = if foreign {
            self.draft(&plain, false)
        } else {
            draft
        };
        let mut reading = Reading {
            foreign,
            ..Reading::default()
        };
        for (word, from) in &draft.wanted {
            self.look_up(word, from, &mut reading);
        }
        reading.text = squeeze(&apply(&plain, draft.edits));
        if foreign {
            reading.text = squeeze(query);
        } else {
            self.add_synonyms(&draft.wanted, &mut reading);
            reading.clauses = clauses(&reading.text);
        }
        reading
    }

    fn draft(self, text: &str, correct: bool) -> Draft {
        let mut draft = Draft::default();
        for Span { word, range } in terms::spans(text) {
            let whole = word.whole.as_str();
            if terms::is_stop_word(whole) {
                continue;
            }
            draft.words += 1;
            draft.strange += usize::from(terms::is_not_latin(whole) || lexicon::is_foreign(whole));
            let written = Written::of(text, &range);
            if let Some(long) = self
                .keywords
                .abbreviations()
                .expand(whole)
                .filter(|_| written != Written::Title)
            {
                draft.want(whole, whole);
                for part in terms::words(long) {
                    draft.want(&part.whole, whole);
                }
                draft.edits.push((range, long.to_owned()));
            } else if !word.parts.is_empty() && !self.keywords.has_word(whole) {
                for part in &word.parts {
                    draft.want(part, part);
                }
            } else if let Some(right) = self
                .corrected(whole)
                .filter(|_| correct && written != Written::Name)
            {
                draft.want(right, whole);
                draft.edits.push((range, right.to_owned()));
            } else {
                draft.want(whole, whole);
                draft.strange += usize::from(self.is_strange(whole));
            }
        }
        draft
    }

    /// The known word that a word is a slip of, if it is one.
    fn corrected(&self, word: &str) -> Option<&str> {
        if !self.is_odd(word) {
            return None;
        }
        let right = self.keywords.spelling().correct(word)?;
        // A slip seldom hits the first letter; and a form of a known word is right as it is.
        let same_start = right.chars().next() == word.chars().next();
        let stem = terms::stem(word);
        let same_stem = stem.len() < word.len() && self.keywords.has_stem(&stem);
        (same_start && !same_stem).then_some(right)
    }

    /// Whether a word is neither in the catalog nor English.
    fn is_odd(self, word: &str) -> bool {
        word.chars().all(char::is_alphabetic)
            && !self.keywords.has_word(word)
            && !self.lexicon.is_some_and(|lexicon| lexicon.has(word))
    }

    /// Whether a word stops an English reader. Without a lexicon nobody can tell.
    fn is_strange(self, word: &str) -> bool {
        self.lexicon.is_some()
            && self.is_odd(word)
            && !self.keywords.has_stem(&terms::stem(word))
            && !terms::is_not_latin(word)
            && !lexicon::is_foreign(word)
    }

    fn look_up(self, word: &str, from: &str, reading: &mut Reading) {
        let stem = terms::stem(word);
        let Some((at, idf)) = self.keywords.term(&stem) else {
            if word == from && !terms::is_stop_word(word) {
                reading.unknown.push(word.into());
            }
            return;
        };
        if reading.terms.iter().all(|term| term.at != at) {
            reading.terms.push(QueryTerm {
                stem: stem.into(),
                at,
                idf,
                from: from.into(),
            });
        }
    }

    fn add_synonyms(self, wanted: &[(String, String)], reading: &mut Reading) {
        let stems: Vec<String> = wanted.iter().map(|(word, _)| terms::stem(word)).collect();
        let mut seen: Vec<&str> = Vec::new();
        for stem in &stems {
            if seen.contains(&stem.as_str()) {
                continue;
            }
            seen.push(stem);
            let synonyms: Vec<usize> = self
                .keywords
                .synonyms()
                .of(stem)
                .iter()
                .filter(|other| stems.iter().all(|stem| **stem != ***other))
                .filter_map(|other| self.keywords.term(other).map(|(at, _)| at))
                .collect();
            if synonyms.is_empty() {
                continue;
            }
            let term = reading.terms.iter().position(|term| *term.stem == **stem);
            let rarity = term.map_or(SYNONYM_RARITY, |term| reading.terms[term].idf);
            reading.alternatives.push(Alternative {
                term,
                synonyms,
                worth: SYNONYM_WORTH * rarity,
            });
        }
    }
}

/// How a word stands in its text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Written {
    /// As any word.
    Plainly,
    /// With a capital behind a word with one: part of a person's or a thing's name, which only
    /// looks like a slip.
    Name,
    /// With a capital and a full stop before a word with a capital: `Mr. Lu`.
    Title,
}

impl Written {
    fn of(text: &str, range: &Range<usize>) -> Self {
        let capital = |part: Option<&str>| {
            let letters = part.and_then(|part| part.trim_start().chars().next());
            letters.is_some_and(char::is_uppercase)
        };
        let (before, word) = (text.get(..range.start), text.get(range.clone()));
        let after = text.get(range.end..);
        if !capital(word) {
            return Self::Plainly;
        }
        let abbreviated = after.and_then(|after| after.strip_prefix(". "));
        let like_a_title = |word: &str| {
            word.len() <= TITLE_BYTES_MAX && word.chars().skip(1).all(char::is_lowercase)
        };
        if capital(abbreviated) && word.is_some_and(like_a_title) {
            return Self::Title;
        }
        let last = before.and_then(|before| before.strip_suffix(' '));
        let last = last.and_then(|before| before.rsplit(' ').next());
        if capital(last) {
            Self::Name
        } else {
            Self::Plainly
        }
    }
}

impl Draft {
    fn want(&mut self, word: &str, from: &str) {
        if !terms::is_stop_word(word) {
            self.wanted.push((word.to_owned(), from.to_owned()));
        }
    }
}

/// The text with parts replaced.
fn apply(text: &str, edits: Vec<(Range<usize>, String)>) -> String {
    let mut edited = String::with_capacity(text.len() + 32);
    let mut done = 0;
    for (range, replacement) in edits {
        edited.push_str(text.get(done..range.start).unwrap_or_default());
        edited.push_str(&replacement);
        done = range.end;
    }
    edited.push_str(text.get(done..).unwrap_or_default());
    edited
}

/// A text with one space between its words.
fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Parts of a text of several wishes: at sentence ends, commas, `and` and `then`. Empty for a
/// text of one part.
fn clauses(text: &str) -> Vec<Range<usize>> {
    let mut clauses: Vec<Clause> = Vec::new();
    let mut part = Clause::default();
    let mut end = 0;
    for word in text.split_inclusive(' ') {
        let start = end;
        end += word.len();
        let word = word.trim_end();
        let joins = word.eq_ignore_ascii_case("and") || word.eq_ignore_ascii_case("then");
        if !joins {
            part.add(start..start + word.len());
        }
        if joins || word.ends_with(['.', '!', '?', ';', ',']) {
            std::mem::take(&mut part).join(&mut clauses);
        }
    }
    part.join(&mut clauses);
    if 1 < clauses.len()
        && let Some(short) = clauses.pop_if(|last| last.words < CLAUSE_WORDS_MIN)
        && let Some(last) = clauses.last_mut()
    {
        last.range.end = short.range.end;
    }
    if clauses.len() < 2 {
        return Vec::new();
    }
    clauses.truncate(CLAUSES_MAX);
    clauses.into_iter().map(|clause| clause.range).collect()
}

/// Where a clause stands.
#[derive(Default)]
struct Clause {
    range: Range<usize>,
    words: usize,
}

impl Clause {
    fn add(&mut self, word: Range<usize>) {
        if self.words == 0 {
            self.range.start = word.start;
        }
        self.range.end = word.end;
        self.words += 1;
    }

    /// Stands for itself, or joins the one before where that is short.
    fn join(self, clauses: &mut Vec<Self>) {
        match clauses.last_mut() {
            _ if self.words == 0 => {}
            Some(last) if last.words < CLAUSE_WORDS_MIN => {
                last.range.end = self.range.end;
                last.words += self.words;
            }
            _ => clauses.push(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::search::ranking::Ranking;
    use crate::search::sample;

    fn read(query: &str) -> Reading {
        let keywords = Keywords::new(&sample::catalog(), &Ranking::default());
        let lexicon = Lexicon::from_tokenizer(
            br###"{"model": {"continuing_subword_prefix": "##", "vocab": {"film": 1,
            "tomorrow": 2, "what": 3, "show": 4, "forecasts": 5}}}"###,
        );
        let reader = Reader {
            keywords: &keywords,
            lexicon: lexicon.as_ref(),
        };
        reader.read(query)
    }

    fn check(query: &str, text: &str, terms: &str) {
        let reading = read(query);
        let found: Vec<&str> = reading.terms.iter().map(|term| &*term.stem).collect();
        assert_eq!(
            (reading.text.as_str(), found.join(" ").as_str()),
            (text, terms)
        );
    }

    #[test]
    fn a_query_is_expanded_and_corrected_in_place() {
        check("Open a PR!", "Open a pull request!", "open pull request");
        check("sned a mesage", "send a message", "send messag");
        check("pullRequest", "pullRequest", "pull request");
        check("a film tomorrow", "a film tomorrow", "");
        check("branch", "branch", "branch");
    }

    #[test]
    fn names_and_titles_of_people_are_neither_slips_nor_short_forms() {
        check("open Bob Mesage", "open Bob Mesage", "open");
        check("send a Mesage", "send a message", "send messag");
        check(
            "open the PR. Then stop",
            "open the pull request. Then stop",
            "open pull request",
        );
        check("message Mr. Lu", "message Mr. Lu", "messag");
        check("open Mr. Lu", "open Mr. Lu", "open");
    }

    #[test]
    fn a_query_in_another_language_is_known_as_such() {
        for (query, foreign) in [
            ("enviar un mensaje a un canal de Slack", true),
            ("查询天气", true),
            ("post a message to a channel", false),
            ("sned a mesage", false),
            ("what film tomorrow", false),
        ] {
            assert_eq!(read(query).foreign, foreign, "{query}");
        }
    }

    #[test]
    fn a_long_query_falls_into_clauses() {
        let check = |text: &str, expected: &[&str]| {
            let clauses = clauses(text).into_iter();
            let clauses: Vec<&str> = clauses.map(|clause| text.get(clause).unwrap()).collect();
            assert_eq!(clauses, expected);
        };
        check(
            "Get the weather for Berlin today, write it down and send it to Bob.",
            &[
                "Get the weather for Berlin today,",
                "write it down and send it to Bob.",
            ],
        );
        check(
            "Go, then wait a little while. Then stop it at once, ok?",
            &["Go, then wait a little while.", "stop it at once, ok?"],
        );
        check("search the web", &[]);
        check("and then and", &[]);
        check("", &[]);
    }

    #[test]
    fn synonyms_are_alternatives() {
        let reading = read("show forecasts");
        assert_eq!(reading.terms.len(), 1);
        let words: Vec<_> = reading.alternatives.iter().map(|a| a.term).collect();
        assert_eq!(words, [None, Some(0)]);
    }

    proptest! {
        #[test]
        fn no_query_panics(query in any::<String>()) {
            read(&query);
        }
    }
}
