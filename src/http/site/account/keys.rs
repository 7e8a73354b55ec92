//! `/account/keys`: API keys for the visitor's programs. A key is shown once.

use axum::extract::Path;
use minijinja::context;
use serde_json::{Map, Value};

use super::{
    Call, Form, FreshPosted, Member, Page, Posted, Refusal, Site, api, elements, mistakes, none,
    of_form, shown, status_of,
};
use crate::http::site::form::see_other;

const KEYS: &str = "/user/v1/key";

/// `GET /account/keys`.
pub(super) async fn list(member: Member) -> Page {
    page(&member, None).await
}

async fn page(site: &Site, typed: Option<(Refusal, &Form)>) -> Page {
    let keys = elements(site.get(KEYS).await?, "keys");
    let refusal = typed.as_ref().map(|(refusal, _)| refusal);
    let context = context! {
        keys => shown(Value::Array(keys)),
        again => typed.as_ref().map(|(_, form)| form.again()),
        mistakes => mistakes(refusal),
    };
    site.page_with(status_of(refusal), "account/keys.html", context)
}

/// `POST /account/keys`: makes a key and shows it, on this page alone.
pub(super) async fn make(posted: FreshPosted) -> Page {
    let name = posted.form.find("name").map(|name| ("name".to_owned(), Value::from(name)));
    let body = Value::Object(Map::from_iter(name));
    match posted.send(Call::post(KEYS).json(body)).await {
        Ok(made) => {
            let context =
                context! { made => shown(made), base => posted.app.shared.site.url.clone() };
            posted.page("account/key.html", context)
        }
        Err(refusal) => page(&posted, Some((of_form(refusal)?, &posted.form))).await,
    }
}

/// `GET /account/keys/{id}/revoke`: asks whether it is meant.
pub(super) async fn confirm(Path(id): Path<String>, member: Member) -> Page {
    let keys = elements(member.get(KEYS).await?, "keys");
    let key = keys.into_iter().find(|key| id.parse::<i64>().is_ok_and(|id| key["id"] == id));
    let key = key.ok_or_else(|| none("This key does not exist."))?;
    member.page("account/key_revoke.html", context! { key => shown(key) })
}

/// `POST /account/keys/{id}/revoke`.
pub(super) async fn revoke(Path(id): Path<String>, posted: Posted) -> Page {
    posted.send(Call::delete(format!("{KEYS}/{}", api::segment(&id)))).await?;
    Ok(see_other("/account/keys?done=revoked"))
}
