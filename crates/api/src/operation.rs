//! The operation of the service: its state, failed work, and statistics of downloads.

use jiff::Timestamp;
use jiff::civil::Date;
use model::account::{DeliveryState, MessageState, MessageTransport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantNames};
use uuid::Uuid;

use crate::access::{Access, Caller};
use crate::answer::{Accepted, File, FileKind, Json, Removal};
use crate::body::{JsonBody, NoBody};
use crate::deliveries::Delivery;
use crate::endpoint::Section;
use crate::{endpoint, property};

/// Most entries that one request lists.
const LISTED_MAX: usize = 10_000;
/// Number of entries that a request lists without `size`.
const LISTED_DEFAULT: usize = 20;

const SECTION: Section = Section {
    name: "Operation",
    description: "How the service runs, failed work, and statistics of downloads. For callers with the role \
                  `ROLE_OPERATOR`; others are refused with `operator_required`. A token of a client whose scopes are \
                  enforced also needs the scope `admin`.",
};

/// A caller with the role `ROLE_OPERATOR`.
#[derive(Clone, Copy, Debug)]
pub struct OperatorCaller;

impl Caller for OperatorCaller {
    const ACCESS: Access = Access::ROLES;
}

/// The part of a list to return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ListRange {
    /// The maximum number of entries.
    #[schemars(range(max = LISTED_MAX))]
    pub size: usize,
    /// The number of entries to skip.
    #[schemars(range(max = u32::MAX))]
    pub start: usize,
}

impl Default for ListRange {
    fn default() -> Self {
        Self { size: LISTED_DEFAULT, start: 0 }
    }
}

endpoint! {
    /// State of the service.
    ///
    /// Findings, queues and nodes. What it says about the node that answers is of this moment; what it says about others is
    /// what they published last, within a minute or so. Nodes that only read publish nothing.
    LoadStatus: GET "/operator/v1/status", "getStatus", OperatorCaller, NoBody => Json<ServiceStatus> {}
}

/// The state.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceStatus {
    pub time: Timestamp,
    /// The version of the node that answers.
    pub version: String,
    /// The id of the archive.
    pub archive: String,
    /// The number of the database's schema.
    pub schema: i64,
    /// Name and version of the database engine.
    pub database: String,
    /// The number of items in the database, withdrawn ones included.
    pub items: u64,
    /// The time at which the node counted the items, at most a minute ago.
    pub items_counted: Timestamp,
    /// The most severe first.
    pub findings: Vec<Finding>,
    pub queues: Queues,
    pub recent: RecentDiagnostics,
    pub nodes: Vec<ServiceNode>,
}

/// A fact about the state of the service, with its severity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    #[serde(with = "property::Word")]
    #[schemars(schema_with = "property::words::<FindingLevel>")]
    pub level: FindingLevel,
    /// The area, such as `disk`.
    pub about: String,
    pub text: String,
}

impl Finding {
    /// Creates a finding about the area `about`.
    pub fn new(level: FindingLevel, about: &str, text: impl Into<String>) -> Self {
        Self { level, about: about.to_owned(), text: text.into() }
    }
}

/// The severity of a finding, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum FindingLevel {
    /// Everything is in order.
    #[strum(serialize = "ok")]
    Fine,
    /// The component works, but needs attention.
    Warning,
    /// The component does not work, or will fail.
    Problem,
}

/// The lengths of queues.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Queues {
    pub deliveries: DeliveryCounts,
    pub messages: Vec<MessageCounts>,
    /// Items in the queues of streams and scheduled mails, counted up to 100,000.
    pub stream_items: usize,
    /// Changes of items that are not matched with notifications yet.
    pub unmatched_rows: i64,
    pub purges: PurgeCounts,
    pub unmatched_since: Option<Timestamp>,
}

/// Deliveries by state; each is counted up to 100,000.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryCounts {
    pub queued: usize,
    pub sending: usize,
    pub failed: usize,
}

