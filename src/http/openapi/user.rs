//! What `http/api/user.rs`, `http/api/orders.rs` and `http/api/deliveries.rs` serve (Spec §4 User).

use serde_json::{Value, json};

use super::{
    content::marked,
    operation::{Access, Answer, Operation, Tag, delete, get, path, post, put, query, required},
    schemas::{NO_CONTROLS, array, integer, one_of, reference, short_text},
};
use crate::runtime::limits::{
    DELIVERIES_LISTED_MAX, DELIVERIES_SIZE_DEFAULT, DEVICE_TOKEN_BYTES_MAX, ORDERS_LISTED_MAX,
    ORDERS_SIZE_DEFAULT,
};
use model::account::{DeliveryState, DeviceKind, OrderStatus};
use model::limits::CHANNEL_NAME_CHARS_MAX;

/// Statuses of refusals that every operation of a caller has.
const REFUSED: [u16; 4] = [400, 401, 403, 503];

pub(super) fn operations() -> Vec<Operation> {
    let mut all = Vec::from(caller());
    all.extend(profile());
    all.extend(devices());
    all.extend(keys());
    all.extend(orders());
    all.extend(deliveries());
    all.extend(channels());
    all.extend(organization());
    all
}

fn of_caller(operation: Operation) -> Operation {
    operation.belongs(Tag::User, Access::Caller).refuses(&REFUSED)
}

fn caller() -> [Operation; 2] {
    let agreements =
        Answer::json("The agreements in force.", array(reference("DeprecatedAgreement")));
    let agreements = get("/user/v1/agreement", "getAgreements")
        .says(
            "The caller's agreements, as an older list",
            "Use `GET /user/v1/user` instead: this list has no word for prepaid agreements.",
        )
        .answers(200, marked(agreements))
        .deprecated();
    let user = get("/user/v1/user", "getUser")
        .says(
            "The caller",
            "Name, address, agreements and access levels. Service accounts are not supported.",
        )
        .gives("The user.", reference("User"));
    [of_caller(agreements), of_caller(user)]
}

fn profile() -> [Operation; 4] {
    let names = || {
        path(
            "property",
            "Names of properties with commas between them.",
            json!({ "type": "string", "pattern": "[^,\\s]" }),
        )
    };
    let whole = get("/user/v1/profile", "getProfile")
        .says("The caller's profile", "An object that applications keep for the user.")
        .gives("The profile.", reference("Profile"));
    let replace = put("/user/v1/profile", "updateProfile")
        .says("Replace the profile", "The whole of it: what the body does not name is gone.")
        .json_body("The new profile.", reference("Profile"))
        .gives_text("It was replaced.")
        .refuses(&[413]);
    let part = get("/user/v1/profile/{property}", "getProfileByProperty")
        .says("Some properties of the profile", "Those that are there.")
        .takes(names())
        .gives("An object with the properties.", reference("Profile"));
    let patch = put("/user/v1/profile/{property}", "updateProfileByProperty")
        .says(
            "Change some properties of the profile",
            "Writes the properties that both the path and the body name. The others stay.",
        )
        .takes(names())
        .json_body("The new values.", reference("Profile"))
        .gives_text("They were written.")
        .refuses(&[413]);
    [whole, replace, part, patch].map(of_caller)
}

fn devices() -> [Operation; 3] {
    let token = || {
        let pattern = NO_CONTROLS.replace('*', "+");
        let schema = json!({
            "type": "string", "minLength": 1, "maxLength": DEVICE_TOKEN_BYTES_MAX,
            "pattern": pattern,
        });
        let description =
            format!("What the push service knows it by, {DEVICE_TOKEN_BYTES_MAX} bytes at most.");
        path("token", &description, schema)
    };
    let list = get("/user/v1/device", "getDevices")
        .says("The caller's mobile devices", "The one registered last at the end.")
        .gives("The devices.", array(reference("Device")));
    let kinds = one_of(&DeviceKind::ALL.map(DeviceKind::as_str));
    let mut model = short_text();
    model["minLength"] = json!(1);
    let register = put("/user/v1/device/{token}", "updateDevice")
        .says(
            "Register a mobile device",
            "Notifications of the type `mobile` are sent to it. A token belongs to one user.",
        )
        .takes(token())
        .takes(required("type", "The push service.", kinds))
        .takes(query("name", "What the user calls it.", short_text()))
        .takes(required("model", "What it is.", model))
        .gives_text("It is registered.");
    let remove = delete("/user/v1/device/{token}", "removeDevice")
        .says("Unregister a mobile device", "A token that is not registered is no error.")
        .takes(token())
        .gives_text("It is not registered any more.");
    [list, register, remove].map(of_caller)
}

