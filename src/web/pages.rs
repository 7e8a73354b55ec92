//! The pages: templates, what their heads say, the photographs, errors.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header},
    response::Response,
};
use jiff::tz::TimeZone;
use minijinja::{Environment, Value, context, value::Serde};
use rust_embed::RustEmbed;
use serde::Serialize;

use super::{
    App,
    form::see_other,
    request::Query,
    respond,
    session::Visitor,
    site::language::{self, Language},
    words,
};
use crate::clock;
use crate::content;
use crate::db::{ReadTx, StoredItem};
use crate::error::{Error, Result};
use crate::item::{Asset, Document, Layout, Links, PubStatus, Served};
use crate::limits::{PAGE_ITEMS, PAGES_MAX};
use crate::media::Media;
use crate::query;
use crate::search::{Coverage, Found, Hit, Request as Wanted, Sort, SortDate};
use crate::types::{ItemKey, MediaType, RenditionName, Usage, Variant};

#[derive(RustEmbed)]
#[folder = "assets/pages/"]
struct Templates;

/// The compiled page templates, for each language.
pub struct Pages {
    environments: [(Language, Environment<'static>); 2],
}

impl Pages {
    /// Compiles the templates that are in the binary; times are shown in `zone`.
    ///
    /// Fails when one of them is not UTF-8 or does not parse, and when the translations do not.
    pub fn compile(zone: &TimeZone) -> Result<Self> {
        let swedish = Arc::new(language::swedish()?);
        let environment = |language| {
            let mut environment = words::environment(language, &swedish, zone);
            for name in Templates::iter() {
                let Some(file) = Templates::get(&name) else { continue };
                let text = String::from_utf8(file.data.into_owned()).map_err(Error::internal)?;
                environment
                    .add_template_owned(name.into_owned(), text)
                    .map_err(Error::internal)?;
            }
            Ok::<_, Error>((language, environment))
        };
        let [english, swedish] = Language::ALL;
        Ok(Self { environments: [environment(english)?, environment(swedish)?] })
    }

    /// The page `name` with what `context` says, in the language that is spoken.
    pub(super) fn render(&self, name: &str, context: Value) -> Result<String> {
        let spoken = language::spoken();
        let found = self.environments.iter().find(|(language, _)| *language == spoken);
        let (_, environment) = found.unwrap_or(&self.environments[0]);
        let template = environment.get_template(name).map_err(Error::internal)?;
        template.render(context).map_err(Error::internal)
    }
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

/// `GET /`: photographs, the newest first, all of them or those that `?q=` finds.
pub(super) async fn index(State(app): State<App>, uri: Uri, headers: HeaderMap) -> Response {
    let page = list(&app, &uri, &headers).await;
    page.unwrap_or_else(|error| error_page(&app, &error))
}

async fn list(app: &App, uri: &Uri, headers: &HeaderMap) -> Result<Response> {
    let parameters = Query::of(uri)?;
    let page = parameters.integer("page", 1..=i64::try_from(PAGES_MAX).unwrap_or(i64::MAX))?;
    let page = page.and_then(|page| usize::try_from(page).ok()).unwrap_or(1);
    let text = parameters.text("q")?.unwrap_or_default().trim();
    let here = page_url(page, text);
    let visitor = Visitor::find(app, headers).await?;
    if visitor.is_none() && !app.shared.open_images {
        return Ok(see_other(&login_url(&here)));
    }
    // Where photographs are not open, everybody sees what the agreements say.
    let caller = match &visitor {
        Some(visitor) if !app.shared.open_images => visitor.principal(app).await?,
        Some(_) | None => None,
    };
    let coverage = content::coverage(caller.as_deref(), &[], clock::now());
    let (status, found, mistake) = match query::parse(text, &app.shared.zone) {
        Ok(query) => (StatusCode::OK, photographs(app, query, (coverage, page)).await?, None),
        Err(mistake) => (StatusCode::BAD_REQUEST, Wall::default(), Some(mistake.to_string())),
    };
    let more = u64::try_from(page * PAGE_ITEMS).unwrap_or(u64::MAX) < found.total;
    let more = more && page < PAGES_MAX;
    let context = context! {
        items => Value::from(Serde(found.cards)),
        total => found.total,
        query => text,
        mistake => mistake,
        newer_url => (page > 1).then(|| page_url(page - 1, text)),
        older_url => more.then(|| page_url(page + 1, text)),
        ..head(app, visitor.as_ref(), &here)
    };
    let mut response = page_for(app, visitor.as_ref(), "index.html", context)?;
    *response.status_mut() = status;
    Ok(response)
}

/// What a page of photographs shows, and how many there are in all.
#[derive(Default)]
struct Wall {
    cards: Vec<Card>,
    total: u64,
}

async fn photographs(
    app: &App,
    query: query::Query,
    (coverage, page): (Coverage, usize),
) -> Result<Wall> {
    let wanted = Wanted {
        media_type: Some(MediaType::Image),
        query,
        products: Vec::new(),
        products_excluded: Vec::new(),
        coverage,
        from: None,
        until: None,
        statuses: vec![PubStatus::Usable],
        sees_embargoed: false,
        after: None,
        sort: Sort::By { date: SortDate::Order, descending: true },
        skip: (page - 1) * PAGE_ITEMS,
        size: PAGE_ITEMS,
        facets: Vec::new(),
    };
    let (media, zone) = (app.shared.media.clone(), app.shared.zone.clone());
    let make = move |found: Found, _: &ReadTx<'_>| {
        let card = |hit: &Hit| card((&media, &zone), &hit.key, &hit.item);
        let cards = found.hits.iter().filter_map(|hit| card(hit).transpose());
        Ok(Wall { cards: cards.collect::<Result<_>>()?, total: found.total })
    };
    app.shared.content.engine().search(wanted, clock::now(), make).await
}

/// What the head of the page at `here` says of its visitor.
pub(super) fn head(app: &App, visitor: Option<&Visitor>, here: &str) -> Value {
    context! {
        site_name => app.shared.site_name.clone(),
        user => visitor.map(|visitor| Value::from(Serde(visitor.head()))),
        logout_action => "/o/logout",
        csrf => visitor.map(Visitor::form_token),
        here => here,
        is_admin => visitor.is_some_and(|visitor| visitor.account.user.access.admin),
        login_url => login_url(here),
    }
}

/// The login that leads back to `here`.
pub(super) fn login_url(here: &str) -> String {
    let here: String = form_urlencoded::byte_serialize(here.as_bytes()).collect();
    format!("/o/login?return_to={here}")
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

/// The address of a page of what `text` finds.
fn page_url(page: usize, text: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    if !text.is_empty() {
        query.append_pair("q", text);
    }
    if page > 1 {
        query.append_pair("page", &page.to_string());
    }
    let query = query.finish();
    if query.is_empty() { "/".to_owned() } else { format!("/?{query}") }
}

/// What the page shows of an item; nothing of one that has no picture here.
fn card(
    (media, zone): (&Media, &TimeZone),
    key: &ItemKey,
    item: &StoredItem,
) -> Result<Option<Card>> {
    let document = &Document::from_stored(&item.document).map_err(Error::internal)?;
    let served = served(media, key, &item.assets);
    let sizes = served.size(Usage::Thumbnail).zip(served.size(Usage::Preview));
    let Some((size, preview)) = sizes else { return Ok(None) };
    let links = media.links();
    let link =
        |usage| links.rendition(key, RenditionName { variant: Variant::Normal, usage }, None);
    Ok(Some(Card {
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
        date: date(document, zone),
        copyright: text(document, "copyrightnotice"),
        language: text(document, "language"),
    }))
}

pub(super) fn served<'a>(media: &Media, key: &'a ItemKey, assets: &'a [Asset]) -> Served<'a> {
    Served { key, assets, sizes: media.settings().sizes, crop: None, layout: Layout::Full }
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
    let referrer = match leads {
        // Browsers hide the sender of a form together with the referrer, and a form whose session
        // ended is kept only if a page of ours sent it.
        Leads::Home => "same-origin",
        // The address of an authorization request is nobody else's.
        Leads::ToClients => "no-referrer",
    };
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static(referrer));
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
        "default-src 'none'; script-src 'self'; connect-src 'self' {media}; style-src 'self'; \
         font-src 'self'; img-src 'self' {media}; media-src 'self' {media}; base-uri 'none'; \
         {forms}frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}
