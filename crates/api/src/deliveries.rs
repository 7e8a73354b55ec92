//! Deliveries, and the channels through which items are sent.

use jiff::Timestamp;
use model::account::{ChannelMethod, DeliveryState};
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::access::{Access, KnownCaller};
use crate::answer::{Answer, Done, Json, describe_json_by_status};
use crate::body::{JsonBody, NoBody};
use crate::endpoint::Section;
use crate::limits::SHORT_TEXT_CHARS_MAX;
use crate::{endpoint, property};

/// Most deliveries that one request lists.
pub const DELIVERIES_LISTED_MAX: usize = 10_000;
/// Number of deliveries that a request lists without `size`.
pub const DELIVERIES_SIZE_DEFAULT: usize = 20;
/// Most formats of a channel; an item has fewer than 20 files.
pub const CHANNEL_FORMATS_MAX: usize = 32;

const SECTION: Section = Section {
    name: "Deliveries",
    description: "Delivery channels and the deliveries sent through them. `GET` an item's URL with `channel` to start a \
                  delivery.",
};

/// The access to operations that change channels.
const CHANGES: Access = Access { scopes: Some(&["roles", "profile"]), ..Access::ROLES };

endpoint! {
    /// Deliveries, newest first.
    ///
    /// The caller's deliveries; an administrator gets those of the whole organization. Deliveries are kept for 90 days after they
    /// end.
    #[serde(default)]
    ListDeliveries: GET "/user/v1/delivery", "getDeliveries", KnownCaller, NoBody => Json<Deliveries> {
        /// The maximum number of deliveries.
        #[schemars(range(max = DELIVERIES_LISTED_MAX))]
        pub size: usize,
        /// The number of deliveries to skip.
        #[schemars(range(max = u32::MAX))]
        pub start: u32,
        /// The state of the deliveries.
        #[schemars(schema_with = "property::words::<DeliveryState>")]
        pub state: Option<DeliveryState>,
    }
}

impl Default for ListDeliveries {
    fn default() -> Self {
        Self { size: DELIVERIES_SIZE_DEFAULT, start: 0, state: None }
    }
}

endpoint! {
    /// A delivery.
    ///
    /// The delivery's state, and why the last attempt failed.
    LoadDelivery: GET "/user/v1/delivery/{id}", "getDelivery", KnownCaller, NoBody => Json<Delivery>, NotFound {
        /// The delivery's id.
        pub id: Uuid,
    }

    /// Resend a delivery.
    ///
    /// For example when the receiver has lost the files. This is not a new purchase; the owner's agreements must still cover the
    /// item.
    RepeatDelivery: POST "/user/v1/delivery/{id}", "repeatDelivery", KnownCaller, JsonBody<DeliveryRepetition> => RepeatedDelivery, NotFound {
        /// The delivery's id.
        pub id: Uuid,
    }

    /// The caller's delivery channels.
    ///
    /// Active and inactive channels, sorted by name.
    ListChannels: GET "/user/v1/channel", "getChannels", KnownCaller, NoBody => Json<Vec<Channel>> {}

    /// Create or replace a delivery channel.
    ///
    /// A setting that is sent back as it is shown keeps its value. So does an omitted secret, as long as the destination stays the
    /// same; `null` removes a setting. Channels of the method `directory` belong to the operator: only `active` can be changed,
    /// otherwise the error is `operator_channel`. A token needs the scope `profile`.
    UpdateChannel: PUT "/user/v1/channel/{name}", "updateChannel", KnownCaller: CHANGES, JsonBody<ChannelUpdate> => Json<Channel>, Conflict {
        /// The channel's name: 1 to 64 characters without colons and control characters, and without leading or trailing spaces.
        pub name: String,
    }

    /// Delete a delivery channel.
    ///
    /// Waiting deliveries fail. A token needs the scope `profile`.
    RemoveChannel: DELETE "/user/v1/channel/{name}", "removeChannel", KnownCaller: CHANGES, NoBody => Done, NotFound {
        /// The channel's name.
        pub name: String,
    }

    /// Test a delivery channel.
    ///
    /// Sends `wirephoto-test.txt` through the channel within 10 seconds. A caller can run one test at a time; a second one is
    /// answered 409.
    TestChannel: POST "/user/v1/channel/{name}/test", "testChannel", KnownCaller, NoBody => Json<ChannelTest>, NotFound, Conflict {
        /// The channel's name.
        pub name: String,
    }
}