fn keys() -> [Operation; 3] {
    let list = get("/user/v1/key", "getApiKeys")
        .says("The caller's API keys", "Those that were not revoked, without the keys themselves.")
        .gives("The keys.", array(reference("Key")));
    let make = post("/user/v1/key", "addApiKey")
        .says(
            "Make an API key",
            "It carries the caller's rights without the scope `admin`. This is the only time that \
             it is told. A caller with an API key gets `api_key_unsupported`: keys are made after \
             a login. A token needs every scope that a key has, else `insufficient_scope`.",
        )
        .json_body("What it is called.", reference("KeyCreate"))
        .gives("The key.", reference("MadeKey"))
        .refuses(&[409, 413]);
    let revoke = delete("/user/v1/key/{id}", "removeApiKey")
        .says(
            "Revoke an API key",
            "For good; from now on it is answered 401. A token needs the scope `profile`.",
        )
        .takes(path("id", "The key's number.", integer()))
        .gives_text("It is revoked.")
        .refuses(&[404]);
    [
        of_caller(list),
        make.belongs(Tag::User, Access::Whole).refuses(&REFUSED),
        revoke.belongs(Tag::User, Access::Profile).refuses(&REFUSED),
    ]
}

fn count(name: &str, description: &str, max: i64, default: i64) -> Value {
    let schema = json!({ "type": "integer", "minimum": 0, "maximum": max, "default": default });
    query(name, description, schema)
}

fn orders() -> [Operation; 3] {
    let max = i64::try_from(ORDERS_LISTED_MAX).unwrap_or(i64::MAX);
    let default = i64::try_from(ORDERS_SIZE_DEFAULT).unwrap_or_default();
    let mut status = one_of(&OrderStatus::ALL.map(OrderStatus::as_str));
    status["default"] = json!(OrderStatus::All.as_str());
    let list = get("/user/v1/order", "getOrder")
        .says(
            "Orders, the latest first",
            "Those of the caller; an administrator gets all of the organization. Service accounts \
             are not supported.",
        )
        .takes(count("size", "Orders to list.", max, default))
        .takes(count("start", "Orders to pass over.", i64::from(u32::MAX), 0))
        .takes(query("status", "Whether their use was reported.", status))
        .gives("The orders.", reference("Orders"));
    let load = get("/user/v1/order/{id}", "getOrderById")
        .says(
            "An order",
            "One that the list shows the caller. Service accounts are not supported.",
        )
        .takes(path("id", "The order's number.", integer()))
        .gives("The order.", reference("Order"))
        .refuses(&[404]);
    let report = put("/user/v1/order/{id}", "updateOrder")
        .says(
            "Report the use of an order",
            "Only an order that was not reported yet; else `order_already_reported`.",
        )
        .takes(path("id", "The order's number.", integer()))
        .json_body("The report.", reference("OrderUpdate"))
        .gives("The order.", reference("Order"))
        .refuses(&[404, 413]);
    [list, load, report]
        .map(|operation| operation.belongs(Tag::Order, Access::Caller).refuses(&REFUSED))
}

fn deliveries() -> [Operation; 3] {
    let max = i64::try_from(DELIVERIES_LISTED_MAX).unwrap_or(i64::MAX);
    let default = i64::try_from(DELIVERIES_SIZE_DEFAULT).unwrap_or_default();
    let state = one_of(&DeliveryState::ALL.map(DeliveryState::as_str));
    let list = get("/user/v1/delivery", "getDeliveries")
        .says(
            "Deliveries, the latest first",
            "Those of the caller; an administrator gets all of the organization. They are kept \
             for 90 days after their end.",
        )
        .takes(count("size", "Deliveries to list.", max, default))
        .takes(count("start", "Deliveries to pass over.", i64::from(u32::MAX), 0))
        .takes(query("state", "How far they got.", state))
        .gives("The deliveries.", reference("Deliveries"));
    let id = json!({ "type": "string", "format": "uuid" });
    let load = get("/user/v1/delivery/{id}", "getDelivery")
        .says("A delivery", "How far it got, and why the last try failed.")
        .takes(path("id", "The delivery's id.", id.clone()))
        .gives("The delivery.", reference("Delivery"))
        .refuses(&[404]);
    let again = json!({
        "type": "object", "additionalProperties": false, "required": ["again"],
        "properties": { "again": { "type": "boolean", "enum": [true] } },
    });
    let triggered = |text| Answer::json(text, reference("Triggered"));
    let repeat = post("/user/v1/delivery/{id}", "repeatDelivery")
        .says(
            "Send a delivery once more",
            "For a receiver that lost the files, say. Nothing is bought; the agreements of its owner must \
             still cover the item.",
        )
        .takes(path("id", "The delivery's id.", id))
        .json_body("What is asked for.", again)
        .answers(202, triggered("The delivery is in the queue again."))
        .answers(200, triggered("The delivery was in the queue."))
        .refuses(&[404, 413]);
    [list, load, repeat]
        .map(|operation| operation.belongs(Tag::Delivery, Access::Caller).refuses(&REFUSED))
}

