//! Assembly: opens what the commands share and runs the server from start to drain.

pub mod check;

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use tokio::{
    runtime::Runtime,
    signal::unix::{Signal, SignalKind, signal},
};

use crate::account::Lane;
use crate::accounts::{Accounts, Imported};
use crate::auth::{Auth, HashLimits, Hasher};
use crate::clock;
use crate::collections::Collections;
use crate::compute::Compute;
use crate::config::{BaseUrl, Config, find_program};
use crate::content::Content;
use crate::db::Db;
use crate::delivery::{self, Deliveries, Sender};
use crate::error::{Error, Kind, Result};
use crate::ingest::watch::Watch;
use crate::ingest::{self, Failure, Found, Ingest, IngestLimits, Spool, Taken, Uploads};
use crate::jobs;
use crate::letters::Letters;
use crate::limits::{
    ACCOUNTS_BYTES_MAX, ACCOUNTS_SWEEP, DELIVERIES_SWEEP, ITEM_LOG_KEPT, ITEM_LOG_SWEEP,
    METRICS_UPKEEP, PAGE_PX_MAX, WARM_QUEUE_MAX,
};
use crate::media;
use crate::media::DecodeLimits;
use crate::media::Media;
use crate::media::Settings;
use crate::media::original::Originals;
use crate::notifications::{self, Asks, Notifications};
use crate::oauth::{Lifetimes, OAuth};
use crate::orders::Orders;
use crate::programs::{ProgramLimits, Programs};
use crate::push::Push;
use crate::search::Search;
use crate::store::Derived;
use crate::store::Store;
use crate::telemetry;
use crate::types::ItemKey;
use crate::users::Users;
use crate::web::{
    self, Activity, App, Pages, Shared,
    listener::ListenerLimits,
    openapi::{Bases, Description},
};

/// What every command works on: the database and the store of a data directory.
pub struct Archive {
    /// The database.
    pub db: Db,
    /// The originals, with what is derived from them.
    pub originals: Originals,
}

impl Archive {
    /// Opens the data directory, which is made when it is missing.
    pub fn open(config: &Config) -> Result<Self> {
        let dir = &config.data.dir;
        let unusable = |cause: String| {
            let message = format!("data directory {} cannot be used", dir.display());
            Error::new(Kind::Unavailable, message).because(cause)
        };
        fs::create_dir_all(dir).map_err(|cause| unusable(cause.to_string()))?;
        let db = Db::open(dir).map_err(|cause| unusable(cause.to_string()))?;
        let store =
            Store::open(&config.originals_dir()).map_err(|cause| unusable(cause.to_string()))?;
        let derived = Derived::open(&config.data.dir.join("derived"))
            .map_err(|cause| unusable(cause.to_string()))?;
        let DecodeLimits { header, .. } = DecodeLimits::of(config);
        let originals = Originals::new(store, derived, header, config.media.preview_px);
        Ok(Self { db, originals })
    }

    /// Makes the search index anew if it is of another version or was not made to its end.
    pub fn bring_index_up_to_date(&self, config: &Config) -> Result<()> {
        if self.db.index_is_current()? {
            return Ok(());
        }
        tracing::info!("the search index is of another version and is made anew");
        self.reindex(config, &mut |_, _| ())
    }

    /// Makes the search index anew from the stored documents; `report` hears how many of how many
    /// items are done.
    pub fn reindex(&self, config: &Config, report: &mut dyn FnMut(u64, u64)) -> Result<()> {
        Ok(self.db.reindex(&config.ingest.timezone.0, clock::now(), report)?)
    }

    /// A run of ingest into this archive.
    ///
    /// Fails when the watermark cannot be made from the settings.
    pub fn ingest(&self, config: &Config) -> Result<Ingest> {
        let DecodeLimits { pixels_max, file_bytes_max, header } = DecodeLimits::of(config);
        // A page is scaled down to a Preview; twice its size keeps fine lines.
        let page_px = config.media.preview_px.saturating_mul(2).min(PAGE_PX_MAX);
        let video_px = config.media.video_px;
        let limits = IngestLimits { pixels_max, file_bytes_max, header, page_px, video_px };
        let zone = config.ingest.timezone.0.clone();
        let marker = Settings::of(config)?.marker;
        let parts = (self.db.clone(), self.originals.clone(), programs(config)?);
        Ok(Ingest::new(parts, limits, zone, marker))
    }

