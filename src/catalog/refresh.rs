//! Keeping the catalog true.
//!
//! ```text
//! read each source -> check -> judge what changed -> save -> assemble -> publish
//! ```
//!
//! A source that cannot be read, or gives nothing, keeps its last good tools and is reported.
//! Where nothing changed, nothing is written and nothing is published. A registry that can say what
//! changed since a time is asked for that, and read whole from time to time.

mod source;
mod fetch;
mod follow;
mod read;
mod since;
mod judge;
mod assemble;

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};

use crate::catalog::diff::Change;
use crate::catalog::pins::Policy;
use crate::catalog::refresh::fetch::Fetcher;
use crate::catalog::scan::KnownNames;
use crate::catalog::snapshot::{ChangeSnapshotError, Snapshot, SnapshotFile};
use crate::domain::{Catalog, Server, ServerName};

pub use self::assemble::{Assembled, assemble};
pub use self::fetch::{FetchError, FetchOptions};
pub use self::follow::fetch_documents;
pub use self::judge::Asked;
pub use self::read::{ReadLimits, ReadSourceError};
pub use self::source::{Origin, ParseOriginError, Source};

/// Sources that are read at the same time.
const TOGETHER: usize = 4;

/// Why a round of refreshing came to nothing. The catalog is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RefreshError {
    /// The snapshot was not written.
    #[error(transparent)]
    Snapshot(#[from] ChangeSnapshotError),
    /// The servers of all sources make no catalog.
    #[error("the sources make no catalog")]
    Catalog(#[from] crate::domain::CatalogError),
    /// The thread that judged was cut off.
    #[error("refreshing was interrupted")]
    Interrupted(#[from] tokio::task::JoinError),
}

/// Makes a catalog the one that is searched and run.
pub trait Publish: Sync {
    /// Embeds what changed, and puts the catalog in the place of the present one.
    fn publish(&self, catalog: Arc<Catalog>) -> impl Future<Output = ()> + Send;
}

/// What became of a source.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SourceOutcome {
    /// It is as it was, and no work was done.
    Unchanged,
    /// It was read.
    Read {
        /// What of it was refused, and why.
        refused: Vec<String>,
    },
    /// It was not read, and its last good tools stay.
    Failed {
        /// Why.
        reason: String,
    },
}

/// A source after a round.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SourceReport {
    /// Its name.
    pub name: Box<str>,
    /// What became of it.
    pub outcome: SourceOutcome,
    /// Servers that are published of it.
    pub servers: usize,
    /// Tools that are published of it.
    pub tools: usize,
    /// Definitions of it that wait.
    pub waiting: usize,
}

/// A round of refreshing.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RefreshReport {
    /// All sources, then the servers that were asked.
    pub sources: Vec<SourceReport>,
    /// What is published that was not, and the other way round.
    pub changes: Vec<Change>,
    /// Whether a catalog was published.
    pub published: bool,
    /// Definitions that wait to be approved.
    pub waiting: usize,
    /// Servers that give way to another of the same name, as `source/server`.
    pub shadowed: Vec<String>,
}

impl RefreshReport {
    /// How many sources were not read.
    pub fn failed(&self) -> usize {
        let failed =
            |report: &&SourceReport| matches!(report.outcome, SourceOutcome::Failed { .. });
        self.sources.iter().filter(failed).count()
    }
}

/// What a job works with.
#[derive(Clone, Debug)]
pub struct RefreshOptions {
    /// Where tools come from, beside the operator's own files.
    pub sources: Vec<Source>,
    /// Policies of single servers, over those of their sources.
    pub policies: HashMap<ServerName, Policy>,
    /// Limits of fetching.
    pub fetch: FetchOptions,
    /// Limits of reading.
    pub read: ReadLimits,
    /// A registry that can say what changed is asked for that; after this time it is still read
    /// whole, so that what was taken out of it is seen.
    pub whole_after: Duration,
}

impl Default for RefreshOptions {
    fn default() -> Self {
        Self {
            sources: Vec::new(),
            policies: HashMap::new(),
            fetch: FetchOptions::default(),
            read: ReadLimits::default(),
            whole_after: Duration::from_hours(24),
        }
    }
}

impl RefreshOptions {
    /// Stands for the policies of single servers; changes when one of them does.
    fn policies_mark(&self) -> String {
        let mut policies: Vec<String> = self
            .policies
            .iter()
            .map(|(server, policy)| format!("{server}={policy}"))
            .collect();
        policies.sort_unstable();
        policies.join(",")
    }
}

/// Reads sources again and publishes what came of it. There is one in a process.
#[derive(Debug)]
pub struct RefreshJob {
    options: RefreshOptions,
    file: SnapshotFile,
    published: Arc<Catalog>,
    whole_next: bool,
}

