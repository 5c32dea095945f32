//! The surface `gateway`: eager tools as they are, and three tools that lead to all others.

mod tools;
mod asked;

use std::fmt::Write;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::model::{CacheScope, ErrorData, Tool};
use serde_json::{Map, Value, json};

use crate::call::CallerSide;
use crate::domain::{Slot, ToolId, clean_line, shorten};
use crate::search::{Found, Shelf};
use crate::telemetry::Operation;
use crate::toolkits::{CursorError, SearchToolkit, Toolkits};
use crate::transport::desk::{Desk, Execution, Guest};
use crate::transport::mcp::definition::shown;
use crate::transport::mcp::surface::{Ask, Listing, Surface, ToolCall};
use crate::transport::refusal::Refusal;

/// How long a client may keep a list, in milliseconds: five minutes. It changes with the catalog.
const LIST_TTL_MS: u64 = 5 * 60 * 1_000;
/// Longest description of a match, in characters.
const MATCH_CHARS_MAX: usize = 400;
/// Most bytes of one description of several tools; a single larger one is shown alone.
const DESCRIBED_BYTES_MAX: usize = 128 * 1024;

/// The surface of eager tools and a search toolkit.
#[derive(Debug)]
pub struct Gateway {
    desk: Arc<Desk>,
    toolkits: Arc<Toolkits>,
    instructions: String,
}

impl Gateway {
    /// Over a desk, with the names and lists of these toolkits.
    pub fn new(desk: Arc<Desk>, toolkits: Toolkits) -> Self {
        Self {
            desk,
            instructions: instructions(toolkits.search()),
            toolkits: Arc::new(toolkits),
        }
    }

    async fn list_page(&self, guest: &Guest, cursor: Option<&str>) -> Result<Listing, ErrorData> {
        let toolkits = Arc::clone(&self.toolkits);
        let after = cursor.map(str::to_owned);
        let page = move |shelf: &Shelf| page(&toolkits, shelf, after.as_deref());
        let page = self.desk.consult(guest, page).await;
        let page = page.map_err(|limit| ErrorData::internal_error(limit.to_text(), None))?;
        let (cold, next_cursor) =
            page.map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        let own = self.toolkits.search().filter(|_| cursor.is_none());
        let own = own.map_or_else(Vec::new, tools::all);
        Ok(Listing {
            tools: own.into_iter().chain(cold).collect(),
            next_cursor,
            ttl_ms: LIST_TTL_MS,
            scope: CacheScope::Private,
        })
    }

    async fn dispatch(
        &self,
        guest: &Guest,
        call: ToolCall,
    ) -> Result<Map<String, Value>, ErrorData> {
        let ToolCall {
            name,
            arguments,
            side,
            context: _,
        } = call;
        if let Some(toolkit) = self.toolkits.search() {
            let own = &toolkit.name;
            if name == own.search_tools() {
                return Ok(self.search(guest, &arguments, toolkit).await);
            }
            if name == own.describe_tool() {
                return Ok(self.describe(guest, &arguments).await);
            }
            if name == own.execute_tool() {
                return Ok(self.execute(guest, arguments, side).await);
            }
        }
        let arguments = Value::Object(arguments);
        match self.lookup(guest, &name) {
            Some(tool) => {
                let execution = Execution {
                    operation: Operation::Direct,
                    tool,
                    arguments,
                    side,
                };
                Ok(self.desk.execute(guest, execution).await)
            }
            None => {
                let unknown = self.unknown(name);
                let refusal = self.desk.refuse(guest, Operation::Direct, unknown).await;
                Err(ErrorData::invalid_params(refusal.to_text(), None))
            }
        }
    }

    async fn search(
        &self,
        guest: &Guest,
        arguments: &Map<String, Value>,
        toolkit: &SearchToolkit,
    ) -> Map<String, Value> {
        let asked = asked::search(arguments, toolkit);
        let show = |found: &Found| matches(&self.toolkits, toolkit, found);
        let operation = Operation::ToolkitSearch;
        self.desk.find(guest, operation, asked, show).await
    }

    async fn describe(&self, guest: &Guest, arguments: &Map<String, Value>) -> Map<String, Value> {
        let (names, toolkits) = (asked::describe(arguments), Arc::clone(&self.toolkits));
        let show = move |shelf: &Shelf| describe(&toolkits, shelf, &names?);
        self.desk.look_up(guest, Operation::Describe, show).await
    }

    async fn execute(
        &self,
        guest: &Guest,
        arguments: Map<String, Value>,
        side: CallerSide,
    ) -> Map<String, Value> {
        let operation = Operation::Execute;
        let (name, arguments) = match asked::execute(arguments) {
            Ok(asked) => asked,
            Err(refusal) => {
                let say = move |_: &Shelf| Err(refusal);
                return self.desk.look_up(guest, operation, say).await;
            }
        };
        match self.lookup(guest, &name) {
            Some(tool) => {
                let execution = Execution {
                    operation,
                    tool,
                    arguments,
                    side,
                };
                self.desk.execute(guest, execution).await
            }
            None => {
                let unknown = self.unknown(name);
                let say = move |shelf: &Shelf| Err(unknown(shelf));
                self.desk.look_up(guest, operation, say).await
            }
        }
    }

