//! `toolcrib run`

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

use crate::app::{App, Place};
use crate::call::{CallError, CallerSide, Problem};
use crate::cli::Outcome;
use crate::cli::output::Output;
use crate::domain::{ParseNameError, Tenant, TenantId, ToolId};
use crate::lifecycle::Lifecycle;
use crate::telemetry::Chain;

/// Names less alike than this are no help.
const ALIKE_MIN: f64 = 0.75;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The tool, as SERVER/TOOL.
    tool: String,
    /// Its arguments, as a JSON object.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    args: String,
    /// Prints the server's result as it is.
    #[arg(long)]
    json: bool,
    /// Whose secrets and settings are used.
    #[arg(long, value_name = "NAME", default_value = "local")]
    tenant: TenantId,
}

pub(super) async fn run(place: Place, args: Args, out: Output) -> anyhow::Result<Outcome> {
    let tool: ToolId = match args.tool.parse() {
        Err(ParseNameError::NoSlash(text)) => {
            bail!("`{text}` is not SERVER/TOOL; `toolcrib search` finds tools")
        }
        parsed => parsed.context("no tool")?,
    };
    let arguments: Value = serde_json::from_str(&args.args)
        .context("--args is not a JSON object, such as '{\"a\": 1}'")?;
    let app = App::start_without_model(place, Lifecycle::new())?;
    let tenant = Tenant {
        id: args.tenant,
        ..Tenant::local()
    };
    let side = CallerSide::default();
    let cancel = side.cancel.clone();
    let result = {
        let call = app.caller().call_directly(&tenant, &tool, arguments, side);
        tokio::pin!(call);
        tokio::select! {
            result = &mut call => result,
            _ = tokio::signal::ctrl_c() => {
                cancel.cancel();
                call.await
            }
        }
    };
    app.close().await;
    match result {
        Ok(outcome) => {
            let failed = outcome.result.get("isError") == Some(&Value::Bool(true));
            match args.json {
                true => out.json(&outcome.result)?,
                false => print(&outcome.result, out),
            }
            Ok(if failed {
                Outcome::Failed
            } else {
                Outcome::Done
            })
        }
        Err(error) if args.json => {
            out.json(&json!({ "error": error.code(), "message": describe(&app, &error) }))?;
            Ok(Outcome::Failed)
        }
        Err(error @ CallError::UnknownTool { .. }) => bail!("{}", describe(&app, &error)),
        Err(error) => bail!("{}: {}", error.code(), describe(&app, &error)),
    }
}

/// What a person reads: texts as they are, structured content where there is no other, the rest by
/// name.
fn print(result: &Map<String, Value>, out: Output) {
    let blocks = result.get("content").and_then(Value::as_array);
    for block in blocks.into_iter().flatten() {
        let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "text" => out.line(pretty(text("text"))),
            kind @ ("image" | "audio") => {
                let bytes = text("data").len() / 4 * 3;
                let what = text("mimeType");
                out.line(format!(
                    "[{kind}, {what}, about {bytes} bytes; --json has it]"
                ));
            }
            "resource_link" => out.line(format!("[{}: {}]", text("name"), text("uri"))),
            "resource" => {
                let inner = |key: &str| block["resource"][key].as_str().unwrap_or_default();
                out.line(format!("[resource {}]\n{}", inner("uri"), inner("text")));
            }
            kind => out.line(format!("[{kind}; --json has it]")),
        }
    }
    if blocks.is_none_or(Vec::is_empty) {
        match result.get("structuredContent") {
            Some(content) => out.line(serde_json::to_string_pretty(content).unwrap_or_default()),
            None => out.note("the tool gave an empty result"),
        }
    }
    if result.get("isError") == Some(&Value::Bool(true)) {
        out.note("the tool reported an error");
    }
}

/// Text that is JSON, indented.
fn pretty(text: &str) -> String {
    let parsed = serde_json::from_str::<Value>(text).ok();
    let nested = parsed.filter(|value| value.is_object() || value.is_array());
    nested
        .and_then(|v| serde_json::to_string_pretty(&v).ok())
        .unwrap_or_else(|| text.to_owned())
}

fn describe(app: &App, error: &CallError) -> String {
    match error {
        CallError::UnknownTool { tool } => unknown(app, tool),
        CallError::InvalidArguments { tool, problems, .. } => {
            let lines: Vec<String> = problems.iter().map(problem).collect();
            format!(
                "the arguments of `{tool}` do not fit\n  {}",
                lines.join("\n  ")
            )
        }
        CallError::MissingCredentials {
            secrets, config, ..
        } => {
            let names = secrets.iter().chain(config);
            let commands: Vec<String> = names
                .map(|name| format!("toolcrib secret set {name}"))
                .collect();
            format!("{}\n  {}", Chain(error), commands.join("\n  "))
        }
        error => Chain(error).to_string(),
    }
}

fn unknown(app: &App, tool: &ToolId) -> String {
    let catalog = app.catalog();
    let Some(server) = catalog.server(&tool.server) else {
        let names = catalog.servers().iter().map(|server| server.name.as_str());
        return match nearest(tool.server.as_str(), names) {
            Some(name) => format!(
                "there is no server `{}`; did you mean `{name}`?",
                tool.server
            ),
            None => format!(
                "there is no server `{}`: see `toolcrib catalog list`",
                tool.server
            ),
        };
    };
    match nearest(
        tool.tool.as_str(),
        server.tools.iter().map(|tool| tool.name().as_str()),
    ) {
        Some(name) => format!(
            "there is no tool `{tool}`; did you mean `{}/{name}`?",
            tool.server
        ),
        None => format!(
            "there is no tool `{tool}`: see `toolcrib catalog show {}`",
            tool.server
        ),
    }
}

fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let alike = |name: &&str| strsim::jaro_winkler(name, given);
    known
        .max_by(|a, b| alike(a).total_cmp(&alike(b)))
        .filter(|name| ALIKE_MIN <= alike(name))
}

fn problem(problem: &Problem) -> String {
    let nearest = problem.nearest.as_ref();
    let nearest = nearest
        .map(|name| format!("; did you mean `{name}`?"))
        .unwrap_or_default();
    let path = if problem.path.is_empty() {
        "arguments"
    } else {
        &problem.path
    };
    format!("{path}: {}{nearest}", problem.expected)
}
