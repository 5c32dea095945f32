//! The program: its parts, wired once, and its life from start to shutdown.
//!
//! ```text
//! start: catalog -> keyword index -> model -> listen;  apart: vectors -> publish
//! stop:  not ready -> stop accepting -> finish calls -> cancel -> close upstreams
//! ```

mod build;
mod model;
mod sources;
mod refresh;
mod lists;
mod hangup;
mod health;
mod surfaces;
mod discovery;
mod serve;

use std::sync::Arc;

use anyhow::Context;
use arc_swap::ArcSwap;
use rand::TryRngCore;
use rand::rngs::OsRng;

use crate::call::{Caller, UpstreamOptions, Upstreams};
use crate::catalog::manifest::Fault;
use crate::catalog::refresh::assemble;
use crate::catalog::{SourceFile, builtin, read_folder};
use crate::config::{Config, Environment, Home};
use crate::domain::Catalog;
use crate::handles::Handles;
use crate::lifecycle::Lifecycle;
use crate::models::Models;
use crate::search::{Embedder, Index, Ranking, Searcher, VectorCache};
use crate::telemetry::Chain;
use crate::tenants::{Directory, Limits, TenantLimits, Vault};
use crate::transport::desk::Desk;

use self::refresh::Refresher;

pub use self::build::{IndexJob, Vectors};
pub use self::model::{ModelState, load_embedder, runtime_library};
pub use self::refresh::{Ask, report_json};
pub use self::serve::Listening;

/// What a program needs before it has any part: where things are, and how it is configured.
#[derive(Clone, Debug)]
pub struct Place {
    /// The data folder.
    pub home: Home,
    /// The configuration.
    pub config: Config,
    /// What of the environment concerns us.
    pub env: Environment,
}

impl Place {
    /// From the environment and an optional configuration file.
    pub fn find(file: Option<&std::path::Path>, env: Environment) -> anyhow::Result<Self> {
        let home = match &env.home {
            Some(path) => Home::at(path),
            None => Home::of_platform()?,
        };
        let file = file.or(env.config.as_deref());
        let config = Config::read(file, &home, &env)?;
        Ok(Self { home, config, env })
    }

    /// The list of tenants.
    pub fn directory(&self) -> Directory {
        Directory::new(self.home.tenants_file())
    }

    /// The settings of tenants.
    pub fn vault(&self) -> anyhow::Result<Vault> {
        let (home, key) = (&self.home, self.env.key.as_ref());
        let mut random = OsRng.unwrap_err();
        Vault::open(home.settings_file(), &home.key_file(), key, &mut random)
            .context("cannot open the settings")
    }

    /// The pinned models.
    pub fn models(&self) -> anyhow::Result<Models> {
        Ok(Models::new(self.home.models())?)
    }

    /// All catalog files, source by source; later ones win. What was imported comes first: the
    /// default catalog and the operator's own files know more of a server than a foreign list.
    pub fn catalog_sources(&self) -> anyhow::Result<Vec<Vec<SourceFile>>> {
        let mut sources = Vec::new();
        let imported = self.home.catalog();
        if imported.is_dir() {
            let files = read_folder(&imported)?;
            sources.extend(files.into_iter().map(|file| vec![file]));
        }
        if self.config.catalog.builtin {
            sources.push(builtin());
        }
        for path in &self.config.catalog.paths {
            sources.push(read_folder(path)?);
        }
        Ok(sources)
    }

    /// Weights of the ranking, as configured.
    pub fn ranking(&self) -> Ranking {
        let section = &self.config.ranking;
        Ranking {
            vector_share: section.vector_share,
            lambda: section.lambda,
            pool: section.pool,
            ..Ranking::default()
        }
    }

    /// Limits and places of upstream sessions, as configured.
    pub fn upstream_options(&self) -> UpstreamOptions {
        let section = &self.config.upstreams;
        let seconds = std::time::Duration::from_secs;
        let mut installed = section.installed.clone();
        installed.extend(checkout_servers());
        installed.push(self.home.servers());
        UpstreamOptions {
            connect_max: seconds(section.connect_s),
            call_max: seconds(section.call_s),
            total_max: seconds(section.total_s),
            idle_max: seconds(section.idle_s),
            sessions_max: section.total_max,
            tenant_sessions_max: section.tenant_max,
            result_chars_max: section.result_chars_max,
            memory_bytes_max: section.memory_mib_max.saturating_mul(1024 * 1024),
            processes_max: section.processes_max,
            docker_network: Some(section.docker_network.clone()).filter(|name| !name.is_empty()),
            workspaces: self.home.workspaces(),
            installed,
            http_on_loopback: section.allow_loopback,
            ..UpstreamOptions::default()
        }
    }
}

