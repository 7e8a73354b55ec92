//! The part of an item's page that offers its Hires: login, agreements, the consequences of a download, and
//! earlier downloads of the visitor's organization.

use minijinja::{Value as PageValue, context};
use serde::Serialize;

use super::SiteRequest;
use crate::access::orders::{AgreementOffer, ItemFacts, ItemOrder, OfferState};
use crate::http::AppState;
use crate::http::session::SiteVisitor;
use crate::http::site::pages::served_item;
use crate::http::site::{language, template_environment};
use crate::media::CatalogEntry;
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};
use model::account::Agreement;
use model::item::AssetGroup;
use model::{ItemKey, RenditionUsage};

/// Orders of an item by the visitor's organization on its page, the latest.
const SITE_ITEM_ORDERS: usize = 6;

/// The content of the download panel of an item.
#[derive(Default, Serialize)]
pub(super) struct DownloadPanel {
    size_text: Option<String>,
    /// Target of the download form; `None` if there is nothing to download.
    pub(super) action: Option<String>,
    agreements: Vec<PageValue>,
    until: Option<String>,
    /// True if no agreement delivers before an order is approved.
    needs_order: bool,
    /// True if an order for the item waits for approval.
    ordered: bool,
    /// True if an agreement allows the download at once.
    pub(super) delivers: bool,
    /// True if no agreement of the visitor covers the item.
    pub(super) none: bool,
    /// The id of the agreement under which the item was bought. Further downloads under it are free.
    pub(super) bought: Option<i64>,
    /// Earlier orders of the item by the visitor's organization, the latest first.
    orders: Vec<PageValue>,
    error: Option<String>,
}

/// Builds the panel of an item; `None` if customers cannot see the item yet. `refusal` is the error of a download
/// that was refused.
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
    DownloadPanel::for_visitor(app, site.visitor.as_ref(), &entry, refusal).await.map(Some)
}

impl DownloadPanel {
    /// Builds the panel for `visitor`. `refusal` is the error of a download that was refused.
    async fn for_visitor(
        app: &AppState,
        visitor: Option<&SiteVisitor>,
        entry: &CatalogEntry,
        refusal: Option<&Error>,
    ) -> Result<Self> {
        let error = refusal.map(|refusal| refusal.message().to_owned());
        let anonymous = Self { size_text: size_text(app, entry), error, ..Self::default() };
        let Some(visitor) = visitor else { return Ok(anonymous) };
        // The user may have been deactivated since the session was read.
        let Some(principal) = visitor.principal(app).await? else { return Ok(anonymous) };
        let facts = ItemFacts { key: &entry.key, document: &entry.document };
        let orders = &app.shared.access.orders;
        let offers = orders.offers(&principal, facts, clock::now()).await?;
        let earlier = orders.of_item(&principal, &entry.key, SITE_ITEM_ORDERS).await?;
        let panel = anonymous.with(&offers, entry);
        Ok(Self { orders: earlier.into_iter().map(earlier_order).collect(), ..panel })
    }

    /// Adds the offers that allow a download at once, or the offers that need an order if no offer does.
    fn with(mut self, offers: &[AgreementOffer], entry: &CatalogEntry) -> Self {
        // An order waits for an approval, so it is offered only if no agreement delivers at once.
        let (orders, delivering): (Vec<_>, Vec<_>) =
            offers.iter().partition(|offer| matches!(offer.state, OfferState::Order(_)));
        self.none = offers.is_empty();
        if self.none {
            return self;
        }
        let shown = if delivering.is_empty() {
            // One recorded order is enough: only its approval is missing.
            self.ordered = orders.iter().any(|offer| offer.state == OfferState::Order(true));
            self.needs_order = true;
            orders
        } else {
            delivering
        };
        // If there is a single agreement, the panel itself shows the expiry.
        if let [only] = shown.as_slice() {
            self.until = bought_until(only);
        }
        self.delivers = !self.needs_order;
        let bought = shown.iter().find(|offer| matches!(offer.state, OfferState::Bought(_)));
        // The page says that further downloads under this agreement are free of charge.
        self.bought = bought.map(|offer| offer.agreement.id.0);
        let several = shown.len() > 1;
        // With several agreements, each row shows its own expiry.
        let row = |offer: &AgreementOffer| {
            let agreement = &offer.agreement;
            let name = agreement.name.clone().unwrap_or_else(|| agreement.id.to_string());
            agreement_choice(agreement, &name, bought_until(offer).filter(|_| several))
        };
        self.agreements = shown.into_iter().map(row).collect();
        self.action = Some(format!("/item/{}/download", entry.key));
        self
    }
}

/// Describes an order of the item by the visitor's organization. It has the page of the order if the visitor may
/// see it.
fn earlier_order(order: ItemOrder) -> PageValue {
    context! {
        date => order.created.to_string(),
        is_waiting => order.is_waiting,
        is_own => order.is_own,
        url => order.visible.map(|id| format!("/account/orders/{id}")),
    }
}

fn size_text(app: &AppState, entry: &CatalogEntry) -> Option<String> {
    let size =
        // The size of the served file, which is upright. The stored file may be rotated by 90°.
        served_item(&app.shared.media, &entry.key, &entry.assets).size(RenditionUsage::Hires)?;
    let length = AssetGroup::of_item(&entry.assets).picture(RenditionUsage::Hires)?.length;
    let bytes = template_environment::size_text(language::current_language(), length);
    Some(format!("{} × {}, {bytes}", size.width, size.height))
}

/// Returns the time until which downloads are free, if the item was bought.
fn bought_until(offer: &AgreementOffer) -> Option<String> {
    let OfferState::Bought(until) = offer.state else { return None };
    Some(until.to_string())
}

/// Describes an agreement that the visitor can choose, with the downloads of a prepaid one. `until` is the time
/// until which downloads are free, if the item was bought under the agreement.
pub(super) fn agreement_choice(
    agreement: &Agreement,
    name: &str,
    until: Option<String>,
) -> PageValue {
    context! {
        id => agreement.id.0,
        name,
        type_text => agreement.kind.as_str(),
        remaining => agreement.prepaids.map(|prepaids| prepaids.remaining),
        total => agreement.prepaids.map(|prepaids| prepaids.total),
        until,
    }
}
