//! The state of the service: findings, queues and nodes.

use std::path::Path;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use strum::IntoEnumIterator;
use uuid::Uuid;

use super::OperatorCall;
use crate::cluster::findings::{
    DatabaseState, DiskState, Finding, FindingLevel, judge_database, judge_differences,
    judge_disk, judge_nodes,
};
use crate::cluster::membership::limits::HEARTBEAT_TIMEOUT;
use crate::cluster::membership::{NodeDescription, NodeFigures, ObservedNode};
use crate::http::ItemCount;
use crate::http::api;
use crate::http::api::ApiResult;
use crate::runtime::clock;
use crate::runtime::error::Error;
use crate::runtime::limits::{DIAGNOSTICS_RECENT_HOURS, QUEUE_COUNTED_MAX};
use crate::storage::database::{
    DatabaseFacts, DbError, NodeRow, OutboxCount, ReadTx, SCHEMA_NUMBER,
};
use crate::storage::diagnostics::DiagnosticKind;
use model::account::{DeliveryState, MessageTransport};

/// `GET /operator/v1/status`: the state of the service.
///
/// The figures of this node are current; the figures of other nodes are the last ones that they published.
pub(super) async fn load(call: OperatorCall) -> ApiResult {
    let process = &call.app.shared.process;
    let figures = process.own_figures().await;
    let own = process.node.incarnation();
    let asked = clock::now();
    let counted = process.item_count.lock().filter(|count| count.is_fresh(asked));
    // Runs on a search thread, because counting a long table lasts as long as a search.
    let facts = process.db.search(move |tx| ServiceFacts::read(tx, counted, asked)).await;
    let facts = facts.map_err(Error::from)?;
    *process.item_count.lock() = Some(facts.counted);
    let nodes: Vec<NodeView> =
        facts.observed(own, asked).into_iter().map(|node| NodeView::new(node, own)).collect();
    let nodes = with_own_figures(nodes, &figures, asked);
    let findings = findings(&facts, &nodes, process.figures.required_bytes(), asked);
    api::json(&json!({
        "time": asked,
        "version": env!("CARGO_PKG_VERSION"),
        "archive": facts.archive,
        "schema": SCHEMA_NUMBER,
        "database": facts.database.engine,
        "items": facts.counted.items,
        "itemsCounted": facts.counted.at,
        "findings": findings.iter().map(finding_json).collect::<Vec<_>>(),
        "queues": facts.queues.json(),
        "recent": {
            "hours": DIAGNOSTICS_RECENT_HOURS,
            "ingestErrors": facts.recent_ingest_errors,
            "slowSearches": facts.recent_slow_searches,
        },
        "nodes": nodes.iter().map(NodeView::json).collect::<Vec<_>>(),
    }))
}

fn finding_json(finding: &Finding) -> Value {
    json!({ "level": finding.level.as_str(), "about": finding.about, "text": finding.text })
}

/// The facts about the service that the database holds.
struct ServiceFacts {
    database: DatabaseFacts,
    counted: ItemCount,
    archive: String,
    nodes: Vec<NodeRow>,
    /// The leases that are held, each with the incarnation that holds it.
    leases: Vec<(String, Uuid)>,
    queues: QueueFacts,
    recent_ingest_errors: u64,
    recent_slow_searches: u64,
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
            queues: QueueFacts::read(tx, now)?,
            recent_ingest_errors: tx.count_diagnostics(DiagnosticKind::IngestError, recent)?,
            recent_slow_searches: tx.count_diagnostics(DiagnosticKind::SlowSearch, recent)?,
        })
    }

    /// Returns the nodes as this node observes them.
    ///
    /// A request cannot wait for heartbeats as `wirephoto nodes` does, so a node counts as alive until its last
    /// heartbeat is older than [`HEARTBEAT_TIMEOUT`]. The age depends on the clocks of both machines.
    fn observed(&self, own: Uuid, now: Timestamp) -> Vec<ObservedNode> {
        self.nodes.iter().map(|row| self.observe(row, own, now)).collect()
    }

    fn observe(&self, row: &NodeRow, own: Uuid, now: Timestamp) -> ObservedNode {
        let age = now.duration_since(row.seen);
        let is_late = Duration::try_from(age).is_ok_and(|age| age >= HEARTBEAT_TIMEOUT);
        let is_alive = row.incarnation == own || !is_late;
        let is_alone = self.nodes.len() < 2;
        let held = self.leases.iter().filter(|(_, holder)| *holder == row.incarnation);
        ObservedNode {
            row: row.clone(),
            is_alive: (!is_alone).then_some(is_alive),
            leases: held.map(|(name, _)| name.clone()).collect(),
        }
    }
}

