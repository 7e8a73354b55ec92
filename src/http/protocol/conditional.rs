//! Conditional requests: evaluates a client's preconditions against the current representation (RFC 9110
//! §13).
//!
//! Pure functions over headers and validators, called before anything is rendered, so that a 304 or 412 costs
//! no rendering. Ranges are decided in [`crate::http::protocol::range`].

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// 31 December 9999, 23:59:59 UTC: the last second that an HTTP date can express.
const DATE_MAX_UNIX_S: u64 = 253_402_300_799;

/// A strong entity tag, without its quotes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ETag(String);

impl ETag {
    /// Creates a tag of visible ASCII without `"`, at least one character; `None` for any other text.
    pub fn new(opaque: impl Into<String>) -> Option<Self> {
        let opaque = opaque.into();
        if opaque.is_empty() {
            return None;
        }
        let is_legal = opaque.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
        is_legal.then_some(Self(opaque))
    }

    /// Returns the opaque tag without quotes.
    pub fn opaque(&self) -> &str {
        &self.0
    }

    /// Returns the value of the `ETag` field.
    pub fn print(&self) -> HeaderValue {
        HeaderValue::from_str(&format!("\"{}\"", self.0)).expect("visible ASCII is a field value")
    }
}

/// The validators that identify the current state of a representation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validators {
    pub etag: ETag,
    /// Time of the last change in Unix seconds; `None` if unknown.
    pub last_modified: Option<u64>,
}

/// The outcome of the preconditions of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreconditionOutcome {
    /// Answer as if there were no preconditions.
    Proceed,
    /// Answer 304: the client has the current representation.
    NotModified,
    /// Answer 412: the representation is not the one that the client expects.
    Failed,
}

/// One entity tag of a header field.
pub(crate) struct EntityTagRef<'a> {
    /// The characters between the quotes.
    pub(crate) opaque: &'a [u8],
    /// True if the tag has the prefix `W/`.
    pub(crate) weak: bool,
}

/// Result of comparing a list of entity tags with the current one.
enum TagMatch {
    /// The field is absent.
    Absent,
    Matches,
    Differs,
}

/// Evaluates the preconditions of a request for an existing representation.
///
/// A date that is invalid or occurs twice is ignored. A malformed tag list is used up to its first error.
///
/// RFC 9110 §13.2.2.
pub fn evaluate(
    method: &Method,
    headers: &HeaderMap,
    validators: &Validators,
) -> PreconditionOutcome {
    let is_read = *method == Method::GET || *method == Method::HEAD;
    let etag = &validators.etag;
    let modified = validators.last_modified;
    // The fields are evaluated in the order of RFC 9110 §13.2.2: entity tags take precedence over dates.
    match tags_match(headers, header::IF_MATCH, |tag| tag.matches_strongly(etag)) {
        TagMatch::Differs => return PreconditionOutcome::Failed,
        TagMatch::Absent
            if unmodified_since(headers, header::IF_UNMODIFIED_SINCE, modified) == Some(false) =>
        {
            return PreconditionOutcome::Failed;
        }
        TagMatch::Absent | TagMatch::Matches => {}
    }
    match tags_match(headers, header::IF_NONE_MATCH, |tag| tag.matches_weakly(etag)) {
        // The client of a read has the representation; a write with `If-None-Match` must not replace it.
        TagMatch::Matches if is_read => PreconditionOutcome::NotModified,
        TagMatch::Matches => PreconditionOutcome::Failed,
        TagMatch::Absent
            if is_read
                && unmodified_since(headers, header::IF_MODIFIED_SINCE, modified)
                    == Some(true) =>
        {
            PreconditionOutcome::NotModified
        }
        TagMatch::Absent | TagMatch::Differs => PreconditionOutcome::Proceed,
    }
}

/// Returns whether the last change is not later than the date of a field; `None` if the date or the time of the
/// change is missing.
fn unmodified_since(
    headers: &HeaderMap,
    field: HeaderName,
    modified: Option<u64>,
) -> Option<bool> {
    let date = single_date(headers, field)?;
    Some(modified? <= date)
}

