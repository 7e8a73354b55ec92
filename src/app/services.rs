//! Creates the services that handlers and background jobs call, and the state that handlers share, from the settings.

use std::{sync::Arc, time::Duration};

use jiff::SignedDuration;
use strum::IntoEnumIterator;
use tokio::runtime::Runtime;

use super::seconds;
use super::server_storage::ServerStorage;
use crate::access::auth::{Auth, HashLimits, IdSigner};
use crate::access::oauth::{OAuth, TokenLifetimes};
use crate::access::orders::Orders;
use crate::access::users::{self, PASSWORD_LINK_KEY, Users};
use crate::archive::collections::Collections;
use crate::archive::content::Content;
use crate::archive::ingest::{Ingest, PendingUploads, UploadLimits, UploadSpool, Uploads};
use crate::cluster::guard::ClusterGuard;
use crate::cluster::membership::Volume;
use crate::cluster::readiness::{ProbedParts, Readiness};
use crate::distribution::delivery::{self, ChannelSender, Deliveries};
use crate::distribution::notifications::{self, Notifications, StreamCommands};
use crate::distribution::recipients::{RecipientSettings, Recipients};
use crate::http::cache_policy;
use crate::http::listener::ListenerLimits;
use crate::http::openapi::{ApiDescription, ApiDocument, BaseUrls};
use crate::http::{
    AccessState, ApiDocs, AppState, ArchiveState, Compressor, ConceptNames, CrawlerHeaders,
    DistributionState, EdgeState, LiveSettings, PageRenderer, ProcessState, ResponseCache,
    SharedState, SiteState, SurrogateHeaders,
};
use crate::media::original::OriginalStore;
use crate::media::{Media, MediaSettings};
use crate::runtime::clock::{self, Stopwatch};
use crate::runtime::compute::ComputePool;
use crate::runtime::config::Config;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::fair_queue::QueuePlaces;
use crate::runtime::hot_swap::HotSwap;
use crate::runtime::slots::SlotLimits;
use crate::runtime::traces::{self, RequestTracer, TraceExporter};
use crate::storage::audit::AuditLog;
use crate::storage::database::Db;
use crate::storage::search::{DocumentAnalysis, IndexSettings, IndexStatus, SearchEngine};
use crate::transport::MailTransport;
use crate::transport::mail_templates::MailTemplates;
use crate::transport::push::Push;
use metadata::RightsMetadata;
use model::account::MessageTransport;

/// Time that a start waits for the search index, so that the first searches find everything; a longer build continues
/// while the service runs.
const SEARCH_START_WAIT: Duration = Duration::from_secs(2);
/// Poll interval during that wait.
const SEARCH_START_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The services that handlers and background jobs call.
pub(super) struct DomainServices {
    pub(super) access: AccessState,
    pub(super) archive: ArchiveState,
    pub(super) media: Media,
    pub(super) distribution: DistributionState,
}

impl DomainServices {
    /// Starts the services of an archive. Also returns the queue of commands from readers of notification streams,
    /// which a background task executes.
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
        // A read-only node cannot write rows of the audit log, so its events become log lines alone.
        let audit = if guard.node().role().is_read_only() {
            AuditLog::lines_only()
        } else {
            AuditLog::start()
        };
        let access = AccessState { auth, oauth, users, orders, audit };
        let archive = ArchiveState { content, collections: Collections::new(db.clone()), uploads };
        let deliveries = start_deliveries(config, &access, &media, &sender, &recipients, guard);
        let content = &archive.content;
        let (notifications, stream_commands) =
            start_notifications(config, &access, &media, content, &sender, &recipients, guard)?;
        let distribution = DistributionState { deliveries, notifications, recipients };
        Ok((Self { access, archive, media, distribution }, stream_commands))
    }
}

/// Creates the administration of users, which mails links for new passwords if there is a mail server.
fn start_users(config: &Config, auth: &Auth, sender: &ChannelSender) -> Result<Users> {
    let signer = IdSigner::open(auth.db(), PASSWORD_LINK_KEY)?;
    // Mails in an outbox folder reach no user, so pages must not promise them.
    let sends_mails = match sender.mailer().settings().transport {
        MailTransport::Smtp(_) => true,
        MailTransport::Outbox { .. } => false,
    };
    let settings = users::UsersSettings { site_url: config.site_url().to_owned(), sends_mails };
    Ok(Users::new(auth.clone(), signer, settings))
}

fn start_deliveries(
    config: &Config,
    access: &AccessState,
    media: &Media,
    sender: &ChannelSender,
    recipients: &Recipients,
    guard: &ClusterGuard,
) -> Deliveries {
    let services = delivery::DeliveryServices {
        media: media.clone(),
        orders: access.orders.clone(),
        auth: access.auth.clone(),
        sender: sender.clone(),
        recipients: recipients.clone(),
        guard: guard.clone(),
    };
    Deliveries::new(services, delivery::DeliverySettings::from_config(config))
}

