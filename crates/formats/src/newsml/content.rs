//! Writes `contentSet`: the bodies of a text and the renditions of a picture.

use super::extension::ExtensionProperties;
use super::item::{ItemKind, ItemSource};
use super::xml::XmlWriter;
use super::{lexical, text, xhtml};
use serde_json::{Map, Value};

/// The parts of a news item that have a place in `contentSet`.
#[derive(Debug, Default)]
pub(super) struct ContentSet<'a> {
    /// HTML bodies with their `contenttypevariant`.
    html: Vec<(Option<&'static str>, &'a str)>,
    text: Option<&'a str>,
    sports: Option<&'a str>,
    charcount: Option<String>,
    wordcount: Option<String>,
    renditions: Vec<(&'a str, &'a Map<String, Value>)>,
}

/// Extracts the content of a news item; parts without a place become extension properties.
pub(super) fn take<'a>(item: &mut ItemSource<'a>) -> ContentSet<'a> {
    let mut bodies = ContentSet::default();
    // Other items have no `contentSet`; their bodies are extension properties already.
    if item.kind != ItemKind::News {
        return bodies;
    }
    for (name, variant) in [("body_html5", None), ("body_richhtml5", Some("richhtml5"))] {
        bodies.html.extend(item.text(name).map(|html| (variant, html)));
    }
    bodies.text = item.text("body_text");
    bodies.sports = item.text("body_sportsml");
    // The counts are attributes of `inlineXML`, so they need an HTML body.
    let counted = !bodies.html.is_empty();
    bodies.charcount = take_count(item, "charcount", counted);
    bodies.wordcount = take_count(item, "wordcount", counted);
    if let Some(value) = item.members.get("renditions") {
        let renditions = value.as_object().and_then(|renditions| {
            renditions
                .iter()
                .map(|(key, value)| Some((key.as_str(), value.as_object()?)))
                .collect()
        });
        match renditions {
            Some(renditions) => bodies.renditions = renditions,
            None => item.about_content.add("renditions", value),
        }
    }
    bodies
}

/// Extracts a count of the body. If it is not `counted` or not a number, it becomes an extension property.
fn take_count<'a>(item: &mut ItemSource<'a>, name: &'a str, counted: bool) -> Option<String> {
    let value = item.members.get(name)?;
    let count = value.as_u64().filter(|_| counted).map(|count| count.to_string());
    if count.is_none() {
        item.about_content.add(name, value);
    }
    count
}

/// Writes the content set, or nothing if there is no content.
pub(super) fn write(xml: &mut XmlWriter, item: &ItemSource<'_>, bodies: &ContentSet<'_>) {
    let plain = bodies.text.or(bodies.sports);
    if bodies.html.is_empty() && plain.is_none() && bodies.renditions.is_empty() {
        return;
    }
    let headline = item.members.get("headline").and_then(Value::as_str).unwrap_or_default();
    xml.open("contentSet", []);
    for (index, (variant, html)) in bodies.html.iter().enumerate() {
        // The document has the counts of one body. Repeating them would claim them for both bodies.
        let is_counted = index == 0;
        let attributes = [
            ("contenttype", Some("application/xhtml+xml")),
            ("contenttypevariant", *variant),
            ("charcount", bodies.charcount.as_deref().filter(|_| is_counted)),
            ("wordcount", bodies.wordcount.as_deref().filter(|_| is_counted)),
        ];
        xml.open("inlineXML", attributes);
        // XHTML requires a title, even an empty one.
        xhtml::write(xml, &lexical::one_line(headline), html);
        xml.close("inlineXML");
    }
    xml.leaf_if_any("inlineData", [("contenttype", Some("text/plain"))], bodies.text);
    let kind = ("contenttype", Some("application/xml"));
    let variant = ("contenttypevariant", Some("SportsML"));
    xml.leaf_if_any("inlineData", [kind, variant], bodies.sports);
    for (key, rendition) in &bodies.renditions {
        write_rendition(xml, key, rendition);
    }
    xml.close("contentSet");
}

fn write_rendition(xml: &mut XmlWriter, key: &str, rendition: &Map<String, Value>) {
    let href = text(rendition, "href").filter(|href| lexical::is_uri(href));
    let size = integer(rendition, "sizeinbytes");
    let width = integer(rendition, "width");
    let height = integer(rendition, "height");
    let duration = rendition.get("duration").filter(|duration| duration.is_number());
    let duration = duration.map(Value::to_string);
    let mimetype = text(rendition, "mimetype");
    let video = mimetype.is_some_and(|mimetype| mimetype.starts_with("video/"));
    // The attribute is for video; an audio rendition keeps its rate as an extension property.
    let bitrate = text(rendition, "bitrate");
    let bitrate = bitrate.filter(|bitrate| video && lexical::is_positive(bitrate));
    let unit = unit(text(rendition, "unit"));
    xml.open(
        "remoteContent",
        [
            ("rendition", class(text(rendition, "variant"), text(rendition, "usage"))),
            ("href", href),
            ("contenttype", mimetype),
            ("title", text(rendition, "title")),
            ("size", size.as_deref()),
            ("width", width.as_deref()),
            ("widthunit", width.as_ref().map(|_| unit)),
            ("height", height.as_deref()),
            ("heightunit", height.as_ref().map(|_| unit)),
            ("duration", duration.as_deref()),
            ("durationunit", duration.as_ref().map(|_| "timeunit:seconds")),
            ("videoavgbitrate", bitrate),
        ],
    );
    xml.leaf("altId", [("type", Some("tt:renditionid"))], key);
    let mut rest = ExtensionProperties::default();
    rest.add_unplaced("", rendition, |name, value| match name {
        "href" => href.is_some(),
        "mimetype" | "title" => value.is_string(),
        "sizeinbytes" => size.is_some(),
        "width" => width.is_some(),
        "height" => height.is_some(),
        "duration" => duration.is_some(),
        "bitrate" => bitrate.is_some(),
        _ => false,
    });
    rest.write(xml, "remoteContentExtProperty");
    xml.close("remoteContent");
}

fn integer(rendition: &Map<String, Value>, name: &str) -> Option<String> {
    let number = rendition.get(name)?.as_u64()?;
    Some(number.to_string())
}

/// Returns the standard's name of a rendition; only plain renditions have such a name.
fn class(variant: Option<&str>, usage: Option<&str>) -> Option<&'static str> {
    match (variant?, usage?) {
        ("Normal", "Hires") => Some("rnd:highRes"),
        ("Normal", "Preview") => Some("rnd:preview"),
        ("Normal", "Thumbnail") => Some("rnd:thumbnail"),
        _ => None,
    }
}

/// Returns the unit of width and height: pixels, unless the document says millimetres.
fn unit(unit: Option<&str>) -> &'static str {
    match unit {
        Some(unit) if unit.eq_ignore_ascii_case("mm") => "tt:mm",
        Some(_) | None => "dimensionunit:pixels",
    }
}
