//! A registry in a program of one's own: attached to its axum router, or served as an rmcp server.
//!
//! ```
//! use std::sync::Arc;
//!
//! use toolcrib::embed::Crib;
//! use toolcrib::registry::{Call, ToolOutput, ToolRegistry, ToolSpec};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let registry = ToolRegistry::new("clock")?;
//! let spec = ToolSpec::new("ticks", "How many ticks a minute has.")?;
//! registry.register(spec, |_call: Call| async { Ok(ToolOutput::text("3600")) })?;
//! let crib = Crib::builder().provider(Arc::new(registry)).build();
//! let app: axum::Router = axum::Router::new().merge(crib.router("/mcp"));
//! # drop(app);
//! # Ok(())
//! # }
//! ```
//!
//! It is the surface `discovery` over a desk of its own: argument checks, limits, caps and audit are
//! those of `toolcrib serve`. Middleware of the host may put into a request's extensions a
//! [`RequestProviders`](crate::registry::RequestProviders), and a [`Guest`] where there are tenants.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use secrecy::SecretString;

use crate::call::{Caller, UpstreamOptions, Upstreams};
use crate::domain::{Catalog, ReadSettingError, SettingName, Settings, TenantId};
use crate::handles::{ALIVE_MAX, Handles};
use crate::lifecycle::Lifecycle;
use crate::registry::{Deadlines, PerRequest, Providers, ToolProvider};
use crate::search::{Ranking, Searcher};
use crate::tenants::{Limits, TenantLimits};
use crate::transport::desk::Desk;
use crate::transport::http::{Guard, ParseOriginError, embedded_router};
use crate::transport::mcp::{Discovery, Handler, Match};

pub use crate::transport::desk::Guest;

/// Largest request body, in bytes.
const BODY_BYTES_MAX: usize = 256 * 1024;

/// A tenant has set nothing: for programs whose providers bring their own credentials.
#[derive(Clone, Copy, Debug)]
struct NoSettings;

impl Settings for NoSettings {
    fn secret(
        &self,
        _tenant: &TenantId,
        _name: &SettingName,
    ) -> Result<Option<SecretString>, ReadSettingError> {
        Ok(None)
    }

    fn has_secret(&self, _tenant: &TenantId, _name: &SettingName) -> bool {
        false
    }

    fn config(&self, _tenant: &TenantId, _name: &SettingName) -> Option<String> {
        None
    }
}

/// What a [`Crib`] is made of.
pub struct CribBuilder {
    global: Vec<Arc<dyn ToolProvider>>,
    per_request: Vec<Box<dyn PerRequest>>,
    deadlines: Deadlines,
    limits: TenantLimits,
    upstreams: UpstreamOptions,
    settings: Arc<dyn Settings>,
    guard: Guard,
    lifecycle: Lifecycle,
}

impl fmt::Debug for CribBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CribBuilder")
            .field("global", &self.global)
            .field("per_request", &self.per_request.len())
            .finish_non_exhaustive()
    }
}

impl CribBuilder {
    /// A provider for everybody; earlier ones go over later ones. More can be added later, through
    /// [`Crib::providers`].
    #[must_use]
    pub fn provider(mut self, provider: Arc<dyn ToolProvider>) -> Self {
        self.global.push(provider);
        self
    }

    /// Makes the providers of each request; they go over those for everybody.
    #[must_use]
    pub fn per_request(mut self, make: impl PerRequest + 'static) -> Self {
        self.per_request.push(Box::new(make));
        self
    }

    /// How long providers may take.
    #[must_use]
    pub fn deadlines(mut self, deadlines: Deadlines) -> Self {
        self.deadlines = deadlines;
        self
    }

