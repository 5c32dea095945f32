//! The model behind queues: each worker thread owns one copy, queries go first.
//!
//! Queries run one text at a time: short texts gain nothing from sharing a run, and those of
//! different length lose by padding (2.0 ms a text alone, 2.4 ms in unsorted runs of eight). The
//! clauses of a query come out of the same run.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::domain::Embedding;
use crate::search::lexicon::Lexicon;
use crate::search::model::{BATCH_MAX, LoadModelError, Model, ModelFiles, RunModelError};

/// Queries that may wait for the model. At 1 to 5 ms each, on two workers, the last waits half a
/// second.
const QUERY_QUEUE_MAX: usize = 384;
/// Batches of catalog texts that may wait; their senders wait for room.
const PASSAGE_QUEUE_MAX: usize = 4;
/// Copies of one model, at most: each takes about 40 MB.
const WORKERS_MAX: usize = 16;
/// Query vectors kept, twice: a young and an old generation. 384 dimensions take 1.5 KB.
const CACHED_MAX: usize = 2_048;
/// Longest wait of a query; beyond it the keyword side answers alone.
const QUERY_WAIT_MAX: Duration = Duration::from_millis(1_200);

/// Why a text was not embedded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// Too many wait, or this one waited too long.
    #[error("model is busy")]
    Busy,
    /// The model's thread is gone.
    #[error("model has stopped")]
    Stopped,
    /// The model failed.
    #[error("model failed on a text")]
    Run(#[source] Arc<RunModelError>),
}

/// Texts of the catalog on their way through a model's thread.
struct Job {
    texts: Vec<String>,
    reply: Reply,
}

/// A query on its way, with its parts.
struct Asked {
    text: String,
    parts: Vec<Range<usize>>,
    reply: Reply,
}

type Reply = oneshot::Sender<Result<Vec<Embedding>, EmbedError>>;

/// A loaded model that many may use at once. Clones share it.
#[derive(Clone, Debug)]
pub struct Embedder {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    id: String,
    query_prefix: String,
    passage_prefix: String,
    dimensions: usize,
    workers: usize,
    queries: mpsc::Sender<Asked>,
    passages: mpsc::Sender<Job>,
    cache: Mutex<Generations>,
    lexicon: Option<Arc<Lexicon>>,
    second: Option<Embedder>,
}

/// The vector of a query, then those of its parts.
type Kept = Arc<[Embedding]>;

/// Two generations of query vectors. When the young one is full it becomes the old one: a cheap
/// stand-in for least recently used.
#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Box<str>, Kept>,
    old: HashMap<Box<str>, Kept>,
}

