//! The services behind the handlers, as the settings want them.

use std::{path::PathBuf, time::Duration};

use tokio::runtime::Runtime;

use super::assembly::{Access, Domain, Storage, WayOut};
use super::purging::open_policy;
use crate::access::auth::{Auth, HashLimits, IdSigner};
use crate::access::oauth::{Lifetimes, OAuth};
use crate::access::orders::Orders;
use crate::access::users::{self, PASSWORD_LINK_KEY, Users};
use crate::archive::collections::Collections;
use crate::archive::content::Content;
use crate::archive::ingest::{Ingest, Spool, Uploads};
use crate::cluster::guard::ClusterGuard;
use crate::cluster::readiness::{Parts, Readiness};
use crate::distribution::delivery::{self, Deliveries, Sender};
use crate::distribution::notifications::{self, Asks, Notifications};
use crate::http::listener::ListenerLimits;
use crate::http::openapi::Bases;
use crate::http::openapi::Description;
use crate::http::{
    AccessState, Activity, App, ArchiveState, Compressor, ConceptNames, DistributionState,
    EdgeState, Pages, ProcessState, Shared, SiteState, Surrogate, Tuned,
};
use crate::media::original::Originals;
use crate::media::{Media, Settings};
use crate::runtime::clock::{self, Stopwatch};
use crate::runtime::compute::Compute;
use crate::runtime::config::Config;
use crate::runtime::error::{Error, Kind, Result};
use crate::runtime::limits::{SEARCH_START_LOOK, SEARCH_START_WAIT};
use crate::runtime::live::Live;
use crate::runtime::slots::SlotLimits;
use crate::runtime::traces::{self, Export, Traces};
use crate::storage::audit::Audit;
use crate::storage::database::Db;
use crate::storage::search::{IndexSettings, Search, Standing};
use crate::transport::MailTransport;
use crate::transport::mail_templates::Letters;
use crate::transport::push::Push;
use model::account::Lane;

/// Starts the users section, which mails links where there is a mail server.
pub(super) fn start_users(config: &Config, auth: &Auth, sender: &Sender) -> Result<Users> {
    let signer = IdSigner::open(auth.db(), PASSWORD_LINK_KEY)?;
    let sends_mails = match sender.mailer().settings().transport {
        MailTransport::Smtp(_) => true,
        MailTransport::Outbox { .. } => false,
    };
    let settings = users::Settings { site_url: config.site_url().to_owned(), sends_mails };
    Ok(Users::new(auth.clone(), signer, settings))
}

pub(super) fn start_deliveries(
    config: &Config,
    access: Access<'_>,
    media: &Media,
    way_out: WayOut<'_>,
    guard: &ClusterGuard,
) -> Deliveries {
    let services = delivery::Services {
        media: media.clone(),
        orders: access.orders.clone(),
        auth: access.auth.clone(),
        sender: way_out.sender.clone(),
        recipients: way_out.recipients.clone(),
        guard: guard.clone(),
    };
    Deliveries::new(services, delivery::Settings::of(config))
}

pub(super) fn start_notifications(
    config: &Config,
    access: Access<'_>,
    media: &Media,
    content: &Content,
    way_out: WayOut<'_>,
    guard: &ClusterGuard,
) -> Result<(Notifications, Asks)> {
    let overrides = Some(config.mail.templates.as_path());
    let overrides = overrides.filter(|folder| !folder.as_os_str().is_empty());
    let services = notifications::Services {
        db: access.auth.db().clone(),
        content: content.clone(),
        media: media.clone(),
        auth: access.auth.clone(),
        users: access.users.clone(),
        mailer: way_out.sender.mailer().clone(),
        letters: Letters::compile(overrides)?,
        recipients: way_out.recipients.clone(),
        push: Push::of(config)?,
        guard: guard.clone(),
    };
    Notifications::start(services, notifications::Settings::of(config), clock::now())
}

/// Sends deliveries, mails and push messages until the service stops.
pub(super) fn start_senders(
    runtime: &Runtime,
    app: &App,
    drain: Duration,
) -> Vec<tokio::task::JoinHandle<()>> {
    if !app.shared.process.node.role().works() {
        return Vec::new();
    }
    let stopping = || app.shared.process.stopping.subscribe();
    let deliveries = app.shared.distribution.deliveries.clone();
    let mut senders = vec![runtime.spawn(deliveries.run(stopping(), drain))];
    for lane in Lane::ALL {
        let notifications = app.shared.distribution.notifications.clone();
        senders.push(runtime.spawn(notifications.send(lane, stopping(), drain)));
    }
    senders
}

/// Starts the media section, with as many workers as the settings want.
pub(super) fn start_media(
    config: &Config,
    orders: &Orders,
    originals: Originals,
) -> Result<Media> {
    let given = &config.media;
    let compute = Compute::start(config.render_workers(), given.queue, given.memory_bytes)?;
    let cache_dir = config.data.dir.join("derived").join("cache");
    Media::start(Settings::of(config)?, orders.clone(), originals, compute, &cache_dir)
}

