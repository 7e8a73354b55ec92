//! A server's life from start to drain.

use std::{
    net::{SocketAddr, TcpListener},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{
    runtime::Runtime,
    signal::unix::{Signal, SignalKind, signal},
    sync::{oneshot, watch},
};

use super::{
    Archive,
    audit_log::write_events,
    jobs::{Jobs, WatchedFolder, start_follower, start_threads},
    ownership::{Names, settle_later},
    purging::Purging,
    reload::{Reload, certificate},
    scrub::Scrub,
    services::{
        Services, hash_limits, listener_limits, poll_limits, readiness, shared, start_media,
        start_oauth, start_outgoing, start_search, start_senders, start_traces, start_uploads,
    },
    systemd,
};
use crate::access::auth::Auth;
use crate::access::orders::Orders;
use crate::archive::content::Content;
use crate::cluster::clock_guard::ClockGuard;
use crate::cluster::guard::ClusterGuard;
use crate::cluster::jobs::JobThread;
use crate::cluster::membership::{Keeper, Lease, Node};
use crate::http;
use crate::http::App;
use crate::http::listener::Terms;
use crate::media;
use crate::runtime::clock;
use crate::runtime::config::{BaseUrl, Config, Role, Sources};
use crate::runtime::error::{Error, Kind, Result};
use crate::runtime::limits::{FILES_BESIDE_CONNECTIONS, STOP_GRANTED, WARM_QUEUE_MAX};
use crate::runtime::live::Live;
use crate::runtime::telemetry::{self, Logs};
use crate::runtime::traces::Export;
use crate::storage::blobs::Store;
use crate::storage::database::Db;

/// What a server starts from.
pub struct Launch {
    /// The settings as they were read.
    pub config: Config,
    /// Where they are read again.
    pub sources: Sources,
    /// What of the logs changes while the server runs.
    pub logs: Logs,
}

/// A server that listens and is ready to run.
pub struct Server {
    listener: TcpListener,
    /// The listener for operators' tools, where it is set.
    admin: Option<TcpListener>,
    terms: Terms,
    app: App,
    address: SocketAddr,
    threads: Vec<JobThread>,
    guard: ClusterGuard,
    /// Send deliveries and messages until they are told to stop.
    senders: Vec<tokio::task::JoinHandle<()>>,
    runtime: Runtime,
    signals: Signals,
    reload: Reload,
    export: Option<Export>,
    keeper: Keeper,
}

impl Server {
    /// Opens everything and listens.
    ///
    /// Fails when the address is taken, the data directory cannot be used or a setting makes no
    /// sense together with the machine.
    pub fn start(given: Launch, archive: Archive, (node, keeper): (Node, Keeper)) -> Result<Self> {
        let mut config = given.config.clone();
        let metrics = telemetry::start_metrics()?;
        let certificate = certificate(&config)?;
        let (traces, export) = start_traces(&config)?;
        let ingest = archive.ingest(&config)?.for_server();
        let watched = WatchedFolder::open(&config, &archive, &node)?;
        let Archive { db, originals, memory: _, unsettled } = archive;
        let store = originals.store().clone();
        begin((&db, &store), unsettled)?;
        let scrub = scrub_of(&config, (&db, &store), &node);
        let (listener, admin) = listeners(&config)?;
        let address = listener.local_addr().map_err(Error::internal)?;
        settle_public_url(&mut config, address);
        let auth = Auth::start(db.clone(), hash_limits(&config))?;
        let orders = Orders::new(db.clone(), Some(auth.clone()));
        let media = start_media(&config, &orders, originals)?;
        let (wanted, to_warm) = tokio::sync::mpsc::channel(WARM_QUEUE_MAX);
        let warms = config.media.warm && node.role() != Role::Worker;
        let wanted = warms.then_some(wanted);
        let search = start_search(&config, &db)?;
        let clock = ClockGuard::start(&db, node.name().as_deref());
        let guard = ClusterGuard::new(node.clone(), clock);
        let (purging, followed) = Purging::of(&config, &db, &guard)?;
        let mut threads = vec![start_follower(&media, &auth, wanted, followed, &guard)?];
        let sizes = media.settings().sizes;
        let content = Content::new(search, sizes, poll_limits(&config));
        let oauth = start_oauth(&config, &auth)?;
        let uploads = start_uploads(&config, ingest)?;
        let (outgoing, asks) =
            start_outgoing(&config, (&media, &orders, &content), &auth, &guard)?;
        threads.extend(start_threads(&outgoing.notifications, watched, &guard)?);
        let readiness = readiness(&config, (&db, store), &content, &node);
        let services = Services { media, content, auth, oauth, orders, outgoing, uploads };
        let app = App {
            shared: Arc::new(shared(&config, (services, node, readiness), metrics, traces)?),
        };
        let terms = Terms { limits: Live::new(listener_limits(&config)), certificate };
        // Before anybody is told that the server listens: a signal in between would kill it.
        let (runtime, signals) = runtime()?;
        let warmer = media::warm::run(app.shared.media.clone(), to_warm);
        runtime.spawn(warmer);
        let (looked, first_look) = oneshot::channel();
        let jobs = Jobs { runtime: &runtime, guard: &guard };
        jobs.until(
            app.shared.process.stopping.subscribe(),
            app.shared.process.readiness.job(looked),
        );
        runtime.spawn(app.shared.distribution.notifications.serve_streams(asks, clock::now));
        jobs.start_timers(&app.shared, &config);
        if let Some(scrub) = scrub {
            runtime.spawn(scrub.run());
        }
        let drain = terms.limits.get().drain;
        let mut senders = start_senders(&runtime, &app, drain);
        senders.extend(purging.start(&runtime, &app, drain));
        let shared = Arc::clone(&app.shared);
        let reload = Reload { given, running: config, shared, terms: terms.clone() };
        keeper.node().work(clock::now());
        // Whoever is told that it serves may ask at once whether it is ready.
        drop(first_look.blocking_recv());
        Ok(Self {
            listener,
            admin,
            terms,
            app,
            address,
            threads,
            guard,
            senders,
            runtime,
            signals,
            reload,
            export,
            keeper,
        })
    }

    /// The address as a browser takes it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}", scheme(self.terms.certificate.is_some()), self.address)
    }

    /// The address of the listener for operators' tools, where there is one.
    #[must_use]
    pub fn admin_url(&self) -> Option<String> {
        let address = self.admin.as_ref()?.local_addr().ok()?;
        Some(format!("http://{address}"))
    }

    /// The base of the links that are written.
    #[must_use]
    pub fn public_url(&self) -> &str {
        &self.reload.running.server.public_url.0
    }

    /// Serves until the process is asked to stop (SIGTERM, SIGINT), then drains. SIGHUP makes it
    /// read its settings anew.
    pub fn run(self) -> Result<()> {
        let status = format!("serving on {}", self.url());
        let Self { listener, admin, terms, app, threads, senders, runtime, signals, .. } = self;
        let Signals { stop, again } = signals;
        runtime.spawn(reload_on(again, self.reload, status.clone()));
        if let Some(watchdog) = systemd::watchdog(app.shared.process.db.clone()) {
            Jobs { runtime: &runtime, guard: &self.guard }.to_the_end(watchdog);
        }
        let (end, ended) = watch::channel(false);
        let (events, db) = (app.shared.access.audit.pending(), app.shared.process.db.clone());
        let write = |events| runtime.spawn(write_events(db, events, ended.clone()));
        let events = events.map(write);
        let export = self.export.map(|export| runtime.spawn(export.run(ended)));
        if let Some(admin) = admin {
            runtime.spawn(serve_admin(admin, terms.clone(), app.clone()));
        }
        systemd::ready(&status);
        runtime.block_on(serve(listener, terms, app, stop))?;
        // What is being sent drains in the same time as the requests.
        for sender in senders {
            if let Err(cause) = runtime.block_on(sender) {
                tracing::error!("a queue that is sent ended early: {cause}");
            }
        }
        end.send_replace(true);
        if let Some(export) = export {
            drop(runtime.block_on(export));
        }
        if let Some(events) = events {
            drop(runtime.block_on(events));
        }
        // Reads of originals that a client left behind may still block a thread for a moment.
        runtime.shutdown_timeout(Duration::from_secs(1));
        threads.into_iter().for_each(JobThread::end);
        // Nothing is under way any more: what this node did others take over at once.
        drop(self.keeper);
        Ok(())
    }
}

