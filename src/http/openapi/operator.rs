//! What an operator's tools and this document's readers ask (`http/health.rs`, `http/openapi`).

use serde_json::json;

use super::{
    operation::{Access, Answer, Operation, Tag, get, header},
    schemas::{object, one_of, string},
};

pub(super) fn operations() -> Vec<Operation> {
    let state = |word: &str| object(&["status"], &[("status", one_of(&[word]))]);
    let not_ready =
        object(&["status", "reason"], &[("status", one_of(&["not ready"])), ("reason", string())]);
    let live = get("/health/live", "getLiveness")
        .says("Whether the process answers", "Restart it when it does not.")
        .gives("It does.", state("live"));
    let ready = get("/health/ready", "getReadiness")
        .says(
            "Whether requests should be sent here",
            "Not while the service stops, or when its database cannot be read.",
        )
        .gives("They should.", state("ready"))
        .answers(503, Answer::json("They should not.", not_ready));
    let not_serving = object(
        &["status", "reason"],
        &[("status", one_of(&["not serving"])), ("reason", one_of(&["draining"]))],
    );
    let serving = get("/health/serving", "getServing")
        .says(
            "Whether requests for media may be sent here",
            "Not while the service stops. What is in a cache is served without a database.",
        )
        .gives("They may.", state("serving"))
        .answers(503, Answer::json("They may not.", not_serving));
    let not_searching = object(
        &["status", "reason"],
        &[("status", one_of(&["building", "disabled", "draining"])), ("reason", string())],
    );
    let rows = json!({ "type": "integer", "minimum": 0 });
    let searching = object(&["status"], &[("status", one_of(&["ready"])), ("rowsBehind", rows)]);
    let search = get("/health/search", "getSearchReadiness")
        .says(
            "Whether searches should be sent here",
            "Not while the search index is being built or the service stops, nor at a node that \
             does not search. \
             `rowsBehind` counts what was taken in and is not found yet.",
        )
        .answers(200, Answer::json("They should.", searching))
        .answers(503, Answer::json("They should not.", not_searching));
    let metrics = get("/metrics", "getMetrics")
        .says("Counters, gauges and histograms", "In the text format of Prometheus.")
        .answers(200, Answer::of("The metrics.", "text/plain", string()));
    let tag = string();
    let description = Answer::json("This document.", json!({ "type": "object" }))
        .with("ETag", "Changes with the document.")
        .with("Cache-Control", "How long it may be kept.");
    let document = get("/openapi.json", "getOpenApi")
        .says("This document", "OpenAPI 3.1. A page made from it is at `/docs`.")
        .takes(header("If-None-Match", "Entity tags that the client has.", tag.clone()))
        .takes(header("If-Match", "Entity tags that the client insists on.", tag))
        .answers(200, description)
        .answers(304, Answer::empty("The client has it.").with("ETag", "Its entity tag."))
        .answers(412, Answer::empty("It is not the one that the client insists on."));
    [live, ready, serving, search, metrics, document]
        .map(|operation| operation.belongs(Tag::Operator, Access::Everybody))
        .into()
}
