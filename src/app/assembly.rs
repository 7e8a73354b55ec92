//! The parts of a server in the order in which they start: storage, domain, HTTP, background. Each
//! constructor receives the parts that it depends on.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::OpenArchive;
use super::jobs::{JobContext, WatchedFolder, start_follower, start_threads};
use super::ownership::retry_ownership_check;
use super::purging::PurgeStarter;
use super::reload::certificate;
use super::scrub::OriginalsScrub;
use super::services::{
    hash_limits, listener_limits, poll_limits, start_deliveries, start_media, start_notifications,
    start_oauth, start_search, start_senders, start_uploads, start_users,
};
use crate::access::auth::Auth;
use crate::access::oauth::OAuth;
use crate::access::orders::Orders;
use crate::access::users::Users;
use crate::archive::content::Content;
use crate::archive::ingest::{Ingest, Uploads};
use crate::cluster::clock_guard::ClockGuard;
use crate::cluster::guard::ClusterGuard;
use crate::cluster::jobs::JobThread;
use crate::cluster::membership::{ClusterLease, ClusterNode};
use crate::distribution::delivery::{ChannelSender, Deliveries};
use crate::distribution::notifications::{Notifications, StreamCommands};
use crate::distribution::recipients::{RecipientSettings, Recipients};
use crate::http::AppState;
use crate::http::listener::ListenerSettings;
use crate::media;
use crate::media::original::OriginalStore;
use crate::media::{Media, MediaSettings};
use crate::runtime::clock;
use crate::runtime::config::{BaseUrl, Config, NodeRole};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::hot_swap::HotSwap;
use crate::runtime::limits::WARM_QUEUE_MAX;
use crate::storage::blobs::BlobStore;
use crate::storage::database::Db;
use crate::storage::diagnostics::DiagnosticLog;

/// The storage of a running server.
pub(super) struct ServerStorage {
    pub(super) db: Db,
    pub(super) store: BlobStore,
    pub(super) originals: OriginalStore,
    pub(super) watched: Option<WatchedFolder>,
    /// Ingest errors and slow searches that wait to be written to the database.
    pub(super) diagnostics: DiagnosticLog,
    /// Decides which work this node may do at the moment.
    pub(super) guard: ClusterGuard,
}

impl ServerStorage {
    /// Opens the connections to the database and removes files that a killed process left in the store. If
    /// the store did not answer, its ownership is checked again in the background.
    pub(super) fn open(config: &Config, archive: OpenArchive, node: &ClusterNode) -> Result<Self> {
        let watched = WatchedFolder::open(config, &archive, node)?;
        let OpenArchive { db, originals, diagnostics, memory: _, undetermined_store } = archive;
        let store = originals.store().clone();
        db.open_connections();
        if let Some(names) = undetermined_store {
            retry_ownership_check(db.clone(), store.clone(), names)?;
        }
        store.report();
        let swept = store.sweep().map_err(Error::internal)?;
        if swept > 0 {
            tracing::info!(files = swept, "removed leftovers of interrupted writes");
        }
        let clock = ClockGuard::start(&db, node.name().as_deref());
        let guard = ClusterGuard::new(node.clone(), clock);
        Ok(Self { db, store, originals, watched, diagnostics, guard })
    }

    /// The scrub of the originals, if the settings enable it and this process runs background work.
    fn scrub(&self, config: &Config) -> Option<OriginalsScrub> {
        let period = config.store.scrub_days.for_location(&config.store.originals)?;
        let node = self.guard.node();
        if !node.role().runs_background_work() {
            return None;
        }
        // One node scrubs at a time (contract operation-21).
        node.request_lease(ClusterLease::Scrubbing, None);
        Some(OriginalsScrub {
            db: self.db.clone(),
            store: self.store.clone(),
            node: node.clone(),
            period,
        })
    }
}

/// The services that handlers and background jobs call.
pub(super) struct DomainServices {
    pub(super) auth: Auth,
    pub(super) oauth: OAuth,
    pub(super) users: Users,
    pub(super) orders: Orders,
    pub(super) media: Media,
    pub(super) content: Content,
    pub(super) uploads: Uploads,
    pub(super) deliveries: Deliveries,
    pub(super) notifications: Notifications,
    pub(super) recipients: Recipients,
}

impl DomainServices {
    /// Starts the services over an archive. Also returns the commands of stream readers, which a job serves.
    pub(super) fn start(
        config: &Config,
        storage: &ServerStorage,
        ingest: Ingest,
    ) -> Result<(Self, StreamCommands)> {
        let db = &storage.db;
        let guard = &storage.guard;
        let auth = Auth::start(db.clone(), hash_limits(config))?;
        let oauth = start_oauth(config, &auth)?;
        let sender = ChannelSender::from_config(config)?;
        let users = start_users(config, &auth, &sender)?;
        let orders = Orders::new(db.clone(), Some(auth.clone()));
        let media = start_media(config, &orders, storage.originals.clone())?;
        let MediaSettings { sizes, rights, .. } = media.settings();
        let search = start_search(config, db, Arc::clone(rights))?;
        let content = Content::new(search, *sizes, Arc::clone(rights), poll_limits(config));
        let content = content.recording_slow(storage.diagnostics.clone(), config.search.slow_ms);
        let uploads = start_uploads(config, storage, ingest)?;
        let mailer = sender.mailer().clone();
        let recipients =
            Recipients::new(db.clone(), mailer, RecipientSettings::from_config(config));
        let access = AccessServices { auth: &auth, users: &users, orders: &orders };
        let outbound = OutboundServices { sender: &sender, recipients: &recipients };
        let deliveries = start_deliveries(config, access, &media, outbound, guard);
        let (notifications, stream_commands) =
            start_notifications(config, access, &media, &content, outbound, guard)?;
        let domain = Self {
            auth,
            oauth,
            users,
            orders,
            media,
            content,
            uploads,
            deliveries,
            notifications,
            recipients,
        };
        Ok((domain, stream_commands))
    }
}

/// The access services that other services depend on.
#[derive(Clone, Copy)]
pub(super) struct AccessServices<'a> {
    pub(super) auth: &'a Auth,
    pub(super) users: &'a Users,
    pub(super) orders: &'a Orders,
}

/// The services that send mails and files.
#[derive(Clone, Copy)]
pub(super) struct OutboundServices<'a> {
    pub(super) sender: &'a ChannelSender,
    pub(super) recipients: &'a Recipients,
}

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
        let (purging, followed) = PurgeStarter::open(config, &db, &guard)?;
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
        senders.extend(purging.start(runtime, app, drain));
        Ok(Self { threads, senders, first_probe })
    }
}
