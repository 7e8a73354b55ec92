//! The page of an item: its picture or text, caption, rights, versions, files, and the visitor's actions.

use axum::{extract::State, http::StatusCode};
use jiff::Timestamp;
use minijinja::{Value as PageValue, context, value::Serde};
use serde::Serialize;
use serde_json::Value;

use super::api_client::{ApiCall, text};
use super::back_link::BackLink;
use super::credit::credit_line;
use super::item_from_path::{ItemFromPath, no_item};
use super::item_rights::{self, ItemRights};
use super::item_summary::{ItemPicture, ItemSummary, key_of, media_base, own_address, rendition};
use super::originals::DraggedFile;
use super::search_form::SearchForm;
use super::{
    ApiRefusal, MemberForm, PageResult, SiteRequest, collections, download_panel, files,
    form_refusal, similar_items, status_of,
};
use crate::http::form::see_other;
use crate::http::site::login_url::login_url;
use crate::http::{AppState, media};
use crate::runtime::clock;
use crate::runtime::error::{Error, ErrorKind, Result};
use api::deliveries::{Channel, ListChannels};
use model::account::ChannelMethod;
use model::item::has_picture;
use model::media_url::{DocumentExtension, MediaPath, RenditionExtension};
use model::{ItemKey, MediaType, RenditionName};
use query::{Facet, ItemFilter};

/// Maximum number of associated objects on a page.
const ASSOCIATIONS_SHOWN: usize = 24;
/// Maximum number of older versions to which a page links.
const REVISIONS_SHOWN: usize = 50;

pub(super) async fn page(ItemFromPath(key): ItemFromPath, site: SiteRequest) -> PageResult {
    show(&site, &key, &FormOutcome::default()).await
}

/// The result of a form on the page.
#[derive(Default)]
struct FormOutcome {
    /// The error of a download that was refused.
    download: Option<Error>,
    /// The error of a delivery that was refused.
    delivery: Option<ApiRefusal>,
}

/// `POST /item/<mediaType>/<id>/download`: buys and downloads the Hires, or the file that the form names. If the
/// agreement requires approval, an order is placed, and the item's page confirms it. The item's page also shows a
/// refusal.
pub(super) async fn download(
    State(app): State<AppState>,
    ItemFromPath(key): ItemFromPath,
    posted: MemberForm,
) -> PageResult {
    let agr = posted.form.agreement()?;
    let principal = posted.visitor.principal(&app).await?;
    let path = match posted.form.find("file") {
        Some(file) => files::parse(file, &key)?,
        None => download_path(&key),
    };
    match media::download(&app, &path, principal.as_deref(), agr).await {
        Ok(response) => Ok(response),
        // This refusal is the expected result: the order was placed and waits for approval.
        Err(error) if is_order(&error) => Ok(see_other(&confirmed(&posted, &key, "placed")?)),
        // The page explains which agreement is missing. Other errors are not about its form.
        Err(error) if error.kind() == ErrorKind::Forbidden => {
            let outcome = FormOutcome { download: Some(error), ..FormOutcome::default() };
            show(&posted, &key, &outcome).await
        }
        Err(error) => Err(error.into()),
    }
}

/// `POST /item/<mediaType>/<id>/deliver`: delivers the item through one of the visitor's channels.
pub(super) async fn deliver(ItemFromPath(key): ItemFromPath, posted: MemberForm) -> PageResult {
    let call = ApiCall::get(format!("/media/{key}"));
    // If no channel was chosen, the call names an invalid channel, so that the API reports the mistake.
    let channel = posted.form.find("channel").or(Some("?"));
    let call = call.query([("channel", channel), ("agr", posted.form.find("agr"))]);
    match posted.call(&call).await {
        Ok(_) => Ok(see_other(&confirmed(&posted, &key, "sent")?)),
        Err(refusal) => {
            let delivery = Some(form_refusal(refusal)?);
            show(&posted, &key, &FormOutcome { delivery, ..FormOutcome::default() }).await
        }
    }
}

/// Returns whether the download was refused because it placed an order, which needs approval.
fn is_order(error: &Error) -> bool {
    error.details().iter().any(|detail| detail.error_code == "order_required")
}

/// Returns the URL of the item's page with the message `done`.
fn confirmed(site: &SiteRequest, key: &ItemKey, done: &str) -> Result<String> {
    let back = BackLink::from_query(site, key)?.query;
    // The query of the back link begins with a question mark.
    let separator = if back.is_empty() { "?" } else { "&" };
    Ok(format!("/item/{key}{back}{separator}done={done}"))
}

