//! `/account/keys`: lists, creates and revokes API keys for the visitor's programs. A key is shown only once.

use axum::extract::Path;
use minijinja::context;
use serde_json::{Map, Value};

use super::{
    ApiCall, ApiRefusal, FormFields, FreshMemberForm, MemberForm, MemberRequest, PageResult,
    SiteRequest, api_client, elements, form_errors, form_refusal, not_found, status_of,
    template_value,
};
use crate::http::form::see_other;

const KEYS: &str = "/user/v1/key";

pub(super) async fn list(member: MemberRequest) -> PageResult {
    page(&member, None).await
}

async fn page(site: &SiteRequest, typed: Option<(ApiRefusal, &FormFields)>) -> PageResult {
    let keys = elements(site.get(KEYS).await?, "keys");
    let refusal = typed.as_ref().map(|(refusal, _)| refusal);
    let context = context! {
        keys => template_value(Value::Array(keys)),
        again => typed.as_ref().map(|(_, form)| form.template_value()),
        mistakes => form_errors(refusal),
    };
    site.page_with(status_of(refusal), "account/keys.html", context)
}

/// `POST /account/keys`: creates a key and shows it. No other page shows it.
pub(super) async fn make(posted: FreshMemberForm) -> PageResult {
    // A missing name is left out of the body, so that the API reports it and the page shows the error beside the
    // field.
    let name = posted.form.find("name").map(|name| ("name".to_owned(), Value::from(name)));
    let body = Value::Object(Map::from_iter(name));
    match posted.call(&ApiCall::post(KEYS).json(body)).await {
        Ok(created) => {
            // A redirect would need the key in its URL, and a reload would show the key again.
            let context = context! {
                made => template_value(created),
                base => posted.app.shared.site.url.clone(),
            };
            posted.page("account/key.html", context)
        }
        Err(refusal) => page(&posted, Some((form_refusal(refusal)?, &posted.form))).await,
    }
}

/// `GET /account/keys/{id}/revoke`: asks for confirmation.
pub(super) async fn confirm(Path(id): Path<String>, member: MemberRequest) -> PageResult {
    let keys = elements(member.get(KEYS).await?, "keys");
    // Ids in the API are numbers, so a path that is not a number matches no key.
    let key = keys.into_iter().find(|key| id.parse::<i64>().is_ok_and(|id| key["id"] == id));
    let key = key.ok_or_else(|| not_found("This key does not exist."))?;
    member.page("account/key_revoke.html", context! { key => template_value(key) })
}

pub(super) async fn revoke(Path(id): Path<String>, posted: MemberForm) -> PageResult {
    let key = format!("{KEYS}/{}", api_client::encode_segment(&id));
    posted.call(&ApiCall::delete(key)).await?;
    Ok(see_other("/account/keys?done=revoked"))
}
