//! What `http/api/content/notifications` serves (Spec §4 Notifications).

use serde_json::{Value, json};

use super::content::{layout, media_type, selection};
use super::operation::{Access, Operation, Tag, delete, get, path, post, put, query, required};
use super::schemas::{Part, array, described, integer, object, one_of, reference, string};
use crate::runtime::limits::{HITS_DEFAULT, HITS_MAX, NOTIFICATION_TEXT_CHARS_MAX, STREAM_POLL_S};
use model::MediaType;
use model::account::NotificationKind;

/// The least that a `PUT` or `POST` may be refused with.
const REFUSED: [u16; 4] = [400, 401, 403, 503];

pub(super) fn operations() -> Vec<Operation> {
    let list = get("/content/v1/{mediaType}/notification", "getNotifications")
        .says(
            "The caller's notifications",
            "Those of a media type; at `_all` those of every one. Streams that expired are gone.",
        )
        .gives("The notifications.", array(reference("Notification")));
    let mut all = vec![of_caller(list)];
    all.extend(makers());
    all.extend(replacers());
    all.push(of_caller(read()));
    let remove = delete("/content/v1/{mediaType}/notification/{id}", "removeNotification")
        .says("Remove a notification", "What waits in its queue goes with it.")
        .takes(id())
        .gives_text("It is gone.")
        .refuses(&[404]);
    all.push(of_caller(remove));
    all
}

fn of_caller(operation: Operation) -> Operation {
    let types: Vec<MediaType> =
        MediaType::ALL.into_iter().filter(|one| *one != MediaType::Stockfoto).collect();
    operation
        .belongs(Tag::Notification, Access::Caller)
        .takes(media_type(&types))
        .refuses(&REFUSED)
}

fn id() -> Value {
    let schema = json!({ "type": "string", "format": "uuid" });
    path("id", "The notification's id. Any media type in the path finds it.", schema)
}

fn line() -> Value {
    json!({
        "type": "string", "maxLength": NOTIFICATION_TEXT_CHARS_MAX,
        "pattern": super::schemas::NO_CONTROLS,
    })
}

fn title() -> Value {
    let mut schema = line();
    schema["minLength"] = json!(1);
    required("title", "What the user calls it; mails and push messages show it.", schema)
}

fn email() -> Value {
    let schema = json!({
        "type": "string", "format": "email", "maxLength": NOTIFICATION_TEXT_CHARS_MAX,
    });
    required("email", "Where mails go.", schema)
}

fn schedule() -> [Value; 3] {
    let mut zone = line();
    zone["default"] = json!("Europe/Stockholm");
    let cron = "When mails are sent: a cron expression of five fields, or `@hourly`, `@daily`, \
                `@weekly`, `@monthly` or `@yearly`.";
    [
        required("schedule", cron, json!({ "type": "string", "examples": ["0 7 * * 1-5"] })),
        query("timezone", "Name of the time zone in which the schedule is read.", zone),
        recent(),
    ]
}

/// The last hour, day, week, month and year.
const RECENT: [&str; 5] = ["h", "d", "w", "m", "y"];

fn recent() -> Value {
    let description = "Only items of the last hour, day, week, month or year.";
    query("tr", description, one_of(&RECENT))
}

fn inputs(operation: Operation, kind: NotificationKind, replaces: bool) -> Operation {
    let operation = operation.takes_all(selection());
    match kind {
        NotificationKind::Mobile => operation.takes(title()),
        NotificationKind::Email => operation.takes(title()).takes(email()),
        NotificationKind::ScheduledEmail => {
            operation.takes(title()).takes(email()).takes_all(schedule())
        }
        NotificationKind::Stream if replaces => operation.takes(title()).takes(recent()),
        NotificationKind::Stream => {
            let mut schema = line();
            schema["default"] = json!("");
            operation.takes(query("title", "What the user calls it.", schema))
        }
    }
}

/// What each kind does.
fn means(kind: NotificationKind) -> &'static str {
    match kind {
        NotificationKind::Mobile => "Every matching item is pushed to the caller's devices.",
        NotificationKind::Email => "Every matching item is sent as a mail.",
        NotificationKind::ScheduledEmail => {
            "What came in since the last mail is sent as one, if there is something."
        }
        NotificationKind::Stream => {
            "Matching items are queued as they come in. A stream that is not used for five \
             minutes is gone."
        }
    }
}

