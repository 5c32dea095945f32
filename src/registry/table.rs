//! Tools of the program itself.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::domain::{ParseNameError, ServerName};
use crate::registry::provider::{Call, ProvideError, ToolProvider};
use crate::registry::{ToolList, ToolMetadata, ToolOutput, ToolSpec};

/// Most tools of one registry.
const TOOLS_MAX: usize = 100_000;

/// A tool was not registered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// There is one of the name.
    #[error("tool `{0}` is there already")]
    Taken(String),
    /// There are too many.
    #[error("there are {TOOLS_MAX} tools, which is the limit")]
    Full,
}

type Handler = dyn Fn(Call) -> BoxFuture<'static, Result<ToolOutput, ProvideError>> + Send + Sync;

#[derive(Clone)]
struct Registered {
    metadata: Arc<ToolMetadata>,
    handler: Arc<Handler>,
}

/// Tools with their handlers, registered and removed while others search and call. Share it by
/// `Arc`.
///
/// ```
/// use serde_json::json;
/// use toolcrib::registry::{Call, ToolOutput, ToolRegistry, ToolSpec};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = ToolRegistry::new("greetings")?;
/// let spec = ToolSpec::new("greet", "Greet somebody by name.")?
///     .schema(json!({
///         "type": "object",
///         "properties": { "name": { "type": "string" } },
///         "required": ["name"],
///     }))?
///     .keywords(["hello"]);
/// registry.register(spec, |call: Call| async move {
///     Ok(ToolOutput::text(format!("Hello {}!", call.arguments.text("name")?)))
/// })?;
/// assert_eq!(registry.len(), 1);
/// # Ok(())
/// # }
/// ```
pub struct ToolRegistry {
    name: ServerName,
    tools: Mutex<BTreeMap<String, Registered>>,
    list: ArcSwap<ToolList>,
}

impl fmt::Debug for ToolRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolRegistry({}, {} tools)", self.name, self.len())
    }
}

impl ToolRegistry {
    /// Without tools, under a name of `a-z`, `0-9` and `-`.
    pub fn new(name: &str) -> Result<Self, ParseNameError> {
        Ok(Self {
            name: name.parse()?,
            tools: Mutex::default(),
            list: ArcSwap::default(),
        })
    }

    /// Adds a tool. Searches that start afterwards find it.
    pub fn register<F, R>(&self, spec: ToolSpec, handler: F) -> Result<(), RegisterError>
    where
        F: Fn(Call) -> R + Send + Sync + 'static,
        R: Future<Output = Result<ToolOutput, ProvideError>> + Send + 'static,
    {
        let metadata = Arc::new(ToolMetadata::from(spec));
        let handler: Arc<Handler> = Arc::new(move |call| handler(call).boxed());
        let mut tools = self.lock();
        if tools.contains_key(metadata.name()) {
            return Err(RegisterError::Taken(metadata.name().to_owned()));
        }
        if TOOLS_MAX <= tools.len() {
            return Err(RegisterError::Full);
        }
        tools.insert(metadata.name().to_owned(), Registered { metadata, handler });
        self.publish(&tools);
        Ok(())
    }

    /// Takes a tool away, and says whether it was there. Calls that run go on.
    pub fn remove(&self, name: &str) -> bool {
        let mut tools = self.lock();
        let removed = tools.remove(name).is_some();
        if removed {
            self.publish(&tools);
        }
        removed
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Registered>> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Inside the lock, so that lists follow each other as the changes did.
    fn publish(&self, tools: &BTreeMap<String, Registered>) {
        let tools = tools.values().map(|tool| Arc::clone(&tool.metadata));
        self.list.store(Arc::new(ToolList::new(tools)));
    }
}

impl ToolProvider for ToolRegistry {
    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn tools(&self) -> BoxFuture<'_, Result<ToolList, ProvideError>> {
        let list = ToolList::clone(&self.list.load());
        std::future::ready(Ok(list)).boxed()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Option<ToolOutput>, ProvideError>> {
        let found = self.lock().get(&call.name).cloned();
        async move {
            match found {
                None => Ok(None),
                Some(tool) => (tool.handler)(call).await.map(Some),
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::CallerSide;
    use crate::domain::Tenant;
    use crate::registry::{Arguments, Asker};

    fn call(name: &str) -> Call {
        Call {
            name: name.to_owned(),
            arguments: Arguments::default(),
            asker: Asker::of(Arc::new(Tenant::local())),
            side: CallerSide::default(),
        }
    }

    fn add(registry: &ToolRegistry, name: &str) -> Result<(), RegisterError> {
        let said = name.to_owned();
        registry.register(ToolSpec::new(name, "").unwrap(), move |_call| {
            let said = said.clone();
            async move { Ok(ToolOutput::text(said)) }
        })
    }

    #[tokio::test]
    async fn a_tool_comes_runs_and_goes() {
        let registry = ToolRegistry::new("own").unwrap();
        assert!(registry.call(call("a")).await.unwrap().is_none());
        add(&registry, "a").unwrap();
        assert!(matches!(add(&registry, "a"), Err(RegisterError::Taken(_))));
        let output = registry.call(call("a")).await.unwrap().unwrap();
        assert_eq!(output, ToolOutput::text("a"));
        assert!(registry.tool("a").await.unwrap().is_some());
        assert!(registry.remove("a") && !registry.remove("a"));
        assert!(registry.tool("a").await.unwrap().is_none());
        assert!(registry.is_empty());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn many_register_and_remove_at_one_time() {
        let registry = Arc::new(ToolRegistry::new("own").unwrap());
        let work = |n: usize| {
            let registry = Arc::clone(&registry);
            let turn = move |turn: usize| {
                add(&registry, &format!("keep-{n}-{turn}")).unwrap();
                add(&registry, &format!("go-{n}-{turn}")).unwrap();
                assert!(registry.remove(&format!("go-{n}-{turn}")));
            };
            tokio::task::spawn_blocking(move || (0..50).for_each(turn))
        };
        futures::future::try_join_all((0..8).map(work))
            .await
            .unwrap();
        let list = registry.tools().await.unwrap();
        assert_eq!((list.len(), registry.len()), (400, 400));
        assert!(list.iter().all(|tool| tool.name().starts_with("keep-")));
    }
}
