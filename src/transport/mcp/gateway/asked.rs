//! What a call of the search toolkit's tools asks for.

use serde_json::{Map, Value};

use crate::domain::Query;
use crate::search::FindOptions;
use crate::toolkits::SearchToolkit;
use crate::transport::mcp::gateway::tools::DESCRIBED_MAX;
use crate::transport::refusal::Refusal;

/// Longest name that is read, in bytes; public names have 64.
const NAME_BYTES_MAX: usize = 512;

/// Of a search: the query, and no more results than the toolkit allows.
pub(super) fn search(
    arguments: &Map<String, Value>,
    toolkit: &SearchToolkit,
) -> Result<(Query, FindOptions), Refusal> {
    let text = match arguments.get("query") {
        Some(Value::String(text)) => text,
        Some(_) => return Err(Refusal::invalid_query("`query` is not a string")),
        None => return Err(Refusal::invalid_query("`query` is missing")),
    };
    let query = text.parse::<Query>();
    let query = query.map_err(|error| Refusal::invalid_query(&error.to_string()))?;
    let most = match arguments.get("max_results") {
        None | Some(Value::Null) => toolkit.limit,
        Some(value) => {
            let count = value.as_u64().filter(|count| 0 < *count).ok_or_else(|| {
                let hint = format!("Give 1 to {}, or leave it out.", toolkit.limit);
                Refusal::malformed("`max_results` is not a number of results", &hint)
            })?;
            usize::try_from(count).map_or(toolkit.limit, |count| count.min(toolkit.limit))
        }
    };
    let rank = toolkit.rank.clone();
    Ok((query, FindOptions { most, rank }))
}

/// Of a description: one to five names, each once.
pub(super) fn describe(arguments: &Map<String, Value>) -> Result<Vec<String>, Refusal> {
    let hint = format!("Give `name`, or up to {DESCRIBED_MAX} in `names`.");
    let wrong = |problem: &str| Refusal::malformed(problem, &hint);
    let one = arguments.get("name").filter(|value| !value.is_null());
    let several = arguments.get("names").filter(|value| !value.is_null());
    let values: Vec<&Value> = match (one, several) {
        (Some(Value::Array(values)), None) | (None, Some(Value::Array(values))) => {
            values.iter().collect()
        }
        (Some(value), None) => vec![value],
        (None, Some(_)) => return Err(wrong("`names` is not a list")),
        (Some(_), Some(_)) => return Err(wrong("there are both `name` and `names`")),
        (None, None) => return Err(wrong("`name` is missing")),
    };
    if values.is_empty() || DESCRIBED_MAX < values.len() {
        let problem = format!("{} names are given, not 1 to {DESCRIBED_MAX}", values.len());
        return Err(wrong(&problem));
    }
    let mut names: Vec<String> = Vec::new();
    for value in values {
        let name = name(value).ok_or_else(|| wrong("a name is not a string of some letters"))?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Of a run: the name and the arguments, whatever they are.
pub(super) fn execute(mut arguments: Map<String, Value>) -> Result<(String, Value), Refusal> {
    let hint = "Give `name` as it was found, and `arguments` as an object.";
    let value = arguments.get("name");
    let value = value.ok_or_else(|| Refusal::malformed("`name` is missing", hint))?;
    let name = name(value).ok_or_else(|| Refusal::malformed("`name` is no name", hint))?;
    Ok((name, arguments.remove("arguments").unwrap_or_default()))
}

fn name(value: &Value) -> Option<String> {
    let name = value.as_str()?.trim();
    (1..=NAME_BYTES_MAX)
        .contains(&name.len())
        .then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::search::{Backend, Rank};

    fn map(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_search_has_at_most_the_limit() {
        let toolkit = SearchToolkit {
            name: "crib".parse().unwrap(),
            limit: 7,
            rank: Rank::By(Backend::default()),
        };
        let most = |arguments: Value| {
            search(&map(arguments), &toolkit)
                .map(|(_, options)| options.most)
                .map_err(|refusal| refusal.code)
        };
        assert_eq!(most(json!({"query": "x"})), Ok(7));
        assert_eq!(most(json!({"query": "x", "max_results": null})), Ok(7));
        assert_eq!(most(json!({"query": "x", "max_results": 3})), Ok(3));
        assert_eq!(most(json!({"query": "x", "max_results": 8})), Ok(7));
        for bad in [json!(0), json!(-1), json!(1.5), json!("3")] {
            let asked = most(json!({"query": "x", "max_results": bad}));
            assert_eq!(asked, Err("INVALID_ARGUMENTS"), "{bad}");
        }
        assert_eq!(most(json!({"query": " "})), Err("INVALID_QUERY"));
        assert_eq!(most(json!({})), Err("INVALID_QUERY"));
    }

    #[test]
    fn a_description_is_of_one_to_five() {
        let names = |arguments: Value| describe(&map(arguments)).map_err(|refusal| refusal.message);
        assert_eq!(names(json!({"name": "a"})), Ok(vec!["a".to_owned()]));
        assert_eq!(
            names(json!({"names": ["a", "b", "a"]})).unwrap(),
            ["a", "b"]
        );
        assert_eq!(names(json!({"name": ["a", "b"]})).unwrap(), ["a", "b"]);
        assert_eq!(
            names(json!({"names": ["a", "b", "c", "d", "e"]}))
                .unwrap()
                .len(),
            5
        );
        let six = json!({"names": ["a", "b", "c", "d", "e", "f"]});
        assert_eq!(names(six).unwrap_err(), "6 names are given, not 1 to 5");
        assert!(names(json!({"names": []})).is_err());
        assert!(names(json!({"name": "a", "names": ["b"]})).is_err());
        assert!(names(json!({"name": 1})).is_err());
        assert!(names(json!({"name": "x".repeat(513)})).is_err());
        assert!(names(json!({})).is_err());
    }

    proptest! {
        #[test]
        fn no_arguments_panic(text in any::<String>(), number in any::<f64>(), which in 0..4) {
            let value = match which {
                0 => json!(text),
                1 => json!(number),
                2 => json!([text, number]),
                _ => json!({ text.as_str(): number }),
            };
            let toolkit = SearchToolkit {
                name: "crib".parse().unwrap(),
                limit: 7,
                rank: Rank::By(Backend::default()),
            };
            for key in ["query", "max_results", "name", "names", "arguments"] {
                let arguments = map(json!({ "query": "x", "name": "y", key: value }));
                let _ = search(&arguments, &toolkit);
                let _ = describe(&arguments);
                let _ = execute(arguments);
            }
        }
    }
}