/// `.servers` of the checkout that this program was built in, where `make servers` installs.
fn checkout_servers() -> Option<std::path::PathBuf> {
    let program = std::env::current_exe().ok()?;
    let target = program
        .ancestors()
        .find(|folder| folder.ends_with("target"))?;
    let servers = target.parent()?.join(".servers");
    servers.join("installed.json").is_file().then_some(servers)
}

/// The parts of a running program.
#[derive(Debug)]
pub struct App {
    place: Place,
    lifecycle: Lifecycle,
    catalog: Arc<ArcSwap<Catalog>>,
    handles: Arc<Handles>,
    directory: Arc<Directory>,
    vault: Arc<Vault>,
    searcher: Arc<Searcher>,
    caller: Arc<Caller>,
    desk: Arc<Desk>,
    cache: VectorCache,
    embedder: Option<Embedder>,
    model: ModelState,
    faults: Vec<Fault>,
    refresher: Refresher,
    /// Held by whoever builds an index.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl App {
    /// Wires the parts and publishes the keyword side. The model is loaded, vectors are not made:
    /// [`App::index_job`] does that.
    ///
    /// Faulty catalog files cost their own servers and are logged.
    pub async fn start(place: Place, lifecycle: Lifecycle) -> anyhow::Result<Self> {
        let (embedder, model) = load_embedder(&place).await?;
        Self::wire(place, lifecycle, embedder, model)
    }

    /// The same without a model, for commands that do not search.
    pub fn start_without_model(place: Place, lifecycle: Lifecycle) -> anyhow::Result<Self> {
        Self::wire(place, lifecycle, None, ModelState::Disabled)
    }

    fn wire(
        place: Place,
        lifecycle: Lifecycle,
        embedder: Option<Embedder>,
        model: ModelState,
    ) -> anyhow::Result<Self> {
        let loaded = place.own_catalog()?;
        for fault in &loaded.faults {
            tracing::warn!(file = %fault.file, line = fault.line, fault = %fault.message,
                remedy = %fault.remedy, "left out a catalog file");
        }
        let own = Arc::new(loaded.catalog);
        let file = place.snapshot();
        let catalog = match assemble(&own, &file.load()) {
            Ok(assembled) => Arc::new(assembled.catalog),
            Err(error) => {
                tracing::error!(error = %Chain(&error), "left out what catalog sources gave");
                Arc::clone(&own)
            }
        };
        let refresher = Refresher::new(place.refresh_options()?, file, own, Arc::clone(&catalog));
        let vault = Arc::new(place.vault()?);
        let handles = Arc::new(Handles::new(place.config.handles.alive_max));
        let searcher = Arc::new(Searcher::new(
            embedder.clone(),
            Arc::clone(&handles),
            Arc::clone(&vault) as _,
            place.ranking(),
        ));
        searcher.publish(Arc::new(Index::keyword_only(
            Arc::clone(&catalog),
            &place.ranking(),
        )));
        let shared = Arc::new(ArcSwap::from(catalog));
        let caller = Arc::new(Caller::new(
            Arc::clone(&shared),
            Arc::clone(&handles),
            Arc::clone(&vault) as _,
            Upstreams::new(place.upstream_options(), lifecycle.clone()),
        ));
        let limits = &place.config.limits;
        let limits = Limits::new(TenantLimits {
            searches_per_minute: Some(limits.searches_per_minute),
            runs_per_minute: Some(limits.runs_per_minute),
            concurrent: Some(limits.concurrent),
        });
        let desk = Arc::new(Desk::new(
            Arc::clone(&searcher),
            Arc::clone(&caller),
            limits,
            lifecycle.clone(),
        ));
        Ok(Self {
            cache: VectorCache::open(&place.home.cache())?,
            directory: Arc::new(place.directory()),
            catalog: shared,
            faults: loaded.faults,
            refresher,
            turn: Arc::default(),
            place,
            lifecycle,
            handles,
            vault,
            searcher,
            caller,
            desk,
            embedder,
            model,
        })
    }

    /// Where things are.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The catalog at present.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// What is wrong with catalog files.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// How the model is.
    pub fn model(&self) -> &ModelState {
        &self.model
    }

    /// Answers queries.
    pub fn searcher(&self) -> &Arc<Searcher> {
        &self.searcher
    }

    /// Runs tools.
    pub fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// What all surfaces share.
    pub fn desk(&self) -> &Arc<Desk> {
        &self.desk
    }

    /// The settings of tenants.
    pub fn vault(&self) -> &Arc<Vault> {
        &self.vault
    }

    /// Ends all upstream sessions with their processes. For programs that do not serve.
    pub async fn close(&self) {
        self.lifecycle.stop();
        self.caller.upstreams().close().await;
        self.lifecycle.cancel();
        self.lifecycle.wait(std::time::Duration::from_secs(5)).await;
    }
}
