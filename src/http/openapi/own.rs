//! Components of what users keep themselves: devices, API keys, delivery channels.

use serde_json::json;

use super::schemas::{
    NO_CONTROLS, Part, array, boolean, closed, described, integer, object, one_of, short_text,
    string, time,
};
use crate::runtime::limits::{CHANNEL_FORMATS_MAX, SHORT_TEXT_CHARS_MAX};
use model::account::{ChannelMethod, DeviceKind};

pub(super) fn schemas() -> Part {
    let mut all = devices_and_keys();
    all.extend(channels());
    all
}

fn devices_and_keys() -> Part {
    let device = object(
        &["token", "type", "model", "registered"],
        &[
            ("token", string()),
            ("type", one_of(&DeviceKind::ALL.map(DeviceKind::as_str))),
            ("name", string()),
            ("model", string()),
            ("registered", described(time(), "When it was registered last.")),
        ],
    );
    let told = [("id", integer()), ("name", string()), ("created", time())];
    let names = told.each_ref().map(|(name, _)| *name);
    let mut listed = Vec::from(told.clone());
    listed.push(("used", described(time(), "When it was used last, to some minutes.")));
    let mut made = Vec::from(told.clone());
    made.push(("key", described(string(), "The key itself. It is not told again.")));
    let mut all_names = Vec::from(names);
    all_names.push("key");
    let mut name = short_text();
    name["minLength"] = json!(1);
    vec![
        ("Device", device),
        ("Key", object(&names, &listed)),
        ("MadeKey", object(&all_names, &made)),
        (
            "KeyCreate",
            closed(object(&["name"], &[("name", described(name, "What it is called."))])),
        ),
    ]
}

fn channels() -> Part {
    let method = || one_of(&ChannelMethod::ALL.map(ChannelMethod::as_str));
    let format = json!({
        "type": "string", "maxLength": SHORT_TEXT_CHARS_MAX, "pattern": NO_CONTROLS,
        "examples": ["_NormalHires.jpg"],
    });
    let mut formats = array(format);
    formats["minItems"] = json!(1);
    formats["maxItems"] = json!(CHANNEL_FORMATS_MAX);
    let formats = described(formats, "What is sent of an item: `_NormalHires.jpg`, `.json`.");
    let settings = described(
        json!({ "type": "object" }),
        "What the method needs: host, path, password. In answers `***` stands for a secret.",
    );
    let made_by = described(
        one_of(&["user", "operator"]),
        "Who wrote the settings. A channel of a user leads to public addresses only.",
    );
    let channel = object(
        &["id", "name", "method", "formats", "settings", "active", "madeBy"],
        &[
            ("id", described(string(), "`user:<username>:<channel name>`.")),
            ("name", string()),
            ("method", method()),
            ("formats", array(string())),
            ("settings", settings.clone()),
            ("active", described(boolean(), "Whether it may be used.")),
            ("madeBy", made_by),
        ],
    );
    let update = object(
        &["method", "formats"],
        &[
            ("method", method()),
            ("formats", formats),
            ("settings", settings),
            ("active", described(boolean(), "What is missing stays; a new channel is active.")),
        ],
    );
    let test = object(
        &["ok", "message"],
        &[
            ("ok", described(boolean(), "Whether the other side took the file.")),
            ("message", described(string(), "What happened, in a sentence.")),
        ],
    );
    vec![("Channel", channel), ("ChannelUpdate", closed(update)), ("ChannelTest", test)]
}
