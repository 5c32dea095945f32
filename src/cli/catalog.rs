//! `toolcrib catalog`

use std::path::PathBuf;

use anyhow::bail;
use globset::{GlobBuilder, GlobMatcher};
use serde_json::{Value, json};

use crate::app::Place;
use crate::catalog::{Loaded, export, load, read_folder};
use crate::cli::output::Output;
use crate::cli::{Outcome, import};
use crate::domain::{Catalog, Launch, Server, ServerName, Tool, shorten};

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
        filter: Filter,
    },
    /// Shows a server with its tools, or one tool as SERVER/TOOL.
    Show {
        /// SERVER or SERVER/TOOL.
        name: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Names every fault of the catalog files, with line and remedy. Exit code 3 if there is any.
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
}

/// Which servers to list. A glob stands for the whole text, without regard to case.
#[derive(Debug, clap::Args)]
pub(super) struct Filter {
    /// Licence, as a glob such as `apache*`; `unknown` where none is known.
    #[arg(long, value_name = "GLOB")]
    license: Option<String>,
    /// Source, as a glob; `mcpm` stands for all of `mcpm:*`.
    #[arg(long, value_name = "GLOB")]
    source: Option<String>,
    /// Category, as a glob.
    #[arg(long, value_name = "GLOB")]
    category: Option<String>,
}

impl Filter {
    fn servers<'a>(&self, catalog: &'a Catalog) -> anyhow::Result<Vec<&'a Server>> {
        let glob = |text: &Option<String>| -> anyhow::Result<Option<GlobMatcher>> {
            let Some(text) = text else { return Ok(None) };
            let glob = GlobBuilder::new(text).case_insensitive(true).build()?;
            Ok(Some(glob.compile_matcher()))
        };
        let (license, source) = (glob(&self.license)?, glob(&self.source)?);
        let category = glob(&self.category)?;
        let fits = |glob: &Option<GlobMatcher>, texts: &[&str]| match glob {
            Some(glob) => texts.iter().any(|text| glob.is_match(text)),
            None => true,
        };
        let chosen = catalog
            .servers()
            .iter()
            .map(AsRef::as_ref)
            .filter(|server| {
                let from = &server.provenance;
                let known = match &*from.license {
                    "" => "unknown",
                    license => license,
                };
                let kind = from.source.split(':').next().unwrap_or_default();
                fits(&license, &[known])
                    && fits(&source, &[&*from.source, kind])
                    && fits(&category, &[&*server.category])
            });
        Ok(chosen.collect())
    }
}

pub(super) fn run(place: &Place, command: &Command, out: Output) -> anyhow::Result<Outcome> {
    match command {
        Command::List { json, filter } => {
            list(&load(&place.catalog_sources()?), filter, *json, out)
        }
        Command::Import(args) => import::import(place, args, out),
        Command::Export(args) => import::export(&load(&place.catalog_sources()?), args, out),
        Command::Show { name, json } => show(&load(&place.catalog_sources()?), name, *json, out),
        Command::Check { paths, json } => {
            let sources = match paths.is_empty() {
                true => place.catalog_sources()?,
                false => paths
                    .iter()
                    .map(|path| read_folder(path))
                    .collect::<Result<_, _>>()?,
            };
            check(&load(&sources), *json, out)
        }
    }
}

fn list(loaded: &Loaded, filter: &Filter, json: bool, out: Output) -> anyhow::Result<Outcome> {
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