/// Messages of a transport.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MessageCounts {
    #[schemars(schema_with = "property::words::<MessageTransport>")]
    pub transport: MessageTransport,
    /// Waiting and in flight.
    pub waiting: u64,
    /// Parked after the last retry.
    pub parked: u64,
}

/// Cache keys to purge at CDNs.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PurgeCounts {
    /// The keys that are due now or later.
    pub waiting: u64,
    pub due: u64,
}

/// Recent errors and slow searches.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecentDiagnostics {
    /// The hours that are counted.
    pub hours: i64,
    pub ingest_errors: u64,
    pub slow_searches: u64,
}

/// A node of the service.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceNode {
    pub name: String,
    /// The name of its machine; empty if a different version does not publish it.
    pub host: String,
    /// The address that it listens on, as in its settings.
    pub listen: String,
    pub role: String,
    /// True for the node that answers.
    pub own: bool,
    pub version: String,
    /// True if its heartbeat is recent.
    pub alive: bool,
    /// The time of its last heartbeat.
    pub seen: Timestamp,
    pub faults: Vec<String>,
    /// The background work that it does for all nodes.
    pub leases: Vec<String>,
    pub figures: Option<NodeFigures>,
    /// The time at which the node published the figures.
    pub figures_at: Option<Timestamp>,
}

/// The figures of a node. Figures that a different version does not publish are 0.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeFigures {
    /// The start of the process.
    pub started: Option<Timestamp>,
    pub disks: Vec<DiskFigures>,
    pub cache: Vec<CacheFigures>,
    /// Item versions in the search index.
    pub indexed_items: u64,
    /// Changes of items that the search index does not have yet.
    pub index_rows_behind: u64,
    /// Renders that wait for a worker.
    pub renders_waiting: u64,
    /// Renders that are in flight.
    pub renders_busy: u64,
    pub render_workers: u64,
    /// Open connections of clients.
    pub connections: u64,
    /// Since the start of the process.
    pub requests: u64,
    /// Answered by a 5xx.
    pub failed_requests: u64,
}

/// The space of the file system of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct DiskFigures {
    pub folder: String,
    pub free_bytes: u64,
    pub total_bytes: u64,
}

/// A tier of the rendition cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CacheFigures {
    /// `memory` or `disk`.
    pub tier: String,
    pub bytes: u64,
    /// The size limit in the settings; 0 if the tier is off.
    pub limit_bytes: u64,
    /// Look-ups that found a rendition, since the start of the process.
    pub hits: u64,
    /// Look-ups that found no rendition, since the start of the process.
    pub misses: u64,
}

endpoint! {
    /// Deliveries of all users, newest first.
    ///
    /// Deliveries are kept for 90 days after they end.
    ListAllDeliveries: GET "/operator/v1/delivery", "getAllDeliveries", OperatorCaller, NoBody => Json<OperatorDeliveries> {
        #[serde(flatten)]
        pub range: ListRange,
        /// The state of the deliveries.
        #[serde(default)]
        #[schemars(schema_with = "property::words::<DeliveryState>")]
        pub state: Option<DeliveryState>,
    }

    /// Queue failed deliveries again.
    ///
    /// The 1000 newest ones, each with a fresh count of attempts. Nothing is purchased; the owner's agreements must still
    /// cover the item.
    RetryDeliveries: POST "/operator/v1/delivery", "retryDeliveries", OperatorCaller, JsonBody<RetryRequest> => Accepted<Retried> {}

    /// Queue a failed delivery again.
    ///
    /// With a fresh count of attempts. A delivery that has not failed is answered 409.
    RetryDelivery: POST "/operator/v1/delivery/{id}", "retryDelivery", OperatorCaller, JsonBody<RetryRequest> => Accepted<Retried>, NotFound, Conflict {
        /// The delivery's id.
        pub id: Uuid,
    }
}

/// The deliveries.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OperatorDeliveries {
    pub deliveries: Vec<OperatorDelivery>,
}

