//! Converts the texts of a document and the renditions of its picture.

use metadata::RightsMetadata;
use serde_json::{Map, Value, json};

use super::{Members, text};

/// Writes headlines, descriptions, bodies and renditions.
pub(super) fn write(
    members: &mut Members,
    document: &Map<String, Value>,
    rights: Option<&RightsMetadata>,
) {
    let headline = text(document, "headline").map(|headline| json!({ "value": headline }));
    members.list("headlines", headline.into_iter().collect());
    members.set("title", text(document, "title"));
    members.set("slugline", text(document, "slugline").or(text(document, "slug")));
    members.set("by", byline(document));
    members.set("located", text(document, "located"));
    members.list("descriptions", descriptions(document, rights));
    members.list("bodies", bodies(document));
    let renditions = document.get("renditions").and_then(Value::as_object).into_iter().flatten();
    let renditions =
        renditions.filter_map(|(key, value)| Some(rendition(key, value.as_object()?)));
    members.list("renditions", renditions.collect());
}

/// Returns the byline, or else the names in `bylines`.
fn byline(document: &Map<String, Value>) -> Option<String> {
    if let Some(byline) = text(document, "byline") {
        return Some(byline.to_owned());
    }
    let names = super::objects(document, "bylines").filter_map(|entry| {
        let names = [text(entry, "firstname"), text(entry, "lastname")].into_iter().flatten();
        let name = names.collect::<Vec<_>>().join(" ");
        let name = text(entry, "byline").map_or(name, str::to_owned);
        (!name.is_empty()).then_some(name)
    });
    let names = names.collect::<Vec<_>>().join(", ");
    (!names.is_empty()).then_some(names)
}

fn descriptions(document: &Map<String, Value>, rights: Option<&RightsMetadata>) -> Vec<Value> {
    let is_picture = matches!(text(document, "type"), Some("picture" | "graphic" | "video"));
    let role = if is_picture { "caption" } else { "summary" };
    let alt_text = rights.and_then(|rights| rights.text("altTextAccessibility"));
    let extended = rights.and_then(|rights| rights.text("extDescrAccessibility"));
    let all = [
        (role, text(document, "description_text")),
        ("usage", text(document, "description_usage")),
        ("altText", alt_text),
        ("extendedDescription", extended),
    ];
    let each = all.into_iter().filter_map(|(role, value)| {
        Some(json!({ "role": role, "contentType": "text/plain", "value": value? }))
    });
    each.collect()
}

fn bodies(document: &Map<String, Value>) -> Vec<Value> {
    let mut bodies = Vec::new();
    for (name, role, content_type) in [
        ("body_html5", "html5", "text/html"),
        ("body_richhtml5", "richhtml5", "text/html"),
        ("body_text", "text", "text/plain"),
        ("body_sportsml", "sportsml", "application/xml"),
    ] {
        let Some(body) = text(document, name) else { continue };
        let mut members = Members::default();
        members.set("role", Some(role));
        members.set("contentType", Some(content_type));
        // The document has the counts of one body. Repeating them would claim them for all bodies.
        if bodies.is_empty() {
            members.set("charCount", document.get("charcount").and_then(Value::as_u64));
            members.set("wordCount", document.get("wordcount").and_then(Value::as_u64));
        }
        members.set("value", Some(body));
        bodies.push(Value::Object(members.0));
    }
    bodies
}

/// Converts a rendition, whose name in the document is `key`.
fn rendition(key: &str, rendition: &Map<String, Value>) -> Value {
    // Printed graphics have their size in millimetres, for which the standard has no place.
    let is_in_pixels = text(rendition, "unit").is_none_or(|unit| unit.eq_ignore_ascii_case("px"));
    let variant = text(rendition, "variant");
    let usage = text(rendition, "usage");
    let mut members = Members::default();
    members.set("name", Some(name(variant, usage).unwrap_or_else(|| key.to_owned())));
    members.set("href", text(rendition, "href"));
    members.set("contentType", text(rendition, "mimetype"));
    members.set("title", text(rendition, "title"));
    members.set("width", integer(rendition, "width").filter(|_| is_in_pixels));
    members.set("height", integer(rendition, "height").filter(|_| is_in_pixels));
    members.set("sizeInBytes", integer(rendition, "sizeinbytes"));
    let duration = rendition.get("duration").filter(|duration| duration.is_number());
    members.set("duration", duration.cloned());
    members.set("format", text(rendition, "format"));
    // The standard requires the unit after the number.
    let bitrate = text(rendition, "bitrate").map(|bitrate| format!("{bitrate} bps"));
    members.set("bitrate", bitrate);
    Value::Object(members.0)
}

fn integer(rendition: &Map<String, Value>, name: &str) -> Option<u64> {
    rendition.get(name).and_then(Value::as_u64)
}

/// Returns the name of a rendition: the standard's name for a plain rendition, else variant and usage.
fn name(variant: Option<&str>, usage: Option<&str>) -> Option<String> {
    Some(match (variant?, usage?) {
        ("Normal", "Hires") => "highRes".to_owned(),
        ("Normal", "Preview") => "preview".to_owned(),
        ("Normal", "Thumbnail") => "thumbnail".to_owned(),
        (variant, usage) => format!("{variant}{usage}"),
    })
}