    /// The accounts of this archive, for the operator's commands.
    ///
    /// Fails when argon2 does not allow the settings.
    pub fn accounts(&self, config: &Config) -> Result<Accounts> {
        let hasher = Hasher::new(config.auth.hash_memory_kib, config.auth.hash_iterations)?;
        Ok(Accounts::new(self.db.clone(), hasher, config.hash_workers()))
    }

    /// Takes the accounts file at `path` in.
    pub fn import(&self, config: &Config, path: &Path) -> Result<Imported> {
        let text = read_accounts(path)?;
        self.accounts(config)?
            .import(&text, clock::now())
            .map_err(|cause| file_error(path, &cause))
    }
}

/// The programs that read what our own code should not.
fn programs(config: &Config) -> Result<Programs> {
    let own = std::env::current_exe().map_err(Error::internal)?;
    let limits = ProgramLimits {
        memory_bytes: config.media.program_memory_bytes,
        time: Duration::from_secs(u64::from(config.media.program_time_s)),
    };
    Ok(Programs::new(own, find_program(&config.media.ffmpeg), limits))
}

/// An error that names its file.
fn file_error(path: &Path, cause: &dyn std::fmt::Display) -> Error {
    Error::new(Kind::InvalidArgument, format!("{}: {cause}", path.display()))
}

/// Reads an accounts file under its limit.
fn read_accounts(path: &Path) -> Result<String> {
    let facts = fs::metadata(path).map_err(|cause| file_error(path, &cause))?;
    if facts.len() > ACCOUNTS_BYTES_MAX {
        return Err(file_error(path, &format!("has more than {ACCOUNTS_BYTES_MAX} bytes")));
    }
    fs::read_to_string(path).map_err(|cause| file_error(path, &cause))
}

/// The demo archive beside the data directory or the working directory.
///
/// Fails when there is none; the message names the places that were looked at.
pub fn find_demo(config: &Config) -> Result<PathBuf> {
    let places = [config.data.dir.clone(), PathBuf::from("media-store")];
    let found = places.iter().find(|place| place.join("demo").is_dir());
    found.cloned().ok_or_else(|| {
        let looked = places.each_ref().map(|place| place.join("demo").display().to_string());
        let message = format!("no demo archive in {}", looked.join(" or "));
        Error::new(Kind::NotFound, message)
    })
}

/// Name of the note that tells which demo accounts were taken in.
const DEMO_ACCOUNTS: &str = "demo-accounts";

/// Takes in what of the demo archive in `place` the data directory does not have yet.
///
/// The accounts are taken in when their file is new to the data directory: what was changed in them
/// since stays.
pub fn take_in_demo(archive: &Archive, config: &Config, place: &Path) -> Result<usize> {
    let Found { incoming, failures, .. } = ingest::find(&[place.join("demo")]);
    let failed = |failure: &Failure| Error::new(Kind::InvalidArgument, failure.to_string());
    if let Some(failure) = failures.first() {
        return Err(failed(failure));
    }
    let missing = incoming.into_iter().filter(|one| !is_known(archive, one)).collect::<Vec<_>>();
    let count = missing.len();
    let problem = std::sync::Mutex::new(None);
    let report = |_: &ingest::Incoming, outcome: &Result<Taken, Failure>| {
        if let Err(failure) = outcome
            && let Ok(mut problem) = problem.lock()
        {
            problem.get_or_insert(failed(failure));
        }
    };
    let ingest = archive.ingest(config)?;
    ingest::take_in_all(&ingest, missing, config.ingest_workers(), &clock::now, &report);
    if let Some(error) = problem.into_inner().ok().flatten() {
        return Err(error);
    }
    let accounts = place.join("accounts.json");
    if accounts.is_file() {
        let text = read_accounts(&accounts)?;
        let imported = archive.accounts(config)?.import_once(DEMO_ACCOUNTS, &text, clock::now());
        imported.map_err(|cause| file_error(&accounts, &cause))?;
    }
    Ok(count)
}

