//! When a server says that its list of tools is another, it is asked for it.
//!
//! ```text
//! told -> quiet for a moment -> asked, each server once in a while -> judged by policy -> published
//! ```
//!
//! Only servers are asked that were asked before, or that the operator has given a policy: what the
//! catalog says of others is not their own list, so that a difference would mean nothing.
//!
//! A list counts for everybody, so that only the operator's own view of a server does: a session of
//! the local tenant, or a server that needs nobody's settings. What another tenant's account or
//! address lists is no news of the catalog.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::app::App;
use crate::domain::{Launch, ServerName, Tenant};
use crate::telemetry::Chain;

/// After the first news, so that a server that says it often is asked once.
const QUIET: Duration = Duration::from_secs(1);
/// Between two times that one server is asked.
const ASKED_EVERY: Duration = Duration::from_mins(1);
/// Servers asked at one time; the others wait for the next.
const TOGETHER_MAX: usize = 16;

/// What is to be asked, and when.
#[derive(Debug, Default)]
struct Due {
    waiting: BTreeSet<ServerName>,
    asked: BTreeMap<ServerName, Instant>,
}

impl Due {
    /// Those whose time has come; they are taken as asked.
    fn take(&mut self, now: Instant) -> Vec<ServerName> {
        self.asked.retain(|_, at| now < *at + ASKED_EVERY);
        let due = self.waiting.iter();
        let due = due.filter(|name| !self.asked.contains_key(*name));
        let due: Vec<ServerName> = due.take(TOGETHER_MAX).cloned().collect();
        for name in &due {
            self.waiting.remove(name);
            self.asked.insert(name.clone(), now);
        }
        due
    }

    /// When to look again, with nothing new told.
    fn next(&self) -> Option<Instant> {
        let free = |name: &ServerName| self.asked.get(name).map(|at| *at + ASKED_EVERY);
        let times = self.waiting.iter();
        times
            .map(|name| free(name).unwrap_or_else(Instant::now))
            .min()
    }
}

impl App {
    /// The servers that need no setting of anybody's to be asked for their tools.
    pub fn askable(&self) -> Vec<ServerName> {
        let catalog = self.catalog();
        let free = catalog.servers().iter().filter(|server| {
            let config = server.config.iter();
            let mut config = config.filter(|slot| !slot.optional && slot.default.is_none());
            let mut secrets = server.secrets.iter().filter(|slot| !slot.optional);
            let speaks_mcp = !matches!(server.launch, None | Some(Launch::OpenApi { .. }));
            speaks_mcp && secrets.next().is_none() && config.next().is_none()
        });
        free.map(|server| server.name.clone()).collect()
    }

    /// Asks servers that tell of changes, until the program stops.
    pub(super) fn spawn_following_lists(self: &Arc<Self>) {
        let app = Arc::clone(self);
        self.lifecycle.spawn(async move {
            tokio::select! {
                () = app.follow_lists() => {}
                () = app.lifecycle.stopping() => {}
            }
        });
    }

    async fn follow_lists(&self) {
        let news = self.caller.upstreams().list_news();
        let mut due = Due::default();
        loop {
            let next = due.next();
            let pause = tokio::time::sleep_until(next.unwrap_or_else(Instant::now));
            tokio::select! {
                () = news.told() => tokio::time::sleep(QUIET).await,
                () = pause, if next.is_some() => {}
            }
            let told = news.take();
            if !told.is_empty() {
                let free: BTreeSet<ServerName> = self.askable().into_iter().collect();
                let own = Tenant::local().id;
                let counts = told
                    .into_iter()
                    .filter(|(tenant, server)| *tenant == own || free.contains(server));
                due.waiting.extend(counts.map(|(_, server)| server));
            }
            let servers = due.take(Instant::now());
            if servers.is_empty() {
                continue;
            }
            if let Err(error) = self.take_news(&servers).await {
                tracing::error!(error = %Chain(error.as_ref()), "the catalog stays as it was");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_is_asked_once_in_a_while_and_many_in_turns() {
        let mut due = Due::default();
        assert_eq!(due.next(), None);
        let name = |at: usize| format!("s{at}").parse::<ServerName>().unwrap();
        due.waiting.insert(name(0));
        assert_eq!(due.take(Instant::now()), [name(0)]);
        due.waiting.insert(name(0));
        let asked = Instant::now();
        assert_eq!(due.take(asked), []);
        assert_eq!(due.next(), Some(asked + ASKED_EVERY));
        tokio::time::advance(ASKED_EVERY).await;
        assert_eq!(due.take(Instant::now()), [name(0)]);
        due.waiting.extend((1..=TOGETHER_MAX + 1).map(name));
        assert_eq!(due.take(Instant::now()).len(), TOGETHER_MAX);
        assert_eq!(due.take(Instant::now()).len(), 1);
    }
}
