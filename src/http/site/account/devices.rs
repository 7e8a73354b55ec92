//! `/account/devices`: lists and removes the phones that receive push notifications. Applications register them.

use minijinja::{context, value::Serde};

use super::{MemberForm, MemberRequest, PageResult, not_found};
use crate::http::form::see_other;
use api::user::{ListDevices, RemoveDevice};

pub(super) async fn list(member: MemberRequest) -> PageResult {
    let devices = member.ask(&ListDevices {}).await?;
    member.page("account/devices.html", context! { devices => Serde(devices) })
}

/// `GET /account/devices/remove?token=`: asks for confirmation.
pub(super) async fn confirm(member: MemberRequest) -> PageResult {
    let token = member.parameter("token")?.unwrap_or_default();
    let devices = member.ask(&ListDevices {}).await?;
    // The API lists devices, but has no call that returns a single device.
    let device = devices.into_iter().find(|device| device.token == token);
    let device = device.ok_or_else(|| not_found("This device is not registered."))?;
    member.page("account/device_remove.html", context! { device => Serde(device) })
}

pub(super) async fn remove(posted: MemberForm) -> PageResult {
    let token = posted.form.text("token");
    posted.ask(&RemoveDevice { token }).await?;
    Ok(see_other("/account/devices?done=removed"))
}
