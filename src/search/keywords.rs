//! The keyword side: which terms stand where, how rare they are, and what a query means by them.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::domain::{Catalog, Slot};
use crate::search::abbreviations::Abbreviations;
use crate::search::bm25::Weigher;
use crate::search::ranking::Ranking;
use crate::search::spelling::Spelling;
use crate::search::terms;

/// Postings that the keyword lane looks at for one query: rare terms first, so that what is left
/// out says least.
const LANE_POSTINGS_MAX: usize = 60_000;

/// Where in a tool a term stands; a set of bits.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Fields(u8);

impl Fields {
    pub(super) const NAME: Self = Self(1);
    pub(super) const SERVER: Self = Self(2);
    pub(super) const TEXT: Self = Self(4);
    pub(super) const ARGUMENTS: Self = Self(8);

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One term in one tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posting {
    pub(super) slot: u32,
    pub(super) fields: Fields,
    /// BM25 weight without the rarity.
    pub(super) weight: f32,
}

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

/// A query as the keyword side understands it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reading {
    /// Known terms, each once.
    pub(super) terms: Vec<QueryTerm>,
    /// Words that the catalog does not know.
    pub(super) unknown: Vec<Box<str>>,
    /// The query with misspelt words corrected and short forms written out: what the model reads.
    pub(super) text: String,
    /// Words that are no stop words, and how many of them are of another alphabet than Latin.
    words: usize,
    not_latin: usize,
}

impl Reading {
    /// Sum of the rarities of its known terms.
    pub(super) fn idf_total(&self) -> f32 {
        self.terms.iter().map(|term| term.idf).sum()
    }

    /// Whether an English model can make little of it: half of its words are in no tool, or in
    /// another alphabet.
    pub(super) fn is_foreign(&self) -> bool {
        0 < self.words && self.words <= 2 * (self.unknown.len() + self.not_latin)
    }
}

/// The inverted index of a catalog.
#[derive(Debug)]
pub(super) struct Keywords {
    dictionary: HashMap<Box<str>, usize>,
    postings: Vec<Vec<Posting>>,
    idf: Vec<f32>,
    /// Words as written, to tell a known word from a misspelt one.
    surface: HashSet<Box<str>>,
    spelling: Spelling,
    abbreviations: Abbreviations,
}

impl Keywords {
    /// Reads a catalog.
    pub(super) fn new(catalog: &Catalog, ranking: &Ranking) -> Self {
        let mut surface: BTreeMap<String, u32> = BTreeMap::new();
        let documents: Vec<Document> = catalog
            .slots()
            .map(|slot| Document::read(catalog, slot, &mut surface))
            .collect();
        let total: usize = documents.iter().map(|document| document.terms.len()).sum();
        let weigher = Weigher::new(total as f32 / documents.len().max(1) as f32);
        let mut dictionary: HashMap<Box<str>, usize> = HashMap::new();
        let mut postings: Vec<Vec<Posting>> = Vec::new();
        for (slot, document) in (0_u32..).zip(documents) {
            for (term, weight) in weigher.weigh(&document.terms) {
                let fields = document.fields.get(&term).copied().unwrap_or_default();
                let at = *dictionary.entry(term.into()).or_insert_with(|| {
                    postings.push(Vec::new());
                    postings.len() - 1
                });
                postings[at].push(Posting {
                    slot,
                    fields,
                    weight,
                });
            }
        }
        let tools = catalog.len() as f32;
        let idf = postings
            .iter()
            .map(|list| {
                let found = list.len() as f32;
                (1.0 + (tools - found + 0.5) / (found + 0.5)).ln()
            })
            .collect();
        let surface_words = surface.keys().map(|word| word.as_str().into()).collect();
        let counted = surface.into_iter().map(|(word, n)| (word.into(), n));
        Self {
            dictionary,
            postings,
            idf,
            surface: surface_words,
            spelling: Spelling::new(counted),
            abbreviations: Abbreviations::new(&ranking.abbreviations),
        }
    }

    /// Reads a query: splits, expands short forms, corrects misspelt words, and looks terms up.
    pub(super) fn read(&self, query: &str) -> Reading {
        let mut reading = Reading::default();
        for word in terms::words(query) {
            reading.words += usize::from(!terms::is_stop_word(&word.whole));
            reading.not_latin += usize::from(terms::is_not_latin(&word.whole));
            self.read_word(&word, &mut reading);
        }
        reading
    }

    fn read_word(&self, word: &terms::Word, reading: &mut Reading) {
        if let Some(long) = self.abbreviations.expand(&word.whole) {
            write(&mut reading.text, long);
            self.take(&word.whole, &word.whole, reading);
            for part in terms::words(long) {
                self.take(&part.whole, &word.whole, reading);
            }
            return;
        }
        if self.knows(&word.whole) || terms::is_stop_word(&word.whole) {
            write(&mut reading.text, &word.whole);
            self.take(&word.whole, &word.whole, reading);
            return;
        }
        if !word.parts.is_empty() {
            for part in &word.parts {
                self.read_word(
                    &terms::Word {
                        whole: part.clone(),
                        parts: Vec::new(),
                    },
                    reading,
                );
            }
            return;
        }
        let corrected = self.spelling.correct(&word.whole).unwrap_or(&word.whole);
        write(&mut reading.text, corrected);
        if !self.take(corrected, &word.whole, reading) {
            reading.unknown.push(word.whole.as_str().into());
        }
    }

