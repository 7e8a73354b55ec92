//! Captions and news item documents: which property is which field (`formats.md`, "JPEG caption
//! metadata").
//!
//! The schema has no property for a credit line; it is an `infosource` with `rel` `credit`, so
//! that it is not lost between a photograph that brings one and its renditions.

use jiff::{civil::DateTime, tz::TimeZone};
use serde_json::{Map, Value, json};

use crate::item::Document;
use crate::media::caption::Caption;

const PLACE_SCHEME: &str = "http://tt.se/spec/place/1.0/";
const KEYWORD_SCHEME: &str = "http://tt.se/spec/keyword/1.0/";
const SUBJECT_SCHEME: &str = "http://cv.iptc.org/newscodes/subjectcode/";
const CITY: &str = "ort";
const COUNTRY: &str = "land";
const CREDIT: &str = "credit";

impl Caption {
    /// The caption that renditions of an item carry; `uri` identifies the item.
    #[must_use]
    pub fn from_document(document: &Document, uri: &str) -> Self {
        let text = |name: &str| document.text(name).unwrap_or_default().to_owned();
        let first = |names: [&str; 2]| names.into_iter().find_map(|name| document.text(name));
        let list = |name: &'static str| objects(document, name);
        let field = |entry: &Value, name: &str| {
            entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let with_rel = |name: &'static str, rel: &str| {
            list(name).find(|entry| entry.get("rel").and_then(Value::as_str) == Some(rel))
        };
        let named = |name: &'static str, rel: &str, key: &str| {
            with_rel(name, rel).map(|entry| field(entry, key)).unwrap_or_default()
        };
        let is_code = |code: &&str| !code.is_empty() && code.bytes().all(|b| b.is_ascii_digit());
        let keyword = |entry: &&Value| {
            field(entry, "scheme").contains("/keyword/") || entry.get("code").is_none()
        };
        Self {
            headline: text("headline"),
            title: first(["slugline", "title"]).unwrap_or_default().to_owned(),
            description: text("description_text"),
            byline: text("byline"),
            byline_role: document.texts("bylines", "role").next().unwrap_or_default().to_owned(),
            credit: named("infosource", CREDIT, "name"),
            source: text("source"),
            copyright_notice: text("copyrightnotice"),
            copyright_holder: text("copyrightholder"),
            usage_terms: text("usageterms"),
            instructions: text("ednote"),
            city: named("place", CITY, "name"),
            country: named("place", COUNTRY, "name"),
            country_code: named("place", COUNTRY, "code"),
            position: list("place").find_map(position),
            persons: document.texts("person", "name").map(str::to_owned).collect(),
            subject_codes: document
                .texts("subject", "code")
                .filter(is_code)
                .map(str::to_owned)
                .collect(),
            keywords: list("subject")
                .filter(keyword)
                .map(|entry| field(entry, "name"))
                .filter(|name| !name.is_empty())
                .collect(),
            created: document.text("versioncreated").map(str::to_owned),
            transmission_reference: text("originaltransmissionreference"),
            urgency: document
                .value("urgency")
                .and_then(Value::as_u64)
                .and_then(|urgency| u8::try_from(urgency).ok())
                .filter(|urgency| (1..=9).contains(urgency)),
            uri: uri.to_owned(),
            language: text("language"),
        }
    }

    /// The properties of a document for a photograph that brings this caption.
    ///
    /// A time without an offset is one in `zone`. The caption's own uri is not taken over: the
    /// item gets ours.
    #[must_use]
    pub fn to_fields(&self, zone: &TimeZone) -> Map<String, Value> {
        let mut fields = Map::new();
        let mut set = |name: &str, value: Value| {
            let empty = match &value {
                Value::String(text) => text.is_empty(),
                Value::Array(entries) => entries.is_empty(),
                Value::Null => true,
                Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
            };
            if !empty {
                fields.insert(name.to_owned(), value);
            }
        };
        set("versioncreated", json!(self.created.as_deref().and_then(|text| time(text, zone))));
        set("headline", json!(self.headline));
        set("slugline", json!(self.title));
        set("description_text", json!(self.description));
        set("byline", json!(self.byline));
        set("bylines", self.bylines());
        set("source", json!(self.source));
        set("copyrightnotice", json!(self.copyright_notice));
        set("copyrightholder", json!(self.copyright_holder));
        set("usageterms", json!(self.usage_terms));
        set("ednote", json!(self.instructions));
        set("language", json!(self.language));
        set("urgency", json!(self.urgency));
        set("originaltransmissionreference", json!(self.transmission_reference));
        set("place", self.places());
        let person = |name: &String| json!({ "name": name });
        set("person", self.persons.iter().map(person).collect());
        let code = |code: &String| json!({ "code": code, "scheme": SUBJECT_SCHEME });
        let word = |word: &String| json!({ "name": word, "scheme": KEYWORD_SCHEME });
        let codes = self.subject_codes.iter().map(code);
        set("subject", codes.chain(self.keywords.iter().map(word)).collect());
        if !self.credit.is_empty() {
            set("infosource", json!([{ "name": self.credit, "rel": CREDIT }]));
        }
        fields
    }

    fn bylines(&self) -> Value {
        if self.byline_role.is_empty() {
            return Value::Null;
        }
        json!([{ "byline": self.byline, "role": self.byline_role }])
    }

    fn places(&self) -> Value {
        let mut places = Vec::new();
        let geometry = self.position.map(|(latitude, longitude)| {
            json!({ "type": "Point", "coordinates": [longitude, latitude] })
        });
        let mut city = json!({ "name": self.city, "rel": CITY, "scheme": PLACE_SCHEME });
        if self.city.is_empty() {
            city = json!({});
        }
        if let Some(geometry) = geometry {
            city["geometry_geojson"] = geometry;
        }
        if city != json!({}) {
            places.push(city);
        }
        if !self.country.is_empty() || !self.country_code.is_empty() {
            let name = if self.country.is_empty() { &self.country_code } else { &self.country };
            let mut country = json!({ "name": name, "rel": COUNTRY, "scheme": PLACE_SCHEME });
            if !self.country_code.is_empty() {
                country["code"] = json!(self.country_code);
            }
            places.push(country);
        }
        Value::Array(places)
    }
}

