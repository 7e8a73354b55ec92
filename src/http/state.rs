//! What handlers share: a state for each area of the server, and the settings that change while it runs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::tz::TimeZone;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::watch;

use crate::access::auth::Auth;
use crate::access::oauth::OAuth;
use crate::access::orders::Orders;
use crate::access::users::Users;
use crate::archive::collections::Collections;
use crate::archive::content::Content;
use crate::archive::ingest::Uploads;
use crate::cluster::membership::ClusterNode;
use crate::cluster::readiness::Readiness;
use crate::distribution::delivery::Deliveries;
use crate::distribution::notifications::Notifications;
use crate::distribution::recipients::Recipients;
use crate::http::openapi;
use crate::http::protocol::compression::Compressor;
use crate::http::protocol::surrogate::SurrogateHeaders;
use crate::http::site::pages::PageRenderer;
use crate::http::site::{ConceptNames, SessionActivity};
use crate::media::Media;
use crate::runtime::config::NetworkList;
use crate::runtime::hot_swap::HotSwap;
use crate::runtime::traces::RequestTracer;
use crate::storage::audit::AuditLog;
use crate::storage::database::Db;

/// What the handlers share; cheap to clone.
#[derive(Clone)]
pub struct AppState {
    /// The state.
    pub shared: Arc<SharedState>,
}

/// The state behind [`AppState`].
pub struct SharedState {
    /// Who calls and what they may have.
    pub access: AccessState,
    /// Search, collections and uploads.
    pub archive: ArchiveState,
    /// Renditions.
    pub media: Media,
    /// Deliveries and notifications.
    pub distribution: DistributionState,
    /// The customer web site.
    pub site: SiteState,
    /// Requests and answers of every route.
    pub edge: EdgeState,
    /// The process and the node that it is.
    pub process: ProcessState,
    /// The OpenAPI document.
    pub description: openapi::ApiDescription,
}

/// Who calls and what they may have.
pub struct AccessState {
    /// Credentials.
    pub auth: Auth,
    /// The OAuth2 provider.
    pub oauth: OAuth,
    /// Users and their administration.
    pub users: Users,
    /// Purchases.
    pub orders: Orders,
    /// Events of the audit log that belong to no transaction.
    pub audit: AuditLog,
}

/// Search, collections and uploads.
pub struct ArchiveState {
    /// Search.
    pub content: Content,
    /// Collections.
    pub collections: Collections,
    /// Items that come in over the network.
    pub uploads: Uploads,
}

/// Deliveries and notifications.
pub struct DistributionState {
    /// Deliveries through channels.
    pub deliveries: Deliveries,
    /// Notifications.
    pub notifications: Notifications,
    /// Recipients of mails.
    pub recipients: Recipients,
}

/// The customer web site.
pub struct SiteState {
    /// The page templates.
    pub pages: PageRenderer,
    /// When visitors were last seen.
    pub activity: SessionActivity,
    /// What the codes of facets are called.
    pub concepts: ConceptNames,
    /// Base of links to pages.
    pub url: String,
    /// Name on the pages.
    pub name: String,
    /// Time zone of dates on the pages.
    pub zone: TimeZone,
    /// Whether cookies are for TLS only: the service is reached by `https`.
    pub secure_cookies: bool,
}

/// Requests and answers of every route.
pub struct EdgeState {
    /// The settings that change while the service runs.
    pub live_settings: HotSwap<LiveSettings>,
    /// How answers name to a CDN what they show.
    pub surrogate: SurrogateHeaders,
    /// Content coding of answers.
    pub compressor: Compressor,
    /// Where traces of requests go; nowhere unless the operator wants them.
    pub traces: Option<RequestTracer>,
    /// Whether browsers are told to use `https` alone from now on.
    pub strict_transport: bool,
}

/// The process and the node that it is.
pub struct ProcessState {
    /// The database.
    pub db: Db,
    /// This process among those that serve the archive.
    pub node: ClusterNode,
    /// Whether this node can do what others can.
    pub readiness: Readiness,
    /// What `/metrics` prints.
    pub metrics: PrometheusHandle,
    /// Whether `/metrics` is served by a listener of its own and not beside everything else.
    pub has_admin_listener: bool,
    /// Set when the service stops: readiness turns false before connections close.
    pub draining: AtomicBool,
    /// Set when connections are to end: a request that waits answers with what there is.
    pub stopping: watch::Sender<bool>,
}

impl ProcessState {
    /// Whether the service is stopping.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Ends when connections are to end.
    pub async fn stopped(&self) {
        // The sender is ours, so it cannot be gone.
        drop(self.stopping.subscribe().wait_for(|stopping| *stopping).await);
    }
}

/// Settings that change while the service runs.
#[derive(Debug)]
pub struct LiveSettings {
    /// Whether photographs are found without credentials.
    pub open_images: bool,
    /// Seconds that a login in the browser lasts.
    pub session_s: u32,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: NetworkList,
    /// `Cache-Control` of open renditions.
    pub open_cache_control: String,
    /// Whether renditions say how they were made.
    pub work_headers: bool,
    /// Whether texts are compressed for clients that accept it.
    pub compression: bool,
    /// How long a request waits for its rendition.
    pub render_timeout: Duration,
    /// Time between readiness turning false and the end of new connections.
    pub drain_delay: Duration,
}
