//! The command `toolcrib`.

use std::process::ExitCode;

use clap::Parser;

use toolcrib::cli::{self, Args};
use toolcrib::config::Environment;
use toolcrib::telemetry::Chain;

fn main() -> ExitCode {
    let args = Args::parse();
    let env =
        Environment::from_variables(std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }));
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&anyhow::Error::new(error).context("cannot start")),
    };
    match runtime.block_on(cli::run(args, env)) {
        Ok(outcome) => outcome.into(),
        Err(error) => fail(&error),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "the last words of a command that failed"
)]
fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("toolcrib: {}", Chain(error.as_ref()));
    ExitCode::FAILURE
}
