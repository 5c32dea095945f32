//! Tools of an office on the host's own axum router: a database, e-mail, and documents.
//!
//! ```text
//! cargo run --example office
//! ```
//!
//! The first two are registered one by one, the third is written with rmcp's macros and taken over
//! whole. Only `query_orders` is listed; `tool_search` finds the others.

#![expect(clippy::print_stdout, reason = "an example says where it listens")]

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::routing::get;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{schemars, tool, tool_router};
use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib::embed::Crib;
use toolcrib::registry::{Call, ToolOutput, ToolRegistry, ToolSpec, Visibility};
use toolcrib::transport::mcp::RoutedTools;

type Failure = Box<dyn Error + Send + Sync>;

/// Orders in a table; a real program has a connection pool here.
#[derive(Clone, Default)]
struct Database(Arc<Mutex<Vec<(String, f64)>>>);

impl Database {
    fn insert(&self, customer: &str, total: f64) -> usize {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rows.push((customer.to_owned(), total));
        rows.len()
    }

    fn query(&self, least: f64) -> Vec<Value> {
        let rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = rows.iter().filter(|(_, total)| least <= *total);
        rows.map(|(customer, total)| json!({ "customer": customer, "total": total }))
            .collect()
    }
}

fn database() -> Result<ToolRegistry, Failure> {
    let registry = ToolRegistry::new("database")?;
    let database = Database::default();
    database.insert("Ada", 120.0);
    database.insert("Grace", 80.0);

    let query = ToolSpec::new("query_orders", "Query the orders of the shop's database.")?
        .schema(json!({
            "type": "object",
            "properties": { "least": { "type": "number", "description": "Least total" } },
        }))?
        .keywords(["sql", "select"])
        .native();
    let own = database.clone();
    registry.register(query, move |call: Call| {
        let own = own.clone();
        async move {
            let least = call.arguments.optional("least")?.unwrap_or(0.0);
            Ok(ToolOutput::json(json!({ "orders": own.query(least) })))
        }
    })?;

    let insert = ToolSpec::new("insert_order", "Insert an order into the shop's database.")?
        .schema(json!({
            "type": "object",
            "properties": {
                "customer": { "type": "string" },
                "total": { "type": "number", "minimum": 0 },
            },
            "required": ["customer", "total"],
        }))?
        .keywords(["sql"]);
    registry.register(insert, move |call: Call| {
        let own = database.clone();
        async move {
            let (customer, total) = (
                call.arguments.text("customer")?,
                call.arguments.number("total")?,
            );
            Ok(ToolOutput::json(
                json!({ "orders": own.insert(customer, total) }),
            ))
        }
    })?;
    Ok(registry)
}

/// What `send_email` takes, read as a whole.
#[derive(Deserialize)]
struct Letter {
    to: String,
    subject: String,
    #[serde(default)]
    body: String,
}

fn email() -> Result<ToolRegistry, Failure> {
    let registry = ToolRegistry::new("email")?;
    let send = ToolSpec::new("send_email", "Send a letter to somebody outside.")?
        .schema(json!({
            "type": "object",
            "properties": {
                "to": { "type": "string", "pattern": "@" },
                "subject": { "type": "string" },
                "body": { "type": "string" },
            },
            "required": ["to", "subject"],
        }))?
        .keywords(["mail", "message"]);
    registry.register(send, |call: Call| async move {
        let letter: Letter = call.arguments.read()?;
        let (to, subject) = (letter.to, letter.subject);
        let text = format!("sent `{subject}` to {to}, {} characters", letter.body.len());
        Ok(ToolOutput::text(text))
    })?;
    Ok(registry)
}

/// Documents, with tools as rmcp's macros make them.
struct Documents;

#[derive(Deserialize, schemars::JsonSchema)]
struct Wanted {
    /// A word of the document.
    word: String,
}

#[tool_router]
impl Documents {
    const ALL: [&str; 3] = ["Holiday rules", "Travel rules", "Fire drill"];

    #[tool(description = "Find documents of the office by a word of their titles.")]
    async fn find_document(&self, Parameters(wanted): Parameters<Wanted>) -> String {
        let word = wanted.word.to_lowercase();
        let found = Self::ALL
            .iter()
            .filter(|title| title.to_lowercase().contains(&word));
        found.copied().collect::<Vec<_>>().join(", ")
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let router: ToolRouter<Documents> = Documents::tool_router();
    let documents = RoutedTools::new("documents", Documents, router, Visibility::Discoverable)?;
    let crib = Crib::builder()
        .provider(Arc::new(database()?))
        .provider(Arc::new(email()?))
        .provider(Arc::new(documents))
        .build();

    // The host's own router, with a state of its own.
    let app = Router::new()
        .route("/", get(|| async { "an office" }))
        .merge(crib.router("/mcp"));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, app).await?;
    crib.close().await;
    Ok(())
}
