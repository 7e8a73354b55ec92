//! `/account/keys`: lists, creates and revokes API keys for the visitor's programs. A key is shown only once.

use axum::extract::Path;
use minijinja::{context, value::Serde};

use super::{
    ApiRefusal, FormFields, FreshMemberForm, MemberForm, MemberRequest, PageResult, SiteRequest,
    form_errors, form_refusal, not_found, parse_id, status_of,
};
use crate::http::form::see_other;
use api::user::{CreateKey, KeyCreate, ListKeys, RevokeKey};

pub(super) async fn list(member: MemberRequest) -> PageResult {
    page(&member, None).await
}

async fn page(site: &SiteRequest, typed: Option<(ApiRefusal, &FormFields)>) -> PageResult {
    let keys = site.ask(&ListKeys {}).await?;
    let refusal = typed.as_ref().map(|(refusal, _)| refusal);
    let context = context! {
        keys => Serde(keys),
        again => typed.as_ref().map(|(_, form)| form.template_value()),
        mistakes => form_errors(refusal),
    };
    site.page_with(status_of(refusal), "account/keys.html", context)
}

/// `POST /account/keys`: creates a key and shows it. No other page shows it.
pub(super) async fn make(posted: FreshMemberForm) -> PageResult {
    let outcome = match posted.form.find("name") {
        Some(name) => {
            let read_only = posted.form.is_ticked("readOnly");
            let new = KeyCreate { name: name.to_owned(), read_only };
            posted.send(&CreateKey {}, &new).await
        }
        None => Err(ApiRefusal::invalid("required", "name", "is missing")),
    };
    match outcome {
        Ok(created) => {
            // A redirect would need the key in its URL, and a reload would show the key again.
            let context = context! {
                made => Serde(created),
                base => posted.app.shared.site.url.clone(),
            };
            posted.page("account/key.html", context)
        }
        Err(refusal) => page(&posted, Some((form_refusal(refusal)?, &posted.form))).await,
    }
}

/// `GET /account/keys/{id}/revoke`: asks for confirmation.
pub(super) async fn confirm(Path(id): Path<String>, member: MemberRequest) -> PageResult {
    let keys = member.ask(&ListKeys {}).await?;
    // Ids in the API are numbers, so a path that is not a number matches no key.
    let key = keys.into_iter().find(|key| id.parse::<i64>() == Ok(key.id));
    let key = key.ok_or_else(|| not_found("This key does not exist."))?;
    member.page("account/key_revoke.html", context! { key => Serde(key) })
}

pub(super) async fn revoke(Path(id): Path<String>, posted: MemberForm) -> PageResult {
    posted.ask(&RevokeKey { id: parse_id(&id)? }).await?;
    Ok(see_other("/account/keys?done=revoked"))
}
