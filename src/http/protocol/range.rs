//! Range requests: decides which bytes of a representation a client gets, and frames multiple ranges (RFC
//! 9110 §14).
//!
//! Pure functions: the caller has evaluated the preconditions ([`crate::http::protocol::conditional`]) and
//! sends the bytes.

use crate::http::protocol::conditional::{ETag, Validators, if_range_holds};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use bytes::Bytes;
use model::ContentHash;

/// Most ranges of one request. A request for more gets the whole representation: players ask for one,
/// document viewers for a few, attackers for hundreds.
const RANGES_MAX: usize = 16;
/// Hex digits of the entity tag's SHA-256 in a boundary.
const BOUNDARY_DIGITS: usize = 32;

/// A byte range of a representation: offsets from its start, both ends inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    first: u64,
    last: u64,
}

impl ByteRange {
    /// Returns the offset of the first byte.
    pub fn first(self) -> u64 {
        self.first
    }

    /// Returns the offset of the last byte, at least `first`.
    pub fn last(self) -> u64 {
        self.last
    }

    /// Returns the number of bytes in the range, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "a range is never empty")]
    pub fn len(self) -> u64 {
        self.last - self.first + 1
    }

    /// Returns the value of `Content-Range` for a representation of `length` bytes.
    pub fn content_range(self, length: u64) -> HeaderValue {
        let text = format!("bytes {}-{}/{length}", self.first, self.last);
        HeaderValue::from_str(&text).expect("digits are a field value")
    }

    fn touches(self, other: Self) -> bool {
        // Adjacent ranges touch, too: one part is shorter than two with a head each.
        self.first <= other.last.saturating_add(1) && other.first <= self.last.saturating_add(1)
    }

    fn joined(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}

/// The part of a representation to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RangeDecision {
    /// The whole representation, 200.
    Full,
    /// One range, 206 with `Content-Range`.
    Single(ByteRange),
    /// Two or more ranges that neither touch nor overlap, 206 framed by [`MultipartByteranges`].
    Multi(Vec<ByteRange>),
    /// No range, 416 with [`unsatisfied_range`].
    Unsatisfiable,
}

/// One element of a `Range` field.
#[derive(Debug, Clone, Copy)]
enum RangeSpec {
    /// From a first byte to a last byte, or to the end.
    From(u64, Option<u64>),
    /// The last bytes, by their number.
    Suffix(u64),
}

impl RangeSpec {
    /// Resolves the range within `length` bytes; `None` when it is unsatisfiable.
    fn within(self, length: u64) -> Option<ByteRange> {
        let end = length.checked_sub(1)?;
        match self {
            Self::From(first, last) => (first <= end)
                .then(|| ByteRange { first, last: last.map_or(end, |last| last.min(end)) }),
            // A suffix of no bytes is unsatisfiable (RFC 9110 §14.1.2).
            Self::Suffix(0) => None,
            Self::Suffix(count) => {
                Some(ByteRange { first: length.saturating_sub(count), last: end })
            }
        }
    }
}

/// Decides which bytes of `length` a request gets.
///
/// Only GET has ranges. The whole representation is sent for a malformed field, a unit other than bytes, a
/// repeated field, more than 16 ranges, ranges that together exceed `length`, and an `If-Range` that does not
/// match. Ranges that touch or overlap are merged. A suffix range of an empty representation gets the whole
/// representation.
///
/// RFC 9110 §14.1.2, §14.2.
pub fn ranges(
    method: &Method,
    headers: &HeaderMap,
    validators: &Validators,
    length: u64,
) -> RangeDecision {
    let mut fields = headers.get_all(header::RANGE).iter();
    let (Some(field), None) = (fields.next(), fields.next()) else {
        return RangeDecision::Full;
    };
    if *method != Method::GET || !if_range_holds(headers, validators) {
        return RangeDecision::Full;
    }
    let Some(specs) = parse(field.as_bytes()) else {
        return RangeDecision::Full;
    };
    // A suffix asks for at most that many bytes, which an empty body satisfies (RFC 9110 §14.1.2).
    if length == 0 && specs.iter().any(|spec| matches!(spec, RangeSpec::Suffix(1..))) {
        return RangeDecision::Full;
    }
    let ranges: Vec<_> = specs.iter().filter_map(|spec| spec.within(length)).collect();
    // A sum above the length means overlapping ranges, a known way to multiply traffic.
    let sum = ranges.iter().fold(0_u64, |sum, range| sum.saturating_add(range.len()));
    if sum > length {
        return RangeDecision::Full;
    }
    let merged = merge(&ranges);
    match merged.as_slice() {
        [] => RangeDecision::Unsatisfiable,
        [one] => RangeDecision::Single(*one),
        [_, ..] => RangeDecision::Multi(merged),
    }
}

