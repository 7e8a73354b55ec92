//! Maps captions to news item documents and back, property by property (contract files-12).
//!
//! The schema has no property for a credit line. It is stored as an `infosource` with `rel` `credit`, so that the
//! renditions of a photograph keep the credit of the delivered file.

use jiff::{civil::DateTime, tz::TimeZone};
use serde_json::{Map, Value, json};

use metadata::{Caption, country};
use model::item::{
    CITY_RELATIONS as CITY, COUNTRY_RELATIONS as COUNTRY, CREDIT_RELATIONS as CREDIT, Document,
    KEYWORD_SCHEME, PLACE_SCHEME,
};

const SUBJECT_SCHEME: &str = "http://cv.iptc.org/newscodes/subjectcode/";
/// The values of `rel` that mark a province. The first value is written; likewise for a place within a city.
const PROVINCE: [&str; 4] = ["region", "delstat", "län", "landskap"];
const SUBLOCATION: [&str; 1] = ["sublocation"];

/// Builds the caption of an item's renditions; `uri` identifies the item.
pub fn from_document(document: &Document, uri: &str) -> Caption {
    let title = document.text("slugline").or(document.text("title"));
    let byline_role = document.texts("bylines", "role").find(|role| !role.is_empty());
    let city = related(document, "place", &CITY);
    let country = related(document, "place", &COUNTRY);
    let credit = related(document, "infosource", &CREDIT);
    Caption {
        headline: text(document, "headline"),
        title: title.unwrap_or_default().to_owned(),
        description: text(document, "description_text"),
        byline: byline(document),
        byline_role: byline_role.unwrap_or_default().to_owned(),
        credit: field(credit, "name").to_owned(),
        source: text(document, "source"),
        copyright_notice: text(document, "copyrightnotice"),
        copyright_holder: text(document, "copyrightholder"),
        usage_terms: text(document, "usageterms"),
        instructions: text(document, "ednote"),
        sublocation: field(related(document, "place", &SUBLOCATION), "name").to_owned(),
        city: field(city, "name").to_owned(),
        province: field(related(document, "place", &PROVINCE), "name").to_owned(),
        country: field(country, "name").to_owned(),
        // Providers also use long codes of their own, which the caption cannot hold.
        country_code: country::normalize_code(field(country, "code")).unwrap_or_default(),
        // The country has a position as well, but the position of the city is the place of the photograph.
        position: city
            .and_then(position)
            .or_else(|| objects(document, "place").find_map(position)),
        persons: document.texts("person", "name").map(str::to_owned).collect(),
        subject_codes: subject_codes(document),
        keywords: keywords(document),
        created: document.text("versioncreated").map(str::to_owned),
        transmission_reference: transmission_reference(document).to_owned(),
        urgency: document.value("urgency").and_then(urgency),
        uri: uri.to_owned(),
        language: text(document, "language"),
    }
}

/// Returns a text of a document; empty if the document does not have it.
fn text(document: &Document, name: &str) -> String {
    document.text(name).unwrap_or_default().to_owned()
}

/// Builds the document properties for a photograph that was delivered with this caption.
///
/// A time without a UTC offset is interpreted in `zone`. The caption's own URI is ignored, because the item gets a
/// URI of this service.
pub fn to_fields(caption: &Caption, zone: &TimeZone) -> Map<String, Value> {
    let mut fields = Map::new();
    let created = caption.created.as_deref().and_then(|text| time(text, zone));
    set(&mut fields, "versioncreated", json!(created));
    set(&mut fields, "headline", json!(caption.headline));
    // [`from_document`] reads the slugline first (contract files-12), so the title needs no property of its own.
    set(&mut fields, "slugline", json!(caption.title));
    set(&mut fields, "description_text", json!(caption.description));
    set(&mut fields, "byline", json!(caption.byline));
    set(&mut fields, "bylines", bylines(caption));
    set(&mut fields, "source", json!(caption.source));
    set(&mut fields, "copyrightnotice", json!(caption.copyright_notice));
    set(&mut fields, "copyrightholder", json!(caption.copyright_holder));
    set(&mut fields, "usageterms", json!(caption.usage_terms));
    set(&mut fields, "ednote", json!(caption.instructions));
    set(&mut fields, "language", json!(caption.language));
    set(&mut fields, "urgency", json!(caption.urgency));
    let reference = json!(caption.transmission_reference);
    set(&mut fields, "originaltransmissionreference", reference);
    set(&mut fields, "place", places(caption));
    let persons = caption.persons.iter().map(|name| json!({ "name": name }));
    set(&mut fields, "person", persons.collect());
    set(&mut fields, "subject", subjects(caption));
    if !caption.credit.is_empty() {
        let credit = json!([{ "name": caption.credit, "rel": CREDIT[0] }]);
        set(&mut fields, "infosource", credit);
    }
    fields
}