fn channels() -> [Operation; 4] {
    let name = || {
        let schema = json!({
            "type": "string", "minLength": 1, "maxLength": CHANNEL_NAME_CHARS_MAX,
            "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f:]+$",
        });
        path("name", "The channel's name: no colon, no space around it.", schema)
    };
    let list = get("/user/v1/channel", "getChannels")
        .says("The caller's delivery channels", "Active or not, in the order of their names.")
        .gives("The channels, without secrets.", array(reference("Channel")));
    let write = put("/user/v1/channel/{name}", "updateChannel")
        .says(
            "Make or replace a delivery channel",
            "A setting that is given as it is shown stays as it is, and so does a secret that is \
             left out, as long as the channel leads to the same place; `null` removes a setting. \
             Channels of the method `directory` are the operator's: of them only `active` can be \
             changed, else `operator_channel`. A token needs the scope `profile`.",
        )
        .takes(name())
        .json_body("The channel.", reference("ChannelUpdate"))
        .gives("The channel.", reference("Channel"))
        .refuses(&[409, 413]);
    let remove = delete("/user/v1/channel/{name}", "removeChannel")
        .says(
            "Remove a delivery channel",
            "What still waits for it fails. A token needs the scope `profile`.",
        )
        .takes(name())
        .gives_text("It is removed.")
        .refuses(&[404]);
    let test = post("/user/v1/channel/{name}/test", "testChannel")
        .says(
            "Test a delivery channel",
            "Hands `wirephoto-test.txt` through the channel now, which takes 10 seconds at most. \
             A caller has one test at a time, else 409.",
        )
        .takes(name())
        .gives("What happened.", reference("ChannelTest"))
        .refuses(&[404, 409]);
    let of =
        |operation: Operation, access| operation.belongs(Tag::Delivery, access).refuses(&REFUSED);
    [
        of(list, Access::Caller),
        of(write, Access::Profile),
        of(remove, Access::Profile),
        of(test, Access::Caller),
    ]
}

fn organization() -> [Operation; 5] {
    let id = || path("id", "The user's number.", integer());
    let own = get("/user/v1/organization", "getOrganization")
        .says("The caller's organization", "Name and addresses.")
        .gives("The organization.", reference("Organization"))
        .refuses(&[404])
        .belongs(Tag::Organization, Access::Caller);
    let list = get("/user/v1/organization/user", "getOrganizationUsers")
        .says("The organization's users", "All of them, active or not.")
        .gives("The users.", array(reference("UserBase")));
    let create = post("/user/v1/organization/user", "addOrganizationUser")
        .says(
            "Make a user",
            "The address in lower case becomes the user name: `userName_in_use` where somebody \
             has it. `phoneNumber_direct_invalid` says that `direct` is no telephone number.",
        )
        .json_body("The user.", reference("UserCreate"))
        .gives("The user.", reference("User"))
        .refuses(&[409, 413]);
    let load = get("/user/v1/organization/user/{id}", "getOrganizationUser")
        .says("A user of the organization", "By its number.")
        .takes(id())
        .gives("The user.", reference("User"))
        .refuses(&[404]);
    let update = put("/user/v1/organization/user/{id}", "updateOrganizationUser")
        .says("Change a user of the organization", "What the body does not name stays.")
        .takes(id())
        .json_body("What changes.", reference("UserUpdate"))
        .gives("The user.", reference("User"))
        .refuses(&[404, 413]);
    let of_admin = |operation: Operation| operation.belongs(Tag::Organization, Access::Admin);
    [own, of_admin(list), of_admin(create), of_admin(load), of_admin(update)]
        .map(|operation| operation.refuses(&REFUSED))
}
