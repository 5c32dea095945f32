//! What the program talks about: names, queries, tools, servers, handles.
//!
//! Types here are named by at least two top-level modules. They are built once, at the edge, and
//! hold no wrong value. Nothing here does I/O.

mod catalog;
mod embedding;
mod handle;
mod hash;
mod name;
mod operation;
mod query;
mod remote;
mod run;
mod server;
mod settings;
mod shape;
mod tenant;
mod text;
mod tool;
mod trace;

pub use self::catalog::{Catalog, CatalogError, Slot};
pub use self::embedding::{Embedding, EmbeddingError};
pub use self::handle::{Handle, HandleKey, ParseHandleError};
pub use self::hash::{DefinitionHash, digest_of};
pub use self::name::{ParseNameError, ServerName, SettingName, ToolId, ToolName};
pub use self::operation::{
    Method, Operation, OperationBody, OperationError, OperationParts, PlaceError, Placed,
};
pub use self::query::{ParseQueryError, QUERY_CHARS_MAX, Query};
pub use self::remote::{ClientAuth, HttpTransport, OAuth, ParseWordError};
pub use self::run::{ParseRunIdError, RunId};
pub use self::server::{
    ConfigSlot, Launch, LaunchError, Operations, Provenance, SecretSlot, Server, Template,
    TemplateError, TemplatePart,
};
pub use self::settings::{ReadSettingError, Settings};
pub use self::shape::{ParseShapeError, Shape};
pub use self::tenant::{ParseScopeError, ParseTenantIdError, Scope, Tenant, TenantId};
pub use self::text::{clean_line, clean_text, hidden_characters, shorten};
pub use self::tool::{Annotations, Argument, Definition, Input, Tool};
pub use self::trace::{ParseTraceError, Trace};
