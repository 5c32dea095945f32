//! BM25F: the keyword ranking of callers who say which fields count, and how much.
//!
//! Robertson, Zaragoza and Taylor, "Simple BM25 Extension to Multiple Weighted Fields", 2004: a
//! term's counts in all fields are weighed and added up before they saturate, so that a word in
//! the name and in the description is one finding and not two.

use std::collections::HashMap;

use serde_json::Value;

use crate::domain::{Catalog, Slot};
use crate::search::find::Hit;
use crate::search::keywords;
use crate::search::terms;

/// Saturation of a term's count.
const K1: f32 = 1.2;
/// How much the length of a field counts.
const B: f32 = 0.75;
/// Deepest nesting of an output schema that is read.
const SCHEMA_DEPTH_MAX: usize = 12;
/// Texts of one output schema that are read.
const SCHEMA_TEXTS_MAX: usize = 400;
/// How many fields there are.
const FIELDS: usize = 5;

/// A part of a tool's definition.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Field {
    /// Names and titles of tool and server.
    Name,
    /// What it does.
    Description,
    /// Names of arguments and what is said about them.
    Arguments,
    /// Properties of its structured result and what is said about them.
    OutputSchema,
    /// More words to find it by.
    Keywords,
}

impl Field {
    /// All fields.
    pub const ALL: [Self; FIELDS] = [
        Self::Name,
        Self::Description,
        Self::Arguments,
        Self::OutputSchema,
        Self::Keywords,
    ];

    /// What it counts where nobody says otherwise: words in a name are chosen, those in long texts
    /// stand by chance.
    fn weight(self) -> f32 {
        match self {
            Self::Name => 3.0,
            Self::Keywords => 2.0,
            Self::Description => 1.0,
            Self::Arguments | Self::OutputSchema => 0.5,
        }
    }

    fn at(self) -> usize {
        self as usize
    }
}

/// What each field counts; 0 for those that are left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FieldWeights([f32; FIELDS]);

impl FieldWeights {
    /// These fields, each at its default weight.
    pub fn of(fields: &[Field]) -> Self {
        let mut weights = [0.0; FIELDS];
        for field in fields {
            weights[field.at()] = field.weight();
        }
        Self(weights)
    }

    /// The same with another weight for one field.
    #[must_use]
    pub fn with(mut self, field: Field, weight: f32) -> Self {
        self.0[field.at()] = weight;
        self
    }
}

/// One term in one tool: how often it stands in each field.
#[derive(Clone, Copy, Debug)]
struct Posting {
    slot: u32,
    counts: [u8; FIELDS],
}

/// The inverted index of a catalog by field.
#[derive(Debug)]
pub(super) struct FieldIndex {
    dictionary: HashMap<Box<str>, usize>,
    postings: Vec<Vec<Posting>>,
    /// Terms of each field, by slot.
    lengths: Vec<[u16; FIELDS]>,
    average: [f32; FIELDS],
}

impl FieldIndex {
    /// Reads a catalog.
    pub(super) fn new(catalog: &Catalog) -> Self {
        let mut index = Self {
            dictionary: HashMap::new(),
            postings: Vec::new(),
            lengths: Vec::with_capacity(catalog.len()),
            average: [1.0; FIELDS],
        };
        for slot in catalog.slots() {
            index.add(catalog, slot);
        }
        for field in Field::ALL {
            let of = index.lengths.iter().map(|lengths| lengths[field.at()]);
            let filled = of.filter(|length| 0 < *length);
            let (count, sum) = filled.fold((0_u32, 0_f32), |(count, sum), length| {
                (count + 1, sum + f32::from(length))
            });
            if 0 < count {
                index.average[field.at()] = sum / count as f32;
            }
        }
        index
    }

    fn add(&mut self, catalog: &Catalog, slot: Slot) {
        let mut counts: HashMap<String, [u8; FIELDS]> = HashMap::new();
        let mut lengths = [0_u16; FIELDS];
        for (field, text) in texts(catalog, slot) {
            for form in keywords::forms(&text) {
                let count = &mut counts.entry(terms::stem(&form)).or_default()[field.at()];
                *count = count.saturating_add(1);
                lengths[field.at()] = lengths[field.at()].saturating_add(1);
            }
        }
        self.lengths.push(lengths);
        let slot = u32::try_from(slot.index()).unwrap_or(u32::MAX);
        for (term, counts) in counts {
            let postings = &mut self.postings;
            let at = *self.dictionary.entry(term.into()).or_insert_with(|| {
                postings.push(Vec::new());
                postings.len() - 1
            });
            postings[at].push(Posting { slot, counts });
        }
    }

    /// The best tools for some stems, best first, ties by slot. A score is the share of the
    /// query's rarity that a tool has, 0 to 1.
    pub(super) fn best(
        &self,
        stems: &[String],
        weights: FieldWeights,
        allowed: impl Fn(Slot) -> bool,
    ) -> Vec<Hit> {
        let tools = self.lengths.len() as f32;
        let (mut sums, mut most) = (HashMap::<u32, f32>::new(), 0.0);
        for stem in stems {
            let at = self.dictionary.get(stem.as_str());
            let list = at.and_then(|at| self.postings.get(*at));
            let found: Vec<(u32, f32)> = list
                .into_iter()
                .flatten()
                .map(|posting| (posting.slot, self.weigh(*posting, weights)))
                .filter(|(_, count)| 0.0 < *count)
                .collect();
            let with = found.len() as f32;
            let rarity = (1.0 + (tools - with + 0.5) / (with + 0.5)).ln();
            most += rarity;
            for (slot, count) in found {
                *sums.entry(slot).or_default() += rarity * count / (K1 + count);
            }
        }
        let mut hits: Vec<Hit> = sums
            .into_iter()
            .map(|(slot, sum)| Hit {
                slot: Slot::new(slot as usize),
                score: sum / most,
            })
            .filter(|hit| allowed(hit.slot))
            .collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.slot.cmp(&b.slot)));
        hits
    }

    /// A term's weighed count in a tool, less in fields that are longer than usual.
    fn weigh(&self, posting: Posting, weights: FieldWeights) -> f32 {
        let lengths = self.lengths.get(posting.slot as usize);
        let lengths = lengths.copied().unwrap_or_default();
        let of = |field: Field| {
            let at = field.at();
            let length = f32::from(lengths[at]) / self.average[at];
            weights.0[at] * f32::from(posting.counts[at]) / (1.0 - B + B * length)
        };
        Field::ALL.into_iter().map(of).sum()
    }
}

