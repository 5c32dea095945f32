//! All providers that one asker reaches: request-scoped over global over the catalog.

use std::collections::HashSet;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::future::join_all;
use tokio_util::task::AbortOnDropHandle;

use crate::lifecycle::Lifecycle;
use crate::registry::provider::{Asker, Call, ProvideError, ToolProvider};
use crate::registry::steady::{Freshness, Steady};
use crate::registry::{ToolList, ToolMetadata, ToolOutput};

/// Most global providers.
const GLOBAL_MAX: usize = 256;
/// Most providers of one request; more are left out.
const REQUEST_MAX: usize = 16;
/// Most tools that one search of a provider adds.
const FOUND_MAX: usize = 100;

/// Providers that middleware puts into a request's extensions.
#[derive(Clone, Debug, Default)]
pub struct RequestProviders(pub Vec<Arc<dyn ToolProvider>>);

/// Makes the providers of one request, from its headers, its path or its tenant.
pub trait PerRequest: Send + Sync {
    /// For this asker alone. Must be quick: what takes time belongs into the providers.
    fn providers(&self, asker: &Asker) -> Vec<Arc<dyn ToolProvider>>;
}

impl<F> PerRequest for F
where
    F: Fn(&Asker) -> Vec<Arc<dyn ToolProvider>> + Send + Sync,
{
    fn providers(&self, asker: &Asker) -> Vec<Arc<dyn ToolProvider>> {
        self(asker)
    }
}

/// How long providers may take.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Deadlines {
    /// To list their tools, and to find some.
    pub list: Duration,
    /// To run one.
    pub call: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            list: Duration::from_millis(1_500),
            call: Duration::from_secs(50),
        }
    }
}

/// Whose a tool is.
#[derive(Clone, Debug)]
pub enum Owner {
    /// A provider's.
    Provider(Arc<dyn ToolProvider>),
    /// The catalog's.
    Catalog,
}

/// A tool with its owner.
#[derive(Clone, Debug)]
pub struct Offered {
    /// The tool.
    pub tool: Arc<ToolMetadata>,
    /// Whose it is.
    pub owner: Owner,
}

/// What one asker is offered at one moment.
#[derive(Debug, Default)]
pub struct Offer {
    /// Each name once, of the owner that goes first.
    pub tools: Vec<Offered>,
    /// Providers that did not answer in time; their last list stands in where there is one.
    pub late: Vec<String>,
}

/// What one provider gave: its list, then what it found.
struct Given {
    provider: Arc<dyn ToolProvider>,
    lists: [ToolList; 2],
    is_late: bool,
}

/// Providers by precedence. Share it by `Arc`.
pub struct Providers {
    global: ArcSwap<Vec<Arc<Steady>>>,
    per_request: Vec<Arc<dyn PerRequest>>,
    deadlines: Deadlines,
    lifecycle: Lifecycle,
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Providers")
            .field("global", &self.global.load())
            .field("per_request", &self.per_request.len())
            .finish_non_exhaustive()
    }
}

impl Providers {
    /// None yet.
    pub fn new(deadlines: Deadlines, lifecycle: Lifecycle) -> Self {
        Self {
            global: ArcSwap::default(),
            per_request: Vec::new(),
            deadlines,
            lifecycle,
        }
    }

    /// Makes further providers for each request.
    #[must_use]
    pub fn per_request(mut self, make: impl PerRequest + 'static) -> Self {
        self.per_request.push(Arc::new(make));
        self
    }

    /// The same for one whose type is not known.
    #[must_use]
    pub fn per_request_boxed(mut self, make: Box<dyn PerRequest>) -> Self {
        self.per_request.push(make.into());
        self
    }

