//! The start of a session: the process or connection, and the protocol's handshake.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientLifecycleMode, RoleClient, RunningService, serve_client_with_lifecycle};
use rmcp::transport::IntoTransport;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::call::input::Askable;
use crate::call::resolve::{Remote, Resolved, Target};
use crate::call::upstream::census::Caps;
use crate::call::upstream::child::{Process, in_words};
use crate::call::upstream::failure::{StartFailure, another_way, chain, failure, reason_of};
use crate::call::upstream::lines::Lines;
use crate::call::upstream::mask::Mask;
use crate::call::upstream::session::{Parts, Session, transport};
use crate::call::upstream::stderr::Stderr;
use crate::call::upstream::tap::Client;
use crate::call::upstream::tokens::Tokens;
use crate::call::upstream::watch::{Permits, Watched};
use crate::call::upstream::{Pool, http, sse};
use crate::telemetry::{Request, record_request};

type Service = RunningService<RoleClient, Client>;

/// The protocol's two eras, and the first one on its older HTTP transport: a server is asked in the
/// way that it spoke last.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Era {
    /// With `initialize`.
    #[default]
    Legacy,
    /// Stateless, with `server/discover`.
    Modern,
    /// With `initialize`, on a stream of events.
    Sse,
}

/// Starts a session, in `era`. `permits` are given back when its last process is gone; `tokens` are
/// the access tokens of a server that takes some. Secrets are masked in what is said of a failure.
pub(super) async fn start(
    resolved: &Resolved,
    pool: &Pool,
    (era, askable): (Era, Askable),
    (permits, tokens): (Arc<Permits>, Option<Arc<Tokens>>),
) -> Result<Arc<Session>, StartFailure> {
    let begun = Instant::now();
    let secrets = Arc::new(Mask::new(resolved.secrets.clone(), tokens.clone()));
    let shared = Shared {
        client: Client {
            tap: Arc::default(),
            news: pool.news.clone(),
            session: (resolved.tenant.clone(), resolved.server.clone()),
            askable,
        },
        stderr: Arc::new(Stderr::new(secrets.clone())),
        gone: CancellationToken::new(),
        tokens,
    };
    let started = try_start(resolved, pool, era, permits, shared).await;
    let outcome = match &started {
        Ok(_) => "ok",
        Err(failure) if failure.timed_out => "UPSTREAM_TIMEOUT",
        Err(_) => "UPSTREAM_UNAVAILABLE",
    };
    let child = !matches!(resolved.target, Target::Remote(_));
    record_request(Request::Connect, transport(child), outcome, begun.elapsed());
    started.map_err(|failure| StartFailure {
        reason: secrets.apply(&failure.reason),
        ..failure
    })
}

/// What a session and its transport share.
struct Shared {
    client: Client,
    stderr: Arc<Stderr>,
    /// Cancelled when nothing of the session is left, or when it does not start.
    gone: CancellationToken,
    tokens: Option<Arc<Tokens>>,
}

async fn try_start(
    resolved: &Resolved,
    pool: &Pool,
    era: Era,
    permits: Arc<Permits>,
    shared: Shared,
) -> Result<Arc<Session>, StartFailure> {
    let not_started = shared.gone.clone().drop_guard();
    let (service, process) = match &resolved.target {
        Target::Child { .. } | Target::Container { .. } => {
            let (service, process) = start_child(resolved, pool, era, &shared).await?;
            (service, Some(process))
        }
        Target::Remote(remote) => (connect(remote, pool, era, &shared).await?, None),
        Target::Service { .. } => {
            return Err(failure("an HTTP service has no session".to_owned()));
        }
    };
    let (ended, end) = watch::channel(None);
    let peer = service.peer().clone();
    let child = process.is_some();
    let places = pool.options.calls_max;
    let session = Session::new(
        Parts {
            number: pool.sessions_started.fetch_add(1, Ordering::Relaxed),
            peer,
            tap: shared.client.tap,
            stderr: shared.stderr,
            tokens: shared.tokens,
            end,
            gone: not_started.disarm(),
            child,
            lifecycle: pool.lifecycle.clone(),
        },
        resolved.fingerprint,
        places,
    );
    let session = Arc::new(session);
    let watched = Watched {
        session: session.clone(),
        service,
        process,
        ended,
        permits,
        census: pool.census.clone(),
        caps: Caps::of(&pool.options),
        kill_after: pool.options.kill_after,
        idle_max: pool.options.idle_max,
        closed: pool.closed.clone(),
    };
    let lifecycle = pool.lifecycle.clone();
    pool.lifecycle.spawn(watched.until_the_end(lifecycle));
    Ok(session)
}

