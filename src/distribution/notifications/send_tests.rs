//! Messages whose claim committed although the response was lost.

use serde_json::json;

use super::send::OutboxInFlight;
use super::tests::{Scene, question, run};
use super::*;
use crate::runtime::clock;
use crate::storage::database::{ClaimTx, ClaimedBy};

/// Writes an item that triggers a mail.
fn tell(scene: &Scene, id: &str) {
    let now = clock::now();
    scene.write(id, &json!({}), now);
    scene.step(now);
}

#[test]
fn messages_that_were_taken_up_without_an_answer_are_sent() {
    let scene = Scene::new();
    run(async {
        let Notifications { inner } = &scene.notifications;
        let (node, db) = (inner.services.guard.node(), &inner.services.db);
        let _keeper = node.start_heartbeat().unwrap();
        let method = NotificationMethod::Email { email: "desk@b.example".to_owned() };
        let (media_type, title) = (None, "Hamnar".to_owned());
        let draft = NotificationDraft { media_type, title, question: question("hamn"), method };
        let made = scene.make(1, draft, clock::now()).await;
        tell(&scene, "a");
        // The claim commits, and its response is lost.
        let by = ClaimedBy { incarnation: node.incarnation(), now: clock::now() };
        let lost = move |tx: &ClaimTx<'_>| tx.claim_messages(MessageTransport::Mail, 9, by);
        assert_eq!(db.claim(lost).await.unwrap().len(), 1);
        tell(&scene, "b");
        db.write(|tx| tx.refuse_changes("outbox")).await.unwrap();
        let mut sending = OutboxInFlight::default();
        let failed = scene.notifications.start_due(MessageTransport::Mail, &mut sending).await;
        assert!(failed.is_err(), "the claim failed");
        db.write(|tx| tx.accept_rows("outbox")).await.unwrap();
        // The sender drops them because their notification is gone.
        let caller = scene.caller(1).await;
        scene.notifications.delete(&caller, made.id).await.unwrap();
        scene.notifications.start_due(MessageTransport::Mail, &mut sending).await.unwrap();
        while sending.messages.next_ended().await.is_some() {}
        let left = db.read(|tx| tx.list_messages(None, 9)).await.unwrap();
        assert_eq!(left, []);
    });
}
