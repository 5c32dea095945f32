//! From files to one catalog. A faulty file costs its own server and no other.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::catalog::import::{self, DOCUMENT_BYTES_MAX, Document, Format, NoteKind};
use crate::catalog::manifest::{self, FILE_BYTES_MAX, Fault};
use crate::domain::{Catalog, Server, ServerName};

/// Ending of files that hold one server in normal form a line, as imports write them.
const LINES: &str = "jsonl";

/// A catalog file, not yet read: one server in TOML, or one a line in normal form.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// What faults call it.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// A folder or file of the operator's could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read catalog files at `{}`", path.display())]
pub struct ReadFolderError {
    path: PathBuf,
    source: io::Error,
}

/// What the files gave.
#[derive(Debug, Default)]
pub struct Loaded {
    /// All servers without a fault.
    pub catalog: Catalog,
    /// All faults of all files, in the order of the files.
    pub faults: Vec<Fault>,
}

/// Reads a folder's `*.toml` and `*.jsonl` in the order of their names, or one file.
pub fn read_folder(path: &Path) -> Result<Vec<SourceFile>, ReadFolderError> {
    let wrong = |source| ReadFolderError {
        path: path.to_owned(),
        source,
    };
    let mut paths: Vec<PathBuf> = match path.is_dir() {
        true => fs::read_dir(path)
            .and_then(|entries| {
                entries
                    .map(|entry| Ok(entry?.path()))
                    .collect::<io::Result<_>>()
            })
            .map_err(wrong)?,
        false => vec![path.to_owned()],
    };
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "toml" || extension == LINES)
    });
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let bytes = fs::metadata(&path).map_err(wrong)?.len();
            let bytes_max = match path.extension().is_some_and(|extension| extension == LINES) {
                true => DOCUMENT_BYTES_MAX,
                false => FILE_BYTES_MAX,
            };
            if bytes_max < usize::try_from(bytes).unwrap_or(usize::MAX) {
                let message = format!("`{}` has {bytes} bytes, too many", path.display());
                return Err(wrong(io::Error::other(message)));
            }
            let text = fs::read_to_string(&path).map_err(wrong)?;
            Ok(SourceFile {
                name: path.display().to_string(),
                text,
            })
        })
        .collect()
}

/// Builds one catalog. Later sources take the place of earlier ones server by server: the
/// operator's file wins over the default of the same name. Within one source a name twice is a
/// fault, and the first stays.
pub fn load(sources: &[Vec<SourceFile>]) -> Loaded {
    let mut loaded = Loaded::default();
    let mut servers: HashMap<ServerName, Arc<Server>> = HashMap::new();
    for source in sources {
        let mut seen: HashMap<ServerName, &str> = HashMap::new();
        for file in source {
            for server in read_file(file, &mut loaded.faults) {
                if let Some(first) = seen.get(&server.name) {
                    let message = format!("server `{}` is in `{first}` already", server.name);
                    let fault = Fault::new(&file.name, 1, message, "remove one of them");
                    loaded.faults.push(fault);
                    continue;
                }
                seen.insert(server.name.clone(), &file.name);
                servers.insert(server.name.clone(), Arc::new(server));
            }
        }
    }
    match Catalog::new(servers.into_values()) {
        Ok(catalog) => loaded.catalog = catalog,
        Err(error) => loaded.faults.push(Fault::new(
            "catalog",
            1,
            error.to_string(),
            "remove what is there twice or too much",
        )),
    }
    loaded
}

