//! `toolcrib config`

use crate::app::Place;
use crate::cli::Outcome;
use crate::cli::output::Output;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Prints the configuration in force, with all keys.
    Show {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Says whether the configuration reads and fits.
    Check,
}

pub(super) fn run(place: &Place, command: &Command, out: Output) -> anyhow::Result<Outcome> {
    match command {
        Command::Show { json: true } => out.json(&place.config)?,
        Command::Show { json: false } => {
            out.note(format!("# data folder: {}", place.home.path().display()));
            out.line(place.config.to_toml().trim_end());
        }
        // A configuration that does not read ends the program before it comes here.
        Command::Check => {
            place.refresh_options()?;
            out.line("the configuration is good");
        }
    }
    Ok(Outcome::Done)
}
