//! `toolcrib doctor`: everything that has to be right, each with a remedy.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::app::{ModelState, Place, load_embedder};
use crate::catalog::load;
use crate::cli::Outcome;
use crate::cli::output::Output;
use crate::domain::Launch;
use crate::telemetry::Chain;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// As JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Verdict {
    Good,
    /// Works, and could be better.
    Note,
    Bad,
}

struct Finding {
    verdict: Verdict,
    what: String,
    remedy: Option<String>,
}

pub(super) async fn run(place: &Place, args: &Args, out: Output) -> anyhow::Result<Outcome> {
    let mut findings = vec![home(place), models(place), model_loads(place).await];
    findings.extend(catalog(place));
    findings.extend(programs(place));
    findings.push(tenants(place));
    findings.push(port(place).await);
    if args.json {
        out.json(&findings.iter().map(to_json).collect::<Vec<Value>>())?;
    } else {
        for finding in &findings {
            print(finding, out);
        }
    }
    let bad = findings
        .iter()
        .any(|finding| finding.verdict == Verdict::Bad);
    Ok(if bad {
        Outcome::FoundProblems
    } else {
        Outcome::Done
    })
}

fn to_json(finding: &Finding) -> Value {
    let verdict = match finding.verdict {
        Verdict::Good => "good",
        Verdict::Note => "note",
        Verdict::Bad => "bad",
    };
    json!({ "verdict": verdict, "what": finding.what, "remedy": finding.remedy })
}

fn print(finding: &Finding, out: Output) {
    let mark = match finding.verdict {
        Verdict::Good => out.good("ok  "),
        Verdict::Note => out.strong("note"),
        Verdict::Bad => out.bad("bad "),
    };
    out.line(format!("{mark} {}", finding.what));
    if let Some(remedy) = &finding.remedy {
        out.line(format!("     remedy: {remedy}"));
    }
}

fn good(what: impl Into<String>) -> Finding {
    Finding {
        verdict: Verdict::Good,
        what: what.into(),
        remedy: None,
    }
}

fn note(what: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding {
        verdict: Verdict::Note,
        what: what.into(),
        remedy: Some(remedy.into()),
    }
}

fn bad(what: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding {
        verdict: Verdict::Bad,
        what: what.into(),
        remedy: Some(remedy.into()),
    }
}

fn home(place: &Place) -> Finding {
    let path = place.home.path();
    let probe = fs::create_dir_all(path).and_then(|()| tempfile::tempfile_in(path));
    match probe {
        Ok(_) => good(format!("data folder {} is writable", path.display())),
        Err(error) => bad(
            format!("data folder {} is not writable: {error}", path.display()),
            "make it writable, or set TOOLCRIB_HOME to another folder",
        ),
    }
}

fn models(place: &Place) -> Finding {
    if !place.config.model.enabled {
        return good("no model is configured; ranking by keywords");
    }
    let models = match place.models() {
        Ok(models) => models,
        Err(error) => return bad(Chain(error.as_ref()).to_string(), "report this"),
    };
    let name = &place.config.model.name;
    let Some(model) = models.pins().model(name) else {
        return bad(format!("there is no model `{name}`"), "correct model.name");
    };
    let Some(runtime) = models.pins().runtime() else {
        return bad(
            "no ONNX runtime is pinned for this platform",
            "set model.enabled = false",
        );
    };
    let faults = [&runtime.bundle, &model.bundle]
        .map(|bundle| models.verify(bundle))
        .concat();
    match faults.first() {
        None => good(format!("model {name} and ONNX runtime are as pinned")),
        Some(fault) => bad(fault.to_string(), "run `toolcrib models fetch`"),
    }
}

async fn model_loads(place: &Place) -> Finding {
    let start = tokio::time::Instant::now();
    match load_embedder(place).await {
        Ok((_, ModelState::Loaded { name })) => good(format!(
            "model {name} loads, in {} ms",
            start.elapsed().as_millis()
        )),
        Ok((_, ModelState::Disabled)) => good("no model to load"),
        Ok((_, ModelState::Missing { reason })) => bad(
            format!("no model is loaded: {reason}"),
            "run `toolcrib models fetch`",
        ),
        Err(error) => bad(
            Chain(error.as_ref()).to_string(),
            "correct the model section",
        ),
    }
}

fn catalog(place: &Place) -> Vec<Finding> {
    let sources = match place.catalog_sources() {
        Ok(sources) => sources,
        Err(error) => {
            return vec![bad(
                Chain(error.as_ref()).to_string(),
                "correct catalog.paths",
            )];
        }
    };
    let loaded = load(&sources);
    let (servers, tools) = (loaded.catalog.servers(), loaded.catalog.len());
    let mut findings = vec![match (tools, loaded.faults.len()) {
        (0, _) => bad(
            "the catalog is empty",
            "set catalog.builtin = true, or catalog.paths",
        ),
        (_, 0) => good(format!("catalog: {} servers, {tools} tools", servers.len())),
        (_, faults) => bad(
            format!("catalog: {faults} faults"),
            "run `toolcrib catalog check`",
        ),
    }];
    let in_containers = servers
        .iter()
        .any(|s| matches!(s.launch, Some(Launch::Docker { .. })));
    if in_containers && !starts("docker") {
        let text = "some servers run in containers, and there is no `docker`";
        findings.push(note(text, "install docker to run them"));
    }
    findings
}

/// Programs that start servers.
fn programs(place: &Place) -> Vec<Finding> {
    let folders = place.upstream_options().installed;
    let installed = folders
        .iter()
        .find(|folder| folder.join("installed.json").is_file());
    let mut findings = vec![match installed {
        Some(folder) => good(format!(
            "reference servers are installed in {}",
            folder.display()
        )),
        None => note(
            "no reference servers are installed, so each first start downloads a package",
            "`make servers` in a checkout installs them; upstreams.installed names other folders",
        ),
    }];
    for (program, what) in [("npx", "Node.js"), ("uvx", "uv, from PyPI")] {
        findings.push(match starts(program) {
            true => good(format!("`{program}` starts")),
            false => note(
                format!("`{program}` does not start; servers that need it cannot run"),
                format!("install {what}"),
            ),
        });
    }
    findings
}

fn starts(program: &str) -> bool {
    let ran = Command::new(program).arg("--version").output();
    ran.is_ok_and(|output| output.status.success())
}

fn tenants(place: &Place) -> Finding {
    let listen = place.config.server.listen;
    match place.directory().list() {
        Err(error) => bad(Chain(&error).to_string(), "restore the file from a backup"),
        Ok(tenants) if !tenants.is_empty() => good(format!("{} tenants", tenants.len())),
        Ok(_) if listen.ip().is_loopback() => {
            good("no tenant: the server runs open, on loopback only")
        }
        Ok(_) => bad(
            format!("no tenant, and server.listen is {listen}"),
            "add one with `toolcrib tenant add NAME`, or listen on 127.0.0.1",
        ),
    }
}

async fn port(place: &Place) -> Finding {
    let listen = place.config.server.listen;
    match tokio::net::TcpListener::bind(listen).await {
        Ok(_) => good(format!("{listen} is free to listen on")),
        Err(error) => note(
            format!("cannot listen on {listen}: {error}"),
            "Toolcrib may be serving there already; else change server.listen",
        ),
    }
}
