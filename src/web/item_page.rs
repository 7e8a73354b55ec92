//! A page per item: its picture, caption, renditions, rights and download.

use axum::{
    extract::{Path, Request, State},
    http::{HeaderMap, StatusCode},
    response::Response,
};
use minijinja::{Value, context, value::Serde};
use serde::Serialize;

use super::{
    App,
    download_panel::Panel,
    form::{form_body, see_other},
    login,
    pages::{date, error_page, head, login_url, page_for, served, text},
    session::Visitor,
};
use crate::account::AgreementId;
use crate::clock;
use crate::error::{Error, Kind, Result};
use crate::item::{Asset, Links, Served, has_picture};
use crate::media::Caller;
use crate::media::Entry;
use crate::media::path::DocumentExtension;
use crate::media::path::MediaPath;
use crate::media::path::Operation;
use crate::media::path::RenditionExtension;
use crate::types::{CropSpec, ItemKey, Rect, RenditionName, Size, Usage, Variant};

/// `GET /item/<mediaType>/<id>`: one item with its caption and renditions.
pub(super) async fn item(
    State(app): State<App>,
    Path((media_type, id)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let page = item_page(&app, &media_type, &id, &headers).await;
    page.unwrap_or_else(|error| error_page(&app, &error))
}

/// `POST /item/<mediaType>/<id>/download`: the Hires for a visitor, with its purchase. What stands
/// in the way is said on the item's page.
pub(super) async fn download(
    State(app): State<App>,
    Path((media_type, id)): Path<(String, String)>,
    request: Request,
) -> Response {
    let (headers, form) = match form_body(request).await {
        Ok(parts) => parts,
        Err(error) => return error_page(&app, &error),
    };
    let response = buy(&app, &media_type, &id, (&headers, &form)).await;
    response.unwrap_or_else(|error| error_page(&app, &error))
}

async fn buy(
    app: &App,
    media_type: &str,
    id: &str,
    (headers, form): (&HeaderMap, &str),
) -> Result<Response> {
    let key = parse_key(media_type, id)?;
    let form = login::parse(form)?;
    let page = format!("/item/{key}");
    let Some(visitor) = Visitor::find(app, headers).await? else {
        return Ok(see_other(&login_url(&page)));
    };
    if !visitor.sent(form.find("csrf")) {
        return Err(login::expired());
    }
    let bad = |_| Error::invalid("body", "agr", "type", "agr is not a number");
    let agr = form.find("agr").map(|agr| agr.parse().map(AgreementId).map_err(bad)).transpose()?;
    let principal = visitor.principal(app).await?;
    let path = download_path(&key);
    let caller = Caller { principal: principal.as_deref(), agr };
    match super::media::download(app, &path, caller).await {
        Ok(response) => Ok(response),
        Err(error) if error.kind() == Kind::Forbidden => {
            let mut response = show(app, &key, Some(&visitor), Some(&error)).await?;
            *response.status_mut() = StatusCode::FORBIDDEN;
            Ok(response)
        }
        Err(error) => Err(error),
    }
}

fn parse_key(media_type: &str, id: &str) -> Result<ItemKey> {
    let none = |_| Error::new(Kind::NotFound, "There is no such item.");
    format!("{media_type}/{id}").parse().map_err(none)
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

async fn item_page(
    app: &App,
    media_type: &str,
    id: &str,
    headers: &HeaderMap,
) -> Result<Response> {
    let key = parse_key(media_type, id)?;
    let visitor = Visitor::find(app, headers).await?;
    if visitor.is_none() && !has_picture(key.media_type) {
        // Open to everybody are photographs alone.
        return Ok(see_other(&login_url(&format!("/item/{key}"))));
    }
    show(app, &key, visitor.as_ref(), None).await
}

/// What a visitor gets who downloads the item: of a photograph the Hires, else all there is.
fn download_path(key: &ItemKey) -> MediaPath {
    let hires = RenditionName { variant: Variant::Normal, usage: Usage::Hires };
    if has_picture(key.media_type) {
        return MediaPath::rendition(key.clone(), hires, RenditionExtension::Jpg);
    }
    MediaPath::document(key.clone(), DocumentExtension::Zip)
}

/// The page of the item `key` for `visitor`. `refusal` is what became of a download.
async fn show(
    app: &App,
    key: &ItemKey,
    visitor: Option<&Visitor>,
    refusal: Option<&Error>,
) -> Result<Response> {
    let media = &app.shared.media;
    let entry = media.item(key, None, clock::now()).await?;
    let panel = Panel::of(app, visitor, &entry, refusal).await?;
    let served = served(media, key, &entry.assets);
    let (renditions, crops) = (rendition_rows(&served, media.links()), crop_rows(&served, app));
    let context = context! {
        item => describe(app, &entry, &served),
        renditions => Value::from(Serde(renditions)),
        crops => Value::from(Serde(crops)),
        download => Value::from(Serde(panel)),
        back_url => "/",
        ..head(app, visitor, &format!("/item/{key}"))
    };
    page_for(app, visitor, "item.html", context)
}

/// What the page says of the item itself.
fn describe(app: &App, entry: &Entry, served: &Served<'_>) -> Value {
    let key = &entry.key;
    let preview = served.size(Usage::Preview).unwrap_or(Size { width: 0, height: 0 });
    let links = app.shared.media.links();
    // What is not open to everybody cannot be shown by an address alone.
    let shown = has_picture(key.media_type) && preview.width > 0;
    let link = |variant, usage| {
        shown.then(|| links.rendition(key, RenditionName { variant, usage }, None))
    };
    let document = &entry.document;
    let names = |list: &str| document.texts(list, "name").map(str::to_owned).collect::<Vec<_>>();
    let paragraphs: Vec<&str> = document
        .text("description_text")
        .unwrap_or_default()
        .lines()
        .filter(|l| !l.is_empty())
        .collect();
    context! {
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
        uri => links.item(key),
        id => key.id.to_string(),
        media_type => key.media_type.as_str(),
        preview_url => link(Variant::Normal, Usage::Preview),
        preview_width => preview.width,
        preview_height => preview.height,
        watermark_preview_url => link(Variant::Watermark, Usage::Preview),
        metadata_url => format!("{}.json", links.item(key)),
    }
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
        let length = served.files().picture(usage)?.length;
        Some(RenditionRow {
            name: format!("{} {}", variant.as_str(), usage.as_str()),
            usage: usage.as_str(),
            variant: variant.as_str(),
            href: links.rendition(served.key, RenditionName { variant, usage }, None),
            width: size.width,
            height: size.height,
            size_text: if usage == Usage::Hires { bytes_text(length) } else { String::new() },
            open: usage != Usage::Hires && has_picture(served.key.media_type),
        })
    };
    let files = served.files().all().filter(|asset| asset.picture().is_none());
    let file = |asset: &Asset| {
        let (name, extension) = (asset.name(), asset.extension());
        let extension_text = extension.as_str().trim_start_matches('.').to_uppercase();
        RenditionRow {
            name: format!("{} {} {extension_text}", name.variant.as_str(), name.usage.as_str()),
            usage: name.usage.as_str(),
            variant: name.variant.as_str(),
            href: links.file(served.key, None, name, extension),
            width: 0,
            height: 0,
            size_text: bytes_text(asset.length()),
            open: false,
        }
    };
    names.into_iter().filter_map(row).chain(files.map(file)).collect()
}

pub(super) fn bytes_text(bytes: u64) -> String {
    let tenths = bytes.div_ceil(100_000);
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

/// A few crops of the Preview to try: square, wide, and with the mark.
fn crop_rows(served: &Served<'_>, app: &App) -> Vec<CropRow> {
    if !has_picture(served.key.media_type) {
        return Vec::new();
    }
    let (key, preview) =
        (served.key, served.size(Usage::Preview).unwrap_or(Size { width: 0, height: 0 }));
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