/// What a notification of a kind is called in the summaries of its operations.
fn called(kind: NotificationKind) -> &'static str {
    match kind {
        NotificationKind::Mobile => "push notification",
        NotificationKind::Email => "e-mail notification",
        NotificationKind::ScheduledEmail => "scheduled e-mail notification",
        NotificationKind::Stream => "stream notification",
    }
}

fn makers() -> Vec<Operation> {
    let make = |(path, id, kind): (&'static str, &str, NotificationKind)| {
        let operation = post(path, id).says(&format!("New {}", called(kind)), means(kind));
        let made = operation.gives("The notification.", reference("Notification"));
        of_caller(inputs(made, kind, false))
    };
    [
        (
            "/content/v1/{mediaType}/notification/mobile",
            "addMobileNotification",
            NotificationKind::Mobile,
        ),
        (
            "/content/v1/{mediaType}/notification/email",
            "addEmailNotification",
            NotificationKind::Email,
        ),
        (
            "/content/v1/{mediaType}/notification/scheduled-email",
            "addScheduledEmailNotification",
            NotificationKind::ScheduledEmail,
        ),
        (
            "/content/v1/{mediaType}/notification/stream",
            "addNotificationStream",
            NotificationKind::Stream,
        ),
    ]
    .map(make)
    .into()
}

fn replacers() -> Vec<Operation> {
    let replace = |(path, name, kind): (&'static str, &str, NotificationKind)| {
        let operation = put(path, name)
            .says(
                &format!("Replace {}", called(kind)),
                "Everything is replaced but its type, its media type and its queue.",
            )
            .takes(id())
            .gives("The notification.", reference("Notification"))
            .refuses(&[404]);
        of_caller(inputs(operation, kind, true))
    };
    [
        (
            "/content/v1/{mediaType}/notification/{id}/mobile",
            "updateMobileNotification",
            NotificationKind::Mobile,
        ),
        (
            "/content/v1/{mediaType}/notification/{id}/email",
            "updateEmailNotification",
            NotificationKind::Email,
        ),
        (
            "/content/v1/{mediaType}/notification/{id}/scheduled-email",
            "updateScheduledEmailNotification",
            NotificationKind::ScheduledEmail,
        ),
        (
            "/content/v1/{mediaType}/notification/{id}/stream",
            "updateNotificationStream",
            NotificationKind::Stream,
        ),
    ]
    .map(replace)
    .into()
}

fn read() -> Operation {
    let size =
        json!({ "type": "integer", "minimum": 1, "maximum": HITS_MAX, "default": HITS_DEFAULT });
    let wait = json!({
        "type": "integer", "minimum": 1, "maximum": STREAM_POLL_S, "default": STREAM_POLL_S,
    });
    get("/content/v1/{mediaType}/notification/{id}/stream", "getNotificationStream")
        .says(
            "Read a stream",
            "A long poll. Gives items and takes them off the queue, in the order in which they \
             came in; each is given once, also where several read at a time. An answer that does \
             not get through leaves its items in the queue. One that was sent whole, and was \
             lost on its way, does not.",
        )
        .takes(id())
        .takes(query("s", "Items to give.", size))
        .takes(layout())
        .takes(query("wait", "Seconds to wait for an item.", wait))
        .gives("The items, or none when the wait is over.", reference("StreamResult"))
        .refuses(&[404])
}

pub(super) fn schemas() -> Part {
    let kinds = one_of(&NotificationKind::ALL.map(NotificationKind::as_str));
    let mut types: Vec<&str> = vec!["_all"];
    types.extend(
        MediaType::ALL.iter().filter(|one| **one != MediaType::Stockfoto).map(|one| one.as_str()),
    );
    let notification = object(
        &["id", "type", "mediaType"],
        &[
            ("id", json!({ "type": "string", "format": "uuid" })),
            ("title", string()),
            ("type", kinds),
            ("mediaType", one_of(&types)),
            ("q", described(string(), "The query.")),
            ("p", described(array(string()), "Product codes.")),
            ("agr", described(array(integer()), "Agreements of the caller.")),
            ("tr", described(one_of(&RECENT), "Only items of that time.")),
            ("schedule", described(string(), "A cron expression, as it was given.")),
            ("timezone", described(string(), "The zone in which the schedule is read.")),
            ("email", described(string(), "Where mails go.")),
        ],
    );
    vec![("Notification", notification)]
}