/// Sets a property, unless its value is empty.
fn set(fields: &mut Map<String, Value>, name: &str, value: Value) {
    let empty = match &value {
        Value::String(text) => text.is_empty(),
        Value::Array(entries) => entries.is_empty(),
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    };
    if !empty {
        fields.insert(name.to_owned(), value);
    }
}

fn subjects(caption: &Caption) -> Value {
    let mut subjects = Vec::new();
    for code in &caption.subject_codes {
        subjects.push(json!({ "code": code, "scheme": SUBJECT_SCHEME }));
    }
    // Keywords get their own scheme, by which `is_keyword` recognizes them in [`from_document`].
    for keyword in &caption.keywords {
        subjects.push(json!({ "name": keyword, "scheme": KEYWORD_SCHEME }));
    }
    Value::Array(subjects)
}

fn bylines(caption: &Caption) -> Value {
    // The plain `byline` already has the name; the list is needed only for the role.
    if caption.byline_role.is_empty() {
        return Value::Null;
    }
    json!([{ "byline": caption.byline, "role": caption.byline_role }])
}

fn places(caption: &Caption) -> Value {
    let mut places = Vec::new();
    let geometry = caption.position.map(
        |(latitude, longitude)| json!({ "type": "Point", "coordinates": [longitude, latitude] }),
    );
    // A position without a city still needs an entry in which it can be stored.
    let mut city = json!({ "name": caption.city, "rel": CITY[0], "scheme": PLACE_SCHEME });
    if caption.city.is_empty() {
        city = json!({});
    }
    if let Some(geometry) = geometry {
        city["geometry_geojson"] = geometry;
    }
    if city != json!({}) {
        places.push(city);
    }
    for (name, rel) in [(&caption.sublocation, SUBLOCATION[0]), (&caption.province, PROVINCE[0])] {
        if !name.is_empty() {
            places.push(json!({ "name": name, "rel": rel, "scheme": PLACE_SCHEME }));
        }
    }
    if !caption.country.is_empty() || !caption.country_code.is_empty() {
        let name =
            if caption.country.is_empty() { &caption.country_code } else { &caption.country };
        let mut country = json!({ "name": name, "rel": COUNTRY[0], "scheme": PLACE_SCHEME });
        if !caption.country_code.is_empty() {
            country["code"] = json!(caption.country_code);
        }
        places.push(country);
    }
    Value::Array(places)
}

fn objects<'a>(document: &'a Document, name: &str) -> impl Iterator<Item = &'a Value> {
    document.value(name).and_then(Value::as_array).into_iter().flatten()
}

/// Returns the first list entry with the first of `rels` that any entry has.
fn related<'a>(document: &'a Document, name: &str, rels: &[&str]) -> Option<&'a Value> {
    rels.iter()
        .find_map(|rel| objects(document, name).find(|entry| field(Some(*entry), "rel") == *rel))
}

fn field<'a>(entry: Option<&'a Value>, name: &str) -> &'a str {
    entry.and_then(|entry| entry.get(name)).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the byline, or else the entries of `bylines`, built from first and last names if necessary.