/// Returns the file that the download form delivers by default: the Hires of a photograph, else an archive of all
/// files.
pub(super) fn download_path(key: &ItemKey) -> MediaPath {
    if has_picture(key.media_type) {
        let hires = RenditionName::NORMAL_HIRES;
        return MediaPath::rendition(key.clone(), hires, RenditionExtension::JPEG);
    }
    MediaPath::document(key.clone(), DocumentExtension::Zip)
}

async fn show(site: &SiteRequest, key: &ItemKey, outcome: &FormOutcome) -> PageResult {
    let document = match site.get(format!("/media/{key}.json")).await {
        Ok(document) => document,
        // Only photographs may be open, so other items need a login.
        Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => {
            return Ok(see_other(&login_url(&site.path_and_query)));
        }
        Err(refusal) if refusal.status == StatusCode::NOT_FOUND => {
            return Err(no_item().into());
        }
        Err(refusal) => return Err(refusal.into()),
    };
    // Agreements are looked up only for items that have something to buy.
    let panel = if files::has_any(key, &document) {
        download_panel::find(site, key, outcome.download.as_ref()).await?
    } else {
        None
    };
    let refusal = outcome.delivery.as_ref();
    let status = match &outcome.download {
        // Only a download that was refused with 403 leads here. Other errors have their own page.
        Some(_) => StatusCode::FORBIDDEN,
        None => status_of(refusal),
    };
    let back = BackLink::from_query(site, key)?;
    let rights = files::DownloadRights::new(site.visitor.is_some(), panel.as_ref());
    let is_bought = panel.as_ref().is_some_and(|panel| panel.bought.is_some());
    let metadata = item_rights::load(site, key, &document).await;
    let associations = associations(site, &document).await;
    let same_picture = similar_items::find_same_picture(site, key).await;
    let mut similar = similar_items::find(site, key, &document).await;
    similar.retain(|item| {
        associations.iter().chain(&same_picture).all(|other| other.key != item.key)
    });
    let page_url = format!("{}/item/{key}", site.app.shared.site.url);
    let is_dragged = is_bought && has_picture(key.media_type);
    let dragged = is_dragged.then(|| DraggedFile::original(key));
    let context = context! {
        dragged => Serde(dragged),
        back_url => back.url,
        back_query => back.query,
        item => item_context(key, &document, associations),
        same_picture => Serde(same_picture),
        similar => Serde(similar),
        rights => Serde(ItemRights::from_metadata(&metadata)),
        image_object => open_picture(key, &document)
            .map(|picture| item_rights::image_object(&picture, &page_url, &metadata)),
        page_url => page_url,
        renditions => Serde(files::rows(key, &document, rights)),
        download => Serde(panel),
        delivery_errors => refusal.map(ApiRefusal::sentences),
        ..visitor_context(site).await
    };
    site.page_with(status, "item.html", context)
}

