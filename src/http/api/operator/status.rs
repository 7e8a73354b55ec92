//! The state of the service: findings, queues and nodes.

use std::cmp::Reverse;
use std::path::Path;
use std::time::Duration;

use api::Json;
use api::operation::{
    DeliveryCounts, Finding, FindingLevel, LoadStatus, MessageCounts, NodeFigures, PurgeCounts,
    Queues, RecentDiagnostics, ServiceNode, ServiceStatus,
};
use jiff::{SignedDuration, Timestamp};
use strum::IntoEnumIterator;
use uuid::Uuid;

use crate::cluster::findings::{
    DatabaseState, DiskState, judge_database, judge_differences, judge_disk, judge_nodes,
};
use crate::cluster::membership::limits::HEARTBEAT_TIMEOUT;
use crate::cluster::membership::{NodeDescription, ObservedNode, figures_of, node_label};
use crate::http::ItemCount;
use crate::http::api::binding::ApiRequest;
use crate::runtime::clock;
use crate::runtime::error::Result;
use crate::runtime::limits::QUEUE_COUNTED_MAX;
use crate::storage::database::{DatabaseFacts, DbError, NodeRow, ReadTx, SCHEMA_NUMBER};
use crate::storage::diagnostics::DiagnosticKind;
use model::account::{DeliveryState, MessageTransport};

/// Hours over which recent errors and slow searches are counted.
const DIAGNOSTICS_RECENT_HOURS: i64 = 24;

/// Responds with the state of the service.
///
/// The figures of this node are current; the figures of other nodes are the last ones that they published.
pub(super) async fn load(request: ApiRequest<LoadStatus>) -> Result<Json<ServiceStatus>> {
    let process = &request.app.shared.process;
    let figures = process.own_figures().await;
    let own = process.node.incarnation();
    let asked = clock::now();
    let counted = process.item_count.lock().filter(|count| count.is_fresh(asked));
    // Runs on a search thread, because counting a long table lasts as long as a search.
    let facts = process.db.search(move |tx| ServiceFacts::read(tx, counted, asked)).await?;
    *process.item_count.lock() = Some(facts.counted);
    let nodes = facts.nodes(&OwnNode { incarnation: own, figures, asked });
    let findings = findings(&facts, &nodes, process.figures.required_bytes(), asked);
    Ok(Json(ServiceStatus {
        time: asked,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        archive: facts.archive,
        schema: SCHEMA_NUMBER,
        database: facts.database.engine,
        items: facts.counted.items,
        items_counted: facts.counted.at,
        findings,
        queues: facts.queues,
        recent: facts.recent,
        nodes: nodes.into_iter().map(NodeFacts::view).collect(),
    }))
}

/// The facts about the service that the database holds.
struct ServiceFacts {
    database: DatabaseFacts,
    counted: ItemCount,
    archive: String,
    nodes: Vec<NodeRow>,
    /// The leases that are held, each with the incarnation that holds it.
    leases: Vec<(String, Uuid)>,
    queues: Queues,
    recent: RecentDiagnostics,
}

/// The node that handles the request.
struct OwnNode {
    incarnation: Uuid,
    /// The current figures of this node.
    figures: NodeFigures,
    asked: Timestamp,
}

impl ServiceFacts {
    /// Reads the facts at `now`. Items are counted unless `counted` is a recent count.
    fn read(tx: &ReadTx<'_>, counted: Option<ItemCount>, now: Timestamp) -> Result<Self, DbError> {
        let recent = now - SignedDuration::from_hours(DIAGNOSTICS_RECENT_HOURS);
        let counted = match counted {
            Some(counted) => counted,
            None => ItemCount { items: tx.count_items()?, at: now },
        };
        Ok(Self {
            database: tx.database_facts()?,
            counted,
            archive: tx.archive_id()?,
            nodes: tx.list_nodes()?,
            leases: tx.list_leases()?,
            queues: read_queues(tx, now)?,
            recent: RecentDiagnostics {
                hours: DIAGNOSTICS_RECENT_HOURS,
                ingest_errors: tx.count_diagnostics(DiagnosticKind::IngestError, recent)?,
                slow_searches: tx.count_diagnostics(DiagnosticKind::SlowSearch, recent)?,
            },
        })
    }

    /// Returns the nodes as this node observes them.
    ///
    /// A request cannot wait for heartbeats as `wirephoto nodes` does, so a node counts as alive until its last
    /// heartbeat is older than [`HEARTBEAT_TIMEOUT`]. The age depends on the clocks of both machines.
    fn nodes(&self, own: &OwnNode) -> Vec<NodeFacts> {
        self.nodes.iter().map(|row| NodeFacts::new(self.observe(row, own), own)).collect()
    }

