//! Lays `section.key = value` from the environment over a table.

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::config::{Config, ReadConfigError};

/// The configuration that a table and the environment give together.
pub(super) fn lay_over(
    mut table: Table,
    sections: &BTreeMap<String, String>,
) -> Result<Config, ReadConfigError> {
    for (path, text) in sections {
        let Some((section, key)) = path.split_once('.') else {
            continue;
        };
        let mut candidates = readings(text).into_iter();
        let (value, config) = loop {
            let Some(value) = candidates.next() else {
                return Err(refused(path, text, &table, section, key));
            };
            let mut trial = table.clone();
            insert(&mut trial, section, key, value.clone());
            if let Ok(config) = trial.try_into::<Config>() {
                break (value, config);
            }
        };
        insert(&mut table, section, key, value);
        drop(config);
    }
    table
        .try_into()
        .map_err(|error: toml::de::Error| ReadConfigError::Value {
            origin: "configuration".to_owned(),
            message: error.message().to_owned(),
        })
}

/// What a variable may mean: a TOML value, the text itself, or a list of that one text.
fn readings(text: &str) -> Vec<Value> {
    let parsed = format!("value = {text}").parse::<Table>().ok();
    let parsed = parsed
        .filter(|table| table.len() == 1)
        .and_then(|mut t| t.remove("value"));
    let plain = Value::String(text.to_owned());
    parsed
        .into_iter()
        .chain([plain.clone(), Value::Array(vec![plain])])
        .collect()
}

fn insert(table: &mut Table, section: &str, key: &str, value: Value) {
    let inner = table
        .entry(section)
        .or_insert_with(|| Value::Table(Table::new()));
    if let Some(inner) = inner.as_table_mut() {
        inner.insert(key.to_owned(), value);
    }
}

fn refused(path: &str, text: &str, table: &Table, section: &str, key: &str) -> ReadConfigError {
    let mut trial = table.clone();
    let first = readings(text).into_iter().next();
    insert(
        &mut trial,
        section,
        key,
        first.unwrap_or(Value::Boolean(false)),
    );
    let message = match trial.try_into::<Config>() {
        Ok(_) => "value does not fit".to_owned(),
        Err(error) => error.message().to_owned(),
    };
    let name = path.to_uppercase().replacen('.', "__", 1);
    ReadConfigError::Value {
        origin: format!("environment variable `TOOLCRIB_{name}`"),
        message,
    }
}