fn objects<'a>(document: &'a Document, name: &str) -> impl Iterator<Item = &'a Value> {
    document.value(name).and_then(Value::as_array).into_iter().flatten()
}

/// Latitude and longitude of a place; GeoJSON has them the other way round.
fn position(place: &Value) -> Option<(f64, f64)> {
    let coordinates = place.get("geometry_geojson")?.get("coordinates")?;
    let number = |index: usize| coordinates.get(index)?.as_f64();
    Some((number(1)?, number(0)?))
}

/// A caption's time as the schema wants it, with an offset.
fn time(text: &str, zone: &TimeZone) -> Option<String> {
    if text.parse::<jiff::Timestamp>().is_ok() {
        return Some(text.to_owned());
    }
    let civil: DateTime = text.parse().ok()?;
    let zoned = civil.to_zoned(zone.clone()).ok()?;
    Some(zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caption() -> Caption {
        Caption {
            headline: "Isbrytare i Strömmen".to_owned(),
            title: "isbrytare".to_owned(),
            description: "En isbrytare.\nFoto: X".to_owned(),
            byline: "Photographer".to_owned(),
            byline_role: "Staff".to_owned(),
            credit: "Agency".to_owned(),
            source: "Source".to_owned(),
            copyright_notice: "(c)".to_owned(),
            copyright_holder: "Holder".to_owned(),
            usage_terms: "Terms".to_owned(),
            instructions: "Note".to_owned(),
            city: "Stockholm".to_owned(),
            country: "Sverige".to_owned(),
            country_code: "SE".to_owned(),
            position: Some((59.3293, 18.0686)),
            persons: vec!["One".to_owned(), "Two".to_owned()],
            subject_codes: vec!["13000000".to_owned()],
            keywords: vec!["is".to_owned(), "hav".to_owned()],
            created: Some("2026-03-02T09:15:00+01:00".to_owned()),
            transmission_reference: "ref".to_owned(),
            urgency: Some(4),
            uri: "http://localhost/media/image/abc".to_owned(),
            language: "sv".to_owned(),
        }
    }

    fn through_a_document(caption: &Caption) -> Caption {
        let key = "image/abc".parse().expect("key");
        let zone = TimeZone::get("Europe/Stockholm").expect("zone");
        let document = Document::from_fields(&key, caption.to_fields(&zone)).expect("valid");
        Caption::from_document(&document, &caption.uri)
    }

    #[test]
    fn a_caption_survives_its_document() {
        assert_eq!(through_a_document(&caption()), caption());
    }

    #[test]
    fn an_empty_caption_makes_an_empty_document() {
        let zone = TimeZone::UTC;
        assert_eq!(Caption::default().to_fields(&zone), Map::new());
    }

    #[test]
    fn a_time_without_offset_is_local() {
        let created = Some("2026-07-02T09:15:00".to_owned());
        let found = through_a_document(&Caption { created, ..caption() }).created;
        assert_eq!(found.as_deref(), Some("2026-07-02T09:15:00+02:00"));
    }

    #[test]
    fn a_position_without_a_city_is_kept() {
        let caption = Caption { city: String::new(), ..caption() };
        assert_eq!(through_a_document(&caption).position, Some((59.3293, 18.0686)));
    }
}
