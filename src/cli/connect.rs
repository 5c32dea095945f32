//! `toolcrib connect`

use serde_json::{Value, json};

use crate::app::Place;
use crate::cli::Outcome;
use crate::cli::output::Output;

/// Stands for the key in what is printed: keys are shown once, by `tenant add`.
const KEY: &str = "KEY-ID.SECRET";

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Codex,
    Cursor,
    Vscode,
    Gemini,
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The client.
    client: Client,
    /// Address of the server, when it is another than the configured one.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Lets the client start Toolcrib itself, on standard streams.
    #[arg(long)]
    stdio: bool,
}

pub(super) fn run(place: &Place, args: &Args, out: Output) -> anyhow::Result<Outcome> {
    let listen = place.config.server.listen;
    let url = args
        .url
        .clone()
        .unwrap_or_else(|| format!("http://{listen}/mcp"));
    let with_key = !place.directory().is_empty()? && !args.stdio;
    if args.stdio {
        let program = std::env::current_exe()?.display().to_string();
        out.line(on_streams(args.client, &program));
    } else {
        out.line(over_http(args.client, &url, with_key));
    }
    if with_key {
        out.note(format!(
            "put a tenant's key in the place of {KEY}: `toolcrib tenant rotate NAME` shows a new one"
        ));
    }
    Ok(Outcome::Done)
}

fn over_http(client: Client, url: &str, with_key: bool) -> String {
    let header = format!("Authorization: Bearer {KEY}");
    let entry = |fields: &[(&str, Value)]| {
        let mut entry: serde_json::Map<String, Value> = fields
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect();
        if with_key {
            let headers = json!({ "Authorization": format!("Bearer {KEY}") });
            entry.insert("headers".to_owned(), headers);
        }
        entry
    };
    match client {
        Client::ClaudeCode => {
            let header = if with_key {
                format!(" --header \"{header}\"")
            } else {
                String::new()
            };
            format!("claude mcp add --transport http toolcrib {url}{header}")
        }
        Client::Codex => {
            let key = "bearer_token_env_var = \"TOOLCRIB_BEARER\"\n";
            let key = if with_key { key } else { "" };
            format!("# ~/.codex/config.toml\n[mcp_servers.toolcrib]\nurl = \"{url}\"\n{key}")
        }
        Client::Cursor => {
            let entry = entry(&[("url", url.into())]);
            file(
                ".cursor/mcp.json",
                &json!({ "mcpServers": { "toolcrib": entry } }),
            )
        }
        Client::Vscode => {
            let entry = entry(&[("type", "http".into()), ("url", url.into())]);
            file(
                ".vscode/mcp.json",
                &json!({ "servers": { "toolcrib": entry } }),
            )
        }
        Client::Gemini => {
            let entry = entry(&[("httpUrl", url.into())]);
            file(
                "~/.gemini/settings.json",
                &json!({ "mcpServers": { "toolcrib": entry } }),
            )
        }
        Client::ClaudeDesktop => {
            let mut args = vec!["-y", "mcp-remote@0.15.1", url];
            if with_key {
                args.extend(["--header", &header]);
            }
            let entry = json!({ "command": "npx", "args": args });
            file(
                "claude_desktop_config.json",
                &json!({ "mcpServers": { "toolcrib": entry } }),
            )
        }
    }
}

fn on_streams(client: Client, program: &str) -> String {
    let entry = json!({ "command": program, "args": ["serve", "--stdio"] });
    let servers = json!({ "mcpServers": { "toolcrib": entry } });
    match client {
        Client::ClaudeCode => format!("claude mcp add toolcrib -- {program} serve --stdio"),
        Client::Codex => format!(
            "# ~/.codex/config.toml\n[mcp_servers.toolcrib]\ncommand = \"{program}\"\n\
             args = [\"serve\", \"--stdio\"]\n"
        ),
        Client::Vscode => file(
            ".vscode/mcp.json",
            &json!({ "servers": { "toolcrib": entry } }),
        ),
        Client::Cursor => file(".cursor/mcp.json", &servers),
        Client::Gemini => file("~/.gemini/settings.json", &servers),
        Client::ClaudeDesktop => file("claude_desktop_config.json", &servers),
    }
}

fn file(path: &str, content: &Value) -> String {
    let text = serde_json::to_string_pretty(content).unwrap_or_default();
    format!("// {path}\n{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_its_lines() {
        let url = "http://127.0.0.1:8787/mcp";
        let mut all = String::new();
        for client in <Client as clap::ValueEnum>::value_variants() {
            all += &format!("== {client:?}\n{}\n", over_http(*client, url, false));
            all += &format!(
                "== {client:?} with a key\n{}\n",
                over_http(*client, url, true)
            );
            all += &format!(
                "== {client:?} on streams\n{}\n",
                on_streams(*client, "toolcrib")
            );
        }
        insta::assert_snapshot!(all);
    }
}