/// What tells whether this node can do what others can.
pub(super) fn readiness(config: &Config, storage: &Storage, content: &Content) -> Readiness {
    Readiness::new(Parts {
        db: storage.db.clone(),
        store: storage.store.clone(),
        search: content.engine().clone(),
        node: storage.guard.node().clone(),
        dir: config.data.dir.clone(),
        file_bytes_max: config.media.file_bytes_max,
    })
}

/// Starts search, where this process answers requests and the settings want it. An index that is whole is
/// waited for, and a small one that has to be built; a large one is built while everything else works.
pub(super) fn start_search(config: &Config, db: &Db) -> Result<Search> {
    if !config.search.enabled || !config.server.role.answers() {
        return Search::disabled(db.clone());
    }
    let search = Search::start(
        db.clone(),
        IndexSettings {
            dir: search_dir(config),
            memory_bytes: config.search.memory_bytes,
            zone: config.ingest.timezone.0.clone(),
        },
    )?;
    let waited = Stopwatch::start();
    while search.standing() != Standing::Ready && waited.elapsed() < SEARCH_START_WAIT {
        std::thread::park_timeout(SEARCH_START_LOOK);
    }
    Ok(search)
}

/// The folder of the search indexes of a data directory.
pub(super) fn search_dir(config: &Config) -> PathBuf {
    config.data.dir.join("search")
}

pub(super) fn start_uploads(config: &Config, ingest: Ingest) -> Result<Uploads> {
    let dir = config.data.dir.join("uploads");
    let spool = Spool::open(&dir, ingest.file_bytes_max()).map_err(|cause| {
        let message = format!("folder {} cannot be used", dir.display());
        Error::new(Kind::Unavailable, message).because(cause)
    })?;
    Ok(Uploads::new(ingest, spool, config.ingest_workers()))
}

pub(super) fn start_oauth(config: &Config, auth: &Auth) -> Result<OAuth> {
    OAuth::start(auth.clone(), config.auth_url().to_owned(), lifetimes(config), clock::now())
}

pub(super) fn lifetimes(config: &Config) -> Lifetimes {
    Lifetimes {
        access_token_s: config.auth.access_token_s,
        refresh_token_s: config.auth.refresh_token_s,
        refresh_absolute_days: config.auth.refresh_absolute_days,
        session_s: config.auth.session_s,
    }
}

pub(super) fn shared(
    config: &Config,
    domain: Domain,
    process: ProcessState,
    traces: Option<Traces>,
) -> Result<Shared> {
    let Domain { auth, oauth, users, orders, media, content, uploads, .. } = domain;
    let Domain { deliveries, notifications, recipients, .. } = domain;
    let pages = Pages::compile(&config.ingest.timezone.0)?;
    let bases = Bases {
        public: &config.server.public_url.0,
        media: config.media_url(),
        auth: config.auth_url(),
    };
    let db = process.db.clone();
    let audit =
        if process.node.role().only_reads() { Audit::lines_only() } else { Audit::start() };
    let description = Description::new(bases, &pages, &config.server.site_name)?;
    Ok(Shared {
        access: AccessState { auth, oauth, users, orders, audit },
        archive: ArchiveState { content, collections: Collections::new(db.clone()), uploads },
        media,
        distribution: DistributionState { deliveries, notifications, recipients },
        site: SiteState {
            pages,
            activity: Activity::new(db),
            concepts: ConceptNames::default(),
            url: config.site_url().to_owned(),
            name: config.server.site_name.clone(),
            zone: config.ingest.timezone.0.clone(),
            secure_cookies: config.auth_url().starts_with("https:"),
        },
        edge: EdgeState {
            tuned: Live::new(tuned(config)),
            surrogate: Surrogate::of(config)?,
            compressor: Compressor::default(),
            traces,
            strict_transport: config.is_https(),
        },
        process,
        description,
    })
}

/// What of the settings the handlers work by that changes while the service runs.
pub(super) fn tuned(config: &Config) -> Tuned {
    let seconds = |count: u32| Duration::from_secs(u64::from(count));
    Tuned {
        open_images: config.search.open_images,
        session_s: config.auth.session_s,
        trusted_proxies: config.server.trusted_proxies.clone(),
        open_cache_control: open_policy(config),
        work_headers: config.server.work_headers,
        compression: config.server.compression,
        patience: seconds(config.server.request_timeout_s),
        unready: seconds(config.server.unready_s),
    }
}

pub(super) fn start_traces(config: &Config) -> Result<(Option<Traces>, Option<Export>)> {
    let telemetry = &config.telemetry;
    if telemetry.otlp_url.0.is_empty() {
        return Ok((None, None));
    }
    let setup = traces::Setup {
        url: &telemetry.otlp_url.0,
        headers: &telemetry.otlp_headers.0,
        ratio: telemetry.trace_ratio,
    };
    Traces::start(setup).map(|(traces, export)| (Some(traces), Some(export)))
}

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

/// How many requests of the deprecated stream may wait.
pub(super) fn poll_limits(config: &Config) -> SlotLimits {
    let search = &config.search;
    SlotLimits {
        all: search.polls,
        client: search.client_polls,
        known_share: search.known_polls_share,
    }
}

pub(super) fn listener_limits(config: &Config) -> ListenerLimits {
    let seconds = |count: u32| Duration::from_secs(u64::from(count));
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
