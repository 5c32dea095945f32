//! `toolcrib search`

use anyhow::Context;
use serde_json::{Value, json};

use crate::app::{App, ModelState, Place, Vectors};
use crate::cli::output::Output;
use crate::cli::{Outcome, progress};
use crate::domain::{Query, Tenant, shorten};
use crate::lifecycle::Lifecycle;
use crate::search::{Answer, Explanation, SearchError};
use crate::transport::desk::show;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What you want to do, in one sentence.
    query: String,
    /// Prints the result as an agent gets it.
    #[arg(long)]
    json: bool,
    /// Shows for each candidate how it came to its place.
    #[arg(long)]
    explain: bool,
}

pub(super) async fn run(place: Place, args: Args, out: Output) -> anyhow::Result<Outcome> {
    let query: Query = args.query.parse().context("nothing to search for")?;
    let app = App::start(place, Lifecycle::new()).await?;
    make_vectors(&app, out).await?;
    let outcome = match args.explain {
        true => {
            let explained = app.searcher().explain(&Tenant::local(), &query).await;
            explained.map(|explanation| match args.json {
                true => out.json(&to_json(&explanation)),
                false => {
                    out.line(explanation.to_string().trim_end());
                    Ok(())
                }
            })
        }
        false => {
            let answered = app.searcher().search(&Tenant::local(), &query).await;
            answered.map(|answer| match args.json {
                true => out.json(&show(&answer)),
                false => {
                    print(&answer, out);
                    Ok(())
                }
            })
        }
    };
    app.close().await;
    match outcome {
        Ok(printed) => printed.map(|()| Outcome::Done),
        Err(SearchError::NoCandidates { .. }) => {
            out.note("the catalog has no tool: `toolcrib catalog list` shows what is in it");
            Ok(Outcome::Failed)
        }
        Err(error) => Err(error.into()),
    }
}

/// Makes the vectors that are not in the cache yet, with a progress bar.
async fn make_vectors(app: &App, out: Output) -> anyhow::Result<()> {
    let bar = progress::counting("embedding tools");
    let counted = |done: usize, all: usize| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    };
    let made = app.index_job().run(&counted).await?;
    bar.finish_and_clear();
    if let (Vectors::NoModel, ModelState::Missing { reason }) = (made, app.model()) {
        out.note(format!("{reason}; ranking by keywords alone"));
    }
    Ok(())
}

fn print(answer: &Answer, out: Output) {
    for (place, pick) in (1..).zip(&answer.picks) {
        let (tool, server) = (pick.tool(), &pick.server);
        out.line(format!("{place}. {}", out.strong(&pick.id().to_string())));
        out.line(format!(
            "   {}",
            shorten(tool.description(), 240).replace('\n', " ")
        ));
        let arguments: Vec<String> = tool
            .input()
            .arguments()
            .iter()
            .map(|argument| match argument.required {
                true => argument.name.to_string(),
                false => format!("[{}]", argument.name),
            })
            .collect();
        if !arguments.is_empty() {
            let text = format!("   arguments: {}", shorten(&arguments.join(" "), 200));
            out.line(out.dim(&text));
        }
        for name in pick.requires.secrets.iter().chain(&pick.requires.config) {
            let text = format!(
                "   {} still needs: toolcrib secret set {name}",
                server.title
            );
            out.line(out.dim(&text));
        }
    }
    let (shown, all) = (answer.picks.len(), answer.tools_total);
    out.line(out.dim(&format!("{shown} of {all} tools; other words find others")));
    if let Some(why) = answer.degraded {
        out.note(format!("ranked by keywords alone: {why}"));
    }
}

fn to_json(explanation: &Explanation) -> Value {
    let words: Vec<Value> = explanation
        .words
        .iter()
        .map(|word| json!({ "stem": word.stem, "from": word.from, "rarity": word.rarity }))
        .collect();
    let rows: Vec<Value> = explanation
        .rows
        .iter()
        .map(|row| {
            json!({
                "tool": row.id.to_string(),
                "pick": row.pick,
                "lane": format!("{:?}", row.lane).to_lowercase(),
                "cosine": row.cosine,
                "semantic": row.semantic,
                "keyword": row.keyword,
                "blended": row.blended,
                "mmr": row.mmr,
                "matched": row.matched,
            })
        })
        .collect();
    json!({
        "read_as": explanation.read_as,
        "model": explanation.model,
        "degraded": explanation.degraded.map(|why| why.to_string()),
        "words": words,
        "unknown_words": explanation.unknown,
        "tools": explanation.tools_total,
        "candidates": rows,
    })
}
