//! Completes a document at ingest, and computes the time by which items are ordered.

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::Document;
use crate::{ItemKey, MediaType};

impl Document {
    /// Sets the properties that the service knows: type, status, standard, storage dates.
    ///
    /// `now` becomes `versionstored`. Dates are written with the UTC offset of `zone`.
    pub fn complete(&mut self, key: &ItemKey, now: Timestamp, zone: &TimeZone) {
        let stored = rfc3339(now, zone);
        let document_type = key.media_type.document_type();
        // The next three are facts of the service, so they replace the values in the document; the rest are only
        // defaults.
        self.fields.insert("type".to_owned(), json!(document_type));
        self.fields.insert("versionstored".to_owned(), json!(stored));
        self.fields.insert("representationtype".to_owned(), json!("complete"));
        self.set_default("pubstatus", || json!("usable"));
        self.set_default("version", || json!("1"));
        // Must come before the dates below, which are derived from it.
        self.set_default("versioncreated", || json!(stored));
        if key.media_type.is_planned() {
            self.complete_future_dates(zone);
        } else {
            self.complete_created_dates();
        }
        if super::has_picture(key.media_type) {
            self.set_default("mimetype", || json!("image/jpeg"));
            self.set_default("originaltransmissionreference", || json!(key.id.as_str()));
            if let Some(reference) = self.text("originaltransmissionreference").map(str::to_owned)
            {
                self.set_default(
                    "altids",
                    || json!({ "originaltransmissionreference": reference }),
                );
            }
        }
        if key.media_type == MediaType::Graphic {
            self.set_default("mimetype", || json!("application/pdf"));
        }
        if key.media_type == MediaType::Video {
            self.set_default("mimetype", || json!("video/mp4"));
        }
        complete_associations(&mut self.fields);
        self.fields.insert("$standard".to_owned(), standard());
    }

    /// Sets missing dates of created content to the dates of the version.
    fn complete_created_dates(&mut self) {
        self.set_default("profile", || json!("PUBL"));
        if let Some(created) = self.text("versioncreated").map(str::to_owned) {
            self.set_default("datetime", || json!(created));
            // RFC 3339 begins with the date, in the offset that the sender chose.
            let date: String = created.chars().take(10).collect();
            self.set_default("date", || json!(date));
        }
    }

    /// Sets missing dates of planned content. The document's creation time does not determine the time of the
    /// event, so `date` and `datetime` are derived only from each other.
    fn complete_future_dates(&mut self, zone: &TimeZone) {
        self.set_default("profile", || json!("INFO"));
        self.set_default("mimetype", || json!("application/json"));
        if let Some(datetime) = self.text("datetime").map(str::to_owned) {
            let date: String = datetime.chars().take(10).collect();
            self.set_default("date", || json!(date));
        // An event without a time of day is ordered by the start of its day.
        } else if let Some(midnight) = self.text("date").and_then(|date| midnight(date, zone)) {
            self.fields.insert("datetime".to_owned(), json!(rfc3339(midnight, zone)));
        }
    }

    /// Copies missing version properties from `old`, an earlier version of the same item, so that a document that
    /// is sent again without them is not a newer version.
    ///
    /// Must be called before [`Document::complete`].
    pub fn inherit_version(&mut self, old: &Self) {
        for name in ["version", "versioncreated"] {
            if self.text(name).is_none()
                && let Some(value) = old.value(name)
            {
                self.fields.insert(name.to_owned(), value.clone());
            }
        }
    }

    /// Reports whether this version is newer than `old`, that is, has a higher `version` or `versioncreated`.
    ///
    /// Versions that are integers are compared as numbers, other versions as text.
    pub fn is_newer_than(&self, old: &Self) -> bool {
        let new_version = self.text("version");
        let old_version = old.text("version");
        // As text, version 10 would precede version 9.
        let numbers = [new_version, old_version].map(|text| text?.parse::<u64>().ok());
        let higher = match numbers {
            [Some(new), Some(old)] => new > old,
            _ => new_version > old_version,
        };
        // Either of the two suffices (contract items-15).
        higher || self.time("versioncreated") > old.time("versioncreated")
    }

