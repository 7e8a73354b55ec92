//! `/account/devices`: lists and removes the phones that receive push notifications. Applications register them.

use minijinja::context;
use serde_json::Value;

use super::{
    ApiCall, MemberForm, MemberRequest, PageResult, api_client, elements, not_found,
    template_value,
};
use crate::http::form::see_other;

const DEVICES: &str = "/user/v1/device";

pub(super) async fn list(member: MemberRequest) -> PageResult {
    let devices = elements(member.get(DEVICES).await?, "devices");
    member.page(
        "account/devices.html",
        context! { devices => template_value(Value::Array(devices)) },
    )
}

/// `GET /account/devices/remove?token=`: asks for confirmation.
pub(super) async fn confirm(member: MemberRequest) -> PageResult {
    let token = member.parameter("token")?.unwrap_or_default();
    let devices = elements(member.get(DEVICES).await?, "devices");
    // The API lists devices, but has no call that returns a single device.
    let device = devices.into_iter().find(|device| device["token"] == token);
    let device = device.ok_or_else(|| not_found("This device is not registered."))?;
    member.page("account/device_remove.html", context! { device => template_value(device) })
}

pub(super) async fn remove(posted: MemberForm) -> PageResult {
    let token = posted.form.find("token").unwrap_or_default();
    // The push service chooses the token, which may contain any character.
    let device = format!("{DEVICES}/{}", api_client::encode_segment(token));
    posted.call(&ApiCall::delete(device)).await?;
    Ok(see_other("/account/devices?done=removed"))
}