/// Returns the value of `Content-Range` in a 416 for a representation of `length` bytes.
pub fn unsatisfied_range(length: u64) -> HeaderValue {
    HeaderValue::from_str(&format!("bytes */{length}")).expect("digits are a field value")
}

/// Parses a `Range` field; `None` when its unit is not `bytes` or it is malformed.
fn parse(field: &[u8]) -> Option<Vec<RangeSpec>> {
    let text = str::from_utf8(field).ok()?;
    let (unit, list) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let mut specs = Vec::new();
    for element in list.split(',').map(|element| element.trim_matches([' ', '\t'])) {
        // A list may have empty elements (RFC 9110 §5.6.1).
        if element.is_empty() {
            continue;
        }
        if specs.len() == RANGES_MAX {
            return None;
        }
        specs.push(parse_spec(element)?);
    }
    (!specs.is_empty()).then_some(specs)
}

fn parse_spec(element: &str) -> Option<RangeSpec> {
    match element.split_once('-')? {
        ("", suffix) => Some(RangeSpec::Suffix(parse_number(suffix)?)),
        (first, "") => Some(RangeSpec::From(parse_number(first)?, None)),
        (first, last) => {
            let first = parse_number(first)?;
            let last = parse_number(last)?;
            // One invalid range makes the whole field invalid (RFC 9110 §14.1.1), which is then
            // ignored.
            (first <= last).then_some(RangeSpec::From(first, Some(last)))
        }
    }
}

/// Parses digits of any length; a number beyond 64 bits saturates, since it is past every end.
fn parse_number(digits: &str) -> Option<u64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(digits.parse().unwrap_or(u64::MAX))
}

/// Merges ranges that touch or overlap, and otherwise keeps the client's order.
fn merge(ranges: &[ByteRange]) -> Vec<ByteRange> {
    let mut merged: Vec<ByteRange> = Vec::with_capacity(ranges.len());
    for &range in ranges {
        let mut range = range;
        let mut position = merged.len();
        // Repeated, because a merged range can touch ranges that the original did not touch.
        while let Some(index) = merged.iter().position(|other| other.touches(range)) {
            range = range.joined(merged.remove(index));
            position = position.min(index);
        }
        merged.insert(position.min(merged.len()), range);
    }
    merged
}

/// One part of a multipart response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MultipartPart {
    /// Bytes to send before the bytes of the range.
    pub head: Bytes,
    /// The range of the representation that follows.
    pub range: ByteRange,
}

/// The framing of a `multipart/byteranges` body: the head and bytes of each part, then the tail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MultipartByteranges {
    pub content_type: HeaderValue,
    pub parts: Vec<MultipartPart>,
    /// Bytes to send after the last part.
    pub tail: Bytes,
    /// Length of the whole body in bytes.
    pub length: u64,
}

impl MultipartByteranges {
    /// Frames `ranges` of a representation of `length` bytes and type `content_type`.
    ///
    /// The boundary is derived from `etag`: the same request gets the same bytes, and no file can be crafted
    /// to contain its boundary, since the tag depends on the content. RFC 9110 §14.6.
    pub fn new(
        ranges: &[ByteRange],
        content_type: &HeaderValue,
        length: u64,
        etag: &ETag,
    ) -> Self {
        let boundary = boundary(etag);
        let mut parts = Vec::with_capacity(ranges.len());
        for &range in ranges {
            let mut head = Vec::new();
            // The line break before a delimiter belongs to the delimiter (RFC 2046 §5.1.1).
            head.extend_from_slice(if parts.is_empty() { b"--" } else { b"\r\n--" });
            head.extend_from_slice(boundary.as_bytes());
            head.extend_from_slice(b"\r\nContent-Type: ");
            head.extend_from_slice(content_type.as_bytes());
            head.extend_from_slice(b"\r\nContent-Range: ");
            head.extend_from_slice(range.content_range(length).as_bytes());
            head.extend_from_slice(b"\r\n\r\n");
            parts.push(MultipartPart { head: head.into(), range });
        }
        let tail = Bytes::from(format!("\r\n--{boundary}--\r\n"));
        let framed_length = parts.iter().fold(tail.len() as u64, |sum, part| {
            sum.saturating_add(part.head.len() as u64).saturating_add(part.range.len())
        });
        let text = format!("multipart/byteranges; boundary={boundary}");
        let content_type = HeaderValue::from_str(&text).expect("hex is a field value");
        Self { content_type, parts, tail, length: framed_length }
    }
}

