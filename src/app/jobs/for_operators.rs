//! Jobs for operators' pages: writes diagnostic records, removes old records, and publishes the figures of
//! this node for the pages of the other nodes.

use std::sync::Arc;

use api::operation::NodeFigures;
use uuid::Uuid;

use super::JobContext;
use crate::cluster::jobs::{BackgroundJob, JobSpec, RunOutcome, sweep};
use crate::cluster::membership::{ClusterNode, print_figures};
use crate::http::SharedState;
use crate::runtime::clock::{self, Stopwatch};
use crate::runtime::limits::SWEEP_ROWS;
use crate::storage::database::{Db, DbError};
use crate::storage::diagnostics::{DiagnosticLog, PendingDiagnostics};

/// Interval at which pending diagnostic records are written. An interval without one writes nothing.
const DIAGNOSTICS_WRITE_INTERVAL: std::time::Duration = std::time::Duration::from_secs(5);
/// Time for which diagnostic records are kept: queries may contain the names of persons.
const DIAGNOSTICS_RETENTION: std::time::Duration = std::time::Duration::from_secs(30 * 86_400);
/// Interval between two removals of older diagnostic records.
const DIAGNOSTICS_SWEEP: std::time::Duration = std::time::Duration::from_secs(3600);
/// Interval at which a node publishes its figures for the other nodes.
const FIGURES_INTERVAL: std::time::Duration = std::time::Duration::from_secs(60);
/// Time after which a node publishes figures that did not change once more, so that their age says that it
/// lives.
const FIGURES_UNCHANGED_MAX: std::time::Duration = std::time::Duration::from_secs(600);

impl JobContext<'_> {
    /// Starts the jobs for operators that this node's role includes.
    pub(in crate::app) fn start_operator_jobs(
        self,
        shared: &Arc<SharedState>,
        log: DiagnosticLog,
    ) {
        let role = shared.process.node.role();
        // A read-only node writes neither records nor figures; its log stays within its limit.
        if role.is_read_only() {
            return;
        }
        let db = &shared.process.db;
        let node = shared.process.node.clone();
        // Records of the last requests are written during the drain.
        self.run_until_shutdown(DiagnosticsJob { db: db.clone(), node, log });
        let stopping = &shared.process.stopping;
        let figures_job = FiguresJob { shared: Arc::clone(shared), published: None };
        self.run_until(stopping.subscribe(), figures_job);
        if role.runs_background_work() {
            let old = sweep("sweep-diagnostics", DIAGNOSTICS_SWEEP, db, |db, now| async move {
                let before = now - DIAGNOSTICS_RETENTION;
                db.write(move |tx| tx.sweep_diagnostics(before, SWEEP_ROWS)).await
            });
            self.run_until(stopping.subscribe(), old);
        }
    }
}

/// Writes pending diagnostic records to the database.
struct DiagnosticsJob {
    db: Db,
    node: ClusterNode,
    log: DiagnosticLog,
}

impl BackgroundJob for DiagnosticsJob {
    type Error = DbError;

    fn spec(&self) -> JobSpec {
        JobSpec::every("diagnostics", DIAGNOSTICS_WRITE_INTERVAL)
    }

    async fn run(&mut self) -> Result<RunOutcome, DbError> {
        let PendingDiagnostics { records, dropped } = self.log.take();
        if dropped > 0 {
            tracing::warn!(dropped, "diagnostics: too many records at a time, some are dropped");
        }
        if records.is_empty() {
            return Ok(RunOutcome::Idle);
        }
        let node = self.node.name().unwrap_or_default();
        // Records of a failed write are lost, but log lines or metrics report the same events.
        self.db.write(move |tx| tx.insert_diagnostics(&records, &node)).await?;
        Ok(RunOutcome::Done)
    }
}

/// The figures that this node published last.
struct PublishedFigures {
    since: Stopwatch,
    figures: NodeFigures,
    incarnation: Uuid,
}

impl PublishedFigures {
    fn is_current(&self, figures: &NodeFigures, incarnation: Uuid) -> bool {
        self.incarnation == incarnation
            && self.figures == *figures
            && self.since.elapsed() < FIGURES_UNCHANGED_MAX
    }
}

/// Publishes the figures of this node.
struct FiguresJob {
    shared: Arc<SharedState>,
    published: Option<PublishedFigures>,
}

impl BackgroundJob for FiguresJob {
    type Error = DbError;

    fn spec(&self) -> JobSpec {
        JobSpec::every("node-figures", FIGURES_INTERVAL)
    }

    async fn run(&mut self) -> Result<RunOutcome, DbError> {
        let process = &self.shared.process;
        let figures = process.own_figures().await;
        let incarnation = process.node.incarnation();
        // Unchanged figures are not written, so that an idle machine can sleep.
        if let Some(published) = &self.published
            && published.is_current(&figures, incarnation)
        {
            return Ok(RunOutcome::Idle);
        }
        let text = print_figures(&figures);
        let now = clock::now();
        process.db.write(move |tx| tx.write_figures(incarnation, &text, now)).await?;
        let since = Stopwatch::start();
        self.published = Some(PublishedFigures { since, figures, incarnation });
        Ok(RunOutcome::Done)
    }
}
