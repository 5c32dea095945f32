//! Tools of each user, brought by middleware: a header says who asks, and only that user's notes
//! are found, described and run.
//!
//! ```text
//! cargo run --example per_user
//! ```

#![expect(clippy::print_stdout, reason = "an example says where it listens")]

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use toolcrib::embed::Crib;
use toolcrib::registry::{
    Call, RequestProviders, ToolOutput, ToolProvider, ToolRegistry, ToolSpec,
};

type Failure = Box<dyn Error + Send + Sync>;

/// The providers of all users by their tokens; a real program asks its directory.
type Users = HashMap<&'static str, Arc<dyn ToolProvider>>;

fn notes(user: &'static str) -> Result<Arc<dyn ToolProvider>, Failure> {
    let registry = ToolRegistry::new("notes")?;
    let spec = ToolSpec::new(
        &format!("read_notes_of_{user}"),
        &format!("Read the notes of {user}."),
    )?;
    registry.register(spec, move |_call: Call| async move {
        Ok(ToolOutput::text(format!("{user}: buy milk")))
    })?;
    // The same name for every user, with another meaning for each.
    let spec = ToolSpec::new("whoami", "Tell who is asking.")?;
    registry.register(spec, move |_call: Call| async move {
        Ok(ToolOutput::text(user))
    })?;
    Ok(Arc::new(registry))
}

fn everybodys() -> Result<ToolRegistry, Failure> {
    let registry = ToolRegistry::new("everybodys")?;
    let spec = ToolSpec::new("add", "Add two numbers.")?
        .schema(json!({
            "type": "object",
            "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } },
            "required": ["a", "b"],
        }))?
        .native();
    registry.register(spec, |call: Call| async move {
        let (a, b) = (call.arguments.integer("a")?, call.arguments.integer("b")?);
        Ok(ToolOutput::text(a.saturating_add(b).to_string()))
    })?;
    Ok(registry)
}

/// Lets known users in, and brings their tools.
async fn bring(State(users): State<Arc<Users>>, mut request: Request, next: Next) -> Response {
    let key = request.headers().get("x-user-key");
    let own = key.and_then(|key| users.get(key.to_str().ok()?)).cloned();
    let Some(own) = own else {
        return (StatusCode::UNAUTHORIZED, "who is asking?").into_response();
    };
    request.extensions_mut().insert(RequestProviders(vec![own]));
    next.run(request).await
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let users = Users::from([("key-of-ann", notes("ann")?), ("key-of-bob", notes("bob")?)]);
    let crib = Crib::builder().provider(Arc::new(everybodys()?)).build();
    let app = Router::new()
        .merge(crib.router("/mcp"))
        .layer(from_fn_with_state(Arc::new(users), bring));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
