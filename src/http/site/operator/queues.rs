//! `/operator/deliveries` and `/operator/messages`: the deliveries and messages of all users. Failed ones can be
//! retried.

use api::operation::{
    ListAllDeliveries, ListMessages, RemoveMessage, Retried, RetryDeliveries, RetryDelivery,
    RetryMessage, RetryMessages, RetryRequest,
};
use minijinja::{Value as PageValue, context, value::Serde};
use strum::VariantNames;
use uuid::Uuid;

use super::{OperatorForm, OperatorRequest, range_of};
use crate::http::form::{FormFields, see_other};
use crate::http::site::account::ListPage;
use crate::http::site::{
    ApiCall, ApiRefusal, PageError, PageResult, SiteRequest, form_refusal, status_of,
};
use crate::runtime::error::{Error, ErrorKind};
use crate::runtime::limits::OPERATOR_LISTED;
use model::account::{DeliveryState, MessageState};

pub(super) async fn deliveries(member: OperatorRequest) -> PageResult {
    show_deliveries(&member, None).await
}

/// Shows the deliveries, with the refusal of a form.
async fn show_deliveries(site: &SiteRequest, refusal: Option<ApiRefusal>) -> PageResult {
    let list_page = ListPage::from_query(site, &["state"], OPERATOR_LISTED)?;
    let state = site.query.variant("state")?;
    let request = ListAllDeliveries { range: range_of(&list_page), state };
    let mut listed = site.ask(&request).await?.deliveries;
    let pager = list_page.paginate(&mut listed);
    let states = DeliveryState::VARIANTS.to_vec();
    let context = context! { deliveries => Serde(listed), states, pager };
    let context = context! { ..list_context(site, &list_page, refusal.as_ref())?, ..context };
    site.page_with(status_of(refusal.as_ref()), "operator/deliveries.html", context)
}

/// `POST /operator/deliveries`: requeues the delivery `id`, or all failed deliveries.
pub(super) async fn retry_deliveries(posted: OperatorForm) -> PageResult {
    let outcome = match chosen(&posted.form) {
        Ok(Some(id)) => posted.send(&RetryDelivery { id }, &RetryRequest::AGAIN).await,
        Ok(None) => posted.send(&RetryDeliveries {}, &RetryRequest::AGAIN).await,
        Err(refusal) => Err(refusal),
    };
    match outcome {
        Ok(answer) => Ok(see_other(&retried(posted.path(), posted.parameter("state")?, answer))),
        Err(refusal) => show_deliveries(&posted, Some(form_refusal(refusal)?)).await,
    }
}

/// Returns the id of the delivery or message that a form is about; `None` if it is about all failed ones.
fn chosen(form: &FormFields) -> Result<Option<Uuid>, ApiRefusal> {
    let id = form.find("id").map(str::parse::<Uuid>).transpose();
    id.map_err(|_| ApiRefusal::invalid("format", "id", "is not a UUID"))
}

pub(super) async fn messages(member: OperatorRequest) -> PageResult {
    show_messages(&member, None).await
}

/// Shows the messages, with the refusal of a form.
async fn show_messages(site: &SiteRequest, refusal: Option<ApiRefusal>) -> PageResult {
    let list_page = ListPage::from_query(site, &["state"], OPERATOR_LISTED)?;
    let state = site.query.variant("state")?;
    let request = ListMessages { range: range_of(&list_page), state };
    let mut listed = site.ask(&request).await?.messages;
    let pager = list_page.paginate(&mut listed);
    let states = MessageState::VARIANTS.to_vec();
    let context = context! { messages => Serde(listed), states, pager };
    let context = context! { ..list_context(site, &list_page, refusal.as_ref())?, ..context };
    site.page_with(status_of(refusal.as_ref()), "operator/messages.html", context)
}

/// `POST /operator/messages`: requeues the message `id` or all parked messages, or removes the message `id`.
pub(super) async fn act_on_messages(posted: OperatorForm) -> PageResult {
    let action = posted.form.find("do").unwrap_or_default();
    let path = posted.path();
    let state = posted.parameter("state")?;
    let outcome = match (action, chosen(&posted.form)) {
        ("retry" | "remove", Err(refusal)) => Err(refusal),
        ("retry", Ok(id)) => {
            let answer = retry_messages(&posted, id).await;
            answer.map(|answer| retried(path, state, answer))
        }
        ("remove", Ok(Some(id))) => {
            let removed = posted.ask(&RemoveMessage { id }).await;
            removed.map(|_| back(path, state, "dropped", None))
        }
        // The page's own buttons send only the values above.
        _ => return Err(Error::new(ErrorKind::InvalidArgument, "The form cannot be read").into()),
    };
    match outcome {
        Ok(list) => Ok(see_other(&list)),
        Err(refusal) => show_messages(&posted, Some(form_refusal(refusal)?)).await,
    }
}

async fn retry_messages(site: &SiteRequest, id: Option<Uuid>) -> Result<Retried, ApiRefusal> {
    match id {
        Some(id) => site.send(&RetryMessage { id }, &RetryRequest::AGAIN).await,
        None => site.send(&RetryMessages {}, &RetryRequest::AGAIN).await,
    }
}

/// Returns the URL of a list, with the message that entries were requeued and their number.
fn retried(path: &str, state: Option<&str>, answer: Retried) -> String {
    back(path, state, "retried", Some(&answer.queued.to_string()))
}

/// Returns the URL of a list, filtered by `state` as before, with the message `done`.
fn back(path: &str, state: Option<&str>, done: &str, count: Option<&str>) -> String {
    ApiCall::get(path).query([("state", state), ("done", Some(done)), ("count", count)]).target
}

/// Returns the context that both lists share: the state filter, the first row, the number of requeued entries, and
/// the errors of the previous form.
fn list_context(
    site: &SiteRequest,
    list_page: &ListPage,
    refusal: Option<&ApiRefusal>,
) -> Result<PageValue, PageError> {
    Ok(context! {
        state => site.parameter("state")?,
        start => list_page.start,
        count => site.query.integer("count", 0..=i64::MAX)?,
        alert => refusal.map(ApiRefusal::sentences),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_leads_back_to_its_list_with_what_was_done() {
        let location = retried("/operator/deliveries", Some("failed"), Retried { queued: 3 });
        assert_eq!(location, "/operator/deliveries?state=failed&done=retried&count=3");
        let location = back("/operator/messages", None, "dropped", None);
        assert_eq!(location, "/operator/messages?done=dropped");
    }
}