    /// Adds a provider for everybody, behind those that are there; says whether there was room.
    /// May be done while the program serves.
    pub fn add(&self, provider: Arc<dyn ToolProvider>) -> bool {
        let steady = Arc::new(Steady::new(provider));
        let before = self.global.rcu(|global| {
            let new = global.iter().chain([&steady]).take(GLOBAL_MAX);
            new.cloned().collect::<Vec<_>>()
        });
        before.len() < GLOBAL_MAX
    }

    /// Takes away the providers of a name, and says whether there were any.
    pub fn remove(&self, name: &str) -> bool {
        let keeps = |steady: &&Arc<Steady>| steady.provider().name() != name;
        let before = self
            .global
            .rcu(|global| global.iter().filter(keeps).cloned().collect::<Vec<_>>());
        !before.iter().all(|steady| keeps(&steady))
    }

    /// All tools that an asker reaches, with those that providers find for a query. The catalog's
    /// come last. All providers are asked at one time, and none is waited for longer than its
    /// deadline.
    pub async fn offer(&self, asker: &Asker, query: Option<&str>, catalog: &ToolList) -> Offer {
        let own = self.own(asker);
        let global = self.global.load_full();
        let own = join_all(
            own.into_iter()
                .map(|provider| self.ask_own(provider, query)),
        );
        let global = join_all(global.iter().map(|steady| self.ask_global(steady, query)));
        let (own, global) = tokio::join!(own, global);
        let mut offer = Offer::default();
        let mut seen: HashSet<&str> = HashSet::new();
        let given: Vec<Given> = own.into_iter().chain(global).collect();
        for one in &given {
            if one.is_late {
                offer.late.push(one.provider.name().to_owned());
            }
            for tool in one.lists.iter().flat_map(ToolList::iter) {
                if seen.insert(tool.name()) {
                    let owner = Owner::Provider(Arc::clone(&one.provider));
                    offer.tools.push(Offered {
                        tool: Arc::clone(tool),
                        owner,
                    });
                }
            }
        }
        for tool in catalog.iter() {
            if seen.insert(tool.name()) {
                offer.tools.push(Offered {
                    tool: Arc::clone(tool),
                    owner: Owner::Catalog,
                });
            }
        }
        offer
    }

    /// The tool of a name and its owner, whether it is listed or not.
    pub async fn find(&self, asker: &Asker, name: &str, catalog: &ToolList) -> Option<Offered> {
        let own = self.own(asker).into_iter().map(|provider| async move {
            let tool = self.look_up(&provider, name).await.flatten()?;
            Some((tool, provider))
        });
        let global = self.global.load_full();
        let global = global.iter().map(|steady| async move {
            let provider = Arc::clone(steady.provider());
            let (list, _) = steady.tools(self.deadlines.list, &self.lifecycle).await;
            if let Some(tool) = list.find(name) {
                return Some((Arc::clone(tool), provider));
            }
            if !steady.may_be_asked(self.deadlines.list) {
                return None;
            }
            let answer = self.look_up(&provider, name).await;
            if answer.is_none() {
                steady.rest();
            }
            let tool = answer.flatten()?;
            Some((tool, provider))
        });
        let (own, global) = tokio::join!(join_all(own), join_all(global));
        let found = own.into_iter().chain(global).flatten().next();
        match found {
            Some((tool, provider)) => Some(Offered {
                tool,
                owner: Owner::Provider(provider),
            }),
            None => catalog.find(name).map(|tool| Offered {
                tool: Arc::clone(tool),
                owner: Owner::Catalog,
            }),
        }
    }

    /// Runs a tool within the deadline, as a task of its own, so that a handler that panics costs
    /// its own call.
    pub async fn call(
        &self,
        provider: &Arc<dyn ToolProvider>,
        call: Call,
    ) -> Result<Option<ToolOutput>, ProvideError> {
        let (after, cancel) = (self.deadlines.call, call.side.cancel.clone());
        let running = Arc::clone(provider);
        let task = self
            .lifecycle
            .spawn(async move { running.call(call).await });
        // It ends with this call, also when nobody waits for that any more.
        let mut task = AbortOnDropHandle::new(task);
        let name = provider.name();
        let ended = tokio::select! {
            ended = &mut task => match ended {
                Ok(result) => return result,
                Err(_panic) => return Err(ProvideError::outcome_unknown(name, "it broke down")),
            },
            () = tokio::time::sleep(after) => {
                ProvideError::TimedOut { provider: name.to_owned(), after }
            }
            () = cancel.cancelled() => ProvideError::Cancelled,
            () = self.lifecycle.cancelled() => ProvideError::ShuttingDown,
        };
        Err(ended)
    }

