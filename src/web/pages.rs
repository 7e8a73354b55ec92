//! The pages a newcomer looks at first: the newest photographs and a page per item.

use axum::{
    body::Body,
    extract::{Path, Query, State},
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use jiff::tz::TimeZone;
use minijinja::{Environment, Value, context, value::Serde};
use rust_embed::RustEmbed;
use serde::{Deserialize, Serialize};

use super::{App, respond};
use crate::clock;
use crate::error::{Error, Kind, Result};
use crate::item::{Asset, Document, Links, Served};
use crate::limits::{PAGE_ITEMS, PAGES_MAX};
use crate::media::Media;
use crate::media::path::MediaPath;
use crate::media::path::Operation;
use crate::media::path::RenditionExtension;
use crate::types::{CropSpec, ItemKey, MediaType, Rect, RenditionName, Size, Usage, Variant};

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

    fn render(&self, name: &str, context: Value) -> Result<String> {
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
pub(super) async fn index(State(app): State<App>, Query(query): Query<ListQuery>) -> Response {
    let page = list(&app, &query).await;
    page.unwrap_or_else(|error| error_page(&app, &error))
}

async fn list(app: &App, query: &ListQuery) -> Result<Response> {
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
    let text = app.shared.pages.render(
        "index.html",
        context! {
            site_name => app.shared.site_name.clone(),
            items => Value::from(Serde(cards)),
            total => total,
            newer_url => (page > 1).then(|| page_url(page - 1)),
            older_url => more.then(|| page_url(page + 1)),
        },
    )?;
    Ok(html(app, StatusCode::OK, text))
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

fn served<'a>(media: &Media, key: &'a ItemKey, assets: &'a [Asset]) -> Served<'a> {
    Served { key, assets, sizes: media.settings().sizes, crop: None }
}

fn text(document: &Document, name: &str) -> String {
    document.text(name).unwrap_or_default().to_owned()
}

fn date(document: &Document, zone: &TimeZone) -> String {
    let time = document.time("versioncreated");
    let shown = |time: jiff::Timestamp| time.to_zoned(zone.clone()).strftime("%-d %b %Y %H:%M");
    time.map(|time| shown(time).to_string()).unwrap_or_default()
}

/// `GET /item/<mediaType>/<id>`: one item with its caption and renditions.
pub(super) async fn item(
    State(app): State<App>,
    Path((media_type, id)): Path<(String, String)>,
) -> Response {
    let page = item_page(&app, &media_type, &id).await;
    page.unwrap_or_else(|error| error_page(&app, &error))
}

#[derive(Serialize)]
struct RenditionRow {
    name: String,
    usage: &'static str,
    variant: &'static str,
    href: String,
    width: u32,
    height: u32,
    size_text: String,
    open: bool,
}

#[derive(Serialize)]
struct CropRow {
    label: &'static str,
    href: String,
    width: u32,
    height: u32,
}

async fn item_page(app: &App, media_type: &str, id: &str) -> Result<Response> {
    let key: ItemKey = format!("{media_type}/{id}")
        .parse()
        .map_err(|_| Error::new(Kind::NotFound, "There is no such item."))?;
    let media = &app.shared.media;
    let entry = media.item(&key, None, clock::now()).await?;
    let served = served(media, &key, &entry.assets);
    let preview = served.size(Usage::Preview).unwrap_or(Size { width: 0, height: 0 });
    let links = media.links();
    let link = |variant, usage| links.rendition(&key, RenditionName { variant, usage }, None);
    let document = &entry.document;
    let names = |list: &str| document.texts(list, "name").map(str::to_owned).collect::<Vec<_>>();
    let paragraphs: Vec<&str> = document
        .text("description_text")
        .unwrap_or_default()
        .lines()
        .filter(|l| !l.is_empty())
        .collect();
    let item = context! {
        headline => text(document, "headline"),
        description => paragraphs.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>(),
        byline => text(document, "byline"),
        source => text(document, "source"),
        copyright => text(document, "copyrightnotice"),
        usage_terms => text(document, "usageterms"),
        ednote => text(document, "ednote"),
        language => text(document, "language"),
        created => date(document, &app.shared.zone),
        place => names("place"),
        persons => names("person"),
        keywords => names("subject"),
        uri => links.item(&key),
        id => key.id.to_string(),
        media_type => key.media_type.as_str(),
        preview_url => link(Variant::Normal, Usage::Preview),
        preview_width => preview.width,
        preview_height => preview.height,
        watermark_preview_url => link(Variant::Watermark, Usage::Preview),
        metadata_url => format!("{}.json", links.item(&key)),
    };
    let text = app.shared.pages.render(
        "item.html",
        context! {
            site_name => app.shared.site_name.clone(),
            item => item,
            renditions => Value::from(Serde(rendition_rows(&served, links))),
            crops => Value::from(Serde(crop_rows(&key, preview, app))),
            back_url => "/",
        },
    )?;
    Ok(html(app, StatusCode::OK, text))
}

fn rendition_rows<L: Links>(served: &Served<'_>, links: &L) -> Vec<RenditionRow> {
    let names = [
        (Variant::Normal, Usage::Hires),
        (Variant::Normal, Usage::Preview),
        (Variant::Watermark, Usage::Preview),
        (Variant::Normal, Usage::Thumbnail),
    ];
    let row = |(variant, usage): (Variant, Usage)| {
        let size = served.size(usage)?;
        let length = Served::source(served.assets, usage)?.length;
        Some(RenditionRow {
            name: format!("{} {}", variant.as_str(), usage.as_str()),
            usage: usage.as_str(),
            variant: variant.as_str(),
            href: links.rendition(served.key, RenditionName { variant, usage }, None),
            width: size.width,
            height: size.height,
            size_text: if usage == Usage::Hires { bytes_text(length) } else { String::new() },
            open: usage != Usage::Hires,
        })
    };
    names.into_iter().filter_map(row).collect()
}

fn bytes_text(bytes: u64) -> String {
    let tenths = bytes.div_ceil(100_000);
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

/// A few crops of the Preview to try: square, wide, and with the mark.
fn crop_rows(key: &ItemKey, preview: Size, app: &App) -> Vec<CropRow> {
    let side = preview.width.min(preview.height);
    let centred = |width: u32, height: u32| Rect {
        x: (preview.width - width) / 2,
        y: (preview.height - height) / 2,
        width,
        height,
    };
    let wide_height = (preview.width * 9 / 16).min(preview.height);
    let wide = centred(preview.width.min(wide_height * 16 / 9), wide_height);
    let rows = [
        ("Square", centred(side, side), false),
        ("16:9", wide, false),
        ("16:9 with watermark", wide, true),
    ];
    let name = RenditionName { variant: Variant::Normal, usage: Usage::Preview };
    let row = |(label, rect, marked): (&'static str, Rect, bool)| {
        let crop = Operation::Crop(CropSpec::try_from(rect).ok()?);
        let path = MediaPath::rendition(key.clone(), name, RenditionExtension::Jpg);
        let path = path.with_operation(crop).ok()?;
        let path = if marked { path.with_operation(Operation::Watermark).ok()? } else { path };
        let href = app.shared.media.links().url(&path);
        Some(CropRow { label, href, width: rect.width, height: rect.height })
    };
    rows.into_iter().filter_map(row).collect()
}

fn error_page(app: &App, error: &Error) -> Response {
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

fn html(app: &App, status: StatusCode, text: String) -> Response {
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    let mut response = respond::typed(status, kind, Body::from(text));
    let headers = response.headers_mut();
    // Pictures may come from a CDN's name; everything else is ours.
    let media = &app.shared.media.settings().media_url;
    let policy = format!(
        "default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self' {media}; \
         base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}
