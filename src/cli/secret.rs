//! `toolcrib secret`

use std::io::{IsTerminal, Read};

use anyhow::{Context, bail};
use rand::TryRngCore;
use rand::rngs::OsRng;
use serde_json::json;

use crate::app::Place;
use crate::cli::Outcome;
use crate::cli::output::Output;
use crate::domain::{SettingName, TenantId};

/// Longest value that is read from standard input, in bytes.
const INPUT_BYTES_MAX: u64 = 64 * 1024;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Sets a secret or a setting. A secret is read from the terminal, without echo, or from
    /// standard input, so that it stands in no history; it is encrypted at rest.
    Set {
        /// Its name, such as `slack.bot_token`.
        name: SettingName,
        /// The value of a setting that is no secret.
        value: Option<String>,
        /// Whose it is.
        #[arg(long, value_name = "NAME", default_value = "local")]
        tenant: TenantId,
    },
    /// Lists what is set. Secrets are named, not shown.
    List {
        /// Whose.
        #[arg(long, value_name = "NAME", default_value = "local")]
        tenant: TenantId,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Removes a secret or a setting.
    Remove {
        /// Its name.
        name: SettingName,
        /// Whose it is.
        #[arg(long, value_name = "NAME", default_value = "local")]
        tenant: TenantId,
    },
}

pub(super) fn run(place: &Place, command: Command, out: Output) -> anyhow::Result<Outcome> {
    let vault = place.vault()?;
    match command {
        Command::Set {
            name,
            value,
            tenant,
        } => {
            match (is_secret(place, &name)?, value) {
                (true, Some(_)) => bail!(
                    "`{name}` is a secret: leave the value out and type it when asked, or pipe it \
                     in, so that it stands in no history or process list"
                ),
                (true, None) => {
                    let secret = read_value(&name, true)?.into();
                    vault.set_secret(&tenant, &name, &secret, &mut OsRng.unwrap_err())?;
                }
                (false, value) => {
                    let value = value.map_or_else(|| read_value(&name, false), Ok)?;
                    vault.set_config(&tenant, &name, &value)?;
                }
            }
            out.note(format!("{name} is set for tenant {tenant}"));
        }
        Command::List { tenant, json } => {
            let (secrets, config) = (vault.secrets(&tenant)?, vault.configs(&tenant)?);
            if json {
                out.json(&json!({ "secrets": secrets, "config": config }))?;
                return Ok(Outcome::Done);
            }
            let secrets = secrets
                .into_iter()
                .map(|name| vec![name, "(secret)".to_owned()]);
            let config = config.into_iter().map(|(name, value)| vec![name, value]);
            out.table(&secrets.chain(config).collect::<Vec<_>>());
        }
        Command::Remove { name, tenant } => {
            vault.remove(&tenant, &name)?;
            out.note(format!("{name} is removed for tenant {tenant}"));
        }
    }
    Ok(Outcome::Done)
}

/// Whether the catalog declares the name as a secret. A name that no server declares is taken for
/// a slip.
fn is_secret(place: &Place, name: &SettingName) -> anyhow::Result<bool> {
    let loaded = place.published_catalog()?;
    let mut known: Vec<&SettingName> = Vec::new();
    for server in loaded.catalog.servers() {
        if server.secrets.iter().any(|slot| &slot.name == name) {
            return Ok(true);
        }
        if server.config.iter().any(|slot| &slot.name == name) {
            return Ok(false);
        }
        known.extend(server.secrets.iter().map(|slot| &slot.name));
        known.extend(server.config.iter().map(|slot| &slot.name));
    }
    let alike = |known: &&&SettingName| strsim::jaro_winkler(known.as_str(), name.as_str());
    match known.iter().max_by(|a, b| alike(a).total_cmp(&alike(b))) {
        Some(nearest) => bail!(
            "no server of the catalog asks for `{name}`; did you mean `{nearest}`? `toolcrib \
             catalog show SERVER` names what a server asks for"
        ),
        None => bail!("no server of the catalog asks for `{name}`"),
    }
}

fn read_value(name: &SettingName, hidden: bool) -> anyhow::Result<String> {
    if std::io::stdin().is_terminal() {
        let prompt = format!("{name}: ");
        return match hidden {
            true => rpassword::prompt_password(prompt).context("cannot read from the terminal"),
            false => bail!("give the value: `toolcrib secret set {name} VALUE`"),
        };
    }
    let mut text = String::new();
    let mut input = std::io::stdin().take(INPUT_BYTES_MAX + 1);
    input
        .read_to_string(&mut text)
        .context("cannot read the value from standard input")?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
