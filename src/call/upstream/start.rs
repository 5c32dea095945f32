//! The start of a session: the process or connection, and the protocol's handshake.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, RoleClient, RunningService,
    serve_client_with_lifecycle,
};
use rmcp::transport::IntoTransport;
use secrecy::SecretString;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::call::input::Askable;
use crate::call::resolve::{Resolved, Target};
use crate::call::upstream::census::Caps;
use crate::call::upstream::child::{Process, in_words};
use crate::call::upstream::failure::{StartFailure, chain, failure, reason_of};
use crate::call::upstream::lines::Lines;
use crate::call::upstream::session::{Parts, Session, transport};
use crate::call::upstream::stderr::{Stderr, mask};
use crate::call::upstream::tap::{Client, Tap};
use crate::call::upstream::watch::{Permits, Watched};
use crate::call::upstream::{Pool, http};
use crate::telemetry::{Request, record_request};

type Service = RunningService<RoleClient, Client>;

/// The protocol's two eras: a server is asked in the one that it spoke last.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Era {
    /// With `initialize`.
    #[default]
    Legacy,
    /// Stateless, with `server/discover`.
    Modern,
}

/// Starts a session, in `era`. `permits` are given back when its last process is gone. Secrets are
/// masked in what is said of a failure.
pub(super) async fn start(
    resolved: &Resolved,
    pool: &Pool,
    (era, askable): (Era, Askable),
    permits: Arc<Permits>,
) -> Result<Arc<Session>, StartFailure> {
    let begun = Instant::now();
    let started = try_start(resolved, pool, (era, askable), permits).await;
    let outcome = match &started {
        Ok(_) => "ok",
        Err(failure) if failure.timed_out => "UPSTREAM_TIMEOUT",
        Err(_) => "UPSTREAM_UNAVAILABLE",
    };
    let child = !matches!(resolved.target, Target::Remote { .. });
    record_request(Request::Connect, transport(child), outcome, begun.elapsed());
    started.map_err(|failure| StartFailure {
        reason: mask(&failure.reason, &resolved.secrets),
        ..failure
    })
}

async fn try_start(
    resolved: &Resolved,
    pool: &Pool,
    (era, askable): (Era, Askable),
    permits: Arc<Permits>,
) -> Result<Arc<Session>, StartFailure> {
    let client = Client {
        tap: Arc::new(Tap::default()),
        news: pool.news.clone(),
        session: (resolved.tenant.clone(), resolved.server.clone()),
        askable,
    };
    let tap = client.tap.clone();
    let stderr = Arc::new(Stderr::new(resolved.secrets.clone()));
    // Cancelled when nothing of the session is left, or when it does not start.
    let gone = CancellationToken::new();
    let not_started = gone.clone().drop_guard();
    let (service, process) = match &resolved.target {
        Target::Child { .. } | Target::Container { .. } => {
            let shared = (&client, &stderr, &gone);
            let (service, process) = start_child(resolved, pool, era, shared).await?;
            (service, Some(process))
        }
        Target::Remote { url, headers } => {
            (connect(url, headers, pool, (era, client)).await?, None)
        }
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
            tap,
            stderr,
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
    (client, stderr, gone): (&Client, &Arc<Stderr>, &CancellationToken),
) -> Result<(Service, Process), StartFailure> {
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
                && !failure.legacy_refused
            {
                failure.reason = in_words(status);
            }
            failure.stderr = stderr.tail();
            Err(failure)
        }
    }
}

async fn connect(
    url: &str,
    headers: &[(String, SecretString)],
    pool: &Pool,
    (era, client): (Era, Client),
) -> Result<Service, StartFailure> {
    let options = &pool.options;
    let limits = http::HttpLimits {
        connect_max: options.connect_max,
        bytes_max: options.message_bytes_max,
        calls_max: options.calls_max,
        loopback: options.http_on_loopback,
    };
    let transport = http::transport(url, headers, limits, client.tap.clone())
        .map_err(|error| failure(chain(&error)))?;
    serve(client, transport, era, options.connect_max).await
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
        Era::Legacy => ClientLifecycleMode::Initialize,
        Era::Modern => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    };
    // rmcp has no deadline of its own here: a silent server would hold us for ever.
    let served = serve_client_with_lifecycle(client, transport, mode);
    match tokio::time::timeout(connect_max, served).await {
        Ok(Ok(service)) => Ok(service),
        Ok(Err(error)) => Err(StartFailure {
            legacy_refused: era == Era::Legacy
                && matches!(error, ClientInitializeError::JsonRpcError(_)),
            ..failure(reason_of(&error))
        }),
        Err(_elapsed) => Err(StartFailure {
            timed_out: true,
            ..failure(format!(
                "it did not answer within {} s",
                connect_max.as_secs()
            ))
        }),
    }
}
