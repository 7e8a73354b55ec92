//! Health checks, metrics and the OpenAPI document, for the operator's tools.

use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::access::UnknownCaller;
use crate::answer::{Answer, File, FileKind, describe_json_by_status, response_header};
use crate::body::NoBody;
use crate::endpoint;
use crate::endpoint::{RequestHeader, Section};

const SECTION: Section = Section {
    name: "Operator",
    description: "For the operator's tools; keep them inside your network.",
};

endpoint! {
    /// Liveness.
    ///
    /// Restart the process if this fails. The status is `live`.
    CheckLiveness: GET "/health/live", "getLiveness", UnknownCaller, NoBody => HealthCheck {}

    /// Readiness.
    ///
    /// Not ready while the service is stopping, its database cannot be read, or it has a fault that another node does not
    /// have: of database, search index, store of originals or disk. The status is `ready` or `not ready`.
    CheckReadiness: GET "/health/ready", "getReadiness", UnknownCaller, NoBody => HealthCheck {}

    /// Readiness for media requests.
    ///
    /// Not ready while the service is stopping. Cached files are served without a database. The status is `serving` or `not
    /// serving`.
    CheckServing: GET "/health/serving", "getServing", UnknownCaller, NoBody => HealthCheck {}

    /// Readiness for searches.
    ///
    /// Not ready while the search index is being built, the database cannot be used or the service is stopping, or on a
    /// node that does not search: the status is `ready`, `building`, `database`, `draining` or `disabled`.
    CheckSearch: GET "/health/search", "getSearchReadiness", UnknownCaller, NoBody => HealthCheck {}
}

/// The health of a node.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    pub status: HealthStatus,
    /// The problems of a node that is ready in spite of them.
    pub detail: Option<String>,
    /// The reason why the node is not ready.
    pub reason: Option<String>,
    /// The faults of the node, if it has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// The number of ingested items that search does not find yet.
    pub rows_behind: Option<i64>,
}

impl Health {
    /// Creates the health of a node with nothing else to say.
    pub fn new(status: HealthStatus) -> Self {
        Self { status, detail: None, reason: None, faults: Vec::new(), rows_behind: None }
    }

    /// Creates the health of a node that is not ready because of `reason`.
    pub fn unready(status: HealthStatus, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Self::new(status) }
    }
}

/// The readiness of a node, and for search the reason if it is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum HealthStatus {
    Live,
    Ready,
    #[serde(rename = "not ready")]
    NotReady,
    Serving,
    #[serde(rename = "not serving")]
    NotServing,
    Building,
    Database,
    Disabled,
    Draining,
}

/// 200 with the health of a node that is ready, 503 with that of a node that is not.
#[derive(Clone, Debug)]
pub struct HealthCheck(pub Health);

impl HealthCheck {
    /// Returns whether the answer is 200.
    pub fn is_ready(&self) -> bool {
        match self.0.status {
            HealthStatus::Live | HealthStatus::Ready | HealthStatus::Serving => true,
            HealthStatus::NotReady
            | HealthStatus::NotServing
            | HealthStatus::Building
            | HealthStatus::Database
            | HealthStatus::Disabled
            | HealthStatus::Draining => false,
        }
    }
}

impl Answer for HealthCheck {
    type Content = Health;

    fn describe(generator: &mut SchemaGenerator, responses: &mut Map<String, Value>) {
        let descriptions = [("200", "Ready."), ("503", "Not ready.")];
        describe_json_by_status::<Health>(generator, responses, &descriptions);
    }
}

endpoint! {
    /// Metrics.
    ///
    /// In the text format of Prometheus.
    LoadMetrics: GET "/metrics", "getMetrics", UnknownCaller, NoBody => File<MetricsText> {}
}

/// The text format of Prometheus.
#[derive(Clone, Copy, Debug)]
pub struct MetricsText;

impl FileKind for MetricsText {
    const MEDIA_TYPE: &'static str = "text/plain";
    const DESCRIPTION: &'static str = "The metrics.";
}

endpoint! {
    /// OpenAPI document.
    ///
    /// OpenAPI 3.1. A page made from it is at `/docs`.
    LoadOpenApi: GET "/openapi.json", "getOpenApi", UnknownCaller, NoBody => OpenApiDocument, [RequestHeader::IF_NONE_MATCH, RequestHeader::IF_MATCH_ANY] {}
}

/// The document, with the answers to conditional requests.
#[derive(Clone, Copy, Debug)]
pub struct OpenApiDocument;

impl Answer for OpenApiDocument {
    type Content = Value;

    fn describe(_: &mut SchemaGenerator, responses: &mut Map<String, Value>) {
        let document = json!({
            "description": "This document.",
            "headers": {
                "ETag": response_header("Changes with the document."),
                "Cache-Control": response_header("Cache directives."),
            },
            "content": { "application/json": { "schema": { "type": "object" } } },
        });
        let unchanged = json!({
            "description": "Not modified.",
            "headers": { "ETag": response_header("Its entity tag.") },
        });
        responses.insert("200".to_owned(), document);
        responses.insert("304".to_owned(), unchanged);
        responses.insert("412".to_owned(), json!({ "description": "The precondition failed." }));
    }
}
