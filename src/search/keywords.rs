//! The keyword side: which terms stand where, how rare they are, and what a query means by them.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use crate::domain::{Catalog, Slot};
use crate::search::abbreviations::Abbreviations;
use crate::search::bm25::Weigher;
use crate::search::ranking::Ranking;
use crate::search::reading::{QueryTerm, Reading};
use crate::search::spelling::Spelling;
use crate::search::synonyms::Synonyms;
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
    /// In what is said about an argument. It counts where a term is known from elsewhere.
    pub(super) const ARGUMENT_TEXT: Self = Self(16);

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

/// The inverted index of a catalog.
#[derive(Debug)]
pub(super) struct Keywords {
    dictionary: HashMap<Box<str>, usize>,
    postings: Vec<Vec<Posting>>,
    idf: Vec<f32>,
    /// The terms of each tool's name, by slot.
    names: Vec<Box<[u32]>>,
    /// Words as written, to tell a known word from a misspelt one.
    surface: HashSet<Box<str>>,
    spelling: Spelling,
    abbreviations: Abbreviations,
    synonyms: Synonyms,
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
        for (slot, document) in (0_u32..).zip(&documents) {
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
        let names = documents
            .iter()
            .map(|document| document.name_terms(&dictionary))
            .collect();
        // Rarity first: what is said about arguments does not make a term less rare.
        let tools = catalog.len() as f32;
        let idf = postings
            .iter()
            .map(|list| {
                let found = list.len() as f32;
                (1.0 + (tools - found + 0.5) / (found + 0.5)).ln()
            })
            .collect();
        for (slot, document) in (0_u32..).zip(&documents) {
            document.add_argument_texts(slot, &dictionary, &mut postings);
        }
        let surface_words = surface.keys().map(|word| word.as_str().into()).collect();
        let counted = surface.into_iter().map(|(word, n)| (word.into(), n));
        Self {
            dictionary,
            postings,
            idf,
            names,
            surface: surface_words,
            spelling: Spelling::new(counted),
            abbreviations: Abbreviations::new(&ranking.abbreviations),
            synonyms: Synonyms::new(),
        }
    }

    /// The place and rarity of a stem.
    pub(super) fn term(&self, stem: &str) -> Option<(usize, f32)> {
        let at = self.dictionary.get(stem).copied()?;
        Some((at, self.idf.get(at).copied()?))
    }

    /// Whether a word stands in the catalog as it is written.
    pub(super) fn has_word(&self, word: &str) -> bool {
        self.surface.contains(word)
    }

    /// Whether some form of a stem stands in the catalog.
    pub(super) fn has_stem(&self, stem: &str) -> bool {
        self.dictionary.contains_key(stem)
    }

    /// Known words, to correct others by.
    pub(super) fn spelling(&self) -> &Spelling {
        &self.spelling
    }

    /// Short forms.
    pub(super) fn abbreviations(&self) -> &Abbreviations {
        &self.abbreviations
    }

    /// Words of like meaning.
    pub(super) fn synonyms(&self) -> &Synonyms {
        &self.synonyms
    }

    /// Where a term stands in a tool.
    pub(super) fn find(&self, term: usize, slot: Slot) -> Option<Posting> {
        let list = self.postings.get(term)?;
        let at = list
            .binary_search_by_key(&slot.index(), |posting| posting.slot as usize)
            .ok()?;
        list.get(at).copied()
    }

    /// The terms of a tool's name.
    pub(super) fn name(&self, slot: Slot) -> &[u32] {
        self.names.get(slot.index()).map_or(&[], |terms| terms)
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
        let mut best: Vec<(Slot, f32)> = SCORES.with_borrow_mut(|scores| {
            let mut looked_at = 0;
            for term in order {
                let list = self.postings.get(term.at).map_or(&[][..], Vec::as_slice);
                looked_at += list.len();
                if LANE_POSTINGS_MAX < looked_at && !scores.touched.is_empty() {
                    break;
                }
                for posting in list.iter().filter(|posting| 0.0 < posting.weight) {
                    scores.add(posting.slot, term.idf * posting.weight);
                }
            }
            scores.drain().filter(|(slot, _)| allowed(*slot)).collect()
        });
        let by_score = |a: &(Slot, f32), b: &(Slot, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if most < best.len() {
            best.select_nth_unstable_by(most, by_score);
            best.truncate(most);
        }
        best.sort_by(by_score);
        best
    }
}

thread_local! {
    /// One a thread: a query touches few slots of many, and gives its scores back as zeros.
    static SCORES: RefCell<Scores> = RefCell::default();
}

/// Sums by slot.
#[derive(Debug, Default)]
struct Scores {
    by_slot: Vec<f32>,
    touched: Vec<u32>,
}

impl Scores {
    fn add(&mut self, slot: u32, score: f32) {
        let at = slot as usize;
        if self.by_slot.len() <= at {
            self.by_slot.resize(at + 1, 0.0);
        }
        if self.by_slot[at] == 0.0 {
            self.touched.push(slot);
        }
        self.by_slot[at] += score;
    }

