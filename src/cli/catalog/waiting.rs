//! `toolcrib catalog diff` and `toolcrib catalog approve`

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::app::Place;
use crate::catalog::diff::Change;
use crate::catalog::pins;
use crate::catalog::refresh::assemble;
use crate::catalog::scan::{Finding, KnownNames, Severity, scan_server, scan_tool};
use crate::catalog::snapshot::{Snapshot, SourceState};
use crate::cli::Outcome;
use crate::cli::output::Output;
use crate::domain::{ServerName, ToolName};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct DiffArgs {
    /// Shows what the last refresh has published, instead of what waits.
    #[arg(long)]
    previous: bool,
    /// As a JSON array.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ApproveArgs {
    /// What to let in, each as SERVER or SERVER/TOOL.
    #[arg(required_unless_present = "all")]
    names: Vec<String>,
    /// Lets in all that waits.
    #[arg(long, conflicts_with = "names")]
    all: bool,
}

pub(super) fn diff(place: &Place, args: &DiffArgs, out: Output) -> anyhow::Result<Outcome> {
    let own = place.own_catalog()?.catalog;
    let (file, known) = (place.snapshot(), KnownNames::of(&own));
    let present = file.load();
    let rows: Vec<(Change, Vec<Finding>)> = if args.previous {
        let before = file.load_previous().unwrap_or_default();
        let (before, after) = (assemble(&own, &before)?, assemble(&own, &present)?);
        let changes = Change::between(&before.catalog, &after.catalog);
        changes.into_iter().map(|change| (change, vec![])).collect()
    } else {
        waiting(&present, &known)
    };
    if args.json {
        let row = |(change, findings): &(Change, Vec<Finding>)| -> Value {
            let findings = findings.iter().map(ToString::to_string);
            json!({ "change": change.to_string(), "findings": findings.collect::<Vec<_>>() })
        };
        out.json(&rows.iter().map(row).collect::<Vec<_>>())?;
    } else {
        for (change, findings) in &rows {
            print_change(change, out);
            for finding in findings {
                let line = format!("    {finding}");
                match finding.severity {
                    Severity::High => out.line(out.bad(&line)),
                    Severity::Medium | Severity::Low => out.line(line),
                }
            }
        }
        out.note(match (rows.len(), args.previous) {
            (0, false) => "nothing waits".to_owned(),
            (count, false) => format!("{count} wait: `toolcrib catalog approve SERVER[/TOOL]`"),
            (count, true) => format!("{count} changes by the last refresh"),
        });
    }
    match rows.is_empty() || args.previous {
        true => Ok(Outcome::Done),
        false => Ok(Outcome::FoundProblems),
    }
}

/// All that waits, with what the scanner says of it.
fn waiting(snapshot: &Snapshot, known: &KnownNames) -> Vec<(Change, Vec<Finding>)> {
    let mut rows = Vec::new();
    for state in snapshot.states() {
        for (name, held) in &state.held {
            let published = state.server(name);
            let changes = Change::waiting(name, published.map(AsRef::as_ref), held);
            let head = held.head.iter().map(|head| scan_server(head, known));
            let tools = held.tools.iter().map(|held| scan_tool(&held.tool, known));
            rows.extend(changes.into_iter().zip(head.chain(tools)));
        }
    }
    rows
}

/// A change in colour: green for what comes, red for what goes.
pub(super) fn print_change(change: &Change, out: Output) {
    for line in change.to_string().lines() {
        let sign = line.trim_start().chars().next();
        out.line(match sign {
            Some('+') => out.good(line),
            Some('-') => out.bad(line),
            Some('~' | '=') => out.strong(line),
            _ => line.to_owned(),
        });
    }
}

pub(super) fn approve(place: &Place, args: &ApproveArgs, out: Output) -> anyhow::Result<Outcome> {
    let mut wanted: Vec<(ServerName, Option<ToolName>)> = Vec::new();
    for name in &args.names {
        let (server, tool) = match name.split_once('/') {
            Some((server, tool)) => (server, Some(tool)),
            None => (name.as_str(), None),
        };
        let server = server.parse().with_context(|| format!("`{name}`"))?;
        let tool = tool.map(str::parse).transpose();
        wanted.push((server, tool.with_context(|| format!("`{name}`"))?));
    }
    let let_in = |snapshot: &mut Snapshot| {
        if args.all {
            let held = snapshot.states().flat_map(|state| state.held.keys());
            wanted = held.map(|server| (server.clone(), None)).collect();
        }
        let before = snapshot.clone();
        let mut done = Vec::new();
        for (server, tool) in &wanted {
            let approved: usize = snapshot
                .states_mut()
                .map(|state| approve_in(state, server, tool.as_ref()))
                .sum();
            let name = match tool {
                Some(tool) => format!("{server}/{tool}"),
                None => server.to_string(),
            };
            done.push((name, approved));
        }
        // All that was named, or nothing.
        if done.iter().any(|(_, approved)| *approved == 0) {
            *snapshot = before;
        }
        done
    };
    let (done, snapshot) = place.snapshot().change(let_in)?;
    if let Some((name, _)) = done.iter().find(|(_, approved)| *approved == 0) {
        bail!("nothing waits of `{name}`: `toolcrib catalog diff` shows what does")
    }
    for (name, approved) in &done {
        out.line(out.good(&format!("{name}: {approved} approved")));
    }
    let left = snapshot.waiting();
    out.note(format!("{left} still wait; {}", super::refresh::RUNNING));
    Ok(Outcome::Done)
}

/// How many things of a server were let in.
fn approve_in(state: &mut SourceState, server: &ServerName, tool: Option<&ToolName>) -> usize {
    let Some(mut held) = state.held.get(server).cloned() else {
        return 0;
    };
    let before = held.len();
    let published = state.server(server).cloned();
    let Some(approved) = pins::approve(published.as_deref(), &mut held, tool) else {
        return 0;
    };
    let after = held.len();
    state.servers.retain(|old| old.name != *server);
    state.servers.push(approved.into());
    match held.is_empty() {
        true => state.held.remove(server),
        false => state.held.insert(server.clone(), held),
    };
    before - after
}
