//! The model behind queues: one thread owns it, queries go first, what waits is batched.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::domain::Embedding;
use crate::search::lexicon::Lexicon;
use crate::search::model::{BATCH_MAX, LoadModelError, Model, ModelFiles, RunModelError};

/// Queries that may wait for the model. At 1 to 3 ms each the last waits under half a second.
const QUERY_QUEUE_MAX: usize = 128;
/// Batches of catalog texts that may wait; their senders wait for room.
const PASSAGE_QUEUE_MAX: usize = 4;
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

/// A text's way through the model's thread.
struct Job {
    texts: Vec<String>,
    reply: oneshot::Sender<Result<Vec<Embedding>, EmbedError>>,
}

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
    queries: mpsc::Sender<Job>,
    passages: mpsc::Sender<Job>,
    cache: Mutex<Generations>,
    lexicon: Option<Arc<Lexicon>>,
    second: Option<Embedder>,
}

/// Two generations of query vectors. When the young one is full it becomes the old one: a cheap
/// stand-in for least recently used.
#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Box<str>, Embedding>,
    old: HashMap<Box<str>, Embedding>,
}

impl Embedder {
    /// Loads a model and starts its thread, which computes on `threads` threads. Takes 0.1 to
    /// 1.5 s: call it off the runtime.
    pub fn load(files: &ModelFiles, threads: usize) -> Result<Self, LoadModelError> {
        let mut model = Model::load(files, threads)?;
        // One real text: the first run allocates, and tells the number of dimensions.
        let probe = format!("{}warm up", files.query_prefix);
        let probed = model
            .embed(&[probe])
            .map_err(|source| LoadModelError::Probe {
                id: files.id.clone(),
                source,
            })?;
        let lexicon = std::fs::read(&files.tokenizer)
            .ok()
            .and_then(|text| Lexicon::from_tokenizer(&text));
        let (queries, query_jobs) = mpsc::channel(QUERY_QUEUE_MAX);
        let (passages, passage_jobs) = mpsc::channel(PASSAGE_QUEUE_MAX);
        std::thread::Builder::new()
            .name("model".into())
            .spawn(move || {
                futures::executor::block_on(work(model, query_jobs, passage_jobs));
            })
            .map_err(|source| LoadModelError::Thread {
                id: files.id.clone(),
                source,
            })?;
        Ok(Self {
            shared: Arc::new(Shared {
                id: files.id.clone(),
                query_prefix: files.query_prefix.clone(),
                passage_prefix: files.passage_prefix.clone(),
                dimensions: probed.first().map_or(0, Embedding::dimensions),
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

    /// The words that the model knows whole, where that says something about English.
    pub(super) fn lexicon(&self) -> Option<&Lexicon> {
        self.shared.lexicon.as_deref()
    }

    /// The vector of a query. Refuses rather than waits: search must answer in time.
    pub async fn embed_query(&self, text: &str) -> Result<Embedding, EmbedError> {
        let vectors = self.embed_queries(&[text]).await?;
        vectors.into_iter().next().ok_or(EmbedError::Stopped)
    }

    /// The vectors of a query and its parts, embedded together.
    pub async fn embed_queries(&self, texts: &[&str]) -> Result<Vec<Embedding>, EmbedError> {
        let texts: Vec<String> = texts
            .iter()
            .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let mut known: Vec<Option<Embedding>> =
            self.cache(|cache| texts.iter().map(|text| cache.find(text)).collect());
        let missing: Vec<usize> = (0..texts.len()).filter(|at| known[*at].is_none()).collect();
        if !missing.is_empty() {
            let wanted = missing.iter().map(|at| texts[*at].as_str());
            let fresh = self.ask(wanted).await?;
            self.cache(|cache| {
                for (at, vector) in missing.iter().zip(&fresh) {
                    cache.keep(texts[*at].as_str().into(), vector.clone());
                }
            });
            for (at, vector) in missing.into_iter().zip(fresh) {
                known[at] = Some(vector);
            }
        }
        known
            .into_iter()
            .map(|vector| vector.ok_or(EmbedError::Stopped))
            .collect()
    }

    async fn ask(&self, texts: impl Iterator<Item = &str>) -> Result<Vec<Embedding>, EmbedError> {
        let (reply, answer) = oneshot::channel();
        let prefix = &self.shared.query_prefix;
        let job = Job {
            texts: texts.map(|text| format!("{prefix}{text}")).collect(),
            reply,
        };
        self.shared
            .queries
            .try_send(job)
            .map_err(|full| match full {
                mpsc::error::TrySendError::Full(_) => EmbedError::Busy,
                mpsc::error::TrySendError::Closed(_) => EmbedError::Stopped,
            })?;
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
    fn find(&mut self, text: &str) -> Option<Embedding> {
        if let Some(found) = self.young.get(text) {
            return Some(found.clone());
        }
        let (text, found) = self.old.remove_entry(text)?;
        self.keep(text, found.clone());
        Some(found)
    }

    fn keep(&mut self, text: Box<str>, vector: Embedding) {
        if CACHED_MAX <= self.young.len() {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(text, vector);
    }
}

/// The model's thread: ends when nobody holds the embedder any more.
async fn work(
    mut model: Model,
    mut queries: mpsc::Receiver<Job>,
    mut passages: mpsc::Receiver<Job>,
) {
    loop {
        // Biased: a query never waits for more than the batch that is being embedded.
        let job = tokio::select! {
            biased;
            Some(job) = queries.recv() => {
                let mut waiting = vec![job];
                while waiting.len() < BATCH_MAX {
                    let Ok(job) = queries.try_recv() else { break };
                    waiting.push(job);
                }
                run_together(&mut model, waiting);
                continue;
            }
            Some(job) = passages.recv() => job,
            else => return,
        };
        run_together(&mut model, vec![job]);
    }
}

/// Embeds the texts of several jobs in one batch and hands each its own.
fn run_together(model: &mut Model, mut jobs: Vec<Job>) {
    // Who gave up waiting is not worked for.
    jobs.retain(|job| !job.reply.is_closed());
    let counts: Vec<usize> = jobs.iter().map(|job| job.texts.len()).collect();
    let texts: Vec<String> = jobs
        .iter_mut()
        .flat_map(|job| std::mem::take(&mut job.texts))
        .collect();
    if texts.is_empty() {
        return;
    }
    match model.embed(&texts) {
        Ok(vectors) => {
            let mut vectors = vectors.into_iter();
            for (job, count) in jobs.into_iter().zip(counts) {
                // A receiver that is gone has timed out meanwhile; there is nobody to tell.
                let _ = job.reply.send(Ok(vectors.by_ref().take(count).collect()));
            }
        }
        Err(error) => {
            let error = Arc::new(error);
            for job in jobs {
                let _ = job.reply.send(Err(EmbedError::Run(error.clone())));
            }
        }
    }
}
