//! The selection: items that a visitor ticked on search pages. The visitor reviews their cost before anything is
//! bought, then downloads them as one archive, has them delivered, or orders them. Their captions can be exported.
//!
//! The browser stores the selection and sends it with each form, so the server stores nothing. Without scripts, a
//! form sends only the items that are ticked on its page.

mod captions;
mod review;
mod shown_cost;

use std::{collections::HashSet, sync::Arc};

use axum::Router;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::routing::{get, post};
use minijinja::context;

use super::api_client::{ApiCall, ApiRefusal};
use super::item_summary::key_of;
use super::{AppState, MemberForm, MemberRequest, PageError, PageResult, item};
use crate::access::auth::Principal;
use crate::access::orders::{ConfirmedPayers, PurchaseQuote};
use crate::http::form::see_other;
use crate::http::media::archives::{self, ArchiveRequest};
use crate::http::site::login;
use crate::media::{BundleNames, BundleNaming, ItemQuote, MediaCaller, QuoteState, access};
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind};
use crate::runtime::limits::SELECTION_ITEMS_MAX;
use api::collections::LoadCollection;
use model::ItemKey;
use model::account::AgreementId;
use review::{NOTHING_SELECTED, ReviewOutcome};
use shown_cost::ShownCost;

/// The routes of the selection.
pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/selection", get(explain).post(show))
        .route("/selection/zip", post(zip))
        .route("/selection/deliver", post(deliver))
        .route("/selection/order", post(order))
        .route("/selection/captions.txt", post(captions::text))
        .route("/selection/captions.csv", post(captions::csv))
}

/// A form about selected items, with the chosen agreement and channel.
struct SelectionForm {
    keys: Vec<ItemKey>,
    /// Number of items that were dropped because of the limit.
    surplus: usize,
    /// The agreement that pays; `None` to choose automatically.
    agr: Option<AgreementId>,
    /// The channel for a delivery.
    channel: Option<String>,
    /// The collection that contains the items; `None` if they come from the selection.
    collection: Option<String>,
    /// The page to which the visitor can return.
    return_to: Option<String>,
    shown: ShownCost,
}

impl SelectionForm {
    /// Reads the form. If it names a collection and has no items, the collection's items are used.
    ///
    /// With the field `listed`, a form without items stays empty: the page listed them, and the visitor unticked
    /// all.
    async fn read(posted: &MemberForm) -> Result<Self, PageError> {
        let form = &posted.form;
        let collection = form.find("of_collection").map(str::to_owned);
        let mut keys: Vec<ItemKey> = form.all("uri").filter_map(key_of).collect();
        if keys.is_empty()
            && form.find("listed").is_none()
            && let Some(id) = &collection
        {
            let found = posted.ask(&LoadCollection { id: id.clone() }).await?;
            let uris = found.collection.content.iter();
            keys = uris.filter_map(|uri| key_of(uri)).collect();
        }
        let mut known = HashSet::new();
        keys.retain(|key| known.insert(key.clone()));
        let surplus = keys.len().saturating_sub(SELECTION_ITEMS_MAX);
        keys.truncate(SELECTION_ITEMS_MAX);
        // An address on a different host would make the link back leave this site.
        let return_to = form.find("return_to").filter(|path| login::is_local_page(path));
        Ok(Self {
            keys,
            surplus,
            agr: form.agreement()?,
            channel: form.find("channel").map(str::to_owned),
            collection,
            return_to: return_to.map(str::to_owned),
            shown: ShownCost::parse(form.find("shown").unwrap_or_default()),
        })
    }

    /// Reads a form. Fails if it has no items.
    async fn read_items(posted: &MemberForm) -> Result<Self, PageError> {
        let form = Self::read(posted).await?;
        if form.keys.is_empty() {
            return Err(Error::new(ErrorKind::InvalidArgument, NOTHING_SELECTED).into());
        }
        Ok(form)
    }
}

/// A form with a current quote for each of its items.
struct QuotedSelection {
    form: SelectionForm,
    principal: Arc<Principal>,
    quotes: Vec<ItemQuote>,
}

impl QuotedSelection {
    async fn load(posted: &MemberForm) -> Result<Self, PageError> {
        let form = SelectionForm::read(posted).await?;
        // The user may have been deactivated since the session was read.
        let principal = posted.visitor.principal(&posted.app).await?;
        let principal = principal.ok_or_else(access::unauthenticated)?;
        let now = clock::now();
        let caller = MediaCaller { principal: Some(&principal), agr: form.agr, now };
        let quotes = posted.app.shared.media.quote(&form.keys, caller).await?;
        Ok(Self { form, principal, quotes })
    }

    /// Returns the outcome of a form that must not buy anything: it has no items, or its page showed a different
    /// cost. `None` if the form may buy.
    fn refusal(&self) -> Option<ReviewOutcome> {
        if self.form.keys.is_empty() {
            return Some(ReviewOutcome::refused(StatusCode::BAD_REQUEST, NOTHING_SELECTED));
        }
        (!self.form.shown.covers(&self.quotes)).then(ReviewOutcome::changed)
    }

    /// Returns the agreement that pays for each item, as the visitor confirmed it.
    fn payers(&self) -> ConfirmedPayers {
        let payers = self.quotes.iter().flat_map(|quote| quote.payers());
        payers.map(|(key, agreement)| (key.clone(), agreement)).collect()
    }
}

/// `GET /selection`: explains how to select items. It cannot show the selection, which is stored in the browser
/// and sent only with forms.
async fn explain(member: MemberRequest) -> PageResult {
    member.page("selection.html", context! {})
}

