//! BM25 weights of a document's terms, by the crate `bm25`.

use std::collections::HashMap;

use ::bm25::{Embedder, EmbedderBuilder, TokenEmbedder, Tokenizer};

/// Splits a text that is already made of terms with one space between.
#[derive(Debug)]
struct Spaces;

impl Tokenizer for Spaces {
    fn tokenize(&self, input_text: &str) -> Vec<String> {
        input_text
            .split(' ')
            .filter(|term| !term.is_empty())
            .map(str::to_owned)
            .collect()
    }
}

/// A term stands for itself: no hash, so no two terms share a place.
#[derive(Debug)]
struct Itself;

impl TokenEmbedder for Itself {
    type EmbeddingSpace = String;

    fn embed(token: &str) -> String {
        token.to_owned()
    }
}

/// Weighs terms by how often they stand in a document and how long it is.
#[derive(Debug)]
pub(super) struct Weigher(Embedder<Itself, Spaces>);

impl Weigher {
    /// For a corpus with documents of this average length, in terms.
    pub(super) fn new(average_terms: f32) -> Self {
        Self(
            EmbedderBuilder::<Itself, Spaces>::with_tokenizer_and_fit_to_corpus(Spaces, &[])
                .avgdl(average_terms)
                .build(),
        )
    }

    /// Weight of each term of a document; 0 to 2.2, without the term's rarity.
    pub(super) fn weigh(&self, terms: &[String]) -> HashMap<String, f32> {
        self.0
            .embed(&terms.join(" "))
            .0
            .into_iter()
            .map(|term| (term.index, term.value))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_term_weighs_more_and_a_long_document_less() {
        let weigher = Weigher::new(3.0);
        let terms = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let short = weigher.weigh(&terms("a b a"));
        assert!(short["b"] < short["a"]);
        let long = weigher.weigh(&terms("a b a c d e f g"));
        assert!(long["a"] < short["a"]);
    }
}
