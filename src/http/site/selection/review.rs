//! The page that reviews a selection: the cost of each item, the share of each agreement, and the forms that
//! confirm a download, a delivery or an order.

use std::collections::{HashMap, HashSet};

use axum::http::StatusCode;
use minijinja::{Value as PageValue, context, value::Serde};
use serde::Serialize;

use super::shown_cost::ShownCost;
use super::{MemberForm, PageResult, QuotedSelection};
use crate::access::orders::PurchaseQuote;
use crate::http::site::api_client::ApiRefusal;
use crate::http::site::credit::credit_line;
use crate::http::site::download_panel::agreement_choice;
use crate::http::site::item;
use crate::http::site::item_summary::ItemSummary;
use crate::http::site::originals::DraggedFile;
use crate::media::{ExclusionCause, ItemQuote, QuoteState};
use crate::runtime::clock;
use crate::runtime::error::Result;
use crate::runtime::limits::SELECTION_ITEMS_MAX;
use model::ItemKey;
use model::account::{Agreement, AgreementId, AgreementType, Money};
use model::item::has_picture;

/// The error message for a form without items.
pub(super) const NOTHING_SELECTED: &str = "Nothing is selected.";

/// The outcome of a form whose response is the review page again.
#[derive(Default)]
pub(super) struct ReviewOutcome {
    /// Number of items for which the form succeeded.
    pub(super) done: usize,
    /// True if the cost differs from the cost on the submitted page, in which case nothing was bought.
    is_changed: bool,
    /// The error message if the form failed as a whole.
    message: Option<String>,
    /// The items for which the form failed.
    failures: Vec<PageValue>,
    status: Option<StatusCode>,
}

impl ReviewOutcome {
    /// Returns the outcome of a form whose page showed a different cost.
    pub(super) fn changed() -> Self {
        let status = Some(StatusCode::CONFLICT);
        Self { is_changed: true, status, ..Self::default() }
    }

    /// Returns the outcome of a form that failed as a whole.
    pub(super) fn refused(status: StatusCode, message: &str) -> Self {
        Self { message: Some(message.to_owned()), status: Some(status), ..Self::default() }
    }

    /// Adds an item for which the form failed. The remaining items are still processed.
    pub(super) fn add_failure(&mut self, key: &ItemKey, refusal: &ApiRefusal) {
        // The page lists all failures. Its HTTP status is the status of the first one.
        self.status.get_or_insert(refusal.status);
        self.fail(key, refusal.sentences(), false);
    }

    /// Adds an item for which no order was placed, because it can be downloaded already.
    pub(super) fn add_delivered(&mut self, key: &ItemKey) {
        self.status.get_or_insert(StatusCode::CONFLICT);
        self.fail(key, Vec::new(), true);
    }

    fn fail(&mut self, key: &ItemKey, messages: Vec<String>, is_delivered: bool) {
        self.failures.push(context! { key => key.to_string(), messages, is_delivered });
    }

    pub(super) fn is_success(&self) -> bool {
        self.status.is_none()
    }
}

/// The effect of a download on an item. The page groups its rows by these states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum RowState {
    /// It was bought before and costs nothing.
    Bought,
    /// A subscription delivers it.
    Included,
    /// A prepaid agreement delivers it and counts one download.
    Prepaid,
    /// An order must be placed and approved first.
    Order,
    /// An order for it waits for approval.
    Ordered,
    /// No agreement delivers it.
    NotCovered,
    Unavailable,
    NoFiles,
    /// It exceeds a limit of the archive.
    Limit,
}

