//! Refreshing the catalog of a running program: rounds, one at a time, and what starts them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use arc_swap::ArcSwap;
use futures::{FutureExt, StreamExt};
use rand::rngs::OsRng;
use rand::{Rng, TryRngCore};
use serde_json::{Value, json};

use crate::app::App;
use crate::app::hangup::Hangup;
use crate::catalog::refresh::{
    Asked, Publish, RefreshJob, RefreshOptions, RefreshReport, SourceOutcome, SourceReport,
    server_as_listed,
};
use crate::catalog::scan::{KnownNames, ScanMemory, Severity, worst};
use crate::catalog::snapshot::{SnapshotFile, SourceState};
use crate::domain::{Catalog, Server, ServerName, Tenant, TenantId};
use crate::search::Index;
use crate::telemetry::{Chain, Gauge, set_gauge};

/// Servers that are asked at the same time.
const ASKED_TOGETHER: usize = 4;
/// Share by which the wait between rounds varies, so that many programs do not ask at once.
const JITTER: f64 = 0.1;

/// What refreshing needs beside the parts of the program.
#[derive(Debug)]
pub(super) struct Refresher {
    job: tokio::sync::Mutex<RefreshJob>,
    file: SnapshotFile,
    /// The default catalog and the operator's files, as they last read.
    own: ArcSwap<Catalog>,
    last: Mutex<Option<RefreshReport>>,
    /// What was found so far, once a program that serves has begun to count it.
    scanned: tokio::sync::Mutex<Option<ScanMemory>>,
}

impl Refresher {
    pub(super) fn new(
        options: RefreshOptions,
        file: SnapshotFile,
        own: Arc<Catalog>,
        published: Arc<Catalog>,
    ) -> Self {
        Self {
            job: tokio::sync::Mutex::new(RefreshJob::new(options, file.clone(), published)),
            file,
            own: ArcSwap::from(own),
            last: Mutex::new(None),
            scanned: tokio::sync::Mutex::new(None),
        }
    }

    /// How many sources were not read in the last round, and how many definitions wait.
    pub(super) fn state(&self) -> (usize, usize) {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let last = last.as_ref();
        last.map_or((0, 0), |report| (report.failed(), report.waiting))
    }
}

/// Which servers are asked for their tools, and with whose secrets and settings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ask<'a> {
    /// The servers.
    pub servers: &'a [ServerName],
    /// Whose secrets and settings; the local tenant's where nobody is named.
    pub tenant: Option<&'a TenantId>,
    /// Whether registries are read whole, and not only what changed in them.
    pub whole: bool,
}

/// Hears how many of how many tools are embedded.
type Progress<'a> = &'a (dyn Fn(usize, usize) + Send + Sync);

/// Swaps the catalog in for running and for searching.
struct Publisher<'a> {
    app: &'a App,
    progress: Progress<'a>,
}

impl Publish for Publisher<'_> {
    async fn publish(&self, catalog: Arc<Catalog>) {
        let app = self.app;
        let builder = app.builder();
        // While the first vectors are made, no other index may be built and overtake them.
        let _one = builder.turn.lock().await;
        let index = match builder.keyword_side(Arc::clone(&catalog)).await {
            Ok(index) => index,
            Err(error) => {
                tracing::error!(error = %Chain(error.as_ref()), "cannot build the index");
                return;
            }
        };
        if builder.embedder.is_none() || !app.searcher.index().has_vectors() {
            self.swap(&catalog, Arc::clone(&index));
        }
        match builder.vectors(&index, self.progress).await {
            Ok(Some(whole)) => self.swap(&catalog, Arc::new(whole)),
            Ok(None) => {}
            Err(error) => {
                tracing::error!(error = %Chain(error.as_ref()),
                    "cannot embed what changed; ranking by keywords");
                self.swap(&catalog, index);
            }
        }
    }
}

impl Publisher<'_> {
    /// Running first: a handle for a tool that changed is then refused and not run.
    fn swap(&self, catalog: &Arc<Catalog>, index: Arc<Index>) {
        self.app.catalog.store(Arc::clone(catalog));
        self.app.searcher.publish(index);
    }
}

