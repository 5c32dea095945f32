//! The catalog's files: the embedded default, the operator's own, and what is wrong with them.

mod builtin;
pub mod manifest;
pub mod import;
pub mod merge;
mod remote;
pub mod export;
mod record;
mod load;
pub mod scan;
pub mod pins;
pub mod diff;
pub mod snapshot;
pub mod refresh;

pub use self::builtin::builtin;
pub use self::load::{Loaded, ReadFolderError, SourceFile, load, read_folder};