fn start_notifications(
    config: &Config,
    access: &AccessState,
    media: &Media,
    content: &Content,
    sender: &ChannelSender,
    recipients: &Recipients,
    guard: &ClusterGuard,
) -> Result<(Notifications, StreamCommands)> {
    let services = notifications::NotificationServices {
        db: access.auth.db().clone(),
        content: content.clone(),
        media: media.clone(),
        auth: access.auth.clone(),
        users: access.users.clone(),
        mailer: sender.mailer().clone(),
        mail_templates: MailTemplates::compile(config.mail_templates_dir())?,
        recipients: recipients.clone(),
        push: Push::from_config(config)?,
        guard: guard.clone(),
    };
    Notifications::start(
        services,
        notifications::NotificationSettings::from_config(config),
        clock::now(),
    )
}

/// Starts sending deliveries, mails and push messages until the service stops. Messages in flight then have the time
/// `drain` to finish.
pub(super) fn start_senders(
    runtime: &Runtime,
    app: &AppState,
    drain: Duration,
) -> Vec<tokio::task::JoinHandle<()>> {
    // A node without background work only queues; a node with background work sends.
    if !app.shared.process.node.role().runs_background_work() {
        return Vec::new();
    }
    let stopping = &app.shared.process.stopping;
    let deliveries = app.shared.distribution.deliveries.clone();
    let mut senders = vec![runtime.spawn(deliveries.run(stopping.subscribe(), drain))];
    for transport in MessageTransport::iter() {
        let notifications = app.shared.distribution.notifications.clone();
        let sending = notifications.send(transport, stopping.subscribe(), drain);
        senders.push(runtime.spawn(sending));
    }
    senders
}

/// Starts the media section, with the number of workers in the settings.
fn start_media(config: &Config, orders: &Orders, originals: OriginalStore) -> Result<Media> {
    let limits = &config.media;
    let places = QueuePlaces::new(limits.queue, limits.client_queue_share);
    let compute = ComputePool::start(config.render_workers(), places, limits.memory_bytes)?;
    let settings = MediaSettings::from_config(config)?;
    Media::start(settings, orders.clone(), originals, compute, &config.cache_dir())
}

/// Creates the readiness probe of this node.
pub(super) fn readiness(config: &Config, storage: &ServerStorage, content: &Content) -> Readiness {
    Readiness::new(ProbedParts {
        db: storage.db.clone(),
        store: storage.store.clone(),
        search: content.engine().clone(),
        node: storage.guard.node().clone(),
        data: Volume::data(config),
        originals: Volume::store(config),
        file_bytes_max: config.media.file_bytes_max,
    })
}

/// Starts search, if this process serves requests and the settings enable it. Waits until the index is complete, but
/// only for a short time: a large index is built in the background.
fn start_search(config: &Config, db: &Db, rights: Arc<RightsMetadata>) -> Result<SearchEngine> {
    // A node that only runs background work answers no searches, so it needs no index.
    if !config.search.enabled || !config.server.role.serves_requests() {
        return SearchEngine::disabled(db.clone());
    }
    let search = SearchEngine::start(
        db.clone(),
        IndexSettings {
            dir: config.search_dir(),
            memory_bytes: config.search.memory_bytes,
            analysis: DocumentAnalysis { zone: config.ingest.timezone.0.clone(), rights },
        },
    )?;
    let stopwatch = Stopwatch::start();
    while search.status() != IndexStatus::Ready && stopwatch.elapsed() < SEARCH_START_WAIT {
        clock::pause(SEARCH_START_POLL_INTERVAL);
    }
    Ok(search)
}

/// Creates the spool, the folder in which uploaded files wait for their ingest, and the service that ingests them.
fn start_uploads(config: &Config, storage: &ServerStorage, ingest: Ingest) -> Result<Uploads> {
    let dir = config.data.dir.join("uploads");
    let spool = UploadSpool::open(&dir, ingest.file_bytes_max()).map_err(|cause| {
        let message = format!("folder {} cannot be used", dir.display());
        Error::new(ErrorKind::Unavailable, message).with_source(cause)
    })?;
    let limits = UploadLimits {
        file_bytes_max: ingest.file_bytes_max(),
        user_bytes: config.ingest.upload_user_bytes,
        total_bytes: config.ingest.upload_total_bytes,
        kept: SignedDuration::from_hours(i64::from(config.ingest.upload_hours)),
    };
    let db = storage.db.clone();
    let parts = storage.store.parts();
    let pending = PendingUploads::new(db, parts, spool.clone(), limits);
    Ok(Uploads::new(ingest, spool, pending, config.ingest_workers()))
}

fn start_oauth(config: &Config, auth: &Auth) -> Result<OAuth> {
    OAuth::start(auth.clone(), config.auth_url().to_owned(), token_lifetimes(config), clock::now())
}

