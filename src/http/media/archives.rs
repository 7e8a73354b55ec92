//! Archives of several items over HTTP: the items of a collection, or a visitor's selection.

use std::sync::Arc;

use axum::http::{HeaderMap, Method};
use axum::response::Response;

use crate::access::auth::Principal;
use crate::access::orders::ConfirmedPayers;
use crate::http::AppState;
use crate::http::media::request::MediaRequest;
use crate::http::media::responses;
use crate::media::{BundleNames, MediaCaller};
use crate::runtime::clock;
use crate::runtime::error::{ErrorKind, Result};
use crate::runtime::fair_queue::RequestClient;
use model::ItemKey;
use model::account::AgreementId;

/// Attempts to build an archive of several items, which restarts if a purchase was made meanwhile.
const BUNDLE_TRIES: usize = 3;

/// A request for an archive of several items.
#[derive(Clone, Copy)]
pub(crate) struct ArchiveRequest<'a> {
    pub(crate) keys: &'a [ItemKey],
    pub(crate) names: BundleNames<'a>,
    pub(crate) principal: &'a Principal,
    /// The agreement that pays, if the buyer named one.
    pub(crate) agr: Option<AgreementId>,
    pub(crate) method: &'a Method,
    /// Headers with ranges and preconditions, if the client of the API sent any.
    pub(crate) headers: &'a HeaderMap,
    /// The payers that the buyer has confirmed; `None` if any of its agreements may pay.
    pub(crate) confirmed: Option<&'a Arc<ConfirmedPayers>>,
}

/// Builds the archive of the items that the buyer may download, and records their purchases.
///
/// Fails with `agreement_required` if nothing can be delivered, and with [`ErrorKind::Stale`] if the purchase
/// differs from the confirmed one.
pub(crate) async fn archive_response(
    app: &AppState,
    request: ArchiveRequest<'_>,
) -> Result<Response> {
    let ArchiveRequest { keys, names, principal, agr, method, headers, confirmed } = request;
    let principal = Some(principal);
    let mut tries = 0;
    loop {
        tries += 1;
        let caller = MediaCaller { principal, agr, now: clock::now() };
        let mut answer = app.shared.media.bundle(keys, names, caller).await?;
        if let Some(payers) = confirmed {
            // Each try decides again which agreements pay.
            answer.sale.confirm(payers)?;
        }
        let client = RequestClient::for_request(principal, None);
        let media_request = MediaRequest { method, headers, caller, client };
        match responses::file_response(app, &media_request, &answer).await {
            // A concurrent request used up downloads that this one counted on. Retry with the remaining downloads,
            // unless a buyer has confirmed the cost, which would now be different.
            Err(refused)
                if refused.kind() == ErrorKind::Forbidden
                    && confirmed.is_none()
                    && tries < BUNDLE_TRIES => {}
            // An item changed during the assembly: retry.
            Ok(None) if tries < BUNDLE_TRIES => {}
            Ok(None) => return Err(responses::unstable_item()),
            Ok(Some(response)) => return Ok(response),
            Err(error) => return Err(error),
        }
    }
}
