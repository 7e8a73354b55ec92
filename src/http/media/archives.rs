//! Archives of several items over HTTP: of a collection, and of a visitor's selection.

use std::sync::Arc;

use axum::{
    http::{HeaderMap, Method},
    response::Response,
};

use crate::access::orders::ConfirmedPayers;
use crate::http::AppState;
use crate::http::media::request::MediaRequest;
use crate::http::media::responses;
use crate::media::{BundleNames, MediaCaller};
use crate::runtime::clock;
use crate::runtime::error::{ErrorKind, Result};
use crate::runtime::fair_queue::RequestClient;
use crate::runtime::limits::BUNDLE_TRIES;
use model::ItemKey;

/// A request for an archive of several items.
#[derive(Clone, Copy)]
pub(crate) struct ArchiveRequest<'a> {
    pub(crate) keys: &'a [ItemKey],
    pub(crate) names: BundleNames<'a>,
    pub(crate) buyer: MediaCaller<'a>,
    pub(crate) method: &'a Method,
    /// Headers with ranges and preconditions, if the client of the API sent any.
    pub(crate) headers: &'a HeaderMap,
    /// What the buyer has confirmed; `None` if it buys whatever its agreements allow.
    pub(crate) confirmed: Option<&'a Arc<ConfirmedPayers>>,
}

/// Builds the archive of the items that the buyer may have, and records their purchases.
///
/// Fails with `agreement_required` when nothing can be delivered, and with [`ErrorKind::Stale`] when the
/// purchase would not be the confirmed one.
pub(crate) async fn archive_response(
    app: &AppState,
    request: ArchiveRequest<'_>,
) -> Result<Response> {
    let ArchiveRequest { keys, names, buyer, method, headers, confirmed } = request;
    let mut tries = 0;
    loop {
        tries += 1;
        let now = clock::now();
        let mut answer = app.shared.media.bundle(keys, names, buyer, now).await?;
        if let Some(payers) = confirmed {
            // Each try decides again which agreements pay.
            answer.sale.confirm(payers)?;
        }
        let client = RequestClient::for_request(buyer.principal, None);
        let media_request = MediaRequest { method, headers, caller: buyer, client, now };
        match responses::file_response(app, &media_request, &answer).await {
            // Another request used up downloads that this one counted on: retry with those that are left,
            // unless a buyer has confirmed another cost.
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
