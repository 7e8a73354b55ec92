//! The server process from start to drain.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::assembly::{BackgroundTasks, HttpListeners, scheme};
use super::audit_log::write_events;
use super::jobs::JobContext;
use super::reload::{ServerLaunch, SettingsReload};
use super::server_storage::ServerStorage;
use super::services::{DomainServices, readiness, shared_state, start_traces};
use super::{OpenArchive, systemd};
use crate::cluster::guard::ClusterGuard;
use crate::cluster::jobs::JobThread;
use crate::cluster::membership::{ClusterNode, FigureSources, MembershipKeeper};
use crate::http::listener::ListenerSettings;
use crate::http::{self, AppState, ProcessState};
use crate::runtime::config::{Config, host_name};
use crate::runtime::error::{Error, Result};
use crate::runtime::traces::TraceExporter;
use crate::runtime::{clock, telemetry};

/// Extra time for a shutdown that systemd is asked for, beyond the times in the settings.
const STOP_GRACE_PERIOD: Duration = Duration::from_secs(15);

/// A server that listens and is ready to run.
pub struct ServerProcess {
    http: HttpListeners,
    app: AppState,
    threads: Vec<JobThread>,
    guard: ClusterGuard,
    /// Tasks that send deliveries and messages until the service stops.
    senders: Vec<tokio::task::JoinHandle<()>>,
    runtime: Runtime,
    signals: ProcessSignals,
    reload: SettingsReload,
    export: Option<TraceExporter>,
    keeper: MembershipKeeper,
}

impl ServerProcess {
    /// Opens all parts of the server and listens.
    ///
    /// Fails if the address is in use, the data directory cannot be used, or a setting does not fit this
    /// machine.
    pub fn start(
        launch: ServerLaunch,
        archive: OpenArchive,
        node: ClusterNode,
        keeper: MembershipKeeper,
    ) -> Result<Self> {
        let mut config = launch.config.clone();
        let metrics = telemetry::start_metrics()?;
        announce(&config, &node);
        let (traces, export) = start_traces(&config)?;
        let mut ingest = archive.ingest(&config)?.for_server();
        ingest.required_fields.clone_from(&config.ingest.required_fields.0);
        let storage = ServerStorage::open(&config, archive, &node)?;
        // Binding fills in `server.public_url`, which the services below copy into their links.
        let http = HttpListeners::bind(&mut config)?;
        let (domain, stream_commands) = DomainServices::start(&config, &storage, ingest)?;
        let readiness = readiness(&config, &storage, &domain.archive.content);
        let process = ProcessState {
            db: storage.db.clone(),
            node,
            readiness,
            metrics,
            figures: FigureSources::from_config(&config),
            item_count: Default::default(),
            has_admin_listener: http.admin.is_some(),
            draining: AtomicBool::new(false),
            stopping: watch::Sender::new(false),
        };
        let app = AppState { shared: Arc::new(shared_state(&config, domain, process, traces)?) };
        // Signals are caught before the server is announced as listening, because a signal in
        // between would kill it.
        let (runtime, signals) = runtime()?;
        let guard = storage.guard.clone();
        let drain = http.settings.limits.get().drain;
        let background =
            BackgroundTasks::start(&config, storage, &app, stream_commands, &runtime, drain)?;
        let reload = SettingsReload {
            launch,
            running: config,
            shared: Arc::clone(&app.shared),
            listener_settings: http.settings.clone(),
        };
        // The node acquires leases only now, because the jobs that they belong to run only now.
        keeper.node().work(clock::now());
        let BackgroundTasks { threads, senders, first_probe } = background;
        // A client may ask for readiness as soon as the server is announced, so wait for the first probe.
        drop(first_probe.blocking_recv());
        Ok(Self { http, app, threads, guard, senders, runtime, signals, reload, export, keeper })
    }

    /// Returns the URL of the server, for a browser.
    pub fn url(&self) -> String {
        format!("{}://{}", scheme(self.http.settings.certificate.is_some()), self.http.address)
    }

    /// Returns the URL of the listener for operators' tools, if there is one.
    pub fn admin_url(&self) -> Option<String> {
        let address = self.http.admin.as_ref()?.local_addr().ok()?;
        Some(format!("http://{address}"))
    }

    /// Returns the base URL of links in documents and pages.
    pub fn public_url(&self) -> &str {
        &self.reload.running.server.public_url.0
    }

