//! Converts the values of properties between JSON and XMP.
//!
//! A text in several languages, which XMP calls a language alternative, is a JSON object with language tags as names.
//! It always has the tag `x-default`, for readers of any other language.

use serde_json::{Map, Value};

use super::member::{NumberKind, ValueKind};
use crate::{LIST_ENTRIES_MAX, TEXT_BYTES_MAX, text};

/// The language tag of the default text of a language alternative.
pub(crate) const X_DEFAULT: &str = "x-default";
/// Maximum number of bytes of a language tag; RFC 5646 §4.4.1 asks for 35.
const LANGUAGE_BYTES_MAX: usize = 64;
/// The schemes of addresses that readers may follow.
const WEB_SCHEMES: [&str; 2] = ["http", "https"];
/// The schemes of addresses that contain a script or a document, which a browser would run or show.
const SCRIPT_SCHEMES: [&str; 3] = ["data", "javascript", "vbscript"];
/// Maximum magnitude of a number; more than enough, since the largest ones, regions in pixels, have five digits.
const NUMBER_MAX: f64 = 1e9;
/// Parts of a minute in an XMP coordinate, as six decimals; one part is two millimetres.
const MINUTE_PARTS: f64 = 1e6;

/// Returns the text of a value without its details: the default text of a language alternative, or the name in a
/// copyright owner; empty for other values.
pub(crate) fn default_text(value: &Value) -> &str {
    match value {
        Value::String(text) => text,
        Value::Object(members) => [X_DEFAULT, "copyrightOwnerName"]
            .iter()
            .find_map(|name| members.get(*name)?.as_str())
            .unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => "",
    }
}

/// Returns the text of a value; the texts of a list are joined by commas.
pub(crate) fn joined_text(value: &Value) -> String {
    let Some(entries) = value.as_array() else {
        return default_text(value).to_owned();
    };
    let texts = entries.iter().map(default_text).filter(|text| !text.is_empty());
    texts.collect::<Vec<_>>().join(", ")
}

/// Builds a language alternative from texts with their language tags; `None` without a valid text.
///
/// The text for `x-default` comes first. It is the first text if the input has no default.
pub(crate) fn language_alternative<'a>(
    texts: impl Iterator<Item = (&'a str, &'a str)>,
) -> Option<Value> {
    let mut found: Vec<(&str, String)> = Vec::new();
    // One less than a list may have, because a default may be added.
    for (language, text) in texts.take(LIST_ENTRIES_MAX - 1) {
        let is_known = found.iter().any(|(known, _)| known.eq_ignore_ascii_case(language));
        let text = clean(text);
        if is_language(language) && !text.is_empty() && !is_known {
            found.push((language, text));
        }
    }
    let stated_default = found.iter().find(|(language, _)| is_x_default(language));
    let (_, default) = stated_default.or(found.first())?;
    let mut texts = Map::from_iter([(X_DEFAULT.to_owned(), Value::from(default.as_str()))]);
    for (language, text) in &found {
        if !is_x_default(language) {
            texts.insert((*language).to_owned(), Value::from(text.as_str()));
        }
    }
    Some(Value::Object(texts))
}

/// Returns whether a tag is that of the default text; tags ignore case (RFC 5646 §2.1.1).
pub(crate) fn is_x_default(language: &str) -> bool {
    language.eq_ignore_ascii_case(X_DEFAULT)
}

/// Returns whether a text has the form of a language tag.
pub(super) fn is_language(tag: &str) -> bool {
    tag.len() <= LANGUAGE_BYTES_MAX && tag.split('-').all(is_subtag)
}

