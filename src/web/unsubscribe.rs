//! The page behind the link that ends a notification (RFC 8058): no login, one click.

use axum::{
    Router,
    extract::{Path, State},
    http::StatusCode,
    response::Response,
    routing::get,
};
use minijinja::context;

use super::{
    App,
    pages::{head, page_for, plain_error_page},
};
use crate::error::{Error, Kind, Result};
use crate::notifications::Subscription;

/// The addresses of this file.
pub(super) fn routes() -> Router<App> {
    Router::new().route("/unsubscribe/{token}", get(ask).post(end))
}

/// Asks first: programs that look at the links of a mail must not end anything.
async fn ask(State(app): State<App>, Path(token): Path<String>) -> Response {
    let page = asked(&app, &token).await;
    page.unwrap_or_else(|error| plain_error_page(&app, &error))
}

async fn asked(app: &App, token: &str) -> Result<Response> {
    let found = app.shared.notifications.subscription(token).await?;
    match found.ok_or_else(unknown)? {
        Subscription::Active(title) => page(app, token, ("ask", &title)),
        Subscription::Ended => page(app, token, ("gone", "")),
    }
}

/// Mail programs post the field of RFC 8058, the page's own button the same; neither is needed.
async fn end(State(app): State<App>, Path(token): Path<String>) -> Response {
    let page = ended(&app, &token).await;
    page.unwrap_or_else(|error| plain_error_page(&app, &error))
}

async fn ended(app: &App, token: &str) -> Result<Response> {
    match app.shared.notifications.unsubscribe(token).await? {
        true => page(app, token, ("done", "")),
        false => Err(unknown()),
    }
}

fn unknown() -> Error {
    Error::new(Kind::NotFound, "This link is not valid.")
}

fn page(app: &App, token: &str, (state, title): (&str, &str)) -> Result<Response> {
    let context = context! { token, state, title, ..head(app, None, "/") };
    let mut response = page_for(app, None, "unsubscribe.html", context)?;
    *response.status_mut() = StatusCode::OK;
    Ok(response)
}
