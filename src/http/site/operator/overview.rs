//! `/operator`: shows findings, queues and nodes.

use minijinja::context;
use serde_json::{Value, json};

use super::OperatorRequest;
use crate::http::site::PageResult;
use crate::http::site::account::template_value;
use crate::runtime::limits::QUEUE_COUNTED_MAX;

pub(super) async fn show(member: OperatorRequest) -> PageResult {
    let mut status = member.get("/operator/v1/status").await?;
    if let Some(nodes) = status["nodes"].as_array_mut() {
        nodes.iter_mut().for_each(add_shares);
    }
    let context = context! { status => template_value(status), counted_max => QUEUE_COUNTED_MAX };
    member.page("operator/overview.html", context)
}

/// Adds percentages to the disks and caches of a node, for the bars of the page.
fn add_shares(node: &mut Value) {
    for disk in list(node, "disks") {
        let free = number(&disk["freeBytes"]);
        let total = number(&disk["totalBytes"]);
        disk["used"] = json!(percent(total.saturating_sub(free), total));
    }
    for tier in list(node, "cache") {
        tier["used"] = json!(percent(number(&tier["bytes"]), number(&tier["limitBytes"])));
        let hits = number(&tier["hits"]);
        let misses = number(&tier["misses"]);
        let lookups = hits.saturating_add(misses);
        // Without look-ups there is no hit rate.
        if lookups > 0 {
            tier["hitShare"] = json!(percent(hits, lookups));
        }
    }
}

/// Returns the list `name` in the figures of a node; empty if the node did not publish it.
fn list<'a>(node: &'a mut Value, name: &str) -> &'a mut [Value] {
    // Indexing would insert a missing property.
    let list = node.get_mut("figures").and_then(|figures| figures.get_mut(name));
    list.and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// Returns the percentage of `part` in `whole`, rounded down, at most 100.
fn percent(part: u64, whole: u64) -> u64 {
    let share = u128::from(part) * 100 / u128::from(whole.max(1));
    u64::try_from(share.min(100)).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_whole_percents_and_absent_without_lookups() {
        let mut node = json!({ "figures": {
            "disks": [{ "freeBytes": 1, "totalBytes": 3 }],
            "cache": [
                { "bytes": 5, "limitBytes": 0, "hits": 0, "misses": 0 },
                { "bytes": 5, "limitBytes": 10, "hits": 2, "misses": 1 },
            ],
        } });
        add_shares(&mut node);
        let figures = &node["figures"];
        assert_eq!(figures["disks"][0]["used"], 66);
        assert_eq!(figures["cache"][0]["used"], 100);
        assert!(figures["cache"][0].get("hitShare").is_none());
        assert_eq!(
            (&figures["cache"][1]["used"], &figures["cache"][1]["hitShare"]),
            (&json!(50), &json!(66))
        );
    }

    #[test]
    fn a_node_that_published_nothing_has_no_figures() {
        let mut node = json!({ "name": "web-1" });
        add_shares(&mut node);
        assert_eq!(node, json!({ "name": "web-1" }));
        assert_eq!(percent(u64::MAX, u64::MAX), 100);
    }
}