/// A delivery of any user.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorDelivery {
    #[serde(flatten)]
    pub delivery: Delivery,
    /// The organization for which its user acted.
    pub organization: i64,
    pub organization_name: Option<String>,
}

/// The request.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryRequest {
    #[schemars(extend("enum" = [true]))]
    pub again: bool,
}

impl RetryRequest {
    /// The only request.
    pub const AGAIN: Self = Self { again: true };
}

/// The number of deliveries or messages that were queued.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Retried {
    pub queued: usize,
}

endpoint! {
    /// Mails and push messages that are not sent, newest first.
    ///
    /// Messages that wait, are in flight, or were parked after the last retry. A message that was sent is removed.
    ListMessages: GET "/operator/v1/message", "getMessages", OperatorCaller, NoBody => Json<OutboxMessages> {
        #[serde(flatten)]
        pub range: ListRange,
        /// The state of the messages.
        #[serde(default)]
        #[schemars(schema_with = "property::words::<MessageState>")]
        pub state: Option<MessageState>,
    }

    /// Queue all parked messages again.
    ///
    /// Each with a fresh count of attempts.
    RetryMessages: POST "/operator/v1/message", "retryMessages", OperatorCaller, JsonBody<RetryRequest> => Accepted<Retried> {}

    /// Queue a parked message again.
    ///
    /// With a fresh count of attempts.
    RetryMessage: POST "/operator/v1/message/{id}", "retryMessage", OperatorCaller, JsonBody<RetryRequest> => Accepted<Retried>, NotFound {
        /// The message's id.
        pub id: Uuid,
    }

    /// Remove a message.
    ///
    /// It is not sent any more.
    RemoveMessage: DELETE "/operator/v1/message/{id}", "removeMessage", OperatorCaller, NoBody => File<Removal>, NotFound {
        /// The message's id.
        pub id: Uuid,
    }
}

/// The messages.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OutboxMessages {
    pub messages: Vec<OutboxMessage>,
}

/// A mail or a push message that is not sent.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutboxMessage {
    pub id: Uuid,
    /// The kind of message, such as `email` or `set-password`.
    pub kind: String,
    #[schemars(schema_with = "property::words::<MessageState>")]
    pub state: MessageState,
    /// The id of the receiver.
    pub user: i64,
    /// The items that it is about.
    pub items: Vec<String>,
    pub attempts: u32,
    pub created: Timestamp,
    pub next_attempt: Option<Timestamp>,
    /// The reason why the last attempt failed.
    pub error: Option<String>,
    #[schemars(schema_with = "property::words::<MessageTransport>")]
    pub transport: String,
    pub user_name: String,
}

endpoint! {
    /// Files and items that were not ingested, newest first.
    ///
    /// Of uploads, the watched folder and `wirephoto ingest`, of all nodes. The 1000 newest of the last 30 days are kept.
    ListIngestErrors: GET "/operator/v1/ingest-error", "getIngestErrors", OperatorCaller, NoBody => Json<IngestErrors> {
        #[serde(flatten)]
        pub range: ListRange,
    }
}

/// The errors.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngestErrors {
    pub ingest_errors: Vec<IngestError>,
}

/// A file or an item that was not ingested.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct IngestError {
    pub at: Timestamp,
    /// The node, or `command`.
    pub node: String,
    /// The file or the item.
    pub subject: String,
    pub error: String,
    /// The number of equal errors within seconds.
    pub count: u32,
}

endpoint! {
    /// Slow searches, newest first.
    ///
    /// Searches that took `search.slow_ms` or longer, of all nodes, without their users. The 1000 newest of the last 30
    /// days are kept.
    ListSlowSearches: GET "/operator/v1/slow-search", "getSlowSearches", OperatorCaller, NoBody => Json<SlowSearches> {
        #[serde(flatten)]
        pub range: ListRange,
    }
}

/// The searches.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlowSearches {
    pub slow_searches: Vec<SlowSearch>,
}