/// `POST /selection`: shows the items of the form and the cost of a download. Buys nothing.
async fn show(posted: MemberForm) -> PageResult {
    let quoted = QuotedSelection::load(&posted).await?;
    review::page(&posted, &quoted, ReviewOutcome::default()).await
}

/// `POST /selection/zip`: buys the items and sends them as one archive, in the order of the form.
async fn zip(posted: MemberForm) -> PageResult {
    let quoted = QuotedSelection::load(&posted).await?;
    if let Some(refusal) = quoted.refusal() {
        return review::page(&posted, &quoted, refusal).await;
    }
    let method = Method::GET;
    let headers = HeaderMap::new();
    let name = file_stem(&posted, "selection");
    let payers = Arc::new(quoted.payers());
    let request = ArchiveRequest {
        keys: &quoted.form.keys,
        // Numbered names keep the order of the selection when the archive is unpacked.
        names: BundleNames { archive: &name, files: BundleNaming::ByPosition },
        principal: &quoted.principal,
        agr: quoted.form.agr,
        method: &method,
        headers: &headers,
        confirmed: Some(&payers),
    };
    match archives::archive_response(&posted.app, request).await {
        Ok(response) => Ok(response),
        Err(error) if error.kind() == ErrorKind::Stale => {
            review_again(&posted, ReviewOutcome::changed()).await
        }
        Err(error) if error.kind() == ErrorKind::Forbidden => {
            let outcome = ReviewOutcome::refused(StatusCode::FORBIDDEN, error.message());
            review_again(&posted, outcome).await
        }
        Err(error) => Err(error.into()),
    }
}

/// `POST /selection/deliver`: delivers the items through one of the visitor's channels, one after the other. The
/// page names the items that could not be delivered; the remaining deliveries are queued or in flight.
async fn deliver(posted: MemberForm) -> PageResult {
    let quoted = QuotedSelection::load(&posted).await?;
    if let Some(refusal) = quoted.refusal() {
        return review::page(&posted, &quoted, refusal).await;
    }
    let Some(channel) = quoted.form.channel.as_deref() else {
        let outcome = ReviewOutcome::refused(StatusCode::BAD_REQUEST, "Choose a channel.");
        return review::page(&posted, &quoted, outcome).await;
    };
    let mut outcome = ReviewOutcome::default();
    for quote in quoted.quotes.iter().filter(|quote| quote.state.delivers()) {
        // The delivery stores the agreement, so that no other agreement pays when the item is sent.
        let agr = quote.state.payer().or(quoted.form.agr).map(|agr| agr.to_string());
        let call = ApiCall::get(format!("/media/{}", quote.key));
        let call = call.query([("channel", Some(channel)), ("agr", agr.as_deref())]);
        match posted.call(&call).await {
            Ok(_) => outcome.done += 1,
            Err(refusal) => outcome.add_failure(&quote.key, &refusal),
        }
    }
    finish(&posted, outcome, "/account/deliveries?done=sent").await
}

/// `POST /selection/order`: orders the items whose delivery needs an approval.
async fn order(posted: MemberForm) -> PageResult {
    let quoted = QuotedSelection::load(&posted).await?;
    if let Some(refusal) = quoted.refusal() {
        return review::page(&posted, &quoted, refusal).await;
    }
    let mut outcome = ReviewOutcome::default();
    let to_order =
        quoted.quotes.iter().filter_map(|quote| Some((&quote.key, order_agreement(quote)?)));
    for (key, agreement) in to_order {
        // The API decides on each item separately. Without the agreement of the quote, it could buy this item with
        // a prepaid download that the quote has assigned to a different item.
        let agr = agreement.to_string();
        // The request for the file places the order. It is refused until the order is approved.
        let call = ApiCall::get(format!("/media/{}", item::download_path(key)));
        match posted.call(&call.query([("agr", Some(agr.as_str()))])).await {
            Err(refusal) if is_order(&refusal) => outcome.done += 1,
            // An earlier order was approved in the meantime, so no order was placed.
            Ok(_) => outcome.add_delivered(key),
            Err(refusal) if refusal.is_too_long() => outcome.add_delivered(key),
            Err(refusal) => outcome.add_failure(key, &refusal),
        }
    }
    finish(&posted, outcome, "/account/orders?done=all_placed").await
}

/// Returns the agreement under which an order would be placed; `None` if the item needs no order.
fn order_agreement(quote: &ItemQuote) -> Option<AgreementId> {
    let QuoteState::Purchase(PurchaseQuote::Order { agreement, recorded: false }) = &quote.state
    else {
        return None;
    };
    Some(*agreement)
}

/// Returns whether the API has placed an order instead of delivering the item.
fn is_order(refusal: &ApiRefusal) -> bool {
    refusal.errors.iter().any(|wrong| wrong.error_code == "order_required")
}

/// Redirects to `next` if the form succeeded for every item; otherwise shows the page with the failures.
async fn finish(posted: &MemberForm, outcome: ReviewOutcome, next: &str) -> PageResult {
    if outcome.is_success() {
        return Ok(see_other(next));
    }
    review_again(posted, outcome).await
}

/// Renders the page with new quotes, because the form may have bought some of the items.
async fn review_again(posted: &MemberForm, outcome: ReviewOutcome) -> PageResult {
    let quoted = QuotedSelection::load(posted).await?;
    review::page(posted, &quoted, outcome).await
}

/// Returns a file name without its extension: `what`, followed by the current time in the site's zone.
fn file_stem(posted: &MemberForm, what: &str) -> String {
    let now = clock::now().to_zoned(posted.app.shared.site.zone.clone());
    format!("{what}-{}", now.strftime("%Y-%m-%d-%H%M"))
}