    /// What one tenant may use, in a minute and at one time. Without tenants, all share it.
    #[must_use]
    pub fn limits(mut self, limits: TenantLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Limits and places of sessions with other MCP servers.
    #[must_use]
    pub fn upstreams(mut self, options: UpstreamOptions) -> Self {
        self.upstreams = options;
        self
    }

    /// Where secrets and settings of other MCP servers come from.
    #[must_use]
    pub fn settings(mut self, settings: Arc<dyn Settings>) -> Self {
        self.settings = settings;
        self
    }

    /// Host names and browser origins that requests may carry, besides loopback ones.
    pub fn allow(mut self, hosts: &[String], origins: &[String]) -> Result<Self, ParseOriginError> {
        self.guard = Guard::new(hosts, origins)?;
        Ok(self)
    }

    /// Tasks and the signals of stopping, where the program has a lifecycle already.
    #[must_use]
    pub fn lifecycle(mut self, lifecycle: Lifecycle) -> Self {
        self.lifecycle = lifecycle;
        self
    }

    /// Puts it together. Nothing is started.
    pub fn build(self) -> Crib {
        let lifecycle = self.lifecycle;
        let unused = Arc::new(Handles::new(ALIVE_MAX));
        let searcher = Arc::new(Searcher::new(
            None,
            Arc::clone(&unused),
            Arc::clone(&self.settings),
            Ranking::default(),
        ));
        let caller = Arc::new(Caller::new(
            Arc::new(ArcSwap::from_pointee(Catalog::default())),
            unused,
            self.settings,
            Upstreams::new(self.upstreams, lifecycle.clone()),
        ));
        let desk = Arc::new(Desk::new(
            searcher,
            Arc::clone(&caller),
            Limits::new(self.limits),
            lifecycle.clone(),
        ));
        let providers = Providers::new(self.deadlines, lifecycle.clone());
        let per_request = self.per_request.into_iter();
        let providers = per_request.fold(providers, Providers::per_request_boxed);
        let providers = Arc::new(providers);
        for provider in self.global {
            if !providers.add(provider) {
                tracing::warn!("left out a provider: there are too many");
            }
        }
        let shared = Arc::clone(&providers);
        let surface = Discovery::new(Arc::clone(&desk), shared, None, Match::Fuzzy);
        let handler = Handler::of_resident(Arc::new(surface), desk, Guest::local());
        Crib {
            handler,
            providers,
            caller,
            guard: self.guard,
            lifecycle,
        }
    }
}

/// A registry that is served. Clones share it.
#[derive(Clone, Debug)]
pub struct Crib {
    handler: Handler,
    providers: Arc<Providers>,
    caller: Arc<Caller>,
    guard: Guard,
    lifecycle: Lifecycle,
}

impl Crib {
    /// Without providers yet.
    pub fn builder() -> CribBuilder {
        CribBuilder {
            global: Vec::new(),
            per_request: Vec::new(),
            deadlines: Deadlines::default(),
            limits: TenantLimits::default(),
            upstreams: UpstreamOptions::default(),
            settings: Arc::new(NoSettings),
            guard: Guard::default(),
            lifecycle: Lifecycle::new(),
        }
    }

    /// The providers: more can be added, others taken away, while it serves.
    pub fn providers(&self) -> &Arc<Providers> {
        &self.providers
    }

    /// What reaches other MCP servers, for a [`RemoteProvider`](crate::registry::RemoteProvider).
    pub fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// An rmcp [`ServerHandler`](rmcp::ServerHandler), for any transport of rmcp.
    pub fn handler(&self) -> Handler {
        self.handler.clone()
    }

    /// A router that answers MCP at a path: merge it into the host's. It is a tower service as
    /// well. Only hosts and origins that are allowed get an answer, loopback ones without asking.
    pub fn router(&self, path: &str) -> axum::Router {
        let cancelled = self.lifecycle.cancelled_token();
        embedded_router(
            path,
            self.handler(),
            self.guard.clone(),
            BODY_BYTES_MAX,
            cancelled,
        )
    }

    /// Ends what runs: sessions with other servers, and tasks that do not finish within a moment.
    pub async fn close(&self) {
        self.lifecycle.stop();
        self.caller.upstreams().close().await;
        self.lifecycle.cancel();
        self.lifecycle.wait(std::time::Duration::from_secs(5)).await;
    }
}