/// The lengths of queues.
struct QueueFacts {
    /// Numbers of deliveries by state: queued, being sent, and failed.
    deliveries: Vec<(DeliveryState, usize)>,
    messages: Vec<(MessageTransport, OutboxCount)>,
    /// Items in the queues of streams and scheduled mails.
    stream_items: usize,
    /// Rows of the item log that are not matched with notifications yet, and the time of the first one.
    unmatched_rows: i64,
    unmatched_since: Option<Timestamp>,
    /// Cache keys that wait to be purged at CDNs; `purges_due` counts the keys among them that are due.
    purges_waiting: u64,
    purges_due: u64,
}

impl QueueFacts {
    fn read(tx: &ReadTx<'_>, now: Timestamp) -> Result<Self, DbError> {
        let states = [DeliveryState::Queued, DeliveryState::Sending, DeliveryState::Failed];
        let mut deliveries = Vec::new();
        for state in states {
            deliveries.push((state, tx.count_deliveries(state, QUEUE_COUNTED_MAX)?));
        }
        let mut messages = Vec::new();
        for transport in MessageTransport::iter() {
            messages.push((transport, tx.count_messages(transport)?));
        }
        let matched = tx.matched_seq()?;
        let (newest, unmatched_since) = tx.matching_backlog(matched)?;
        let mut purges_waiting = 0;
        let mut purges_due = 0;
        for (endpoint, _) in tx.purging_endpoints()? {
            let backlog = tx.purges_waiting(&endpoint, now)?;
            purges_waiting += backlog.keys;
            purges_due += backlog.due;
        }
        Ok(Self {
            deliveries,
            messages,
            stream_items: tx.count_queued_items(QUEUE_COUNTED_MAX)?,
            unmatched_rows: newest.saturating_sub(matched).max(0),
            unmatched_since,
            purges_waiting,
            purges_due,
        })
    }

    fn json(&self) -> Value {
        let mut deliveries = json!({});
        for (state, count) in &self.deliveries {
            deliveries[state.as_str()] = json!(count);
        }
        let mut messages = Vec::new();
        for (transport, count) in &self.messages {
            messages.push(json!({
                "transport": transport.as_str(),
                "waiting": count.waiting,
                "parked": count.parked,
            }));
        }
        let mut view = json!({
            "deliveries": deliveries,
            "messages": messages,
            "streamItems": self.stream_items,
            "unmatchedRows": self.unmatched_rows,
            "purges": { "waiting": self.purges_waiting, "due": self.purges_due },
        });
        if let Some(since) = self.unmatched_since {
            view["unmatchedSince"] = json!(since);
        }
        view
    }
}

/// A node with its figures.
struct NodeView {
    observed: ObservedNode,
    about: NodeDescription,
    /// True for the node that handles the request.
    is_own: bool,
    figures: NodeFigures,
    figures_at: Option<Timestamp>,
}

impl NodeView {
    fn new(observed: ObservedNode, own: Uuid) -> Self {
        let row = &observed.row;
        Self {
            about: NodeDescription::from_row(row),
            is_own: row.incarnation == own,
            figures: NodeFigures::from_row(row),
            figures_at: row.figures_at,
            observed,
        }
    }

    fn json(&self) -> Value {
        let ObservedNode { row, is_alive, leases } = &self.observed;
        let faults: Vec<&str> = row.faults.split_whitespace().collect();
        let mut view = json!({
            "name": row.node,
            "role": row.role,
            "own": self.is_own,
            "version": self.about.version,
            "alive": is_alive.unwrap_or(true),
            "seen": row.seen,
            "faults": faults,
            "leases": leases,
        });
        if let Some(at) = self.figures_at {
            view["figures"] = json!(self.figures);
            view["figuresAt"] = json!(at);
        }
        view
    }
}

/// Replaces the figures that this node has published by its current figures.
fn with_own_figures(
    mut nodes: Vec<NodeView>,
    figures: &NodeFigures,
    now: Timestamp,
) -> Vec<NodeView> {
    for node in nodes.iter_mut().filter(|node| node.is_own) {
        node.figures = figures.clone();
        node.figures_at = Some(now);
        // A single node rarely writes heartbeats, and this node is evidently alive.
        node.observed.row.seen = now;
    }
    nodes
}

/// Returns the findings of `wirephoto doctor` that a page can show, the most severe first.
fn findings(
    facts: &ServiceFacts,
    nodes: &[NodeView],
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
        nodes.iter().map(|node| (node.observed.row.node.clone(), node.about.clone())),
    ));
    found.extend(nodes.iter().flat_map(|node| full_disks(node, required_bytes)));
    found.sort_by_key(|finding| match finding.level {
        FindingLevel::Problem => 0,
        FindingLevel::Warning => 1,
        FindingLevel::Fine => 2,
    });
    found
}

/// Finds the disks of a node that have too little space. Disks that cannot be written are among the faults of the
/// node.
fn full_disks(node: &NodeView, required_bytes: u64) -> Vec<Finding> {
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
        let text = format!("{}: {}", node.observed.row.node, finding.text);
        Finding { text, ..finding }
    });
    named.collect()
}
