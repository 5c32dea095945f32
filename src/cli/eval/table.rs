//! Figures of labelled sets as a table, ours against the baselines.

use serde_json::{Value, json};

use crate::cli::eval::Measured;
use crate::cli::output::Output;

/// Macro averages over sets, ours and each baseline's, hit@1 and hit@3.
pub(super) fn averages(all: &[Measured]) -> Value {
    let mut rows = serde_json::Map::new();
    for (name, hit_1, hit_3) in macro_rows(all) {
        rows.insert(name, json!({ "hit@1": hit_1, "hit@3": hit_3 }));
    }
    Value::Object(rows)
}

/// Each set with its styles; then all sets, ours against the baselines, and the averages.
pub(super) fn print(all: &[Measured], out: Output) {
    for set in all {
        out.line(set.ours.to_string().trim_end());
        out.line("");
    }
    if all.len() < 2 && all.iter().all(|set| set.baselines.is_empty()) {
        return;
    }
    let mut head = vec!["hit@1 / hit@3, %".to_owned(), "ours".to_owned()];
    let first = all.first();
    let baselines = || {
        first
            .iter()
            .flat_map(|set| &set.baselines)
            .map(|(b, _)| b.name())
    };
    head.extend(baselines().map(str::to_owned));
    head.extend(baselines().map(|name| format!("ahead of {name} at 3 (95 %)")));
    let mut rows = vec![head];
    for set in all {
        let ours = &set.ours.metrics;
        let mut row = vec![set.ours.set.clone(), pair(ours.hit_1, ours.hit_3)];
        for (_, report) in &set.baselines {
            row.push(pair(report.metrics.hit_1, report.metrics.hit_3));
        }
        for (_, report) in &set.baselines {
            let ahead = set.ours.ahead_of(report);
            let [by, low, high] = [ahead.difference, ahead.low, ahead.high].map(|x| 100.0 * x);
            row.push(format!("{by:+.1} ({low:+.1} to {high:+.1})"));
        }
        rows.push(row);
    }
    let mut row = vec!["macro average".to_owned()];
    row.extend(
        macro_rows(all)
            .into_iter()
            .map(|(_, hit_1, hit_3)| pair(hit_1, hit_3)),
    );
    rows.push(row);
    out.table(&rows);
}

fn pair(hit_1: f64, hit_3: f64) -> String {
    format!("{:.1} / {:.1}", 100.0 * hit_1, 100.0 * hit_3)
}

fn macro_rows(all: &[Measured]) -> Vec<(String, f64, f64)> {
    let count = all.len().max(1) as f64;
    let ours = |figure: fn(&Measured) -> f64| all.iter().map(figure).sum::<f64>() / count;
    let mut rows = vec![(
        "ours".to_owned(),
        ours(|set| set.ours.metrics.hit_1),
        ours(|set| set.ours.metrics.hit_3),
    )];
    let baselines = all.first().map_or(0, |set| set.baselines.len());
    for at in 0..baselines {
        let reports: Vec<_> = all.iter().filter_map(|set| set.baselines.get(at)).collect();
        let name = reports
            .first()
            .map(|(baseline, _)| baseline.name())
            .unwrap_or_default();
        let hit_1 = reports
            .iter()
            .map(|(_, report)| report.metrics.hit_1)
            .sum::<f64>()
            / count;
        let hit_3 = reports
            .iter()
            .map(|(_, report)| report.metrics.hit_3)
            .sum::<f64>()
            / count;
        rows.push((name.to_owned(), hit_1, hit_3));
    }
    rows
}