/// An item of the selection.
#[derive(Serialize)]
struct ReviewRow {
    uri: String,
    key: String,
    /// `None` if the visitor may not read the item.
    hit: Option<ItemSummary>,
    credit: String,
    state: RowState,
    /// The agreement that would pay for it.
    agreement: Option<String>,
    /// The time until which a bought item may be downloaded.
    until: Option<String>,
    /// The reason why the item is left out.
    reason: Option<String>,
    /// The lowest price of its licences.
    price: Option<String>,
    dragged: Option<DraggedFile>,
    /// Number of pictures that are bought together with a text.
    bundled: usize,
    /// The agreements that would pay for these pictures.
    bundled_agreements: String,
}

/// The part of the selection that one agreement pays for.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct AgreementShare {
    #[serde(skip)]
    agreement: AgreementId,
    name: String,
    type_text: &'static str,
    state: RowState,
    /// Number of items that it pays for, including pictures that are bought with a text.
    count: usize,
    /// Downloads of a prepaid agreement: the total, the number left now, and the number left after this download.
    total: Option<u32>,
    remaining: Option<u32>,
    after: Option<u32>,
}

/// Renders the review page with the cost of the selection.
pub(super) async fn page(
    posted: &MemberForm,
    quoted: &QuotedSelection,
    outcome: ReviewOutcome,
) -> PageResult {
    let mut rows = Vec::with_capacity(quoted.quotes.len());
    let mut prices = Prices::default();
    for quote in &quoted.quotes {
        rows.push(row(posted, quoted, quote, &mut prices).await?);
    }
    let delivered = quoted.quotes.iter().filter(|quote| quote.state.delivers()).count();
    let organization = posted.visitor.account.organization.as_ref();
    let form = &quoted.form;
    // Without scripts, a form in which nothing is ticked also leads here, although nothing has failed.
    let message = outcome.message.or_else(|| rows.is_empty().then(|| NOTHING_SELECTED.to_owned()));
    let context = context! {
        delivered,
        bought => count(&rows, RowState::Bought),
        to_order => count(&rows, RowState::Order),
        not_covered => count(&rows, RowState::NotCovered),
        unavailable => count(&rows, RowState::Unavailable),
        no_files => count(&rows, RowState::NoFiles),
        full => count(&rows, RowState::Limit) + form.surplus,
        most => SELECTION_ITEMS_MAX,
        rows => Serde(&rows),
        shares => Serde(shares(&quoted.quotes, quoted.principal.agreements())),
        shown => ShownCost::print(&quoted.quotes),
        agreements => choices(quoted.principal.agreements()),
        agr => form.agr.map(|agr| agr.0),
        channel => form.channel.clone(),
        channels => Serde(item::sending_channels(posted).await),
        currency => organization.and_then(|organization| organization.currency.clone()),
        of_collection => form.collection.clone(),
        return_to => form.return_to.clone(),
        is_changed => outcome.is_changed,
        done_items => outcome.done,
        message,
        failures => outcome.failures,
    };
    let status = outcome.status.unwrap_or(StatusCode::OK);
    posted.page_with(status, "selection.html", context)
}

fn count(rows: &[ReviewRow], state: RowState) -> usize {
    rows.iter().filter(|row| row.state == state).count()
}

/// A cache of the lowest price by product codes, since items of one kind have the same codes.
#[derive(Default)]
struct Prices(HashMap<Vec<String>, Option<Money>>);

impl Prices {
    async fn lowest(
        &mut self,
        posted: &MemberForm,
        quoted: &QuotedSelection,
        codes: &[String],
    ) -> Result<Option<Money>> {
        if let Some(known) = self.0.get(codes) {
            return Ok(*known);
        }
        let orders = &posted.app.shared.access.orders;
        let licences =
            orders.pricelist(&quoted.principal, codes, Vec::new(), clock::now()).await?;
        let lowest = licences.into_iter().filter_map(|licence| licence.price).min();
        self.0.insert(codes.to_vec(), lowest);
        Ok(lowest)
    }
}