/// The request to send it again.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliveryRepetition {
    #[schemars(extend("enum" = [true]))]
    pub again: bool,
}

/// 202 with the delivery after it was queued again, 200 if it was queued already.
#[derive(Clone, Copy, Debug)]
pub struct RepeatedDelivery;

impl Answer for RepeatedDelivery {
    type Content = Triggered;

    fn describe(generator: &mut SchemaGenerator, responses: &mut Map<String, Value>) {
        let descriptions = [
            ("200", "The delivery was already queued."),
            ("202", "The delivery has been queued again."),
        ];
        describe_json_by_status::<Triggered>(generator, responses, &descriptions);
    }
}

/// A delivery that was requested.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Triggered {
    pub id: Uuid,
    #[schemars(schema_with = "property::words::<DeliveryState>")]
    pub state: DeliveryState,
    /// `user:<username>:<channel name>`.
    pub channel: String,
    /// The item's `uri`.
    pub item: String,
}

/// The deliveries of one page.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Deliveries {
    pub deliveries: Vec<Delivery>,
}

/// A delivery with its state.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    pub id: Uuid,
    #[schemars(schema_with = "property::words::<DeliveryState>")]
    pub state: DeliveryState,
    /// `user:<username>:<channel name>`.
    pub channel: String,
    /// The item's `uri`.
    pub item: String,
    /// The number of attempts since it was queued.
    pub attempts: u32,
    pub created: Timestamp,
    /// The time of the last change of the state.
    pub updated: Timestamp,
    /// The agreement that the request named.
    pub agreement: Option<i64>,
    /// The time of the next attempt, while it is queued.
    pub next_attempt: Option<Timestamp>,
    pub delivered: Option<Timestamp>,
    /// The reason why the last attempt failed.
    pub error: Option<String>,
}

/// A delivery channel, without secrets.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Channel {
    /// `user:<username>:<channel name>`.
    pub id: String,
    pub name: String,
    #[schemars(schema_with = "property::words::<ChannelMethod>")]
    pub method: ChannelMethod,
    pub formats: Vec<String>,
    /// The settings of the method, such as host, path and password. Responses show `***` in place of secrets.
    pub settings: Map<String, Value>,
    /// True if the channel is active.
    pub active: bool,
    pub made_by: ChannelMaker,
}

/// The creator of the channel. Channels of users can only lead to public addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChannelMaker {
    User,
    Operator,
}

// Deliberately without `Debug`, so that no secret reaches a log.
/// The channel to create or replace.
#[serde_with::skip_serializing_none]
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChannelUpdate {
    #[schemars(schema_with = "property::words::<ChannelMethod>")]
    pub method: ChannelMethod,
    /// The files to send, such as `_NormalHires.jpg` or `.json`.
    #[schemars(
        length(min = 1, max = CHANNEL_FORMATS_MAX),
        inner(length(max = SHORT_TEXT_CHARS_MAX), regex(pattern = property::LINE))
    )]
    pub formats: Vec<String>,
    /// The settings of the method, such as host, path and password. Responses show `***` in place of secrets.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub settings: Map<String, Value>,
    /// An omitted value is kept; a new channel is active.
    #[serde(default)]
    #[schemars(with = "bool")]
    pub active: Option<bool>,
}

/// The result of the test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelTest {
    /// True if the receiver accepted the file.
    pub ok: bool,
    /// The result as a sentence.
    pub message: String,
}
