//! Why the tools of an answer stand where they stand.

use std::fmt;

use crate::domain::ToolId;
use crate::search::Ranked;
use crate::search::answer::Degraded;
use crate::search::candidates::Lane;
use crate::search::index::Index;
use crate::search::keywords::Fields;

/// How a query was read, and all its candidates.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// What the model read: the query with misspelt words corrected and short forms written out.
    pub read_as: String,
    /// The model that was asked, if one was.
    pub model: Option<String>,
    /// Why the keyword side answered alone, if it did.
    pub degraded: Option<Degraded>,
    /// The terms that the catalog knows.
    pub words: Vec<Word>,
    /// Words that the catalog does not know.
    pub unknown: Vec<String>,
    /// How many tools this tenant may use.
    pub tools_total: usize,
    /// The picks in their order, then all other candidates by blended score.
    pub rows: Vec<Row>,
}

/// A term of the query.
#[derive(Clone, Debug)]
pub struct Word {
    /// The stem that is looked for.
    pub stem: String,
    /// The word it came from.
    pub from: String,
    /// How rare it is: the natural logarithm of tools over tools with it, about.
    pub rarity: f32,
}

/// A candidate.
#[derive(Clone, Debug)]
pub struct Row {
    /// Which tool.
    pub id: ToolId,
    /// What brought it here.
    pub lane: Lane,
    /// Its place in the answer, from 1, if it has one.
    pub pick: Option<usize>,
    /// Cosine to the query.
    pub cosine: Option<f32>,
    /// Semantic score, 0 to 1 over the candidates.
    pub semantic: f32,
    /// Keyword score, 0 to 1.
    pub keyword: f32,
    /// 0.68 semantic and 0.32 keyword, unless configured.
    pub blended: f32,
    /// Score when it was picked: blended, less its likeness to the picks before it.
    pub mmr: Option<f32>,
    /// The query's terms that it has, each with where: `n`ame, `s`erver, `t`ext,
    /// `a`rguments, `d`escription of an argument.
    pub matched: Vec<String>,
}

impl Explanation {
    pub(super) fn of(index: &Index, ranked: Ranked) -> Self {
        let picked = |at: usize| ranked.picks.iter().position(|pick| pick.at == at);
        let mut rows: Vec<(usize, Row)> = ranked
            .candidates
            .iter()
            .enumerate()
            .map(|(at, candidate)| {
                let pick = picked(at);
                let matched = ranked.reading.terms.iter().filter_map(|term| {
                    let posting = index.keywords.find(term.at, candidate.slot)?;
                    Some(format!("{}:{}", term.stem, letters(posting.fields)))
                });
                let row = Row {
                    id: index.catalog().id(candidate.slot),
                    lane: candidate.lane,
                    pick: pick.map(|pick| pick + 1),
                    cosine: candidate.cosine,
                    semantic: candidate.semantic,
                    keyword: candidate.keyword,
                    blended: candidate.blended,
                    mmr: pick.map(|pick| ranked.picks[pick].score),
                    matched: matched.collect(),
                };
                (pick.unwrap_or(usize::MAX), row)
            })
            .collect();
        rows.sort_by_key(|(pick, _)| *pick);
        let words = ranked.reading.terms.iter().map(|term| Word {
            stem: term.stem.to_string(),
            from: term.from.to_string(),
            rarity: term.idf,
        });
        Self {
            words: words.collect(),
            unknown: ranked
                .reading
                .unknown
                .iter()
                .map(ToString::to_string)
                .collect(),
            read_as: ranked.reading.text,
            model: ranked.model,
            degraded: ranked.degraded,
            tools_total: ranked.tools_total,
            rows: rows.into_iter().map(|(_, row)| row).collect(),
        }
    }
}

fn letters(fields: Fields) -> String {
    [
        (Fields::NAME, 'n'),
        (Fields::SERVER, 's'),
        (Fields::TEXT, 't'),
        (Fields::ARGUMENTS, 'a'),
        (Fields::ARGUMENT_TEXT, 'd'),
    ]
    .into_iter()
    .filter_map(|(field, letter)| fields.has(field).then_some(letter))
    .collect()
}

/// As a table for people.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "read as:  {}", self.read_as)?;
        let words = self.words.iter().map(|word| {
            let from = if word.from == word.stem {
                String::new()
            } else {
                format!(" (from {})", word.from)
            };
            format!("{} {:.1}{from}", word.stem, word.rarity)
        });
        writeln!(f, "terms:    {}", words.collect::<Vec<_>>().join(", "))?;
        if !self.unknown.is_empty() {
            writeln!(f, "unknown:  {}", self.unknown.join(", "))?;
        }
        match (&self.model, self.degraded) {
            (Some(model), _) => writeln!(f, "model:    {model}")?,
            (None, Some(degraded)) => writeln!(f, "model:    none, {degraded}")?,
            (None, None) => {}
        }
        writeln!(f, "tools:    {}", self.tools_total)?;
        writeln!(
            f,
            "  pick  blended  semantic  keyword     mmr  cosine  lane  tool  [matched]"
        )?;
        for row in &self.rows {
            let optional = |value: Option<f32>| value.map_or("-".to_owned(), |v| format!("{v:.3}"));
            let lane = match row.lane {
                Lane::Nearest => "near",
                Lane::Keywords => "word",
            };
            writeln!(
                f,
                "  {:>4}  {:>7.3}  {:>8.3}  {:>7.3}  {:>6}  {:>6}  {lane}  {}  [{}]",
                row.pick.map_or(String::new(), |pick| pick.to_string()),
                row.blended,
                row.semantic,
                row.keyword,
                optional(row.mmr),
                optional(row.cosine),
                row.id,
                row.matched.join(" "),
            )?;
        }
        Ok(())
    }
}