/// All texts of a tool, each with its field.
fn texts(catalog: &Catalog, slot: Slot) -> Vec<(Field, String)> {
    let (server, tool) = (catalog.server_of(slot), catalog.tool(slot));
    let mut texts = vec![
        (Field::Name, tool.name().as_str().to_owned()),
        (Field::Name, tool.title().to_owned()),
        (Field::Name, server.name.as_str().to_owned()),
        (Field::Name, server.title.to_string()),
        (Field::Description, tool.description().to_owned()),
    ];
    for argument in tool.input().arguments() {
        texts.push((Field::Arguments, argument.name.to_string()));
        texts.push((Field::Arguments, argument.description.to_string()));
    }
    if let Some(schema) = tool.output_schema() {
        let mut said = Vec::new();
        read_schema(schema, 0, &mut said);
        texts.extend(said.into_iter().map(|text| (Field::OutputSchema, text)));
    }
    for keyword in tool.keywords() {
        texts.push((Field::Keywords, keyword.to_string()));
    }
    texts
}

/// Names of properties, titles and descriptions, at any depth.
fn read_schema(schema: &Value, depth: usize, said: &mut Vec<String>) {
    if SCHEMA_DEPTH_MAX < depth || SCHEMA_TEXTS_MAX <= said.len() {
        return;
    }
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                match (key.as_str(), value) {
                    ("description" | "title", Value::String(text)) => said.push(text.clone()),
                    ("properties", Value::Object(properties)) => {
                        said.extend(properties.keys().cloned());
                        read_all(&mut properties.values(), depth, said);
                    }
                    (_, Value::Object(_) | Value::Array(_)) => read_schema(value, depth + 1, said),
                    _ => {}
                }
            }
        }
        Value::Array(items) => read_all(&mut items.iter(), depth, said),
        _ => {}
    }
    said.truncate(SCHEMA_TEXTS_MAX);
}

fn read_all(schemas: &mut dyn Iterator<Item = &Value>, depth: usize, said: &mut Vec<String>) {
    for schema in schemas {
        read_schema(schema, depth + 1, said);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::domain::{Definition, Input, Server, Tool};

    /// One word in each field of a tool of its own, and a tool with none.
    fn index() -> (Catalog, FieldIndex) {
        let tool = |name: &str, edit: &dyn Fn(&mut Definition)| {
            let input = Input::from_schema(json!({"type": "object"}));
            let mut definition = Definition::new(name.parse().unwrap(), "Does it.", input);
            edit(&mut definition);
            Tool::new(definition)
        };
        let tools = vec![
            tool("a_zebra", &|_| {}),
            tool("b_described", &|d| {
                "Feeds a zebra.".clone_into(&mut d.description);
            }),
            tool("c_argued", &|d| {
                let schema = json!({"type": "object", "properties": {"zebra": {"type": "string"}}});
                d.input = Input::from_schema(schema);
            }),
            tool("d_answers", &|d| {
                let items = json!({"properties": {"n": {"description": "Number of a zebra"}}});
                d.output_schema = Some(json!({"type": "object", "properties": {"all": items}}));
            }),
            tool("e_filed", &|d| d.keywords = vec!["zebra".to_owned()]),
            tool("f_other", &|_| {}),
        ];
        let server = Server::new("zoo".parse().unwrap(), tools);
        let catalog = Catalog::new([Arc::new(server)]).unwrap();
        let index = FieldIndex::new(&catalog);
        (catalog, index)
    }

    fn found(weights: FieldWeights) -> Vec<String> {
        let (catalog, index) = index();
        let stems = [terms::stem("zebra")];
        let hits = index.best(&stems, weights, |_| true);
        assert!(hits.iter().all(|hit| (0.0..=1.0).contains(&hit.score)));
        let first = |hit: &Hit| catalog.tool(hit.slot).name().as_str().chars().next();
        hits.iter()
            .map(|hit| first(hit).unwrap().to_string())
            .collect()
    }

    #[test]
    fn each_field_finds_its_own_and_no_other() {
        let one = |field| found(FieldWeights::of(&[field])).concat();
        assert_eq!(one(Field::Name), "a");
        assert_eq!(one(Field::Description), "b");
        assert_eq!(one(Field::Arguments), "c");
        assert_eq!(one(Field::OutputSchema), "d");
        assert_eq!(one(Field::Keywords), "e");
        assert_eq!(found(FieldWeights::of(&Field::ALL)).len(), 5);
    }

    #[test]
    fn a_weight_moves_a_field_to_the_front() {
        assert_eq!(found(FieldWeights::of(&Field::ALL))[0], "a");
        let heavy = FieldWeights::of(&Field::ALL).with(Field::Description, 50.0);
        assert_eq!(found(heavy)[0], "b");
        let none = FieldWeights::of(&[]).with(Field::Keywords, 0.0);
        assert!(found(none).is_empty());
    }
}
