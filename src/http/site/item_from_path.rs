//! The item that the path of a request names.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use super::PageError;
use crate::http::AppState;
use crate::runtime::error::{Error, ErrorKind, Result};
use model::ItemKey;

/// The item in the path of a request.
pub(super) struct ItemFromPath(pub(super) ItemKey);

impl FromRequestParts<AppState> for ItemFromPath {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, PageError> {
        let path = Path::<(String, String)>::from_request_parts(parts, app).await;
        // A path that names no valid item gets the status 404, not 400.
        let Path((media_type, id)) = path.map_err(|_| no_item())?;
        Ok(Self(format!("{media_type}/{id}").parse().map_err(|_| no_item())?))
    }
}

/// Returns the error for an item that the visitor may not see, or that does not exist.
pub(super) fn no_item() -> Error {
    Error::new(ErrorKind::NotFound, "This item does not exist or is no longer available.")
}
