//! ninjs by its schema and by the test suite of the IPTC.

use super::DocumentRights;
use super::ninjs;
use super::schemas;
use super::schemas::TextFormats;
use super::strategy;
use proptest::prelude::*;
use serde_json::Value;
use serde_json::json;

fn assert_valid(documents: &[Value], formats: TextFormats) {
    let errors = schemas::ninjs_errors(documents, formats);
    for (document, errors) in documents.iter().zip(errors) {
        assert!(errors.is_empty(), "{errors:#?} in {document:#}");
    }
}

#[test]
fn the_schema_agrees_with_the_test_suite_of_the_standard() {
    assert_valid(&schemas::ninjs_suite("should_pass"), TextFormats::Checked);
    let refused = schemas::ninjs_suite("should_fail");
    let errors = schemas::ninjs_errors(&refused, TextFormats::Checked);
    assert!(!errors.is_empty() && errors.iter().all(|errors| !errors.is_empty()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn any_document_becomes_valid_ninjs(
        documents in proptest::collection::vec(strategy::document(60), 8),
    ) {
        let rights = DocumentRights::default();
        let converted: Vec<_> = documents.iter().map(|document| ninjs(document, &rights)).collect();
        assert_valid(&converted, TextFormats::Ignored);
    }
}

/// A document with a value in each property that has a place in ninjs.
fn picture() -> Value {
    json!({
        "uri": "https://a.example/media/image/1",
        "type": "picture",
        "representationtype": "complete",
        "profile": "PUBL",
        "version": "2",
        "versioncreated": "2026-03-02T09:15:00+01:00",
        "embargoed": "2026-03-02T10:15:00+01:00",
        "pubstatus": "usable",
        "urgency": 4.0,
        "copyrightholder": "TT",
        "language": "sv",
        "source": "TT",
        "headline": "Ice",
        "description_text": "A ship.",
        "byline": "Anna Andersson",
        "slugline": "ice",
        "altids": { "originaltransmissionreference": "job" },
        "originaltransmissionreference": "job",
        "person": [{
            "name": "Anna", "code": "7", "scheme": "http://tt.se/spec/person/1.0",
            "contactinfo": [{ "type": "web", "value": "x", "address": { "locality": "Oslo" } }],
        }],
        "place": [{
            "name": "Oslo", "rel": "ort",
            "geometry_geojson": { "type": "Point", "coordinates": [10.7, 59.9] },
        }],
        "subject": [{ "name": "Weather", "code": "17000000", "relevance": 80,
            "scheme": "http://cv.iptc.org/newscodes/subjectcode/" }],
        "product": [{ "name": "Photo", "code": "FOTO" }],
        "rightsinfo": { "linkedrights": "https://a.example/terms" },
        "renditions": {
            "r00": { "usage": "Hires", "variant": "Normal", "mimetype": "image/jpeg",
                "href": "https://a.example/media/image/1.jpg", "width": 6000, "height": 4000 },
            "r05": { "usage": "Hires", "variant": "BlackAndWhite", "mimetype": "application/pdf",
                "width": 210, "height": 297, "unit": "MM", "bitrate": "775" },
        },
        "associations": { "a000": { "uri": "https://a.example/media/image/2", "type": "picture" } },
    })
}

#[test]
fn a_picture_is_converted_property_by_property() {
    let found = ninjs(&picture(), &DocumentRights::default());
    assert_valid(std::slice::from_ref(&found), TextFormats::Checked);
    let expected = json!({
        "standard": {
            "name": "ninjs", "version": "3.1",
            "schema": "http://www.iptc.org/std/ninjs/ninjs-schema_3.1.json#",
        },
        "uri": "https://a.example/media/image/1",
        "type": "picture",
        "representationType": "full",
        "profile": "PUBL",
        "version": "2",
        "versionCreated": "2026-03-02T09:15:00+01:00",
        "embargoedUntil": "2026-03-02T10:15:00+01:00",
        "pubStatus": "usable",
        "urgency": 4,
        "language": "sv",
        "altIds": [{ "role": "originaltransmissionreference", "value": "job" }],
        "copyrightHolder": "TT",
        "rightsInfo": { "linkedRights": "https://a.example/terms" },
        "headlines": [{ "value": "Ice" }],
        "slugline": "ice",
        "by": "Anna Andersson",
        "descriptions": [{ "role": "caption", "contentType": "text/plain", "value": "A ship." }],
        "renditions": [
            { "name": "highRes", "href": "https://a.example/media/image/1.jpg",
              "contentType": "image/jpeg", "width": 6000, "height": 4000 },
            { "name": "BlackAndWhiteHires", "contentType": "application/pdf",
              "bitrate": "775 bps" },
        ],
        "people": [{
            "name": "Anna", "uri": "http://tt.se/spec/person/1.0/7", "literal": "7",
            "contactInfo": [
                { "type": "web", "value": "x" },
                { "type": "web", "address": { "locality": "Oslo" } },
            ],
        }],
        "places": [{
            "name": "Oslo", "rel": "ort",
            "geoJSON": { "type": "Point", "coordinates": [10.7, 59.9] },
        }],
        "subjects": [
            { "name": "Weather", "literal": "17000000", "relevance": 80,
              "uri": "http://cv.iptc.org/newscodes/subjectcode/17000000" },
            { "name": "Photo", "literal": "FOTO", "rel": "product" },
        ],
        "infoSources": [{ "name": "TT", "role": "source" }],
        "associations": [{
            "name": "a000", "uri": "https://a.example/media/image/2", "type": "picture",
        }],
    });
    assert_eq!(found, expected, "{found:#}");
}

#[test]
fn events_and_plans_have_their_dates() {
    let event = json!({
        "uri": "https://a.example/media/calendar/1",
        "type": "event",
        "datetime": "2026-03-02T09:15:00+01:00",
        "enddate": "2026-03-03",
        "body_event": { "arena": "Hall", "city": "Oslo", "organizer": "Club" },
    });
    let planning = json!({
        "uri": "https://a.example/media/planning/1",
        "type": "planning",
        "assignments": { "a": {
            "uri": "https://a.example/1", "type": "picture", "headline": "Ice",
            "date": "2026-03-02", "pubstatus": "commissioned",
        } },
    });
    let rights = DocumentRights::default();
    let found = [&event, &planning].map(|document| ninjs(document, &rights));
    assert_valid(&found, TextFormats::Checked);
    let [event, planning] = found;
    let dates = json!({
        "startDate": "2026-03-02T09:15:00+01:00", "expectedEndDate": "2026-03-03",
    });
    assert_eq!(event["eventDetails"], json!({ "dates": dates, "organiser": { "name": "Club" } }));
    assert_eq!(event["places"][0]["name"], "Hall");
    let planned = json!([{
        "uri": "https://a.example/1", "title": "Ice", "type": "picture",
        "dates": { "expectedStartDate": "2026-03-02" },
    }]);
    assert_eq!(planning["plannedCoverage"], planned);
}
