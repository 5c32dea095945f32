//! Tools that come and go while the program runs, from the program itself and from providers.
//!
//! ```text
//! asker -> providers: request > global > catalog, all asked at once -> one list -> score -> best
//! name  -> the first provider that has it -> call
//! ```
//!
//! A [`ToolProvider`] has one audience: what it lists is the same for all who reach it. Global ones
//! are reached by everybody, request-scoped ones are made for one request, by
//! [`Providers::per_request`] or by middleware with [`RequestProviders`]. So nothing that is kept of
//! a provider can be shown to somebody else. A [`ToolRegistry`] is the provider for tools of the
//! program itself.

mod metadata;
mod definition;
mod list;
mod fuzzy;
mod arguments;
mod output;
mod provider;
mod table;
mod steady;
mod providers;
mod scripts;
mod remote;
mod openapi;

pub use self::arguments::{Arguments, ReadArgumentError};
pub use self::fuzzy::{Scored, rank};
pub use self::list::ToolList;
pub use self::metadata::{DescribeToolError, ToolMetadata, ToolSpec, Visibility};
pub use self::openapi::{OpenApiOptions, OpenApiProvider, ReadOpenApiError};
pub use self::output::ToolOutput;
pub use self::provider::{Asker, Call, ProvideError, ToolProvider};
pub use self::providers::{
    Deadlines, Offer, Offered, Owner, PerRequest, Providers, RequestProviders,
};
pub use self::remote::RemoteProvider;
pub use self::scripts::{ScriptFolder, ScriptLimits};
pub use self::table::{RegisterError, ToolRegistry};