async fn start_child(
    resolved: &Resolved,
    pool: &Pool,
    era: Era,
    shared: &Shared,
) -> Result<(Service, Process), StartFailure> {
    let Shared {
        client,
        stderr,
        gone,
        ..
    } = shared;
    let options = &pool.options;
    let (mut process, streams) = Process::start(resolved, options)
        .map_err(|error| failure(format!("it cannot be started: {error}")))?;
    let (reader, gone) = (stderr.clone(), gone.clone());
    pool.lifecycle.spawn(async move {
        // A process that has escaped may hold the stream open for ever.
        tokio::select! {
            () = reader.read(streams.stderr) => {}
            () = gone.cancelled() => {}
        }
    });
    let bytes_max = options.message_bytes_max;
    let lines = Lines::new(streams.stdout, streams.stdin, bytes_max, client.tap.clone());
    let group = process.group();
    let served = tokio::select! {
        excess = pool.census.excess(group, Caps::of(options), || Duration::ZERO) => {
            process.kill().await;
            Err(failure(excess))
        }
        served = serve(client.clone(), lines, era, options.connect_max) => served,
        // Its standard output may stay open in a process that it has left behind.
        status = process.ended() => Err(failure(match status {
            Ok(status) => in_words(status),
            Err(error) => error.to_string(),
        })),
    };
    match served {
        Ok(service) => Ok((service, process)),
        Err(mut failure) => {
            if let Some(status) = process.stop(options.kill_after).await
                && status.code().is_some()
                && !failure.timed_out
                && failure.instead.is_none()
            {
                failure.reason = in_words(status);
            }
            failure.stderr = stderr.tail();
            Err(failure)
        }
    }
}

async fn connect(
    remote: &Remote,
    pool: &Pool,
    era: Era,
    shared: &Shared,
) -> Result<Service, StartFailure> {
    let options = &pool.options;
    let limits = http::HttpLimits {
        connect_max: options.connect_max,
        bytes_max: options.message_bytes_max,
        calls_max: options.calls_max,
        loopback: options.http_on_loopback,
    };
    let (tap, tokens) = (shared.client.tap.clone(), shared.tokens.clone());
    let (url, http) =
        http::client(remote, limits, tap, tokens).map_err(|error| failure(chain(&error)))?;
    let client = shared.client.clone();
    if era != Era::Sse {
        let transport = http::streamable(&url, http, limits);
        return serve(client, transport, era, options.connect_max).await;
    }
    let started = Instant::now();
    let opened = tokio::time::timeout(options.connect_max, sse::open(&url, http)).await;
    let opened = opened.map_err(|_elapsed| too_slow(options.connect_max))?;
    let transport = opened.map_err(|error| failure(chain(&error)))?;
    let left = options.connect_max.saturating_sub(started.elapsed());
    serve(client, transport, era, left).await
}

async fn serve<T, E, A>(
    client: Client,
    transport: T,
    era: Era,
    connect_max: Duration,
) -> Result<RunningService<RoleClient, Client>, StartFailure>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let mode = match era {
        Era::Legacy | Era::Sse => ClientLifecycleMode::Initialize,
        Era::Modern => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    };
    // rmcp has no deadline of its own here: a silent server would hold us for ever.
    let served = serve_client_with_lifecycle(client, transport, mode);
    match tokio::time::timeout(connect_max, served).await {
        Ok(Ok(service)) => Ok(service),
        Ok(Err(error)) => Err(StartFailure {
            instead: another_way(&error).filter(|_| era == Era::Legacy),
            ..failure(reason_of(&error))
        }),
        Err(_elapsed) => Err(too_slow(connect_max)),
    }
}

fn too_slow(connect_max: Duration) -> StartFailure {
    let seconds = connect_max.as_secs();
    StartFailure {
        timed_out: true,
        ..failure(format!("it did not answer within {seconds} s"))
    }
}
