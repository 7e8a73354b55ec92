//! `/account`: shows the visitor's details, agreements and profile.

use axum::{http::StatusCode, response::Response};
use minijinja::context;
use serde_json::Value;

use super::{
    ApiCall, ApiRefusal, MemberForm, MemberRequest, PageResult, SiteRequest, find_optional,
    form_errors, form_refusal, status_of, template_value,
};
use crate::http::form::see_other;

const PROFILE: &str = "/user/v1/profile";

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
    let profile = match serde_json::from_str::<Value>(text) {
        Ok(profile) => profile,
        Err(error) => {
            // Parsed here, because the API would report the error without line and column.
            let position = Some((error.line(), error.column()));
            let refusal = ApiRefusal {
                status: StatusCode::BAD_REQUEST,
                message: error.to_string(),
                errors: Vec::new(),
            };
            let typed = ProfileForm { text: Some(text), refusal: Some(refusal), position };
            return page(&posted, &typed).await;
        }
    };
    match posted.call(&ApiCall::put(PROFILE).json(profile)).await {
        Ok(_) => Ok(see_other("/account?done=saved")),
        Err(refusal) => {
            let refusal = Some(form_refusal(refusal)?);
            page(&posted, &ProfileForm { text: Some(text), refusal, position: None }).await
        }
    }
}

async fn page(site: &SiteRequest, typed: &ProfileForm<'_>) -> Result<Response, super::PageError> {
    // Service accounts have no user, and some users have no organization.
    let user = find_optional(site, "/user/v1/user").await?;
    let organization = find_optional(site, "/user/v1/organization").await?;
    // After an error the form shows the typed text, which may not be valid JSON.
    let profile = match typed.text {
        Some(text) => text.to_owned(),
        // Indented, because visitors edit the profile by hand.
        None => format!("{:#}", site.get(PROFILE).await?),
    };
    let refusal = typed.refusal.as_ref();
    let context = context! {
        person => template_value(user.unwrap_or_default()),
        organization => template_value(organization.unwrap_or_default()),
        profile,
        mistakes => form_errors(refusal),
        line => typed.position.map(|(line, _)| line),
        column => typed.position.map(|(_, column)| column),
    };
    site.page_with(status_of(refusal), "account/overview.html", context)
}
