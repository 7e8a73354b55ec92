//! Notifications: saved searches whose new matches are queued, e-mailed or pushed.

use model::MediaType;
use model::account::NotificationKind;
use model::item::DocumentLayout;
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::access::KnownCaller;
use crate::answer::{Answer, Done, Json};
use crate::body::NoBody;
use crate::content::{RecentSpan, any_media_type, streamed_media_types};
use crate::endpoint::Section;
use crate::{endpoint, property};

/// Characters of each text of a notification: title, product codes, address, schedule.
pub const NOTIFICATION_TEXT_CHARS_MAX: usize = 250;
/// Product codes of one notification; the same limit holds for its agreements.
pub const NOTIFICATION_LIST_MAX: usize = 200;
/// Most items that one poll of a stream returns (contract notifications-8).
pub const STREAM_SIZE_MAX: usize = 10_000;
/// Number of items that a poll of a stream returns without `s` (contract notifications-8).
pub const STREAM_SIZE_DEFAULT: usize = 20;
/// Default and maximum wait of a stream poll, in seconds.
pub const STREAM_POLL_S: u32 = 60;
/// The time zone of a schedule without one (contract notifications-18).
pub const SCHEDULE_ZONE_DEFAULT: &str = "Europe/Stockholm";

const SECTION: Section = Section {
    name: "Notifications",
    description: "Saved searches: new matching items are queued, e-mailed or pushed.",
};

endpoint! {
    /// The caller's notifications.
    ///
    /// The notifications for a media type; `_all` lists all of them. Expired streams are not listed.
    #[serde(rename_all = "camelCase")]
    ListNotifications: GET "/content/v1/{mediaType}/notification", "getNotifications", KnownCaller, NoBody => Json<Vec<Notification>> {
        pub media_type: NotificationMediaType,
    }

    /// New push notification.
    ///
    /// Every matching item is pushed to the caller's devices.
    #[serde(rename_all = "camelCase")]
    CreateMobileNotification: POST "/content/v1/{mediaType}/notification/mobile", "addMobileNotification", KnownCaller, NoBody => Json<Notification> {
        pub media_type: NotificationMediaType,
        /// The notification's title, shown in e-mail and push messages.
        #[schemars(length(min = 1, max = NOTIFICATION_TEXT_CHARS_MAX), regex(pattern = property::LINE))]
        pub title: String,
        #[serde(flatten)]
        pub query: NotificationQuery,
    }

    /// New e-mail notification.
    ///
    /// Every matching item is sent as an e-mail.
    #[serde(rename_all = "camelCase")]
    CreateEmailNotification: POST "/content/v1/{mediaType}/notification/email", "addEmailNotification", KnownCaller, NoBody => Json<Notification> {
        pub media_type: NotificationMediaType,
        /// The notification's title, shown in e-mail and push messages.
        #[schemars(length(min = 1, max = NOTIFICATION_TEXT_CHARS_MAX), regex(pattern = property::LINE))]
        pub title: String,
        #[serde(flatten)]
        pub query: NotificationQuery,
        /// The address that e-mail is sent to.
        #[schemars(email, length(max = NOTIFICATION_TEXT_CHARS_MAX), regex(pattern = property::LINE))]
        pub email: String,
    }

    /// New scheduled e-mail notification.
    ///
    /// Items that have matched since the last e-mail are sent together in one e-mail, if there are any.
    #[derive(PartialEq, Eq)]
    #[serde(rename_all = "camelCase")]
    CreateScheduledEmailNotification: POST "/content/v1/{mediaType}/notification/scheduled-email", "addScheduledEmailNotification", KnownCaller, NoBody => Json<Notification> {
        pub media_type: NotificationMediaType,
        /// The notification's title, shown in e-mail and push messages.
        #[schemars(length(min = 1, max = NOTIFICATION_TEXT_CHARS_MAX), regex(pattern = property::LINE))]
        pub title: String,
        #[serde(flatten)]
        pub query: NotificationQuery,
        /// The address that e-mail is sent to.
        #[schemars(email, length(max = NOTIFICATION_TEXT_CHARS_MAX), regex(pattern = property::LINE))]
        pub email: String,
        /// The schedule of the e-mails: a cron expression with five fields, or `@hourly`, `@daily`, `@weekly`,
        /// `@monthly` or `@yearly`.
        #[schemars(length(max = NOTIFICATION_TEXT_CHARS_MAX), regex(pattern = property::LINE))]
        #[schemars(example = "0 7 * * 1-5")]
        pub schedule: String,
        /// The time zone of the schedule.
        #[serde(default = "schedule_zone_default")]
        #[schemars(length(max = NOTIFICATION_TEXT_CHARS_MAX), regex(pattern = property::LINE))]
        pub timezone: String,
        /// Only items from the past hour, day, week, month or year.
        #[serde(default)]
        #[schemars(schema_with = "property::optional_words::<RecentSpan>")]
        pub tr: Option<String>,
    }
}

