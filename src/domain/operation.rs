//! One operation of an HTTP service: its method, its path, and where each argument goes.

mod method;

use std::fmt;

use serde_json::{Map, Value};

pub use self::method::Method;

/// Longest path of an operation, in bytes.
const PATH_BYTES_MAX: usize = 2_000;
/// Longest path and query that the arguments of one call may make, in bytes.
const TARGET_BYTES_MAX: usize = 16 * 1024;
/// Headers that no argument sets: they are the connection's or the operator's.
const OWN_HEADERS: [&str; 11] = [
    "authorization",
    "accept",
    "content-type",
    "content-length",
    "cookie",
    "host",
    "connection",
    "transfer-encoding",
    "te",
    "upgrade",
    "expect",
];

/// Why an operation cannot be asked for.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// A method that no agent should send, or none at all.
    #[error("`{0}` is no method that is sent")]
    Method(String),
    /// A path that cannot be put behind an address.
    #[error("the path `{path}` {reason}")]
    Path {
        /// The path.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A header that is not for arguments.
    #[error("the header `{0}` is not set from an argument")]
    Header(String),
    /// A kind of body that is not written.
    #[error("a body of the kind `{0}` cannot be written from arguments")]
    Body(String),
}

/// Why arguments do not fit an operation.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// A part of the path that is empty, or would lead elsewhere.
    #[error("a part of a path: not empty, and without `.` or `..` between slashes")]
    Path {
        /// The argument.
        name: String,
    },
    /// A value that no header can hold.
    #[error("a header's value: printable ASCII without line breaks")]
    Header {
        /// The argument.
        name: String,
    },
    /// An argument with no place in the request.
    #[error("no such argument: the request has no place for it")]
    Unknown {
        /// The argument.
        name: String,
    },
    /// All together are too long.
    #[error("at most {TARGET_BYTES_MAX} bytes of path and query")]
    TooLong,
}

impl PlaceError {
    /// The argument that is wrong, where it is one.
    pub fn argument(&self) -> Option<&str> {
        match self {
            Self::Path { name } | Self::Header { name } | Self::Unknown { name } => Some(name),
            Self::TooLong => None,
        }
    }
}

/// The body of an operation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OperationBody {
    /// Its media type.
    pub media_type: Box<str>,
    /// The one argument that is the whole body; without it, all arguments with no other place are
    /// its fields.
    pub argument: Option<Box<str>>,
}

/// What an operation is made of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OperationParts {
    /// Its method.
    pub method: Method,
    /// Its path, with `{name}` where arguments go.
    pub path: Box<str>,
    /// Arguments of the query; each item of a list is a pair of its own.
    pub query: Vec<Box<str>>,
    /// Arguments of the query whose lists are one value, with commas.
    pub joined: Vec<Box<str>>,
    /// Arguments that are headers.
    pub headers: Vec<Box<str>>,
    /// Its body, where it has one.
    pub body: Option<OperationBody>,
}

/// One operation of an HTTP service. What is built can be asked for: its path stays behind the
/// address of the service, and no argument sets a header of ours.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Operation(OperationParts);

/// The parts of one request, encoded.
#[derive(Clone, PartialEq)]
pub struct Placed {
    /// Path, percent-encoded.
    pub path: String,
    /// Query, in the order of the arguments.
    pub query: Vec<(String, String)>,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// Media type and text of the body.
    pub body: Option<(Box<str>, String)>,
}

impl fmt::Debug for Placed {
    /// Arguments stay out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Placed")
            .field("query", &self.query.len())
            .field("headers", &self.headers.len())
            .finish_non_exhaustive()
    }
}