    /// The request's own providers: middleware's first.
    fn own(&self, asker: &Asker) -> Vec<Arc<dyn ToolProvider>> {
        let brought = asker.extension::<RequestProviders>().cloned();
        let mut own = brought.unwrap_or_default().0;
        own.extend(
            self.per_request
                .iter()
                .flat_map(|make| make.providers(asker)),
        );
        if REQUEST_MAX < own.len() {
            tracing::warn!(providers = own.len(), "left out providers of a request");
            own.truncate(REQUEST_MAX);
        }
        own
    }

    async fn ask_own(&self, provider: Arc<dyn ToolProvider>, query: Option<&str>) -> Given {
        let asked = Arc::clone(&provider);
        let listing = self.in_time(async move { asked.tools().await });
        let (listed, found) = tokio::join!(listing, self.search(&provider, query));
        Given {
            is_late: listed.is_none() || found.is_none(),
            lists: [listed.unwrap_or_default(), found.unwrap_or_default()],
            provider,
        }
    }

    async fn ask_global(&self, steady: &Steady, query: Option<&str>) -> Given {
        let listing = steady.tools(self.deadlines.list, &self.lifecycle);
        let searching = async {
            match steady.may_be_asked(self.deadlines.list) {
                true => self.search(steady.provider(), query).await,
                false => Some(ToolList::default()),
            }
        };
        let ((listed, freshness), found) = tokio::join!(listing, searching);
        if found.is_none() {
            steady.rest();
        }
        Given {
            is_late: freshness != Freshness::Fresh || found.is_none(),
            lists: [listed, found.unwrap_or_default()],
            provider: Arc::clone(steady.provider()),
        }
    }

    /// What a provider finds; `None` if it does not answer in time.
    async fn search(
        &self,
        provider: &Arc<dyn ToolProvider>,
        query: Option<&str>,
    ) -> Option<ToolList> {
        let Some(query) = query.map(str::to_owned) else {
            return Some(ToolList::default());
        };
        let provider = Arc::clone(provider);
        let found = self.in_time(async move { provider.find(&query, FOUND_MAX).await });
        let found = found.await?;
        Some(ToolList::new(found.iter().take(FOUND_MAX).cloned()))
    }

    /// Whether a provider has a tool; `None` if it does not answer in time.
    async fn look_up(
        &self,
        provider: &Arc<dyn ToolProvider>,
        name: &str,
    ) -> Option<Option<Arc<ToolMetadata>>> {
        let (provider, name) = (Arc::clone(provider), name.to_owned());
        let found = self.in_time(async move { provider.tool(&name).await });
        found.await
    }

    /// What a provider answers within the deadline, as a task of its own, which ends with it.
    async fn in_time<T: Send + 'static>(
        &self,
        ask: impl Future<Output = Result<T, ProvideError>> + Send + 'static,
    ) -> Option<T> {
        let limited = tokio::time::timeout(self.deadlines.list, ask);
        let answer = AbortOnDropHandle::new(self.lifecycle.spawn(limited));
        match answer.await {
            Ok(Ok(Ok(answer))) => Some(answer),
            Ok(Ok(Err(error))) => {
                tracing::warn!(error = %error, "a provider fails");
                None
            }
            Ok(Err(_elapsed)) => None,
            Err(_panic) => None,
        }
    }
}

#[cfg(test)]
mod tests;