fn byline(document: &Document) -> String {
    if let Some(byline) = document.text("byline") {
        return byline.to_owned();
    }
    let names = objects(document, "bylines").map(full_name).filter(|name| !name.is_empty());
    names.collect::<Vec<_>>().join(", ")
}

fn full_name(entry: &Value) -> String {
    match field(Some(entry), "byline") {
        "" => {
            let names = ["firstname", "lastname"].map(|name| field(Some(entry), name));
            names.join(" ").trim().to_owned()
        }
        byline => byline.to_owned(),
    }
}

/// Returns the transmission reference, which newer documents have only in `altids`.
fn transmission_reference(document: &Document) -> &str {
    const NAME: &str = "originaltransmissionreference";
    document.text(NAME).unwrap_or_else(|| field(document.value("altids"), NAME))
}

fn is_keyword(subject: &&Value) -> bool {
    field(Some(*subject), "scheme").contains("/keyword/") || subject.get("code").is_none()
}

/// Returns the IPTC subject codes, which are numeric. Keywords may have codes too, which are skipped.
fn subject_codes(document: &Document) -> Vec<String> {
    objects(document, "subject")
        .filter(|subject| !is_keyword(subject))
        .map(|subject| field(Some(subject), "code"))
        .filter(|code| !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_digit()))
        .map(str::to_owned)
        .collect()
}

