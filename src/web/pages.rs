//! The pages: templates, what their heads say, the newest photographs, errors.

use axum::{
    body::Body,
    extract::{Query, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use jiff::tz::TimeZone;
use minijinja::{Environment, Value, context, value::Serde};
use rust_embed::RustEmbed;
use serde::{Deserialize, Serialize};

use super::{App, respond, session::Visitor};
use crate::clock;
use crate::error::{Error, Result};
use crate::item::{Asset, Document, Links, Served};
use crate::limits::{PAGE_ITEMS, PAGES_MAX};
use crate::media::Media;
use crate::types::{ItemKey, MediaType, RenditionName, Usage, Variant};

#[derive(RustEmbed)]
#[folder = "assets/pages/"]
struct Templates;

/// The compiled page templates.
pub struct Pages {
    environment: Environment<'static>,
}

impl Pages {
    /// Compiles the templates that are in the binary.
    ///
    /// Fails when one of them is not UTF-8 or does not parse.
    pub fn compile() -> Result<Self> {
        let mut environment = Environment::new();
        for name in Templates::iter() {
            let Some(file) = Templates::get(&name) else { continue };
            let text = String::from_utf8(file.data.into_owned()).map_err(Error::internal)?;
            environment.add_template_owned(name.into_owned(), text).map_err(Error::internal)?;
        }
        Ok(Self { environment })
    }

    /// The page `name` with what `context` says.
    pub(super) fn render(&self, name: &str, context: Value) -> Result<String> {
        let template = self.environment.get_template(name).map_err(Error::internal)?;
        template.render(context).map_err(Error::internal)
    }
}

/// The page of the list that is asked for.
#[derive(Debug, Deserialize)]
pub(super) struct ListQuery {
    page: Option<String>,
}

#[derive(Serialize)]
struct Card {
    key: String,
    page_url: String,
    thumbnail_url: String,
    preview_url: String,
    preview_width: u32,
    width: u32,
    height: u32,
    headline: String,
    byline: String,
    source: String,
    date: String,
    copyright: String,
    language: String,
}

/// `GET /`: the newest photographs.
pub(super) async fn index(
    State(app): State<App>,
    Query(query): Query<ListQuery>,
    headers: HeaderMap,
) -> Response {
    let page = list(&app, &query, &headers).await;
    page.unwrap_or_else(|error| error_page(&app, &error))
}

async fn list(app: &App, query: &ListQuery, headers: &HeaderMap) -> Result<Response> {
    let page = match &query.page {
        None => 1,
        Some(text) => {
            text.parse().ok().filter(|page| (1..=PAGES_MAX).contains(page)).ok_or_else(|| {
                Error::invalid("query", "page", "format", format!("page is 1 to {PAGES_MAX}"))
            })?
        }
    };
    let (now, skip) = (clock::now(), (page - 1) * PAGE_ITEMS);
    let image = MediaType::Image.as_str();
    let (items, total) =
        app.shared.db.read(move |tx| tx.newest_items(image, now, skip, PAGE_ITEMS)).await?;
    let mut cards = Vec::with_capacity(items.len());
    for found in items {
        let document = Document::from_stored(&found.item.document).map_err(Error::internal)?;
        cards.extend(card(app, &found.key, &document, &found.item.assets));
    }
    let more = u64::try_from(skip + PAGE_ITEMS).unwrap_or(u64::MAX) < total;
    let visitor = Visitor::find(app, headers).await?;
    let context = context! {
        items => Value::from(Serde(cards)),
        total => total,
        newer_url => (page > 1).then(|| page_url(page - 1)),
        older_url => more.then(|| page_url(page + 1)),
        ..head(app, visitor.as_ref(), &page_url(page))
    };
    page_for(app, visitor.as_ref(), "index.html", context)
}

/// What the head of the page at `here` says of its visitor.
pub(super) fn head(app: &App, visitor: Option<&Visitor>, here: &str) -> Value {
    let here: String = form_urlencoded::byte_serialize(here.as_bytes()).collect();
    context! {
        site_name => app.shared.site_name.clone(),
        user => visitor.map(|visitor| Value::from(Serde(visitor.head()))),
        logout_action => "/o/logout",
        csrf => visitor.map(Visitor::form_token),
        login_url => format!("/o/login?return_to={here}"),
    }
}

/// A page that differs by visitor. That of somebody who is logged in is kept by nobody.
pub(super) fn page_for(
    app: &App,
    visitor: Option<&Visitor>,
    template: &str,
    context: Value,
) -> Result<Response> {
    let mut response = match visitor {
        Some(_) => private(app, StatusCode::OK, template, context, Leads::Home)?,
        None => html(app, StatusCode::OK, app.shared.pages.render(template, context)?),
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Cookie"));
    Ok(response)
}

fn page_url(page: usize) -> String {
    if page <= 1 { "/".to_owned() } else { format!("/?page={page}") }
}

fn card(app: &App, key: &ItemKey, document: &Document, assets: &[Asset]) -> Option<Card> {
    let served = served(&app.shared.media, key, assets);
    let (size, preview) = (served.size(Usage::Thumbnail)?, served.size(Usage::Preview)?);
    let links = app.shared.media.links();
    let link =
        |usage| links.rendition(key, RenditionName { variant: Variant::Normal, usage }, None);
    Some(Card {
        key: key.to_string(),
        page_url: format!("/item/{key}"),
        thumbnail_url: link(Usage::Thumbnail),
        preview_url: link(Usage::Preview),
        preview_width: preview.width,
        width: size.width,
        height: size.height,
        headline: text(document, "headline"),
        byline: text(document, "byline"),
        source: text(document, "source"),
        date: date(document, &app.shared.zone),
        copyright: text(document, "copyrightnotice"),
        language: text(document, "language"),
    })
}

pub(super) fn served<'a>(media: &Media, key: &'a ItemKey, assets: &'a [Asset]) -> Served<'a> {
    Served { key, assets, sizes: media.settings().sizes, crop: None }
}

pub(super) fn text(document: &Document, name: &str) -> String {
    document.text(name).unwrap_or_default().to_owned()
}

pub(super) fn date(document: &Document, zone: &TimeZone) -> String {
    let time = document.time("versioncreated");
    let shown = |time: jiff::Timestamp| time.to_zoned(zone.clone()).strftime("%-d %b %Y %H:%M");
    time.map(|time| shown(time).to_string()).unwrap_or_default()
}

pub(super) fn error_page(app: &App, error: &Error) -> Response {
    let mut response = respond::error(error);
    let status = response.status();
    let title = match status {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::BAD_REQUEST => "This address has a mistake",
        StatusCode::SERVICE_UNAVAILABLE => "Busy",
        _ => "Something went wrong",
    };
    let message = error.details().first().map_or(error.message(), |detail| &detail.message);
    let context = context! {
        site_name => app.shared.site_name.clone(),
        status => status.as_u16(),
        title => title,
        message => message,
    };
    // Without its page the error still goes out, as JSON.
    let Ok(text) = app.shared.pages.render("error.html", context) else { return response };
    let mut page = html(app, status, text);
    for name in [header::CACHE_CONTROL, header::RETRY_AFTER] {
        if let Some(value) = response.headers_mut().remove(&name) {
            page.headers_mut().insert(name, value);
        }
    }
    page
}

/// Where the forms of a page may lead in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leads {
    /// To pages of ours.
    Home,
    /// To a client, and from there to wherever the client goes on. Browsers hold every redirect
    /// behind a form to the policy, so such a page sets none; its forms are ours all the same.
    ToClients,
}

/// A page for one visitor: nobody keeps it and nobody frames it.
pub(super) fn private(
    app: &App,
    status: StatusCode,
    template: &str,
    context: Value,
    leads: Leads,
) -> Result<Response> {
    let text = app.shared.pages.render(template, context)?;
    let mut response = html(app, status, text);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, policy(app, leads));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    // The address of an authorization request is nobody else's.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(response)
}

fn html(app: &App, status: StatusCode, text: String) -> Response {
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    let mut response = respond::typed(status, kind, Body::from(text));
    describe(app, response.headers_mut());
    response
}

/// What browsers must know of a page that everybody may see.
pub(super) fn describe(app: &App, headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_SECURITY_POLICY, policy(app, Leads::Home));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
}

/// Pictures may come from a CDN's name; everything else is ours.
fn policy(app: &App, leads: Leads) -> HeaderValue {
    let media = &app.shared.media.settings().media_url;
    let forms = match leads {
        Leads::Home => "form-action 'self'; ",
        Leads::ToClients => "",
    };
    let policy = format!(
        "default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self' {media}; \
         base-uri 'none'; {forms}frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}
