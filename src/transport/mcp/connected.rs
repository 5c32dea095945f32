//! The surface `connected`: `search_tools` and `run_tool`, which never change.

mod tools;

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::model::{CacheScope, ErrorData};
use serde_json::{Map, Value};

use crate::transport::desk::Desk;
use crate::transport::mcp::surface::{Ask, FIXED_TTL_MS, Listing, Surface, ToolCall};

/// What a client reads when it connects.
const INSTRUCTIONS: &str = "Toolcrib finds the right tool among thousands. Say in one \
    sentence what you want to do to search_tools; it answers with at most three tools, their \
    arguments, and a capability_token. Pass the token, the tool_name and the arguments to run_tool, \
    which runs the tool once. Search again for each further step.";

/// The surface of two tools and a handle.
#[derive(Debug)]
pub struct Connected {
    desk: Arc<Desk>,
}

impl Connected {
    /// Over a desk.
    pub fn new(desk: Arc<Desk>) -> Self {
        Self { desk }
    }
}

impl Surface for Connected {
    fn instructions(&self) -> &str {
        INSTRUCTIONS
    }

    fn list<'a>(
        &'a self,
        _ask: &'a Ask,
        _cursor: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Listing, ErrorData>> {
        // The same for every tenant, so that any cache may keep it.
        let listing = Listing {
            tools: tools::all(),
            next_cursor: None,
            ttl_ms: FIXED_TTL_MS,
            scope: CacheScope::Public,
        };
        async { Ok(listing) }.boxed()
    }

    fn call<'a>(
        &'a self,
        ask: &'a Ask,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<Map<String, Value>, ErrorData>> {
        async move {
            match call.name.as_str() {
                tools::SEARCH => Ok(self.desk.search(&ask.guest, &call.arguments).await),
                tools::RUN => Ok(self.desk.run(&ask.guest, call.arguments, call.side).await),
                name => {
                    let text =
                        format!("unknown tool `{name}`: there are search_tools and run_tool");
                    Err(ErrorData::invalid_params(text, None))
                }
            }
        }
        .boxed()
    }
}
