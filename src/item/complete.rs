//! What the service fills in when a document comes in, and the time that orders items.

use jiff::{Timestamp, civil::Time, tz::TimeZone};
use serde_json::{Value, json};

use super::Document;
use crate::types::{ItemKey, MediaType};

impl Document {
    /// Fills in what the service knows: type, status, standard, dates of storing.
    ///
    /// `now` becomes `versionstored`; `zone` is the one whose offset the dates are written in.
    pub fn complete(&mut self, key: &ItemKey, now: Timestamp, zone: &TimeZone) {
        let stored = rfc3339(now, zone);
        let document_type = key.media_type.document_type();
        self.fields.insert("type".to_owned(), json!(document_type));
        self.fields.insert("versionstored".to_owned(), json!(stored));
        self.fields.insert("representationtype".to_owned(), json!("complete"));
        self.default("pubstatus", || json!("usable"));
        self.default("profile", || json!("PUBL"));
        self.default("version", || json!("1"));
        self.default("versioncreated", || json!(stored));
        if let Some(created) = self.text("versioncreated").map(str::to_owned) {
            self.default("datetime", || json!(created));
            let date: String = created.chars().take(10).collect();
            self.default("date", || json!(date));
        }
        if super::has_picture(key.media_type) {
            self.default("mimetype", || json!("image/jpeg"));
            self.default("originaltransmissionreference", || json!(key.id.as_str()));
            if let Some(reference) = self.text("originaltransmissionreference").map(str::to_owned)
            {
                self.default("altids", || json!({ "originaltransmissionreference": reference }));
            }
        }
        let standard = json!({
            "name": "TTNINJS",
            "version": "1.6",
            "schema": "https://tt.se/spec/ttninjs/ttninjs-schema_1.6.json",
        });
        self.fields.insert("$standard".to_owned(), standard);
    }

    fn default(&mut self, name: &str, value: impl FnOnce() -> Value) {
        if !self.fields.contains_key(name) {
            self.fields.insert(name.to_owned(), value());
        }
    }

    /// A date-time property as a point in time.
    #[must_use]
    pub fn time(&self, name: &str) -> Option<Timestamp> {
        self.text(name)?.parse().ok()
    }

    /// The time that orders items (`_tstamp`), never served.
    ///
    /// `versioncreated` for text-like items, `datetime` for planning and calendar; for pictures
    /// and video `versioncreated` if that lies before the last midnight in `zone`, else `now`, so
    /// that today's photographs that arrive out of order keep the order of arrival.
    #[must_use]
    pub fn order_time(&self, media_type: MediaType, now: Timestamp, zone: &TimeZone) -> Timestamp {
        let created = self.time("versioncreated");
        let stored = || self.time("versionstored").unwrap_or(now);
        match media_type {
            MediaType::Image | MediaType::Stockfoto | MediaType::Video => {
                created.filter(|created| *created < last_midnight(now, zone)).unwrap_or(now)
            }
            MediaType::Planning | MediaType::Calendar => {
                self.time("datetime").unwrap_or_else(stored)
            }
            MediaType::Text | MediaType::Feature | MediaType::Graphic | MediaType::Page => {
                created.unwrap_or_else(stored)
            }
        }
    }
}

/// The moment at which today began in `zone`.
fn last_midnight(now: Timestamp, zone: &TimeZone) -> Timestamp {
    let today = now.to_zoned(zone.clone()).date().to_datetime(Time::midnight());
    today.to_zoned(zone.clone()).map_or(now, |midnight| midnight.timestamp())
}

/// `2026-03-02T09:15:00+01:00`: seconds, with the offset of `zone`.
#[must_use]
pub(super) fn rfc3339(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
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
    fn photographs_of_today_take_the_time_of_arrival() {
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
}
