//! A provider that answers in time: with its list, or with its last one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use tokio::time::Instant;

use crate::lifecycle::Lifecycle;
use crate::registry::ToolList;
use crate::registry::provider::ToolProvider;

/// A provider that has not listed its tools by then is asked anew.
const HANG_MAX: Duration = Duration::from_secs(30);

/// How long a provider that did not answer a question in time is not asked another one.
const REST: Duration = Duration::from_secs(15);

/// How a list came about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Freshness {
    /// It was asked for just now.
    Fresh,
    /// The provider is slow or fails: this is what it listed last.
    Last,
    /// The provider is slow or fails, and has never listed anything.
    Missing,
}

/// The one question that is under way, and since when.
#[derive(Clone)]
struct Asking {
    since: Instant,
    answer: Shared<BoxFuture<'static, Option<ToolList>>>,
}

/// A provider with the last list that it gave. However many ask, it is asked once at a time.
pub(super) struct Steady {
    provider: Arc<dyn ToolProvider>,
    last: Arc<ArcSwapOption<ToolList>>,
    asking: Mutex<Option<Asking>>,
    rests_until: Mutex<Option<Instant>>,
}

impl std::fmt::Debug for Steady {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Steady").field(&self.provider).finish()
    }
}

impl Steady {
    pub(super) fn new(provider: Arc<dyn ToolProvider>) -> Self {
        Self {
            provider,
            last: Arc::default(),
            asking: Mutex::default(),
            rests_until: Mutex::default(),
        }
    }

    pub(super) fn provider(&self) -> &Arc<dyn ToolProvider> {
        &self.provider
    }

    /// Whether it may be asked more than for its list: not while it is late with that, nor for a
    /// while after it was late with an answer. So one that hangs costs the others little.
    pub(super) fn may_be_asked(&self, deadline: Duration) -> bool {
        let asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let under_way = asking.as_ref();
        let is_late = under_way.is_some_and(|asking| {
            deadline <= asking.since.elapsed() && asking.answer.clone().now_or_never().is_none()
        });
        let rests = self
            .rests_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        !is_late && rests.is_none_or(|until| until <= Instant::now())
    }

    /// It did not answer in time.
    pub(super) fn rest(&self) {
        let until = Instant::now() + REST;
        *self
            .rests_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(until);
    }

    /// Its list within the deadline. Who asks a provider that is late already does not wait for it.
    pub(super) async fn tools(
        &self,
        deadline: Duration,
        lifecycle: &Lifecycle,
    ) -> (ToolList, Freshness) {
        let asking = self.ask(lifecycle);
        let earlier = || self.last.load_full();
        let is_late = deadline <= asking.since.elapsed();
        let answer = match is_late && earlier().is_some() {
            true => None,
            false => tokio::time::timeout(deadline, asking.answer)
                .await
                .ok()
                .flatten(),
        };
        match (answer, earlier()) {
            (Some(list), _) => (list, Freshness::Fresh),
            (None, Some(list)) => (ToolList::clone(&list), Freshness::Last),
            (None, None) => (ToolList::default(), Freshness::Missing),
        }
    }

    fn ask(&self, lifecycle: &Lifecycle) -> Asking {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(under_way) = &*asking
            && under_way.answer.clone().now_or_never().is_none()
        {
            return under_way.clone();
        }
        let (provider, last) = (Arc::clone(&self.provider), Arc::clone(&self.last));
        let task = lifecycle.spawn(async move {
            let listed = tokio::time::timeout(HANG_MAX, provider.tools()).await;
            match listed {
                Ok(Ok(tools)) => {
                    last.store(Some(Arc::new(tools.clone())));
                    return Some(tools);
                }
                Ok(Err(error)) => {
                    tracing::warn!(provider = provider.name(), error = %error, "a provider lists no tools");
                }
                Err(_elapsed) => {
                    tracing::warn!(provider = provider.name(), "a provider hangs");
                }
            }
            None
        });
        // A provider that panics has listed nothing.
        let answer = async move { task.await.ok().flatten() }.boxed().shared();
        let new = Asking {
            since: Instant::now(),
            answer,
        };
        *asking = Some(new.clone());
        new
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::registry::provider::{Call, ProvideError};
    use crate::registry::{ToolMetadata, ToolOutput, ToolSpec};

    /// Lists one tool, named after how often it was asked; slow, failing or panicking by turns.
    #[derive(Debug, Default)]
    struct Moody {
        asked: AtomicUsize,
    }

    impl ToolProvider for Moody {
        fn name(&self) -> &'static str {
            "moody"
        }

        fn tools(&self) -> BoxFuture<'_, Result<ToolList, ProvideError>> {
            let turn = self.asked.fetch_add(1, Ordering::SeqCst);
            let list = move || {
                let spec = ToolSpec::new(&format!("turn-{turn}"), "").unwrap();
                Ok(ToolList::new([Arc::new(ToolMetadata::from(spec))]))
            };
            async move {
                match turn {
                    1 => Err(ProvideError::unavailable("moody", "not today")),
                    2 => panic!("not at all"),
                    3 => {
                        tokio::time::sleep(Duration::from_secs(10)).await;
                        list()
                    }
                    4 => std::future::pending().await,
                    _ => list(),
                }
            }
            .boxed()
        }

        fn call(&self, _call: Call) -> BoxFuture<'_, Result<Option<ToolOutput>, ProvideError>> {
            async { Ok(None) }.boxed()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_list_stands_in_for_one_that_does_not_come() {
        let lifecycle = Lifecycle::new();
        let steady = Steady::new(Arc::new(Moody::default()));
        let ask = async || {
            let (list, freshness) = steady.tools(Duration::from_secs(2), &lifecycle).await;
            let names: Vec<String> = list.iter().map(|tool| tool.name().to_owned()).collect();
            (names.concat(), freshness)
        };
        let last = ("turn-0".to_owned(), Freshness::Last);
        assert_eq!(ask().await, ("turn-0".to_owned(), Freshness::Fresh));
        assert_eq!(ask().await, last, "it failed");
        assert_eq!(ask().await, last, "it panicked");
        assert_eq!(ask().await, last, "it was slow");
        // Known to be late: nobody waits, and it is not asked a second time.
        let start = Instant::now();
        assert_eq!(ask().await, last);
        assert_eq!(start.elapsed(), Duration::ZERO);
        tokio::time::sleep(Duration::from_secs(9)).await;
        assert_eq!(
            ask().await,
            ("turn-3".to_owned(), Freshness::Last),
            "turn 4 hangs"
        );
        tokio::time::sleep(HANG_MAX).await;
        assert_eq!(ask().await, ("turn-5".to_owned(), Freshness::Fresh));
    }

    #[tokio::test(start_paused = true)]
    async fn a_provider_that_never_listed_costs_its_own_tools_only() {
        let moody = Moody {
            asked: AtomicUsize::new(4),
        };
        let steady = Steady::new(Arc::new(moody));
        let (list, freshness) = steady
            .tools(Duration::from_secs(2), &Lifecycle::new())
            .await;
        assert_eq!((list.len(), freshness), (0, Freshness::Missing));
    }
}
