//! `/account/devices`: telephones that notifications go to. Applications register them.

use minijinja::context;
use serde_json::Value;

use super::{Call, Member, Page, Posted, api, elements, none, shown};
use crate::http::site::form::see_other;

const DEVICES: &str = "/user/v1/device";

/// `GET /account/devices`.
pub(super) async fn list(member: Member) -> Page {
    let devices = elements(member.get(DEVICES).await?, "devices");
    member.page("account/devices.html", context! { devices => shown(Value::Array(devices)) })
}

/// `GET /account/devices/remove?token=`: asks whether it is meant.
pub(super) async fn confirm(member: Member) -> Page {
    let token = member.parameter("token")?.unwrap_or_default();
    let devices = elements(member.get(DEVICES).await?, "devices");
    let device = devices.into_iter().find(|device| device["token"] == token);
    let device = device.ok_or_else(|| none("This device is not registered."))?;
    member.page("account/device_remove.html", context! { device => shown(device) })
}

/// `POST /account/devices/remove`.
pub(super) async fn remove(posted: Posted) -> Page {
    let token = posted.form.find("token").unwrap_or_default();
    posted.send(Call::delete(format!("{DEVICES}/{}", api::segment(token)))).await?;
    Ok(see_other("/account/devices?done=removed"))
}
