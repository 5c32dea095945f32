//! The command line: each command decodes its arguments, calls the program's parts, and prints.

mod output;
mod progress;
mod serve;
mod search;
mod run;
mod catalog;
mod models;
mod tenant;
mod secret;
mod connect;
mod doctor;
mod config;
mod eval;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::app::Place;
use crate::cli::output::Output;
use crate::config::{Environment, LogSection};
use crate::telemetry::start_logging;

/// How a command ended, as its exit code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// 0: done.
    Done,
    /// 1: the tool or the search failed, and the output says how.
    Failed,
    /// 3: a check found problems, and the output names them.
    FoundProblems,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::SUCCESS,
            Outcome::Failed => Self::from(1),
            Outcome::FoundProblems => Self::from(3),
        }
    }
}

/// The service an AI agent asks for a tool: search thousands, get three and a one-run handle.
#[derive(Debug, Parser)]
#[command(
    name = "toolcrib",
    version,
    about,
    propagate_version = true,
    max_term_width = 100
)]
pub struct Args {
    /// Configuration file; without it `toolcrib.toml` in the data folder, if there is one.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Tells what happens inside, on standard error.
    #[arg(long, short, global = true)]
    verbose: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves agents over MCP, on HTTP or on standard streams.
    Serve(serve::Args),
    /// Finds tools for what you want to do.
    Search(search::Args),
    /// Runs a tool on its MCP server.
    Run(run::Args),
    /// Lists, shows, checks and refreshes the catalog.
    #[command(subcommand)]
    Catalog(catalog::Command),
    /// Lists, fetches and verifies embedding models and the ONNX runtime.
    #[command(subcommand)]
    Models(models::Command),
    /// Adds, lists, rotates and removes tenants.
    #[command(subcommand)]
    Tenant(tenant::Command),
    /// Sets, lists and removes the secrets and settings that servers need.
    #[command(subcommand)]
    Secret(secret::Command),
    /// Prints how to connect a client.
    Connect(connect::Args),
    /// Checks everything that has to be right, and says what to do.
    Doctor(doctor::Args),
    /// Shows and checks the configuration.
    #[command(subcommand)]
    Config(config::Command),
    /// Measures search quality on labelled queries.
    Eval(eval::Args),
}

/// Runs one command.
pub async fn run(args: Args, env: Environment) -> anyhow::Result<Outcome> {
    let out = Output::new();
    let place = Place::find(args.config.as_deref(), env)?;
    let level = |level: &str| LogSection {
        level: level.to_owned(),
        ..LogSection::default()
    };
    start_logging(&match (&args.command, args.verbose) {
        (Command::Serve(_), _) => place.config.log.clone(),
        (_, true) => level("info,audit=off"),
        (_, false) => level("error"),
    })?;
    match args.command {
        Command::Serve(args) => serve::run(place, args, out).await,
        Command::Search(args) => search::run(place, args, out).await,
        Command::Run(args) => run::run(place, args, out).await,
        Command::Catalog(command) => catalog::run(place, &command, out).await,
        Command::Models(command) => models::run(&place, command, out).await,
        Command::Tenant(command) => tenant::run(&place, command, out),
        Command::Secret(command) => secret::run(&place, command, out),
        Command::Connect(args) => connect::run(&place, &args, out),
        Command::Doctor(args) => doctor::run(&place, &args, out).await,
        Command::Config(command) => config::run(&place, &command, out),
        Command::Eval(args) => eval::run(place, args, out).await,
    }
}