    fn lookup(&self, guest: &Guest, name: &str) -> Option<ToolId> {
        let tools = self.desk.shelf(guest);
        let slot = self.toolkits.find(&tools, name)?;
        Some(tools.catalog().id(slot))
    }

    fn unknown(&self, name: String) -> impl FnOnce(&Shelf) -> Refusal + Send + use<> {
        let toolkits = Arc::clone(&self.toolkits);
        move |shelf| unknown(&toolkits, shelf, &name)
    }
}

impl Surface for Gateway {
    fn instructions(&self) -> &str {
        &self.instructions
    }

    fn changes(&self) -> bool {
        true
    }

    fn fingerprint(&self, guest: &Guest) -> [u8; 32] {
        self.toolkits.fingerprint(&self.desk.shelf(guest))
    }

    fn list<'a>(
        &'a self,
        ask: &'a Ask,
        cursor: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Listing, ErrorData>> {
        self.list_page(&ask.guest, cursor).boxed()
    }

    fn call<'a>(
        &'a self,
        ask: &'a Ask,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<Map<String, Value>, ErrorData>> {
        self.dispatch(&ask.guest, call).boxed()
    }
}

fn instructions(search: Option<&SearchToolkit>) -> String {
    match search {
        None => "All tools are listed, as toolkit__tool.".to_owned(),
        Some(SearchToolkit { name, .. }) => format!(
            "Some tools are listed, as toolkit__tool; there are many more. {} finds them by what \
             you want to do, {} tells the arguments of one, {} runs it.",
            name.search_tools(),
            name.describe_tool(),
            name.execute_tool()
        ),
    }
}

/// One page of the tools that are listed as they are, and where the next begins.
fn page(
    toolkits: &Toolkits,
    shelf: &Shelf,
    cursor: Option<&str>,
) -> Result<(Vec<Tool>, Option<String>), CursorError> {
    let bytes = |slot| serde_json::to_string(&define(toolkits, shelf, slot)).map_or(0, |t| t.len());
    let page = toolkits.page(shelf, cursor, bytes)?;
    let tools = page.slots.iter().map(|slot| define(toolkits, shelf, *slot));
    Ok((tools.collect(), page.next))
}

fn define(toolkits: &Toolkits, shelf: &Shelf, slot: Slot) -> Tool {
    let catalog = shelf.catalog();
    shown(toolkits.name_of(&catalog.id(slot)), catalog.tool(slot))
}

/// The JSON of a search: name and description of each match, and that there is more.
fn matches(toolkits: &Toolkits, toolkit: &SearchToolkit, found: &Found) -> Value {
    let tools: Vec<Value> = found
        .hits
        .iter()
        .map(|hit| {
            let tool = found.tool(*hit);
            let text = match tool.description() {
                "" => tool.title(),
                text => text,
            };
            json!({
                "name": toolkits.name_of(&found.id(*hit)),
                "description": shorten(text, MATCH_CHARS_MAX),
            })
        })
        .collect();
    let mut message = match (tools.len(), found.tools_total) {
        (0, total) => format!("None of {total} tools fits these words. Try other ones."),
        (shown, total) => format!(
            "These are {shown} of {total} tools, best first and not a listing: a tool that is not \
             here may still exist, so search again in other words. {} tells the arguments of one.",
            toolkit.name.describe_tool()
        ),
    };
    if let Some(why) = found.degraded {
        // Writing to a `String` does not fail.
        let _ = write!(message, " The ranking is degraded: {why}.");
    }
    json!({ "tools": tools, "message": message })
}

/// The JSON of a description: definitions as in `tools/list`, and the names that are none.
fn describe(toolkits: &Toolkits, shelf: &Shelf, names: &[String]) -> Result<Value, Refusal> {
    let (mut tools, mut unknown_names) = (Vec::new(), Vec::new());
    let (mut left_out, mut bytes) = (Vec::new(), 0);
    for name in names {
        let Some(slot) = toolkits.find(shelf, name) else {
            let nearest = toolkits.nearest(shelf, name);
            unknown_names.push(json!({ "name": clean_line(name, 128), "nearest": nearest }));
            continue;
        };
        let tool = serde_json::to_value(define(toolkits, shelf, slot)).unwrap_or_default();
        bytes += tool.to_string().len();
        match tools.is_empty() || bytes <= DESCRIBED_BYTES_MAX {
            true => tools.push(tool),
            false => left_out.push(toolkits.name_of(&shelf.catalog().id(slot))),
        }
    }
    if let ([], [name, ..]) = (&*tools, names) {
        return Err(unknown(toolkits, shelf, name));
    }
    let mut body = json!({ "tools": tools });
    if !unknown_names.is_empty() {
        body["unknown"] = unknown_names.into();
    }
    if !left_out.is_empty() {
        body["left_out"] = left_out.into();
        body["message"] = "Together these are too long: describe the others one by one.".into();
    }
    Ok(body)
}

fn unknown(toolkits: &Toolkits, shelf: &Shelf, name: &str) -> Refusal {
    let search = toolkits.search().map(|search| search.name.search_tools());
    Refusal::unknown_tool(name, &toolkits.nearest(shelf, name), search.as_deref())
}