/// Whether an item of the demo archive is there already, by the name of its file or folder.
fn is_known(archive: &Archive, incoming: &ingest::Incoming) -> bool {
    let Some(key) = incoming.named_key() else { return false };
    let found = archive.db.read_blocking(move |tx| tx.find_item(&key));
    found.is_ok_and(|item| item.is_some())
}

/// A server that listens and is ready to run.
pub struct Server {
    listener: TcpListener,
    limits: ListenerLimits,
    app: App,
    address: SocketAddr,
    public_url: String,
    threads: Vec<Beside>,
    /// Send deliveries and messages until they are told to stop.
    senders: Vec<tokio::task::JoinHandle<()>>,
    runtime: Runtime,
    signals: StopSignals,
}

/// A thread that works beside the requests until it is told to stop.
struct Beside {
    stop: mpsc::Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Server {
    /// Opens everything and listens.
    ///
    /// Fails when the address is taken, the data directory cannot be used or a setting makes no
    /// sense together with the machine.
    pub fn start(mut config: Config, archive: Archive) -> Result<Self> {
        let metrics = telemetry::start_metrics()?;
        let ingest = archive.ingest(&config)?.for_server();
        let watcher = start_watcher(&config, &archive)?;
        let Archive { db, originals } = archive;
        let swept = originals.store().sweep().map_err(Error::internal)?;
        if swept > 0 {
            tracing::info!(files = swept, "removed what interrupted writes left");
        }
        let listener = listen(config.server.listen)?;
        let address = listener.local_addr().map_err(Error::internal)?;
        if config.server.public_url.0.is_empty() {
            config.server.public_url = BaseUrl(default_url(address));
        }
        let media_config = &config.media;
        let workers = config.render_workers();
        let compute = Compute::start(workers, media_config.queue, media_config.memory_bytes)?;
        let cache_dir = config.data.dir.join("derived").join("cache");
        let auth = Auth::start(db.clone(), hash_limits(&config))?;
        let orders = Orders::new(db.clone(), Some(auth.clone()));
        let settings = Settings::of(&config)?;
        let media = Media::start(settings, orders.clone(), originals, compute, &cache_dir)?;
        let (wanted, to_warm) = tokio::sync::mpsc::channel(WARM_QUEUE_MAX);
        let wanted = config.media.warm.then_some(wanted);
        let search = Search::start(db.clone(), config.search.memory_bytes)?;
        let follower = start_follower(&db, (&media, &auth, &search), wanted)?;
        let sizes = media.settings().sizes;
        let content = Content::new(search, sizes, config.search.polls);
        let oauth = start_oauth(&config, &auth)?;
        let uploads = start_uploads(&config, ingest)?;
        let way_out = Sender::of(&config)?;
        let deliveries = start_deliveries(&config, (&media, &orders, &auth), way_out.clone());
        let (notifications, asks) =
            start_notifications(&config, (&media, &content, &auth), &way_out)?;
        let matcher = start_matcher(&db, &notifications)?;
        let services =
            Services { media, content, auth, oauth, orders, deliveries, notifications, uploads };
        let app = App { shared: Arc::new(shared(&config, services, metrics)?) };
        let public_url = config.server.public_url.0.clone();
        let limits = listener_limits(&config);
        let runtime = runtime()?;
        // Before anybody is told that the server listens: a signal in between would kill it.
        let signals = {
            let _inside = runtime.enter();
            StopSignals::catch()?
        };
        let warmer = media::warm::run(app.shared.media.clone(), to_warm);
        runtime.spawn(warmer);
        runtime.spawn(sweep_accounts(app.shared.oauth.clone()));
        runtime.spawn(sweep_item_log(app.shared.db.clone()));
        runtime.spawn(sweep_deliveries(app.shared.deliveries.clone()));
        runtime.spawn(jobs::expire(app.shared.collections.clone()));
        runtime.spawn(app.shared.notifications.serve_streams(asks, clock::now));
        let senders = start_senders(&runtime, &app, limits.drain);
        let threads = [Some(follower), Some(matcher), watcher].into_iter().flatten().collect();
        Ok(Self { listener, limits, app, address, public_url, threads, senders, runtime, signals })
    }

    /// The address that is listened on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base of the links that are written.
    #[must_use]
    pub fn public_url(&self) -> &str {
        &self.public_url
    }

    /// Serves until the process is asked to stop (SIGTERM, SIGINT), then drains.
    pub fn run(self) -> Result<()> {
        let Self { listener, limits, app, threads, senders, runtime, signals, .. } = self;
        runtime.block_on(serve(listener, limits, app, signals))?;
        // What is being sent drains in the same time as the requests.
        for sender in senders {
            if let Err(cause) = runtime.block_on(sender) {
                tracing::error!("a queue that is sent ended early: {cause}");
            }
        }
        // Reads of originals that a client left behind may still block a thread for a moment.
        runtime.shutdown_timeout(Duration::from_secs(1));
        for Beside { stop, thread } in threads {
            drop(stop);
            drop(thread.join());
        }
        Ok(())
    }
}

/// Removes expired tokens, codes, sessions and old rows of the account log, now and then.
async fn sweep_accounts(oauth: OAuth) {
    let mut beat = tokio::time::interval(ACCOUNTS_SWEEP);
    loop {
        beat.tick().await;
        // One transaction after the other, so that others get their turn in between.
        loop {
            match oauth.sweep(clock::now()).await {
                Ok(0) => break,
                Ok(rows) => tracing::debug!(rows, "removed expired tokens and sessions"),
                Err(cause) => {
                    tracing::error!("expired tokens cannot be removed: {cause}");
                    break;
                }
            }
        }
    }
}

/// Removes old rows of the item log, now and then: everybody who follows it has read them.
async fn sweep_item_log(db: Db) {
    let mut beat = tokio::time::interval(ITEM_LOG_SWEEP);
    loop {
        beat.tick().await;
        loop {
            let before = clock::now() - ITEM_LOG_KEPT;
            match db.write(move |tx| tx.sweep_item_log(before)).await {
                Ok(0) => break,
                Ok(rows) => tracing::debug!(rows, "removed old rows of the item log"),
                Err(cause) => {
                    tracing::error!("old rows of the item log cannot be removed: {cause}");
                    break;
                }
            }
        }
    }
}

/// Removes deliveries that came to an end long ago, now and then.
async fn sweep_deliveries(deliveries: Deliveries) {
    let mut beat = tokio::time::interval(DELIVERIES_SWEEP);
    loop {
        beat.tick().await;
        loop {
            match deliveries.sweep(clock::now()).await {
                Ok(0) => break,
                Ok(rows) => tracing::debug!(rows, "removed old deliveries"),
                Err(cause) => {
                    tracing::error!("old deliveries cannot be removed: {cause}");
                    break;
                }
            }
        }
    }
}

fn runtime() -> Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().thread_name("serve").build().map_err(Error::internal)
}