impl Embedder {
    /// Loads a model, once for each of `workers` threads that embed side by side. Takes 0.1 to
    /// 1.5 s: call it off the runtime.
    pub fn load(files: &ModelFiles, workers: usize) -> Result<Self, LoadModelError> {
        let workers = workers.clamp(1, WORKERS_MAX);
        let loaded: Vec<_> = std::thread::scope(|scope| {
            let loading: Vec<_> = (0..workers)
                .map(|_| scope.spawn(|| load_and_probe(files)))
                .collect();
            let loaded = loading.into_iter().map(|thread| {
                // Fewer workers than asked for, or none, would be no answer to a broken library.
                let model = thread.join();
                model.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            loaded.collect()
        });
        let loaded = loaded.into_iter().collect::<Result<Vec<_>, _>>()?;
        let dimensions = loaded.first().map_or(0, |(_, dimensions)| *dimensions);
        let lexicon = std::fs::read(&files.tokenizer)
            .ok()
            .and_then(|text| Lexicon::from_tokenizer(&text));
        let (queries, query_jobs) = mpsc::channel(QUERY_QUEUE_MAX);
        let (passages, passage_jobs) = mpsc::channel(PASSAGE_QUEUE_MAX);
        let jobs = Arc::new(tokio::sync::Mutex::new(Jobs {
            queries: query_jobs,
            passages: passage_jobs,
        }));
        for (model, _) in loaded {
            let jobs = jobs.clone();
            std::thread::Builder::new()
                .name("model".into())
                .spawn(move || futures::executor::block_on(work(model, &jobs)))
                .map_err(|source| LoadModelError::Thread {
                    id: files.id.clone(),
                    source,
                })?;
        }
        Ok(Self {
            shared: Arc::new(Shared {
                id: files.id.clone(),
                query_prefix: files.query_prefix.clone(),
                passage_prefix: files.passage_prefix.clone(),
                dimensions,
                workers,
                queries,
                passages,
                cache: Mutex::default(),
                lexicon: lexicon.map(Arc::new),
                second: None,
            }),
        })
    }

    /// With a second, multilingual model, for queries that this one does not understand.
    #[must_use]
    pub fn with_multilingual(&self, second: Self) -> Self {
        let shared = &self.shared;
        Self {
            shared: Arc::new(Shared {
                id: shared.id.clone(),
                query_prefix: shared.query_prefix.clone(),
                passage_prefix: shared.passage_prefix.clone(),
                dimensions: shared.dimensions,
                workers: shared.workers,
                queries: shared.queries.clone(),
                passages: shared.passages.clone(),
                cache: Mutex::default(),
                lexicon: shared.lexicon.clone(),
                second: Some(second),
            }),
        }
    }

    /// The second model, where there is one.
    pub fn multilingual(&self) -> Option<&Self> {
        self.shared.second.as_ref()
    }

    /// Names model and weights.
    pub fn id(&self) -> &str {
        &self.shared.id
    }

    /// Coordinates of a vector.
    pub fn dimensions(&self) -> usize {
        self.shared.dimensions
    }

    /// How many texts are embedded side by side.
    pub(super) fn workers(&self) -> usize {
        self.shared.workers
    }

    /// The words that the model knows whole, where that says something about English.
    pub(super) fn lexicon(&self) -> Option<&Lexicon> {
        self.shared.lexicon.as_deref()
    }

    /// The vector of a query. Refuses rather than waits: search must answer in time.
    pub async fn embed_query(&self, text: &str) -> Result<Embedding, EmbedError> {
        let vectors = self.embed_query_parts(text, &[]).await?;
        vectors.first().cloned().ok_or(EmbedError::Stopped)
    }

    /// The vector of a query, then those of its parts.
    pub(super) async fn embed_query_parts(
        &self,
        text: &str,
        parts: &[Range<usize>],
    ) -> Result<Arc<[Embedding]>, EmbedError> {
        let wanted = 1 + parts.len();
        let known = self.cache(|cache| cache.find(text));
        // The same text may have been asked for without parts.
        if let Some(known) = known.filter(|known| known.len() == wanted) {
            return Ok(known);
        }
        let vectors: Kept = self.ask(text, parts).await?.into();
        self.cache(|cache| cache.keep(text.into(), vectors.clone()));
        Ok(vectors)
    }

    async fn ask(&self, text: &str, parts: &[Range<usize>]) -> Result<Vec<Embedding>, EmbedError> {
        let prefix = &self.shared.query_prefix;
        let shifted = |part: &Range<usize>| part.start + prefix.len()..part.end + prefix.len();
        let (reply, answer) = oneshot::channel();
        let asked = Asked {
            text: format!("{prefix}{text}"),
            parts: parts.iter().map(shifted).collect(),
            reply,
        };
        let sent = self.shared.queries.try_send(asked);
        sent.map_err(|full| match full {
            mpsc::error::TrySendError::Full(_) => EmbedError::Busy,
            mpsc::error::TrySendError::Closed(_) => EmbedError::Stopped,
        })?;
        // What is dropped here unanswered, since it came too late, is not worked for either.
        tokio::time::timeout(QUERY_WAIT_MAX, answer)
            .await
            .map_err(|_elapsed| EmbedError::Busy)?
            .map_err(|_closed| EmbedError::Stopped)?
    }

    /// The vectors of catalog texts, in their order. Waits for its turn behind queries.
    pub async fn embed_passages(&self, texts: Vec<String>) -> Result<Vec<Embedding>, EmbedError> {
        let (reply, answer) = oneshot::channel();
        let prefix = &self.shared.passage_prefix;
        let texts = texts
            .into_iter()
            .map(|text| match prefix.as_str() {
                "" => text,
                prefix => format!("{prefix}{text}"),
            })
            .collect();
        self.shared
            .passages
            .send(Job { texts, reply })
            .await
            .map_err(|_closed| EmbedError::Stopped)?;
        answer.await.map_err(|_closed| EmbedError::Stopped)?
    }

    fn cache<T>(&self, act: impl FnOnce(&mut Generations) -> T) -> T {
        act(&mut self
            .shared
            .cache
            .lock()
            .unwrap_or_else(PoisonError::into_inner))
    }
}

impl Generations {
    fn find(&mut self, text: &str) -> Option<Kept> {
        if let Some(found) = self.young.get(text) {
            return Some(found.clone());
        }
        let (text, found) = self.old.remove_entry(text)?;
        self.keep(text, found.clone());
        Some(found)
    }

    fn keep(&mut self, text: Box<str>, vectors: Kept) {
        if CACHED_MAX <= self.young.len() {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(text, vectors);
    }
}

/// A model that has embedded one text, and its number of dimensions: the first run allocates.
fn load_and_probe(files: &ModelFiles) -> Result<(Model, usize), LoadModelError> {
    let mut model = Model::load(files)?;
    let probe = format!("{}warm up", files.query_prefix);
    let probed = model
        .embed(&[probe], 1)
        .map_err(|source| LoadModelError::Probe {
            id: files.id.clone(),
            source,
        })?;
    let dimensions = probed.first().map_or(0, Embedding::dimensions);
    Ok((model, dimensions))
}

/// What the workers take from, one at a time.
#[derive(Debug)]
struct Jobs {
    queries: mpsc::Receiver<Asked>,
    passages: mpsc::Receiver<Job>,
}

/// What a worker does next.
enum Work {
    Query(Asked),
    Passages(Job),
}

impl Jobs {
    /// The next job, queries first: one never waits for more than what is under way. `None` when
    /// nobody holds the embedder any more.
    async fn next(&mut self) -> Option<Work> {
        tokio::select! {
            biased;
            Some(job) = self.queries.recv() => Some(Work::Query(job)),
            Some(job) = self.passages.recv() => Some(Work::Passages(job)),
            else => None,
        }
    }
}

/// One worker's thread.
async fn work(mut model: Model, jobs: &tokio::sync::Mutex<Jobs>) {
    loop {
        // Let go before the model runs, so that the next worker can take the next job.
        let next = jobs.lock().await.next().await;
        match next {
            Some(Work::Query(asked)) => {
                answer(asked.reply, || model.embed_parts(&asked.text, &asked.parts));
            }
            Some(Work::Passages(job)) => answer(job.reply, || model.embed(&job.texts, BATCH_MAX)),
            None => return,
        }
    }
}

/// Answers with what the model gives. Who gave up waiting is not worked for.
fn answer(reply: Reply, embed: impl FnOnce() -> Result<Vec<Embedding>, RunModelError>) {
    if reply.is_closed() {
        return;
    }
    let vectors = embed().map_err(|error| EmbedError::Run(Arc::new(error)));
    // A receiver that is gone has timed out meanwhile; there is nobody to tell.
    let _ = reply.send(vectors);
}
