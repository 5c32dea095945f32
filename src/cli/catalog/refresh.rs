//! `toolcrib catalog refresh`

use crate::app::{App, Ask, Place, report_json};
use crate::catalog::refresh::{RefreshReport, SourceOutcome};
use crate::cli::output::Output;
use crate::cli::{Outcome, progress};
use crate::domain::{ServerName, TenantId};
use crate::lifecycle::Lifecycle;

#[derive(Debug, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(in crate::cli) struct Args {
    /// Starts or connects to this server and asks it for its real tools. May be repeated.
    #[arg(long, value_name = "SERVER")]
    ask: Vec<ServerName>,
    /// Asks every server that can start without credentials and settings.
    #[arg(long, conflicts_with = "ask")]
    ask_all: bool,
    /// Whose secrets and settings the servers are asked with.
    #[arg(long, value_name = "NAME")]
    tenant: Option<TenantId>,
    /// Reads registries whole, and not only what changed in them since the last time.
    #[arg(long)]
    whole: bool,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(place: Place, args: &Args, out: Output) -> anyhow::Result<Outcome> {
    if place.config.catalog.sources.is_empty() && args.ask.is_empty() && !args.ask_all {
        out.note("no source is configured: add `[[catalog.sources]]`, or `--ask SERVER`");
    }
    let app = App::start(place, Lifecycle::new()).await?;
    let servers = match args.ask_all {
        true => app.askable(),
        false => args.ask.clone(),
    };
    let bar = progress::counting("embedding tools");
    let counted = |done: usize, all: usize| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    };
    let ask = Ask {
        servers: &servers,
        tenant: args.tenant.as_ref(),
        whole: args.whole,
    };
    let refreshed = app.refresh(ask, &counted).await;
    bar.finish_and_clear();
    app.close().await;
    let report = refreshed?;
    match args.json {
        true => out.json(&report_json(&report))?,
        false => print(&report, out),
    }
    Ok(match report.failed() {
        0 => Outcome::Done,
        _ => Outcome::Failed,
    })
}

fn print(report: &RefreshReport, out: Output) {
    for source in &report.sources {
        let (name, tools, waiting) = (&source.name, source.tools, source.waiting);
        let state = match &source.outcome {
            SourceOutcome::Unchanged => "unchanged".to_owned(),
            SourceOutcome::Read { refused } if refused.is_empty() => "read".to_owned(),
            SourceOutcome::Read { refused } => format!("read, {} refused", refused.len()),
            SourceOutcome::Failed { reason } => out.bad(&format!("failed: {reason}")),
        };
        out.line(format!("{name}: {state}; {tools} tools, {waiting} waiting"));
        if let SourceOutcome::Read { refused } = &source.outcome {
            refused
                .iter()
                .for_each(|line| out.line(out.dim(&format!("    {line}"))));
        }
    }
    for change in &report.changes {
        super::waiting::print_change(change, out);
    }
    if !report.shadowed.is_empty() {
        out.note(format!(
            "{} servers give way to others of the same name: {}",
            report.shadowed.len(),
            report.shadowed.join(", ")
        ));
    }
    if 0 < report.waiting {
        let waiting = report.waiting;
        out.note(format!(
            "{waiting} definitions wait: see `toolcrib catalog diff`"
        ));
    }
    out.note(match report.changes.len() {
        0 => "nothing changed".to_owned(),
        changes => format!("{changes} changes are published; {RUNNING}"),
    });
}

/// What a person has to know when another process serves.
pub(super) const RUNNING: &str =
    "a running server takes them over at its next refresh, or at once on SIGHUP";