fn is_subtag(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Removes control characters and surrounding white space, and cuts a text that is too long.
pub(super) fn clean(text: &str) -> String {
    text::clean(text::cut(text, TEXT_BYTES_MAX))
}

/// Returns whether a clean text of type `kind` may reach readers (contract security-8).
///
/// Readers follow an address, so its scheme must be `http` or `https`. Identifiers and terms of vocabularies may have
/// any scheme except those of scripts. A text without a scheme is safe.
pub(super) fn is_safe(kind: ValueKind, text: &str) -> bool {
    let Some(scheme) = scheme_of(text) else { return true };
    match kind {
        ValueKind::Url => WEB_SCHEMES.contains(&scheme.as_str()),
        ValueKind::Uri | ValueKind::Vocabulary(_) => !SCRIPT_SCHEMES.contains(&scheme.as_str()),
        ValueKind::Text
        | ValueKind::DateTime
        | ValueKind::AltLang
        | ValueKind::Number(_)
        | ValueKind::Structure(_) => true,
    }
}

/// Returns the scheme of a URI in lower case (RFC 3986 §3.1); `None` for a text without one.
fn scheme_of(text: &str) -> Option<String> {
    let (before, _) = text.split_once(':')?;
    // Browsers ignore tabs and line feeds in an address.
    let scheme: String = before.chars().filter(|c| !c.is_control()).collect();
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_scheme.then(|| scheme.to_ascii_lowercase())
}

/// Parses the text of a simple value in XMP; `None` if it is empty, unsafe or not of type `kind`.
pub(crate) fn parse_xmp(kind: ValueKind, text: &str) -> Option<Value> {
    let text = clean(text);
    if text.is_empty() || !is_safe(kind, &text) {
        return None;
    }
    match kind {
        ValueKind::Text | ValueKind::Uri | ValueKind::Url | ValueKind::DateTime => {
            Some(Value::from(text))
        }
        ValueKind::Vocabulary(terms) => terms.normalize(&text).map(Value::from),
        ValueKind::Number(kind) => json_number(kind, parse_number(kind, &text)?),
        ValueKind::AltLang | ValueKind::Structure(_) => None,
    }
}

/// Converts a number to JSON; `None` if it is out of the range of its type.
pub(super) fn json_number(kind: NumberKind, number: f64) -> Option<Value> {
    // No range contains NaN.
    let is_valid = match kind {
        NumberKind::Integer => (0.0..=NUMBER_MAX).contains(&number) && number.fract() == 0.0,
        NumberKind::Decimal => (-NUMBER_MAX..=NUMBER_MAX).contains(&number),
        NumberKind::Latitude => (-90.0..=90.0).contains(&number),
        NumberKind::Longitude => (-180.0..=180.0).contains(&number),
        NumberKind::Altitude => (0.0..=NUMBER_MAX).contains(&number),
    };
    if is_valid && kind == NumberKind::Integer {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number from 0 to a billion"
        )]
        return Some(Value::from(number as u64));
    }
    is_valid.then(|| Value::from(number))
}

/// Parses a number in the XMP notation of its type.
fn parse_number(kind: NumberKind, text: &str) -> Option<f64> {
    match kind {
        NumberKind::Integer | NumberKind::Decimal => text.parse().ok(),
        NumberKind::Latitude | NumberKind::Longitude => parse_degrees(text),
        NumberKind::Altitude => parse_fraction(text),
    }
}

/// Prints a number in the XMP notation of its type.
pub(crate) fn print_number(kind: NumberKind, value: &Value) -> String {
    let number = value.as_f64().unwrap_or_default();
    match kind {
        NumberKind::Latitude => print_degrees(number, 'N', 'S'),
        NumberKind::Longitude => print_degrees(number, 'E', 'W'),
        NumberKind::Altitude => print_fraction(number),
        NumberKind::Integer | NumberKind::Decimal => number.to_string(),
    }
}

/// Parses an XMP coordinate in degrees, minutes and seconds, such as `59,19.5N` or `59,19,30N`.
fn parse_degrees(text: &str) -> Option<f64> {
    // The hemisphere is the last letter; without one the sign of the coordinate is unknown.
    let (number, sign) = match text.char_indices().last()? {
        (end, 'N' | 'E') => (&text[..end], 1.0),
        (end, 'S' | 'W') => (&text[..end], -1.0),
        _ => return None,
    };
    let parts: Vec<f64> =
        number.split(',').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    // `f64` also parses `inf`, `NaN` and negative numbers, none of which has a meaning here.
    if parts.len() > 3 || parts.iter().any(|part| !part.is_finite() || *part < 0.0) {
        return None;
    }
    Some(sign * parts.iter().zip([1.0, 60.0, 3600.0]).map(|(part, unit)| part / unit).sum::<f64>())
}

/// Prints a coordinate in degrees and minutes, with the letter of its sign.
fn print_degrees(degrees: f64, positive: char, negative: char) -> String {
    let hemisphere = if degrees < 0.0 { negative } else { positive };
    // Rounded before the split, so that 59.9999999 minutes become the next degree.
    let minutes = (degrees.abs() * 60.0 * MINUTE_PARTS).round() / MINUTE_PARTS;
    let whole = (minutes / 60.0).floor();
    let rest = minutes % 60.0;
    let rest = format!("{rest:.6}");
    format!("{whole},{}{hemisphere}", rest.trim_end_matches('0').trim_end_matches('.'))
}

/// Parses a number or a fraction such as `480/1`.
fn parse_fraction(text: &str) -> Option<f64> {
    let Some((numerator, denominator)) = text.split_once('/') else {
        return text.parse().ok();
    };
    let numerator: f64 = numerator.parse().ok()?;
    let denominator: f64 = denominator.parse().ok()?;
    // A zero denominator gives an infinite number, which no type accepts.
    Some(numerator / denominator)
}

/// Prints a number as a fraction, in whole millimetres unless it is a whole number.
fn print_fraction(number: f64) -> String {
    if number.fract() == 0.0 {
        format!("{number}/1")
    } else {
        format!("{:.0}/1000", number * 1000.0)
    }
}

/// Returns the size of a value: the bytes of its names and texts, and eight for any other value.
pub(super) fn size_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(entries) => entries.iter().map(size_bytes).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() + size_bytes(value)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => size_of::<f64>(),
    }
}
