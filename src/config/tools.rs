//! What the surface `gateway` lists, and how its search toolkit ranks.

use std::collections::BTreeMap;

use globset::Glob;
use serde::{Deserialize, Serialize};

/// Most matches of one search.
const LIMIT_MAX: usize = 50;
/// Most back ends that are fused.
const INDEXES_MAX: usize = 4;
/// Largest weight of a field.
const WEIGHT_MAX: f32 = 100.0;

/// The tools of the surface `gateway`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolsSection {
    /// Which tools are listed as they are.
    pub eager: EagerSection,
    /// Three tools that stand for all others; without them everything is listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchSection>,
}

/// Which tools are listed as they are, once there is a search toolkit.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct EagerSection {
    /// None, all, or those that match.
    pub policy: EagerPolicy,
    /// Globs over `toolkit__tool`, for the policy `explicit`.
    pub r#match: Vec<String>,
}

/// Which tools are eager.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EagerPolicy {
    /// None.
    #[default]
    None,
    /// All.
    All,
    /// Those that match.
    Explicit,
}

/// The search toolkit.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct SearchSection {
    /// What the names of its tools begin with.
    pub toolkit: String,
    /// Matches of one search, by default and at most.
    pub limit: usize,
    /// What the ranking goes by; `hybrid` where neither this nor `index` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<IndexType>,
    /// Fields that words are looked for in; all where it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<SearchField>>,
    /// What a field counts against the others.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<SearchField, f32>,
    /// Several rankings, fused by reciprocal rank, in the place of `type`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub index: Vec<IndexEntry>,
}

impl Default for SearchSection {
    fn default() -> Self {
        Self {
            toolkit: "crib".to_owned(),
            limit: 10,
            r#type: None,
            fields: None,
            weights: BTreeMap::new(),
            index: Vec::new(),
        }
    }
}

/// What a ranking goes by.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IndexType {
    /// Words.
    Keyword,
    /// Meaning.
    Semantic,
    /// Both, blended.
    Hybrid,
}

/// A part of a tool's definition.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SearchField {
    /// Names and titles of tool and server.
    Name,
    /// What it does.
    Description,
    /// Names and descriptions of its arguments.
    Arguments,
    /// Names and descriptions in its output schema.
    OutputSchema,
    /// More words to find it by.
    Keywords,
}

impl SearchField {
    /// All fields.
    pub const ALL: [Self; 5] = [
        Self::Name,
        Self::Description,
        Self::Arguments,
        Self::OutputSchema,
        Self::Keywords,
    ];
}

/// One of several rankings: its type alone, or a table.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(
    untagged,
    expecting = "give `keyword`, `semantic` or `hybrid`, or a table with `type`, `fields` and `weights`"
)]
pub enum IndexEntry {
    /// Its type.
    Type(IndexType),
    /// With options of its own.
    Table(IndexSection),
}

/// One of several rankings.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct IndexSection {
    /// What it goes by.
    pub r#type: IndexType,
    /// Fields that words are looked for in; those of the toolkit where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<SearchField>>,
    /// What a field counts; as in the toolkit where it is not given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<SearchField, f32>,
}