fn schedule_zone_default() -> String {
    SCHEDULE_ZONE_DEFAULT.to_owned()
}

endpoint! {
    /// New stream notification.
    ///
    /// Matching items are queued as they arrive. A stream that is not read for five minutes expires.
    #[serde(rename_all = "camelCase")]
    CreateNotificationStream: POST "/content/v1/{mediaType}/notification/stream", "addNotificationStream", KnownCaller, NoBody => Json<Notification> {
        pub media_type: NotificationMediaType,
        /// The notification's name.
        #[serde(default)]
        #[schemars(length(max = NOTIFICATION_TEXT_CHARS_MAX), regex(pattern = property::LINE))]
        pub title: String,
        #[serde(flatten)]
        pub query: NotificationQuery,
    }

    /// Replace push notification.
    ///
    /// Replaces everything except type, media type and queue.
    ReplaceMobileNotification: PUT "/content/v1/{mediaType}/notification/{id}/mobile", "updateMobileNotification", KnownCaller, NoBody => Json<Notification>, NotFound {
        /// The notification's id. The media type in the path does not matter.
        pub id: Uuid,
        #[serde(flatten)]
        pub notification: CreateMobileNotification,
    }

    /// Replace e-mail notification.
    ///
    /// Replaces everything except type, media type and queue.
    ReplaceEmailNotification: PUT "/content/v1/{mediaType}/notification/{id}/email", "updateEmailNotification", KnownCaller, NoBody => Json<Notification>, NotFound {
        /// The notification's id. The media type in the path does not matter.
        pub id: Uuid,
        #[serde(flatten)]
        pub notification: CreateEmailNotification,
    }

    /// Replace scheduled e-mail notification.
    ///
    /// Replaces everything except type, media type and queue.
    ReplaceScheduledEmailNotification: PUT "/content/v1/{mediaType}/notification/{id}/scheduled-email", "updateScheduledEmailNotification", KnownCaller, NoBody => Json<Notification>, NotFound {
        /// The notification's id. The media type in the path does not matter.
        pub id: Uuid,
        #[serde(flatten)]
        pub notification: CreateScheduledEmailNotification,
    }

    /// Replace stream notification.
    ///
    /// Replaces everything except type, media type and queue.
    #[serde(rename_all = "camelCase")]
    ReplaceNotificationStream: PUT "/content/v1/{mediaType}/notification/{id}/stream", "updateNotificationStream", KnownCaller, NoBody => Json<Notification>, NotFound {
        pub media_type: NotificationMediaType,
        /// The notification's id. The media type in the path does not matter.
        pub id: Uuid,
        /// The notification's title, shown in e-mail and push messages.
        #[schemars(length(min = 1, max = NOTIFICATION_TEXT_CHARS_MAX), regex(pattern = property::LINE))]
        pub title: String,
        #[serde(flatten)]
        pub query: NotificationQuery,
        /// Only items from the past hour, day, week, month or year.
        #[serde(default)]
        #[schemars(schema_with = "property::optional_words::<RecentSpan>")]
        pub tr: Option<String>,
    }

    /// Read a stream.
    ///
    /// A long poll. Returns items in order of arrival and removes them from the queue; each item is returned once, even to
    /// several concurrent readers. If the response cannot be sent completely, its items stay in the queue. If it was sent
    /// completely but lost on the way, they do not.
    #[serde(rename_all = "camelCase")]
    ReadNotificationStream: GET "/content/v1/{mediaType}/notification/{id}/stream", "getNotificationStream", KnownCaller, NoBody => StreamedItems, NotFound {
        pub media_type: NotificationMediaType,
        /// The notification's id. The media type in the path does not matter.
        pub id: Uuid,
        /// The maximum number of items.
        #[serde(default = "stream_size_default")]
        #[schemars(range(min = 1, max = STREAM_SIZE_MAX))]
        pub s: usize,
        /// `bare` returns what a list needs: no body text and one thumbnail.
        #[serde(default, with = "property::Word")]
        #[schemars(schema_with = "property::words::<DocumentLayout>")]
        pub layout: DocumentLayout,
        /// The number of seconds to wait for an item.
        #[serde(default = "stream_poll_s")]
        #[schemars(range(min = 1, max = STREAM_POLL_S))]
        pub wait: u32,
    }
}

