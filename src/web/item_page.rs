//! A page per item: its picture, caption, renditions, rights and download.

use axum::{
    extract::{Path, State},
    http::HeaderMap,
    response::Response,
};
use minijinja::{Value, context, value::Serde};
use serde::Serialize;

use super::{
    App,
    pages::{date, error_page, head, page_for, served, text},
    session::Visitor,
};
use crate::clock;
use crate::error::{Error, Kind, Result};
use crate::item::{Links, Served};
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
    let key: ItemKey = format!("{media_type}/{id}")
        .parse()
        .map_err(|_| Error::new(Kind::NotFound, "There is no such item."))?;
    let media = &app.shared.media;
    let visitor = Visitor::find(app, headers).await?;
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
    let context = context! {
        item => item,
        renditions => Value::from(Serde(rendition_rows(&served, links))),
        crops => Value::from(Serde(crop_rows(&key, preview, app))),
        back_url => "/",
        ..head(app, visitor.as_ref(), &format!("/item/{key}"))
    };
    page_for(app, visitor.as_ref(), "item.html", context)
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
