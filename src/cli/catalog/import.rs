//! `toolcrib catalog import` and `export`

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::app::Place;
use crate::catalog::import::{
    Collected, Counts, Format, Imported, Note, NoteKind, collect_all, group, read,
};
use crate::catalog::merge::{MergeRules, merge};
use crate::catalog::refresh::{FetchOptions, Origin, fetch_documents};
use crate::catalog::{Loaded, export};
use crate::cli::Outcome;
use crate::cli::output::Output;
use crate::domain::{Server, ServerName};

/// Most kinds of notes that are printed unless all are asked for.
const KINDS_MAX: usize = 40;

#[derive(Debug, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(in crate::cli) struct ImportArgs {
    /// docker, docker-registry, official-registry, mcpm, tools-list, client-config,
    /// live-mcp-bench, toolsdk, open-api, normal-form, toml; or auto to find out.
    format: String,
    /// A file, a folder, or an https URL, whose further pages are followed.
    path: String,
    /// Name of the source; without it the name of the file or folder.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Leaves out servers whose name fits a glob. May be repeated.
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// Leaves out servers whose licence fits a glob; `unknown` where none is known. May be repeated.
    #[arg(long, value_name = "GLOB")]
    exclude_license: Vec<String>,
    /// Reads and reports, and writes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Prints every note, not one line for each kind.
    #[arg(long)]
    notes: bool,
    /// Counts and notes as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(in crate::cli) enum ExportFormat {
    /// One server a line, all that is known of it.
    NormalForm,
    /// A compiled Docker MCP catalog, version 3, as YAML.
    Docker,
    /// The result of one `tools/list`, as JSON.
    ToolsList,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ExportArgs {
    /// What to write.
    #[arg(value_enum, default_value = "normal-form")]
    format: ExportFormat,
    /// Where to; without it standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// All that one import did.
struct Taken {
    servers: Vec<Server>,
    notes: Vec<Note>,
    formats: Vec<(Format, Counts)>,
}

impl Taken {
    fn tools(&self) -> usize {
        self.servers.iter().map(|server| server.tools.len()).sum()
    }

    fn tools_with_arguments(&self) -> usize {
        let tools = self.servers.iter().flat_map(|server| &server.tools);
        tools
            .filter(|tool| !tool.input().arguments().is_empty())
            .count()
    }
}

/// Reads what is at the path and keeps it in the data folder as one source.
pub(super) async fn import(
    place: &Place,
    args: &ImportArgs,
    out: Output,
) -> anyhow::Result<Outcome> {
    let format = match args.format.as_str() {
        "auto" => None,
        named => Some(named.parse::<Format>()?),
    };
    let name = source_name(args)?;
    let rules = MergeRules::new(&args.exclude, &args.exclude_license)?;
    let taken = take(place, &args.path, format, &rules).await?;
    if taken.servers.is_empty() {
        print_notes(&taken, args, out)?;
        bail!("nothing in `{}` could be taken", args.path);
    }
    let file = place.home.catalog().join(format!("{name}.jsonl"));
    if !args.dry_run {
        write_whole(&file, &export::lines(&taken.servers))?;
    }
    if args.json {
        out.json(&to_json(&taken, &file))?;
        return Ok(Outcome::Done);
    }
    print_notes(&taken, args, out)?;
    let tools = taken.tools();
    out.line(out.strong(&format!(
        "{} servers, {} of them with tools; {tools} tools, {} of them with arguments",
        taken.servers.len(),
        taken.servers.iter().filter(|server| !server.tools.is_empty()).count(),
        taken.tools_with_arguments(),
    )));
    match args.dry_run {
        true => out.note("nothing was written: --dry-run"),
        false => out.note(format!("source `{name}` is in {}", file.display())),
    }
    Ok(Outcome::Done)
}

/// Writes the catalog as it is served.
pub(super) fn export(loaded: &Loaded, args: &ExportArgs, out: Output) -> anyhow::Result<Outcome> {
    let catalog = &loaded.catalog;
    let text = match args.format {
        ExportFormat::NormalForm => export::normal_form(catalog),
        ExportFormat::Docker => export::docker_v3(catalog),
        ExportFormat::ToolsList => export::tools_list(catalog),
    };
    match &args.output {
        Some(file) => write_whole(file, &text)?,
        None => out.line(text.trim_end()),
    }
    let (servers, tools) = (catalog.servers().len(), catalog.len());
    out.note(format!("{servers} servers and {tools} tools"));
    Ok(Outcome::Done)
}

/// The name of the source: legal as a file and as a name of ours.
fn source_name(args: &ImportArgs) -> anyhow::Result<ServerName> {
    if let Some(name) = &args.name {
        return name
            .parse()
            .context("the name of a source is written like that of a server");
    }
    if is_url(&args.path) {
        let plain = args.path.split(['?', '#']).next().unwrap_or_default();
        let whole = plain.split_once("://").map_or(plain, |(_, rest)| rest);
        return ServerName::nearest_to(whole).context("the URL gives no name: add --name");
    }
    let path = Path::new(&args.path);
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    ServerName::nearest_to(&stem).context("the path gives no name for the source: add --name")
}

fn is_url(path: &str) -> bool {
    path.starts_with("https://") || path.starts_with("http://")
}

/// The documents by format, each read, then made one: a format that says more about a server
/// wins over one that says less.
async fn take(
    place: &Place,
    path: &str,
    format: Option<Format>,
    rules: &MergeRules,
) -> anyhow::Result<Taken> {
    let (groups, mut notes) = match is_url(path) {
        true => fetch(place, path, format).await?,
        false => collect_all(Path::new(path), format)?,
    };
    let mut sources = Vec::new();
    let mut formats = Vec::new();
    for group in groups {
        let Imported { servers, report } = read(group.format, &group.documents);
        notes.extend(report.notes);
        formats.push((group.format, report.counts));
        sources.push((group.format.to_string(), servers));
    }
    let (servers, merged) = merge(sources, rules);
    notes.extend(merged);
    Ok(Taken {
        servers,
        notes,
        formats,
    })
}

/// The documents that a URL leads to, by format.
async fn fetch(
    place: &Place,
    path: &str,
    format: Option<Format>,
) -> anyhow::Result<(Vec<Collected>, Vec<Note>)> {
    let Origin::Url(url) = Origin::of_url(path, place.config.catalog.allow_loopback)? else {
        bail!("`{path}` is no URL")
    };
    let left_out = Mutex::new(Vec::new());
    let report = |why: String| {
        let mut left_out = left_out.lock().unwrap_or_else(PoisonError::into_inner);
        left_out.push(why);
    };
    let documents = fetch_documents(&url, FetchOptions::default(), &report)
        .await
        .with_context(|| format!("cannot fetch `{path}`"))?;
    let (groups, mut notes) = group(documents, format);
    let left_out = left_out
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    notes.extend(left_out.into_iter().map(|why| Note {
        place: path.to_owned(),
        kind: NoteKind::Noted,
        what: "list of tools".to_owned(),
        why,
    }));
    Ok((groups, notes))
}

/// Into a temporary file beside it, then in its place: a reader sees the old or the new one.
fn write_whole(file: &Path, text: &str) -> anyhow::Result<()> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let wrong = || format!("cannot write `{}`", file.display());
    std::fs::create_dir_all(folder).with_context(wrong)?;
    let mut temporary = tempfile::NamedTempFile::new_in(folder).with_context(wrong)?;
    temporary.write_all(text.as_bytes()).with_context(wrong)?;
    temporary.as_file().sync_all().with_context(wrong)?;
    temporary.persist(file).with_context(wrong)?;
    Ok(())
}