impl Operation {
    /// An operation that can be asked for.
    pub fn new(parts: OperationParts) -> Result<Self, OperationError> {
        check_path(&parts.path)?;
        for header in &parts.headers {
            let lower = header.to_ascii_lowercase();
            let ours = OWN_HEADERS.contains(&lower.as_str())
                || ["mcp-", "proxy-"].iter().any(|own| lower.starts_with(own));
            if ours || !is_token(header) {
                return Err(OperationError::Header(header.to_string()));
            }
        }
        if let Some(body) = &parts.body {
            let kind = body.media_type.to_ascii_lowercase();
            // The parts of a form with files are files, which no argument holds.
            let plain = kind.bytes().all(|byte| matches!(byte, b' '..=b'~'));
            if kind.starts_with("multipart/") || !kind.contains('/') || !plain {
                return Err(OperationError::Body(body.media_type.to_string()));
            }
        }
        Ok(Self(parts))
    }

    /// What it is made of.
    pub fn parts(&self) -> &OperationParts {
        &self.0
    }

    /// Each argument at its place. Whatever it is, it leads to this path and adds no header line.
    pub fn place(&self, arguments: &Map<String, Value>) -> Result<Placed, PlaceError> {
        let parts = &self.0;
        let (mut query, mut headers, mut fields) = (Vec::new(), Vec::new(), Map::new());
        let mut whole = None;
        let named = |list: &[Box<str>], name: &str| list.iter().any(|one| &**one == name);
        for (name, value) in arguments {
            let in_path = placeholders(&parts.path).any(|held| held == name);
            let (many, one) = (named(&parts.query, name), named(&parts.joined, name));
            let in_header = named(&parts.headers, name);
            if in_path || many || one || in_header {
                match value {
                    Value::Null => {}
                    Value::Array(items) if many => {
                        query.extend(items.iter().map(|item| (name.clone(), text(item))));
                    }
                    Value::Array(items) if one => {
                        let items: Vec<String> = items.iter().map(text).collect();
                        query.push((name.clone(), items.join(",")));
                    }
                    value if many || one => query.push((name.clone(), text(value))),
                    _ => {}
                }
                if in_header && !value.is_null() {
                    headers.push((name.clone(), header(name, value)?));
                }
                continue;
            }
            match &parts.body {
                Some(body) if body.argument.as_deref() == Some(name) => whole = Some(value),
                Some(OperationBody { argument: None, .. }) => {
                    fields.insert(name.clone(), value.clone());
                }
                _ => return Err(PlaceError::Unknown { name: name.clone() }),
            }
        }
        let placed = Placed {
            path: filled(&parts.path, arguments)?,
            body: self.body(whole, fields),
            query,
            headers,
        };
        let pairs = placed
            .query
            .iter()
            .map(|(k, v)| 3 * (k.len() + v.len()) + 2);
        if TARGET_BYTES_MAX < placed.path.len() + pairs.sum::<usize>() {
            return Err(PlaceError::TooLong);
        }
        Ok(placed)
    }

    fn body(
        &self,
        whole: Option<&Value>,
        fields: Map<String, Value>,
    ) -> Option<(Box<str>, String)> {
        let said = self.0.body.as_ref()?;
        let kind = said.media_type.to_ascii_lowercase();
        let value = match (&said.argument, whole) {
            (Some(_), None) => return None,
            (Some(_), Some(whole)) => whole.clone(),
            (None, _) if fields.is_empty() && !self.0.method.always_has_body() => return None,
            (None, _) => Value::Object(fields),
        };
        let written = match &value {
            value if kind.contains("json") => value.to_string(),
            Value::Object(fields) if kind.starts_with("application/x-www-form-urlencoded") => {
                form(fields)
            }
            value => text(value),
        };
        Some((said.media_type.clone(), written))
    }
}

/// The names between braces.
fn placeholders(path: &str) -> impl Iterator<Item = &str> {
    path.split('{')
        .skip(1)
        .filter_map(|part| Some(part.split_once('}')?.0))
}

