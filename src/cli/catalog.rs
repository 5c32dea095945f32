//! `toolcrib catalog`

mod filter;
mod import;
mod refresh;
mod waiting;

use std::path::PathBuf;

use anyhow::bail;
use serde_json::{Value, json};

use crate::app::Place;
use crate::catalog::scan::{KnownNames, Severity, scan_catalog, worst};
use crate::catalog::{Loaded, export, load, read_folder};
use crate::cli::Outcome;
use crate::cli::output::Output;
use crate::domain::{Launch, Server, ServerName, Tool, shorten};

/// Widest list of needs in a table, in characters; `show` prints all of them.
const NEEDS_MAX: usize = 60;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Lists all servers.
    List {
        /// As a JSON array.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        filter: filter::Filter,
    },
    /// Shows a server with its tools, or one tool as SERVER/TOOL.
    Show {
        /// SERVER or SERVER/TOOL.
        name: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Names every fault of the catalog files, with line and remedy, and what looks suspicious.
    /// Exit code 3 if there is any fault.
    Check {
        /// Files or folders to check instead of the configured catalog.
        paths: Vec<PathBuf>,
        /// As a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Takes over what others publish, from a file or folder, and says what became of each item.
    Import(import::ImportArgs),
    /// Writes the catalog in normal form, as a Docker catalog, or as a list of tools.
    Export(import::ExportArgs),
    /// Reads the configured sources again, and publishes what changed.
    Refresh(refresh::Args),
    /// Shows what waits to be approved. Exit code 3 if anything does.
    Diff(waiting::DiffArgs),
    /// Lets in what waits.
    Approve(waiting::ApproveArgs),
}

pub(super) async fn run(place: Place, command: &Command, out: Output) -> anyhow::Result<Outcome> {
    match command {
        Command::Import(args) => import::import(&place, args, out).await,
        Command::Export(args) => import::export(&place.published_catalog()?, args, out),
        Command::Refresh(args) => refresh::run(place, args, out).await,
        Command::Diff(args) => waiting::diff(&place, args, out),
        Command::Approve(args) => waiting::approve(&place, args, out),
        Command::List { json, filter } => list(&place.published_catalog()?, filter, *json, out),
        Command::Show { name, json } => show(&place.published_catalog()?, name, *json, out),
        Command::Check { paths, json } => {
            let loaded = match paths.is_empty() {
                true => place.published_catalog()?,
                false => load(
                    &paths
                        .iter()
                        .map(|path| read_folder(path))
                        .collect::<Result<Vec<_>, _>>()?,
                ),
            };
            check(&loaded, *json, out)
        }
    }
}

fn list(
    loaded: &Loaded,
    filter: &filter::Filter,
    json: bool,
    out: Output,
) -> anyhow::Result<Outcome> {
    let servers = filter.servers(&loaded.catalog)?;
    if json {
        let row = |server: &&Server| {
            json!({
                "name": server.name.as_str(),
                "title": &*server.title,
                "category": &*server.category,
                "tools": server.tools.len(),
                "source": &*server.provenance.source,
                "license": &*server.provenance.license,
            })
        };
        out.json(&servers.iter().map(row).collect::<Vec<_>>())?;
        return Ok(Outcome::Done);
    }
    let mut rows = vec![
        ["server", "tools", "category", "needs", "title"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for server in &servers {
        rows.push(vec![
            server.name.to_string(),
            server.tools.len().to_string(),
            server.category.to_string(),
            shorten(&needs(server), NEEDS_MAX).into_owned(),
            server.title.to_string(),
        ]);
    }
    out.table(&rows);
    out.line(out.dim(&format!(
        "{} servers, {} tools",
        servers.len(),
        servers.iter().map(|server| server.tools.len()).sum::<usize>()
    )));
    if !loaded.faults.is_empty() {
        out.note(format!(
            "{} faults: see `toolcrib catalog check`",
            loaded.faults.len()
        ));
    }
    Ok(Outcome::Done)
}

fn needs(server: &Server) -> String {
    let secrets = server
        .secrets
        .iter()
        .filter(|slot| !slot.optional)
        .map(|slot| &slot.name);
    let config = server
        .config
        .iter()
        .filter(|slot| !slot.optional && slot.default.is_none());
    let names: Vec<String> = secrets
        .chain(config.map(|slot| &slot.name))
        .map(ToString::to_string)
        .collect();
    if names.is_empty() {
        "-".to_owned()
    } else {
        names.join(",")
    }
}

fn show(loaded: &Loaded, name: &str, json: bool, out: Output) -> anyhow::Result<Outcome> {
    let (server, tool) = match name.split_once('/') {
        Some((server, tool)) => (server, Some(tool)),
        None => (name, None),
    };
    let parsed = server.parse::<ServerName>().ok();
    let Some(server) = parsed.and_then(|name| loaded.catalog.server(&name)) else {
        bail!("there is no server `{server}`: `toolcrib catalog list` shows all")
    };
    let Some(tool) = tool else {
        match json {
            true => out.json(&server_json(server))?,
            false => print_server(server, out),
        }
        return Ok(Outcome::Done);
    };
    let Some(tool) = server
        .tools
        .iter()
        .find(|known| known.name().as_str() == tool)
    else {
        let name = &server.name;
        bail!("server `{name}` has no tool `{tool}`: `toolcrib catalog show {name}` lists them")
    };
    match json {
        true => out.json(&tool_json(tool))?,
        false => print_tool(tool, out),
    }
    Ok(Outcome::Done)
}

fn server_json(server: &Server) -> Value {
    let mut value = export::server_json(server);
    value["launch"] = launch_text(server.launch.as_ref()).into();
    value["tools"] = server.tools.iter().map(tool_json).collect();
    value
}

fn tool_json(tool: &Tool) -> Value {
    json!({
        "name": tool.name().as_str(),
        "title": tool.title(),
        "description": tool.description(),
        "input_schema": tool.input().schema(),
        "output_schema": tool.output_schema(),
        "keywords": tool.keywords(),
        "hash": tool.hash().to_string(),
    })
}

fn launch_text(launch: Option<&Launch>) -> String {
    match launch {
        None => "none known".to_owned(),
        Some(Launch::Stdio { command, args, .. }) => {
            let args: Vec<String> = args.iter().map(ToString::to_string).collect();
            format!("{command} {}", args.join(" "))
        }
        Some(Launch::Http { url, .. }) => url.to_string(),
        Some(Launch::Docker { image, .. }) => format!("docker run {image}"),
        Some(Launch::OpenApi {
            base_url,
            operations,
            ..
        }) => format!("{} HTTP operations at {base_url}", operations.len()),
    }
}

fn print_server(server: &Server, out: Output) {
    out.line(out.strong(&format!("{} ({})", server.title, server.name)));
    out.line(&*server.description);
    out.line(format!("launch: {}", launch_text(server.launch.as_ref())));
    let optional = |optional: bool| if optional { ", optional" } else { "" };
    for slot in &server.secrets {
        let mark = optional(slot.optional);
        out.line(format!("secret {}{mark}: {}", slot.name, slot.description));
    }
    for slot in &server.config {
        let default = slot
            .default
            .as_ref()
            .map(|text| format!(", default {text}"));
        let (default, mark) = (default.unwrap_or_default(), optional(slot.optional));
        out.line(format!(
            "setting {}{default}{mark}: {}",
            slot.name, slot.description
        ));
    }
    let from = &server.provenance;
    out.line(format!(
        "from {} {}, licence {}",
        from.source, from.version, from.license
    ));
    let row = |tool: &Tool| {
        let text = shorten(tool.description(), 90).replace('\n', " ");
        vec![format!("  {}", tool.name()), text]
    };
    out.table(&server.tools.iter().map(row).collect::<Vec<_>>());
}

fn print_tool(tool: &Tool, out: Output) {
    out.line(out.strong(tool.name().as_str()));
    out.line(tool.description());
    for argument in tool.input().arguments() {
        let optional = if argument.required { "" } else { ", optional" };
        let (name, shape) = (&argument.name, &argument.shape);
        out.line(format!(
            "  {name} ({shape}{optional}): {}",
            argument.description
        ));
    }
}

/// What the scanner says of the catalog, worth a look or worse.
fn print_findings(loaded: &Loaded, out: Output) {
    let known = KnownNames::of(&loaded.catalog);
    for suspicion in scan_catalog(&loaded.catalog, &known) {
        if worst(&suspicion.findings) < Some(Severity::Medium) {
            continue;
        }
        for finding in &suspicion.findings {
            let line = format!("{}: {finding}", suspicion.of);
            match finding.severity {
                Severity::High => out.line(out.bad(&line)),
                Severity::Medium => out.line(line),
                Severity::Low => out.line(out.dim(&line)),
            }
        }
    }
}

fn check(loaded: &Loaded, json: bool, out: Output) -> anyhow::Result<Outcome> {
    if json {
        let row = |fault: &crate::catalog::manifest::Fault| {
            json!({ "file": &*fault.file, "line": fault.line, "message": &*fault.message,
                    "remedy": &*fault.remedy })
        };
        out.json(&loaded.faults.iter().map(row).collect::<Vec<_>>())?;
    } else {
        for fault in &loaded.faults {
            out.line(fault.to_string());
        }
        print_findings(loaded, out);
        let (servers, tools) = (loaded.catalog.servers().len(), loaded.catalog.len());
        out.note(match loaded.faults.len() {
            0 => format!("{servers} servers and {tools} tools, no fault"),
            faults => format!("{faults} faults; {servers} servers and {tools} tools are good"),
        });
    }
    match loaded.faults.is_empty() {
        true => Ok(Outcome::Done),
        false => Ok(Outcome::FoundProblems),
    }
}
