//! Tests of what streams get: no items that have expired, and items in flight again although the database fails.

use std::time::Duration;

use serde_json::json;

use super::Notifications;
use super::tests::{Scene, form, ids, run, start};

/// How long a reader waits for items that come back: long enough for a slow and busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn a_release_that_fails_is_retried_until_it_is_written() {
    let mut scene = Scene::new();
    run(async {
        scene.serve(start);
        let of = scene.stream(1, "hamn").await;
        for id in ["a", "b"] {
            scene.write(id, &json!({}), start());
        }
        scene.step(start());
        let Notifications { inner } = &scene.notifications;
        let db = &inner.services.db;
        let in_flight = scene.take(1, &of, 10).await.unwrap().unwrap();
        db.write(|tx| tx.refuse_changes("queued_items")).await.unwrap();
        drop(in_flight);
        // The release is attempted before the claim of this read.
        assert!(scene.take(1, &of, 10).await.unwrap().is_none());
        db.write(|tx| tx.accept_rows("queued_items")).await.unwrap();
        let (caller, form, stop) = (scene.caller(1).await, form(), std::future::pending());
        let waiting =
            scene.notifications.read_stream(&caller, of.id, 10, &form, WAIT_TIMEOUT, stop);
        let text = waiting.await.unwrap().unwrap().text;
        assert_eq!(ids(&text), ["a", "b"]);
    });
}

#[test]
fn an_item_that_has_expired_when_it_is_indexed_is_not_sent() {
    let scene = Scene::new();
    run(async {
        let of = scene.stream(1, "hamn").await;
        scene.write("old", &json!({ "expires": start().to_string() }), start());
        scene.write("new", &json!({ "expires": "2999-01-01T00:00:00Z" }), start());
        scene.step(start());
        assert_eq!(scene.queue(&of), ["new"]);
    });
}