impl App {
    /// One round: reads the operator's files and all sources again, asks the servers of `ask` for
    /// their tools, and publishes what came of it. Rounds wait for each other. `progress` is told
    /// tools embedded and tools in all.
    pub async fn refresh(
        &self,
        ask: Ask<'_>,
        progress: Progress<'_>,
    ) -> anyhow::Result<RefreshReport> {
        let mut job = self.refresher.job.lock().await;
        if ask.whole {
            job.read_whole_next();
        }
        self.read_own().await;
        let asked = self.ask(ask).await;
        let own = self.refresher.own.load_full();
        let publisher = Publisher {
            app: self,
            progress,
        };
        let report = job.run(&own, asked, &publisher).await;
        let report = report.context("cannot refresh the catalog")?;
        drop(job);
        log(&report);
        // A command that ends after one round has nobody to show the count to, and no memory.
        let read = |source: &SourceReport| matches!(source.outcome, SourceOutcome::Read { .. });
        let is_news = report.published || report.sources.iter().any(read);
        if is_news && self.refresher.scanned.lock().await.is_some() {
            self.count_findings().await;
        }
        let last = &self.refresher.last;
        *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(report.clone());
        Ok(report)
    }

    /// Asks servers that say that their lists changed, and publishes what came of it. Sources are not
    /// read.
    pub(super) async fn take_news(&self, servers: &[ServerName]) -> anyhow::Result<RefreshReport> {
        let mut job = self.refresher.job.lock().await;
        let followed = job.followed(servers).await;
        let followed = followed.context("cannot tell whose lists count")?;
        tracing::info!(
            servers = servers.len(),
            followed = followed.len(),
            "servers told of changed lists"
        );
        if followed.is_empty() {
            return Ok(RefreshReport::default());
        }
        let catalog = self.catalog();
        let mut asked = self
            .ask(Ask {
                servers: &followed,
                ..Ask::default()
            })
            .await;
        for answer in &mut asked {
            answer.unasked_over = catalog.server(&answer.name).cloned();
        }
        let own = self.refresher.own.load_full();
        let publisher = Publisher {
            app: self,
            progress: &|_, _| (),
        };
        let report = job.take_answers(&own, asked, &publisher).await;
        let report = report.context("cannot take over what servers list")?;
        drop(job);
        for source in &report.sources {
            if let SourceOutcome::Failed { reason } = &source.outcome {
                tracing::warn!(server = %source.name, reason = %reason, "gave no list of tools");
            }
        }
        tracing::info!(
            changes = report.changes.len(),
            waiting = report.waiting,
            "judged what servers list now"
        );
        self.count_findings().await;
        Ok(report)
    }

    /// Reads the operator's files. Where that fails the last good ones stay, file by file.
    async fn read_own(&self) {
        let place = self.place.clone();
        let read = tokio::task::spawn_blocking(move || place.own_catalog()).await;
        let loaded = match read {
            Ok(Ok(loaded)) => loaded,
            Ok(Err(error)) => {
                tracing::warn!(error = %Chain(error.as_ref()), "catalog files stay as they were");
                return;
            }
            Err(error) => {
                tracing::error!(error = %Chain(&error), "reading catalog files broke down");
                return;
            }
        };
        let before = self.refresher.own.load_full();
        let mut servers: Vec<Arc<Server>> = loaded.catalog.servers().to_vec();
        for fault in &loaded.faults {
            tracing::warn!(file = %fault.file, line = fault.line, fault = %fault.message,
                remedy = %fault.remedy, "a catalog file is faulty");
            let stem = std::path::Path::new(&*fault.file).file_stem();
            let name = stem.and_then(|stem| stem.to_str()?.parse::<ServerName>().ok());
            let kept = name.and_then(|name| before.server(&name));
            servers.extend(
                kept.filter(|kept| servers.iter().all(|s| s.name != kept.name))
                    .cloned(),
            );
        }
        match Catalog::new(servers) {
            Ok(catalog) => {
                self.refresher.own.store(Arc::new(catalog));
            }
            Err(error) => {
                tracing::error!(error = %Chain(&error), "catalog files do not fit together");
            }
        }
    }

    async fn ask(&self, ask: Ask<'_>) -> Vec<Asked> {
        let catalog = self.catalog();
        let tenant = Tenant {
            id: ask.tenant.cloned().unwrap_or_else(|| Tenant::local().id),
            ..Tenant::local()
        };
        let mut answers = Vec::with_capacity(ask.servers.len());
        for name in ask.servers {
            answers.push(self.ask_named(&catalog, name.clone(), &tenant).boxed());
        }
        futures::stream::iter(answers)
            .buffered(ASKED_TOGETHER)
            .collect()
            .await
    }

    async fn ask_named(&self, catalog: &Catalog, name: ServerName, tenant: &Tenant) -> Asked {
        let answer = match catalog.server(&name) {
            None => Err("there is no such server".to_owned()),
            Some(server) => self.ask_one(server, tenant).await,
        };
        Asked {
            name,
            answer,
            unasked_over: None,
        }
    }