/// Serves until a signal comes, then drains. Takes the listener for good: a copy that stayed open
/// would let new clients connect and hang for as long as the drain takes.
async fn serve(
    listener: TcpListener,
    limits: ListenerLimits,
    app: App,
    signals: StopSignals,
) -> Result<()> {
    let unready = app.shared.unready;
    let metrics = app.shared.metrics.clone();
    // Samples of histograms are kept one by one until somebody adds them up: a scrape, or this.
    tokio::spawn(async move {
        let mut beat = tokio::time::interval(METRICS_UPKEEP);
        loop {
            beat.tick().await;
            metrics.run_upkeep();
        }
    });
    let listener = tokio::net::TcpListener::from_std(listener).map_err(Error::internal)?;
    let shared = Arc::clone(&app.shared);
    let stopping = shared.stopping.subscribe();
    tokio::spawn(async move {
        signals.first().await;
        // Load balancers learn it from readiness before connections close.
        shared.draining.store(true, Ordering::SeqCst);
        tokio::time::sleep(unready).await;
        tracing::info!("stopping: no new connections, requests under way finish");
        shared.stopping.send_replace(true);
    });
    let report = web::listener::serve(listener, web::router(app), limits, stopping).await;
    tracing::info!(finished = report.finished, cut = report.cut, "stopped");
    Ok(())
}