/// A slow search.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SlowSearch {
    pub at: Timestamp,
    pub node: String,
    /// The query in its canonical spelling.
    pub q: String,
    /// Media type, size and other parameters.
    pub parameters: String,
    /// The longest of several.
    pub milliseconds: u32,
    /// The number of equal searches within seconds.
    pub count: u32,
}

endpoint! {
    /// Statistics of downloads.
    ///
    /// Counts orders: a download is the first one of an item under an agreement in 30 days. The rows with the most
    /// downloads come first; days come in their order.
    LoadDownloads: GET "/operator/v1/download", "getDownloads", OperatorCaller, NoBody => Json<DownloadStatistics> {
        #[serde(flatten)]
        pub query: DownloadQuery,
        #[serde(flatten)]
        pub range: ListRange,
    }

    /// Statistics of downloads as a file.
    ///
    /// All rows, at most 100,000, as CSV in UTF-8 (RFC 4180). The first line has the names of the properties in the JSON.
    /// Texts are quoted, and an apostrophe stands before what a spreadsheet would take for a formula.
    ExportDownloads: GET "/operator/v1/download.csv", "exportDownloads", OperatorCaller, NoBody => File<DownloadTable> {
        #[serde(flatten)]
        pub query: DownloadQuery,
        #[serde(flatten)]
        pub range: ListRange,
    }
}

/// A statistic as CSV.
#[derive(Clone, Copy, Debug)]
pub struct DownloadTable;

impl FileKind for DownloadTable {
    const MEDIA_TYPE: &'static str = "text/csv";
    const DESCRIPTION: &'static str = "The statistic.";
}

/// The downloads to count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DownloadQuery {
    /// The property by which downloads are counted.
    #[serde(with = "property::Word")]
    #[schemars(schema_with = "property::words::<DownloadGrouping>")]
    pub by: DownloadGrouping,
    /// The first day; without it 29 days before the last one.
    pub from: Option<Date>,
    /// The last day, inclusive; without it today. At most 1096 days in all.
    pub to: Option<Date>,
    /// Only downloads of this organization.
    #[schemars(range(min = 1))]
    pub organization: Option<i64>,
    /// Only downloads under this agreement.
    #[schemars(range(min = 1))]
    pub agreement: Option<i64>,
    /// Only downloads of this item, by its `uri` or as `<mediaType>/<id>`.
    pub item: Option<String>,
}

/// The property by which downloads are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum DownloadGrouping {
    /// The organization of the customer.
    #[default]
    Organization,
    Agreement,
    Item,
    Day,
    /// The authentication of the caller: in a browser, with a key or with a token.
    Credential,
}

model::impl_as_str!(DownloadGrouping);

/// The statistic.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DownloadStatistics {
    #[serde(with = "property::Word")]
    #[schemars(schema_with = "property::words::<DownloadGrouping>")]
    pub by: DownloadGrouping,
    pub total: DownloadCounts,
    pub rows: Vec<DownloadRow>,
    pub from: Date,
    pub to: Date,
    /// The time zone in which days begin.
    pub timezone: String,
}

/// Numbers of orders by their state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DownloadCounts {
    /// Orders that deliver.
    pub downloads: u64,
    /// Orders that were reported as used.
    pub used: u64,
    /// Orders that wait for approval.
    pub awaiting: u64,
    /// Orders that were not approved.
    pub rejected: u64,
}

/// A row of a statistic, with the properties of what is counted by.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DownloadRow {
    pub agreement: Option<i64>,
    pub agreement_name: Option<String>,
    pub agreement_type: Option<String>,
    pub organization: Option<i64>,
    pub organization_name: Option<String>,
    /// The item's `uri`.
    pub item: Option<String>,
    pub headline: Option<String>,
    pub byline: Option<String>,
    pub day: Option<Date>,
    /// The caller's kind of authentication, such as `session` or `api_key`, from the audit log; `unknown` without an
    /// event in it.
    pub credential: Option<String>,
    #[serde(flatten)]
    pub counts: DownloadCounts,
}