fn stream_size_default() -> usize {
    STREAM_SIZE_DEFAULT
}

fn stream_poll_s() -> u32 {
    STREAM_POLL_S
}

endpoint! {
    /// Delete a notification.
    ///
    /// Its queue is deleted too. Deleting a stream soon after it expired is 200, later 404.
    #[serde(rename_all = "camelCase")]
    RemoveNotification: DELETE "/content/v1/{mediaType}/notification/{id}", "removeNotification", KnownCaller, NoBody => Done, NotFound {
        pub media_type: NotificationMediaType,
        /// The notification's id. The media type in the path does not matter.
        pub id: Uuid,
    }
}

/// The query that items have to match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotificationQuery {
    /// The search query: all words must match. Supports `OR` (`||`), `AND` (`&&`), `NOT` (`-`, `!`), parentheses, "phrases",
    /// `field:value`, `prefix*`, `*`, and for dates and numbers `field:[a TO b]` and `field:>a`. The address or id of an item
    /// finds that item.
    #[schemars(regex(pattern = property::LINE))]
    pub q: Option<String>,
    /// Product codes; items with any of them are found. A leading `-` excludes a product. A list: `p=a,b`, `p=a&p=b` or
    /// `p[]=a&p[]=b`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = NOTIFICATION_LIST_MAX))]
    #[schemars(inner(length(max = NOTIFICATION_TEXT_CHARS_MAX), regex(pattern = property::LINE)))]
    pub p: Vec<String>,
    /// Ids of the caller's agreements; items that any of them covers are found. A list: `agr=a,b`, `agr=a&agr=b` or
    /// `agr[]=a&agr[]=b`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = NOTIFICATION_LIST_MAX))]
    pub agr: Vec<i64>,
}

// `None` stands for every media type.
/// The media type; `_all` searches all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct NotificationMediaType(
    #[serde(with = "any_media_type")]
    #[schemars(schema_with = "streamed_media_types")]
    pub Option<MediaType>,
);

/// The notification.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Notification {
    pub id: Uuid,
    pub title: String,
    #[serde(rename = "type", with = "property::Word")]
    #[schemars(schema_with = "property::words::<NotificationKind>")]
    pub kind: NotificationKind,
    pub media_type: NotificationMediaType,
    /// The query.
    pub q: Option<String>,
    /// Product codes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub p: Vec<String>,
    /// Agreements of the caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agr: Vec<i64>,
    /// Only items from this period.
    #[serde(default)]
    #[schemars(schema_with = "property::optional_words::<RecentSpan>")]
    pub tr: Option<String>,
    /// The cron expression as it was given.
    pub schedule: Option<String>,
    /// The time zone of the schedule.
    pub timezone: Option<String>,
    /// The address that e-mail is sent to.
    pub email: Option<String>,
}

/// 200 with the items of a stream as JSON, a `StreamResult`, which the server writes from the stored documents.
#[derive(Clone, Copy, Debug)]
pub struct StreamedItems;

impl Answer for StreamedItems {
    type Content = Value;

    fn describe(_: &mut SchemaGenerator, responses: &mut Map<String, Value>) {
        let response = json!({
            "description": "The items, or none if the wait ended.",
            "content": {
                "application/json": { "schema": { "$ref": "#/components/schemas/StreamResult" } },
            },
        });
        responses.insert("200".to_owned(), response);
    }
}
