//! The figures of a set, for machines and for people.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Map, Value, json};

use crate::eval::metrics::Score;
use crate::eval::{LabelledSet, milliseconds};

/// Samples that an interval is taken from.
const RESAMPLES: usize = 2_000;
/// Seed of the samples.
const SEED: u64 = 1;

/// Means over queries, as fractions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Metrics {
    /// How many queries they are over.
    pub queries: usize,
    /// Queries whose first tool is right.
    pub hit_1: f64,
    /// Queries with a right tool among the three.
    pub hit_3: f64,
    /// Share of the right tools among the first three.
    pub recall_3: f64,
    /// Share of the right tools among the first five.
    pub recall_5: f64,
    /// Share of the right tools among all candidates.
    pub recall_50: f64,
    /// Mean reciprocal rank of the first right tool, within ten.
    pub mrr_10: f64,
    /// Normalised discounted cumulative gain within ten.
    pub ndcg_10: f64,
}

impl Metrics {
    pub(super) fn over(scores: &[&Score]) -> Self {
        let queries = scores.len();
        let mean = |part: fn(&Score) -> f64| {
            scores.iter().copied().map(part).sum::<f64>() / queries.max(1) as f64
        };
        Self {
            queries,
            hit_1: mean(|score| score.hit_1),
            hit_3: mean(|score| score.hit_3),
            recall_3: mean(|score| score.recall[0]),
            recall_5: mean(|score| score.recall[1]),
            recall_50: mean(|score| score.recall[2]),
            mrr_10: mean(|score| score.mrr_10),
            ndcg_10: mean(|score| score.ndcg_10),
        }
    }

    fn to_json(self) -> Map<String, Value> {
        self.named()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect()
    }

    /// Each figure with its name.
    pub fn named(&self) -> [(&'static str, f64); 7] {
        [
            ("hit@1", self.hit_1),
            ("hit@3", self.hit_3),
            ("recall@3", self.recall_3),
            ("recall@5", self.recall_5),
            ("recall@50", self.recall_50),
            ("mrr@10", self.mrr_10),
            ("ndcg@10", self.ndcg_10),
        ]
    }
}

/// Times of many searches.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    /// Half of them took at most this, in milliseconds.
    pub p50_ms: f64,
    /// All but a hundredth of them took at most this, in milliseconds.
    pub p99_ms: f64,
}

impl Latency {
    pub(super) fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |per_cent: usize| {
            let place = (times.len() * per_cent).div_ceil(100).saturating_sub(1);
            times.get(place).copied().unwrap_or_default()
        };
        Self {
            p50_ms: milliseconds(at(50)),
            p99_ms: milliseconds(at(99)),
        }
    }

    fn to_json(self) -> Value {
        json!({"p50": self.p50_ms, "p99": self.p99_ms})
    }
}

/// A difference, and where it lies with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The difference that was measured, as a fraction.
    pub difference: f64,
    /// 2.5 % of the resampled differences are below.
    pub low: f64,
    /// 2.5 % of them are above.
    pub high: f64,
}

/// What was measured on a set.
#[derive(Clone, Debug)]
pub struct Report {
    /// The set.
    pub set: String,
    /// Over all queries.
    pub metrics: Metrics,
    /// Over the queries of each style.
    pub styles: BTreeMap<String, Metrics>,
    /// How many tools were searched.
    pub tools: usize,
    /// Times of a search without the model.
    pub without_model: Latency,
    /// Times of a search with the model, when there was one.
    pub with_model: Option<Latency>,
    /// For each query whether a right tool came first, and whether one was among the three.
    pub hits: Vec<(bool, bool)>,
}

impl Report {
    pub(super) fn new(
        set: &LabelledSet,
        scores: &[Score],
        latency: (Latency, Option<Latency>),
    ) -> Self {
        let mut styles: BTreeMap<String, Vec<&Score>> = BTreeMap::new();
        for (labelled, score) in set.queries.iter().zip(scores) {
            if let Some(style) = &labelled.style {
                styles.entry(style.clone()).or_default().push(score);
            }
        }
        let styles = styles
            .into_iter()
            .map(|(style, scores)| (style, Metrics::over(&scores)));
        Self {
            set: set.name.clone(),
            metrics: Metrics::over(&scores.iter().collect::<Vec<_>>()),
            styles: styles.collect(),
            tools: set.catalog.len(),
            without_model: latency.0,
            with_model: latency.1,
            hits: scores
                .iter()
                .map(|score| (0.5 < score.hit_1, 0.5 < score.hit_3))
                .collect(),
        }
    }

    /// How far this is ahead of another report on the same queries at hit@3, by bootstrap over
    /// the queries with a fixed seed.
    pub fn ahead_of(&self, other: &Self) -> Interval {
        let value = |hit: bool| f64::from(u8::from(hit));
        let differences: Vec<f64> = self
            .hits
            .iter()
            .zip(&other.hits)
            .map(|((_, ours), (_, theirs))| value(*ours) - value(*theirs))
            .collect();
        let count = differences.len().max(1);
        let mut random = StdRng::seed_from_u64(SEED);
        let mut means: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let drawn = (0..count).map(|_| differences.get(random.random_range(0..count)));
                drawn.flatten().sum::<f64>() / count as f64
            })
            .collect();
        means.sort_by(f64::total_cmp);
        Interval {
            difference: differences.iter().sum::<f64>() / count as f64,
            low: means[RESAMPLES / 40],
            high: means[RESAMPLES - 1 - RESAMPLES / 40],
        }
    }

    /// `{"metrics": {"hit@1": ..}, "queries", "tools", "latency_ms", "styles"}`, fractions of 1.
    pub fn to_json(&self) -> Value {
        let styles: Map<String, Value> = self
            .styles
            .iter()
            .map(|(style, metrics)| {
                let mut figures = metrics.to_json();
                figures.insert("queries".into(), json!(metrics.queries));
                (style.clone(), Value::from(figures))
            })
            .collect();
        let mut latency = json!({"without_model": self.without_model.to_json()});
        if let Some(with_model) = self.with_model {
            latency["with_model"] = with_model.to_json();
        }
        json!({
            "set": self.set,
            "metrics": self.metrics.to_json(),
            "queries": self.metrics.queries,
            "tools": self.tools,
            "latency_ms": latency,
            "styles": styles,
        })
    }
}

/// As a table for people, in per cent.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} queries, {} tools",
            self.set, self.metrics.queries, self.tools
        )?;
        write!(f, "{:<24}{:>8}", "", "queries")?;
        for (name, _) in self.metrics.named() {
            write!(f, "{name:>11}")?;
        }
        writeln!(f)?;
        let all = [("all".to_owned(), self.metrics)];
        for (name, metrics) in all.iter().chain(
            &self
                .styles
                .iter()
                .map(|(style, metrics)| (style.clone(), *metrics))
                .collect::<Vec<_>>(),
        ) {
            write!(f, "{name:<24}{:>8}", metrics.queries)?;
            for (_, value) in metrics.named() {
                write!(f, "{:>11.1}", value * 100.0)?;
            }
            writeln!(f)?;
        }
        let line = |latency: Latency| {
            format!("p50 {:.2} ms, p99 {:.2} ms", latency.p50_ms, latency.p99_ms)
        };
        writeln!(f, "without the model: {}", line(self.without_model))?;
        match self.with_model {
            Some(latency) => writeln!(f, "with the model:    {}", line(latency)),
            None => Ok(()),
        }
    }
}
