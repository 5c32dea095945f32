//! `toolcrib eval`

mod table;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::app::{Place, load_embedder};
use crate::cli::output::Output;
use crate::cli::{Outcome, progress};
use crate::eval::{Gate, LabelledSet, Report, Setup, ToolSource, run_baselines};
use crate::search::{Baseline, Embedder, VectorCache};

/// How labelled queries are named in a folder.
const QUERIES: &str = ".queries.jsonl";

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("source").args(["tools", "catalog"])))]
pub(super) struct Args {
    /// Tools, one JSON object a line: id, server, name, description, arguments.
    #[arg(long, value_name = "FILE", requires = "queries")]
    tools: Option<PathBuf>,
    /// A catalog in normal form, one server a line, instead of --tools; with --all, the one that
    /// sets without tools of their own search.
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,
    /// Queries, one JSON object a line: id, query, relevant, style.
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "all",
        conflicts_with = "all",
        requires = "source"
    )]
    queries: Option<PathBuf>,
    /// Measures every SET.queries.jsonl of a folder, with SET.tools.jsonl beside it or --catalog.
    #[arg(long, value_name = "FOLDER")]
    all: Option<PathBuf>,
    /// Measures the fixed baselines too, and how far ours is from each.
    #[arg(long)]
    baselines: bool,
    /// Fails, with exit code 3, where a figure is below the one in this file.
    #[arg(long, value_name = "FILE")]
    gate: Option<PathBuf>,
    /// As JSON, with fractions.
    #[arg(long)]
    json: bool,
}

/// A set's figures and those of the baselines.
struct Measured {
    ours: Report,
    baselines: Vec<(Baseline, Report)>,
}

pub(super) async fn run(place: Place, args: Args, out: Output) -> anyhow::Result<Outcome> {
    let gate = args.gate.as_deref().map(Gate::read).transpose()?;
    let sets = sets(&args)?;
    let (embedder, _) = load_embedder(&place).await?;
    if embedder.is_none() && place.config.model.enabled {
        out.note("no model is fetched, so the keyword side is measured alone");
    }
    let mut measured = Vec::new();
    for (source, queries) in &sets {
        let set = LabelledSet::read(source, queries)?;
        measured.push(measure(&place, &set, embedder.as_ref(), args.baselines).await?);
    }
    match (args.json, measured.as_slice()) {
        (true, [only]) if args.all.is_none() => out.json(&to_json(only))?,
        (true, all) => {
            let row = |set: &Measured| (set.ours.set.clone(), to_json(set));
            let sets: serde_json::Map<String, Value> = all.iter().map(row).collect();
            out.json(&json!({ "sets": sets, "macro": table::averages(all) }))?;
        }
        (false, all) => table::print(all, out),
    }
    let below: Vec<String> = gate
        .iter()
        .flat_map(|gate| measured.iter().flat_map(|set| gate.faults(&set.ours)))
        .collect();
    for line in &below {
        out.note(format!("{} {line}", out.bad("below the gate:")));
    }
    Ok(if below.is_empty() {
        Outcome::Done
    } else {
        Outcome::FoundProblems
    })
}

/// The sets to measure: tools, and queries.
fn sets(args: &Args) -> anyhow::Result<Vec<(ToolSource, PathBuf)>> {
    let Some(folder) = &args.all else {
        let source = match (&args.tools, &args.catalog) {
            (Some(tools), _) => ToolSource::Tools(tools.clone()),
            (None, Some(catalog)) => ToolSource::Catalog(catalog.clone()),
            (None, None) => bail!("give --tools FILE or --catalog FILE with the queries"),
        };
        let queries = args.queries.clone().context("give --queries FILE")?;
        return Ok(vec![(source, queries)]);
    };
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read the folder `{}`", folder.display()))?;
    let mut queries: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| name_of(path).ends_with(QUERIES))
        .collect();
    queries.sort();
    if queries.is_empty() {
        bail!("the folder `{}` holds no SET{QUERIES}", folder.display());
    }
    let mut sets = Vec::new();
    for path in queries {
        let tools = folder.join(name_of(&path).replace(QUERIES, ".tools.jsonl"));
        match (&args.catalog, tools.is_file()) {
            (_, true) => sets.push((ToolSource::Tools(tools), path)),
            (Some(catalog), false) => sets.push((ToolSource::Catalog(catalog.clone()), path)),
            (None, false) => {
                bail!(
                    "`{}` has no tools beside it: give --catalog FILE",
                    path.display()
                )
            }
        }
    }
    Ok(sets)
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

async fn measure(
    place: &Place,
    set: &LabelledSet,
    embedder: Option<&Embedder>,
    with_baselines: bool,
) -> anyhow::Result<Measured> {
    let bar = progress::counting("embedding tools");
    let counted = |done: usize, all: usize| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    };
    let (cache, ranking) = (VectorCache::open(&place.home.cache())?, place.ranking());
    let setup = Setup {
        embedder,
        cache: &cache,
        ranking: &ranking,
        progress: &counted,
    };
    let ours = crate::eval::run(set, &setup).await?;
    let mut baselines = Vec::new();
    if let Some(embedder) = embedder.filter(|_| with_baselines) {
        let reports = run_baselines(set, &Baseline::ALL, embedder, &cache).await?;
        baselines = Baseline::ALL.into_iter().zip(reports).collect();
    }
    bar.finish_and_clear();
    Ok(Measured { ours, baselines })
}

fn to_json(measured: &Measured) -> Value {
    let mut json = measured.ours.to_json();
    if !measured.baselines.is_empty() {
        let rows = measured.baselines.iter().map(|(baseline, report)| {
            let ahead = measured.ours.ahead_of(report);
            let row = json!({
                "metrics": report.to_json()["metrics"],
                "hit@3_ahead": { "by": ahead.difference, "low": ahead.low, "high": ahead.high },
            });
            (baseline.name().to_owned(), row)
        });
        json["baselines"] = Value::Object(rows.collect());
    }
    json
}
