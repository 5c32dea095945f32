//! `toolcrib eval`

use std::path::PathBuf;

use crate::app::{Place, load_embedder};
use crate::cli::output::Output;
use crate::cli::{Outcome, progress};
use crate::eval::{LabelledSet, Setup, ToolSource};
use crate::search::VectorCache;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Tools, one JSON object a line: id, server, name, description, arguments.
    #[arg(long, value_name = "FILE", required_unless_present = "catalog")]
    tools: Option<PathBuf>,
    /// A catalog in normal form, one server a line, instead of --tools.
    #[arg(long, value_name = "FILE", conflicts_with = "tools")]
    catalog: Option<PathBuf>,
    /// Queries, one JSON object a line: id, query, relevant, style.
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// As JSON, with fractions.
    #[arg(long)]
    json: bool,
    /// Measures the keyword side alone.
    #[arg(long)]
    without_model: bool,
}

pub(super) async fn run(mut place: Place, args: Args, out: Output) -> anyhow::Result<Outcome> {
    place.config.model.enabled &= !args.without_model;
    let source = match (args.tools, args.catalog) {
        (Some(tools), _) => ToolSource::Tools(tools),
        (None, Some(catalog)) => ToolSource::Catalog(catalog),
        (None, None) => anyhow::bail!("give --tools FILE or --catalog FILE"),
    };
    let set = LabelledSet::read(&source, &args.queries)?;
    let (embedder, _) = load_embedder(&place).await?;
    if embedder.is_none() && place.config.model.enabled {
        out.note("no model is fetched, so the keyword side is measured alone");
    }
    let bar = progress::counting("embedding tools");
    let counted = |done: usize, all: usize| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    };
    let report = crate::eval::run(
        &set,
        &Setup {
            embedder: embedder.as_ref(),
            cache: &VectorCache::open(&place.home.cache())?,
            ranking: &place.ranking(),
            progress: &counted,
        },
    )
    .await?;
    bar.finish_and_clear();
    match args.json {
        true => out.json(&report.to_json())?,
        false => out.line(report.to_string().trim_end()),
    }
    Ok(Outcome::Done)
}