/// The servers of a file. What the import of lines would refuse is a fault.
fn read_file(file: &SourceFile, faults: &mut Vec<Fault>) -> Vec<Server> {
    if !file.name.ends_with(&format!(".{LINES}")) {
        let manifest = manifest::read(&file.name, &file.text);
        faults.extend(manifest.faults);
        return manifest.server.into_iter().collect();
    }
    let document = Document {
        name: file.name.clone(),
        text: file.text.clone(),
    };
    let imported = import::read(Format::NormalForm, &[document]);
    for note in imported.report.notes {
        if note.kind == NoteKind::Refused {
            let place = note.place.split('#').next().unwrap_or_default();
            let line = place.rsplit(':').next().and_then(|line| line.parse().ok());
            let message = format!("{}: {}", note.what, note.why);
            let remedy = "import the source again, or mend the line";
            faults.push(Fault::new(&file.name, line.unwrap_or(1), message, remedy));
        }
    }
    imported.servers
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
name = "files"
title = "Files"
description = "Reads and writes files."
category = "files"
[launch.stdio]
command = "npx"
args = ["-y", "@a/files@1.0.0", "{{files.root}}"]
env = { TOKEN = "{{secret:files.token}}" }
[[secrets]]
name = "files.token"
description = "A token."
[[config]]
name = "files.root"
description = "Root folder."
default = "{{workspace}}"
[provenance]
source = "npm:@a/files"
license = "MIT"
[[tools]]
name = "read_file"
description = "Read a file."
annotations = { read_only = true }
arguments = [{ name = "path", type = "string", desc = "Path." }]
"#;

    fn file(name: &str, text: &str) -> SourceFile {
        SourceFile {
            name: name.to_owned(),
            text: text.to_owned(),
        }
    }

    fn faults(text: &str) -> String {
        let loaded = load(&[vec![file("files.toml", text)]]);
        let lines: Vec<_> = loaded.faults.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }

    #[test]
    fn a_good_file_has_no_fault() {
        let loaded = load(&[vec![file("files.toml", GOOD)]]);
        assert_eq!(loaded.faults, []);
        assert_eq!(loaded.catalog.len(), 1);
    }

    #[test]
    fn every_fault_is_named_with_line_and_remedy() {
        let text = GOOD
            .replace("title =", "titel =")
            .replace("@a/files@1.0.0", "@a/files")
            .replace("secret:files.token}}\"", "secret:files.tokn}}\"")
            .replace("type = \"string\"", "type = \"text\"")
            .replace("read_only = true", "read_only = 1");
        insta::assert_snapshot!(faults(&text), @r#"
        files.toml:1: `title` is missing
            remedy: add `title = "..."`
        files.toml:3: unknown key `titel`
            remedy: did you mean `title`?
        files.toml:6: `{{secret:files.tokn}}` is used but not declared: add it under `[[secrets]]`
            remedy: declare it, or correct the template
        files.toml:8: package `@a/files` has no exact version
            remedy: name an exact version, such as `package@1.2.3`
        files.toml:10: `files.token` is declared under `secrets` and never used
            remedy: use it in the launch, or remove it
        files.toml:23: `tools.annotations.read_only` is of type integer
            remedy: give `true` or `false`
        files.toml:24: `tools.arguments.type`: `text` is not a type: write string, integer, number, boolean, object, array, any, `array of string`, `"a" or "b"` or `array of ("a" or "b")`
            remedy: correct it as the message says
        "#);
    }

    #[test]
    fn broken_toml_is_a_fault_with_its_line() {
        insta::assert_snapshot!(faults("name = \"files\"\ntitle = \n"), @"
        files.toml:2: string values must be quoted, expected literal string
            remedy: mend the TOML syntax
        ");
    }

    #[test]
    fn the_operators_file_takes_the_place_of_the_default() {
        let own = GOOD.replace("Reads and writes files.", "Our own.");
        let sources = [
            vec![file("files.toml", GOOD)],
            vec![file("files.toml", &own)],
        ];
        let loaded = load(&sources);
        assert_eq!(loaded.faults, []);
        assert_eq!(&*loaded.catalog.servers()[0].description, "Our own.");
    }

    #[test]
    fn a_server_twice_in_one_source_is_a_fault_and_the_first_stays() {
        let sources = [vec![file("a/files.toml", GOOD), file("b/files.toml", GOOD)]];
        let loaded = load(&sources);
        insta::assert_snapshot!(loaded.faults[0].to_string(), @"
        b/files.toml:1: server `files` is in `a/files.toml` already
            remedy: remove one of them
        ");
        assert_eq!(loaded.catalog.len(), 1);
    }
}
