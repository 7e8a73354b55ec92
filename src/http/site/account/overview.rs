//! `/account`: shows the visitor's details, agreements and profile.

use axum::{http::StatusCode, response::Response};
use minijinja::{context, value::Serde};
use serde_json::Value;

use super::{
    ApiRefusal, MemberForm, MemberRequest, PageResult, SiteRequest, form_errors, form_refusal,
    status_of, unless_refused,
};
use crate::http::form::see_other;
use api::organization::LoadOrganization;
use api::user::{LoadCaller, LoadProfile, Profile, ReplaceProfile};

pub(super) async fn show(member: MemberRequest) -> PageResult {
    page(&member, &ProfileForm::default()).await
}

/// `GET /account/profile`: redirects to `/account`, which contains the form.
pub(super) async fn profile(_member: MemberRequest) -> PageResult {
    Ok(see_other("/account#profile"))
}

/// The profile form, with its text and error if it was refused.
#[derive(Default)]
struct ProfileForm<'a> {
    text: Option<&'a str>,
    refusal: Option<ApiRefusal>,
    /// Line and column of a JSON syntax error.
    position: Option<(usize, usize)>,
}

/// `POST /account/profile`: replaces the profile.
pub(super) async fn save(posted: MemberForm) -> PageResult {
    let text = posted.form.find("profile").unwrap_or_default();
    let mut position = None;
    // Parsed here, because the API would report the error without line and column.
    let outcome = match serde_json::from_str(text) {
        Ok(Value::Object(profile)) => posted.send(&ReplaceProfile {}, &Profile(profile)).await,
        Ok(_) => Err(ApiRefusal::new(StatusCode::BAD_REQUEST, "a profile must be an object")),
        Err(error) => {
            position = Some((error.line(), error.column()));
            Err(ApiRefusal::new(StatusCode::BAD_REQUEST, error.to_string()))
        }
    };
    match outcome {
        Ok(()) => Ok(see_other("/account?done=saved")),
        Err(refusal) => {
            let refusal = Some(form_refusal(refusal)?);
            page(&posted, &ProfileForm { text: Some(text), refusal, position }).await
        }
    }
}

async fn page(site: &SiteRequest, typed: &ProfileForm<'_>) -> Result<Response, super::PageError> {
    // Service accounts have no user, and some users have no organization.
    let user = unless_refused(site.ask(&LoadCaller {}).await)?;
    let organization = unless_refused(site.ask(&LoadOrganization {}).await)?;
    // After an error the form shows the typed text, which may not be valid JSON.
    let profile = match typed.text {
        Some(text) => text.to_owned(),
        // Indented, because visitors edit the profile by hand.
        None => format!("{:#}", Value::Object(site.ask(&LoadProfile {}).await?.0)),
    };
    let refusal = typed.refusal.as_ref();
    let context = context! {
        person => Serde(user),
        organization => Serde(organization),
        profile,
        mistakes => form_errors(refusal),
        line => typed.position.map(|(line, _)| line),
        column => typed.position.map(|(_, column)| column),
    };
    site.page_with(status_of(refusal), "account/overview.html", context)
}
