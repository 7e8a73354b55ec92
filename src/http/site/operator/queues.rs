//! `/operator/deliveries` and `/operator/messages`: the deliveries and messages of all users. Failed ones can be
//! retried.

use axum::http::StatusCode;
use minijinja::{Value as PageValue, context};
use serde_json::{Value, json};
use strum::VariantNames;

use super::{OperatorForm, OperatorRequest};
use crate::http::form::see_other;
use crate::http::site::account::{ListPage, elements, item_links, template_value};
use crate::http::site::api_client;
use crate::http::site::{ApiCall, ApiRefusal, PageError, PageResult, SiteRequest};
use crate::runtime::error::{Error, ErrorKind};
use crate::runtime::limits::OPERATOR_LISTED;
use model::account::{DeliveryState, MessageState};

const DELIVERIES: &str = "/operator/v1/delivery";
const MESSAGES: &str = "/operator/v1/message";

/// The outcome of a form, which the list shows.
struct Outcome {
    status: StatusCode,
    /// The errors of a refused form; empty if there was no form.
    alert: Vec<String>,
}

impl Outcome {
    const NONE: Self = Self { status: StatusCode::OK, alert: Vec::new() };

    /// Returns the outcome of a refused form. Fails if the refusal is not a mistake in the form.
    fn refused(refusal: ApiRefusal) -> Result<Self, PageError> {
        if !refusal.is_mistake() {
            return Err(refusal.into());
        }
        Ok(Self { status: refusal.status, alert: refusal.sentences() })
    }
}

pub(super) async fn deliveries(member: OperatorRequest) -> PageResult {
    show_deliveries(&member, Outcome::NONE).await
}

async fn show_deliveries(site: &SiteRequest, outcome: Outcome) -> PageResult {
    let list_page = ListPage::from_query(site, "state", OPERATOR_LISTED)?;
    let mut listed = elements(site.call(&list_page.call(DELIVERIES)).await?, "deliveries");
    let pager = list_page.paginate(&mut listed);
    for delivery in &mut listed {
        delivery["places"] = item_links(delivery["item"].as_str().unwrap_or_default());
    }
    let states = DeliveryState::VARIANTS.to_vec();
    let context = context! { deliveries => template_value(Value::Array(listed)), states, pager };
    let context = context! { ..list_context(site, &list_page, &outcome)?, ..context };
    site.page_with(outcome.status, "operator/deliveries.html", context)
}

/// `POST /operator/deliveries`: requeues the delivery `id`, or all failed deliveries.
pub(super) async fn retry_deliveries(posted: OperatorForm) -> PageResult {
    let call = ApiCall::post(target(DELIVERIES, posted.form.find("id")));
    match posted.call(&call.json(json!({ "again": true }))).await {
        Ok(answer) => Ok(see_other(&retried(posted.path(), posted.parameter("state")?, &answer))),
        Err(refusal) => show_deliveries(&posted, Outcome::refused(refusal)?).await,
    }
}

pub(super) async fn messages(member: OperatorRequest) -> PageResult {
    show_messages(&member, Outcome::NONE).await
}

async fn show_messages(site: &SiteRequest, outcome: Outcome) -> PageResult {
    let list_page = ListPage::from_query(site, "state", OPERATOR_LISTED)?;
    let mut listed = elements(site.call(&list_page.call(MESSAGES)).await?, "messages");
    let pager = list_page.paginate(&mut listed);
    let states = MessageState::VARIANTS.to_vec();
    let context = context! { messages => template_value(Value::Array(listed)), states, pager };
    let context = context! { ..list_context(site, &list_page, &outcome)?, ..context };
    site.page_with(outcome.status, "operator/messages.html", context)
}

/// `POST /operator/messages`: requeues the message `id` or all parked messages, or removes the message `id`.
pub(super) async fn act_on_messages(posted: OperatorForm) -> PageResult {
    let id = posted.form.find("id");
    let action = posted.form.find("do").unwrap_or_default();
    let (call, is_retry) = match (action, id) {
        ("retry", _) => (ApiCall::post(target(MESSAGES, id)).json(json!({ "again": true })), true),
        ("remove", Some(_)) => (ApiCall::delete(target(MESSAGES, id)), false),
        // The page's own buttons send only the values above.
        _ => return Err(Error::new(ErrorKind::InvalidArgument, "The form cannot be read").into()),
    };
    let path = posted.path();
    let state = posted.parameter("state")?;
    match posted.call(&call).await {
        Ok(answer) if is_retry => Ok(see_other(&retried(path, state, &answer))),
        Ok(_) => Ok(see_other(&back(path, state, "dropped", None))),
        Err(refusal) => show_messages(&posted, Outcome::refused(refusal)?).await,
    }
}

/// Returns the API path of the entry `id` of a list, or of the whole list.
fn target(list: &str, id: Option<&str>) -> String {
    match id {
        Some(id) => format!("{list}/{}", api_client::encode_segment(id)),
        None => list.to_owned(),
    }
}

/// Returns the URL of a list, with the message that entries were requeued and their number.
fn retried(path: &str, state: Option<&str>, answer: &Value) -> String {
    let count = answer["queued"].as_u64().unwrap_or_default().to_string();
    back(path, state, "retried", Some(&count))
}

/// Returns the URL of a list, filtered by `state` as before, with the message `done`.
fn back(path: &str, state: Option<&str>, done: &str, count: Option<&str>) -> String {
    ApiCall::get(path).query([("state", state), ("done", Some(done)), ("count", count)]).target
}

/// Returns the context that both lists share: the state filter, the first row, the number of requeued entries, and
/// the errors of the previous form.
fn list_context(
    site: &SiteRequest,
    list_page: &ListPage<'_>,
    outcome: &Outcome,
) -> Result<PageValue, PageError> {
    Ok(context! {
        state => list_page.choice.1,
        start => list_page.start,
        count => site.query.integer("count", 0..=i64::MAX)?,
        alert => outcome.alert.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_leads_back_to_its_list_with_what_was_done() {
        let location = retried("/operator/deliveries", Some("failed"), &json!({ "queued": 3 }));
        assert_eq!(location, "/operator/deliveries?state=failed&done=retried&count=3");
        let location = back("/operator/messages", None, "dropped", None);
        assert_eq!(location, "/operator/messages?done=dropped");
        assert_eq!(target(MESSAGES, Some("a/b")), "/operator/v1/message/a%2Fb");
        assert_eq!(target(MESSAGES, None), MESSAGES);
    }
}