/// Returns whether `If-Range` allows a partial response: it is absent, or matches the current state.
///
/// A weak tag never matches. A date matches only when it equals the last change. RFC 9110 §13.1.5.
pub fn if_range_holds(headers: &HeaderMap, validators: &Validators) -> bool {
    let mut values = headers.get_all(header::IF_RANGE).iter();
    // A repeated field is ambiguous: the client gets the full body, which is always correct.
    let (Some(value), None) = (values.next(), values.next()) else {
        return !headers.contains_key(header::IF_RANGE);
    };
    match split_tag(value.as_bytes()) {
        Some((tag, rest)) => {
            rest.trim_ascii().is_empty() && tag.matches_strongly(&validators.etag)
        }
        None => {
            let date = single_date(headers, header::IF_RANGE);
            // The dates must be equal: a range of a different state would corrupt the client's copy.
            date.is_some() && date == validators.last_modified
        }
    }
}

/// Parses an HTTP date in any of its three forms as Unix seconds; `None` when it is invalid or before 1970.
///
/// RFC 9110 §5.6.7.
pub fn parse_date(text: &str) -> Option<u64> {
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

/// Prints Unix seconds as an IMF-fixdate; times after the year 9999 are clamped to its last second.
pub fn print_date(unix_s: u64) -> HeaderValue {
    let time: SystemTime = UNIX_EPOCH + Duration::from_secs(unix_s.min(DATE_MAX_UNIX_S));
    let text = httpdate::fmt_http_date(time);
    HeaderValue::from_str(&text).expect("a date is a field value")
}

/// Parses the date of a field; `None` unless the field occurs exactly once and is a date.
fn single_date(headers: &HeaderMap, field: HeaderName) -> Option<u64> {
    let mut values = headers.get_all(field).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    parse_date(value.to_str().ok()?.trim())
}

impl EntityTagRef<'_> {
    /// Compares strongly (RFC 9110 §8.8.3.2); `etag` is always strong.
    fn matches_strongly(&self, etag: &ETag) -> bool {
        !self.weak && self.matches_weakly(etag)
    }

    /// Compares weakly (RFC 9110 §8.8.3.2).
    fn matches_weakly(&self, etag: &ETag) -> bool {
        self.opaque == etag.0.as_bytes()
    }
}

/// Compares each tag of a list with `matches`; `*` matches any representation.
fn tags_match(
    headers: &HeaderMap,
    field: HeaderName,
    matches: impl Fn(&EntityTagRef<'_>) -> bool,
) -> TagMatch {
    // Several lines of a list field are one list (RFC 9110 §5.3).
    let mut found = TagMatch::Absent;
    for value in headers.get_all(field) {
        if value.as_bytes().trim_ascii() == b"*" || tags(value.as_bytes()).any(|tag| matches(&tag))
        {
            return TagMatch::Matches;
        }
        found = TagMatch::Differs;
    }
    found
}

/// Iterates over the tags of a list up to its first error.
pub(crate) fn tags(mut list: &[u8]) -> impl Iterator<Item = EntityTagRef<'_>> {
    std::iter::from_fn(move || {
        let (tag, rest) = split_tag(list)?;
        list = rest;
        Some(tag)
    })
}