    /// All sums, each once; nothing is left.
    fn drain(&mut self) -> impl Iterator<Item = (Slot, f32)> {
        let by_slot = &mut self.by_slot;
        self.touched.drain(..).map(|slot| {
            let score = std::mem::take(&mut by_slot[slot as usize]);
            (Slot::new(slot as usize), score)
        })
    }
}

/// Terms of one tool.
struct Document {
    terms: Vec<String>,
    fields: HashMap<String, Fields>,
    argument_terms: HashSet<String>,
}

impl Document {
    fn read(catalog: &Catalog, slot: Slot, surface: &mut BTreeMap<String, u32>) -> Self {
        let (server, tool) = (catalog.server_of(slot), catalog.tool(slot));
        let mut document = Self {
            terms: Vec::new(),
            fields: HashMap::new(),
            argument_terms: HashSet::new(),
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
        for argument in tool.input().arguments() {
            let words = forms(&argument.description);
            document
                .argument_terms
                .extend(words.iter().map(|word| terms::stem(word)));
        }
        document
    }

    fn add(&mut self, text: &str, field: Fields, surface: &mut BTreeMap<String, u32>) {
        for form in forms(text) {
            let stem = terms::stem(&form);
            *surface.entry(form).or_default() += 1;
            let fields = self.fields.entry(stem.clone()).or_default();
            *fields = fields.with(field);
            self.terms.push(stem);
        }
    }

    fn name_terms(&self, dictionary: &HashMap<Box<str>, usize>) -> Box<[u32]> {
        let mut terms: Vec<u32> = self
            .fields
            .iter()
            .filter(|(_, fields)| fields.has(Fields::NAME))
            .filter_map(|(term, _)| dictionary.get(term.as_str()))
            .filter_map(|at| u32::try_from(*at).ok())
            .collect();
        terms.sort_unstable();
        terms.into()
    }

    /// Marks, or adds without weight, the terms that stand in what is said about arguments.
    fn add_argument_texts(
        &self,
        slot: u32,
        dictionary: &HashMap<Box<str>, usize>,
        postings: &mut [Vec<Posting>],
    ) {
        for at in self
            .argument_terms
            .iter()
            .filter_map(|term| dictionary.get(term.as_str()))
        {
            let list = &mut postings[*at];
            match list.binary_search_by_key(&slot, |posting| posting.slot) {
                Ok(there) => list[there].fields = list[there].fields.with(Fields::ARGUMENT_TEXT),
                Err(place) => list.insert(
                    place,
                    Posting {
                        slot,
                        fields: Fields::ARGUMENT_TEXT,
                        weight: 0.0,
                    },
                ),
            }
        }
    }
}

/// The words of a text and the parts of compounds, without stop words.
pub(super) fn forms(text: &str) -> Vec<String> {
    terms::words(text)
        .into_iter()
        .flat_map(|word| word.parts.into_iter().chain([word.whole]))
        .filter(|form| !terms::is_stop_word(form))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::reading::Reader;
    use crate::search::sample;

    fn read(keywords: &Keywords, query: &str) -> Reading {
        let reader = Reader {
            keywords,
            lexicon: None,
        };
        reader.read(query)
    }

    #[test]
    fn the_keyword_lane_finds_the_rare_word() {
        let catalog = sample::catalog();
        let keywords = Keywords::new(&catalog, &Ranking::default());
        let best = keywords.best(&read(&keywords, "create a github pull request"), 3, |_| {
            true
        });
        assert_eq!(
            catalog.id(best[0].0).to_string(),
            "github/create_pull_request"
        );
        let none = keywords.best(&read(&keywords, "github"), 3, |_| false);
        assert!(none.is_empty());
    }

    #[test]
    fn what_is_said_about_an_argument_is_found_but_weighs_nothing() {
        let catalog = sample::catalog();
        let keywords = Keywords::new(&catalog, &Ranking::default());
        // Each sample tool has an argument that says "What to look for".
        assert_eq!(keywords.term("look"), None);
        let search = keywords.term("search").unwrap().0;
        let slot = catalog
            .find(&"brave/brave_web_search".parse().unwrap())
            .unwrap();
        let posting = keywords.find(search, slot).unwrap();
        assert!(posting.fields.has(Fields::NAME) && posting.fields.has(Fields::TEXT));
        assert!(!posting.fields.has(Fields::ARGUMENTS) && 0.0 < posting.weight);
    }
}
