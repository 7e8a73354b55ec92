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

use std::ops::Deref;

use super::{MemberForm, MemberRequest, PageError, PageResult, SiteRequest};
use crate::http::AppState;
use crate::http::form::see_other;
use crate::http::session::SiteVisitor;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::DESK_FORM_BYTES_MAX;
use axum::{
    Router,
    extract::{FromRequest, FromRequestParts, Request},
    http::request::Parts,
    routing::{get, post},
};

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

/// A page request of an editor of the agency. Other visitors get a 403.
struct EditorRequest(MemberRequest);

impl Deref for EditorRequest {
    type Target = MemberRequest;

    fn deref(&self) -> &MemberRequest {
        &self.0
    }
}

impl FromRequestParts<AppState> for EditorRequest {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, PageError> {
        let member = MemberRequest::from_request_parts(parts, app).await?;
        require_editor(&member.visitor)?;
        Ok(Self(member))
    }
}

/// A form sent by an editor of the agency.
struct EditorForm(MemberForm);

impl Deref for EditorForm {
    type Target = MemberForm;

    fn deref(&self) -> &MemberForm {
        &self.0
    }
}

impl FromRequest<AppState> for EditorForm {
    type Rejection = PageError;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, PageError> {
        let (posted, _) = MemberForm::receive(request, app, DESK_FORM_BYTES_MAX).await?;
        require_editor(&posted.visitor)?;
        Ok(Self(posted))
    }
}

fn require_editor(visitor: &SiteVisitor) -> Result<()> {
    if visitor.is_provider() {
        return Ok(());
    }
    let message = "Only providers may send, change and withdraw items";
    Err(Error::forbidden("provider_required", message))
}
