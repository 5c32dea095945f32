//! Precedence, deadlines and ends of calls, with providers that misbehave.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;

use super::*;
use crate::call::CallerSide;
use crate::domain::Tenant;
use crate::registry::{Arguments, ToolRegistry, ToolSpec};

fn registry(name: &str, tools: &[&str]) -> Arc<dyn ToolProvider> {
    let registry = ToolRegistry::new(name).unwrap();
    for tool in tools {
        let (spec, said) = (ToolSpec::new(tool, name).unwrap(), name.to_owned());
        let handler = move |_call| {
            let said = said.clone();
            async move { Ok(ToolOutput::text(said)) }
        };
        registry.register(spec, handler).unwrap();
    }
    Arc::new(registry)
}

fn catalog(tools: &[&str]) -> ToolList {
    let tools = tools
        .iter()
        .map(|tool| ToolSpec::new(tool, "catalog").unwrap());
    ToolList::new(tools.map(|spec| Arc::new(spec.into())))
}

fn local() -> Asker {
    Asker::of(Arc::new(Tenant::local()))
}

fn asker(user: &str) -> Asker {
    let request = http::Request::builder()
        .header("x-user", user)
        .body(())
        .unwrap();
    Asker {
        request: Some(request.into_parts().0),
        ..local()
    }
}

fn call(asker: Asker, name: &str) -> Call {
    Call {
        name: name.to_owned(),
        arguments: Arguments::default(),
        asker,
        side: CallerSide::default(),
    }
}

async fn listed(providers: &Providers, asker: &Asker, catalog: &ToolList) -> Vec<String> {
    let offer = providers.offer(asker, None, catalog).await;
    let tools = offer.tools.iter();
    tools
        .map(|offered| {
            format!(
                "{}:{}",
                offered.tool.tool().description(),
                offered.tool.name()
            )
        })
        .collect()
}

#[tokio::test]
async fn a_request_goes_over_global_over_the_catalog() {
    let providers = Providers::new(Deadlines::default(), Lifecycle::new())
        .per_request(|_: &Asker| vec![registry("own", &["a"])]);
    assert!(providers.add(registry("first", &["a", "b"])));
    assert!(providers.add(registry("second", &["b", "c"])));
    let catalog = catalog(&["a", "b", "c", "d"]);
    let all = listed(&providers, &local(), &catalog).await;
    assert_eq!(all, ["own:a", "first:b", "second:c", "catalog:d"]);
    for (name, expected) in [
        ("a", "own"),
        ("b", "first"),
        ("c", "second"),
        ("d", "catalog"),
    ] {
        let found = providers.find(&local(), name, &catalog).await.unwrap();
        assert_eq!(found.tool.tool().description(), expected);
    }
    assert!(providers.find(&local(), "e", &catalog).await.is_none());
    assert!(providers.remove("first") && !providers.remove("first"));
    let all = listed(&providers, &local(), &catalog).await;
    assert_eq!(all, ["own:a", "second:b", "second:c", "catalog:d"]);
}

#[tokio::test]
async fn what_middleware_brings_goes_first_and_belongs_to_its_request() {
    let providers =
        Providers::new(Deadlines::default(), Lifecycle::new()).per_request(|asker: &Asker| {
            match asker.header("x-user") {
                Some(user) => vec![registry(user, &["mine", "shared"])],
                None => Vec::new(),
            }
        });
    let mut ann = asker("ann");
    let brought = RequestProviders(vec![registry("brought", &["shared"])]);
    ann.request.as_mut().unwrap().extensions.insert(brought);
    let none = ToolList::default();
    assert_eq!(
        listed(&providers, &ann, &none).await,
        ["brought:shared", "ann:mine"]
    );
    assert_eq!(
        listed(&providers, &asker("bob"), &none).await,
        ["bob:mine", "bob:shared"]
    );
    assert!(listed(&providers, &local(), &none).await.is_empty());
}

#[derive(Debug)]
struct Hanging;

