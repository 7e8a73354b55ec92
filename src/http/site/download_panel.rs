//! The part of an item's page that offers its Hires: login, agreements, what a download means.

use serde::Serialize;

use super::SiteRequest;
use crate::access::orders::{AgreementOffer, ItemFacts, OfferState};
use crate::http::AppState;
use crate::http::site::language;
use crate::http::site::pages::served_item;
use crate::http::site::session::SiteVisitor;
use crate::http::site::template_environment;
use crate::media::CatalogEntry;
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};
use model::item::AssetGroup;
use model::{ItemKey, RenditionUsage};

/// An agreement that the visitor can choose.
#[derive(Serialize)]
struct DownloadAgreement {
    id: i64,
    name: String,
    type_text: &'static str,
    /// Of a prepaid one: downloads left, of how many.
    remaining: Option<u32>,
    total: Option<u32>,
    /// Where it was used for the item: until when that holds.
    until: Option<String>,
}

/// What the page says of the Hires: how to get it, under which agreement.
#[derive(Default, Serialize)]
pub(super) struct DownloadPanel {
    size_text: Option<String>,
    /// Where the form goes; `None` while there is nothing to ask for.
    pub(super) action: Option<String>,
    agreements: Vec<DownloadAgreement>,
    until: Option<String>,
    order_note: Option<&'static str>,
    /// An order for the item waits for approval.
    ordered: bool,
    /// An agreement gives the item at once.
    pub(super) delivers: bool,
    /// No agreement of the visitor covers the item.
    pub(super) none: bool,
    /// The id of the agreement under which the item was bought: another download is free.
    pub(super) bought: Option<i64>,
    error: Option<String>,
}

/// What a page says of a download of the item; nothing of one that customers do not see yet.
/// `refusal` is what became of a download that was asked for.
pub(super) async fn find(
    site: &SiteRequest,
    key: &ItemKey,
    refusal: Option<&Error>,
) -> Result<Option<DownloadPanel>> {
    let app = &site.app;
    let entry = match app.shared.media.item(key, None, clock::now()).await {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    DownloadPanel::of(app, site.visitor.as_ref(), &entry, refusal).await.map(Some)
}

impl DownloadPanel {
    /// What it says to `visitor`. `refusal` is what became of a download that was asked for.
    async fn of(
        app: &AppState,
        visitor: Option<&SiteVisitor>,
        entry: &CatalogEntry,
        refusal: Option<&Error>,
    ) -> Result<Self> {
        let error = refusal.map(|refusal| refusal.message().to_owned());
        let stranger = Self { size_text: size_text(app, entry), error, ..Self::default() };
        let Some(visitor) = visitor else { return Ok(stranger) };
        let Some(principal) = visitor.principal(app).await? else { return Ok(stranger) };
        let facts = ItemFacts { key: &entry.key, document: &entry.document };
        let offers = app.shared.access.orders.offers(&principal, facts, clock::now()).await?;
        Ok(stranger.with(&offers, entry))
    }

    /// The panel with `offers`: those that deliver, else those that can be ordered from.
    fn with(mut self, offers: &[AgreementOffer], entry: &CatalogEntry) -> Self {
        let is_order = |offer: &&AgreementOffer| matches!(offer.state, OfferState::Order(_));
        let (orders, delivering): (Vec<_>, Vec<_>) = offers.iter().partition(is_order);
        self.none = offers.is_empty();
        if self.none {
            return self;
        }
        let shown = if delivering.is_empty() {
            self.ordered = orders.iter().any(|offer| offer.state == OfferState::Order(true));
            self.order_note = Some(order_note(self.ordered));
            orders
        } else {
            delivering
        };
        if let [only] = shown.as_slice() {
            self.until = bought_until(only);
        }
        self.delivers = self.order_note.is_none();
        let is_bought = |offer: &&&AgreementOffer| matches!(offer.state, OfferState::Bought(_));
        self.bought = shown.iter().find(is_bought).map(|offer| offer.agreement.id.0);
        let several = shown.len() > 1;
        self.agreements = shown.into_iter().map(|offer| row(offer, several)).collect();
        self.action = Some(format!("/item/{}/download", entry.key));
        self
    }
}

fn size_text(app: &AppState, entry: &CatalogEntry) -> Option<String> {
    let size =
        served_item(&app.shared.media, &entry.key, &entry.assets).size(RenditionUsage::Hires)?;
    let length = AssetGroup::of_item(&entry.assets).picture(RenditionUsage::Hires)?.length;
    let bytes = template_environment::size_text(language::current_language(), length);
    Some(format!("{} × {}, {bytes}", size.width, size.height))
}

fn order_note(is_ordered: bool) -> &'static str {
    if is_ordered {
        "The item has been ordered. You can download it once the order is approved."
    } else {
        "You can download the item once your order is approved."
    }
}

/// Until when a download of the item is free again, because it was bought.
fn bought_until(offer: &AgreementOffer) -> Option<String> {
    match offer.state {
        OfferState::Bought(until) => Some(until.to_string()),
        OfferState::Available | OfferState::Order(_) => None,
    }
}

/// The row of an agreement. Among `several` each says itself that it was used before.
fn row(offer: &AgreementOffer, several: bool) -> DownloadAgreement {
    let agreement = &offer.agreement;
    DownloadAgreement {
        id: agreement.id.0,
        name: agreement.name.clone().unwrap_or_else(|| agreement.id.to_string()),
        type_text: agreement.kind.as_str(),
        remaining: agreement.prepaids.map(|prepaids| prepaids.remaining),
        total: agreement.prepaids.map(|prepaids| prepaids.total),
        until: bought_until(offer).filter(|_| several),
    }
}