pub(super) fn token_lifetimes(config: &Config) -> TokenLifetimes {
    TokenLifetimes {
        access_token_s: config.auth.access_token_s,
        refresh_token_s: config.auth.refresh_token_s,
        refresh_absolute_days: config.auth.refresh_absolute_days,
        session_s: config.auth.session_s,
    }
}

/// Assembles the state that handlers share.
pub(super) fn shared_state(
    config: &Config,
    domain: DomainServices,
    process: ProcessState,
    traces: Option<RequestTracer>,
) -> Result<SharedState> {
    let DomainServices { access, archive, media, distribution } = domain;
    let pages =
        PageRenderer::compile(&config.ingest.timezone.0, media.settings().prerenders_avif)?;
    let bases = BaseUrls {
        public: &config.server.public_url.0,
        media: config.media_url(),
        auth: config.auth_url(),
    };
    let document = ApiDocument::assemble(bases);
    let api_docs = ApiDocs::render(&document, &pages, &config.server.site_name)?;
    let description = ApiDescription::new(&document)?;
    let crawlers = CrawlerHeaders::from_policy(&media.settings().crawlers)?;
    Ok(SharedState {
        access,
        archive,
        media,
        distribution,
        site: SiteState {
            pages,
            api_docs,
            concepts: ConceptNames::default(),
            url: config.site_url().to_owned(),
            name: config.server.site_name.clone(),
            zone: config.ingest.timezone.0.clone(),
            // Over plain HTTP, browsers do not return a `Secure` cookie (RFC 6265, section 5.4),
            // and no login would last.
            secure_cookies: config.auth_url().starts_with("https:"),
        },
        edge: EdgeState {
            live_settings: HotSwap::new(live_settings(config)),
            surrogate: SurrogateHeaders::from_config(config)?,
            crawlers,
            compressor: Compressor::default(),
            responses: ResponseCache::default(),
            traces,
            strict_transport: config.is_https(),
        },
        process,
        description,
    })
}

/// Returns the settings of handlers that a reload changes.
pub(super) fn live_settings(config: &Config) -> LiveSettings {
    LiveSettings {
        open_images: config.search.open_images,
        session_s: config.auth.session_s,
        trusted_proxies: config.server.trusted_proxies.clone(),
        open_cache_control: cache_policy::open_renditions(config),
        work_headers: config.server.work_headers,
        compression: config.server.compression,
        render_timeout: seconds(config.server.request_timeout_s),
        drain_delay: seconds(config.server.unready_s),
    }
}

/// Starts the export of traces; `None` if the settings have no URL for it.
pub(super) fn start_traces(
    config: &Config,
) -> Result<(Option<RequestTracer>, Option<TraceExporter>)> {
    let telemetry = &config.telemetry;
    if telemetry.otlp_url.0.is_empty() {
        return Ok((None, None));
    }
    let setup = traces::TraceSetup {
        url: &telemetry.otlp_url.0,
        headers: &telemetry.otlp_headers.0,
        ratio: telemetry.trace_ratio,
    };
    RequestTracer::start(setup).map(|(traces, export)| (Some(traces), Some(export)))
}

/// Returns the limits on the hashing of passwords and on failed logins.
pub(super) fn hash_limits(config: &Config) -> HashLimits {
    let auth = &config.auth;
    HashLimits {
        memory_kib: auth.hash_memory_kib,
        iterations: auth.hash_iterations,
        workers: config.hash_workers(),
        queue: auth.login_queue,
        queue_per_address: auth.login_queue_per_address,
        failures_per_user: auth.failures_per_user,
        failures_per_user_total: auth.failures_per_user_total,
        failures_per_address: auth.failures_per_address,
        window: Duration::from_secs(u64::from(auth.failure_window_s)),
    }
}

/// Returns the limits on waiting requests of the deprecated long poll `/content/v1/{mediaType}/stream`.
fn poll_limits(config: &Config) -> SlotLimits {
    let search = &config.search;
    SlotLimits {
        all: search.polls,
        client: search.client_polls,
        known_share: search.known_polls_share,
    }
}

pub(super) fn listener_limits(config: &Config) -> ListenerLimits {
    let server = &config.server;
    ListenerLimits {
        connections_max: usize::try_from(server.connections_max).unwrap_or(usize::MAX),
        connections_per_address: usize::try_from(server.connections_per_address)
            .unwrap_or(usize::MAX),
        trusted_proxies: server.trusted_proxies.clone(),
        header_timeout: seconds(server.header_timeout_s),
        idle_timeout: seconds(server.idle_timeout_s),
        write_rate_min_bytes_s: u64::from(server.write_rate_min_bytes_s),
        write_grace: seconds(server.rate_window_s),
        read_rate_min_bytes_s: u64::from(server.read_rate_min_bytes_s),
        read_grace: seconds(server.rate_window_s),
        drain: seconds(server.drain_s),
        ..ListenerLimits::default()
    }
}
