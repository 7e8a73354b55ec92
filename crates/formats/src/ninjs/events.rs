//! Converts the details of an event and the planned coverage.

use serde_json::{Map, Value, json};

use super::{Members, news_type, status, text, time, urgency, uri};
use crate::newsml::lexical;

/// Returns the details of an event; `None` without details.
pub(super) fn details(document: &Map<String, Value>) -> Option<Value> {
    let mut members = Members::default();
    members.set("dates", dates(document));
    let body = document.get("body_event").and_then(Value::as_object);
    let organiser = body.and_then(|body| text(body, "organizer"));
    members.set("organiser", organiser.map(|name| json!({ "name": name })));
    (!members.0.is_empty()).then_some(Value::Object(members.0))
}

/// Returns the dates of an event or a coverage. A day without a time becomes an expected date, because the exact
/// date requires a time.
fn dates(document: &Map<String, Value>) -> Option<Value> {
    let mut members = Members::default();
    for (at, on, time_name, day_name) in [
        ("startDate", "expectedStartDate", "datetime", "date"),
        ("endDate", "expectedEndDate", "enddatetime", "enddate"),
    ] {
        match time(document, time_name) {
            Some(time) => members.set(at, Some(time)),
            None => {
                let day = text(document, day_name);
                members.set(on, day.filter(|day| lexical::is_date(day)));
            }
        }
    }
    (!members.0.is_empty()).then_some(Value::Object(members.0))
}

/// Lists the assignments of a planning item.
pub(super) fn coverage(document: &Map<String, Value>) -> Vec<Value> {
    let assignments = document.get("assignments").and_then(Value::as_object);
    let each = assignments.into_iter().flatten().filter_map(|(_, assignment)| {
        let assignment = assignment.as_object()?;
        let mut members = Members::default();
        members.set("uri", uri(assignment, "uri"));
        members.set("title", text(assignment, "headline").or(text(assignment, "title")));
        members.set("pubStatus", status(assignment));
        members.set("type", news_type(assignment));
        members.set("dates", dates(assignment));
        members.set("edNote", text(assignment, "ednote"));
        members.set("urgency", urgency(assignment));
        members.set("language", text(assignment, "language"));
        members.set("wordCount", assignment.get("wordcount").and_then(Value::as_u64));
        Some(Value::Object(members.0))
    });
    each.collect()
}
