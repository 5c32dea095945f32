//! Tiered fuzzy matching: how well the words of a query fit names, keywords and descriptions.
//!
//! Each word is worth the best tier that it reaches in a tool; a query is worth the mean of its
//! words, those that few tools have counting more.

mod sought;
mod word;

use std::cmp::Ordering;

use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSlice, ParallelSliceMut};

use crate::registry::fuzzy::word::Word;
use crate::registry::metadata::ToolMetadata;

pub(super) use self::sought::Sought;

/// The word is the tool's name.
const NAME: f32 = 1.0;
/// The name begins with the word.
const NAME_PREFIX: f32 = 0.9;
/// The word is a keyword.
const KEYWORD: f32 = 0.85;
/// The name holds the word.
const NAME_CONTAINS: f32 = 0.8;
/// A keyword holds the word.
const KEYWORD_CONTAINS: f32 = 0.7;
/// The word is a word of the description.
const DESCRIPTION_WORD: f32 = 0.6;
/// The description holds the word.
const DESCRIPTION_CONTAINS: f32 = 0.5;
/// What a perfect likeness of a name would be worth: below all tiers.
const LIKENESS: f32 = 0.45;
/// Words of a query that count; more are left out.
const WORDS_MAX: usize = 32;

/// From how many pairs of word and tool on several threads share them.
const PARALLEL_FROM: usize = 10_000;
/// Tools that one thread takes at a time.
const PART: usize = 256;

/// English words that tell nothing in a query with others.
const FILLERS: [&str; 34] = [
    "a", "all", "an", "and", "are", "as", "at", "be", "by", "can", "for", "from", "how", "i", "in",
    "into", "is", "it", "its", "me", "my", "of", "on", "or", "that", "the", "this", "to", "up",
    "us", "when", "which", "with", "you",
];

/// A tool that fits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// Where it stands among the tools that were given.
    pub at: usize,
    /// How well it fits, over 0 and up to 1.
    pub score: f32,
}

/// The tools that a query fits, best first, ties by name. What no word is like is left out.
pub fn rank(query: &str, tools: &[&ToolMetadata]) -> Vec<Scored> {
    let folded = query.to_lowercase();
    let words: Vec<Word<'_>> = telling(&folded).into_iter().map(Word::new).collect();
    let reached = reached(&words, tools);
    let mut scores = vec![0.0_f32; tools.len()];
    let mut total = 0.0;
    for at in 0..words.len() {
        let of_word = || reached.iter().skip(at).step_by(words.len());
        let literal = of_word().filter(|worth| DESCRIPTION_CONTAINS <= **worth);
        let weight = rarity(literal.count(), tools.len());
        total += weight;
        for (score, worth) in scores.iter_mut().zip(of_word()) {
            *score += weight * worth;
        }
    }
    let phrase = (1 < words.len()).then(|| sought::phrase(&folded));
    let whole = |tool: &ToolMetadata| {
        let phrase = phrase.as_deref();
        phrase.map_or(0.0, |phrase| tool.sought().whole(phrase))
    };
    let mut ranked: Vec<Scored> = scores
        .iter()
        .zip(tools)
        .enumerate()
        .map(|(at, (sum, tool))| Scored {
            at,
            score: if 0.0 < total {
                (sum / total).max(whole(tool))
            } else {
                0.0
            },
        })
        .filter(|scored| 0.0 < scored.score)
        .collect();
    let name = |scored: &Scored| tools.get(scored.at).map(|tool| tool.name());
    ranked.sort_unstable_by(|a, b| {
        let best = b.score.partial_cmp(&a.score).unwrap_or(Ordering::Equal);
        best.then_with(|| name(a).cmp(&name(b)))
    });
    ranked
}

/// What each word is worth in each tool, tool by tool.
fn reached(words: &[Word<'_>], tools: &[&ToolMetadata]) -> Vec<f32> {
    let mut reached = vec![0.0_f32; words.len() * tools.len()];
    let fill = |(tools, reached): (&[&ToolMetadata], &mut [f32])| {
        for (tool, reached) in tools.iter().zip(reached.chunks_mut(words.len())) {
            for (word, worth) in words.iter().zip(reached) {
                *worth = word.worth(tool.sought());
            }
        }
    };
    if words.is_empty() {
        return reached;
    }
    if reached.len() < PARALLEL_FROM {
        fill((tools, &mut reached));
    } else {
        let parts = tools
            .par_chunks(PART)
            .zip(reached.par_chunks_mut(PART * words.len()));
        parts.for_each(fill);
    }
    reached
}

/// The words of a folded query, each once. Those that only hold a sentence together are left out,
/// unless there are no others: `a` is in every other name.
fn telling(folded: &str) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    for word in folded.split_whitespace() {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        if !word.is_empty() && !all.contains(&word) {
            all.push(word);
        }
        if all.len() == WORDS_MAX {
            break;
        }
    }
    let telling: Vec<&str> = all
        .iter()
        .copied()
        .filter(|word| !FILLERS.contains(word))
        .collect();
    if telling.is_empty() { all } else { telling }
}