fn check_path(path: &str) -> Result<(), OperationError> {
    let wrong = |reason| OperationError::Path {
        path: path.chars().take(120).collect(),
        reason,
    };
    if !path.starts_with('/') || path.starts_with("//") {
        return Err(wrong("does not start with one `/`"));
    }
    if PATH_BYTES_MAX < path.len() {
        return Err(wrong("is too long"));
    }
    let odd = |c: char| c.is_control() || c.is_whitespace() || matches!(c, '?' | '#' | '\\');
    if path.contains(odd) {
        return Err(wrong("holds `?`, `#`, `\\` or white space"));
    }
    if path.split('/').any(leads_up) {
        return Err(wrong("leads up"));
    }
    let mut open = false;
    for c in path.chars() {
        match (c, open) {
            ('{', false) => open = true,
            ('}', true) => open = false,
            ('{' | '}', _) | ('/', true) => return Err(wrong("has braces that do not match")),
            _ => {}
        }
    }
    if open || placeholders(path).any(str::is_empty) {
        return Err(wrong("has braces that do not match"));
    }
    Ok(())
}

/// The path with arguments in it, each encoded so that it stays one segment.
fn filled(path: &str, arguments: &Map<String, Value>) -> Result<String, PlaceError> {
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, tail) = after.split_once('}').unwrap_or((after, ""));
        out.push_str(before);
        let wrong = || PlaceError::Path {
            name: name.to_owned(),
        };
        let value = arguments.get(name).filter(|value| !value.is_null());
        let value = text(value.ok_or_else(wrong)?);
        // Some services decode a path before they read it; a value that would lead up then is none.
        if value.is_empty() || value.split(['/', '\\']).any(leads_up) {
            return Err(wrong());
        }
        out.push_str(&encoded(&value));
        rest = tail;
    }
    out.push_str(rest);
    Ok(out)
}

/// `.` and `..`, also where the dots are encoded.
fn leads_up(segment: &str) -> bool {
    let plain = segment.to_ascii_lowercase().replace("%2e", ".");
    plain == "." || plain == ".."
}

fn header(name: &str, value: &Value) -> Result<String, PlaceError> {
    let text = text(value);
    match text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        true => Ok(text),
        false => Err(PlaceError::Header {
            name: name.to_owned(),
        }),
    }
}

/// What may be the name of a header (RFC 9110, section 5.6.2).
fn is_token(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(fits)
}

