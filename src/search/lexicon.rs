//! Which words an English model knows whole, and which are another language's.
//!
//! A word-piece vocabulary holds the twenty thousand words most used in English as single pieces.
//! A word that is in neither it nor the catalog is misspelt, a name, or foreign.

use std::collections::HashSet;

use serde_json::Value;

/// Words that hold a sentence together in the languages most often seen beside English. Those
/// that are English words too are left out.
const FOREIGN: &str = " de la el los las un una unos unas en y que por para con del al es su como \
    mi lo le les des du et est dans pour sur avec une au aux ce cette mon ma mes je der die das \
    den dem ein eine einen einem und ist mit auf fur von zu im nicht wie ich bitte mein meine il \
    gli uno di da che per non mio mia sono della nel um uma os do dos nos nas em com meu minha e \
    het een van op te met voor naar mijn ik aan dat och att ett som pa av med till jag det er og \
    til jeg w na z jak mi ";

/// A vocabulary of whole words, in lower case.
#[derive(Debug)]
pub(super) struct Lexicon(HashSet<Box<str>>);

impl Lexicon {
    /// From the text of a `tokenizer.json`. `None` when its vocabulary is not one of word pieces
    /// in lower case, which says nothing about English.
    pub(super) fn from_tokenizer(text: &[u8]) -> Option<Self> {
        let tokenizer: Value = serde_json::from_slice(text).ok()?;
        let model = &tokenizer["model"];
        let pieces = model["vocab"].as_object()?;
        model["continuing_subword_prefix"].as_str()?;
        let words: HashSet<Box<str>> = pieces
            .keys()
            .filter(|piece| 2 <= piece.len() && piece.chars().all(char::is_lowercase))
            .map(|piece| piece.as_str().into())
            .collect();
        (!words.is_empty()).then_some(Self(words))
    }

    /// Whether a lower-case word is known.
    pub(super) fn has(&self, word: &str) -> bool {
        self.0.contains(word)
    }
}

/// Whether a lower-case word without accents is a small word of another language.
pub(super) fn is_foreign(word: &str) -> bool {
    word.len() <= 5 && FOREIGN.contains(&format!(" {word} "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_are_taken_and_pieces_are_not() {
        let text = br###"{"model": {"continuing_subword_prefix": "##",
            "vocab": {"[CLS]": 0, "flight": 1, "##ing": 2, "a": 3, "42": 4}}}"###;
        let lexicon = Lexicon::from_tokenizer(text).unwrap();
        assert!(lexicon.has("flight"));
        assert!(!lexicon.has("ing") && !lexicon.has("##ing") && !lexicon.has("42"));
        assert!(Lexicon::from_tokenizer(br#"{"model": {"vocab": [["a", -1.0]]}}"#).is_none());
        assert!(Lexicon::from_tokenizer(b"{").is_none());
    }

    #[test]
    fn small_foreign_words_are_known() {
        assert!(is_foreign("una") && is_foreign("een"));
        assert!(!is_foreign("an") && !is_foreign("message"));
    }
}