    /// Serves until the process receives SIGTERM or SIGINT, then drains. SIGHUP reloads the settings.
    pub fn run(self) -> Result<()> {
        let status = format!("serving on {}", self.url());
        let Self { http, app, threads, senders, runtime, signals, .. } = self;
        let HttpListeners { listener, admin, settings, .. } = http;
        let ProcessSignals { stop, hangup } = signals;
        runtime.spawn(reload_on_signal(hangup, self.reload, status.clone()));
        if let Some(watchdog) = systemd::watchdog(app.shared.process.db.clone()) {
            JobContext { runtime: &runtime, guard: &self.guard }.run_until_shutdown(watchdog);
        }
        // Audit events and spans of the last requests are written after the drain, so these tasks
        // get their own stop signal.
        let (end, ended) = watch::channel(false);
        let events = app.shared.access.audit.pending();
        let db = app.shared.process.db.clone();
        let events = events.map(|events| runtime.spawn(write_events(db, events, ended.clone())));
        let export = self.export.map(|export| runtime.spawn(export.run(ended)));
        if let Some(admin) = admin {
            runtime.spawn(serve_admin(admin, settings.clone(), app.clone()));
        }
        systemd::ready(&status);
        runtime.block_on(serve(listener, settings, app, stop))?;
        // Messages in flight drain within the same time as the requests.
        for sender in senders {
            if let Err(cause) = runtime.block_on(sender) {
                tracing::error!("a sender of deliveries or messages ended early: {cause}");
            }
        }
        end.send_replace(true);
        if let Some(export) = export {
            drop(runtime.block_on(export));
        }
        if let Some(events) = events {
            drop(runtime.block_on(events));
        }
        // Reads of originals for a client that disconnected may block a thread for a moment longer.
        runtime.shutdown_timeout(Duration::from_secs(1));
        threads.into_iter().for_each(JobThread::end);
        // No work is in flight any more, so other nodes can take over the leases at once.
        drop(self.keeper);
        Ok(())
    }
}

/// Reports which node of which machine this process is, in the log and as a metric.
fn announce(config: &Config, node: &ClusterNode) {
    // An edge has no name, because it writes nothing.
    let name = node.name().unwrap_or_default();
    let host = host_name();
    let listen = config.server.listen.to_string();
    let role = config.server.role.as_str();
    tracing::info!(node = name, host, listen, role, "node started");
    metrics::gauge!(
        telemetry::NODE_INFO, "node" => name, "host" => host, "listen" => listen, "role" => role
    )
    .set(1.0);
}

/// Creates the runtime and starts to catch signals in it.
fn runtime() -> Result<(Runtime, ProcessSignals)> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let built = builder.enable_all().thread_name("serve").build();
    let runtime = built.map_err(Error::internal)?;
    let signals = {
        let _inside = runtime.enter();
        ProcessSignals::catch()?
    };
    Ok((runtime, signals))
}

/// Serves until a signal arrives, then drains. Consumes the listener: a clone that stayed open would accept
/// new connections, which would hang for the whole drain.
async fn serve(
    listener: TcpListener,
    settings: ListenerSettings,
    app: AppState,
    signals: StopSignals,
) -> Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener).map_err(Error::internal)?;
    let shared = Arc::clone(&app.shared);
    let stopping = shared.process.stopping.subscribe();
    let limits = settings.limits.clone();
    tokio::spawn(async move {
        signals.first().await;
        let unready = shared.edge.live_settings.get().drain_delay;
        let time = unready + limits.get().drain + STOP_GRACE_PERIOD;
        // systemd kills the service after its own timeout unless it learns the duration of the drain.
        drop(tokio::task::spawn_blocking(move || systemd::stopping(time)));
        // Load balancers see the drain in the readiness probe before connections close.
        shared.process.draining.store(true, Ordering::SeqCst);
        shared.process.node.drain();
        tokio::time::sleep(unready).await;
        tracing::info!("stopping: no new connections, in-flight requests finish");
        shared.process.stopping.send_replace(true);
    });
    let report = http::listener::serve(listener, http::service(app), settings, stopping).await;
    tracing::info!(finished = report.finished, cut = report.cut, "stopped");
    Ok(())
}

/// Serves operators' tools on a separate listener until the service stops. It has no TLS, because it belongs
/// in a network that only the operator can reach.
async fn serve_admin(listener: TcpListener, settings: ListenerSettings, app: AppState) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(cause) => {
            tracing::error!("server.admin_listen cannot be served: {cause}");
            return;
        }
    };
    let stopping = app.shared.process.stopping.subscribe();
    let settings = ListenerSettings { certificate: None, ..settings };
    http::listener::serve(listener, http::admin_service(app), settings, stopping).await;
}

/// Reloads the settings on each SIGHUP, one reload at a time. Signals during a reload cause one further
/// reload.
async fn reload_on_signal(mut hangup: Signal, mut reload: SettingsReload, status: String) {
    while hangup.recv().await.is_some() {
        let status = status.clone();
        let reloaded = tokio::task::spawn_blocking(move || {
            systemd::reloading();
            let outcome = reload.reload();
            systemd::ready(&format!("{status}; {outcome}"));
            reload
        });
        match reloaded.await {
            Ok(returned) => reload = returned,
            Err(cause) => {
                // The state of the reload was lost in the panic.
                tracing::error!("reload failed, SIGHUP is ignored from now on: {cause}");
                return;
            }
        }
    }
}

/// The signals that are caught after [`ProcessSignals::catch`].
struct ProcessSignals {
    stop: StopSignals,
    hangup: Signal,
}

impl ProcessSignals {
    /// Starts to catch the signals; must be called inside the runtime.
    fn catch() -> Result<Self> {
        let terminate = signal(SignalKind::terminate()).map_err(Error::internal)?;
        let interrupt = signal(SignalKind::interrupt()).map_err(Error::internal)?;
        let hangup = signal(SignalKind::hangup()).map_err(Error::internal)?;
        Ok(Self { stop: StopSignals { terminate, interrupt }, hangup })
    }
}

/// The signals that stop the server: SIGTERM and SIGINT.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Completes with the first of the two signals.
    async fn first(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