async fn row(
    posted: &MemberForm,
    quoted: &QuotedSelection,
    quote: &ItemQuote,
    prices: &mut Prices,
) -> Result<ReviewRow> {
    let key = &quote.key;
    let found = posted.get(format!("/media/{key}.json")).await;
    let status = found.as_ref().map_or_else(|refusal| refusal.status, |_| StatusCode::OK);
    let document = found.unwrap_or_default();
    let mut state = row_state(&quote.state, quoted.principal.agreements());
    // The quote does not distinguish a missing agreement from a missing item, but the status of the item's URL
    // does.
    if state == RowState::Unavailable && matches!(status, StatusCode::OK | StatusCode::FORBIDDEN) {
        state = RowState::NotCovered;
    }
    let agreement = paying(&quote.state).and_then(|id| find(quoted.principal.agreements(), id));
    let price = match state {
        RowState::NotCovered | RowState::Unavailable | RowState::NoFiles | RowState::Limit => None,
        RowState::Bought
        | RowState::Included
        | RowState::Prepaid
        | RowState::Order
        | RowState::Ordered => prices.lowest(posted, quoted, &quote.codes).await?,
    };
    let hit = ItemSummary::from_document(&document);
    let bundled = quote.bundled.iter();
    let payers: Vec<_> = bundled.filter_map(|bundled| bundled.purchase.payer()).collect();
    Ok(ReviewRow {
        uri: posted.app.shared.media.links().item(key),
        key: key.to_string(),
        credit: credit_line(&document),
        agreement: agreement.map(|agreement| label(agreement, quoted.principal.agreements())),
        until: until(&quote.state),
        reason: reason(&quote.state).filter(|_| state == RowState::NotCovered),
        price: price.map(|price| price.to_string()),
        dragged: dragged(key, state, hit.as_ref()),
        bundled: payers.len(),
        bundled_agreements: labels(&payers, quoted.principal.agreements()),
        hit,
        state,
    })
}

/// Returns the file that the visitor gets by dragging the row's picture: the original if the item was bought
/// already, else the Preview.
fn dragged(key: &ItemKey, state: RowState, hit: Option<&ItemSummary>) -> Option<DraggedFile> {
    if !has_picture(key.media_type) {
        return None;
    }
    if state == RowState::Bought {
        return Some(DraggedFile::original(key));
    }
    hit?.preview.as_ref().map(|preview| DraggedFile::rendition(&preview.url))
}

fn row_state(state: &QuoteState, agreements: &[Agreement]) -> RowState {
    match state {
        QuoteState::Purchase(PurchaseQuote::Bought { .. }) => RowState::Bought,
        QuoteState::Purchase(PurchaseQuote::Buys(id)) => {
            let agreement = find(agreements, *id);
            if agreement.is_some_and(|agreement| agreement.kind == AgreementType::Prepaid) {
                RowState::Prepaid
            } else {
                RowState::Included
            }
        }
        QuoteState::Purchase(PurchaseQuote::Order { recorded: true, .. }) => RowState::Ordered,
        QuoteState::Purchase(PurchaseQuote::Order { recorded: false, .. }) => RowState::Order,
        QuoteState::Purchase(PurchaseQuote::Refused(_)) => RowState::NotCovered,
        QuoteState::LeftOut(cause) => match cause {
            ExclusionCause::Unavailable => RowState::Unavailable,
            ExclusionCause::NoFiles => RowState::NoFiles,
            ExclusionCause::Agreement => RowState::NotCovered,
            ExclusionCause::Limit => RowState::Limit,
        },
    }
}

/// Returns the agreement that pays for the item, now or once an order is approved.
fn paying(state: &QuoteState) -> Option<AgreementId> {
    match state {
        QuoteState::Purchase(PurchaseQuote::Buys(agreement)) => Some(*agreement),
        QuoteState::Purchase(PurchaseQuote::Order { agreement, .. }) => Some(*agreement),
        QuoteState::Purchase(PurchaseQuote::Bought { agreement, .. }) => *agreement,
        QuoteState::Purchase(PurchaseQuote::Refused(_)) | QuoteState::LeftOut(_) => None,
    }
}