    fn knows(&self, word: &str) -> bool {
        self.surface.contains(word) || self.dictionary.contains_key(terms::stem(word).as_str())
    }

    /// Adds the term of a word, and says whether it is known.
    fn take(&self, word: &str, from: &str, reading: &mut Reading) -> bool {
        if terms::is_stop_word(word) {
            return true;
        }
        let stem = terms::stem(word);
        let Some(at) = self.dictionary.get(stem.as_str()).copied() else {
            return false;
        };
        if reading.terms.iter().all(|term| term.at != at) {
            reading.terms.push(QueryTerm {
                stem: stem.into(),
                at,
                idf: self.idf[at],
                from: from.into(),
            });
        }
        true
    }

    /// Where a term stands in a tool.
    pub(super) fn find(&self, term: &QueryTerm, slot: Slot) -> Option<Posting> {
        let list = self.postings.get(term.at)?;
        let at = list
            .binary_search_by_key(&slot.index(), |posting| posting.slot as usize)
            .ok()?;
        list.get(at).copied()
    }

    /// The best tools by BM25, best first, ties by slot.
    pub(super) fn best(
        &self,
        reading: &Reading,
        most: usize,
        allowed: impl Fn(Slot) -> bool,
    ) -> Vec<(Slot, f32)> {
        let mut order: Vec<&QueryTerm> = reading.terms.iter().collect();
        order.sort_by(|a, b| b.idf.total_cmp(&a.idf).then(a.at.cmp(&b.at)));
        let mut scores: HashMap<u32, f32> = HashMap::new();
        let mut looked_at = 0;
        for term in order {
            let Some(list) = self.postings.get(term.at) else {
                continue;
            };
            looked_at += list.len();
            if LANE_POSTINGS_MAX < looked_at && !scores.is_empty() {
                break;
            }
            for posting in list {
                *scores.entry(posting.slot).or_default() += term.idf * posting.weight;
            }
        }
        let mut best: Vec<(Slot, f32)> = scores
            .into_iter()
            .map(|(slot, score)| (Slot::new(slot as usize), score))
            .filter(|(slot, _)| allowed(*slot))
            .collect();
        let by_score = |a: &(Slot, f32), b: &(Slot, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if most < best.len() {
            best.select_nth_unstable_by(most, by_score);
            best.truncate(most);
        }
        best.sort_by(by_score);
        best
    }
}

/// Terms of one tool.
struct Document {
    terms: Vec<String>,
    fields: HashMap<String, Fields>,
}

impl Document {
    fn read(catalog: &Catalog, slot: Slot, surface: &mut BTreeMap<String, u32>) -> Self {
        let (server, tool) = (catalog.server_of(slot), catalog.tool(slot));
        let mut document = Self {
            terms: Vec::new(),
            fields: HashMap::new(),
        };
        let mut add = |text: &str, field| document.add(text, field, surface);
        add(tool.name().as_str(), Fields::NAME);
        add(tool.title(), Fields::NAME);
        add(server.name.as_str(), Fields::SERVER);
        add(&server.title, Fields::SERVER);
        add(tool.description(), Fields::TEXT);
        for keyword in tool.keywords() {
            add(keyword, Fields::TEXT);
        }
        for argument in tool.input().arguments() {
            add(&argument.name, Fields::ARGUMENTS);
        }
        document
    }

    fn add(&mut self, text: &str, field: Fields, surface: &mut BTreeMap<String, u32>) {
        for word in terms::words(text) {
            for form in word.parts.iter().chain([&word.whole]) {
                if terms::is_stop_word(form) {
                    continue;
                }
                *surface.entry(form.clone()).or_default() += 1;
                let stem = terms::stem(form);
                let fields = self.fields.entry(stem.clone()).or_default();
                *fields = fields.with(field);
                self.terms.push(stem);
            }
        }
    }
}

fn write(text: &mut String, word: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(word);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::sample;

    fn check(query: &str, text: &str, terms: &str) {
        let catalog = sample::catalog();
        let keywords = Keywords::new(&catalog, &Ranking::default());
        let reading = keywords.read(query);
        let found: Vec<&str> = reading.terms.iter().map(|term| &*term.stem).collect();
        assert_eq!(
            (reading.text.as_str(), found.join(" ").as_str()),
            (text, terms)
        );
    }

    #[test]
    fn a_query_is_expanded_and_corrected() {
        check("Open a PR", "open a pull request", "open pull request");
        check("sned a mesage", "send a message", "send messag");
        check("pullRequest", "pull request", "pull request");
        check("grüße", "gruße", "");
    }

    #[test]
    fn the_keyword_lane_finds_the_rare_word() {
        let catalog = sample::catalog();
        let keywords = Keywords::new(&catalog, &Ranking::default());
        let best = keywords.best(&keywords.read("create a github pull request"), 3, |_| true);
        assert_eq!(
            catalog.id(best[0].0).to_string(),
            "github/create_pull_request"
        );
        let none = keywords.best(&keywords.read("github"), 3, |_| false);
        assert!(none.is_empty());
    }
}