impl SearchSection {
    /// The rankings to use: one, or several to be fused. What an entry of `index` does not say, the
    /// toolkit says for it, where it goes by words.
    pub fn rankings(&self) -> Vec<IndexSection> {
        let own = |r#type: IndexType| {
            let words = r#type != IndexType::Semantic;
            IndexSection {
                r#type,
                fields: self.fields.clone().filter(|_| words),
                weights: if words {
                    self.weights.clone()
                } else {
                    BTreeMap::new()
                },
            }
        };
        if self.index.is_empty() {
            return vec![own(self.r#type.unwrap_or(IndexType::Hybrid))];
        }
        let entry = |entry: &IndexEntry| match entry {
            IndexEntry::Type(r#type) => own(*r#type),
            IndexEntry::Table(table) if table.fields.is_none() && table.weights.is_empty() => {
                own(table.r#type)
            }
            IndexEntry::Table(table) => table.clone(),
        };
        self.index.iter().map(entry).collect()
    }

    fn check(&self) -> Result<(), String> {
        if self.r#type.is_some() && !self.index.is_empty() {
            return Err(
                "tools.search has both `type` and `index`, which exclude each other: `type` is one \
                 ranking, `index` is several that are fused. Take one of them out"
                    .to_owned(),
            );
        }
        if self.limit == 0 || LIMIT_MAX < self.limit {
            return Err(format!("tools.search.limit: give 1 to {LIMIT_MAX}"));
        }
        if INDEXES_MAX < self.index.len() {
            return Err(format!("tools.search.index: give at most {INDEXES_MAX}"));
        }
        let only = self.r#type == Some(IndexType::Semantic);
        check_fields(self.fields.as_deref(), &self.weights, only)?;
        for entry in &self.index {
            if let IndexEntry::Table(table) = entry {
                let semantic = table.r#type == IndexType::Semantic;
                check_fields(table.fields.as_deref(), &table.weights, semantic)?;
            }
        }
        Ok(())
    }
}

impl ToolsSection {
    /// What does not go together, in words.
    pub(super) fn check(&self) -> Result<(), String> {
        let explicit = self.eager.policy == EagerPolicy::Explicit;
        match (explicit, self.eager.r#match.is_empty()) {
            (true, true) => {
                return Err("tools.eager.policy is `explicit`: say which tools in \
                            tools.eager.match, such as [\"github__create_*\"]"
                    .to_owned());
            }
            (false, false) => {
                return Err(
                    "tools.eager.match is for the policy `explicit`: set tools.eager.policy"
                        .to_owned(),
                );
            }
            (true, false) | (false, true) => {}
        }
        for pattern in &self.eager.r#match {
            Glob::new(pattern).map_err(|error| format!("tools.eager.match: {error}"))?;
        }
        self.search.as_ref().map_or(Ok(()), SearchSection::check)
    }
}

fn check_fields(
    fields: Option<&[SearchField]>,
    weights: &BTreeMap<SearchField, f32>,
    semantic: bool,
) -> Result<(), String> {
    if semantic && (fields.is_some() || !weights.is_empty()) {
        return Err(
            "tools.search: `fields` and `weights` are of words; the type `semantic` compares \
                    whole definitions"
                .to_owned(),
        );
    }
    if fields.is_some_and(<[SearchField]>::is_empty) {
        return Err("tools.search: `fields` names no field".to_owned());
    }
    for (field, weight) in weights {
        if !(0.0..=WEIGHT_MAX).contains(weight) {
            return Err(format!("tools.search: a weight is 0 to {WEIGHT_MAX}"));
        }
        if fields.is_some_and(|fields| !fields.contains(field)) {
            return Err("tools.search: `weights` names a field that is not in `fields`".to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> String {
        let section: Result<ToolsSection, _> = toml::from_str(text);
        match section {
            Err(error) => error.message().to_owned(),
            Ok(section) => section.check().err().unwrap_or_else(|| "fits".to_owned()),
        }
    }

    #[test]
    fn what_does_not_go_together_is_said() {
        let search = |options: &str| check(&format!("[search]\n{options}"));
        let cases = [
            search("type = \"keyword\"\nindex = [\"keyword\", \"semantic\"]"),
            search("limit = 0"),
            search("limit = 51"),
            search("type = \"fuzzy\""),
            search("index = [{ type = \"keyword\", field = [\"name\"] }]"),
            search("type = \"semantic\"\nfields = [\"name\"]"),
            search("fields = []"),
            search("fields = [\"name\"]\nweights = { description = 2.0 }"),
            search("weights = { name = -1.0 }"),
            check("[eager]\npolicy = \"explicit\""),
            check("[eager]\nmatch = [\"a__*\"]"),
            check("[eager]\npolicy = \"explicit\"\nmatch = [\"a[\"]"),
        ];
        insta::assert_snapshot!(cases.join("\n"));
    }

    #[test]
    fn what_an_entry_leaves_out_the_toolkit_says() {
        let text = "[search]\nfields = [\"name\"]\nindex = [\"keyword\", \"semantic\", \
                    { type = \"keyword\", weights = { output-schema = 2.0 } }]";
        assert_eq!(check(text), "fits");
        let section: ToolsSection = toml::from_str(text).unwrap();
        let rankings = section.search.unwrap().rankings();
        assert_eq!(rankings[0].fields, Some(vec![SearchField::Name]));
        assert_eq!(rankings[1].fields, None);
        assert_eq!(rankings[2].fields, None);
        assert!(rankings[2].weights.contains_key(&SearchField::OutputSchema));
        let alone = SearchSection::default().rankings();
        assert_eq!((alone.len(), alone[0].r#type), (1, IndexType::Hybrid));
    }
}