    /// Increments `version` of a document that an editor changed, so that customers get the correction as a newer
    /// version. A version that is not an integer, such as `B`, gets a numbered suffix.
    pub fn increment_version(&mut self) {
        let old = self.text("version").unwrap_or("0");
        let version = if let Some(version) = incremented(old) {
            version.to_string()
        } else if let Some((start, end)) = old.rsplit_once('.')
            && let Some(end) = incremented(end)
        {
            format!("{start}.{end}")
        } else {
            format!("{old}.1")
        };
        self.fields.insert("version".to_owned(), json!(version));
    }

    /// Sets the storage time of this version to `now`.
    pub fn set_stored(&mut self, now: Timestamp, zone: &TimeZone) {
        self.fields.insert("versionstored".to_owned(), json!(rfc3339(now, zone)));
    }

    fn set_default(&mut self, name: &str, value: impl FnOnce() -> Value) {
        if !self.fields.contains_key(name) {
            self.fields.insert(name.to_owned(), value());
        }
    }

    /// Parses a date-time property as a timestamp.
    pub fn time(&self, name: &str) -> Option<Timestamp> {
        self.text(name)?.parse().ok()
    }

    /// Computes the time by which items are ordered (`_tstamp`), which is never served.
    ///
    /// Text-like items use `versioncreated`, planning and calendar items `datetime`; if the property is missing,
    /// they use `versionstored`. Pictures and video use `versioncreated` if it is before the last midnight in
    /// `zone`, else `now`, so that today's photographs keep their order of arrival.
    pub fn order_time(&self, media_type: MediaType, now: Timestamp, zone: &TimeZone) -> Timestamp {
        let created = self.time("versioncreated");
        match media_type {
            MediaType::Image | MediaType::Stockfoto | MediaType::Video => {
                // A date in the future is replaced too, so pictures of a camera with a wrong clock cannot stay on
                // top.
                created.filter(|created| *created < last_midnight(now, zone)).unwrap_or(now)
            }
            MediaType::Planning | MediaType::Calendar => {
                self.time("datetime").or_else(|| self.time("versionstored")).unwrap_or(now)
            }
            MediaType::Text | MediaType::Feature | MediaType::Graphic | MediaType::Page => {
                created.or_else(|| self.time("versionstored")).unwrap_or(now)
            }
        }
    }
}

/// Returns the next number; `None` if `number` is not a number or is the highest one.
fn incremented(number: &str) -> Option<u64> {
    number.parse::<u64>().ok()?.checked_add(1)
}

/// Returns the property `$standard`, which names the schema of the document.
pub(super) fn standard() -> Value {
    json!({
        "name": "TTNINJS",
        "version": "1.6",
        "schema": "https://tt.se/spec/ttninjs/ttninjs-schema_1.6.json",
    })
}

/// Sets `representationtype` and `type` of each associated item if they are missing.
fn complete_associations(fields: &mut Map<String, Value>) {
    let Some(Value::Object(associations)) = fields.get_mut("associations") else { return };
    for associated in associations.values_mut().filter_map(Value::as_object_mut) {
        if !associated.contains_key("representationtype") {
            let renditions = associated.get("renditions").and_then(Value::as_object);
            // It is only known when the document is served whether the archive has the item.
            let embedded = renditions.is_some_and(|renditions| !renditions.is_empty());
            let representation = if embedded { "incomplete" } else { "associated" };
            associated.insert("representationtype".to_owned(), json!(representation));
        }
        let uri = associated.get("uri").and_then(Value::as_str).unwrap_or_default();
        // An explicit type stays even if it contradicts the URI (contract items-6).
        if !associated.contains_key("type")
            && let Ok(key) = ItemKey::from_uri(uri)
        {
            associated.insert("type".to_owned(), json!(key.media_type.document_type()));
        }
        // The JSON parser limits the nesting depth, and therefore this recursion.
        complete_associations(associated);
    }
}

