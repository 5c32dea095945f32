//! `toolcrib tenant`

use rand::TryRngCore;
use rand::rngs::OsRng;

use crate::app::Place;
use crate::cli::Outcome;
use crate::cli::output::Output;
use crate::domain::TenantId;
use crate::tenants::{Credential, TenantLimits};

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Adds a tenant and shows its key, once.
    Add {
        /// 1 to 64 of a-z, 0-9, - and _.
        name: TenantId,
        /// What it may use: a pattern over SERVER/TOOL; `!` in front takes away. May be repeated.
        #[arg(long = "allow", value_name = "PATTERN")]
        scope: Vec<String>,
        /// Searches a minute, instead of the configured number.
        #[arg(long, value_name = "N")]
        searches_per_minute: Option<u32>,
        /// Runs a minute, instead of the configured number.
        #[arg(long, value_name = "N")]
        runs_per_minute: Option<u32>,
        /// Requests at one time, instead of the configured number.
        #[arg(long, value_name = "N")]
        concurrent: Option<usize>,
    },
    /// Lists tenants with the ids of their keys.
    List {
        /// As a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Gives a tenant a new key and shows it, once. The key before stays good until the next
    /// rotation.
    Rotate {
        /// The tenant.
        name: TenantId,
        /// Ends all older keys at once.
        #[arg(long)]
        drop_old: bool,
    },
    /// Removes a tenant. Its keys end at once; its settings stay until removed.
    Remove {
        /// The tenant.
        name: TenantId,
    },
}

pub(super) fn run(place: &Place, command: Command, out: Output) -> anyhow::Result<Outcome> {
    let directory = place.directory();
    let mut random = OsRng.unwrap_err();
    match command {
        Command::Add {
            name,
            scope,
            searches_per_minute,
            runs_per_minute,
            concurrent,
        } => {
            let limits = TenantLimits {
                searches_per_minute,
                runs_per_minute,
                concurrent,
            };
            let key = directory.add(&name, &scope, limits, &mut random)?;
            show_key(place, &key, out);
        }
        Command::List { json: true } => out.json(&directory.list()?)?,
        Command::List { json: false } => {
            let mut rows = vec![["tenant", "keys", "may use"].map(str::to_owned).to_vec()];
            for tenant in directory.list()? {
                let scope = match tenant.scope.is_empty() {
                    true => "everything".to_owned(),
                    false => tenant.scope.join(" "),
                };
                rows.push(vec![tenant.id, tenant.keys.join(","), scope]);
            }
            out.table(&rows);
        }
        Command::Rotate { name, drop_old } => {
            let key = directory.rotate(&name, drop_old, &mut random)?;
            show_key(place, &key, out);
        }
        Command::Remove { name } => {
            directory.remove(&name)?;
            out.note(format!("tenant {name} is removed"));
        }
    }
    Ok(Outcome::Done)
}

fn show_key(place: &Place, key: &Credential, out: Output) {
    let host = place.config.server.listen.to_string();
    out.note("keep this: it is shown once and stored as a hash only");
    out.line(format!("connection: {}", key.reveal_connection(&host)));
    out.line(format!("bearer: {}", key.reveal_bearer()));
}