/// The scrub of the originals, where the settings ask for one and this process does such work.
fn scrub_of(config: &Config, (db, store): (&Db, &Store), node: &Node) -> Option<Scrub> {
    let period = config.store.scrub_days.of(&config.store.originals)?;
    if !node.role().works() {
        return None;
    }
    node.want(Lease::Scrubbing, None);
    Some(Scrub { db: db.clone(), store: store.clone(), node: node.clone(), period })
}

/// Opens the connections to the database, tells the metrics how the store is, removes what a killed process left
/// in it, and goes on finding out whose it is where it did not answer.
fn begin((db, store): (&Db, &Store), unsettled: Option<Names>) -> Result<()> {
    db.open_connections();
    if let Some(names) = unsettled {
        settle_later(db.clone(), store.clone(), names)?;
    }
    store.report();
    let swept = store.sweep().map_err(Error::internal)?;
    if swept > 0 {
        tracing::info!(files = swept, "removed what interrupted writes left");
    }
    Ok(())
}

/// The runtime, in which signals are caught from now on.
fn runtime() -> Result<(Runtime, Signals)> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let built = builder.enable_all().thread_name("serve").build();
    let runtime = built.map_err(Error::internal)?;
    let signals = {
        let _inside = runtime.enter();
        Signals::catch()?
    };
    Ok((runtime, signals))
}

