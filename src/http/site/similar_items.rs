//! Finds similar items: items that name the same event, or the same places or headline around the same time. Items
//! with nearly the same picture are found by comparing the pictures alone.

use api::content::{SearchItems, SearchOrder};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{SiteRequest, item_summary::ItemSummary};
use model::item::{DocumentLayout, has_picture};
use model::{ItemKey, MediaType};
use query::{phrase, words};

/// Items with the same picture on the page of a photograph.
const SITE_SAME_PICTURE_ITEMS: usize = 12;
/// Items of the same event, or of the same place and time, on the page of an item.
const SITE_SIMILAR_ITEMS: usize = 12;
/// Hours before and after an item within which equal places or headlines indicate the same event.
const HOURS_AROUND: i64 = 12;
/// Number of places of an item that a similar item must share: the first ones.
const PLACES_COMPARED: usize = 4;
/// Number of events of an item that are searched for.
const EVENTS_COMPARED: usize = 4;
/// Minimum number of words of a headline that is searched for. A shorter one, such as "Portrait", says too little.
const HEADLINE_WORDS_MIN: usize = 3;
/// Maximum number of words of a name that is searched for.
const NAME_WORDS_MAX: usize = 40;

/// Lists items that are similar to the item of `document`, the newest first: the nearest in time before and after
/// it.
pub(super) async fn find(site: &SiteRequest, key: &ItemKey, document: &Value) -> Vec<ItemSummary> {
    let Some(query) = SimilarityQuery::for_item(key, document) else { return Vec::new() };
    let mut found = Vec::new();
    for side in [Side::Later, Side::Earlier] {
        // The page is complete without similar items.
        let Ok(found_items) = site.ask(&query.search(key, side)).await else { continue };
        let mut hits = ItemSummary::from_documents(&found_items.hits);
        hits.retain(|hit| hit.key != key.to_string());
        hits.truncate(SITE_SIMILAR_ITEMS / 2);
        if side == Side::Later {
            // The API listed the nearest in time first, which are the oldest on this side.
            hits.reverse();
        }
        found.append(&mut hits);
    }
    found
}

/// Lists the items with nearly the same picture as the photograph `key`, the latest first.
pub(super) async fn find_same_picture(site: &SiteRequest, key: &ItemKey) -> Vec<ItemSummary> {
    if !has_picture(key.media_type) {
        return Vec::new();
    }
    let item = key.to_string();
    let request = SearchItems {
        duplicates: Some(item.clone()),
        // The photograph is one of the hits.
        size: SITE_SAME_PICTURE_ITEMS + 1,
        ..bare_search(key)
    };
    // Photographs with nearly no contrast cannot be compared. The page is complete without the list.
    let Ok(found) = site.ask(&request).await else { return Vec::new() };
    let mut hits = ItemSummary::from_documents(&found.hits);
    hits.retain(|hit| hit.key != item);
    hits.truncate(SITE_SAME_PICTURE_ITEMS);
    hits
}

/// Returns the search for all items of the media type of `key`, with what a list needs.
fn bare_search(key: &ItemKey) -> SearchItems {
    let media_type = Some(key.media_type);
    SearchItems { media_type, layout: DocumentLayout::Bare, ..SearchItems::default() }
}

/// The items that one call looks up, relative to the item of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Later,
    Earlier,
}

/// The query for items that are similar to an item.
#[derive(Debug, PartialEq, Eq)]
struct SimilarityQuery {
    /// Conditions joined by `OR`: a similar item matches at least one.
    alternatives: String,
    /// The time of the item, in whole seconds.
    time: Timestamp,
}

impl SimilarityQuery {
    /// Returns the query for an item; `None` if its document says too little about the event.
    fn for_item(key: &ItemKey, document: &Value) -> Option<Self> {
        if !is_news(key.media_type) {
            return None;
        }
        let time: Timestamp = document["versioncreated"].as_str()?.parse().ok()?;
        let time = Timestamp::from_second(time.as_second()).ok()?;
        let mut alternatives = terms(document, "event", "code");
        if alternatives.is_empty() {
            alternatives = terms(document, "event", "name");
        }
        alternatives.truncate(EVENTS_COMPARED);
        let mut places = terms(document, "place", "name");
        places.truncate(PLACES_COMPARED);
        let headline = document["headline"].as_str().unwrap_or_default();
        let headline = searchable(headline)
            .filter(|_| words(headline).nth(HEADLINE_WORDS_MIN - 1).is_some())
            .map(|text| format!("headline:{text}"));
        // The same place or headline at a distant time indicates a different event.
        let around = around(time)?;
        let places = (!places.is_empty()).then(|| places.join(" "));
        for part in places.into_iter().chain(headline) {
            alternatives.push(format!("({part} {around})"));
        }
        (!alternatives.is_empty()).then(|| Self { alternatives: alternatives.join(" OR "), time })
    }

