//! Serving until told to stop, and stopping without leaving anything behind.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::net::TcpListener;

use crate::app::health::AppHealth;
use crate::app::{App, Vectors};
use crate::telemetry::Chain;
use crate::transport::desk::Guest;
use crate::transport::http::{Door, Guard, Patient, READ_MAX, admin_router, mcp_router};

/// How often expired handles are swept.
const SWEEP_EVERY: Duration = Duration::from_secs(15);
/// How long the last tasks may take to notice that calls were cancelled.
const CANCEL_MAX: Duration = Duration::from_secs(5);

/// Where a server listens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Listening {
    /// Of `/mcp`.
    pub mcp: SocketAddr,
    /// Of the admin port.
    pub admin: SocketAddr,
    /// Whether everybody is let in.
    pub open: bool,
}

impl App {
    /// Binds both ports and serves until [`crate::lifecycle::Lifecycle::stop`]. `started` is told
    /// where, once requests are answered.
    pub async fn serve_http(
        self: Arc<Self>,
        started: impl FnOnce(Listening) + Send,
    ) -> anyhow::Result<()> {
        let server = self.place.config.server.clone();
        let open = self.directory.is_empty()?;
        if open && !server.listen.ip().is_loopback() {
            bail!(
                "refusing to listen on {} without tenants, since everybody could run tools: add \
                 one with `toolcrib tenant add NAME`, or listen on 127.0.0.1",
                server.listen
            );
        }
        let guard = Guard::new(&server.allowed_hosts, &server.allowed_origins)?;
        let door = Door::new(
            Arc::clone(&self.directory),
            server.listen.ip().is_loopback(),
        );
        let routes = self.routes()?;
        // Not the signal to stop: that would cut off the calls that may still finish.
        let cancelled = self.lifecycle.cancelled_token();
        let mcp = mcp_router(routes, guard, door, server.body_bytes_max, &cancelled);
        let admin = admin_router(Arc::new(AppHealth(Arc::clone(&self))));

        let mcp_listener = bind(server.listen, "server.listen").await?;
        let admin_listener = bind(server.admin_listen, "server.admin_listen").await?;
        let listening = Listening {
            mcp: mcp_listener.local_addr()?,
            admin: admin_listener.local_addr()?,
            open,
        };
        self.spawn_upkeep();
        self.spawn_refreshing(true);
        self.spawn_following_lists();
        let serving = self.spawn_server(mcp_listener, mcp);
        let admin = self.spawn_server(admin_listener, admin);
        started(listening);
        self.lifecycle.stopping().await;
        self.shut_down().await;
        serving.await??;
        admin.await??;
        Ok(())
    }

    /// Serves standard streams until the client ends them.
    pub async fn serve_stdio(self: Arc<Self>) -> anyhow::Result<()> {
        let guest = match &self.place.env.connection {
            None => Guest::local(),
            Some(text) => {
                use secrecy::ExposeSecret;
                let credential = text
                    .expose_secret()
                    .parse()
                    .context("TOOLCRIB_CONNECTION")?;
                let found = self.directory.authenticate(&credential)?;
                let (tenant, limits) = found.context("TOOLCRIB_CONNECTION: this key is unknown")?;
                Guest {
                    tenant: Arc::new(tenant),
                    limits,
                    trace: None,
                }
            }
        };
        let handler = self.resident_handler(guest)?;
        self.spawn_upkeep();
        self.spawn_refreshing(false);
        self.spawn_following_lists();
        let served = handler.serve_stdio(&self.lifecycle).await;
        self.lifecycle.stop();
        self.shut_down().await;
        Ok(served?)
    }

    fn spawn_server(
        &self,
        listener: TcpListener,
        router: axum::Router,
    ) -> tokio::task::JoinHandle<std::io::Result<()>> {
        let lifecycle = self.lifecycle.clone();
        // Graceful: idle connections close at once, those with a request in flight when it is
        // answered. A client that never ends is cut off with the rest.
        self.lifecycle.spawn(async move {
            let stop = lifecycle.stopping_token();
            let listener = Patient::new(listener, READ_MAX);
            let graceful = axum::serve(listener, router)
                .with_graceful_shutdown(async move { stop.cancelled().await });
            tokio::select! {
                served = graceful => served,
                () = lifecycle.cancelled() => Ok(()),
            }
        })
    }

    /// Makes vectors and sweeps handles, beside the serving.
    fn spawn_upkeep(self: &Arc<Self>) {
        let (lifecycle, job) = (self.lifecycle.clone(), self.index_job());
        self.lifecycle.spawn(async move {
            tokio::select! {
                made = job.run(&|_, _| ()) => match made {
                    Ok(Vectors::Published) => tracing::info!("index is complete"),
                    Ok(Vectors::NoModel) => {}
                    Err(error) => tracing::error!(
                        error = %Chain(error.as_ref()), "cannot build the index; ranking by keywords"
                    ),
                },
                () = lifecycle.stopping() => {}
            }
        });
        let (lifecycle, handles) = (self.lifecycle.clone(), Arc::clone(&self.handles));
        let caller = Arc::clone(&self.caller);
        self.lifecycle.spawn(async move {
            loop {
                tokio::select! {
                    () = tokio::time::sleep(SWEEP_EVERY) => {
                        handles.sweep();
                        caller.sweep();
                    }
                    () = lifecycle.stopping() => return,
                }
            }
        });
    }

    /// Calls in flight may finish within the grace period; then they are cancelled, and all
    /// processes of upstreams end.
    async fn shut_down(&self) {
        let grace = Duration::from_secs(self.place.config.server.grace_s);
        tracing::info!(grace_s = grace.as_secs(), "stopping");
        if !self.lifecycle.wait(grace).await {
            tracing::warn!("calls did not finish within the grace period; cancelling them");
        }
        self.lifecycle.cancel();
        self.caller.upstreams().close().await;
        self.lifecycle.wait(CANCEL_MAX).await;
        tracing::info!("stopped");
    }
}

async fn bind(address: SocketAddr, key: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen on {address}: another program may use the port; change `{key}`")
    })
}
