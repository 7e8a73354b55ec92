//! Checks whether texts fit the simple types of the schema. A text that does not fit is written as an extension
//! property, whose value may be any text.

use jiff::civil::Date;
use std::borrow::Cow;

/// Removes the characters that XML 1.0 cannot represent: C0 controls other than tab and line ends, U+FFFE and
/// U+FFFF.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_xml) {
        text.into()
    } else {
        text.chars().filter(|c| is_xml(*c)).collect()
    }
}

/// Returns whether XML 1.0 can represent the character.
pub(super) fn is_xml(c: char) -> bool {
    !matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

/// Converts a text to the schema's one-line type: tabs and line ends become spaces.
pub(super) fn one_line(text: &str) -> Cow<'_, str> {
    if text.contains(['\t', '\n', '\r']) {
        text.replace(['\t', '\n', '\r'], " ").into()
    } else {
        text.into()
    }
}

/// Returns whether the text can follow the colon of a QCode.
pub(super) fn is_code(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| is_xml(c) && !c.is_whitespace())
}

/// Returns whether the text is an `xs:date`, such as `2026-03-02`.
pub(crate) fn is_date(text: &str) -> bool {
    // The library also parses other notations, and a year 0, which XML Schema 1.0 does not have.
    let shape = text.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
    shape.eq(*b"0000-00-00") && !text.starts_with("0000") && text.parse::<Date>().is_ok()
}

/// Returns whether the text is an `xs:dateTime` with an offset.
///
/// Stricter than RFC 3339: `T` and `Z` are upper case, seconds are below 60 and offsets at most 14:00.
pub(crate) fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once('T') else { return false };
    let Some(offset) = time.find(['Z', '+', '-']) else { return false };
    let (time, offset) = time.split_at(offset);
    let (time, fraction) = time.split_once('.').map_or((time, "0"), |(time, f)| (time, f));
    let digits = !fraction.is_empty() && fraction.len() <= 9;
    is_date(date)
        && is_clock(time, &[24, 60, 60])
        && digits
        && is_digits(fraction)
        && (offset == "Z"
            || offset == "+14:00"
            || offset == "-14:00"
            || offset.get(1..).is_some_and(|offset| is_clock(offset, &[14, 60])))
}

/// Returns whether the text is two-digit numbers separated by colons, each below its limit.
fn is_clock(text: &str, limits: &[u8]) -> bool {
    let mut parts = text.split(':');
    let fits = limits.iter().all(|limit| {
        parts.next().is_some_and(|part| {
            part.len() == 2
                && is_digits(part)
                && part.parse::<u8>().is_ok_and(|number| number < *limit)
        })
    });
    fits && parts.next().is_none()
}

/// Returns whether the text is a language tag as defined by `xs:language`.
pub(super) fn is_language(text: &str) -> bool {
    text.split('-').enumerate().all(|(index, part)| {
        let mut bytes = part.bytes();
        (1..=8).contains(&part.len())
            && bytes.all(|byte| byte.is_ascii_alphabetic() || index > 0 && byte.is_ascii_digit())
    })
}

/// Returns whether the text is a positive integer in canonical form.
pub(super) fn is_positive(text: &str) -> bool {
    // Any 18 digits fit a signed integer of 64 bits, the widest that can be expected of readers.
    (1..=18).contains(&text.len()) && !text.starts_with('0') && is_digits(text)
}

/// Returns whether the text is an `xs:decimal` in canonical form, without an exponent.
pub(super) fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    !whole.is_empty() && is_digits(whole) && !fraction.is_empty() && is_digits(fraction)
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether the text is a plain absolute URI, which every parser of `xs:anyURI` accepts.
///
/// ASCII only, percent signs before two hexadecimal digits, no user name, and a numeric port.
pub(crate) fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let valid_scheme = scheme.bytes().enumerate().all(|(index, byte)| {
        byte.is_ascii_alphabetic()
            || index > 0 && (byte.is_ascii_digit() || b"+-.".contains(&byte))
    });
    let (path, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let valid_authority = match path.strip_prefix("//") {
        Some(rest) => {
            let authority = rest.split(['/', '?']).next().unwrap_or_default();
            // A missing port passes the checks like a valid one.
            let (host, port) = authority.split_once(':').unwrap_or((authority, "80"));
            let valid_port = (1..=5).contains(&port.len()) && is_digits(port);
            !host.is_empty() && is_plain(host, b"") && valid_port
        }
        None => !path.is_empty(),
    };
    !scheme.is_empty()
        && valid_scheme
        && valid_authority
        && is_plain(path, b":@/?")
        && is_plain(fragment, b":@/?")
}

/// Returns whether a part of a URI has only the characters in `more` and characters that every part may have.
fn is_plain(part: &str, more: &[u8]) -> bool {
    let bytes = part.as_bytes();
    for (index, byte) in bytes.iter().enumerate() {
        let fits = if *byte == b'%' {
            let digits = bytes.get(index + 1..index + 3);
            digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        } else {
            byte.is_ascii_alphanumeric()
                || b"-._~!$&'()*+,;=".contains(byte)
                || more.contains(byte)
        };
        if !fits {
            return false;
        }
    }
    true
}
