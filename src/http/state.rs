//! The state that handlers share, by area of the server, and the settings that a reload changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api::operation::NodeFigures;
use jiff::{Timestamp, tz::TimeZone};
use metrics_exporter_prometheus::PrometheusHandle;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::access::auth::Auth;
use crate::access::oauth::OAuth;
use crate::access::orders::Orders;
use crate::access::users::Users;
use crate::archive::collections::Collections;
use crate::archive::content::Content;
use crate::archive::ingest::Uploads;
use crate::cluster::membership::{ClusterNode, FigureSources};
use crate::cluster::readiness::Readiness;
use crate::distribution::delivery::Deliveries;
use crate::distribution::notifications::Notifications;
use crate::distribution::recipients::Recipients;
use crate::http::media::crawlers::CrawlerHeaders;
use crate::http::media::response_cache::ResponseCache;
use crate::http::media::surrogate::SurrogateHeaders;
use crate::http::openapi::description::ApiDescription;
use crate::http::protocol::compression::Compressor;
use crate::http::site::api_docs::ApiDocs;
use crate::http::site::concept_names::ConceptNames;
use crate::http::site::page_renderer::PageRenderer;
use crate::media::Media;
use crate::runtime::config::NetworkList;
use crate::runtime::hot_swap::HotSwap;
use crate::runtime::telemetry::MetricValues;
use crate::runtime::traces::RequestTracer;
use crate::storage::audit::AuditLog;
use crate::storage::database::Db;

/// Time for which a count of the items in the database is used again, because counting scans the table.
const ITEM_COUNT_LIFETIME: Duration = Duration::from_secs(60);

/// The state that handlers share; cheap to clone.
#[derive(Clone)]
pub struct AppState {
    pub shared: Arc<SharedState>,
}

/// The state that [`AppState`] points to.
pub struct SharedState {
    /// State of authentication, users and orders.
    pub access: AccessState,
    /// State of search, collections and uploads.
    pub archive: ArchiveState,
    pub media: Media,
    /// State of deliveries and notifications.
    pub distribution: DistributionState,
    pub site: SiteState,
    /// State that applies to the requests and responses of every route.
    pub edge: EdgeState,
    /// The process and its node in the cluster.
    pub process: ProcessState,
    pub description: ApiDescription,
}

/// State of authentication, users and orders.
pub struct AccessState {
    pub auth: Auth,
    pub oauth: OAuth,
    /// Users, devices, keys and their administration.
    pub users: Users,
    pub orders: Orders,
    /// Writes audit events that belong to no transaction.
    pub audit: AuditLog,
}

/// State of search, collections and uploads.
pub struct ArchiveState {
    pub content: Content,
    pub collections: Collections,
    /// Uploads of items over the network.
    pub uploads: Uploads,
}

/// State of deliveries and notifications.
pub struct DistributionState {
    pub deliveries: Deliveries,
    pub notifications: Notifications,
    /// Recipients of mails and their consent.
    pub recipients: Recipients,
}

/// State of the customer web site.
pub struct SiteState {
    pub pages: PageRenderer,
    /// The documentation page of the APIs.
    pub api_docs: ApiDocs,
    /// Names of the codes that facets list.
    pub concepts: ConceptNames,
    /// Base URL of links to pages, without a trailing slash.
    pub url: String,
    /// Name of the site as pages show it.
    pub name: String,
    /// Time zone of dates and times on pages.
    pub zone: TimeZone,
    /// True if cookies have the `Secure` attribute, because clients reach the service by `https`.
    pub secure_cookies: bool,
}

/// State that applies to the requests and responses of every route.
pub struct EdgeState {
    /// The settings that a reload changes.
    pub live_settings: HotSwap<LiveSettings>,
    /// Surrogate keys: headers that tell a CDN which items a response shows, so that it can purge them.
    pub surrogate: SurrogateHeaders,
    /// Headers of media that tell crawlers the permitted uses.
    pub crawlers: CrawlerHeaders,
    pub compressor: Compressor,
    /// Responses to open renditions, for requests that repeat.
    pub responses: ResponseCache,
    /// Exports traces of requests; `None` unless the operator configures it.
    pub traces: Option<RequestTracer>,
    /// True if responses have `Strict-Transport-Security`.
    pub strict_transport: bool,
}

/// The process and its node in the cluster.
pub struct ProcessState {
    pub db: Db,
    /// This process as a node of the cluster.
    pub node: ClusterNode,
    /// The readiness of this node, judged by the faults of all nodes.
    pub readiness: Readiness,
    /// Renders the metrics for `/metrics`.
    pub metrics: PrometheusHandle,
    /// The sources of the figures about this node that operators see, besides the metrics.
    pub figures: FigureSources,
    /// The last count of items, for operators.
    pub item_count: Mutex<Option<ItemCount>>,
    /// True if `/metrics` has a separate listener instead of the public one.
    pub has_admin_listener: bool,
    /// Set at shutdown: readiness fails before connections close.
    pub draining: AtomicBool,
    /// Set when connections must close: waiting requests then respond with the results so far.
    pub stopping: watch::Sender<bool>,
}

/// The number of items in the database, withdrawn ones included, at a time.
#[derive(Clone, Copy, Debug)]
pub struct ItemCount {
    pub items: u64,
    pub at: Timestamp,
}

impl ItemCount {
    /// Returns whether the count is recent enough at `now`.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        let age = now.duration_since(self.at);
        Duration::try_from(age).is_ok_and(|age| age < ITEM_COUNT_LIFETIME)
    }
}

impl ProcessState {
    /// Returns whether the service is shutting down.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Gathers the figures of this process.
    pub async fn own_figures(&self) -> NodeFigures {
        let sources = self.figures.clone();
        let metrics = self.metrics.clone();
        // Runs on a blocking thread: the file system may belong to a server that does not respond.
        let gathered = tokio::task::spawn_blocking(move || {
            sources.gather(&MetricValues::from_exporter(&metrics))
        });
        gathered.await.unwrap_or_default()
    }

    /// Completes when connections must close.
    pub async fn stopped(&self) {
        // `self` owns the sender, so it cannot be dropped while this waits.
        drop(self.stopping.subscribe().wait_for(|stopping| *stopping).await);
    }
}

/// Settings that a reload changes while the service runs.
#[derive(Debug)]
pub struct LiveSettings {
    /// True if searches without credentials find photographs.
    pub open_images: bool,
    /// Lifetime of a browser session, in seconds.
    pub session_s: u32,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: NetworkList,
    /// `Cache-Control` of open renditions, which need no credentials.
    pub open_cache_control: String,
    /// True if responses report the render of their rendition (`Server-Timing`, `Wirephoto-Path`).
    pub work_headers: bool,
    /// True if text responses are compressed for clients that accept it.
    pub compression: bool,
    /// Longest time that a request waits for its rendition.
    pub render_timeout: Duration,
    /// Time between the failing of readiness and the closing of the listener.
    pub drain_delay: Duration,
}