fn until(state: &QuoteState) -> Option<String> {
    let QuoteState::Purchase(PurchaseQuote::Bought { until, .. }) = state else { return None };
    until.map(|until| until.to_string())
}

/// Returns the reason why no agreement delivers the item. All other reasons follow from the row's state.
fn reason(state: &QuoteState) -> Option<String> {
    let QuoteState::Purchase(PurchaseQuote::Refused(reason)) = state else { return None };
    Some(reason.clone())
}

fn find(agreements: &[Agreement], id: AgreementId) -> Option<&Agreement> {
    agreements.iter().find(|agreement| agreement.id == id)
}

fn name(agreement: &Agreement) -> String {
    agreement.name.clone().unwrap_or_else(|| agreement.id.to_string())
}

/// Returns the name of the agreement, followed by its number if two of `agreements` have the same name.
fn label(agreement: &Agreement, agreements: &[Agreement]) -> String {
    let own = name(agreement);
    let is_shared = agreements.iter().any(|other| other.id != agreement.id && name(other) == own);
    if is_shared { format!("{own} ({})", agreement.id) } else { own }
}

/// Lists the names of the agreements `ids`, each once.
fn labels(ids: &[AgreementId], agreements: &[Agreement]) -> String {
    let paying = agreements.iter().filter(|agreement| ids.contains(&agreement.id));
    paying.map(|agreement| label(agreement, agreements)).collect::<Vec<_>>().join(", ")
}

/// Returns the share of each agreement, in the order of the items. Bought items cost nothing.
fn shares(quotes: &[ItemQuote], agreements: &[Agreement]) -> Vec<AgreementShare> {
    // A picture may be selected itself and also come with a selected text. It is paid for once.
    let delivered = quotes.iter().filter(|quote| quote.state.delivers());
    let mut known: HashSet<&ItemKey> = delivered.map(|quote| &quote.key).collect();
    let mut states: Vec<QuoteState> = quotes.iter().map(|quote| quote.state.clone()).collect();
    for bundled in quotes.iter().flat_map(|quote| &quote.bundled) {
        if known.insert(&bundled.key) {
            states.push(QuoteState::Purchase(bundled.purchase.clone()));
        }
    }
    shares_of(states.iter(), agreements)
}

fn shares_of<'a>(
    states: impl Iterator<Item = &'a QuoteState>,
    agreements: &[Agreement],
) -> Vec<AgreementShare> {
    let mut shares: Vec<AgreementShare> = Vec::new();
    for state in states {
        let row_state = row_state(state, agreements);
        let agreement = paying(state).and_then(|id| find(agreements, id));
        let Some(agreement) = agreement.filter(|_| row_state != RowState::Bought) else {
            continue;
        };
        let known = shares
            .iter_mut()
            .find(|share| share.agreement == agreement.id && share.state == row_state);
        match known {
            Some(share) => share.count += 1,
            None => shares.push(AgreementShare {
                agreement: agreement.id,
                name: label(agreement, agreements),
                type_text: agreement.kind.as_str(),
                state: row_state,
                count: 1,
                total: agreement.prepaids.map(|prepaids| prepaids.total),
                remaining: agreement.prepaids.map(|prepaids| prepaids.remaining),
                after: None,
            }),
        }
    }
    for share in &mut shares {
        let count = u32::try_from(share.count).unwrap_or(u32::MAX);
        share.after = share.remaining.map(|remaining| remaining.saturating_sub(count));
    }
    shares
}

