//! A folder of executables, each a tool: `report.sh` with its definition in `report.sh.json`.
//!
//! A script is started by its path, without a shell. Each argument is one `--name=value`, or, where
//! the definition says `"pass": "stdin"`, all of them are one line of JSON on standard input. What
//! it prints is the result.

mod run;

use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::domain::{ParseNameError, ServerName};
use crate::registry::definition;
use crate::registry::provider::{Call, ProvideError, ToolProvider};
use crate::registry::{ToolList, ToolMetadata, ToolOutput};

/// Most files of a folder.
const FILES_MAX: usize = 2_000;
/// Largest definition, in bytes.
const DEFINITION_BYTES_MAX: u64 = 128 * 1024;
/// What the name of a definition ends with.
const DEFINITION_END: &str = ".json";

/// Limits of one run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ScriptLimits {
    /// How long it may take; its whole process group is killed then.
    pub run_max: Duration,
    /// Bytes that it may print.
    pub output_bytes_max: usize,
}

impl Default for ScriptLimits {
    fn default() -> Self {
        Self {
            run_max: Duration::from_secs(30),
            output_bytes_max: 1024 * 1024,
        }
    }
}

/// How a script is given its arguments.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Pass {
    Arguments,
    Input,
}

#[derive(Clone, Debug)]
struct Script {
    program: PathBuf,
    pass: Pass,
    metadata: Arc<ToolMetadata>,
}

/// Name, length and time of each file: changes when one of them does.
type Fingerprint = Vec<(PathBuf, u64, Option<SystemTime>, u32)>;

#[derive(Debug, Default)]
struct Read {
    fingerprint: Fingerprint,
    scripts: Vec<Script>,
    list: ToolList,
}

/// The scripts of a folder. It is looked at anew for each list, and read where a file has changed.
pub struct ScriptFolder {
    name: ServerName,
    folder: PathBuf,
    limits: ScriptLimits,
    read: Arc<Mutex<Read>>,
}

impl fmt::Debug for ScriptFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScriptFolder({})", self.name)
    }
}

impl ScriptFolder {
    /// Of a folder, under a name of `a-z`, `0-9` and `-`.
    pub fn new(name: &str, folder: &Path, limits: ScriptLimits) -> Result<Self, ParseNameError> {
        Ok(Self {
            name: name.parse()?,
            folder: folder.to_owned(),
            limits,
            read: Arc::default(),
        })
    }

    fn script(&self, name: &str) -> Option<Script> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scripts = read.scripts.iter();
        scripts
            .find(|script| script.metadata.name() == name)
            .cloned()
    }

    /// Files are read beside the runtime, by one at a time.
    async fn refresh(&self) -> Result<ToolList, ProvideError> {
        let (folder, read) = (self.folder.clone(), Arc::clone(&self.read));
        let reading = tokio::task::spawn_blocking(move || {
            let mut read = read.lock().unwrap_or_else(PoisonError::into_inner);
            let fingerprint = fingerprint(&folder)?;
            if fingerprint != read.fingerprint {
                *read = scripts(fingerprint);
            }
            Ok::<_, io::Error>(read.list.clone())
        });
        let unavailable = |error: &dyn fmt::Display| {
            ProvideError::unavailable(self.name(), format!("its folder cannot be read: {error}"))
        };
        match reading.await {
            Ok(Ok(list)) => Ok(list),
            Ok(Err(error)) => Err(unavailable(&error.kind())),
            Err(error) => Err(unavailable(&error)),
        }
    }
}

impl ToolProvider for ScriptFolder {
    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn tools(&self) -> BoxFuture<'_, Result<ToolList, ProvideError>> {
        self.refresh().boxed()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Option<ToolOutput>, ProvideError>> {
        async move {
            self.refresh().await?;
            let Some(script) = self.script(&call.name) else {
                return Ok(None);
            };
            let run = run::run(&self.name, &self.folder, &script, call, self.limits);
            run.await.map(Some)
        }
        .boxed()
    }
}

/// All regular files; links are left out, since they lead elsewhere.
fn fingerprint(folder: &Path) -> io::Result<Fingerprint> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)?.take(FILES_MAX) {
        let entry = entry?;
        let about = entry.metadata()?;
        if about.is_file() {
            let mode = about.permissions().mode();
            files.push((entry.path(), about.len(), about.modified().ok(), mode));
        }
    }
    files.sort();
    Ok(files)
}

fn scripts(fingerprint: Fingerprint) -> Read {
    let mut scripts = Vec::new();
    for (definition, bytes, ..) in &fingerprint {
        let name = definition.file_name().and_then(|name| name.to_str());
        let Some(program) = name.and_then(|name| name.strip_suffix(DEFINITION_END)) else {
            continue;
        };
        let program = definition.with_file_name(program);
        let is_executable = |file: &&(PathBuf, u64, Option<SystemTime>, u32)| {
            file.0 == program && file.3 & 0o111 != 0
        };
        if fingerprint.iter().find(is_executable).is_none() {
            tracing::warn!(file = %definition.display(), "a script's definition has no executable");
            continue;
        }
        match read_definition(definition, *bytes) {
            Ok((metadata, pass)) => scripts.push(Script {
                program,
                pass,
                metadata: Arc::new(metadata),
            }),
            Err(fault) => {
                tracing::warn!(file = %definition.display(), fault, "left out a script");
            }
        }
    }
    let list = ToolList::new(scripts.iter().map(|script| Arc::clone(&script.metadata)));
    Read {
        fingerprint,
        scripts,
        list,
    }
}

fn read_definition(file: &Path, bytes: u64) -> Result<(ToolMetadata, Pass), String> {
    if DEFINITION_BYTES_MAX < bytes {
        return Err(format!(
            "{bytes} bytes, over the limit of {DEFINITION_BYTES_MAX}"
        ));
    }
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let pass = match value
        .get("pass")
        .map(|pass| pass.as_str().unwrap_or_default())
    {
        None | Some("arguments") => Pass::Arguments,
        Some("stdin") => Pass::Input,
        Some(_) => return Err("`pass` is neither `arguments` nor `stdin`".to_owned()),
    };
    let spec = definition::read(&value).map_err(|error| error.to_string())?;
    Ok((spec.into(), pass))
}

#[cfg(test)]
mod tests;
