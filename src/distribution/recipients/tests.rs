//! Limits, introductions and confirmations against a database.

use tempfile::TempDir;

use super::*;
use crate::access::auth::{Auth, HashLimits};
use crate::storage::database::AuditFilter;
use crate::transport::{MailSettings, MailTransport, TransportTimeouts};

struct Scene {
    recipients: Recipients,
    user: Principal,
    db: Db,
    dir: TempDir,
}

fn at(hour: i64, second: i64) -> Timestamp {
    Timestamp::from_second(500_000 * HOUR_S + hour * HOUR_S + second).unwrap()
}

fn address(text: &str) -> MailAddress {
    MailAddress::parse(text).unwrap()
}

impl Scene {
    async fn new(user_per_hour: u32, recipient_per_hour: u32, confirm_foreign: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::scratch(dir.path()).unwrap();
        db.write_blocking(|tx| {
            tx.run_sql(
                "INSERT INTO organizations (organization_id, name, address)
                     VALUES (1, 'Byrån', '{}');
                 INSERT INTO users (user_id, organization_id, user_name, first_name, last_name,
                     email_address, roles, admin, mediebank, active, service_account, created_ms)
                 VALUES (1, 1, 'eva@own.example', 'Eva', 'Ek', 'desk@own.example', '[]', FALSE,
                     FALSE, TRUE, FALSE, 0)",
            )
        })
        .unwrap();
        let limits = HashLimits {
            memory_kib: 8,
            iterations: 1,
            workers: 1,
            queue: 1,
            queue_per_address: 1,
            failures_per_user: 1,
            failures_per_user_total: 100,
            failures_per_address: 1,
            window: Duration::from_secs(1),
        };
        let auth = Auth::start(db.clone(), limits).unwrap();
        let user = auth.find_user(UserId(1)).await.unwrap().unwrap();
        let mail = MailSettings {
            transport: MailTransport::Outbox {
                folder: dir.path().join("outbox"),
                is_shared: false,
            },
            from: address("a@b.example"),
            domain: "b.example".to_owned(),
            attachments_bytes_max: 0,
        };
        let settings = RecipientSettings {
            user_per_hour,
            recipient_per_hour,
            confirm_foreign,
            site_url: "https://w.example".to_owned(),
            site_name: "Wire".to_owned(),
        };
        let mailer = Mailer::new(mail, TransportTimeouts::default());
        let recipients = Recipients::new(db.clone(), mailer, settings);
        Self { recipients, user, db, dir }
    }

    async fn clear(&self, to: &[&str], now: Timestamp) -> MailClearance {
        let to: Vec<MailAddress> = to.iter().map(|text| address(text)).collect();
        self.recipients.clear(&self.user, &to, now).await.unwrap()
    }

    /// Clears a mail, asserts that it may be sent and records that it was; returns the introductions.
    async fn sent(&self, to: &str, now: Timestamp) -> Vec<Introduction> {
        let MailClearance::Granted(introductions) = self.clear(&[to], now).await else {
            panic!("{to} is not cleared")
        };
        let user = self.user.user().id;
        self.recipients.record_introductions(user, &introductions, now).await;
        introductions
    }

    /// Lists the confirmation mails that were sent.
    fn asked(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path().join("outbox")).into_iter().flatten();
        let mails = entries.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
        mails.map(|mail| mail.replace("=\r\n", "")).collect()
    }
}

fn waits_until(clearance: &MailClearance) -> Option<Timestamp> {
    match clearance {
        MailClearance::Postponed { at, .. } => Some(*at),
        MailClearance::Granted(_) | MailClearance::Refused { .. } => None,
    }
}

