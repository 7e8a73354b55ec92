//! Entity tags of compressed responses: the plain tag with a suffix for the coding.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderValue, header};
use strum::IntoEnumIterator;

use super::{accept_encoding::AcceptedCodings, encode::ContentCoding};
use crate::http::protocol::conditional::{EntityTagRef, tags};

/// Adds the plain tag for each tag of an accepted coding, so that a handler, which knows only plain tags,
/// recognizes it.
pub(super) fn with_plain_tags<'a>(
    headers: &'a HeaderMap,
    accepted: &AcceptedCodings,
) -> Cow<'a, HeaderMap> {
    let mut changed = Cow::Borrowed(headers);
    // `If-Match` compares strongly, so a weak tag never matches it (RFC 9110 §13.1.1). `If-Range`
    // stays as it is, because ranges refer to the plain representation.
    for (field, takes_weak) in [(header::IF_NONE_MATCH, true), (header::IF_MATCH, false)] {
        for line in headers.get_all(&field) {
            for tag in tags(line.as_bytes()).filter(|tag| takes_weak || !tag.weak) {
                if let Some(plain) = plain_tag(&tag, accepted) {
                    changed.to_mut().append(&field, plain);
                }
            }
        }
    }
    changed
}

/// Returns the plain tag for a tag of an accepted coding; `None` for any other tag.
fn plain_tag(tag: &EntityTagRef<'_>, accepted: &AcceptedCodings) -> Option<HeaderValue> {
    let codings = ContentCoding::iter().filter(|coding| accepted.accepts(*coding));
    let mut plain =
        codings.filter_map(|coding| tag.opaque.strip_suffix(coding.suffix().as_bytes()));
    let text = std::str::from_utf8(plain.next()?).ok()?;
    HeaderValue::from_str(&format!("\"{text}\"")).ok()
}

/// Replaces the plain entity tag by the tag of the coding.
pub(super) fn set_coded_tag(headers: &mut HeaderMap, coding: ContentCoding) {
    if let Some(tag) = headers.get(header::ETAG).and_then(|tag| coded_tag(tag, coding)) {
        headers.insert(header::ETAG, tag);
    }
}

fn coded_tag(tag: &HeaderValue, coding: ContentCoding) -> Option<HeaderValue> {
    let opaque = tag.to_str().ok()?.strip_suffix('"')?;
    HeaderValue::from_str(&format!("{opaque}{}\"", coding.suffix())).ok()
}

/// Sets the tag of a 304 to the one that the client has, from the lines `client_tags` of its
/// `If-None-Match`.
pub(super) fn restore_client_tag(
    headers: &mut HeaderMap,
    client_tags: &[HeaderValue],
    accepted: &AcceptedCodings,
) {
    let Some(plain) = headers.get(header::ETAG).cloned() else { return };
    // The preferred coding comes first, because a cache may hold responses in several codings.
    let others = ContentCoding::iter().filter(|coding| accepted.accepts(*coding));
    for coding in accepted.preferred().into_iter().chain(others) {
        if let Some(tag) = coded_tag(&plain, coding)
            && lists_tag(client_tags, &tag)
        {
            headers.insert(header::ETAG, tag);
            return;
        }
    }
}

/// Returns whether one of the `lines` of a header names `tag`.
fn lists_tag(lines: &[HeaderValue], tag: &HeaderValue) -> bool {
    let Some(tag) = tags(tag.as_bytes()).next() else { return false };
    lines.iter().flat_map(|line| tags(line.as_bytes())).any(|listed| listed.opaque == tag.opaque)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(header::HeaderName, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, HeaderValue::from_static(value));
        }
        headers
    }

    fn accepting(text: &'static str) -> AcceptedCodings {
        AcceptedCodings::from_headers(&headers(&[(header::ACCEPT_ENCODING, text)]))
    }

    #[test]
    fn the_plain_tag_stands_beside_that_of_an_accepted_coding() {
        let check = |field: header::HeaderName, given, accepted, expected: &[&str]| {
            let given = headers(&[(field.clone(), given)]);
            let found = with_plain_tags(&given, &accepting(accepted));
            let added: Vec<_> = found.get_all(field).iter().skip(1).collect();
            assert_eq!(added, expected, "{given:?} {accepted}");
        };
        let none = header::IF_NONE_MATCH;
        check(none.clone(), "\"a+br\", W/\"b+gzip\", \"c\"", "gzip, br", &["\"a\"", "\"b\""]);
        check(none.clone(), "\"a+br\", \"b+gzip\"", "gzip", &["\"b\""]);
        check(none.clone(), "\"a+br\"", "identity", &[]);
        check(none, "*", "gzip", &[]);
        check(header::IF_MATCH, "\"a+br\", W/\"b+br\"", "br", &["\"a\""]);
        check(header::IF_RANGE, "\"a+br\"", "br", &[]);
        let untouched = headers(&[(header::IF_NONE_MATCH, "\"a\"")]);
        assert!(matches!(with_plain_tags(&untouched, &accepting("br")), Cow::Borrowed(_)));
    }

    #[test]
    fn a_304_names_the_tag_that_the_client_has() {
        let check = |client_tags: &'static str, accepted, expected: &str| {
            let mut response = headers(&[(header::ETAG, "\"a\"")]);
            let client_tags = [HeaderValue::from_static(client_tags)];
            restore_client_tag(&mut response, &client_tags, &accepting(accepted));
            assert_eq!(response[header::ETAG], expected, "{client_tags:?} {accepted}");
        };
        check("\"a\"", "br, gzip", "\"a\"");
        check("\"a+gzip\"", "br, gzip", "\"a+gzip\"");
        check("W/\"a+br\"", "br", "\"a+br\"");
        check("\"a\", \"a+gzip\", \"a+br\"", "br, gzip", "\"a+br\"");
        check("\"a+br\", \"a+gzip\"", "gzip", "\"a+gzip\"");
        check("*", "br", "\"a\"");
        let mut without = HeaderMap::new();
        restore_client_tag(&mut without, &[], &accepting("br"));
        assert!(without.is_empty());
    }

    #[test]
    fn a_coded_tag_is_strong_and_ends_in_its_coding() {
        let mut response = headers(&[(header::ETAG, "\"a\"")]);
        set_coded_tag(&mut response, ContentCoding::Gzip);
        assert_eq!(response[header::ETAG], "\"a+gzip\"");
    }
}