/// Returns the picture for search engines and link previews; `None` if it is not public.
fn open_picture(key: &ItemKey, document: &Value) -> Option<ItemPicture> {
    let picture = rendition(document, RenditionName::NORMAL_PREVIEW)?;
    // Providers also see items that are not published yet.
    let embargoed = document["embargoed"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
    let is_published = document["pubstatus"] != "commissioned"
        && embargoed.is_none_or(|until| until <= clock::now());
    (has_picture(key.media_type) && picture.width > 0 && is_published).then_some(picture)
}

/// Returns the visitor's channels and collections as template context. If they cannot be loaded, the page is shown
/// without them.
async fn visitor_context(site: &SiteRequest) -> PageValue {
    if site.visitor.is_none() {
        // Without credentials both calls would fail.
        return context! {};
    }
    let channels = sending_channels(site).await;
    let collections = site.ask(&collections::COLLECTION_NAMES).await.unwrap_or_default();
    context! {
        channels => Serde(channels),
        collections => Serde(collections),
    }
}

/// Lists the visitor's channels that can deliver; empty if they cannot be loaded.
pub(super) async fn sending_channels(site: &SiteRequest) -> Vec<Channel> {
    let mut channels = site.ask(&ListChannels {}).await.unwrap_or_default();
    // Channels with the method `download` select the files of an archive and do not deliver.
    channels.retain(|channel| channel.method != ChannelMethod::Download && channel.active);
    channels
}

/// A name in the item's details, such as a person or a place.
#[derive(Debug, PartialEq, Serialize)]
struct ItemName {
    name: String,
    /// The URL of the search for items of the same media type with this name.
    url: Option<String>,
}

impl ItemName {
    fn new(key: &ItemKey, facet: Facet, name: &str) -> Self {
        let filter = ItemFilter::find(&format!("{}:{name}", facet.as_str()));
        let search = filter.map(|filter| SearchForm {
            media_type: key.media_type.as_str().to_owned(),
            filters: vec![filter],
            ..SearchForm::default()
        });
        Self { name: name.to_owned(), url: search.map(|search| search.url(1)) }
    }
}

/// Returns the template context of the item itself.
fn item_context(key: &ItemKey, document: &Value, associations: Vec<ItemSummary>) -> PageValue {
    let byline = Some(text(document, "byline")).filter(|name| !name.is_empty());
    let byline_link = byline.map(|name| ItemName::new(key, Facet::Byline, name));
    let hit = ItemSummary::from_document(document);
    let body = paragraphs(text(document, "body_text"));
    let description = paragraphs(text(document, "description_text"));
    let picture =
        // Without the width, the page could not reserve space for the picture (contract site-7).
        rendition(document, RenditionName::NORMAL_PREVIEW).filter(|picture| picture.width > 0);
    let is_photograph = has_picture(key.media_type);
    let planned = matches!(key.media_type, MediaType::Planning | MediaType::Calendar);
    context! {
        headline => text(document, "headline"),
        description => distinct_description(description, &body),
        body => body,
        byline => text(document, "byline"),
        credit => credit_line(document),
        byline_link => Serde(byline_link),
        source => text(document, "source"),
        copyright => text(document, "copyrightnotice"),
        copyright_holder => text(document, "copyrightholder"),
        usage_terms => text(document, "usageterms"),
        usage => text(document, "description_usage"),
        ednote => text(document, "ednote"),
        language => text(document, "language"),
        created => text(document, "versioncreated"),
        begins => planned.then(|| text(document, "datetime")),
        ends => planned.then(|| text(document, "enddatetime")),
        pubstatus => text(document, "pubstatus"),
        embargoed => text(document, "embargoed"),
        place => linked(key, document, "place", Facet::PlaceName),
        persons => linked(key, document, "person", Facet::PersonName),
        organisations => names(document, "organisation"),
        keywords => linked(key, document, "subject", Facet::SubjectName),
        products => names(document, "product"),
        event => Serde(event(document)),
        uri => text(document, "uri"),
        id => key.id.to_string(),
        key => key.to_string(),
        media_type => key.media_type.as_str(),
        is_photograph => is_photograph,
        picture_shape => picture.as_ref().map(ItemPicture::shape),
        srcset => hit.as_ref().map(|hit| hit.srcset.clone()),
        picture => Serde(picture.as_ref().and(hit.and_then(|hit| hit.preview))),
        video_url => video_url(document),
        // The studio shows the Preview for cropping.
        crop_url => (is_photograph && picture.is_some()).then(|| format!("/item/{key}/crop")),
        document_url => files::document_base(key, text(document, "uri")),
        metadata_url => format!("{}.json", text(document, "uri")),
        versions => versions(document),
        newer => Serde(newer_url(document)),
        associations => Serde(associations),
    }
}

/// Returns the names in a list of concepts.
pub(super) fn names(document: &Value, list: &str) -> Vec<String> {
    let concepts = document[list].as_array().into_iter().flatten();
    concepts.filter_map(|concept| concept["name"].as_str().map(str::to_owned)).collect()
}

/// Returns the names in a list of concepts, each with the link to its search.
fn linked(key: &ItemKey, document: &Value, list: &str, facet: Facet) -> PageValue {
    let names = names(document, list);
    let links = names.iter().map(|name| ItemName::new(key, facet, name));
    PageValue::from(Serde(links.collect::<Vec<_>>()))
}

/// Lists the associated objects with their pictures. If the document has only a link to an object, the object's
/// item is loaded to get its picture.
async fn associations(site: &SiteRequest, document: &Value) -> Vec<ItemSummary> {
    let objects = document["associations"].as_object().into_iter().flatten();
    let objects =
        objects.filter_map(|(_, object)| ItemSummary::with_base(object, media_base(document)));
    let mut shown: Vec<ItemSummary> = objects.take(ASSOCIATIONS_SHOWN).collect();
    for object in shown.iter_mut().filter(|object| object.thumbnail.is_none()) {
        // If the item was removed or is hidden from the visitor, the link has no picture.
        let Ok(document) = site.get(format!("/media/{}.json", object.key)).await else { continue };
        let Some(summary) = ItemSummary::from_document(&document) else { continue };
        object.thumbnail = summary.thumbnail;
        object.srcset = summary.srcset;
        if object.headline.is_empty() {
            object.headline = summary.headline;
            object.language = summary.language;
        }
    }
    shown
}

/// Returns the paragraphs of a description; empty if the text begins with the same words.
fn distinct_description(description: Vec<String>, body: &[String]) -> Vec<String> {
    let repeats = words(body).starts_with(&words(&description));
    if repeats { Vec::new() } else { description }
}

fn words(paragraphs: &[String]) -> Vec<&str> {
    paragraphs.iter().flat_map(|paragraph| paragraph.split_whitespace()).collect()
}

fn paragraphs(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

/// Returns the facts of an event as pairs of property name and text.
fn event(document: &Value) -> Vec<(String, String)> {
    let facts = document["body_event"].as_object().into_iter().flatten();
    // The properties for which the template has a label.
    let shown = ["arena", "city", "country", "organizer", "eventstatus_text", "eventtype_text"];
    let shown = facts.filter(|(name, _)| shown.contains(&name.as_str()));
    shown.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}

/// Returns the URL of a video's Preview on the site's host, to which the browser sends the session cookie.
fn video_url(document: &Value) -> Option<String> {
    let mut renditions = document["renditions"].as_object()?.values();
    // Stills of the video also have the usage Preview.
    let preview = renditions.find(|rendition| {
        rendition["mimetype"] == "video/mp4" && rendition["usage"] == "Preview"
    })?;
    own_address(preview["href"].as_str()?, media_base(document)).map(str::to_owned)
}

/// Lists earlier versions, the latest first.
fn versions(document: &Value) -> PageValue {
    let own_key = version_key(document);
    let revisions = document["revisions"].as_array().into_iter().flatten().rev();
    // A document's revisions include the document itself.
    let earlier = revisions.filter(|revision| version_key(revision) != own_key);
    earlier.take(REVISIONS_SHOWN).map(version_link).collect()
}

fn version_key(version: &Value) -> Option<ItemKey> {
    version["uri"].as_str().and_then(key_of)
}

fn version_link(revision: &Value) -> PageValue {
    let uri = text(revision, "uri");
    // A revision may lack a slug, but its URI always ends in an id.
    let name = revision["slug"].as_str().unwrap_or(uri.rsplit('/').next().unwrap_or_default());
    context! {
        url => key_of(uri).map(|key| format!("/item/{key}")),
        name,
        date => text(revision, "versioncreated"),
    }
}

/// Returns the URL of the page of the version that replaced the item.
fn newer_url(document: &Value) -> Option<String> {
    document["replacedby"].as_str().and_then(key_of).map(|key| format!("/item/{key}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lead_that_begins_the_text_is_not_repeated() {
        let list = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let check = |description: &[&str], body: &[&str], expected: &[&str]| {
            assert_eq!(
                distinct_description(list(description), &list(body)),
                list(expected),
                "{description:?}"
            );
        };
        check(&["One  two.", "Three."], &["One two. Three.", "Four."], &[]);
        check(&["One two"], &["One twofold."], &["One two"]);
        check(&["A picture."], &[], &["A picture."]);
        check(&[], &["One."], &[]);
    }

    #[test]
    fn a_name_leads_to_the_items_that_have_it() {
        let url = |key: &str, facet: Facet, name: &str| {
            ItemName::new(&key.parse().unwrap(), facet, name).url
        };
        let found = url("image/a", Facet::PersonName, "Anna B. & C.");
        assert_eq!(found.as_deref(), Some("/?facet=person.name%3AAnna+B.+%26+C."));
        let found = url("text/a", Facet::PlaceName, "Bergen");
        assert_eq!(found.as_deref(), Some("/?type=text&facet=place.name%3ABergen"));
        // A name without letters and digits finds nothing.
        assert_eq!(url("text/a", Facet::Byline, "–"), None);
    }

    #[test]
    fn versions_are_the_earlier_ones_the_latest_first() {
        let uri = |id: &str| format!("http://x/media/text/{id}");
        let document = json!({
            "uri": uri("c"),
            "replacedby": uri("d"),
            "revisions": [
                { "uri": uri("a"), "slug": "first", "versioncreated": "2026-01-01T00:00:00Z" },
                { "uri": uri("b") },
                { "uri": uri("c"), "slug": "itself" },
            ],
        });
        let found = versions(&document);
        let text = |one: &PageValue, name: &str| one.get_attr(name).unwrap().to_string();
        let found = found.try_iter().unwrap();
        let links: Vec<_> = found.map(|one| [text(&one, "name"), text(&one, "url")]).collect();
        assert_eq!(links, [["b", "/item/text/b"], ["first", "/item/text/a"]]);
        assert_eq!(newer_url(&document).as_deref(), Some("/item/text/d"));
        assert_eq!(versions(&json!({})).len(), Some(0));
    }
}
