//! Where the arguments of one operation go: path, query, headers or body.

use std::collections::HashMap;

use http::{HeaderName, HeaderValue, Method};
use reqwest::{Client, RequestBuilder, Url};
use serde_json::{Map, Value};

use crate::registry::{Arguments, ReadArgumentError};

const METHODS: [&str; 8] = [
    "get", "put", "post", "delete", "patch", "head", "options", "trace",
];
/// Headers that no argument sets.
const OWN_HEADERS: [&str; 5] = ["authorization", "accept", "content-type", "cookie", "host"];
/// References that are followed.
const HOPS_MAX: usize = 8;
/// Names that the importer gives to a body that is one value.
const BODIES: [&str; 2] = ["body", "request_body"];

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    Path,
    Query,
    Header,
}

/// One operation of a document.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    method: Method,
    path: String,
    places: HashMap<String, Place>,
    /// The one argument that is the whole body, if there is one.
    body: Option<&'static str>,
}

/// All operations by the names that the importer gives their tools.
pub(super) fn all(document: &Value) -> HashMap<String, Operation> {
    let mut found = HashMap::new();
    let paths = document["paths"].as_object();
    for (path, item) in paths.into_iter().flatten() {
        for method in METHODS {
            let Some(said) = item.get(method).filter(|said| said.is_object()) else {
                continue;
            };
            let Ok(verb) = Method::from_bytes(method.to_uppercase().as_bytes()) else {
                continue;
            };
            let lists = [&item["parameters"], &said["parameters"]];
            let places = lists
                .into_iter()
                .flat_map(|list| list.as_array().into_iter().flatten())
                .filter_map(|parameter| place(target(document, parameter)))
                .collect();
            let operation = Operation {
                method: verb,
                path: path.clone(),
                body: whole_body(document, said, &places),
                places,
            };
            found.entry(name(method, path, said)).or_insert(operation);
        }
    }
    found
}

fn name(method: &str, path: &str, said: &Value) -> String {
    match said["operationId"].as_str() {
        Some(id) if !id.is_empty() => id.to_owned(),
        _ => {
            let words = path.split(|c: char| !c.is_ascii_alphanumeric());
            let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            format!("{method}_{}", words.join("_"))
        }
    }
}

fn place(parameter: &Value) -> Option<(String, Place)> {
    let name = parameter["name"].as_str()?;
    let place = match parameter["in"].as_str()? {
        "path" => Place::Path,
        "query" => Place::Query,
        // The credentials of the service are the operator's.
        "header" if !OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) => Place::Header,
        _ => return None,
    };
    Some((name.to_owned(), place))
}

fn target<'a>(document: &'a Value, mut value: &'a Value) -> &'a Value {
    for _hop in 0..HOPS_MAX {
        let Some(path) = value["$ref"]
            .as_str()
            .and_then(|path| path.strip_prefix('#'))
        else {
            return value;
        };
        value = document.pointer(path).unwrap_or(&Value::Null);
    }
    &Value::Null
}

/// `body` or `request_body`, where the importer did not spread a body's properties.
fn whole_body(
    document: &Value,
    said: &Value,
    places: &HashMap<String, Place>,
) -> Option<&'static str> {
    let request = target(document, said.get("requestBody")?);
    let content = request["content"].as_object()?;
    let json = content.iter().find(|(kind, _)| kind.contains("json"));
    let properties = json
        .map(|(_, media)| target(document, &media["schema"]))
        .and_then(|schema| match schema.get("properties") {
            Some(Value::Object(map)) => Some(map.keys().cloned().collect::<Vec<_>>()),
            _ => schema.get("allOf").map(|_parts| Vec::new()),
        });
    let spread = properties.is_some_and(|keys| !keys.iter().any(|key| places.contains_key(key)));
    let [plain, other] = BODIES;
    match (spread, places.contains_key(plain)) {
        (true, _) => None,
        (false, true) => Some(other),
        (false, false) => Some(plain),
    }
}

impl Operation {
    /// The request of one call.
    pub(super) fn request(
        &self,
        http: &Client,
        base: &Url,
        arguments: Arguments,
    ) -> Result<RequestBuilder, ReadArgumentError> {
        let (mut path, mut body) = (self.path.clone(), Map::new());
        let (mut query, mut headers) = (Vec::new(), http::HeaderMap::new());
        for (name, value) in arguments.into_map() {
            let wrong = |expected| ReadArgumentError::Type {
                name: name.clone(),
                expected,
            };
            match self.places.get(&name) {
                None => {
                    body.insert(name, value);
                }
                Some(_) if value.is_null() => {}
                Some(Place::Path) => {
                    let segment =
                        segment(&text(&value)).ok_or_else(|| wrong("a part of a path"))?;
                    path = path.replace(&format!("{{{name}}}"), &segment);
                }
                Some(Place::Query) => match value {
                    Value::Array(items) => {
                        query.extend(items.iter().map(|item| (name.clone(), text(item))));
                    }
                    value => query.push((name, text(&value))),
                },
                Some(Place::Header) => {
                    let header = HeaderName::try_from(name.as_str()).ok();
                    let value = HeaderValue::try_from(text(&value)).ok();
                    let (header, value) =
                        header.zip(value).ok_or_else(|| wrong("a header's value"))?;
                    headers.insert(header, value);
                }
            }
        }
        let mut url = base.clone();
        let root = base.path().trim_end_matches('/');
        url.set_path(&format!("{root}/{}", path.trim_start_matches('/')));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = http.request(self.method.clone(), url).headers(headers);
        Ok(match self.body.and_then(|name| body.remove(name)) {
            Some(Value::String(text)) => request.body(text),
            Some(value) => json(request, &value),
            None if body.is_empty() => request,
            None => json(request, &Value::Object(body)),
        })
    }
}

fn json(request: RequestBuilder, value: &Value) -> RequestBuilder {
    request
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(value.to_string())
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// One segment of a path, which leads neither up nor anywhere else.
fn segment(text: &str) -> Option<String> {
    if text.is_empty() || text == "." || text == ".." {
        return None;
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let write = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    Some(text.bytes().map(write).collect())
}