fn keywords(document: &Document) -> Vec<String> {
    objects(document, "subject")
        .filter(is_keyword)
        .map(|subject| field(Some(subject), "name"))
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Parses an urgency of 1 to 9; JSON may have it as `4` or `4.0`.
fn urgency(value: &Value) -> Option<u8> {
    let number = value.as_f64()?;
    (1..=9).find(|&urgency| f64::from(urgency) == number)
}

/// Returns the latitude and longitude of a place; GeoJSON has them in reverse order.
fn position(place: &Value) -> Option<(f64, f64)> {
    let coordinates = place.get("geometry_geojson")?.get("coordinates")?;
    // GeoJSON puts the longitude first (RFC 7946 §3.1.1).
    let longitude = coordinates.get(0)?.as_f64()?;
    let latitude = coordinates.get(1)?.as_f64()?;
    Some((latitude, longitude))
}

/// Converts a caption's time to the schema's form, with a UTC offset.
fn time(text: &str, zone: &TimeZone) -> Option<String> {
    // Kept as written, so that a caption written here gives back the same document (contract files-15).
    if text.parse::<jiff::Timestamp>().is_ok() {
        return Some(text.to_owned());
    }
    let civil: DateTime = text.parse().ok()?;
    let zoned = civil.to_zoned(zone.clone()).ok()?;
    Some(zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
}

#[cfg(test)]
mod exiftool_tests;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
            sublocation: "Strömmen".to_owned(),
            city: "Stockholm".to_owned(),
            province: "Stockholms län".to_owned(),
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
        let document = Document::from_fields(&key, to_fields(caption, &zone)).expect("valid");
        from_document(&document, &caption.uri)
    }

    #[test]
    fn a_caption_survives_its_document() {
        assert_eq!(through_a_document(&caption()), caption());
    }

    fn text() -> impl Strategy<Value = String> {
        "[ -~åäöÅÄÖéø–”😀❄一-龥]{0,40}".prop_map(|text| text.trim().to_owned())
    }

    fn list() -> impl Strategy<Value = Vec<String>> {
        let entry = text().prop_filter("an empty entry says nothing", |entry| !entry.is_empty());
        proptest::collection::vec(entry, 0..6)
    }

    proptest! {
        #[test]
        fn a_document_round_trips_through_a_photograph(
            texts in proptest::array::uniform8(text()),
            lists in (list(), list()),
            code in proptest::sample::select(vec!["", "SE", "NOR", "XK", "AX", "R23"]),
        ) {
            let [headline, title, description, byline, credit, source, city, country] = texts;
            let (persons, keywords) = lists;
            let photograph = Caption {
                headline, title, description, byline, credit, source, city, country, persons,
                keywords, country_code: code.to_owned(), ..caption()
            };
            let fields = to_fields(&photograph, &TimeZone::UTC);
            let restored = through_a_document(&photograph);
            let options = metadata::WriteOptions { orientation: 1, gps: true, picture: None };
            let rights = metadata::RightsMetadata::default();
            let segments = metadata::write(&restored, &rights, &[], options);
            let jpeg = jpeg::samples::file(&segments);
            let header = jpeg::header::JpegHeader::parse(&jpeg, &jpeg::samples::LIMITS).expect("sound");
            let read = metadata::read(&header, &jpeg).caption;
            prop_assert_eq!(to_fields(&read, &TimeZone::UTC), fields);
        }
    }

    #[test]
    fn an_empty_caption_makes_an_empty_document() {
        let zone = TimeZone::UTC;
        assert_eq!(to_fields(&Caption::default(), &zone), Map::new());
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

    fn caption_of(fields: Value) -> Caption {
        let key = "image/abc".parse().expect("key");
        let Value::Object(fields) = fields else { panic!("an object") };
        from_document(&Document::from_fields(&key, fields).expect("valid"), "")
    }

    #[test]
    fn a_byline_is_found_in_the_list_of_bylines() {
        let list = json!([
            { "firstname": "Åsa", "lastname": "Ek", "role": "" },
            { "byline": "Bo Öman/TT", "firstname": "Bo", "role": "Fotograf" },
            { "lastname": "Berg" },
        ]);
        let found = caption_of(json!({ "bylines": list }));
        assert_eq!(found.byline, "Åsa Ek, Bo Öman/TT, Berg");
        assert_eq!(found.byline_role, "Fotograf");
        assert_eq!(caption_of(json!({ "byline": "TT", "bylines": list })).byline, "TT");
    }

    #[test]
    fn a_city_and_a_country_are_found_by_what_they_are() {
        let point = |number| json!({ "type": "Point", "coordinates": [number, number] });
        let country = json!({
            "name": "Norge", "rel": "land", "code": "no", "geometry_geojson": point(1.0),
        });
        let city = json!({ "name": "Oslo", "rel": "capital", "geometry_geojson": point(2.0) });
        let found = caption_of(json!({ "place": [country, city] }));
        assert_eq!((found.city.as_str(), found.country.as_str()), ("Oslo", "Norge"));
        assert_eq!((found.country_code.as_str(), found.position), ("NO", Some((2.0, 2.0))));
        let found = caption_of(json!({ "place": [country] }));
        assert_eq!((found.city.as_str(), found.position), ("", Some((1.0, 1.0))));
        let odd = json!([{ "name": "Norge", "rel": "land", "code": "tt-17" }]);
        assert_eq!(caption_of(json!({ "place": odd })).country_code, "");
        let reference = json!([{ "name": "Norge", "rel": "land", "code": "r23" }]);
        assert_eq!(caption_of(json!({ "place": reference })).country_code, "R23");
    }

    #[test]
    fn a_keyword_code_is_not_a_subject_code() {
        let found = caption_of(json!({ "subject": [
            { "name": "is", "code": "123", "scheme": "http://tt.se/spec/keyword/1.0/" },
            { "name": "Sport", "code": "15000000", "scheme": "http://tt.se/spec/subref/1.0/" },
        ]}));
        assert_eq!(found.subject_codes, ["15000000"]);
        assert_eq!(found.keywords, ["is"]);
    }

    #[test]
    fn an_urgency_is_whole_and_the_reference_may_be_another_id() {
        for (urgency, expected) in [(json!(4.0), Some(4)), (json!(4.5), None), (json!(0), None)] {
            assert_eq!(caption_of(json!({ "urgency": urgency })).urgency, expected);
        }
        let altids = json!({ "originaltransmissionreference": "jobb" });
        assert_eq!(caption_of(json!({ "altids": altids })).transmission_reference, "jobb");
    }
}