    fn observe(&self, row: &NodeRow, own: &OwnNode) -> ObservedNode {
        let age = own.asked.duration_since(row.seen);
        let is_late = Duration::try_from(age).is_ok_and(|age| age >= HEARTBEAT_TIMEOUT);
        let is_alive = row.incarnation == own.incarnation || !is_late;
        let is_alone = self.nodes.len() < 2;
        let held = self.leases.iter().filter(|(_, holder)| *holder == row.incarnation);
        ObservedNode {
            row: row.clone(),
            is_alive: (!is_alone).then_some(is_alive),
            leases: held.map(|(name, _)| name.clone()).collect(),
        }
    }
}

fn read_queues(tx: &ReadTx<'_>, now: Timestamp) -> Result<Queues, DbError> {
    let deliveries = DeliveryCounts {
        queued: tx.count_deliveries(DeliveryState::Queued, QUEUE_COUNTED_MAX)?,
        sending: tx.count_deliveries(DeliveryState::Sending, QUEUE_COUNTED_MAX)?,
        failed: tx.count_deliveries(DeliveryState::Failed, QUEUE_COUNTED_MAX)?,
    };
    let mut messages = Vec::new();
    for transport in MessageTransport::iter() {
        let count = tx.count_messages(transport)?;
        messages.push(MessageCounts { transport, waiting: count.waiting, parked: count.parked });
    }
    let matched = tx.matched_seq()?;
    let (newest, unmatched_since) = tx.matching_backlog(matched)?;
    let mut purges = PurgeCounts::default();
    for (endpoint, _) in tx.purging_endpoints()? {
        let backlog = tx.purges_waiting(&endpoint, now)?;
        purges.waiting += backlog.keys;
        purges.due += backlog.due;
    }
    Ok(Queues {
        deliveries,
        messages,
        stream_items: tx.count_queued_items(QUEUE_COUNTED_MAX)?,
        unmatched_rows: newest.saturating_sub(matched).max(0),
        purges,
        unmatched_since,
    })
}

/// A node with its figures.
struct NodeFacts {
    observed: ObservedNode,
    about: NodeDescription,
    /// True for the node that handles the request.
    is_own: bool,
    figures: NodeFigures,
    figures_at: Option<Timestamp>,
}

impl NodeFacts {
    fn new(observed: ObservedNode, own: &OwnNode) -> Self {
        let row = &observed.row;
        let mut node = Self {
            about: NodeDescription::from_row(row),
            is_own: row.incarnation == own.incarnation,
            figures: figures_of(row),
            figures_at: row.figures_at,
            observed,
        };
        if node.is_own {
            // The figures that it has published are older.
            node.figures = own.figures.clone();
            node.figures_at = Some(own.asked);
            // A single node rarely writes heartbeats, and this node is evidently alive.
            node.observed.row.seen = own.asked;
        }
        node
    }

    fn view(self) -> ServiceNode {
        let ObservedNode { row, is_alive, leases } = self.observed;
        ServiceNode {
            name: row.node,
            host: self.about.host,
            listen: self.about.listen,
            role: row.role,
            own: self.is_own,
            version: self.about.version,
            alive: is_alive.unwrap_or(true),
            seen: row.seen,
            faults: row.faults.split_whitespace().map(str::to_owned).collect(),
            leases,
            figures: self.figures_at.is_some().then_some(self.figures),
            figures_at: self.figures_at,
        }
    }
}

/// Returns the findings of `wirephoto doctor` that a page can show, the most severe first.
fn findings(
    facts: &ServiceFacts,
    nodes: &[NodeFacts],
    required_bytes: u64,
    asked: Timestamp,
) -> Vec<Finding> {
    let mut found = judge_database(&DatabaseState {
        facts: &facts.database,
        location: None,
        items: facts.counted.items,
        asked,
        only_reads: false,
    });
    let observed: Vec<ObservedNode> = nodes.iter().map(|node| node.observed.clone()).collect();
    found.extend(judge_nodes(&observed, asked));
    found.extend(judge_differences(
        nodes.iter().map(|node| (node_label(&node.observed.row), node.about.clone())),
    ));
    found.extend(nodes.iter().flat_map(|node| full_disks(node, required_bytes)));
    found.sort_by_key(|finding| Reverse(finding.level));
    found
}

/// Finds the disks of a node that have too little space. Disks that cannot be written are among the faults of the
/// node.
fn full_disks(node: &NodeFacts, required_bytes: u64) -> Vec<Finding> {
    let judged = node.figures.disks.iter().map(|disk| {
        judge_disk(&DiskState {
            dir: Path::new(&disk.folder),
            written: Ok(()),
            free_bytes: Ok(disk.free_bytes),
            required_bytes,
        })
    });
    let full = judged.filter(|finding| finding.level != FindingLevel::Fine);
    let named = full.map(|finding| {
        let text = format!("{}: {}", node_label(&node.observed.row), finding.text);
        Finding { text, ..finding }
    });
    named.collect()
}