impl RefreshJob {
    /// `published` is the catalog at present.
    pub fn new(options: RefreshOptions, file: SnapshotFile, published: Arc<Catalog>) -> Self {
        Self {
            options,
            file,
            published,
            whole_next: false,
        }
    }

    /// The next round reads every registry whole, and not only what changed in it.
    pub fn read_whole_next(&mut self) {
        self.whole_next = true;
    }

    /// One round. `own` are the default catalog and the operator's files, which go over all
    /// sources; `asked` are servers that have just been asked for their tools.
    pub async fn run(
        &mut self,
        own: &Catalog,
        asked: Vec<Asked>,
        publish: &impl Publish,
    ) -> Result<RefreshReport, RefreshError> {
        let file = self.file.clone();
        let before = tokio::task::spawn_blocking(move || file.load()).await?;
        let readings = self.read_all(&before).await;
        self.whole_next = false;
        self.judge(own, (readings, asked), publish).await
    }

    /// Of some servers those whose own lists count: they were asked before, or have a policy of
    /// their own. What the catalog says of any other is somebody's wording, which differs from the
    /// server's own without any change.
    pub async fn followed(&self, servers: &[ServerName]) -> Result<Vec<ServerName>, RefreshError> {
        let file = self.file.clone();
        let snapshot = tokio::task::spawn_blocking(move || file.load()).await?;
        let counts = |name: &&ServerName| {
            self.options.policies.contains_key(*name) || snapshot.asked.server(name).is_some()
        };
        Ok(servers.iter().filter(counts).cloned().collect())
    }

    /// As a round, with what servers have answered alone: all sources stay as they are.
    pub async fn take_answers(
        &mut self,
        own: &Catalog,
        asked: Vec<Asked>,
        publish: &impl Publish,
    ) -> Result<RefreshReport, RefreshError> {
        let readings = self.options.sources.iter();
        let readings = readings.map(|_| read::Reading::Unchanged).collect();
        self.judge(own, (readings, asked), publish).await
    }

    async fn judge(
        &mut self,
        own: &Catalog,
        (readings, asked): (Vec<read::Reading>, Vec<Asked>),
        publish: &impl Publish,
    ) -> Result<RefreshReport, RefreshError> {
        let known = KnownNames::of(own);
        let round = judge::Round {
            sources: self.options.sources.clone(),
            policies: self.options.policies.clone(),
            known,
            readings,
            asked,
        };
        let file = self.file.clone();
        let judging = move || file.change(|snapshot| round.apply(snapshot));
        let (sources, snapshot) = tokio::task::spawn_blocking(judging).await??;
        let assembled = assemble(own, &snapshot)?;
        let mut report = RefreshReport {
            sources,
            waiting: snapshot.waiting(),
            shadowed: assembled.shadowed,
            ..RefreshReport::default()
        };
        let catalog = Arc::new(assembled.catalog);
        if catalog.servers() != self.published.servers() {
            report.changes = Change::between(&self.published, &catalog);
            publish.publish(Arc::clone(&catalog)).await;
            self.published = catalog;
            report.published = true;
        }
        Ok(report)
    }

    async fn read_all(&self, before: &Snapshot) -> Vec<read::Reading> {
        let fetcher = Fetcher::new(self.options.fetch.clone());
        let reader = read::Reader {
            fetcher: &fetcher,
            limits: &self.options.read,
            policies: self.options.policies_mark(),
            whole_after: match self.whole_next {
                true => Duration::ZERO,
                false => self.options.whole_after,
            },
        };
        let mut readings = Vec::with_capacity(self.options.sources.len());
        for source in &self.options.sources {
            let state = before.source(&source.name);
            readings.push(reader.read(source, state).boxed());
        }
        futures::stream::iter(readings)
            .buffered(TOGETHER)
            .collect()
            .await
    }
}

/// The definitions that a server has just listed, with what the catalog knows beyond them.
pub fn server_as_listed(known: &Server, listed: &[serde_json::Value]) -> (Server, Vec<String>) {
    let mut refused = Vec::new();
    let mut tools = Vec::new();
    for definition in listed {
        match crate::catalog::snapshot::tool_from_json(definition) {
            Ok(tool) => {
                let same = known.tools.iter().find(|old| old.name() == tool.name());
                let mut definition = tool.definition();
                let keywords = same.map(crate::domain::Tool::keywords).unwrap_or_default();
                definition.keywords = keywords.iter().map(ToString::to_string).collect();
                tools.push(crate::domain::Tool::new(definition));
            }
            Err(error) => refused.push(error.to_string()),
        }
    }
    let mut server = known.clone();
    server.tools = tools;
    (server, refused)
}
