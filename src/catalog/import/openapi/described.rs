//! One operation as a document describes it: the tool that it is, and its request.

use serde_json::{Map, Value, json};

use crate::catalog::import::openapi::resolver::Resolver;
use crate::catalog::import::source::{entries, items, text, texts};
use crate::domain::{Method, Operation, OperationBody, OperationParts};

/// Methods of an operation.
const METHODS: [&str; 8] = [
    "get", "put", "post", "delete", "patch", "head", "options", "trace",
];
/// Headers that are described elsewhere in a document.
const DESCRIBED_ELSEWHERE: [&str; 3] = ["authorization", "accept", "content-type"];
/// The argument that is a whole body, and its name where a parameter has that one.
const WHOLE_BODY: [&str; 2] = ["body", "request_body"];

/// One operation.
pub(super) struct Described<'a> {
    /// JSON pointer to it.
    pub(super) place: String,
    path: &'a str,
    method: &'static str,
    item: &'a Value,
    body: &'a Value,
}

/// All operations, in the order of the document.
pub(super) fn all(document: &Value) -> Vec<Described<'_>> {
    let mut found = Vec::new();
    for (path, item) in entries(document, "paths") {
        for method in METHODS {
            if let Some(body) = item.get(method).filter(|body| body.is_object()) {
                let escaped = path.replace('~', "~0").replace('/', "~1");
                found.push(Described {
                    place: format!("/paths/{escaped}/{method}"),
                    path,
                    method,
                    item,
                    body,
                });
            }
        }
    }
    found
}

/// What a call gives, and where it goes.
#[derive(Default)]
struct Places {
    properties: Map<String, Value>,
    required: Vec<Value>,
    in_path: Vec<String>,
    query: Vec<Box<str>>,
    joined: Vec<Box<str>>,
    headers: Vec<Box<str>>,
    body: Option<OperationBody>,
}

impl<'a> Described<'a> {
    /// Its definition as a tool, and how it is asked for or why it cannot be. `own` are headers,
    /// in small letters, that the operator sets.
    pub(super) fn tool(
        &self,
        document: &'a Value,
        own: &[String],
    ) -> (Value, Result<Operation, String>) {
        let places = self.places(document, own);
        let reads = matches!(self.method, "get" | "head" | "options" | "trace");
        let tool = json!({
            "name": self.name(),
            "description": self.description(),
            "inputSchema": {
                "type": "object",
                "properties": places.properties,
                "required": places.required,
            },
            "keywords": texts(self.body, "tags"),
            "annotations": {
                "readOnlyHint": reads,
                "destructiveHint": self.method == "delete",
                "idempotentHint": reads || matches!(self.method, "put" | "delete"),
                "openWorldHint": true,
            },
        });
        (tool, self.operation(places))
    }

    fn name(&self) -> String {
        match text(self.body, &["operationId"]) {
            "" => {
                let words = self.path.split(|c: char| !c.is_ascii_alphanumeric());
                let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
                format!("{}_{}", self.method, words.join("_"))
            }
            id => id.to_owned(),
        }
    }

    fn description(&self) -> String {
        let (summary, long) = (
            text(self.body, &["summary"]),
            text(self.body, &["description"]),
        );
        match (summary, long) {
            ("", "") => format!("{} {}", self.method.to_uppercase(), self.path),
            (one, "") | ("", one) => one.to_owned(),
            (summary, long) => format!("{summary}\n{long}"),
        }
    }

    fn operation(&self, places: Places) -> Result<Operation, String> {
        let declared = |name: &str| places.in_path.iter().any(|declared| declared == name);
        let named = self.path.split('{').skip(1);
        let mut named = named.filter_map(|part| Some(part.split_once('}')?.0));
        if let Some(name) = named.find(|name| !declared(name)) {
            return Err(format!(
                "its path names `{name}`, which no parameter describes"
            ));
        }
        let method: Method = self.method.parse().map_err(|error| format!("{error}"))?;
        let operation = Operation::new(OperationParts {
            method,
            path: self.path.into(),
            query: places.query,
            joined: places.joined,
            headers: places.headers,
            body: places.body,
        });
        operation.map_err(|error| error.to_string())
    }

    fn places(&self, document: &'a Value, own: &[String]) -> Places {
        let mut resolver = Resolver::new(document);
        let mut places = Places::default();
        let shared = items(self.item, "parameters").iter();
        // What the operation says comes last, so that it takes the place of what the path says.
        for parameter in shared.chain(items(self.body, "parameters")) {
            let parameter = resolver.target(parameter, 0);
            let (name, place) = (text(parameter, &["name"]), text(parameter, &["in"]));
            let lower = name.to_ascii_lowercase();
            let is_ours = DESCRIBED_ELSEWHERE.contains(&lower.as_str()) || own.contains(&lower);
            if name.is_empty() || (place == "header" && is_ours) || place == "cookie" {
                continue;
            }
            let content = parameter.pointer("/content/application~1json/schema");
            let given = parameter.get("schema").or(content).unwrap_or(&Value::Null);
            let mut schema = resolver.written_out(given, 0);
            let about = text(parameter, &["description"]);
            if let (Value::Object(map), false) = (&mut schema, about.is_empty()) {
                map.insert("description".to_owned(), about.into());
            }
            places.properties.insert(name.to_owned(), schema);
            if parameter["required"] == true || place == "path" {
                places.required.push(Value::from(name));
            }
            let list = match place {
                "path" => {
                    places.in_path.push(name.to_owned());
                    continue;
                }
                "header" => &mut places.headers,
                _ if parameter["explode"] == false => &mut places.joined,
                _ => &mut places.query,
            };
            if !list.iter().any(|known| &**known == name) {
                list.push(name.into());
            }
        }
        self.add_body(&mut resolver, &mut places);
        places.required.dedup();
        places
    }

    /// The properties of a JSON body stand beside the parameters; any other body is `body`.
    fn add_body(&self, resolver: &mut Resolver<'a>, places: &mut Places) {
        let Some(request) = self.body.get("requestBody") else {
            return;
        };
        let request = resolver.target(request, 0);
        let content = request.get("content").and_then(Value::as_object);
        let Some((kind, media)) = content.and_then(|content| {
            let is_json = |kind: &str| kind.contains("json");
            let found = content.iter().find(|(kind, _)| is_json(kind));
            found.or_else(|| content.iter().next())
        }) else {
            return;
        };
        let schema = resolver.written_out(media.get("schema").unwrap_or(&Value::Null), 0);
        let is_needed = request["required"] == true;
        let inner = schema.get("properties").and_then(Value::as_object);
        let known = &mut places.properties;
        let clashes = inner.is_some_and(|map| map.keys().any(|key| known.contains_key(key)));
        if let (Some(inner), true, false) = (inner, kind.contains("json"), clashes) {
            known.extend(inner.clone());
            if is_needed {
                let needed = texts(&schema, "required").into_iter().map(Value::from);
                places.required.extend(needed);
            }
            places.body = Some(OperationBody {
                media_type: kind.as_str().into(),
                argument: None,
            });
            return;
        }
        let [plain, other] = WHOLE_BODY;
        let name = match known.contains_key(plain) {
            true => other,
            false => plain,
        };
        known.insert(name.to_owned(), schema);
        if is_needed {
            places.required.push(name.into());
        }
        places.body = Some(OperationBody {
            media_type: kind.as_str().into(),
            argument: Some(name.into()),
        });
    }
}