    /// Returns the search for the items on one side, the nearest in time first.
    fn search(&self, key: &ItemKey, side: Side) -> SearchItems {
        let time = self.time;
        // The item's own second belongs to one side only, so that no item is listed twice.
        let (range, sort, more) = match side {
            Side::Later => (format!(">{time}"), SearchOrder::FirstCreated, 0),
            Side::Earlier => (format!("<={time}"), SearchOrder::LastCreated, 1),
        };
        SearchItems {
            q: format!("({}) versioncreated:{range}", self.alternatives),
            // The item itself is among the hits of the earlier side.
            size: SITE_SIMILAR_ITEMS / 2 + more,
            sort,
            ..bare_search(key)
        }
    }
}

/// Returns a query term for the property `name` of each concept in the document's `list`.
fn terms(document: &Value, list: &str, name: &str) -> Vec<String> {
    let concepts = document[list].as_array().into_iter().flatten();
    let texts = concepts.filter_map(|concept| searchable(concept[name].as_str()?));
    texts.map(|text| format!("{list}.{name}:{text}")).collect()
}

/// Returns whether items of this type report events. Plans and pages are about days.
fn is_news(media_type: MediaType) -> bool {
    match media_type {
        MediaType::Image
        | MediaType::Stockfoto
        | MediaType::Graphic
        | MediaType::Video
        | MediaType::Text
        | MediaType::Feature => true,
        MediaType::Page | MediaType::Planning | MediaType::Calendar => false,
    }
}

/// Returns the query phrase for a name; `None` if the name has no word or too many.
fn searchable(name: &str) -> Option<String> {
    let count = words(name).take(NAME_WORDS_MAX + 1).count();
    (1..=NAME_WORDS_MAX).contains(&count).then(|| phrase(name))
}

/// Returns the query term for the hours around `time`.
fn around(time: Timestamp) -> Option<String> {
    let hours = SignedDuration::from_hours(HOURS_AROUND);
    let from = time.checked_sub(hours).ok()?;
    let until = time.checked_add(hours).ok()?;
    Some(format!("versioncreated:[{from} TO {until}]"))
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use serde_json::json;

    use super::*;

    fn key(text: &str) -> ItemKey {
        text.parse().unwrap()
    }

    fn alternatives(document: &Value) -> Option<String> {
        SimilarityQuery::for_item(&key("image/a"), document).map(|query| query.alternatives)
    }

    #[test]
    fn an_event_is_known_by_its_code_or_by_place_and_time() {
        let around = "versioncreated:[2026-03-01T20:15:07Z TO 2026-03-02T20:15:07Z]";
        let time = "2026-03-02T09:15:07.5+01:00";
        let places = json!([{ "name": "Bergen" }, { "name": "The \"Hall\"" }, { "name": "–" }]);
        let found = alternatives(&json!({
            "versioncreated": time, "place": places, "headline": "Match in Bergen",
        }));
        let expected = format!(
            "(place.name:\"Bergen\" place.name:\"The \\\"Hall\\\"\" {around}) \
             OR (headline:\"Match in Bergen\" {around})"
        );
        assert_eq!(found.as_deref(), Some(expected.as_str()));
        let event = json!([{ "code": "e1", "name": "Final" }, { "name": "Other" }]);
        let found = alternatives(&json!({ "versioncreated": time, "event": event }));
        assert_eq!(found.as_deref(), Some("event.code:\"e1\""));
        let event = json!([{ "name": "Final" }]);
        let found = alternatives(&json!({ "versioncreated": time, "event": event }));
        assert_eq!(found.as_deref(), Some("event.name:\"Final\""));
    }

    #[test]
    fn too_little_is_similar_to_nothing() {
        let time = "2026-03-02T09:15:00Z";
        let headline = json!({ "versioncreated": time, "headline": "A portrait" });
        assert_eq!(alternatives(&headline), None);
        assert_eq!(alternatives(&json!({ "place": [{ "name": "Bergen" }] })), None);
        let plan = json!({ "versioncreated": time, "place": [{ "name": "Bergen" }] });
        assert!(alternatives(&plan).is_some());
        assert_eq!(SimilarityQuery::for_item(&key("planning/a"), &plan), None);
    }

    #[test]
    fn both_calls_are_valid_searches_and_name_the_second_of_the_item_once() {
        let document = json!({
            "versioncreated": "2026-03-02T09:15:00.5Z", "place": [{ "name": "Bergen" }],
        });
        let query = SimilarityQuery::for_item(&key("image/a"), &document).unwrap();
        for (side, range) in [
            (Side::Later, "versioncreated:>2026-03-02T09:15:00Z"),
            (Side::Earlier, "versioncreated:<=2026-03-02T09:15:00Z"),
        ] {
            let q = query.search(&key("image/a"), side).q;
            assert!(q.ends_with(range), "{q}");
            query::parse(&q, &TimeZone::UTC).unwrap();
        }
    }
}