/// Lists the agreements in force, from which the visitor chooses the one that pays.
fn choices(agreements: &[Agreement]) -> PageValue {
    let now = clock::now();
    let in_force = agreements.iter().filter(|agreement| agreement.is_in_force(now));
    in_force
        .map(|agreement| agreement_choice(agreement, &label(agreement, agreements), None))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::BundledQuote;
    use model::account::{OrganizationId, PrepaidDownloads};

    fn agreement(id: i64, kind: AgreementType, prepaids: Option<PrepaidDownloads>) -> Agreement {
        Agreement {
            id: AgreementId(id),
            organization: OrganizationId(1),
            kind,
            super_agreement: false,
            products: Vec::new(),
            name: None,
            description: None,
            expires: None,
            prepaids,
        }
    }

    #[test]
    fn each_agreement_says_what_the_selection_takes_of_it() {
        let left = PrepaidDownloads { total: 10, remaining: 3 };
        let agreements = [
            agreement(1, AgreementType::Subscription, None),
            agreement(2, AgreementType::Prepaid, Some(left)),
            agreement(3, AgreementType::Direct, None),
        ];
        let buys = |id| QuoteState::Purchase(PurchaseQuote::Buys(AgreementId(id)));
        let bought = PurchaseQuote::Bought { agreement: Some(AgreementId(2)), until: None };
        let order = PurchaseQuote::Order { agreement: AgreementId(3), recorded: false };
        let states = [
            buys(2),
            buys(1),
            QuoteState::Purchase(bought),
            QuoteState::Purchase(order),
            buys(2),
            QuoteState::Purchase(PurchaseQuote::Refused("no".to_owned())),
        ];
        let shares = shares_of(states.iter(), &agreements);
        let found: Vec<_> = shares
            .iter()
            .map(|share| (share.name.as_str(), share.state, share.count, share.after))
            .collect();
        let expected = [
            ("2", RowState::Prepaid, 2, Some(1)),
            ("1", RowState::Included, 1, None),
            ("3", RowState::Order, 1, None),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn pictures_that_come_with_a_text_are_counted_once() {
        let agreements = [agreement(1, AgreementType::Subscription, None)];
        let buys = || PurchaseQuote::Buys(AgreementId(1));
        let quote = |key: &str, pictures: &[&str]| {
            let bundled =
                |key: &&str| BundledQuote { key: key.parse().unwrap(), purchase: buys() };
            ItemQuote {
                key: key.parse().unwrap(),
                codes: Vec::new(),
                state: QuoteState::Purchase(buys()),
                bundled: pictures.iter().map(bundled).collect(),
            }
        };
        let quotes = [
            quote("text/a", &["image/p", "image/q"]),
            quote("text/b", &["image/q"]),
            quote("image/p", &[]),
        ];
        let shares = shares(&quotes, &agreements);
        assert_eq!(shares.iter().map(|share| share.count).collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn agreements_of_one_name_are_told_apart() {
        let left = |remaining| Some(PrepaidDownloads { total: 10, remaining });
        let mut agreements = [
            agreement(1, AgreementType::Prepaid, left(3)),
            agreement(2, AgreementType::Prepaid, left(1)),
        ];
        for agreement in &mut agreements {
            agreement.name = Some("Pictures".to_owned());
        }
        let states =
            [1, 2, 1].map(|id| QuoteState::Purchase(PurchaseQuote::Buys(AgreementId(id))));
        let shares = shares_of(states.iter(), &agreements);
        let found: Vec<_> =
            shares.iter().map(|share| (share.name.as_str(), share.count, share.after)).collect();
        assert_eq!(found, [("Pictures (1)", 2, Some(1)), ("Pictures (2)", 1, Some(0))]);
    }

    #[test]
    fn a_picture_that_takes_nothing_is_dragged_as_its_original() {
        let key: ItemKey = "image/a".parse().unwrap();
        let original = Some(DraggedFile::original(&key));
        assert_eq!(dragged(&key, RowState::Bought, None), original);
        assert_eq!(dragged(&key, RowState::Included, None), None);
        let text: ItemKey = "text/a".parse().unwrap();
        assert_eq!(dragged(&text, RowState::Bought, None), None);
    }
}
