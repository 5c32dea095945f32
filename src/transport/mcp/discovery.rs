//! The surface `discovery`: native tools as they are, `tool_search` and `execute_tool` for all
//! others. Where they come from is the providers' business.

mod catalog;
mod tools;
mod rank;
mod page;

use std::fmt::Write;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::model::{CacheScope, ErrorData};
use serde_json::{Map, Value, json};

use crate::call::CallerSide;
use crate::domain::{Query, ServerName, ToolId, clean_line};
use crate::registry::{
    Arguments, Asker, Call, Offer, Offered, Owner, Providers, ToolList, Visibility,
};
use crate::telemetry::Operation;
use crate::transport::desk::{Desk, Execution, Guest, Provision};
use crate::transport::mcp::definition::shown;
use crate::transport::mcp::surface::{Ask, Listing, Surface, ToolCall};
use crate::transport::refusal::Refusal;

pub use self::catalog::CatalogTools;
pub use self::rank::Match;

/// How long a client may keep a list, in milliseconds: providers come and go.
const LIST_TTL_MS: u64 = 30_000;
/// Most bytes of one search's tools; a single larger one is shown alone.
const FOUND_BYTES_MAX: usize = 128 * 1024;
/// Names that are offered for one that nobody has.
const NEAREST_MAX: usize = 3;
/// Longest name in a list, as the protocol has it.
const LISTED_NAME_MAX: usize = 128;
/// The header, and the key of the query, that lists everything.
const SHOW_ALL: (&str, &str) = ("x-mcp-show-all", "show_all");
/// What a client reads when it connects.
const INSTRUCTIONS: &str = "Some tools are listed; there are more. tool_search finds them by words \
    of their names and descriptions and tells their arguments, execute_tool runs one by its name.";

/// The surface of native tools, a search and a run.
#[derive(Debug)]
pub struct Discovery {
    desk: Arc<Desk>,
    providers: Arc<Providers>,
    catalog: Option<Arc<CatalogTools>>,
    by: Match,
}

/// What one call is about: who asks, and what the catalog has for them.
struct Reach {
    asker: Asker,
    catalog: ToolList,
}

impl Discovery {
    /// Over a desk and providers, with the catalog behind them where there is one.
    pub fn new(
        desk: Arc<Desk>,
        providers: Arc<Providers>,
        catalog: Option<CatalogTools>,
        by: Match,
    ) -> Self {
        Self {
            desk,
            providers,
            catalog: catalog.map(Arc::new),
            by,
        }
    }

    async fn reach(&self, asker: Asker, guest: &Guest) -> Reach {
        let Some(tools) = self.catalog.clone() else {
            return Reach {
                asker,
                catalog: ToolList::default(),
            };
        };
        let stock = self.desk.shelf(guest);
        let listing = tokio::task::spawn_blocking(move || tools.on(&stock));
        let catalog = listing.await.unwrap_or_default();
        Reach { asker, catalog }
    }

    /// All that a guest may use. What its scope leaves out does not exist for it.
    async fn offer(&self, guest: &Guest, reach: &Reach, query: Option<&str>) -> Offer {
        let mut offer = self
            .providers
            .offer(&reach.asker, query, &reach.catalog)
            .await;
        offer.tools.retain(|offered| is_open(guest, offered));
        offer
    }

    async fn list_page(&self, ask: &Ask, cursor: Option<&str>) -> Result<Listing, ErrorData> {
        let guest = &ask.guest;
        let everything = shows_all(ask);
        let asking = async {
            let reach = self.reach(asker(ask), guest).await;
            self.offer(guest, &reach, None).await
        };
        let offer = self.desk.inquire(guest, asking).await;
        let offer = offer.map_err(|limit| ErrorData::internal_error(limit.to_text(), None))?;
        let listed = |offered: &&Offered| {
            let is_shown = everything || offered.tool.visibility() == Visibility::Native;
            is_shown && is_listable(offered.tool.name())
        };
        let page = page::page(offer.tools.iter().filter(listed).collect(), cursor);
        let (tools, next_cursor) =
            page.map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        let own = cursor.is_none().then(tools::all).into_iter().flatten();
        Ok(Listing {
            tools: own.chain(tools).collect(),
            next_cursor,
            ttl_ms: LIST_TTL_MS,
            scope: CacheScope::Private,
        })
    }