/// The base of links when none is set: an address that this machine's browser can open.
fn default_url(address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        return format!("http://localhost:{}", address.port());
    }
    format!("http://{address}")
}

fn listen(address: SocketAddr) -> Result<TcpListener> {
    let failed = |cause| {
        Error::new(Kind::Unavailable, format!("server.listen {address} cannot be used"))
            .because(cause)
    };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

fn start_follower(
    db: &Db,
    (media, auth, search): (&Media, &Auth, &Search),
    wanted: Option<tokio::sync::mpsc::Sender<ItemKey>>,
) -> Result<Beside> {
    let follower = db.follower()?;
    let (stop, stopped) = mpsc::channel();
    let (media, auth, search) = (media.clone(), auth.clone(), search.clone());
    let thread = std::thread::Builder::new()
        .name("follow".to_owned())
        .spawn(move || jobs::follow(follower, (&media, &auth, &search), wanted.as_ref(), &stopped))
        .map_err(Error::internal)?;
    Ok(Beside { stop, thread })
}

/// Watches the folder of the settings, if there is one.
fn start_watcher(config: &Config, archive: &Archive) -> Result<Option<Beside>> {
    let dir = &config.ingest.watch;
    if dir.as_os_str().is_empty() {
        return Ok(None);
    }
    let ingest = archive.ingest(config)?.for_server();
    let watch = Watch::open(dir, ingest, config.ingest_workers()).map_err(|cause| {
        let message = format!("ingest.watch: folder {} cannot be used", dir.display());
        Error::new(Kind::Unavailable, message).because(cause)
    })?;
    let interval = Duration::from_millis(u64::from(config.ingest.watch_interval_ms));
    let (stop, stopped) = mpsc::channel();
    let thread = std::thread::Builder::new()
        .name("watch".to_owned())
        .spawn(move || jobs::watch(watch, interval, &stopped))
        .map_err(Error::internal)?;
    Ok(Some(Beside { stop, thread }))
}

/// What the handlers call.
struct Services {
    media: Media,
    content: Content,
    auth: Auth,
    oauth: OAuth,
    orders: Orders,
    deliveries: Deliveries,
    notifications: Notifications,
    uploads: Uploads,
}

fn start_deliveries(
    config: &Config,
    (media, orders, auth): (&Media, &Orders, &Auth),
    sender: Sender,
) -> Deliveries {
    let services = delivery::Services {
        media: media.clone(),
        orders: orders.clone(),
        auth: auth.clone(),
        sender,
    };
    Deliveries::new(services, delivery::Settings::of(config))
}

fn start_notifications(
    config: &Config,
    (media, content, auth): (&Media, &Content, &Auth),
    sender: &Sender,
) -> Result<(Notifications, Asks)> {
    let overrides = Some(config.mail.templates.as_path());
    let overrides = overrides.filter(|folder| !folder.as_os_str().is_empty());
    let services = notifications::Services {
        db: auth.db().clone(),
        content: content.clone(),
        media: media.clone(),
        auth: auth.clone(),
        mailer: sender.mailer().clone(),
        letters: Letters::compile(overrides)?,
        push: Push::of(config)?,
    };
    Notifications::start(services, notifications::Settings::of(config), clock::now())
}

fn start_matcher(db: &Db, notifications: &Notifications) -> Result<Beside> {
    let pulse = db.pulse()?;
    let notifications = notifications.clone();
    let (stop, stopped) = mpsc::channel();
    let thread = std::thread::Builder::new()
        .name("match".to_owned())
        .spawn(move || jobs::matching(pulse, &notifications, &stopped))
        .map_err(Error::internal)?;
    Ok(Beside { stop, thread })
}

/// Sends deliveries, mails and push messages until the service stops.
fn start_senders(
    runtime: &Runtime,
    app: &App,
    drain: Duration,
) -> Vec<tokio::task::JoinHandle<()>> {
    let stopping = || app.shared.stopping.subscribe();
    let deliveries = app.shared.deliveries.clone();
    let mut senders = vec![runtime.spawn(deliveries.run(stopping(), drain))];
    for lane in Lane::ALL {
        let notifications = app.shared.notifications.clone();
        senders.push(runtime.spawn(notifications.send(lane, stopping(), drain)));
    }
    senders
}

fn start_uploads(config: &Config, ingest: Ingest) -> Result<Uploads> {
    let dir = config.data.dir.join("uploads");
    let spool = Spool::open(&dir).map_err(|cause| {
        let message = format!("folder {} cannot be used", dir.display());
        Error::new(Kind::Unavailable, message).because(cause)
    })?;
    Ok(Uploads::new(ingest, spool, config.ingest_workers()))
}

fn start_oauth(config: &Config, auth: &Auth) -> Result<OAuth> {
    let lifetimes = Lifetimes {
        access_token_s: config.auth.access_token_s,
        refresh_token_s: config.auth.refresh_token_s,
        session_s: config.auth.session_s,
    };
    OAuth::start(auth.clone(), config.auth_url().to_owned(), lifetimes, clock::now())
}

fn shared(
    config: &Config,
    services: Services,
    metrics: metrics_exporter_prometheus::PrometheusHandle,
) -> Result<Shared> {
    let Services { media, content, auth, oauth, orders, deliveries, notifications, uploads } =
        services;
    let pages = Pages::compile(&config.ingest.timezone.0)?;
    let bases = Bases {
        public: &config.server.public_url.0,
        media: config.media_url(),
        auth: config.auth_url(),
    };
    Ok(Shared {
        db: orders.db().clone(),
        media,
        content,
        open_images: config.search.open_images,
        collections: Collections::new(orders.db().clone()),
        users: Users::new(auth.clone()),
        uploads,
        auth,
        oauth,
        session_s: config.auth.session_s,
        secure_cookies: config.auth_url().starts_with("https:"),
        orders,
        deliveries,
        notifications,
        metrics,
        site_url: config.site_url().to_owned(),
        site_name: config.server.site_name.clone(),
        zone: config.ingest.timezone.0.clone(),
        trusted_proxies: config.server.trusted_proxies.clone(),
        open_cache_control: format!(
            "public, max-age={}, stale-while-revalidate={}",
            config.media.max_age_s, config.media.stale_while_revalidate_s
        ),
        work_headers: config.server.work_headers,
        patience: Duration::from_secs(u64::from(config.server.request_timeout_s)),
        unready: Duration::from_secs(u64::from(config.server.unready_s)),
        description: Description::new(bases, &pages, &config.server.site_name)?,
        pages,
        activity: Activity::default(),
        draining: AtomicBool::new(false),
        stopping: tokio::sync::watch::Sender::new(false),
    })
}

fn hash_limits(config: &Config) -> HashLimits {
    let auth = &config.auth;
    HashLimits {
        memory_kib: auth.hash_memory_kib,
        iterations: auth.hash_iterations,
        workers: config.hash_workers(),
        queue: auth.login_queue,
        failures_per_user: auth.failures_per_user,
        failures_per_address: auth.failures_per_address,
        window: Duration::from_secs(u64::from(auth.failure_window_s)),
    }
}

fn listener_limits(config: &Config) -> ListenerLimits {
    let seconds = |count: u32| Duration::from_secs(u64::from(count));
    let server = &config.server;
    ListenerLimits {
        connections_max: usize::try_from(server.connections_max).unwrap_or(usize::MAX),
        header_timeout: seconds(server.header_timeout_s),
        idle_timeout: seconds(server.idle_timeout_s),
        write_rate_min_bytes_s: u64::from(server.write_rate_min_bytes_s),
        drain: seconds(server.drain_s),
        ..ListenerLimits::default()
    }
}

/// SIGTERM and SIGINT, caught from [`StopSignals::catch`] on.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Must be called inside the runtime.
    fn catch() -> Result<Self> {
        let catch = |kind| signal(kind).map_err(Error::internal);
        let (terminate, interrupt) = (SignalKind::terminate(), SignalKind::interrupt());
        Ok(Self { terminate: catch(terminate)?, interrupt: catch(interrupt)? })
    }

    /// Ends with the first of them.
    async fn first(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