fn token(text: &str) -> String {
    let from = text.find("https://w.example/mail/").expect("a link") + 23;
    text[from..].chars().take_while(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect()
}

#[tokio::test]
async fn a_user_and_a_recipient_have_so_many_mails_an_hour_wherever_they_are_counted() {
    let scene = Scene::new(3, 2, false).await;
    scene.sent("desk@own.example", at(0, 10)).await;
    scene.sent("Desk+a@own.example", at(0, 20)).await;
    let full = scene.clear(&["DESK+b@own.example"], at(0, 30)).await;
    assert_eq!(waits_until(&full), Some(at(1, 0)), "tags lead to the same mailbox");
    scene.sent("other@x.example", at(0, 40)).await;
    assert_eq!(waits_until(&scene.clear(&["third@x.example"], at(0, 50)).await), Some(at(1, 0)));
    // Another process, or the same one after a restart, continues the count.
    let again = scene.recipients.inner.settings.get();
    let mailer = scene.recipients.inner.mailer.clone();
    let other = Recipients::new(scene.db.clone(), mailer, (*again).clone());
    let refused = other.clear(&scene.user, &[address("third@x.example")], at(0, 60)).await;
    assert_eq!(waits_until(&refused.unwrap()), Some(at(1, 0)));
    scene.sent("third@x.example", at(1, 0)).await;
    assert_eq!(scene.recipients.sweep(at(26, 0)).await.unwrap(), 6, "counts do not pile up");
}

#[tokio::test]
async fn a_user_mails_five_new_addresses_a_day_unless_they_have_to_agree() {
    let scene = Scene::new(0, 0, false).await;
    for number in 0..5 {
        scene.sent(&format!("{number}@x.example"), at(0, number)).await;
    }
    // The first hour of the scene is the ninth of its day.
    let (tomorrow, later) = (at(16, 0), at(40, 0));
    assert_eq!(waits_until(&scene.clear(&["5@x.example"], at(15, 0)).await), Some(tomorrow));
    scene.sent("4@x.example", at(15, 1)).await;
    scene.sent("desk@own.example", at(15, 2)).await;
    // A mail to more new addresses than a day admits is sent on the next one.
    let many =
        ["5@x.example", "6@x.example", "7@x.example", "8@x.example", "9@x.example", "a@x.example"];
    assert_eq!(waits_until(&scene.clear(&many, tomorrow).await), Some(later));
    assert_eq!(waits_until(&scene.clear(&many, later).await), None);
    // A mail to more than two days admit fails at once, and the next attempts need fewer new addresses.
    let crowd: Vec<String> = (0..11).map(|number| format!("{number}@y.example")).collect();
    let crowd: Vec<&str> = crowd.iter().map(String::as_str).collect();
    let refused = scene.clear(&crowd, at(64, 0)).await;
    assert!(
        matches!(&refused, MailClearance::Refused { why, .. } if why.contains("leaves 6")),
        "{refused:?}"
    );
    assert_eq!(waits_until(&scene.clear(&crowd, at(88, 0)).await), Some(at(112, 0)));
    let sent = scene.clear(&crowd, at(112, 0)).await;
    assert!(matches!(&sent, MailClearance::Granted(introductions) if introductions.len() == 11));
    let asking = Scene::new(0, 0, true).await;
    for number in 0..6 {
        asking.clear(&[&format!("{number}@x.example")], at(0, number)).await;
    }
    assert_eq!(asking.asked().len(), 6);
}

#[tokio::test]
async fn a_mail_that_was_not_sent_is_not_counted() {
    let scene = Scene::new(0, 1, false).await;
    let (user, to) = (scene.user.user().id, "desk@own.example");
    let mail = [address(to)];
    for second in 0..3 {
        assert_eq!(waits_until(&scene.clear(&[to], at(0, second)).await), None);
        scene.recipients.refund(user, &mail, at(0, second)).await;
    }
    // Nor is more refunded than was counted.
    scene.recipients.refund(user, &mail, at(0, 4)).await;
    scene.sent(to, at(0, 5)).await;
    assert_eq!(waits_until(&scene.clear(&[to], at(0, 6)).await), Some(at(1, 0)));
}

#[tokio::test]
async fn a_mail_to_more_recipients_than_an_hour_has_goes_alone() {
    let scene = Scene::new(1, 1, false).await;
    let both = ["a@x.example", "b@x.example"];
    assert_eq!(waits_until(&scene.clear(&both, at(0, 0)).await), None);
    assert_eq!(waits_until(&scene.clear(&both, at(0, 1)).await), Some(at(1, 0)));
    assert_eq!(waits_until(&scene.clear(&both, at(1, 0)).await), None);
}

#[tokio::test]
async fn the_first_mail_to_a_stranger_says_who_has_it_sent_and_the_link_stops_them() {
    let scene = Scene::new(0, 0, false).await;
    for own in ["desk@own.example", "Eva@Own.Example"] {
        assert_eq!(scene.sent(own, at(0, 0)).await, [], "{own} is the user's own");
    }
    // A mail that was not sent introduced no sender.
    assert_eq!(waits_until(&scene.clear(&["victim@x.example"], at(0, 1)).await), None);
    let first = scene.sent("victim@x.example", at(0, 2)).await;
    assert!(
        first[0].text.contains("Eva Ek (Byrån) sends e-mail like this from Wire"),
        "{}",
        first[0].text
    );
    assert_eq!(scene.sent("Victim@X.example", at(0, 3)).await, []);
    let token = token(&first[0].text);
    let found = scene.recipients.invitation(&token, at(0, 4)).await.unwrap().unwrap();
    assert_eq!((found.sender.as_str(), found.is_awaited), ("Eva Ek (Byrån)", false));
    for second in 0..2 {
        assert!(scene.recipients.answer(&token, false, at(900, second)).await.unwrap());
    }
    let listed =
        |tx: &crate::storage::database::ReadTx<'_>| tx.list_audit(&AuditFilter::default(), 9);
    let events = scene.db.read(listed).await.unwrap();
    assert_eq!((events.len(), events[0].action.as_str()), (1, "mail_answered"));
    assert_eq!(events[0].detail.as_deref(), Some("victim@x.example stopped"));
    let never = scene.clear(&["victim@x.example"], at(901, 0)).await;
    assert!(matches!(never, MailClearance::Refused { reason: "refused", .. }), "{never:?}");
    assert!(scene.recipients.answer(&token, true, at(902, 0)).await.unwrap());
    assert_eq!(scene.sent("victim@x.example", at(903, 0)).await, []);
    assert_eq!(scene.recipients.invitation("x", at(903, 0)).await.unwrap(), None);
    assert!(!scene.recipients.answer("x", false, at(903, 0)).await.unwrap());
}

#[tokio::test]
async fn where_strangers_have_to_agree_they_are_asked_once_and_mailed_only_then() {
    let scene = Scene::new(0, 0, true).await;
    let to = ["victim@x.example"];
    for second in 0..3 {
        let waits = scene.clear(&to, at(0, second)).await;
        assert_eq!(waits_until(&waits), Some(at(1, second)), "{second}");
    }
    let asked = scene.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(scene.recipients.answer(&token(&asked[0]), true, at(2, 0)).await.unwrap());
    assert_eq!(scene.sent(to[0], at(2, 1)).await, [], "it knows already who asks");
    assert_eq!(scene.sent("desk@own.example", at(2, 2)).await, []);
}

#[tokio::test]
async fn informed_recipients_are_asked_once_consent_is_required() {
    let scene = Scene::new(0, 0, false).await;
    let to = "victim@x.example";
    let told = scene.sent(to, at(0, 0)).await;
    let settings = scene.recipients.inner.settings.get();
    let confirming = |confirm_foreign| {
        let settings = RecipientSettings { confirm_foreign, ..(*settings).clone() };
        scene.recipients.set_settings(settings);
    };
    confirming(true);
    // Neither while the recipient may answer, nor until it may be asked again.
    for now in [at(8 * 24, 0), at(8 * 24, 1)] {
        assert!(waits_until(&scene.clear(&[to], now).await).is_some());
        assert_eq!(scene.asked().len(), 1, "it is asked, once");
    }
    assert!(!scene.recipients.answer(&token(&told[0].text), true, at(8 * 24, 2)).await.unwrap());
    confirming(false);
    assert_eq!(scene.sent(to, at(8 * 24, 3)).await, [], "the question told it who has mails sent");
    confirming(true);
    assert!(waits_until(&scene.clear(&[to], at(8 * 24, 4)).await).is_some());
    assert!(
        scene.recipients.answer(&token(&scene.asked()[0]), true, at(8 * 24, 5)).await.unwrap()
    );
    assert_eq!(scene.sent(to, at(8 * 24, 6)).await, []);
}

#[tokio::test]
async fn a_stranger_that_does_not_agree_in_time_is_left_in_peace_for_a_month() {
    let scene = Scene::new(0, 0, true).await;
    let to = ["victim@x.example"];
    scene.clear(&to, at(0, 0)).await;
    let token = token(&scene.asked()[0]);
    let (week, month) = (at(7 * 24, 0), at(30 * 24, 0));
    let never = scene.clear(&to, week).await;
    assert!(matches!(never, MailClearance::Refused { reason: "unconfirmed", .. }), "{never:?}");
    assert!(!scene.recipients.answer(&token, true, week).await.unwrap(), "it is too late");
    assert!(waits_until(&scene.clear(&to, month).await).is_some());
    assert_eq!(scene.asked().len(), 2);
    assert!(!scene.recipients.answer(&token, true, month).await.unwrap(), "the old link ended");
}

#[tokio::test]
async fn recipients_of_a_user_are_bounded_and_refusals_stay_longest() {
    let scene = Scene::new(0, 0, false).await;
    let write = |tx: &WriteTx<'_>| {
        for number in 0..4_i64 {
            let address = format!("{number}@x.example");
            let hash = ContentHash::new(&number.to_le_bytes());
            tx.set_mail_token(UserId(1), &address, hash, at(0, number))?;
            tx.answer_mail_recipient(hash, number != 0, at(0, number))?;
            tx.trim_mail_recipients(UserId(1), 2)?;
        }
        let known = (0..4).map(|number| {
            let found = tx.find_mail_recipient(UserId(1), &format!("{number}@x.example"));
            found.map(|found| found.is_some())
        });
        known.collect::<DbResult<Vec<bool>>>()
    };
    let known = scene.db.write(write).await.unwrap();
    assert_eq!(known, [true, false, false, true]);
}
