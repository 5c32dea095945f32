//! The toolsdk registry: an index of packages with names and descriptions of their tools, and one
//! file a package with how it runs. Files complete the index.

use std::collections::HashMap;

use serde_json::Value;

use crate::catalog::import::Document;
use crate::catalog::import::docker::owner_of;
use crate::catalog::import::intake::Intake;
use crate::catalog::import::source::{entries, parse, text};
use crate::catalog::import::wiring::{Commands, Hint, Wiring};
use crate::domain::{Launch, Server};

struct Package<'a> {
    place: String,
    name: String,
    index: Option<&'a Value>,
    file: Option<&'a Value>,
}

/// Reads indexes and package files together.
pub(super) fn read(intake: &mut Intake, documents: &[&Document]) {
    let mut values = Vec::new();
    for document in documents {
        match parse(document) {
            Ok(value) => values.push((&document.name, value)),
            Err(why) => intake.refuse_document(&document.name, why),
        }
    }
    let mut packages: Vec<Package<'_>> = Vec::new();
    let mut at: HashMap<&str, usize> = HashMap::new();
    let is_file = |value: &Value| value.get("packageName").is_some();
    for (file, value) in values.iter().filter(|(_, value)| !is_file(value)) {
        for (name, entry) in value.as_object().into_iter().flatten() {
            // An index that is given twice is united by the intake.
            at.entry(name).or_insert(packages.len());
            packages.push(Package {
                place: format!("{file}#/{name}"),
                name: name.clone(),
                index: Some(entry),
                file: None,
            });
        }
    }
    for (file, value) in values.iter().filter(|(_, value)| is_file(value)) {
        let name = text(value, &["packageName"]);
        match at.get(name).and_then(|at| packages.get_mut(*at)) {
            Some(package) if package.file.is_none() => package.file = Some(value),
            _ => packages.push(Package {
                place: (*file).clone(),
                name: name.to_owned(),
                index: None,
                file: Some(value),
            }),
        }
    }
    for package in &packages {
        read_package(intake, package);
    }
}

fn read_package(intake: &mut Intake, package: &Package<'_>) {
    let none = Value::Null;
    let (index, file) = (
        package.index.unwrap_or(&none),
        package.file.unwrap_or(&none),
    );
    let listed: Vec<(&String, &Value)> = entries(index, "tools").collect();
    let place = package.place.as_str();
    let Some(name) = intake.name(place, &package.name, listed.len()) else {
        return;
    };
    let placed = listed.iter();
    let placed = placed.map(|(key, tool)| (format!("{place}/tools/{key}"), *tool));
    let mut server = Server::new(name.clone(), intake.tools(&name, placed.collect()));
    server.title = text(file, &["name"]).into();
    server.description = text(file, &["description"]).into();
    server.category = text(index, &["category"]).into();
    server.owner = owner_of(text(file, &["url"])).into();
    server.provenance.license = match text(file, &["license"]) {
        "unknown" => "",
        license => license,
    }
    .into();
    let mut wiring = Wiring::new(&name, Commands::Runners);
    let launch = wire(&mut wiring, &package.name, file);
    for (kind, why) in wiring.finish(&mut server, launch) {
        intake.note(kind, place, name.as_str(), why);
    }
    intake.take(place, server);
}

fn wire(wiring: &mut Wiring, package: &str, file: &Value) -> Option<Launch> {
    let mut env = Vec::new();
    for (variable, about) in entries(file, "env") {
        let hint = Hint {
            description: text(about, &["description"]).to_owned(),
            required: about["required"].as_bool(),
            ..Hint::default()
        };
        wiring.hint(variable, hint);
        env.push((variable.clone(), format!("${{{variable}}}")));
    }
    let package = package.to_owned();
    match text(file, &["runtime"]) {
        "node" => wiring.stdio("npx", &["-y".to_owned(), package], &env),
        "python" => wiring.stdio("uvx", &[package], &env),
        // The index alone does not say how a package runs.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::catalog::import::{Document, Format, read};

    #[test]
    fn package_files_complete_the_index() {
        let document = |name: &str, text: &str| Document {
            name: name.to_owned(),
            text: text.to_owned(),
        };
        let index = r#"{
            "@acme/post": {"category": "communication", "path": "c/post.json", "validated": true,
                "tools": {"send": {"name": "send", "description": "Send a letter."}}},
            "@acme/empty": {"category": "other", "path": "o/empty.json"}
        }"#;
        let file = r#"{"type": "mcp-server", "packageName": "@acme/post", "name": "Post",
            "description": "Letters.", "url": "https://github.com/acme/post", "runtime": "node",
            "license": "MIT", "env": {"POST_KEY": {"description": "Key.", "required": false}}}"#;
        let documents = [document("index.json", index), document("post.json", file)];
        for document in &documents {
            let found = Format::detect(&document.name, &document.text);
            assert_eq!(found, Some(Format::Toolsdk));
        }
        let imported = read(Format::Toolsdk, &documents);
        let counts = imported.report.counts;
        assert!(counts.balance());
        assert_eq!(
            (
                counts.servers_in,
                counts.servers_out,
                counts.servers_refused
            ),
            (2, 1, 1)
        );
        let server = &imported.servers[0];
        assert_eq!((server.name.as_str(), server.tools.len()), ("acme-post", 1));
        assert!(server.secrets[0].optional);
    }
}
