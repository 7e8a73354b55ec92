//! Account pages: the visitor's profile, purchases, delivery channels, devices, keys and security, and the
//! organization's users.

mod channel_form;
mod channels;
mod deliveries;
mod devices;
mod keys;
mod orders;
mod overview;
mod security;
mod user_access;
mod users;

use axum::Router;
use axum::routing::{get, post};
use minijinja::{Value as PageValue, context, value::Serde};
use serde_json::json;

pub use channel_form::ChannelForm;

use super::{
    ApiCall, ApiRefusal, AppState, FormFields, FreshMember, FreshMemberForm, MemberForm,
    MemberRequest, PageError, PageResult, SiteRequest, form_refusal, not_found, parse_id,
    status_of,
};
use crate::runtime::error::Result;

/// The routes of the account pages.
pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/account", get(overview::show))
        .route("/account/profile", get(overview::profile).post(overview::save))
        .route("/account/orders", get(orders::list))
        .route("/account/orders/{id}", get(orders::show).post(orders::report))
        .route("/account/deliveries", get(deliveries::list))
        .route("/account/devices", get(devices::list))
        .route("/account/devices/remove", get(devices::confirm).post(devices::remove))
        .route("/account/keys", get(keys::list).post(keys::make))
        .route("/account/keys/{id}/revoke", get(keys::confirm).post(keys::revoke))
        .route("/account/channels", get(channels::list))
        .route("/account/channels/edit", get(channels::edit).post(channels::save))
        .route("/account/channels/remove", get(channels::confirm_removal).post(channels::remove))
        .route("/account/channels/test", get(channels::redirect_to_list).post(channels::test))
        .route("/account/security", get(security::show))
        .route("/account/security/password", post(security::change))
        .route("/account/security/sessions/{id}/end", post(security::end_session))
        .route("/account/security/applications/end", post(security::revoke_application))
        .route("/account/users", get(users::list))
        .route("/account/users/new", get(users::show_new).post(users::create))
        .route("/account/users/{id}", get(users::show).post(users::update))
        .route("/account/users/{id}/access", post(user_access::change))
}

/// Returns the errors of a form that is shown again; empty for a form that was not submitted yet.
fn form_errors(refusal: Option<&ApiRefusal>) -> PageValue {
    let Some(refusal) = refusal else { return PageValue::from(()) };
    let errors = match refusal.errors.as_slice() {
        // A refusal without entries has only a message, which the template shows above the form.
        [] => json!([{ "errorCode": "", "path": "", "message": refusal.message }]),
        errors => json!(errors),
    };
    let paths: Vec<String> = refusal.errors.iter().map(|wrong| wrong.path.clone()).collect();
    context! { errors => Serde(errors), paths }
}

/// Returns the answer of an API; `None` if the API refuses this caller.
fn unless_refused<T>(outcome: Result<T, ApiRefusal>) -> Result<Option<T>, ApiRefusal> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        // For callers without the right, a part of the page is left out. A 5xx must not look the same.
        Err(refusal) if refusal.is_mistake() => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

/// A page of a long list, with the offset and the filters from the query.
pub(super) struct ListPage {
    /// The request for the first page.
    first: ApiCall,
    pub(super) start: usize,
    size: usize,
}

impl ListPage {
    /// Reads the offset of the page, and the parameters `filters`, which its neighbours keep.
    pub(super) fn from_query(site: &SiteRequest, filters: &[&str], size: usize) -> Result<Self> {
        let mut first = ApiCall::get(site.path());
        for name in filters {
            first = first.query([(*name, site.parameter(name)?)]);
        }
        Ok(Self { first, start: site.count_parameter("start")?, size })
    }

    /// The number of elements before the page.
    fn start_u32(&self) -> u32 {
        u32::try_from(self.start).unwrap_or(u32::MAX)
    }

    /// The number of elements to ask for: one more than the page shows, which avoids counting the list only for the
    /// pager.
    pub(super) fn size_with_next(&self) -> usize {
        self.size + 1
    }

    /// Removes the extra element, and returns the URLs of the adjacent pages.
    pub(super) fn paginate<T>(&self, listed: &mut Vec<T>) -> PageValue {
        let newer = (self.start > 0).then(|| self.url(self.start.saturating_sub(self.size)));
        let older = (listed.len() > self.size).then(|| self.url(self.start + self.size));
        listed.truncate(self.size);
        context! { newer, older }
    }

    /// Returns the URL of the page that begins with the element `start`.
    fn url(&self, start: usize) -> String {
        // The URL of the first page has no `start`, so that the page has a single URL.
        let start = (start > 0).then(|| start.to_string());
        self.first.clone().query([("start", start.as_deref())]).target
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_part_of_a_list_knows_its_neighbours() {
        let first = ApiCall::get("/p").query([("state", Some("a&b"))]);
        let part = |start| ListPage { first: first.clone(), start, size: 2 };
        assert_eq!(part(2).size_with_next(), 3);
        let check = |start, count, newer: Option<&str>, older: Option<&str>| {
            let mut listed = vec![Value::Null; count];
            let found = part(start).paginate(&mut listed);
            assert_eq!(found.get_attr("newer").unwrap().as_str(), newer, "{start} {count}");
            assert_eq!(found.get_attr("older").unwrap().as_str(), older, "{start} {count}");
            assert!(listed.len() <= 2);
        };
        check(0, 2, None, None);
        check(0, 3, None, Some("/p?state=a%26b&start=2"));
        check(2, 1, Some("/p?state=a%26b"), None);
        check(4, 3, Some("/p?state=a%26b&start=2"), Some("/p?state=a%26b&start=6"));
    }
}
