//! One catalog file: a server in TOML, read with every fault named at once.
//!
//! A reader that stops at the first fault makes its author run it ten times; so this one walks the
//! document, keeps going, and gives file, line and remedy for each.

mod fault;
mod section;
mod launch;
mod tools;

use toml::de::DeTable;

use crate::catalog::manifest::section::Section;
use crate::domain::{
    ConfigSlot, LaunchError, Provenance, SecretSlot, Server, ServerName, SettingName, Template,
};

pub use self::fault::Fault;
pub(super) use self::launch::unpinned_part;

/// Largest catalog file, in bytes.
pub const FILE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What a file gave: the server if nothing was wrong, and all that was.
#[derive(Debug)]
pub struct Manifest {
    /// The server; `None` when there is any fault.
    pub server: Option<Server>,
    /// All faults, by line.
    pub faults: Vec<Fault>,
}

/// Reads a catalog file. `file` is what faults call it; its stem must be the server's name.
pub fn read(file: &str, text: &str) -> Manifest {
    if FILE_BYTES_MAX < text.len() {
        let message = format!(
            "file has {} bytes, over the limit of {FILE_BYTES_MAX}",
            text.len()
        );
        let fault = Fault::new(file, 1, message, "split it: one server a file");
        return Manifest {
            server: None,
            faults: vec![fault],
        };
    }
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut faults: Vec<Fault> = errors
        .iter()
        .map(|error| {
            let line = line_of(text, error.span().map_or(0, |span| span.start));
            Fault::new(file, line, error.message(), "mend the TOML syntax")
        })
        .collect();
    let server = match faults.is_empty() {
        true => read_server(file, text, document.get_ref(), &mut faults),
        false => None,
    };
    faults.sort_by_key(|fault| fault.line);
    Manifest {
        server: server.filter(|_| faults.is_empty()),
        faults,
    }
}

fn read_server(
    file: &str,
    text: &str,
    root: &DeTable<'_>,
    faults: &mut Vec<Fault>,
) -> Option<Server> {
    let mut section = Section::root(file, text, root, faults);
    let name: Option<ServerName> = section.parsed("name");
    check_file_name(&mut section, name.as_ref());
    let title = section.text("title").unwrap_or_default().into();
    let description = section.text("description").unwrap_or_default().into();
    let category = section.text("category").unwrap_or_default().into();
    let owner = section.optional_text("owner").unwrap_or_default().into();
    let tags = section.texts("tags").into_iter().map(Into::into).collect();
    let secrets = section
        .sections("secrets", read_secret)
        .into_iter()
        .flatten()
        .collect();
    let config = section
        .sections("config", read_config)
        .into_iter()
        .flatten()
        .collect();
    let provenance = section
        .section("provenance", read_provenance)
        .unwrap_or_default();
    let launch = section.section("launch", launch::read).flatten();
    let tools = tools::read(&mut section);
    let server = name.map(|name| Server {
        name,
        title,
        description,
        category,
        tags,
        owner,
        launch,
        secrets,
        config,
        tools,
        provenance,
    });
    if let Some(server) = &server {
        check_settings(&mut section, server);
    }
    section.finish();
    server.map(Server::cleaned)
}

fn read_secret(slot: &mut Section<'_, '_>) -> Option<SecretSlot> {
    let name = slot.parsed("name");
    let description = slot.text("description").unwrap_or_default().into();
    let optional = slot.flag("optional").unwrap_or(false);
    Some(SecretSlot {
        name: name?,
        description,
        optional,
    })
}

fn read_config(slot: &mut Section<'_, '_>) -> Option<ConfigSlot> {
    let name = slot.parsed("name");
    let description = slot.text("description").unwrap_or_default().into();
    let default = slot.optional_parsed("default");
    let optional = slot.flag("optional").unwrap_or(false);
    Some(ConfigSlot {
        name: name?,
        description,
        default,
        optional,
    })
}

fn read_provenance(provenance: &mut Section<'_, '_>) -> Provenance {
    Provenance {
        source: provenance.text("source").unwrap_or_default().into(),
        version: provenance
            .optional_text("version")
            .unwrap_or_default()
            .into(),
        license: provenance.text("license").unwrap_or_default().into(),
    }
}

fn check_file_name(section: &mut Section<'_, '_>, name: Option<&ServerName>) {
    let stem = section.file().rsplit('/').next().unwrap_or_default();
    let stem = stem.strip_suffix(".toml").unwrap_or(stem);
    if let Some(name) = name.filter(|name| name.as_str() != stem) {
        let message = format!("file `{stem}.toml` holds server `{name}`");
        section.fault_at("name", message, format!("name the file `{name}.toml`"));
    }
}

/// Settings are declared once, used where they are declared, and never shown.
fn check_settings(section: &mut Section<'_, '_>, server: &Server) {
    if let Err(error) = server.check_launch() {
        let remedy = match &error {
            LaunchError::UnknownSecret(_) | LaunchError::UnknownConfig(_) => {
                "declare it, or correct the template"
            }
            LaunchError::VisibleSecret(_) => "move it to `env` or `headers`",
            LaunchError::TwoAuthorizations => "remove one of the two",
        };
        section.fault_at("launch", error.to_string(), remedy);
    }
    let Some(launch) = &server.launch else {
        return;
    };
    let used: Vec<(&str, &SettingName)> = launch
        .templates()
        .flat_map(|template| {
            let secrets = template.secrets().map(|name| ("secrets", name));
            secrets.chain(template.config().map(|name| ("config", name)))
        })
        .collect();
    let secrets = server.secrets.iter().map(|slot| ("secrets", &slot.name));
    let config = server.config.iter().map(|slot| ("config", &slot.name));
    let declared: Vec<_> = secrets.chain(config).collect();
    for (at, (kind, name)) in declared.iter().enumerate() {
        if !used.contains(&(kind, name)) {
            let message = format!("`{name}` is declared under `{kind}` and never used");
            section.fault_at(kind, message, "use it in the launch, or remove it");
        }
        if declared
            .iter()
            .take(at)
            .any(|other| other == &(*kind, *name))
        {
            let message = format!("`{name}` is declared twice under `{kind}`");
            section.fault_at(kind, message, "remove one of them");
        }
    }
    for slot in &server.config {
        let defaults = slot.default.iter().flat_map(Template::config);
        let secrets = slot.default.iter().flat_map(Template::secrets);
        if let Some(name) = defaults.chain(secrets).next() {
            let message = format!("the default of `{}` uses setting `{name}`", slot.name);
            section.fault_at("config", message, "a default may use `{{workspace}}` only");
        }
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}
