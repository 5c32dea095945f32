//! Arguments of a call, read by name and type.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::domain::PlaceError;

/// An argument is not what the tool takes. The value is never repeated: it may be a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadArgumentError {
    /// It is not there.
    #[error("argument `{name}` is missing")]
    Missing {
        /// Which one.
        name: String,
    },
    /// It is something else.
    #[error("argument `{name}` is not {expected}")]
    Type {
        /// Which one.
        name: String,
        /// What was expected.
        expected: &'static str,
    },
    /// It does not fit its place in a request.
    #[error("an argument does not fit the request")]
    Place(#[from] PlaceError),
    /// It, or the arguments as a whole, do not read as the type that the tool wants.
    #[error("{what} cannot be read")]
    Read {
        /// What.
        what: String,
        /// Why.
        source: serde_json::Error,
    },
}

/// Arguments of a call; they fit the tool's schema already. Debug shows their names only.
#[derive(Clone, Default, PartialEq)]
pub struct Arguments(Map<String, Value>);

impl std::fmt::Debug for Arguments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl From<Map<String, Value>> for Arguments {
    fn from(map: Map<String, Value>) -> Self {
        Self(map)
    }
}

impl Arguments {
    /// As they came.
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// As they came.
    pub fn into_map(self) -> Map<String, Value> {
        self.0
    }

    /// A string.
    pub fn text(&self, name: &str) -> Result<&str, ReadArgumentError> {
        self.needed(name, "a string", Value::as_str)
    }

    /// A whole number.
    pub fn integer(&self, name: &str) -> Result<i64, ReadArgumentError> {
        self.needed(name, "a whole number", Value::as_i64)
    }

    /// A number.
    pub fn number(&self, name: &str) -> Result<f64, ReadArgumentError> {
        self.needed(name, "a number", Value::as_f64)
    }

    /// True or false.
    pub fn flag(&self, name: &str) -> Result<bool, ReadArgumentError> {
        self.needed(name, "true or false", Value::as_bool)
    }

    /// A list.
    pub fn list(&self, name: &str) -> Result<&[Value], ReadArgumentError> {
        let list = |value| Value::as_array(value).map(Vec::as_slice);
        self.needed(name, "a list", list)
    }

    /// An argument of any type that can be read; `None` where it is missing or null.
    pub fn optional<T: DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<Option<T>, ReadArgumentError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => T::deserialize(value).map(Some).map_err(|source| {
                let what = format!("argument `{name}`");
                ReadArgumentError::Read { what, source }
            }),
        }
    }

    /// All of them, as one type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ReadArgumentError> {
        let whole = Value::Object(self.0.clone());
        serde_json::from_value(whole).map_err(|source| {
            let what = "arguments".to_owned();
            ReadArgumentError::Read { what, source }
        })
    }

    fn needed<'a, T>(
        &'a self,
        name: &str,
        expected: &'static str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, ReadArgumentError> {
        let name = || name.to_owned();
        let value = self.0.get(&name()).filter(|value| !value.is_null());
        let value = value.ok_or_else(|| ReadArgumentError::Missing { name: name() })?;
        read(value).ok_or_else(|| ReadArgumentError::Type {
            name: name(),
            expected,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments() -> Arguments {
        let value = json!({"to": "ann", "n": 3, "x": 1.5, "yes": true, "all": [1], "gone": null});
        serde_json::from_value::<Map<_, _>>(value).unwrap().into()
    }

    #[test]
    fn each_type_reads_itself_and_nothing_else() {
        let given = arguments();
        assert_eq!(given.text("to").unwrap(), "ann");
        assert_eq!(given.integer("n").unwrap(), 3);
        assert!((given.number("x").unwrap() - 1.5).abs() < f64::EPSILON);
        assert!(given.flag("yes").unwrap());
        assert_eq!(given.list("all").unwrap(), [json!(1)]);
        assert_eq!(given.optional::<u8>("n").unwrap(), Some(3));
        assert_eq!(given.optional::<u8>("gone").unwrap(), None);
        assert_eq!(given.optional::<u8>("none").unwrap(), None);
        let check = |error: ReadArgumentError, text: &str| assert_eq!(error.to_string(), text);
        check(given.text("n").unwrap_err(), "argument `n` is not a string");
        check(
            given.integer("x").unwrap_err(),
            "argument `x` is not a whole number",
        );
        check(
            given.flag("none").unwrap_err(),
            "argument `none` is missing",
        );
        check(
            given.list("gone").unwrap_err(),
            "argument `gone` is missing",
        );
        check(
            given.optional::<u8>("to").unwrap_err(),
            "argument `to` cannot be read",
        );
        assert!(given.read::<Vec<u8>>().is_err());
        assert!(!format!("{given:?}").contains("ann"));
    }
}
