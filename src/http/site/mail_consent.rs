//! The page of the consent link in mails to recipients other than the sending user. The recipient accepts or stops
//! such mails without a login.

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::routing::get;
use minijinja::context;

use crate::http::AppState;
use crate::http::form::{FormFields, form_body};
use crate::http::site::pages::{head, page_for, page_or_error};
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};

/// The routes of the consent page.
pub(crate) fn routes() -> Router<AppState> {
    Router::new().route("/mail/{token}", get(show).post(answer))
}

/// Shows the choice. A `GET` stores nothing, because programs that open the links of a mail must not answer for
/// its reader.
async fn show(State(app): State<AppState>, Path(token): Path<String>) -> Response {
    page_or_error(&app, page(&app, &token, None).await)
}

async fn answer(
    State(app): State<AppState>,
    Path(token): Path<String>,
    request: Request,
) -> Response {
    page_or_error(&app, record_answer(&app, &token, request).await)
}

async fn record_answer(app: &AppState, token: &str, request: Request) -> Result<Response> {
    let (_headers, body) = form_body(request).await?;
    let (agrees, state) = match FormFields::parse(&body)?.find("answer") {
        Some("agree") => (true, "agreed"),
        Some("stop") => (false, "stopped"),
        Some(_) | None => {
            return Err(Error::invalid("body", "answer", "enum", "answer must be agree or stop"));
        }
    };
    let is_valid = app.shared.distribution.recipients.answer(token, agrees, clock::now()).await?;
    // The link may have expired between the page and the answer.
    if !is_valid {
        return Err(invalid_link());
    }
    page(app, token, Some(state)).await
}

fn invalid_link() -> Error {
    Error::new(ErrorKind::NotFound, "This link is not valid, or it has expired.")
}

async fn page(app: &AppState, token: &str, state: Option<&str>) -> Result<Response> {
    let invitation = app.shared.distribution.recipients.invitation(token, clock::now()).await?;
    let invitation = invitation.ok_or_else(invalid_link)?;
    // Right after an answer the page confirms it. On later visits the page shows the stored state.
    let state = match state {
        Some(state) => state,
        None if invitation.is_refused => "stopped",
        None if invitation.is_awaited => "ask",
        None => "informed",
    };
    let sender = invitation.sender;
    let address = invitation.address;
    let context = context! { state, sender, address, ..head(app, None, "/") };
    // The recipient need not have an account, so the page ignores any session.
    page_for(app, None, "mail.html", context)
}
