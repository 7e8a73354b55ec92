//! A request for media, and the parameters of its query.

use axum::http::{HeaderMap, Method, Uri};

use crate::http::credentials;
use crate::http::protocol::request::QueryParameters;
use crate::media::MediaCaller;
use crate::runtime::error::Result;
use crate::runtime::fair_queue::RequestClient;
use formats::NewsmlVersion;
use model::account::AgreementId;

/// A request for media with its authenticated caller.
pub(crate) struct MediaRequest<'a> {
    pub(crate) method: &'a Method,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) caller: MediaCaller<'a>,
    /// The client whose rate limit a render counts against.
    pub(crate) client: Option<RequestClient>,
}

/// Reads the query parameter `agr`: the agreement that pays for the purchase.
pub(super) fn agreement_parameter(uri: &Uri) -> Result<Option<AgreementId>> {
    // A number beyond 64 bits saturates, so the range excludes both ends.
    let found = QueryParameters::from_uri(uri)?.integer("agr", i64::MIN + 1..=i64::MAX - 1)?;
    Ok(found.map(AgreementId))
}

/// Reads the query parameter `version`: a version of NewsML-G2.
pub(super) fn newsml_parameter(uri: &Uri) -> Result<Option<NewsmlVersion>> {
    // Other parameters of a document have no meaning, so they are not validated.
    if credentials::query_value(uri, "version").is_none() {
        return Ok(None);
    }
    QueryParameters::from_uri(uri)?.variant("version")
}
