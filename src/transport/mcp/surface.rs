//! What one surface decides: which tools a guest is shown, and what a call of one means.
//!
//! The protocol duties (versions, discovery, resources, progress, cancellation) are the same for all
//! and stay in the handler.

use std::fmt;

use futures::future::BoxFuture;
use http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::{CacheScope, ErrorData, Tool};
use rmcp::service::RequestContext;
use serde_json::{Map, Value};

use crate::call::CallerSide;
use crate::transport::desk::Guest;

/// How long a client may keep a list that never changes, in milliseconds: an hour.
pub(super) const FIXED_TTL_MS: u64 = 60 * 60 * 1_000;

/// Who asks, and over what.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The tenant with its limits.
    pub guest: Guest,
    /// The HTTP request without its credentials; none on standard streams.
    pub parts: Option<Parts>,
}

/// One `tools/call`.
#[derive(Debug)]
pub struct ToolCall {
    /// Which tool, as the client wrote it.
    pub name: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// Cancellation and progress.
    pub side: CallerSide,
    /// The protocol's own context, for handlers that were written for rmcp.
    pub context: RequestContext<RoleServer>,
}

/// One page of `tools/list`.
#[derive(Debug)]
pub struct Listing {
    /// The tools.
    pub tools: Vec<Tool>,
    /// Where the next page begins; none on the last.
    pub next_cursor: Option<String>,
    /// How long a client may keep the page, in milliseconds.
    pub ttl_ms: u64,
    /// Whether it is the same for every guest.
    pub scope: CacheScope,
}

/// A way in. Decodes, calls the desk, encodes.
pub trait Surface: fmt::Debug + Send + Sync {
    /// What a client reads when it connects.
    fn instructions(&self) -> &str;

    /// Whether a guest's list may change while the program runs.
    fn changes(&self) -> bool {
        false
    }

    /// Is another when a guest's list is another.
    fn fingerprint(&self, _guest: &Guest) -> [u8; 32] {
        [0; 32]
    }

    /// One page of `tools/list`. A cursor that is none of ours is an invalid parameter.
    fn list<'a>(
        &'a self,
        ask: &'a Ask,
        cursor: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Listing, ErrorData>>;

    /// One `tools/call`: the result's JSON, or an invalid parameter for an unknown tool.
    fn call<'a>(
        &'a self,
        ask: &'a Ask,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<Map<String, Value>, ErrorData>>;
}
