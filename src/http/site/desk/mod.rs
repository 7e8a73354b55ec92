//! The pages of the agency's editors: uploads, captions of items, metadata templates.
//!
//! All pages require the role `ROLE_PROVIDER`, which the APIs check again. The pages work without scripts, except
//! for sending files.

mod conflict;
mod edit;
mod edit_many;
mod fields;
mod loaded_item;
mod publish;
mod restoration;
mod selection;
mod templates;
mod upload;

use axum::Router;
use axum::http::HeaderMap;
use axum::routing::{get, post};

use super::{
    DeferredForm, MemberForm, MemberRequest, PageError, PageResult, SiteRequest, VisitorCheck,
};
use crate::http::AppState;
use crate::http::form::see_other;
use crate::http::session::SiteVisitor;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::DESK_FORM_BYTES_MAX;

/// The routes of the desk.
pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/desk", get(to_uploads))
        .route("/desk/upload", get(upload::show))
        .route("/desk/uploads/publish", post(publish::choose))
        .route("/desk/uploads/{id}/preview", get(upload::preview))
        .route("/desk/uploads/{id}/discard", post(upload::discard))
        .route("/desk/publish", get(publish::show).post(publish::publish))
        .route("/desk/select", post(selection::select))
        .route("/desk/edit", get(selection::show).post(selection::save))
        .route("/desk/withdraw", post(selection::withdraw))
        .route("/desk/restore", post(selection::restore))
        .route("/desk/templates", get(templates::list).post(templates::create))
        .route("/desk/templates/new", get(templates::show_new))
        .route("/desk/templates/{id}", get(templates::show).post(templates::update))
        .route("/desk/templates/{id}/remove", post(templates::remove))
}

async fn to_uploads(_editor: EditorRequest) -> PageResult {
    Ok(see_other("/desk/upload"))
}

/// The condition that the visitor is an editor of the agency. Other visitors get a 403.
struct Editor;

/// A page request of an editor of the agency.
type EditorRequest = MemberRequest<Editor>;
/// A form sent by an editor of the agency.
type EditorForm = MemberForm<Editor>;

impl VisitorCheck for Editor {
    const BYTES_MAX: usize = DESK_FORM_BYTES_MAX;

    fn check(
        _: &SiteRequest,
        visitor: &SiteVisitor,
        _: &HeaderMap,
        _: Option<&DeferredForm>,
    ) -> Result<(), PageError> {
        if visitor.is_provider() {
            return Ok(());
        }
        let message = "Only providers may send, change and withdraw items";
        Err(Error::forbidden("provider_required", message).into())
    }
}