/// What a word counts that so many of all tools have.
fn rarity(having: usize, all: usize) -> f32 {
    (1.0 + (all as f32 + 1.0) / (having as f32 + 1.0)).ln()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::registry::ToolSpec;

    fn tool(name: &str, keywords: &[&str], description: &str) -> Arc<ToolMetadata> {
        let spec = ToolSpec::new(name, description).unwrap();
        let keywords = keywords.iter().copied();
        Arc::new(spec.keywords(keywords).into())
    }

    fn ranked(query: &str, tools: &[Arc<ToolMetadata>]) -> Vec<(String, f32)> {
        let tools: Vec<&ToolMetadata> = tools.iter().map(AsRef::as_ref).collect();
        let ranked = rank(query, &tools).into_iter();
        ranked
            .map(|scored| (tools[scored.at].name().to_owned(), scored.score))
            .collect()
    }

    #[test]
    fn every_tier_has_its_worth() {
        let sample = tool(
            "send_email",
            &["mailbox", "Outbound"],
            "Deliver letters, now!",
        );
        let check = |query: &str, expected: f32| {
            let ranked = ranked(query, &[Arc::clone(&sample)]);
            let score = ranked.first().map_or(0.0, |(_, score)| *score);
            assert!(
                (score - expected).abs() < 1e-6,
                "{query}: {score} not {expected}"
            );
        };
        check("send_email", 1.0);
        check("SEND_Email", 1.0);
        check("outbound", 0.85);
        check("send", 0.9);
        check("send_e", 0.9);
        check("email", 0.8);
        check("d_em", 0.8);
        check("box", 0.7);
        check("letters", 0.6);
        check("now", 0.6);
        check("liver", 0.5);
        // One edit of `email`, of five letters: likeness 0.8; of `send_email`, two of ten.
        check("emall", 0.45 * 0.8);
        check("semd_emall", 0.45 * 0.8);
        check("ssss", 0.0);
        check("zebra", 0.0);
        check("", 0.0);
        check("?!", 0.0);
    }

    #[test]
    fn a_higher_tier_goes_over_a_lower_one() {
        let tools = [
            tool("export", &[], "x"),
            tool("mail_export", &["export"], "x"),
            tool("exporter", &["export"], "x"),
            tool("reexport", &[], "export"),
            tool("dump", &["exports"], "export"),
            tool("spill", &[], "To export all."),
            tool("leak", &[], "Exporting."),
            tool("expert", &[], "x"),
        ];
        let names: Vec<String> = ranked("export", &tools)
            .into_iter()
            .map(|(n, _)| n)
            .collect();
        let expected = [
            "export",
            "exporter",
            "mail_export",
            "reexport",
            "dump",
            "spill",
            "leak",
            "expert",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn rare_words_count_more() {
        let mut tools: Vec<_> = (0..20)
            .map(|n| tool(&format!("list_{n}"), &[], "List them."))
            .collect();
        tools.push(tool("show", &[], "Show an invoice."));
        let ranked = ranked("list invoice", &tools);
        assert_eq!(ranked[0].0, "show", "{ranked:?}");
        // The mean of unweighted words would prefer the prefix of a name, 0.45, to 0.3.
        assert!(0.3 < ranked[0].1 && ranked[1].1 < 0.45, "{ranked:?}");
    }

    #[test]
    fn fillers_count_only_among_themselves() {
        let tools = [tool("at", &[], "x"), tool("email", &[], "A letter.")];
        assert_eq!(ranked("email at the", &tools), [("email".to_owned(), 1.0)]);
        assert_eq!(ranked("at", &tools)[0], ("at".to_owned(), 1.0));
        assert_eq!(ranked("email email", &tools), ranked("email", &tools));
    }

    #[test]
    fn a_name_in_words_is_that_name() {
        let tools = [
            tool("createPullRequest", &[], "x"),
            tool("pull", &["pull request"], "x"),
        ];
        assert_eq!(
            ranked("create pull request", &tools)[0],
            ("createPullRequest".to_owned(), 1.0)
        );
        assert_eq!(ranked("pull request", &tools)[0].0, "pull");
    }

    #[test]
    fn other_alphabets_match_as_well() {
        let tools = [tool("wetter_münchen", &[], "Größe der Stadt")];
        assert!((ranked("MÜNCHEN", &tools)[0].1 - 0.8).abs() < 1e-6);
        assert!((ranked("grösse größe", &tools)[0].1) > 0.0);
        assert!(0.0 < ranked("munchen", &tools)[0].1);
    }

    proptest! {
        #[test]
        fn no_text_panics_and_scores_stay_within_one(
            query in ".{0,80}", name in "[a-zA-Z_é/.-]{1,40}", text in ".{0,60}",
        ) {
            let tools = [tool(&name, &[&text], &text)];
            for (_, score) in ranked(&query, &tools) {
                prop_assert!(0.0 < score && score <= 1.0, "{score}");
            }
            if name.chars().any(char::is_alphanumeric) {
                let trimmed = name.trim_matches(|c: char| !c.is_alphanumeric());
                prop_assert!(!ranked(trimmed, &tools).is_empty());
            }
        }
    }
}