impl ToolProvider for Hanging {
    fn name(&self) -> &'static str {
        "hanging"
    }

    fn tools(&self) -> BoxFuture<'_, Result<ToolList, ProvideError>> {
        std::future::pending().boxed()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Option<ToolOutput>, ProvideError>> {
        assert_ne!(call.name, "panic");
        std::future::pending().boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_hangs_costs_its_deadline_and_nobody_elses_tools() {
    let providers = Providers::new(Deadlines::default(), Lifecycle::new())
        .per_request(|_: &Asker| vec![Arc::new(Hanging) as Arc<dyn ToolProvider>]);
    providers.add(Arc::new(Hanging));
    providers.add(registry("well", &["a"]));
    let (start, none) = (Instant::now(), ToolList::default());
    let offer = providers.offer(&local(), Some("a"), &none).await;
    // All wait at one time: one deadline, not one for each.
    assert_eq!(start.elapsed(), Deadlines::default().list);
    assert_eq!(offer.tools.len(), 1);
    assert_eq!(offer.late, ["hanging", "hanging"]);
    let found = providers.find(&local(), "a", &none).await.unwrap();
    let Owner::Provider(owner) = found.owner else {
        panic!("a provider has it");
    };
    let output = providers.call(&owner, call(local(), "a")).await.unwrap();
    assert_eq!(output, Some(ToolOutput::text("well")));
}

/// Lists at once, and never answers anything else.
#[derive(Debug)]
struct Musing;

impl ToolProvider for Musing {
    fn name(&self) -> &'static str {
        "musing"
    }

    fn tools(&self) -> BoxFuture<'_, Result<ToolList, ProvideError>> {
        std::future::ready(Ok(catalog(&["muse"]))).boxed()
    }

    fn find<'a>(
        &'a self,
        _query: &'a str,
        _most: usize,
    ) -> BoxFuture<'a, Result<ToolList, ProvideError>> {
        std::future::pending().boxed()
    }

    fn call(&self, _call: Call) -> BoxFuture<'_, Result<Option<ToolOutput>, ProvideError>> {
        std::future::pending().boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_search_that_hangs_is_left_in_peace_for_a_while() {
    let providers = Providers::new(Deadlines::default(), Lifecycle::new());
    providers.add(Arc::new(Musing));
    let none = ToolList::default();
    let ask = async || {
        let start = Instant::now();
        let offer = providers.offer(&local(), Some("x"), &none).await;
        assert_eq!(offer.tools.len(), 1, "what it lists is there all the same");
        (start.elapsed(), offer.late.len())
    };
    assert_eq!(ask().await, (Deadlines::default().list, 1));
    assert_eq!(ask().await, (Duration::ZERO, 0));
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(ask().await, (Deadlines::default().list, 1));
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_by_its_deadline_by_its_caller_and_by_a_panic() {
    let providers = Providers::new(Deadlines::default(), Lifecycle::new());
    let hanging: Arc<dyn ToolProvider> = Arc::new(Hanging);
    let start = Instant::now();
    let slow = providers.call(&hanging, call(local(), "x")).await;
    assert!(
        matches!(slow, Err(ProvideError::TimedOut { .. })),
        "{slow:?}"
    );
    assert_eq!(start.elapsed(), Duration::from_secs(50));
    let gone = call(local(), "x");
    gone.side.cancel.cancel();
    let gone = providers.call(&hanging, gone).await;
    assert!(matches!(gone, Err(ProvideError::Cancelled)), "{gone:?}");
    let broken = providers.call(&hanging, call(local(), "panic")).await;
    assert!(
        matches!(broken, Err(ProvideError::OutcomeUnknown { .. })),
        "{broken:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_waits_for_is_ended() {
    let lifecycle = Lifecycle::new();
    let providers = Providers::new(Deadlines::default(), lifecycle.clone());
    let hanging: Arc<dyn ToolProvider> = Arc::new(Hanging);
    let waiting = providers.call(&hanging, call(local(), "x"));
    let left = tokio::time::timeout(Duration::from_secs(1), waiting).await;
    assert!(left.is_err());
    let start = Instant::now();
    assert!(
        lifecycle.wait(Duration::from_mins(1)).await,
        "the task is gone"
    );
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn a_request_has_sixteen_providers_and_no_more() {
    let make = |count: usize| {
        Providers::new(Deadlines::default(), Lifecycle::new()).per_request(move |_: &Asker| {
            (0..count)
                .map(|n| registry(&format!("p{n}"), &[&format!("t{n}")]))
                .collect()
        })
    };
    let none = ToolList::default();
    assert_eq!(
        listed(&make(REQUEST_MAX), &local(), &none).await.len(),
        REQUEST_MAX
    );
    assert_eq!(
        listed(&make(REQUEST_MAX + 1), &local(), &none).await.len(),
        REQUEST_MAX
    );
}