    async fn ask_one(
        &self,
        server: &Server,
        tenant: &Tenant,
    ) -> Result<(Server, Vec<String>), String> {
        let upstreams = self.caller.upstreams();
        let listed = upstreams.list_tools(tenant, server, &*self.vault).await;
        let listed = listed.map_err(|error| Chain(&error).to_string())?;
        if listed.is_empty() {
            return Err("it lists no tool".to_owned());
        }
        Ok(server_as_listed(server, &listed))
    }

    /// Counts what the scanner finds at its highest severity, for the metrics: of what is published,
    /// where only what changed since the last count is scanned, and of what waits. Counts wait for
    /// each other.
    async fn count_findings(&self) {
        let mut scanned = self.refresher.scanned.lock().await;
        let mut memory = scanned.take().unwrap_or_default();
        let (catalog, own) = (self.catalog(), self.refresher.own.load_full());
        let file = self.refresher.file.clone();
        let counting = tokio::task::spawn_blocking(move || {
            let known = KnownNames::of(&own);
            let snapshot = file.load();
            let held = snapshot.states().flat_map(SourceState::waiting);
            let waiting: usize = held.map(|held| held.flagged(&known)).sum();
            set_gauge(Gauge::WaitingFlagged, waiting);
            let found = memory.scan_catalog(&catalog, &known);
            let high = found
                .iter()
                .filter(|suspicion| worst(&suspicion.findings) == Some(Severity::High));
            (high.count(), memory)
        });
        let counted = counting.await.map(|(high, memory)| {
            set_gauge(Gauge::CatalogFlagged, high);
            memory
        });
        *scanned = Some(counted.unwrap_or_default());
    }

    /// Rounds at start, at intervals and, where `hangup`, on SIGHUP, until the program stops.
    pub(super) fn spawn_refreshing(self: &Arc<Self>, hangup: bool) {
        let app = Arc::clone(self);
        self.lifecycle.spawn(async move {
            tokio::select! {
                () = app.refresh_forever(hangup) => {}
                () = app.lifecycle.stopping() => {}
            }
        });
    }

    async fn refresh_forever(&self, hangup: bool) {
        let catalog = &self.place.config.catalog;
        let mut signal = Hangup::new(hangup);
        self.count_findings().await;
        let timed = !catalog.sources.is_empty() && catalog.refresh_s != 0;
        if !catalog.sources.is_empty() {
            self.refresh_logged().await;
        }
        loop {
            let share = OsRng.unwrap_err().random_range(1.0 - JITTER..=1.0 + JITTER);
            let wait = Duration::from_secs(catalog.refresh_s).mul_f64(share);
            tokio::select! {
                () = tokio::time::sleep(wait), if timed => {}
                () = signal.recv() => tracing::info!("refreshing the catalog on SIGHUP"),
            }
            self.refresh_logged().await;
        }
    }

    async fn refresh_logged(&self) {
        if let Err(error) = self.refresh(Ask::default(), &|_, _| ()).await {
            tracing::error!(error = %Chain(error.as_ref()), "the catalog stays as it was");
        }
    }
}

/// A report as JSON, for the admin port and `--json`.
pub fn report_json(report: &RefreshReport) -> Value {
    let sources = report.sources.iter().map(|source| {
        let (outcome, reason, refused) = match &source.outcome {
            SourceOutcome::Unchanged => ("unchanged", None, &[][..]),
            SourceOutcome::Read { refused } => ("read", None, refused.as_slice()),
            SourceOutcome::Failed { reason } => ("failed", Some(reason.as_str()), &[][..]),
        };
        let mut row = json!({
            "name": &*source.name, "outcome": outcome, "servers": source.servers,
            "tools": source.tools, "waiting": source.waiting, "refused": refused,
        });
        if let Some(reason) = reason {
            row["reason"] = Value::from(reason);
        }
        row
    });
    let changes = report.changes.iter().map(ToString::to_string);
    json!({
        "sources": sources.collect::<Vec<_>>(),
        "published": report.published,
        "changes": changes.collect::<Vec<_>>(),
        "waiting": report.waiting,
        "shadowed": report.shadowed,
    })
}

fn log(report: &RefreshReport) {
    for source in &report.sources {
        match &source.outcome {
            SourceOutcome::Unchanged => {}
            SourceOutcome::Read { refused } => tracing::info!(source = %source.name,
                servers = source.servers, tools = source.tools, waiting = source.waiting,
                refused = refused.len(), "read a catalog source"),
            SourceOutcome::Failed { reason } => tracing::warn!(source = %source.name,
                reason = %reason, tools = source.tools,
                "a catalog source was not read; its last good tools stay"),
        }
    }
    if report.published {
        tracing::info!(
            changes = report.changes.len(),
            waiting = report.waiting,
            "published a catalog"
        );
    }
}
