//! `/account/channels`: where things are sent, and whether it works.

use axum::http::StatusCode;
use minijinja::{Value as PageValue, context};
use serde_json::{Value, json};

use super::channel_form::{Draft, is_known, offered};
use super::{
    Call, FreshMember, FreshPosted, Member, Page, Posted, Problem, Refusal, Site, api, elements,
    mistakes, none, of_form, shown, status_of,
};
use crate::http::site::form::see_other;

const CHANNELS: &str = "/user/v1/channel";

/// `GET /account/channels`.
pub(super) async fn list(member: Member) -> Page {
    page(&member, StatusCode::OK, PageValue::from(())).await
}

/// The list; `tested` is how the test of one of them ended.
async fn page(site: &Site, status: StatusCode, tested: PageValue) -> Page {
    let mut channels = load(site).await?;
    for channel in &mut channels {
        let method = channel["method"].as_str().unwrap_or_default();
        channel["known"] = json!(is_known(method));
    }
    let context =
        context! { channels => shown(Value::Array(channels)), methods => offered(), tested };
    site.page_with(status, "account/channels.html", context)
}

async fn load(site: &Site) -> Result<Vec<Value>, Refusal> {
    Ok(elements(site.get(CHANNELS).await?, "channels"))
}

/// The visitor's channel of that name.
async fn find(site: &Site, name: &str) -> Result<Option<Value>, Refusal> {
    Ok(load(site).await?.into_iter().find(|channel| channel["name"] == name))
}

fn missing() -> Problem {
    none("This channel does not exist.")
}

fn address(name: &str) -> String {
    format!("{CHANNELS}/{}", api::segment(name))
}

/// `GET /account/channels/edit`: `?name=` changes a channel, `?method=` makes one.
pub(super) async fn edit(member: FreshMember) -> Page {
    let Some(name) = member.parameter("name")? else {
        let method = member.parameter("method")?.filter(|method| offered().contains(method));
        let Some(method) = method else { return Ok(see_other("/account/channels")) };
        return form(&member, &Draft::empty(method), None);
    };
    let channel = find(&member, name).await?.ok_or_else(missing)?;
    if !is_known(channel["method"].as_str().unwrap_or_default()) {
        return Err(missing());
    }
    form(&member, &Draft::of(&channel), None)
}

fn form(site: &Site, draft: &Draft, refusal: Option<&Refusal>) -> Page {
    let context = context! {
        name => draft.name.clone(),
        method => draft.method.clone(),
        active => draft.is_active,
        there => draft.is_there,
        fields => shown(draft.fields()),
        ticks => shown(draft.ticks()),
        others => draft.others(),
        mistakes => mistakes(refusal),
    };
    site.page_with(status_of(refusal), "account/channel.html", context)
}

/// `POST /account/channels/edit`.
pub(super) async fn save(posted: FreshPosted) -> Page {
    let draft = Draft::typed(&posted.form);
    if !is_known(&draft.method) {
        return Err(none("This method does not exist."));
    }
    if let Some(refusal) = refuse(&posted, &draft).await? {
        return form(&posted, &draft, Some(&refusal));
    }
    let call = Call::put(address(&draft.name));
    match posted.ask(&call.clone().json(draft.body())).await {
        Ok(_) => {
            posted.note(call.json(draft.told()));
            let done = if draft.is_there { "saved" } else { "created" };
            Ok(see_other(&format!("/account/channels?done={done}")))
        }
        Err(refusal) => form(&posted, &draft, Some(&of_form(refusal)?)),
    }
}

/// What the API would not notice: a name is missing, or a new channel would take the place of
/// another one.
async fn refuse(site: &Site, draft: &Draft) -> Result<Option<Refusal>, Problem> {
    let refusal = |status, code: &str, message: &str| Refusal {
        status,
        message: message.to_owned(),
        errors: vec![api::Wrong {
            error_code: code.to_owned(),
            path: "name".to_owned(),
            message: message.to_owned(),
        }],
    };
    if draft.name.is_empty() {
        let message = "Enter a name for the channel.";
        return Ok(Some(refusal(StatusCode::BAD_REQUEST, "required", message)));
    }
    if !draft.is_there && find(site, &draft.name).await?.is_some() {
        let message = "You already have a channel with this name.";
        return Ok(Some(refusal(StatusCode::CONFLICT, "channel_exists", message)));
    }
    Ok(None)
}

/// `GET /account/channels/remove?name=`: asks whether it is meant.
pub(super) async fn confirm(member: Member) -> Page {
    let name = member.parameter("name")?.unwrap_or_default();
    let channel = find(&member, name).await?.ok_or_else(missing)?;
    member.page("account/channel_remove.html", context! { channel => shown(channel) })
}

/// `POST /account/channels/remove`.
pub(super) async fn remove(posted: Posted) -> Page {
    let name = posted.form.find("name").unwrap_or_default();
    posted.send(Call::delete(address(name))).await?;
    Ok(see_other("/account/channels?done=removed"))
}

/// `GET /account/channels/test`: where a form was sent to.
pub(super) async fn tested(_member: Member) -> Page {
    Ok(see_other("/account/channels"))
}

/// `POST /account/channels/test`: sends a small file now, and says what happened.
pub(super) async fn test(posted: Posted) -> Page {
    let name = posted.form.find("name").unwrap_or_default();
    let outcome = posted.send(Call::post(format!("{}/test", address(name)))).await;
    let (status, ok, message) = match outcome {
        Ok(answer) => {
            let message = answer["message"].as_str().unwrap_or_default().to_owned();
            (StatusCode::OK, answer["ok"] == true, message)
        }
        // Too many tests are a matter of waiting, so the list stays where it is.
        Err(refusal) if refusal.is_mistake() || refusal.status.as_u16() == 503 => {
            (refusal.status, false, refusal.sentences().join(" "))
        }
        Err(refusal) => return Err(refusal.into()),
    };
    page(&posted, status, context! { name, ok, message }).await
}