fn form(fields: &Map<String, Value>) -> String {
    let pairs = fields.iter().flat_map(|(name, value)| match value {
        Value::Array(items) => items.iter().map(|item| (name, text(item))).collect(),
        Value::Null => Vec::new(),
        value => vec![(name, text(value))],
    });
    let pairs = pairs.map(|(name, value)| format!("{}={}", encoded(name), encoded(&value)));
    pairs.collect::<Vec<_>>().join("&")
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Percent-encoded but for unreserved characters (RFC 3986, section 2.3).
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let write = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(write).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn operation(body: Option<OperationBody>) -> Operation {
        Operation::new(OperationParts {
            method: Method::Post,
            path: "/a/{id}/b:{act}".into(),
            query: vec!["q".into()],
            joined: vec!["ids".into()],
            headers: vec!["x-lang".into()],
            body,
        })
        .unwrap()
    }

    fn body(media_type: &str, argument: Option<&str>) -> OperationBody {
        OperationBody {
            media_type: media_type.into(),
            argument: argument.map(Into::into),
        }
    }

    fn placed(operation: &Operation, value: Value) -> Result<Placed, PlaceError> {
        let Value::Object(map) = value else {
            panic!("arguments are an object");
        };
        operation.place(&map)
    }

    #[test]
    fn each_argument_goes_to_its_place() {
        let arguments = json!({"id": "g/p q", "act": "run", "q": [1, "x y"], "ids": ["a", "b"],
            "x-lang": "de", "name": "ann", "day": null});
        let placed = placed(&operation(Some(body("application/json", None))), arguments).unwrap();
        assert_eq!(placed.path, "/a/g%2Fp%20q/b:run");
        let query: Vec<String> = placed
            .query
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect();
        assert_eq!(query, ["q=1", "q=x y", "ids=a,b"]);
        assert_eq!(placed.headers, [("x-lang".to_owned(), "de".to_owned())]);
        let (kind, text) = placed.body.unwrap();
        assert_eq!(
            (&*kind, &*text),
            ("application/json", r#"{"name":"ann","day":null}"#)
        );
    }

    #[test]
    fn a_body_is_written_as_its_kind_says() {
        let check = |kind: &str, value: Value, expected: &str| {
            let operation = operation(Some(body(kind, Some("body"))));
            let arguments = json!({"id": 1, "act": "x", "body": value});
            let (_, text) = placed(&operation, arguments).unwrap().body.unwrap();
            assert_eq!(text, expected, "{kind}");
        };
        check("application/json", json!("raw"), "\"raw\"");
        check("text/plain", json!("raw"), "raw");
        let form = "application/x-www-form-urlencoded";
        check(
            form,
            json!({"a": "b c&d", "l": [1, 2], "n": null}),
            "a=b%20c%26d&l=1&l=2",
        );
        let none = placed(
            &operation(Some(body(form, Some("body")))),
            json!({"id": 1, "act": "x"}),
        );
        assert_eq!(none.unwrap().body, None);
    }

    #[test]
    fn no_argument_leads_elsewhere_or_adds_a_header_line() {
        let operation = operation(None);
        let check = |extra: Value, wrong: Option<&str>| {
            let mut all = json!({"id": "1", "act": "x"});
            for (name, value) in extra.as_object().unwrap() {
                all[name] = value.clone();
            }
            let refused = placed(&operation, all).unwrap_err();
            assert_eq!(refused.argument(), wrong, "{extra}");
        };
        for up in [
            "..",
            ".",
            "",
            "a/../b",
            "..\\x",
            "../x",
            "%2e%2E",
            "a/%2e%2e/b",
        ] {
            check(json!({ "id": up }), Some("id"));
        }
        check(json!({ "id": null }), Some("id"));
        check(json!({"x-lang": "de\r\nx-evil: 1"}), Some("x-lang"));
        check(json!({"x-lang": "ü"}), Some("x-lang"));
        check(json!({"stray": 1}), Some("stray"));
        check(json!({"q": "x".repeat(TARGET_BYTES_MAX)}), None);
    }

    #[test]
    fn an_operation_that_cannot_be_asked_for_is_none() {
        let parts = operation(None).parts().clone();
        for path in [
            "a",
            "//evil.example/x",
            "/a/../b",
            "/a?x=1",
            "/a#b",
            "/{a",
            "/a}",
            "/{}",
            "/{a/b}",
        ] {
            let parts = OperationParts {
                path: path.into(),
                ..parts.clone()
            };
            let refused = Operation::new(parts);
            assert!(
                matches!(refused, Err(OperationError::Path { .. })),
                "{path}"
            );
        }
        for header in [
            "Authorization",
            "Host",
            "mcp-session-id",
            "Cookie",
            "a b",
            "x\r\ny",
        ] {
            let parts = OperationParts {
                headers: vec![header.into()],
                ..parts.clone()
            };
            assert_eq!(
                Operation::new(parts),
                Err(OperationError::Header(header.to_owned()))
            );
        }
        let parts = OperationParts {
            body: Some(body("multipart/form-data", Some("b"))),
            ..parts
        };
        assert!(matches!(
            Operation::new(parts),
            Err(OperationError::Body(_))
        ));
        assert!("TRACE".parse::<Method>().is_err());
        assert_eq!("get".parse(), Ok(Method::Get));
    }

    proptest! {
        #[test]
        fn any_text_stays_one_segment(id in any::<String>(), act in any::<String>()) {
            let arguments = json!({"id": id, "act": act});
            if let Ok(placed) = placed(&operation(None), arguments) {
                prop_assert_eq!(placed.path.matches('/').count(), 3);
                prop_assert!(placed.path.is_ascii() && !placed.path.contains(['?', '#', '\\', ' ']));
            }
        }
    }
}
