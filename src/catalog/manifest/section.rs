//! A table of a catalog file, read key by key; what is wrong is noted and reading goes on.

use std::collections::BTreeSet;
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::catalog::manifest::{Fault, line_of};
use crate::domain::hidden_characters;

/// How alike an unknown key must be to a known one to be taken for a slip of it.
const ALIKE_MIN: f64 = 0.7;

/// A table and what was read of it so far.
pub(super) struct Section<'doc, 'faults> {
    file: &'doc str,
    text: &'doc str,
    /// How messages call the table; empty for the root.
    name: String,
    offset: usize,
    table: &'doc DeTable<'doc>,
    known: BTreeSet<&'static str>,
    faults: &'faults mut Vec<Fault>,
}

impl<'doc, 'faults> Section<'doc, 'faults> {
    /// The whole document.
    pub(super) fn root(
        file: &'doc str,
        text: &'doc str,
        table: &'doc DeTable<'doc>,
        faults: &'faults mut Vec<Fault>,
    ) -> Self {
        let (name, known) = (String::new(), BTreeSet::new());
        Self {
            file,
            text,
            name,
            offset: 0,
            table,
            known,
            faults,
        }
    }

    /// The file's name.
    pub(super) fn file(&self) -> &'doc str {
        self.file
    }

    /// Notes a fault at a key, or at the table when the key is not there.
    pub(super) fn fault_at(
        &mut self,
        key: &str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let found = self.table.get_key_value(key);
        let offset = found.map_or(self.offset, |(_, value)| value.span().start);
        self.fault(offset, message, remedy);
    }

    /// A text that must be there and not be empty.
    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        let text = self.optional_text(key);
        if text.is_none() && !self.has(key) {
            let message = format!("`{}` is missing", self.path(key));
            self.fault_at(key, message, format!("add `{key} = \"...\"`"));
        }
        if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
            let message = format!("`{}` is empty", self.path(key));
            self.fault_at(key, message, "write it");
        }
        text
    }

    /// A text that may be there.
    pub(super) fn optional_text(&mut self, key: &'static str) -> Option<String> {
        let value = self.value(key)?;
        match value.get_ref().as_str() {
            Some(text) => Some(self.checked_text(text, value.span().start)),
            None => self.wrong_type(key, value, "a string"),
        }
    }

    /// A value that must be there, parsed.
    pub(super) fn parsed<T: FromStr<Err: std::error::Error>>(
        &mut self,
        key: &'static str,
    ) -> Option<T> {
        let text = self.text(key)?;
        self.parse(key, &text)
    }

    /// A value that may be there, parsed.
    pub(super) fn optional_parsed<T: FromStr<Err: std::error::Error>>(
        &mut self,
        key: &'static str,
    ) -> Option<T> {
        let text = self.optional_text(key)?;
        self.parse(key, &text)
    }

    /// `true` or `false`, or nothing.
    pub(super) fn flag(&mut self, key: &'static str) -> Option<bool> {
        let value = self.value(key)?;
        let flag = value.get_ref().as_bool();
        flag.or_else(|| self.wrong_type(key, value, "`true` or `false`"))
    }

    /// A list of texts; empty when not there.
    pub(super) fn texts(&mut self, key: &'static str) -> Vec<String> {
        self.parsed_list(key)
    }

    /// A list of parsed values; empty when not there.
    pub(super) fn parsed_list<T: FromStr<Err: std::error::Error>>(
        &mut self,
        key: &'static str,
    ) -> Vec<T> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let Some(items) = value.get_ref().as_array() else {
            return self
                .wrong_type(key, value, "a list of strings")
                .unwrap_or_default();
        };
        items
            .iter()
            .filter_map(|item| match item.get_ref().as_str() {
                Some(text) => {
                    let text = self.checked_text(text, item.span().start);
                    self.parse_at(item.span().start, key, &text)
                }
                None => self.wrong_type(key, item, "a string"),
            })
            .collect()
    }

    /// A table of texts with free keys, parsed; empty when not there.
    pub(super) fn parsed_map<T: FromStr<Err: std::error::Error>>(
        &mut self,
        key: &'static str,
    ) -> Vec<(Box<str>, T)> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let Some(table) = value.get_ref().as_table() else {
            return self
                .wrong_type(key, value, "a table of strings")
                .unwrap_or_default();
        };
        let mut pairs = Vec::new();
        for (name, item) in table {
            let Some(text) = item.get_ref().as_str() else {
                self.wrong_type::<()>(key, item, "a string");
                continue;
            };
            let text = self.checked_text(text, item.span().start);
            if let Some(parsed) = self.parse_at(item.span().start, key, &text) {
                pairs.push((name.get_ref().as_ref().into(), parsed));
            }
        }
        pairs
    }

    /// A value as JSON.
    pub(super) fn json(&mut self, key: &'static str) -> Option<serde_json::Value> {
        self.value(key).map(|value| to_json(value.get_ref()))
    }

    /// A table below this one.
    pub(super) fn section<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Section<'doc, '_>) -> T,
    ) -> Option<T> {
        let value = self.value(key)?;
        let Some(table) = value.get_ref().as_table() else {
            return self.wrong_type(key, value, "a table");
        };
        let mut section = self.below(key, value.span().start, table);
        let result = read(&mut section);
        section.finish();
        Some(result)
    }

    /// A list of tables below this one.
    pub(super) fn sections<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&mut Section<'doc, '_>) -> T,
    ) -> Vec<T> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let Some(items) = value.get_ref().as_array() else {
            return self
                .wrong_type(key, value, "a list of tables")
                .unwrap_or_default();
        };
        let mut results = Vec::new();
        for item in items {
            let Some(table) = item.get_ref().as_table() else {
                self.wrong_type::<()>(key, item, "a table");
                continue;
            };
            let mut section = self.below(key, item.span().start, table);
            results.push(read(&mut section));
            section.finish();
        }
        results
    }

    /// Whether a key is there.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Notes every key that nobody asked for.
    pub(super) fn finish(self: &mut Section<'doc, 'faults>) {
        let unknown: Vec<_> = self
            .table
            .keys()
            .filter(|key| !self.known.contains(key.get_ref().as_ref()))
            .map(|key| (key.get_ref().to_string(), key.span().start))
            .collect();
        for (key, offset) in unknown {
            let alike = |known: &&'static str| strsim::jaro_winkler(known, &key);
            let nearest = self
                .known
                .iter()
                .copied()
                .max_by(|a, b| alike(a).total_cmp(&alike(b)));
            let remedy = match nearest.filter(|known| ALIKE_MIN <= alike(known)) {
                Some(known) => format!("did you mean `{known}`?"),
                None => {
                    let known: Vec<_> = self.known.iter().copied().collect();
                    format!("remove it; known here: {}", known.join(", "))
                }
            };
            let message = format!("unknown key `{}`", self.path(&key));
            self.fault(offset, message, remedy);
        }
    }

    fn below<'other>(
        &'other mut self,
        key: &str,
        offset: usize,
        table: &'doc DeTable<'doc>,
    ) -> Section<'doc, 'other> {
        Section {
            file: self.file,
            text: self.text,
            name: self.path(key),
            offset,
            table,
            known: BTreeSet::new(),
            faults: self.faults,
        }
    }

    fn value(&mut self, key: &'static str) -> Option<&'doc Spanned<DeValue<'doc>>> {
        self.known.insert(key);
        self.table.get(key)
    }

    fn parse<T: FromStr<Err: std::error::Error>>(
        &mut self,
        key: &'static str,
        text: &str,
    ) -> Option<T> {
        let offset = self
            .table
            .get(key)
            .map_or(self.offset, |value| value.span().start);
        self.parse_at(offset, key, text)
    }

    fn parse_at<T: FromStr<Err: std::error::Error>>(
        &mut self,
        offset: usize,
        key: &str,
        text: &str,
    ) -> Option<T> {
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                let cause = std::error::Error::source(&error)
                    .map(|cause| format!(": {cause}"))
                    .unwrap_or_default();
                let message = format!("`{}`: {error}{cause}", self.path(key));
                self.fault(offset, message, "correct it as the message says");
                None
            }
        }
    }

    fn checked_text(&mut self, text: &str, offset: usize) -> String {
        let hidden = hidden_characters(text);
        if 0 < hidden {
            let message = format!("text holds {hidden} hidden or control characters");
            self.fault(offset, message, "retype the text without them");
        }
        text.to_owned()
    }

    fn wrong_type<T>(
        &mut self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        expected: &str,
    ) -> Option<T> {
        let found = value.get_ref().type_str();
        let message = format!("`{}` is of type {found}", self.path(key));
        self.fault(value.span().start, message, format!("give {expected}"));
        None
    }

    fn fault(&mut self, offset: usize, message: impl Into<String>, remedy: impl Into<String>) {
        let line = line_of(self.text, offset);
        self.faults
            .push(Fault::new(self.file, line, message, remedy));
    }

    fn path(&self, key: &str) -> String {
        if self.name.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.name)
        }
    }
}

fn to_json(value: &DeValue<'_>) -> serde_json::Value {
    match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Boolean(flag) => (*flag).into(),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(serde_json::Value::Null, Into::into),
        DeValue::Float(number) => number
            .as_str()
            .parse::<f64>()
            .map_or(serde_json::Value::Null, Into::into),
        DeValue::Datetime(moment) => moment.to_string().into(),
        DeValue::Array(items) => items.iter().map(|item| to_json(item.get_ref())).collect(),
        DeValue::Table(table) => table
            .iter()
            .map(|(key, item)| (key.get_ref().to_string(), to_json(item.get_ref())))
            .collect(),
    }
}
