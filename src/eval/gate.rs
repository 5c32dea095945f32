//! The figures that a change may not fall below.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::eval::Report;

/// What rounding and another machine's arithmetic may take away.
const TOLERANCE: f64 = 1e-9;

/// Why the figures were not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadGateError {
    /// The file cannot be read.
    #[error("cannot read `{path}`")]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not JSON.
    #[error("`{path}` is not JSON")]
    Json {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// It is not `{set: {figure: number}}`.
    #[error("`{path}` is not an object of sets with an object of figures each")]
    Form {
        /// Which one.
        path: PathBuf,
    },
}

/// Lowest figures by set and name, as `{"catalog150": {"hit@3": 0.88}}`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gate(BTreeMap<String, BTreeMap<String, f64>>);

impl Gate {
    /// Reads the committed figures.
    pub fn read(path: &Path) -> Result<Self, ReadGateError> {
        let text = std::fs::read(path).map_err(|source| ReadGateError::File {
            path: path.to_owned(),
            source,
        })?;
        let value: Value = serde_json::from_slice(&text).map_err(|source| ReadGateError::Json {
            path: path.to_owned(),
            source,
        })?;
        let figures = |value: &Value| -> Option<BTreeMap<String, f64>> {
            let entries = value.as_object()?.iter();
            entries
                .map(|(name, figure)| Some((name.clone(), figure.as_f64()?)))
                .collect()
        };
        let sets = value.as_object().and_then(|sets| {
            sets.iter()
                .map(|(set, value)| Some((set.clone(), figures(value)?)))
                .collect()
        });
        sets.map(Self).ok_or_else(|| ReadGateError::Form {
            path: path.to_owned(),
        })
    }

    /// What of a report is below the figures, one sentence each. A set without figures passes.
    pub fn faults(&self, report: &Report) -> Vec<String> {
        let Some(lowest) = self.0.get(&report.set) else {
            return Vec::new();
        };
        let named = report.metrics.named();
        lowest
            .iter()
            .filter_map(|(name, least)| {
                let (_, value) = named.iter().find(|(known, _)| known == name)?;
                (value + TOLERANCE < *least)
                    .then(|| format!("{} of {} is {value:.4}, below {least:.4}", name, report.set))
            })
            .collect()
    }
}