/// Returns the start of the day `date`, `YYYY-MM-DD`, in `zone`.
fn midnight(date: &str, zone: &TimeZone) -> Option<Timestamp> {
    let day: Date = date.parse().ok()?;
    // If the clock skips midnight, jiff uses the first instant after the gap.
    day.to_zoned(zone.clone()).ok().map(|midnight| midnight.timestamp())
}

/// Returns the start of the current day in `zone`.
fn last_midnight(now: Timestamp, zone: &TimeZone) -> Timestamp {
    let today = now.to_zoned(zone.clone()).date().to_datetime(Time::midnight());
    today.to_zoned(zone.clone()).map_or(now, |midnight| midnight.timestamp())
}

/// Formats a time as `2026-03-02T09:15:00+01:00`: whole seconds, with the offset of `zone`.
pub(super) fn rfc3339(time: Timestamp, zone: &TimeZone) -> String {
    time.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(created: &str) -> Document {
        let key = "image/abc".parse().expect("key");
        let text = json!({ "headline": "x", "versioncreated": created }).to_string();
        Document::parse(&key, &text).expect("document")
    }

    #[test]
    fn photographs_dated_today_get_the_time_of_arrival() {
        let zone = TimeZone::get("Europe/Stockholm").expect("zone");
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().expect("time");
        let check = |created: &str, expected: &str| {
            let found = document(created).order_time(MediaType::Image, now, &zone);
            assert_eq!(found, expected.parse().expect("time"), "{created}");
        };
        check("2026-11-21T00:30:00+01:00", "2026-11-21T12:00:00Z");
        check("2026-11-20T23:30:00+01:00", "2026-11-20T22:30:00Z");
        check("2026-11-20T23:30:00Z", "2026-11-21T12:00:00Z");
        check("2027-01-01T00:00:00Z", "2026-11-21T12:00:00Z");
    }

    #[test]
    fn a_completed_document_satisfies_the_schema_again() {
        let key: ItemKey = "image/abc".parse().expect("key");
        let mut document = document("2026-11-20T23:30:00+01:00");
        let zone = TimeZone::get("Europe/Stockholm").expect("zone");
        document.complete(&key, "2026-11-21T12:00:00Z".parse().expect("time"), &zone);
        let again = Document::parse(&key, &document.to_stored()).expect("valid");
        assert_eq!(again, document);
        assert_eq!(document.text("versionstored"), Some("2026-11-21T13:00:00+01:00"));
        assert_eq!(document.text("date"), Some("2026-11-20"));
    }

    fn incoming(key: &str, fields: &Value) -> Document {
        let key: ItemKey = key.parse().expect("key");
        let mut document = Document::parse(&key, &fields.to_string()).expect("document");
        let zone = TimeZone::get("Europe/Stockholm").expect("zone");
        document.complete(&key, "2026-11-21T12:00:00Z".parse().expect("time"), &zone);
        document
    }

    #[test]
    fn the_time_of_an_event_comes_from_its_date_and_never_from_when_it_was_written() {
        let check = |fields: Value, expected: [Option<&str>; 2]| {
            for key in ["planning/x", "calendar/x"] {
                let document = incoming(key, &fields);
                assert_eq!(
                    [document.text("date"), document.text("datetime")],
                    expected,
                    "{fields}"
                );
            }
        };
        let (day, midnight) = ("2026-03-03", "2026-03-03T00:00:00+01:00");
        check(json!({ "date": day }), [Some(day), Some(midnight)]);
        check(
            json!({ "date": "2026-07-01" }),
            [Some("2026-07-01"), Some("2026-07-01T00:00:00+02:00")],
        );
        let at = "2026-03-03T10:00:00+01:00";
        check(json!({ "datetime": at }), [Some(day), Some(at)]);
        check(json!({ "date": "2026-03-02", "datetime": at }), [Some("2026-03-02"), Some(at)]);
        check(json!({ "versioncreated": at }), [None, None]);
    }

    #[test]
    fn items_are_ordered_by_the_time_of_their_type_or_else_by_storage_time() {
        let zone = TimeZone::get("Europe/Stockholm").expect("zone");
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().expect("time");
        let check = |key: &str, fields: Value, expected: &str| {
            let media_type = key.parse::<ItemKey>().expect("key").media_type;
            let found = incoming(key, &fields).order_time(media_type, now, &zone);
            assert_eq!(found, expected.parse().expect("time"), "{key}");
        };
        let written = json!({ "versioncreated": "2026-02-01T10:00:00Z", "date": "2026-03-03" });
        for key in
            ["text/x", "feature/x", "graphic/x", "page/x", "image/x", "video/x", "stockfoto/x"]
        {
            check(key, written.clone(), "2026-02-01T10:00:00Z");
        }
        for key in ["planning/x", "calendar/x"] {
            check(key, written.clone(), "2026-03-02T23:00:00Z");
            check(
                key,
                json!({ "versioncreated": "2026-02-01T10:00:00Z" }),
                "2026-11-21T12:00:00Z",
            );
        }
        check("text/x", json!({}), "2026-11-21T12:00:00Z");
        check(
            "text/x",
            json!({ "versioncreated": "2026-11-21T11:00:00Z" }),
            "2026-11-21T11:00:00Z",
        );
        check(
            "video/x",
            json!({ "versioncreated": "2026-11-21T11:00:00Z" }),
            "2026-11-21T12:00:00Z",
        );
    }

    #[test]
    fn associations_say_how_complete_they_are() {
        let link = json!({ "uri": "http://a/media/image/y-crop_w10_h10" });
        let rendition = json!({ "r00": { "href": "http://a/x.jpg" } });
        let embedded = json!({
            "uri": "http://a/media/video/z", "renditions": rendition, "associations": { "b": link },
        });
        let explicit = json!({ "uri": "http://a/media/text/t", "type": "composite", "representationtype": "complete" });
        let all = json!({ "a000": link, "a001": embedded, "a002": explicit, "a003": { "uri": "http://a/x" } });
        let document = incoming("text/x", &json!({ "associations": all }));
        let found = document.value("associations").expect("associations");
        let check = |at: &str, expected: [Value; 2]| {
            let one = found.pointer(at).expect("association");
            assert_eq!([one["type"].clone(), one["representationtype"].clone()], expected, "{at}");
        };
        check("/a000", [json!("picture"), json!("associated")]);
        check("/a001", [json!("video"), json!("incomplete")]);
        check("/a001/associations/b", [json!("picture"), json!("associated")]);
        check("/a002", [json!("composite"), json!("complete")]);
        check("/a003", [Value::Null, json!("associated")]);
    }

    #[test]
    fn an_edited_document_has_the_next_version() {
        let check = |old: &str, new: &str| {
            let mut document = incoming("text/x", &json!({ "version": old }));
            let before = document.clone();
            document.increment_version();
            assert_eq!(document.text("version"), Some(new));
            assert!(document.is_newer_than(&before), "{old} {new}");
        };
        check("1", "2");
        check("99", "100");
        check("B", "B.1");
        check("B.1", "B.2");
        check("18446744073709551615", "18446744073709551615.1");
    }

    #[test]
    fn a_version_is_incremented_as_a_number_or_else_as_text() {
        let check = |old: Value, new: Value, expected: bool| {
            let key = "text/x".parse().expect("key");
            let [old, mut new] = [old, new]
                .map(|fields| Document::parse(&key, &fields.to_string()).expect("valid"));
            new.inherit_version(&old);
            assert_eq!(new.is_newer_than(&old), expected, "{old:?} {new:?}");
        };
        let version = |text: &str| json!({ "version": text });
        check(version("9"), version("10"), true);
        check(version("10"), version("9"), false);
        check(version("2"), version("2"), false);
        check(version("1.9"), version("1.10"), false);
        check(version("a"), version("b"), true);
        check(version("3"), json!({}), false);
        let created = |text: &str| json!({ "version": "1", "versioncreated": text });
        check(created("2026-01-01T10:00:00Z"), created("2026-01-01T10:00:01Z"), true);
        check(created("2026-01-01T10:00:00Z"), created("2026-01-01T10:30:00+01:00"), false);
        check(created("2026-01-01T10:00:00Z"), version("1"), false);
    }
}