    async fn search(&self, ask: &Ask, arguments: &Map<String, Value>) -> Map<String, Value> {
        let guest = &ask.guest;
        let seeking = async {
            let (query, most) = tools::search(arguments)?;
            let reach = self.reach(asker(ask), guest).await;
            let text = query.as_ref().map(Query::as_str);
            let offer = self.offer(guest, &reach, text).await;
            let (late, total) = (offer.late, offer.tools.len());
            let ranked = match (query, self.by, &self.catalog) {
                (None, _, _) => rank::by_name(offer.tools, most),
                (Some(query), Match::Hybrid, Some(names)) => {
                    rank::hybrid(&self.desk, guest, &query, offer.tools, (names, most)).await
                }
                (Some(query), _, _) => rank::fuzzy(query, offer.tools, most).await,
            };
            Ok(show(&ranked, total, &late))
        };
        self.desk.seek(guest, Operation::ToolSearch, seeking).await
    }

    /// Runs a tool of any name, or says what is wrong: the catalog's on the desk's way, others by
    /// their provider.
    async fn execute(&self, ask: &Ask, run: Run) -> Result<Map<String, Value>, Refusal> {
        let guest = &ask.guest;
        let Run {
            operation,
            name,
            arguments,
            side,
            asker,
        } = run;
        let finding = async {
            let reach = self.reach(asker, guest).await;
            let found = self
                .providers
                .find(&reach.asker, &name, &reach.catalog)
                .await;
            match found.filter(|found| is_open(guest, found)) {
                Some(found) => Ok((reach.asker, found)),
                None => Err(self.unknown(guest, &reach, &name).await),
            }
        };
        let (asker, found) = self.desk.inquire(guest, finding).await.flatten()?;
        let id =
            id_of(&found).ok_or_else(|| Refusal::unknown_tool(&name, &[], Some(tools::SEARCH)))?;
        let provider = match &found.owner {
            Owner::Catalog => {
                let execution = Execution {
                    operation,
                    tool: id,
                    arguments,
                    side,
                };
                return Ok(self.desk.execute(guest, execution).await);
            }
            Owner::Provider(provider) => provider,
        };
        let tool = &*found.tool;
        let provision = Provision {
            operation,
            id,
            tool,
            arguments,
        };
        let run = |arguments: Map<String, Value>| async move {
            let arguments = Arguments::from(arguments);
            let call = Call {
                name: tool.name().to_owned(),
                arguments,
                asker,
                side,
            };
            match self.providers.call(provider, call).await {
                Ok(Some(output)) => Ok(output.into_result()),
                // It went away between the two questions.
                Ok(None) => Err(Refusal::unknown_tool(tool.name(), &[], Some(tools::SEARCH))),
                Err(error) => Err(Refusal::of_provider(&error)),
            }
        };
        Ok(self.desk.provide(guest, provision, run).await)
    }

    async fn unknown(&self, guest: &Guest, reach: &Reach, name: &str) -> Refusal {
        let offer = self.offer(guest, reach, None).await;
        let line = clean_line(name, 128);
        let nearest = match line.parse::<Query>() {
            Ok(query) => rank::fuzzy(query, offer.tools, NEAREST_MAX).await,
            Err(_no_words) => Vec::new(),
        };
        let names = nearest
            .iter()
            .map(|(offered, _)| offered.tool.name().to_owned());
        Refusal::unknown_tool(name, &names.collect::<Vec<_>>(), Some(tools::SEARCH))
    }

    async fn dispatch(&self, ask: &Ask, call: ToolCall) -> Result<Map<String, Value>, ErrorData> {
        let mut asker = asker(ask);
        asker.extensions.insert(call.context);
        let (operation, wanted) = match call.name.as_str() {
            tools::SEARCH => return Ok(self.search(ask, &call.arguments).await),
            tools::EXECUTE => (Operation::Execute, tools::execute(call.arguments)),
            _ => (
                Operation::Direct,
                Ok((call.name, Value::Object(call.arguments))),
            ),
        };
        let side = call.side;
        let ran = match wanted {
            Ok((name, arguments)) => {
                let run = Run {
                    operation,
                    name,
                    arguments,
                    side,
                    asker,
                };
                self.execute(ask, run).await
            }
            Err(refusal) => Err(refusal),
        };
        match (ran, operation) {
            (Ok(result), _) => Ok(result),
            (Err(refusal), Operation::Direct) => {
                let refusal = self
                    .desk
                    .refuse(&ask.guest, operation, move |_| refusal)
                    .await;
                Err(ErrorData::invalid_params(refusal.to_text(), None))
            }
            (Err(refusal), _) => {
                let say = async { Err(refusal) };
                Ok(self.desk.seek(&ask.guest, operation, say).await)
            }
        }
    }
}