/// Splits the first tag off a list; empty list elements are skipped.
fn split_tag(list: &[u8]) -> Option<(EntityTagRef<'_>, &[u8])> {
    let start = list.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b','))?;
    let list = list.get(start..)?;
    // `W/` is case-sensitive (RFC 9110 §8.8.3).
    let (weak, quoted) = match list.strip_prefix(b"W/") {
        Some(rest) => (true, rest),
        None => (false, list),
    };
    let inner = quoted.strip_prefix(b"\"")?;
    let end = inner.iter().position(|&byte| byte == b'"')?;
    let (opaque, rest) = inner.split_at_checked(end)?;
    Some((EntityTagRef { opaque, weak }, rest.get(1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OLD: &str = "Sat, 21 Nov 2026 05:59:59 GMT";
    const SAME: &str = "Sat, 21 Nov 2026 06:00:00 GMT";
    const NEW: &str = "Sat, 21 Nov 2026 06:00:01 GMT";
    const SAME_UNIX_S: u64 = 1_795_240_800;

    fn validators() -> Validators {
        Validators { etag: ETag::new("abc").expect("legal tag"), last_modified: Some(SAME_UNIX_S) }
    }

    fn map(fields: &[(HeaderName, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            map.append(name.clone(), HeaderValue::from_str(value).expect("legal value"));
        }
        map
    }

    fn check(method: &Method, fields: &[(HeaderName, &str)], expected: PreconditionOutcome) {
        let found = evaluate(method, &map(fields), &validators());
        assert_eq!(found, expected, "{method} {fields:?}");
    }

    #[test]
    fn ok_without_preconditions() {
        check(&Method::GET, &[], PreconditionOutcome::Proceed);
    }

    #[test]
    fn if_none_match_compares_weakly_and_knows_lists() {
        let none = header::IF_NONE_MATCH;
        for value in ["\"abc\"", "W/\"abc\"", "\"x\", \"abc\"", ",,\"x\" ,W/\"abc\"", "*", " * "] {
            check(&Method::GET, &[(none.clone(), value)], PreconditionOutcome::NotModified);
            check(&Method::HEAD, &[(none.clone(), value)], PreconditionOutcome::NotModified);
            check(&Method::PUT, &[(none.clone(), value)], PreconditionOutcome::Failed);
        }
        for value in ["\"abcd\"", "abc", "\"abc", "w/\"abc\"", "\"x\", *", "", "\"a\",\"b,abc\""] {
            check(&Method::GET, &[(none.clone(), value)], PreconditionOutcome::Proceed);
        }
        check(
            &Method::GET,
            &[(none.clone(), "\"x\""), (none, "\"abc\"")],
            PreconditionOutcome::NotModified,
        );
    }

    #[test]
    fn if_match_compares_strongly() {
        let field = header::IF_MATCH;
        for value in ["\"abc\"", "\"x\",\"abc\"", "*"] {
            check(&Method::PUT, &[(field.clone(), value)], PreconditionOutcome::Proceed);
        }
        for value in ["W/\"abc\"", "\"x\"", "", "abc"] {
            check(&Method::GET, &[(field.clone(), value)], PreconditionOutcome::Failed);
        }
    }

    #[test]
    fn dates_compare_with_the_last_change() {
        let (unmodified, modified) = (header::IF_UNMODIFIED_SINCE, header::IF_MODIFIED_SINCE);
        check(&Method::GET, &[(unmodified.clone(), OLD)], PreconditionOutcome::Failed);
        check(&Method::GET, &[(unmodified.clone(), SAME)], PreconditionOutcome::Proceed);
        check(&Method::GET, &[(unmodified, "yesterday")], PreconditionOutcome::Proceed);
        check(&Method::GET, &[(modified.clone(), OLD)], PreconditionOutcome::Proceed);
        check(&Method::GET, &[(modified.clone(), SAME)], PreconditionOutcome::NotModified);
        check(&Method::HEAD, &[(modified.clone(), NEW)], PreconditionOutcome::NotModified);
        check(&Method::PUT, &[(modified.clone(), SAME)], PreconditionOutcome::Proceed);
        check(&Method::GET, &[(modified.clone(), "yesterday")], PreconditionOutcome::Proceed);
        check(
            &Method::GET,
            &[(modified.clone(), SAME), (modified, SAME)],
            PreconditionOutcome::Proceed,
        );
    }

    #[test]
    fn dates_are_no_condition_without_a_last_change() {
        let validators = Validators { last_modified: None, ..validators() };
        for field in [header::IF_UNMODIFIED_SINCE, header::IF_MODIFIED_SINCE] {
            let found = evaluate(&Method::GET, &map(&[(field, OLD)]), &validators);
            assert_eq!(found, PreconditionOutcome::Proceed);
        }
    }

    #[test]
    fn tags_outrank_dates() {
        let (none, modified) = (header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE);
        check(&Method::GET, &[(none, "\"x\""), (modified, SAME)], PreconditionOutcome::Proceed);
        let (some, unmodified) = (header::IF_MATCH, header::IF_UNMODIFIED_SINCE);
        check(&Method::GET, &[(some, "\"abc\""), (unmodified, OLD)], PreconditionOutcome::Proceed);
    }

    #[test]
    fn a_failed_precondition_outranks_not_modified() {
        let fields = [(header::IF_MATCH, "\"x\""), (header::IF_NONE_MATCH, "\"abc\"")];
        check(&Method::GET, &fields, PreconditionOutcome::Failed);
    }

    #[test]
    fn if_range_needs_the_exact_state() {
        let check_range = |values: &[&str], expected: bool| {
            let fields: Vec<_> = values.iter().map(|value| (header::IF_RANGE, *value)).collect();
            assert_eq!(if_range_holds(&map(&fields), &validators()), expected, "{values:?}");
        };
        check_range(&[], true);
        check_range(&["\"abc\""], true);
        check_range(&["W/\"abc\""], false);
        check_range(&["\"x\""], false);
        check_range(&["\"abc\", \"x\""], false);
        check_range(&[SAME], true);
        check_range(&[NEW], false);
        check_range(&["soon"], false);
        check_range(&["\"abc\"", "\"abc\""], false);
    }

    #[test]
    fn the_three_date_forms_mean_the_same() {
        for text in [SAME, "Saturday, 21-Nov-26 06:00:00 GMT", "Sat Nov 21 06:00:00 2026"] {
            assert_eq!(parse_date(text), Some(SAME_UNIX_S), "{text}");
        }
        assert_eq!(parse_date("2026-11-21T06:00:00Z"), None);
        assert_eq!(print_date(SAME_UNIX_S), SAME);
        assert_eq!(print_date(u64::MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
    }

    #[test]
    fn err_a_tag_that_cannot_be_printed() {
        for opaque in ["", "a\"b", "a b", "a\r\n", "ä"] {
            assert_eq!(ETag::new(opaque), None, "{opaque:?}");
        }
        assert_eq!(ETag::new("abc").expect("legal tag").print(), "\"abc\"");
    }

    proptest! {
        #[test]
        fn no_field_value_panics(
            values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 5),
        ) {
            let mut headers = HeaderMap::new();
            let names = [
                header::IF_MATCH,
                header::IF_NONE_MATCH,
                header::IF_MODIFIED_SINCE,
                header::IF_UNMODIFIED_SINCE,
                header::IF_RANGE,
            ];
            for (name, value) in names.into_iter().zip(values) {
                if let Ok(value) = HeaderValue::from_bytes(&value) {
                    headers.append(name, value);
                }
            }
            let absent = headers.is_empty();
            let found = evaluate(&Method::GET, &headers, &validators());
            let holds = if_range_holds(&headers, &validators());
            prop_assert!(!absent || (found == PreconditionOutcome::Proceed && holds));
        }

        #[test]
        fn a_printed_tag_matches_itself(opaque in "[!#-~]{1,40}") {
            let etag = ETag::new(opaque).expect("legal tag");
            let mut headers = HeaderMap::new();
            headers.append(header::IF_NONE_MATCH, etag.print());
            let validators = Validators { etag, last_modified: None };
            let found = evaluate(&Method::GET, &headers, &validators);
            prop_assert_eq!(found, PreconditionOutcome::NotModified);
        }

        #[test]
        fn a_printed_date_reads_as_itself(unix_s in 0..=DATE_MAX_UNIX_S) {
            let text = print_date(unix_s);
            prop_assert_eq!(parse_date(text.to_str().expect("ASCII")), Some(unix_s));
        }
    }
}
