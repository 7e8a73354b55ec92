//! The listeners and the background work of a server. Each constructor receives the parts that it depends on.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::jobs::{JobContext, start_follower, start_threads};
use super::purging::open_purgers;
use super::reload::certificate;
use super::server_storage::ServerStorage;
use super::services::{listener_limits, start_senders};
use crate::cluster::jobs::JobThread;
use crate::distribution::notifications::StreamCommands;
use crate::http::AppState;
use crate::http::listener::ListenerSettings;
use crate::media;
use crate::runtime::clock;
use crate::runtime::config::{BaseUrl, Config, NodeRole};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::hot_swap::HotSwap;
use crate::runtime::limits::WARM_QUEUE_MAX;

/// The listeners of a server.
pub(super) struct HttpListeners {
    pub(super) listener: TcpListener,
    /// The listener for operators' tools, if one is configured.
    pub(super) admin: Option<TcpListener>,
    pub(super) address: SocketAddr,
    pub(super) settings: ListenerSettings,
}

impl HttpListeners {
    /// Binds the listeners, fills in the base URL of links if none is set, and warns if a proxy hides the
    /// addresses of clients.
    pub(super) fn bind(config: &mut Config) -> Result<Self> {
        // Read first: bad key material ends the start before a port is open.
        let certificate = certificate(config)?;
        let admin = config.server.admin_listen.0;
        let admin = admin.map(|address| listen("server.admin_listen", address)).transpose()?;
        let listener = listen("server.listen", config.server.listen)?;
        // The setting may leave the port to the system, so it is known only now.
        let address = listener.local_addr().map_err(Error::internal)?;
        if config.server.public_url.0.is_empty() {
            config.server.public_url = BaseUrl(default_url(address, config.serves_tls()));
        }
        // Behind a proxy that is not trusted, all clients seem to have one address (contract operation-7).
        if let Some(warning) = config.proxy_warning() {
            tracing::warn!("{warning}");
        }
        let settings =
            ListenerSettings { limits: HotSwap::new(listener_limits(config)), certificate };
        Ok(Self { listener, admin, address, settings })
    }
}

fn listen(setting: &str, address: SocketAddr) -> Result<TcpListener> {
    let bound = TcpListener::bind(address).and_then(|listener| {
        // Tokio requires a non-blocking socket.
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    bound.map_err(|cause| {
        Error::new(ErrorKind::Unavailable, format!("{setting} {address} cannot be used"))
            .with_source(cause)
    })
}

/// Returns the base URL of links for a server without `server.public_url`: a URL that a browser on this
/// machine can open.
fn default_url(address: SocketAddr, tls: bool) -> String {
    let scheme = scheme(tls);
    if address.ip().is_unspecified() {
        return format!("{scheme}://localhost:{}", address.port());
    }
    format!("{scheme}://{address}")
}

pub(super) fn scheme(tls: bool) -> &'static str {
    if tls { "https" } else { "http" }
}

/// The background work of a server.
pub(super) struct BackgroundTasks {
    pub(super) threads: Vec<JobThread>,
    /// Tasks that send deliveries and messages until the service stops.
    pub(super) senders: Vec<JoinHandle<()>>,
    /// Completes after the first readiness probe of this node.
    pub(super) first_probe: oneshot::Receiver<()>,
}

impl BackgroundTasks {
    /// Starts every thread and job of this process that its role includes.
    pub(super) fn start(
        config: &Config,
        storage: ServerStorage,
        app: &AppState,
        stream_commands: StreamCommands,
        runtime: &Runtime,
        drain: Duration,
    ) -> Result<Self> {
        let shared = &app.shared;
        let scrub = storage.scrub(config);
        let ServerStorage { db, watched, diagnostics, guard, .. } = storage;
        let purgers = open_purgers(config, &db, &guard)?;
        // The row of the item log up to which this process serves no outdated versions. The caches start empty, so
        // earlier writes need no purge; the follower publishes its start position in its first run.
        let (followed, position) = watch::channel(0);
        let (to_warm, warm_queue) = mpsc::channel(WARM_QUEUE_MAX);
        // A worker serves no media, so it has no use for a warm cache.
        let is_warming = config.media.warm && guard.node().role() != NodeRole::Worker;
        let to_warm = is_warming.then_some(to_warm);
        let media = &shared.media;
        let auth = &shared.access.auth;
        let notifications = &shared.distribution.notifications;
        let mut threads = vec![start_follower(media, auth, to_warm, followed, &guard)?];
        threads.extend(start_threads(notifications, watched, &guard)?);
        // If warming is off, the channel is closed and this task ends at once.
        runtime.spawn(media::prerender::run(media.clone(), warm_queue));
        runtime.spawn(notifications.serve_streams(stream_commands, clock::now));
        let (probe_done, first_probe) = oneshot::channel();
        let jobs = JobContext { runtime, guard: &guard };
        let process = &shared.process;
        jobs.run_until(process.stopping.subscribe(), process.readiness.job(probe_done));
        jobs.start_timers(shared, config);
        jobs.start_operator_jobs(shared, diagnostics);
        if let Some(scrub) = scrub {
            runtime.spawn(scrub.run());
        }
        let mut senders = start_senders(runtime, app, drain);
        let stop = process.stopping.subscribe();
        senders.extend(purgers.map(|purgers| runtime.spawn(purgers.run(position, stop, drain))));
        Ok(Self { threads, senders, first_probe })
    }
}