/// A run as it was asked for.
struct Run {
    operation: Operation,
    name: String,
    arguments: Value,
    side: CallerSide,
    asker: Asker,
}

impl Surface for Discovery {
    fn instructions(&self) -> &str {
        INSTRUCTIONS
    }

    fn list<'a>(
        &'a self,
        ask: &'a Ask,
        cursor: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Listing, ErrorData>> {
        self.list_page(ask, cursor).boxed()
    }

    fn call<'a>(
        &'a self,
        ask: &'a Ask,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<Map<String, Value>, ErrorData>> {
        self.dispatch(ask, call).boxed()
    }
}

fn asker(ask: &Ask) -> Asker {
    let mut asker = Asker::of(Arc::clone(&ask.guest.tenant));
    asker.request.clone_from(&ask.parts);
    asker
}

/// Whether the request asks for a list of everything, as chaining servers do.
fn shows_all(ask: &Ask) -> bool {
    let Some(parts) = &ask.parts else {
        return false;
    };
    let (header, key) = SHOW_ALL;
    let is_true = |value: &str| value.eq_ignore_ascii_case("true");
    let said = parts
        .headers
        .get(header)
        .and_then(|value| value.to_str().ok());
    let pairs = parts.uri.query().unwrap_or_default().split('&');
    let mut values = pairs.filter_map(|pair| pair.split_once('='));
    said.is_some_and(is_true) || values.any(|(name, value)| name == key && is_true(value))
}

/// Whether clients take a name in a list. Others are found and run all the same.
fn is_listable(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    name.len() <= LISTED_NAME_MAX && name.chars().all(plain)
}

/// What scopes and audit call a tool: `server/tool` of the catalog, or `provider/tool`.
fn id_of(offered: &Offered) -> Option<ToolId> {
    let tool = offered.tool.tool().name().clone();
    let server = match &offered.owner {
        Owner::Provider(provider) => ServerName::nearest_to(provider.name())?,
        // The catalog's own public name begins with its server; its metadata knows it.
        Owner::Catalog => offered.tool.server()?.clone(),
    };
    Some(ToolId { server, tool })
}

/// Whether a guest's scope has the tool, under a name that is not one of ours.
fn is_open(guest: &Guest, offered: &Offered) -> bool {
    let name = offered.tool.name();
    let scope = &guest.tenant.scope;
    let is_allowed = || id_of(offered).is_some_and(|id| scope.allows(&id));
    name != tools::SEARCH && name != tools::EXECUTE && (scope.is_everything() || is_allowed())
}

/// The JSON of a search: the tools, best first.
fn show(ranked: &[(Offered, f32)], total: usize, late: &[String]) -> Value {
    let (mut tools, mut left_out) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    for (Offered { tool, .. }, score) in ranked {
        let definition = shown(tool.name().to_owned(), tool.tool());
        let one = json!({
            "name": tool.name(),
            "description": tool.tool().description(),
            "score": (f64::from(*score) * 1_000.0).round() / 1_000.0,
            "input_schema": *definition.input_schema,
        });
        bytes += one.to_string().len();
        match tools.is_empty() || bytes <= FOUND_BYTES_MAX {
            true => tools.push(one),
            false => left_out.push(tool.name().to_owned()),
        }
    }
    let mut message = match tools.len() {
        0 => format!("None of {total} tools fits. Try other words, or none to list them."),
        shown => format!("These are {shown} of {total} tools."),
    };
    if !late.is_empty() {
        // Writing to a `String` does not fail.
        let _ = write!(message, " Not all answered in time: {}.", late.join(", "));
    }
    let mut body = json!({ "tools": tools, "total": total, "message": message });
    if !left_out.is_empty() {
        body["left_out"] = left_out.into();
    }
    body
}

#[cfg(test)]
mod tests;