/// Serves until a signal comes, then drains. Takes the listener for good: a copy that stayed open
/// would let new clients connect and hang for as long as the drain takes.
async fn serve(listener: TcpListener, terms: Terms, app: App, signals: StopSignals) -> Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener).map_err(Error::internal)?;
    let shared = Arc::clone(&app.shared);
    let stopping = shared.process.stopping.subscribe();
    let limits = terms.limits.clone();
    tokio::spawn(async move {
        signals.first().await;
        let unready = shared.edge.tuned.get().unready;
        let time = unready + limits.get().drain + STOP_GRANTED;
        drop(tokio::task::spawn_blocking(move || systemd::stopping(time)));
        // Load balancers learn it from readiness before connections close.
        shared.process.draining.store(true, Ordering::SeqCst);
        shared.process.node.drain();
        tokio::time::sleep(unready).await;
        tracing::info!("stopping: no new connections, requests under way finish");
        shared.process.stopping.send_replace(true);
    });
    let report = http::listener::serve(listener, http::service(app), terms, stopping).await;
    tracing::info!(finished = report.finished, cut = report.cut, "stopped");
    Ok(())
}

/// Serves operators' tools at a listener of their own until the service stops. It speaks no TLS: it
/// belongs to a network that only the operator reaches.
async fn serve_admin(listener: TcpListener, terms: Terms, app: App) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(cause) => {
            tracing::error!("server.admin_listen cannot be served: {cause}");
            return;
        }
    };
    let stopping = app.shared.process.stopping.subscribe();
    let terms = Terms { certificate: None, ..terms };
    http::listener::serve(listener, http::admin_service(app), terms, stopping).await;
}

/// Fills in the base of links where none is set, and warns where a proxy hides the clients.
fn settle_public_url(config: &mut Config, address: SocketAddr) {
    if config.server.public_url.0.is_empty() {
        config.server.public_url = BaseUrl(default_url(address, config.serves_tls()));
    }
    if let Some(warning) = config.hidden_clients() {
        tracing::warn!("{warning}");
    }
}

/// The base of links when none is set: an address that this machine's browser can open.
fn default_url(address: SocketAddr, tls: bool) -> String {
    let scheme = scheme(tls);
    if address.ip().is_unspecified() {
        return format!("{scheme}://localhost:{}", address.port());
    }
    format!("{scheme}://{address}")
}

fn scheme(tls: bool) -> &'static str {
    if tls { "https" } else { "http" }
}

/// Reads the settings anew each time that SIGHUP comes, one after the other. What comes meanwhile
/// counts once.
async fn reload_on(mut again: Signal, mut reload: Reload, status: String) {
    while again.recv().await.is_some() {
        let status = status.clone();
        let reloaded = tokio::task::spawn_blocking(move || {
            systemd::reloading();
            let outcome = reload.again();
            systemd::ready(&format!("{status}; {outcome}"));
            reload
        });
        match reloaded.await {
            Ok(back) => reload = back,
            Err(cause) => {
                tracing::error!("settings are not read anew any more: {cause}");
                return;
            }
        }
    }
}

/// Raises the number of files that the process may have open, as far as the system lets it: each
/// connection takes one, and what is read and sent for it up to one more.
pub fn allow_connections(connections_max: u32) {
    let wanted = u64::from(connections_max) * 2 + FILES_BESIDE_CONNECTIONS;
    match rlimit::increase_nofile_limit(wanted) {
        Ok(allowed) if allowed >= wanted => {}
        Ok(allowed) => tracing::warn!(
            allowed,
            wanted,
            "the system allows few open files (ulimit -n); connections beyond them fail"
        ),
        Err(cause) => tracing::warn!("the number of open files cannot be raised: {cause}"),
    }
}

/// The listener for everybody, and the one for operators' tools where it is set.
fn listeners(config: &Config) -> Result<(TcpListener, Option<TcpListener>)> {
    let admin = config.server.admin_listen.0;
    let admin = admin.map(|address| listen("server.admin_listen", address)).transpose()?;
    Ok((listen("server.listen", config.server.listen)?, admin))
}

fn listen(setting: &str, address: SocketAddr) -> Result<TcpListener> {
    let failed = |cause| {
        Error::new(Kind::Unavailable, format!("{setting} {address} cannot be used")).because(cause)
    };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// The signals that are caught, from [`Signals::catch`] on.
struct Signals {
    stop: StopSignals,
    /// SIGHUP.
    again: Signal,
}

impl Signals {
    /// Must be called inside the runtime.
    fn catch() -> Result<Self> {
        let catch = |kind| signal(kind).map_err(Error::internal);
        let (terminate, interrupt) = (SignalKind::terminate(), SignalKind::interrupt());
        let stop = StopSignals { terminate: catch(terminate)?, interrupt: catch(interrupt)? };
        Ok(Self { stop, again: catch(SignalKind::hangup())? })
    }
}

/// SIGTERM and SIGINT.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Ends with the first of them.
    async fn first(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
