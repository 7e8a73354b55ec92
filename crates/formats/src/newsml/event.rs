//! Writes `concept`: an event of the calendar.

use super::item::{self, ItemSource};
use super::xml::XmlWriter;
use super::{lexical, text};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The date properties that `eventDetails` uses, if the event has a start.
pub(super) struct EventDates {
    start: &'static str,
    end: Option<&'static str>,
}

/// Writes the event as a concept.
pub(super) fn write(xml: &mut XmlWriter, item: &ItemSource<'_>) {
    xml.open("concept", []);
    let uri = text(item.members, "uri").filter(|uri| lexical::is_uri(uri));
    xml.empty("conceptId", [("uri", uri)]);
    xml.empty("type", [("qcode", Some("cpnat:event"))]);
    // The schema requires a name, even an empty one.
    let name = text(item.members, "headline").or(text(item.members, "title"));
    xml.leaf("name", [], &lexical::one_line(name.unwrap_or_default()));
    xml.leaf_if_any("definition", [], text(item.members, "description_text"));
    if let Some(placed) = event_dates(item.members) {
        write_details(xml, item.members, &placed);
    }
    xml.close("concept");
}

/// Selects the properties with the start and the end: the times, else the days.
pub(super) fn event_dates(members: &Map<String, Value>) -> Option<EventDates> {
    // Dates without a start are not valid in the schema.
    let start = first_valid(members, "datetime", "date")?;
    let end = first_valid(members, "enddatetime", "enddate");
    Some(EventDates { start, end })
}

/// Returns the name of the time if it is valid, else the name of the day if the day is valid.
fn first_valid(
    members: &Map<String, Value>,
    time: &'static str,
    day: &'static str,
) -> Option<&'static str> {
    if text(members, time).is_some_and(lexical::is_date_time) {
        Some(time)
    } else if text(members, day).is_some_and(lexical::is_date) {
        Some(day)
    } else {
        None
    }
}

/// Adds the properties that have no place in the concept as extension properties.
pub(super) fn take(item: &mut ItemSource<'_>) {
    let details = event_dates(item.members);
    for (time, written) in [
        ("datetime", details.as_ref().map(|details| details.start)),
        ("enddatetime", details.as_ref().and_then(|details| details.end)),
    ] {
        if let Some(value) = item.members.get(time).filter(|_| written != Some(time)) {
            item.about_content.add(time, value);
        }
    }
    let Some(value) = item.members.get("body_event") else { return };
    // Without dates there is no `eventDetails` that could hold the location.
    let Some(event) = value.as_object().filter(|_| details.is_some()) else {
        item.about_content.add("body_event", value);
        return;
    };
    item.about_content.add_unplaced("body_event/", event, |name, value| {
        let exact = value.as_str().is_some_and(|text| lexical::one_line(text) == text);
        exact && DETAIL_PROPERTIES.contains(&name)
    });
}

/// The members of `body_event` that are written in the location and the organiser.
const DETAIL_PROPERTIES: [&str; 5] = ["address", "arena", "city", "country", "organizer"];

fn write_details(xml: &mut XmlWriter, members: &Map<String, Value>, placed: &EventDates) {
    let event = members.get("body_event");
    xml.open("eventDetails", []);
    xml.open("dates", []);
    xml.leaf("start", [], text(members, placed.start).unwrap_or_default());
    xml.leaf_if_any("end", [], placed.end.and_then(|end| text(members, end)));
    xml.close("dates");
    let address = line(event, "address");
    let city = line(event, "city");
    let country = line(event, "country");
    let arena = line(event, "arena");
    let addressed = [&address, &city, &country].iter().any(|part| part.is_some());
    if arena.is_some() || addressed {
        xml.open("location", []);
        xml.leaf_if_any("name", [], arena.as_deref());
        if addressed {
            xml.open("POIDetails", []);
            xml.open("address", []);
            xml.leaf_if_any("line", [], address.as_deref());
            item::write_named(xml, ("locality", None), city.as_deref());
            item::write_named(xml, ("country", None), country.as_deref());
            xml.close("address");
            xml.close("POIDetails");
        }
        xml.close("location");
    }
    item::write_named(xml, ("organiser", None), line(event, "organizer").as_deref());
    xml.close("eventDetails");
}

fn line<'a>(event: Option<&'a Value>, name: &str) -> Option<Cow<'a, str>> {
    event?.get(name)?.as_str().map(lexical::one_line)
}
