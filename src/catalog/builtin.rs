//! The default catalog, embedded: one TOML file a server, as in the folder `catalog/`.

use include_dir::{Dir, include_dir};

use crate::catalog::SourceFile;

static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/catalog");

/// The files of the default catalog.
pub fn builtin() -> Vec<SourceFile> {
    let files = FILES
        .files()
        .filter(|file| file.path().extension().is_some_and(|e| e == "toml"));
    files
        .filter_map(|file| {
            Some(SourceFile {
                name: format!("catalog/{}", file.path().display()),
                text: file.contents_utf8()?.to_owned(),
            })
        })
        .collect()
}
