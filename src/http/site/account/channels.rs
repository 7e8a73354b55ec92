//! `/account/channels`: lists, edits and tests the visitor's delivery channels.

use axum::http::StatusCode;
use minijinja::{Value as PageValue, context, value::Serde};

use super::channel_form::{ChannelForm, OFFERED_METHODS};
use super::{
    ApiRefusal, FreshMember, FreshMemberForm, MemberForm, MemberRequest, PageError, PageResult,
    SiteRequest, form_errors, form_refusal, not_found, status_of,
};
use crate::http::form::see_other;
use api::deliveries::{Channel, ListChannels, RemoveChannel, TestChannel, UpdateChannel};
use model::account::ChannelMethod;

pub(super) async fn list(member: MemberRequest) -> PageResult {
    page(&member, StatusCode::OK, None).await
}

/// Shows the list, and the result of a channel test with the name of the channel.
async fn page(site: &SiteRequest, status: StatusCode, tested: Option<PageValue>) -> PageResult {
    let context = context! {
        channels => Serde(site.ask(&ListChannels {}).await?),
        methods => OFFERED_METHODS.map(ChannelMethod::as_str).to_vec(),
        tested,
    };
    site.page_with(status, "account/channels.html", context)
}

/// Finds the visitor's channel `name`.
async fn find(site: &SiteRequest, name: &str) -> Result<Option<Channel>, ApiRefusal> {
    let channels = site.ask(&ListChannels {}).await?;
    Ok(channels.into_iter().find(|channel| channel.name == name))
}

fn no_such_channel() -> PageError {
    not_found("This channel does not exist.")
}

/// `GET /account/channels/edit`: `?name=` edits a channel, `?method=` creates one.
pub(super) async fn edit(member: FreshMember) -> PageResult {
    let Some(name) = member.parameter("name")? else {
        let method = member.parameter("method")?.and_then(|method| method.parse().ok());
        let method = method.filter(|method| OFFERED_METHODS.contains(method));
        // The parameter comes from a menu on the list. If it is invalid, the visitor returns there.
        let Some(method) = method else { return Ok(see_other("/account/channels")) };
        return form(&member, &ChannelForm::empty(method), None);
    };
    let channel = find(&member, name).await?.ok_or_else(no_such_channel)?;
    form(&member, &ChannelForm::from_channel(channel), None)
}

fn form(site: &SiteRequest, draft: &ChannelForm, refusal: Option<&ApiRefusal>) -> PageResult {
    let context = context! {
        name => draft.name.clone(),
        method => draft.method.as_str(),
        active => draft.is_active,
        there => draft.replaces_existing,
        fields => Serde(draft.fields()),
        ticks => Serde(draft.format_choices()),
        others => draft.other_formats(),
        mistakes => form_errors(refusal),
    };
    site.page_with(status_of(refusal), "account/channel.html", context)
}

pub(super) async fn save(posted: FreshMemberForm) -> PageResult {
    let draft = ChannelForm::from_form(&posted.form);
    let draft = draft.ok_or_else(|| not_found("This method does not exist."))?;
    if let Some(refusal) = validate(&posted, &draft).await? {
        return form(&posted, &draft, Some(&refusal));
    }
    // The name identifies a channel, so the same call creates or replaces it.
    let channel = UpdateChannel { name: draft.name.clone() };
    match posted.send(&channel, &draft.body()).await {
        Ok(_) => {
            let done = if draft.replaces_existing { "saved" } else { "created" };
            Ok(see_other(&format!("/account/channels?done={done}")))
        }
        Err(refusal) => form(&posted, &draft, Some(&form_refusal(refusal)?)),
    }
}

/// Returns a refusal if the name is missing, or if a new channel would replace an existing one. The API does not
/// check this.
async fn validate(
    site: &SiteRequest,
    draft: &ChannelForm,
) -> Result<Option<ApiRefusal>, PageError> {
    if draft.name.is_empty() {
        let message = "Enter a name for the channel.";
        let status = StatusCode::BAD_REQUEST;
        return Ok(Some(ApiRefusal::of_field(status, "required", "name", message)));
    }
    // `PUT` would replace the existing channel without confirmation.
    if !draft.replaces_existing && find(site, &draft.name).await?.is_some() {
        let message = "You already have a channel with this name.";
        let status = StatusCode::CONFLICT;
        return Ok(Some(ApiRefusal::of_field(status, "channel_exists", "name", message)));
    }
    Ok(None)
}

/// `GET /account/channels/remove?name=`: asks for confirmation.
pub(super) async fn confirm_removal(member: MemberRequest) -> PageResult {
    let name = member.parameter("name")?.unwrap_or_default();
    let channel = find(&member, name).await?.ok_or_else(no_such_channel)?;
    member.page("account/channel_remove.html", context! { channel => Serde(channel) })
}

pub(super) async fn remove(posted: MemberForm) -> PageResult {
    posted.ask(&RemoveChannel { name: posted.form.text("name") }).await?;
    Ok(see_other("/account/channels?done=removed"))
}

/// `GET /account/channels/test`: redirects a reloaded test result to the list.
pub(super) async fn redirect_to_list(_member: MemberRequest) -> PageResult {
    Ok(see_other("/account/channels"))
}

/// `POST /account/channels/test`: delivers a small test file and shows the result.
pub(super) async fn test(posted: MemberForm) -> PageResult {
    let name = posted.form.text("name");
    match posted.ask(&TestChannel { name: name.clone() }).await {
        Ok(result) => {
            page(&posted, StatusCode::OK, Some(context! { name, ..Serde(result) })).await
        }
        // After a rate-limited test the visitor only needs to wait, so the list is shown instead of an error page.
        Err(refusal) if refusal.is_mistake() || refusal.status.as_u16() == 503 => {
            let message = refusal.sentences().join(" ");
            let tested = context! { name, ok => false, message };
            page(&posted, refusal.status, Some(tested)).await
        }
        Err(refusal) => Err(refusal.into()),
    }
}