fn boundary(etag: &ETag) -> String {
    let mut digits = ContentHash::new(etag.opaque().as_bytes()).to_string();
    digits.truncate(BOUNDARY_DIGITS);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn validators() -> Validators {
        Validators { etag: ETag::new("abc").expect("legal tag"), last_modified: None }
    }

    fn map(range: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::RANGE, HeaderValue::from_str(range).expect("legal"))])
    }

    fn piece(first: u64, last: u64) -> ByteRange {
        ByteRange { first, last }
    }

    fn single(first: u64, last: u64) -> RangeDecision {
        RangeDecision::Single(piece(first, last))
    }

    fn multi(pieces: &[(u64, u64)]) -> RangeDecision {
        RangeDecision::Multi(pieces.iter().map(|&(first, last)| piece(first, last)).collect())
    }

    /// Checks the decision for `range` of a representation of 100 bytes.
    fn check(range: &str, expected: &RangeDecision) {
        let found = ranges(&Method::GET, &map(range), &validators(), 100);
        assert_eq!(&found, expected, "{range}");
    }

    #[test]
    fn ok_one_range() {
        check("bytes=0-0", &single(0, 0));
        check("bytes=10-19", &single(10, 19));
        check("bytes=10-", &single(10, 99));
        check("bytes=-10", &single(90, 99));
        check("bytes=-1000", &single(0, 99));
        check("bytes=0-1000", &single(0, 99));
        check("BYTES = 5-6", &single(5, 6));
        check("bytes=,5-6, ,", &single(5, 6));
        check("bytes=5-99999999999999999999999999", &single(5, 99));
    }

    #[test]
    fn ok_several_ranges_in_the_order_of_the_request() {
        check("bytes=0-9,20-29", &multi(&[(0, 9), (20, 29)]));
        check("bytes=-5 ,\t0-4", &multi(&[(95, 99), (0, 4)]));
        check("bytes=0-1,200-300,5-6", &multi(&[(0, 1), (5, 6)]));
    }

    #[test]
    fn ranges_that_touch_or_overlap_are_joined() {
        check("bytes=0-9,10-19", &single(0, 19));
        check("bytes=0-9,5-19", &single(0, 19));
        check("bytes=40-49,0-9,30-45", &multi(&[(30, 49), (0, 9)]));
        check("bytes=0-9,20-29,8-21", &single(0, 29));
    }

    #[test]
    fn what_cannot_be_read_is_ignored() {
        let unreadable = [
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=a-b",
            "bytes=5-4",
            "bytes=5",
            "items=0-9",
            "bytes=0-9,x",
            "bytes=+1-2",
            "bytes=0x1-2",
            "bytes=1 -2",
            "bytes=--1",
            "=0-1",
        ];
        for range in unreadable {
            check(range, &RangeDecision::Full);
        }
    }

    #[test]
    fn what_starts_after_the_end_is_unsatisfiable() {
        for range in ["bytes=100-", "bytes=100-200", "bytes=-0", "bytes=99999999999999999999-"] {
            check(range, &RangeDecision::Unsatisfiable);
        }
        assert_eq!(unsatisfied_range(100), "bytes */100");
    }

    #[test]
    fn greedy_requests_get_everything_once() {
        let many = |count: u64| {
            let list: Vec<_> = (0..count).map(|n| format!("{}-{}", 4 * n, 4 * n)).collect();
            format!("bytes={}", list.join(","))
        };
        let found = ranges(&Method::GET, &map(&many(16)), &validators(), 100);
        assert!(matches!(found, RangeDecision::Multi(pieces) if pieces.len() == 16));
        check(&many(17), &RangeDecision::Full);
        check("bytes=0-,0-,0-", &RangeDecision::Full);
        check("bytes=0-59,40-99", &RangeDecision::Full);
    }

    #[test]
    fn an_empty_representation_has_no_bytes_to_pick() {
        let found = |range| ranges(&Method::GET, &map(range), &validators(), 0);
        assert_eq!(found("bytes=0-"), RangeDecision::Unsatisfiable);
        assert_eq!(found("bytes=-5"), RangeDecision::Full);
        assert_eq!(found("bytes=-0"), RangeDecision::Unsatisfiable);
    }

    #[test]
    fn only_get_has_ranges_and_only_one_field_counts() {
        let mut headers = map("bytes=0-1");
        let head = ranges(&Method::HEAD, &headers, &validators(), 100);
        assert_eq!(head, RangeDecision::Full);
        headers.append(header::RANGE, HeaderValue::from_static("bytes=0-1"));
        let twice = ranges(&Method::GET, &headers, &validators(), 100);
        assert_eq!(twice, RangeDecision::Full);
    }

    #[test]
    fn if_range_of_another_state_means_everything() {
        let mut headers = map("bytes=0-1");
        headers.insert(header::IF_RANGE, HeaderValue::from_static("\"abc\""));
        assert_eq!(ranges(&Method::GET, &headers, &validators(), 100), single(0, 1));
        headers.insert(header::IF_RANGE, HeaderValue::from_static("\"old\""));
        assert_eq!(ranges(&Method::GET, &headers, &validators(), 100), RangeDecision::Full);
    }

    #[test]
    fn multipart_frames_each_piece() {
        let etag = &validators().etag;
        let jpeg = HeaderValue::from_static("image/jpeg");
        let framed = MultipartByteranges::new(&[piece(0, 1), piece(4, 6)], &jpeg, 10, etag);
        let boundary = "ba7816bf8f01cfea414140de5dae2223";
        assert_eq!(framed.content_type, format!("multipart/byteranges; boundary={boundary}"));
        let mut body = Vec::new();
        for part in &framed.parts {
            body.extend_from_slice(&part.head);
            body.extend((part.range.first()..=part.range.last()).map(|_| b'.'));
        }
        body.extend_from_slice(&framed.tail);
        let expected = format!(
            "--{boundary}\r\nContent-Type: image/jpeg\r\nContent-Range: bytes 0-1/10\r\n\r\n..\
             \r\n--{boundary}\r\nContent-Type: image/jpeg\r\nContent-Range: bytes 4-6/10\r\n\r\n...\
             \r\n--{boundary}--\r\n"
        );
        assert_eq!(String::from_utf8(body).expect("ASCII"), expected);
        assert_eq!(framed.length, expected.len() as u64);
    }

    fn pieces_of(decision: RangeDecision) -> Vec<ByteRange> {
        match decision {
            RangeDecision::Full | RangeDecision::Unsatisfiable => Vec::new(),
            RangeDecision::Single(piece) => vec![piece],
            RangeDecision::Multi(pieces) => pieces,
        }
    }

    proptest! {
        #[test]
        fn no_field_value_panics_or_leaves_the_bounds(
            value in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..60),
                "bytes=([0-9]{0,3}-[0-9]{0,3}[, ]?){0,20}".prop_map(String::into_bytes),
            ],
            length in prop_oneof![0_u64..200, any::<u64>()],
        ) {
            let Ok(value) = HeaderValue::from_bytes(&value) else { return Ok(()) };
            let headers = HeaderMap::from_iter([(header::RANGE, value)]);
            let pieces = pieces_of(ranges(&Method::GET, &headers, &validators(), length));
            for (index, piece) in pieces.iter().enumerate() {
                prop_assert!(piece.first() <= piece.last() && piece.last() < length);
                prop_assert!(pieces[..index].iter().all(|other| !other.touches(*piece)));
            }
        }

        #[test]
        fn joining_loses_and_adds_no_byte(
            ends in prop::collection::vec((0_u64..60, 0_u64..12), 0..10),
        ) {
            let pieces: Vec<_> = ends.iter().map(|&(at, more)| piece(at, at + more)).collect();
            let covered = |pieces: &[ByteRange], byte| {
                pieces.iter().any(|piece| (piece.first()..=piece.last()).contains(&byte))
            };
            let joined = merge(&pieces);
            for byte in 0..80 {
                prop_assert_eq!(covered(&pieces, byte), covered(&joined, byte));
            }
        }

        #[test]
        fn the_multipart_length_is_that_of_the_framed_bytes(
            ends in prop::collection::vec((0_u64..1000, 0_u64..1000), 1..16),
        ) {
            let pieces: Vec<_> = ends.iter().map(|&(at, more)| piece(at, at + more)).collect();
            let jpeg = HeaderValue::from_static("image/jpeg");
            let framed = MultipartByteranges::new(&pieces, &jpeg, 2000, &validators().etag);
            let bytes: u64 = framed
                .parts
                .iter()
                .map(|part| part.head.len() as u64 + part.range.len())
                .sum();
            prop_assert_eq!(framed.length, bytes + framed.tail.len() as u64);
        }
    }
}
