//! `toolcrib serve`

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;

use crate::app::{App, Listening, ModelState, Place};
use crate::cli::Outcome;
use crate::cli::output::Output;
use crate::config::Surface;
use crate::lifecycle::Lifecycle;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Serves one client on standard input and output instead of HTTP.
    #[arg(long)]
    stdio: bool,
    /// Where `/mcp` listens, such as 127.0.0.1:8787.
    #[arg(long, value_name = "ADDR", conflicts_with = "stdio")]
    listen: Option<SocketAddr>,
    /// Where `/livez`, `/readyz` and `/metrics` listen.
    #[arg(long, value_name = "ADDR", conflicts_with = "stdio")]
    admin_listen: Option<SocketAddr>,
    /// Which tools `/mcp` lists.
    #[arg(long)]
    surface: Option<Surface>,
}

pub(super) async fn run(mut place: Place, args: Args, out: Output) -> anyhow::Result<Outcome> {
    let server = &mut place.config.server;
    server.listen = args.listen.unwrap_or(server.listen);
    server.admin_listen = args.admin_listen.unwrap_or(server.admin_listen);
    server.surface = args.surface.unwrap_or(server.surface);
    let lifecycle = Lifecycle::new();
    stop_on_signals(&lifecycle)?;
    let app = Arc::new(App::start(place, lifecycle).await?);
    if let ModelState::Missing { reason } = app.model() {
        out.note(format!(
            "{reason}; until then tools are ranked by keywords alone"
        ));
    }
    if args.stdio {
        app.serve_stdio().await?;
    } else {
        let catalog = app.catalog();
        let summary = format!(
            "{} tools of {} servers",
            catalog.len(),
            catalog.servers().len()
        );
        let beside = app.place().config.server.surfaces.clone();
        app.serve_http(|listening| {
            welcome(listening, &summary, out);
            for surface in beside {
                let (mcp, name) = (listening.mcp, surface.name());
                out.note(format!("surface {name}: http://{mcp}/mcp/{name}"));
            }
        })
        .await?;
    }
    Ok(Outcome::Done)
}

fn welcome(listening: Listening, summary: &str, out: Output) {
    let Listening { mcp, admin, open } = listening;
    out.note(format!("toolcrib serves {summary} at http://{mcp}/mcp"));
    out.note(format!("admin: http://{admin}/readyz, /livez and /metrics"));
    if open {
        out.note("open: no tenant is set up, so every program on this machine may search and run");
    }
    out.note("connect a client: `toolcrib connect claude-code`, codex, cursor, vscode or gemini");
    out.note("stop with Ctrl-C");
}

/// The first signal asks to stop; a second one does not wait for calls in flight.
#[cfg(unix)]
fn stop_on_signals(lifecycle: &Lifecycle) -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let inside = lifecycle.clone();
    spawn_untracked(async move {
        let mut signals = 0;
        loop {
            tokio::select! {
                _ = terminate.recv() => signals += 1,
                _ = interrupt.recv() => signals += 1,
                () = inside.cancelled() => return,
            }
            match signals {
                1 => inside.stop(),
                _ => inside.cancel(),
            }
        }
    });
    Ok(())
}

#[cfg(not(unix))]
fn stop_on_signals(lifecycle: &Lifecycle) -> anyhow::Result<()> {
    let inside = lifecycle.clone();
    spawn_untracked(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            inside.stop();
        }
    });
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "shutdown waits for tracked tasks, and this one has to outlive the first signal"
)]
fn spawn_untracked(task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(task);
}
