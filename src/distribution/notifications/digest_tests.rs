//! Scheduled mails over a real database, with a controlled clock.

use jiff::ToSpan;
use serde_json::json;

use super::NotificationDraft;
use super::tests::{Scene, after, question, run, scheduled, start};
use model::account::SavedQuery;

/// Simulates years of scheduled mails with an item every seven hours, downtime and schedule changes: together
/// the mails list every item once, in order.
fn check_digests(schedule: &'static str, zone: &'static str, changes: &[(i64, &'static str)]) {
    let scene = Scene::new();
    run(async {
        let of = scene.make(1, scheduled(schedule, zone), start()).await;
        let caller = scene.caller(1).await;
        let (mut expected, mut hour, mut changes) = (Vec::new(), 0_i64, changes.iter());
        let mut next_change = changes.next();
        while hour < 2 * 366 * 24 {
            hour += 7;
            let now = start() + hour.hours();
            let id = format!("i{hour}");
            scene.write(&id, &json!({}), now);
            expected.push(format!("text/{id}"));
            if let Some((at, schedule)) = next_change.filter(|(at, _)| *at <= hour) {
                let _ = at;
                let draft = scheduled(schedule, zone);
                scene.notifications.replace(&caller, of.id, draft, now).await.unwrap();
                next_change = changes.next();
            }
            // Once a month or so the service is down for two days.
            if hour % 700 >= 49 {
                scene.step(now);
            }
        }
        scene.step(start() + (hour + 366 * 24).hours());
        let mails = scene.mails();
        assert!(mails.iter().all(|mail| !mail.is_empty()));
        let told: Vec<String> =
            mails.into_iter().flat_map(|mail| mail.into_iter().rev()).collect();
        assert_eq!(told, expected);
    });
}

#[test]
fn a_run_that_is_due_is_not_lost_by_a_change_of_the_schedule() {
    let scene = Scene::new();
    run(async {
        let of = scene.make(1, scheduled("0 * * * *", "UTC"), start()).await;
        scene.write("a", &json!({}), after(60));
        scene.step(after(61));
        let caller = scene.caller(1).await;
        let weekly = scheduled("0 7 * * 1", "UTC");
        scene.notifications.replace(&caller, of.id, weekly, after(3700)).await.unwrap();
        scene.step(after(3701));
        assert_eq!(scene.mails(), [["text/a"]]);
        scene.write("b", &json!({}), after(3702));
        scene.step(after(2 * 3600));
        assert_eq!(scene.mails().len(), 1);
    });
}

#[test]
fn scheduled_mails_tell_of_every_item_once_through_years() {
    check_digests("30 2 * * *", "Europe/Stockholm", &[]);
    check_digests(
        "0 7 * * 1-5",
        "America/New_York",
        &[(3000, "*/20 * * * *"), (9000, "0 0 1,15 * *")],
    );
    check_digests("15 2 * * *", "Australia/Lord_Howe", &[(5000, "45 1 * * 0")]);
}

#[test]
fn a_scheduled_mail_comes_once_after_a_stop_and_not_at_all_for_nothing() {
    let scene = Scene::new();
    run(async {
        let draft = scheduled("0 * * * *", "UTC");
        let recent = SavedQuery { tr: Some("h".to_owned()), ..question("hamn") };
        scene.make(1, draft.clone(), start()).await;
        scene.make(1, NotificationDraft { question: recent, ..draft }, start()).await;
        scene.step(after(3600));
        assert!(scene.mails().is_empty());
        scene.write("a", &json!({}), after(3601));
        scene.step(after(3602));
        // Five runs were missed; at the next start there is one, and `tr` leaves the item out.
        scene.step(after(6 * 3600 + 5));
        assert_eq!(scene.mails(), [["text/a"]]);
        scene.step(after(7 * 3600));
        assert_eq!(scene.mails().len(), 1);
    });
}
