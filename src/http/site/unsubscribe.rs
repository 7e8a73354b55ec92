//! The page of the unsubscribe link in mails, which works with one click and without a login (RFC 8058).

use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::get;
use minijinja::context;

use crate::distribution::notifications::LinkedSubscription;
use crate::http::AppState;
use crate::http::site::pages::{head, page_for, page_or_error};
use crate::runtime::error::{Error, ErrorKind, Result};

/// The routes of the unsubscribe page.
pub(crate) fn routes() -> Router<AppState> {
    Router::new().route("/unsubscribe/{token}", get(show_confirmation).post(unsubscribe))
}

/// Asks for confirmation, because programs that open the links of a mail must not end a notification.
async fn show_confirmation(State(app): State<AppState>, Path(token): Path<String>) -> Response {
    page_or_error(&app, confirmation_page(&app, &token).await)
}

async fn confirmation_page(app: &AppState, token: &str) -> Result<Response> {
    let found = app.shared.distribution.notifications.subscription(token).await?;
    match found.ok_or_else(invalid_link)? {
        LinkedSubscription::Active(title) => page(app, token, "ask", &title),
        LinkedSubscription::Ended => page(app, token, "gone", ""),
    }
}

/// Ends the notification. Mail programs and the page's button post the field of RFC 8058, but the field is not
/// required.
async fn unsubscribe(State(app): State<AppState>, Path(token): Path<String>) -> Response {
    page_or_error(&app, unsubscribe_page(&app, &token).await)
}

async fn unsubscribe_page(app: &AppState, token: &str) -> Result<Response> {
    if app.shared.distribution.notifications.unsubscribe(token).await? {
        page(app, token, "done", "")
    } else {
        Err(invalid_link())
    }
}

fn invalid_link() -> Error {
    Error::new(ErrorKind::NotFound, "This link is not valid.")
}

fn page(app: &AppState, token: &str, state: &str, title: &str) -> Result<Response> {
    let context = context! { token, state, title, ..head(app, None, "/") };
    page_for(app, None, "unsubscribe.html", context)
}