fn to_json(taken: &Taken, file: &Path) -> Value {
    let formats: Vec<Value> = taken
        .formats
        .iter()
        .map(|(format, counts)| {
            json!({
                "format": format.to_string(),
                "documents": { "in": counts.documents_in, "refused": counts.documents_refused },
                "servers": { "in": counts.servers_in, "out": counts.servers_out,
                             "refused": counts.servers_refused, "merged": counts.servers_merged },
                "tools": { "in": counts.tools_in, "out": counts.tools_out,
                           "refused": counts.tools_refused, "merged": counts.tools_merged },
            })
        })
        .collect();
    let notes: Vec<Value> = taken
        .notes
        .iter()
        .map(|note| {
            json!({ "place": note.place, "kind": note.kind.to_string(), "what": note.what,
                    "why": note.why })
        })
        .collect();
    json!({
        "file": file.display().to_string(),
        "servers": taken.servers.len(),
        "servers_with_tools": taken.servers.iter().filter(|s| !s.tools.is_empty()).count(),
        "tools": taken.tools(),
        "tools_with_arguments": taken.tools_with_arguments(),
        "formats": formats,
        "notes": notes,
    })
}

fn print_notes(taken: &Taken, args: &ImportArgs, out: Output) -> anyhow::Result<()> {
    if args.json {
        return out.json(&to_json(taken, Path::new(&args.path)));
    }
    let mut rows = vec![
        [
            "format",
            "documents",
            "servers",
            "tools",
            "refused",
            "merged",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for (format, counts) in &taken.formats {
        rows.push(vec![
            format.to_string(),
            (counts.documents_in - counts.documents_refused).to_string(),
            format!("{} of {}", counts.servers_out, counts.servers_in),
            format!("{} of {}", counts.tools_out, counts.tools_in),
            format!(
                "{} servers, {} tools",
                counts.servers_refused, counts.tools_refused
            ),
            format!(
                "{} servers, {} tools",
                counts.servers_merged, counts.tools_merged
            ),
        ]);
    }
    out.table(&rows);
    if args.notes {
        for note in &taken.notes {
            out.line(note.to_string());
        }
        return Ok(());
    }
    let mut kinds: BTreeMap<(NoteKind, String), Vec<&Note>> = BTreeMap::new();
    for note in &taken.notes {
        kinds
            .entry((note.kind, without_quotes(&note.why)))
            .or_default()
            .push(note);
    }
    let all = kinds.len();
    for ((kind, why), notes) in kinds.into_iter().take(KINDS_MAX) {
        let example = notes.first().map_or("", |note| note.place.as_str());
        let count = notes.len();
        out.line(format!("{kind} {count}: {why} ({example})"));
    }
    if KINDS_MAX < all {
        out.line(format!("and {} other kinds", all - KINDS_MAX));
    }
    out.line(out.dim("every one with its reason: --notes"));
    Ok(())
}

/// A reason without what it quotes and counts, so that like ones are counted together.
fn without_quotes(why: &str) -> String {
    let plain: String = why
        .split('`')
        .enumerate()
        .map(|(at, part)| if at % 2 == 0 { part } else { "..." })
        .collect();
    plain
        .split(' ')
        .map(|word| match word.chars().all(|c| c.is_ascii_digit()) {
            true => "n",
            false => word,
        })
        .collect::<Vec<_>>()
        .join(" ")
}
