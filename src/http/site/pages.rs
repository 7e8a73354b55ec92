//! Renders pages with their common context and security headers, and renders error pages.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use minijinja::{Value, context, value::Serde};

use crate::http::cache_policy::CachePolicy;
use crate::http::help_link::HelpAnchor;
use crate::http::protocol::respond;
use crate::http::session::SiteVisitor;
use crate::http::site::login_url::login_url;
use crate::http::{AppState, cache_policy, error_response};
use crate::media::Media;
use crate::runtime::error::{Error, Result};
use model::ItemKey;
use model::item::{Asset, DocumentLayout, DocumentRequest};

/// Returns the template context of the page's head for `visitor`. `here` is the path and query of the page.
pub(crate) fn head(app: &AppState, visitor: Option<&SiteVisitor>, here: &str) -> Value {
    context! {
        site_name => app.shared.site.name.clone(),
        user => Serde(visitor.map(SiteVisitor::head)),
        logout_action => "/o/logout",
        csrf => visitor.map(SiteVisitor::form_token),
        session_name => visitor.map(SiteVisitor::session_name),
        here => here,
        // The navigation marks an entry only on pages that set their own path.
        path => "",
        is_admin => visitor.is_some_and(|visitor| visitor.account.user.access.admin),
        is_provider => visitor.is_some_and(SiteVisitor::is_provider),
        is_operator => visitor.is_some_and(SiteVisitor::has_operator_role),
        login_url => login_url(here),
    }
}

/// Renders a page that depends on the visitor and the language. The page of a logged-in visitor is never cached.
pub(crate) fn page_for(
    app: &AppState,
    visitor: Option<&SiteVisitor>,
    template: &str,
    context: Value,
) -> Result<Response> {
    let mut response = match visitor {
        Some(_) => private_page(app, StatusCode::OK, template, context, FormTargets::OwnPages)?,
        // All anonymous visitors get the same page, so caches may store it.
        None => html(app, StatusCode::OK, app.shared.site.pages.render(template, context)?),
    };
    cache_policy::vary_by_visitor(response.headers_mut());
    Ok(response)
}

pub(crate) fn served_item<'a>(
    media: &Media,
    key: &'a ItemKey,
    assets: &'a [Asset],
) -> DocumentRequest<'a> {
    DocumentRequest {
        key,
        assets,
        sizes: media.settings().sizes,
        crop: None,
        layout: DocumentLayout::Full,
        rights: None,
        with_file_rights: false,
    }
}

/// Returns the page, or the error page for an anonymous visitor.
pub(crate) fn page_or_error(app: &AppState, page: Result<Response>) -> Response {
    page.unwrap_or_else(|error| error_page(app, &error, head(app, None, "/")))
}

/// Renders the error page. `head` is the result of [`head`] for the visitor.
pub(crate) fn error_page(app: &AppState, error: &Error, head: Value) -> Response {
    let mut response = error_response::build(error);
    let status = response.status();
    // The first detail describes the mistake; the message of a validation error is general.
    let message = error.details().first().map_or(error.message(), |detail| &detail.message);
    let anchor = HelpAnchor::for_error(error);
    let context = context! {
        help => anchor.path(),
        status => status.as_u16(),
        message => message,
        ..head
    };
    // If the page cannot be rendered, the error is sent as JSON.
    let Ok(text) = app.shared.site.pages.render("error.html", context) else { return response };
    let mut page = html(app, status, text);
    // The page is a new response and needs the anchor for its `Link` header.
    page.extensions_mut().insert(anchor);
    // The page gets the caching and retry headers of the JSON response.
    for name in [header::CACHE_CONTROL, header::RETRY_AFTER] {
        if let Some(value) = response.headers_mut().remove(&name) {
            page.headers_mut().insert(name, value);
        }
    }
    page
}

/// The permitted targets of a page's forms, including redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormTargets {
    /// Only pages of the site.
    OwnPages,
    /// An OAuth client, and any redirect of the client. The forms target the site, but browsers apply
    /// `form-action` to every redirect after a form, so the page must not set it.
    OAuthClients,
}

/// Renders a page for one visitor. It must be neither cached nor framed.
pub(crate) fn private_page(
    app: &AppState,
    status: StatusCode,
    template: &str,
    context: Value,
    targets: FormTargets,
) -> Result<Response> {
    let text = app.shared.site.pages.render(template, context)?;
    let mut response = html(app, status, text);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, content_policy(app, targets));
    CachePolicy::NoStore.set(headers);
    // For browsers that do not support `frame-ancestors`.
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    let referrer = match targets {
        // With `no-referrer`, browsers also hide the `Origin` of a form. A form whose session expired is preserved
        // only if its `Origin` shows that a page of the site sent it.
        FormTargets::OwnPages => "same-origin",
        // The URL of an authorization request must not leak.
        FormTargets::OAuthClients => "no-referrer",
    };
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static(referrer));
    Ok(response)
}

fn html(app: &AppState, status: StatusCode, text: String) -> Response {
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    let mut response = respond::typed(status, kind, Body::from(text));
    set_public_headers(app, response.headers_mut());
    response
}

/// Sets the headers of a public page.
pub(crate) fn set_public_headers(app: &AppState, headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_SECURITY_POLICY, content_policy(app, FormTargets::OwnPages));
    CachePolicy::Revalidate.set(headers);
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
}

/// Builds the content security policy. Media may come from the CDN's host, everything else only from the site.
/// Data for search engines in a page (`application/ld+json`) is not a script and needs no source.
fn content_policy(app: &AppState, targets: FormTargets) -> HeaderValue {
    let base = &app.shared.media.settings().media_url;
    // A source with a path covers the addresses below it only if it ends with a slash.
    let media = format!("{base}/media/");
    let forms = match targets {
        FormTargets::OwnPages => "form-action 'self'; ",
        FormTargets::OAuthClients => "",
    };
    let policy = format!(
        "default-src 'none'; script-src 'self'; connect-src 'self' {base} {media}; \
         style-src 'self'; font-src 'self'; img-src 'self' {media}; media-src 'self' {media}; \
         base-uri 'none'; {forms}frame-ancestors 'none'"
    );
    // An invalid media URL must not leave the page without a policy.
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}
