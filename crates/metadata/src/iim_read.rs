//! Reads IIM: the numbered datasets of IPTC's Information Interchange Model, version 4.2.
//!
//! A dataset is the byte `1C`, a record, a number, a length of two bytes and the value. If the highest bit of the
//! length is set, its other bits are the number of length bytes that follow. Record 1 is the envelope, with the
//! character set in 1:90; record 2 holds the caption.
//!
//! Without a declared character set, each value is decoded as UTF-8 if it is valid UTF-8, else as Latin-1: for
//! decades programs have written both without declaring them.

use crate::date_time::PartialDateTime;
use crate::{Caption, RightsMetadata, StandardFields, push, set_if_absent, text};

/// The first byte of every dataset.
pub(super) const TAG: u8 = 0x1C;
/// The value of 1:90 that means UTF-8: ESC % G (ISO 2022).
pub(super) const UTF8: &[u8] = b"\x1B%G";
/// Values of 1:90 that mean ISO 8859-1: ESC . A and ESC - A.
const LATIN1: [&[u8]; 2] = [b"\x1B.A", b"\x1B-A"];

/// Maximum number of datasets that are read from a file; a caption with many keywords has about a hundred.
const DATASETS_MAX: usize = 4_096;
/// Maximum number of bytes of an extended length.
const LENGTH_BYTES_MAX: usize = 4;

/// The character set of the values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextCharset {
    Utf8,
    Latin1,
    /// Not declared, or declared with an unsupported value.
    Unknown,
}

/// Reads the IIM bytes of a file. Returns an empty caption if there are no bytes.
pub(super) fn read(iim: &[u8], warnings: &mut Vec<String>) -> StandardFields {
    let mut datasets = Vec::new();
    let mut rest = iim;
    // Zeros at the end are padding.
    while rest.iter().any(|&byte| byte != 0) {
        if datasets.len() == DATASETS_MAX {
            warnings.push(format!("iim has more than {DATASETS_MAX} datasets"));
            break;
        }
        let Some((dataset, next)) = dataset(rest) else {
            warnings.push(format!("iim is broken at byte {}", iim.len() - rest.len()));
            break;
        };
        datasets.push(dataset);
        rest = next;
    }
    fields(&datasets, warnings)
}

struct IimDataset<'a> {
    record: u8,
    number: u8,
    value: &'a [u8],
}

fn dataset(bytes: &[u8]) -> Option<(IimDataset<'_>, &[u8])> {
    let &[TAG, record, number, high, low, ref rest @ ..] = bytes else {
        return None;
    };
    let (length, rest) = if high & 0x80 == 0 {
        (usize::from(u16::from_be_bytes([high, low])), rest)
    } else {
        let count = usize::from(u16::from_be_bytes([high & 0x7F, low]));
        let (digits, rest) = rest.split_at_checked(count)?;
        if count > LENGTH_BYTES_MAX {
            return None;
        }
        (digits.iter().fold(0, |length, &digit| length << 8 | usize::from(digit)), rest)
    };
    let (value, rest) = rest.split_at_checked(length)?;
    Some((IimDataset { record, number, value }, rest))
}

fn fields(datasets: &[IimDataset<'_>], warnings: &mut Vec<String>) -> StandardFields {
    let charset = datasets
        .iter()
        .find(|dataset| (dataset.record, dataset.number) == (1, 90))
        .map_or(TextCharset::Unknown, |dataset| charset(dataset.value));
    let mut caption = Caption::default();
    let mut date = String::new();
    let mut time = String::new();
    let mut genre = String::new();
    let mut writer = String::new();
    let mut bylines = Vec::new();
    let mut invalid_utf8 = false;
    for IimDataset { number, value, .. } in datasets.iter().filter(|dataset| dataset.record == 2) {
        let (value, bad) = match charset {
            TextCharset::Utf8 => text::decode_utf8(value),
            TextCharset::Latin1 => (text::decode_latin1(value), false),
            TextCharset::Unknown => (text::decode_unknown(value), false),
        };
        invalid_utf8 |= bad;
        match number {
            4 => set_if_absent(&mut genre, genre_name(&value)),
            // Date and time are separate datasets and come in any order.
            55 => set_if_absent(&mut date, &value),
            60 => set_if_absent(&mut time, &value),
            // The byline is repeated, once for each photographer.
            80 => push(&mut bylines, &value),
            122 => set_if_absent(&mut writer, &value),
            _ => field(&mut caption, *number, &value),
        }
    }
    caption.byline = bylines.join(", ");
    if invalid_utf8 {
        warnings.push("iim declares utf-8 but is not valid utf-8".to_owned());
    }
    let created = PartialDateTime::parse_iim(&date, &time);
    // A date of zeros denotes an unknown date and is not damage.
    if created.is_none() && date.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) {
        warnings.push("iim 2:55 is not a date".to_owned());
    }
    let rights = RightsMetadata::of_text("captionWriter", &writer)
        .overlaid(&RightsMetadata::of_text("intellectualGenre", &genre));
    StandardFields { caption, created, rights }
}

fn charset(value: &[u8]) -> TextCharset {
    // The value may have several escape sequences, and a supported one may be at any position.
    if contains(value, UTF8) {
        TextCharset::Utf8
    } else if LATIN1.into_iter().any(|sequence| contains(value, sequence)) {
        TextCharset::Latin1
    } else {
        TextCharset::Unknown
    }
}

fn contains(value: &[u8], sequence: &[u8]) -> bool {
    value.windows(sequence.len()).any(|window| window == sequence)
}

/// Stores a dataset of record 2 in its field; ignores numbers that are not in the table.
fn field(caption: &mut Caption, number: u8, value: &str) {
    match number {
        5 => set_if_absent(&mut caption.title, value),
        10 => {
            let urgency = value.trim().parse().ok().filter(|urgency| (1..=9).contains(urgency));
            caption.urgency = caption.urgency.or(urgency);
        }
        12 => push(&mut caption.subject_codes, subject_code(value)),
        25 => push(&mut caption.keywords, value),
        40 => set_if_absent(&mut caption.instructions, value),
        85 => set_if_absent(&mut caption.byline_role, value),
        90 => set_if_absent(&mut caption.city, value),
        92 => set_if_absent(&mut caption.sublocation, value),
        95 => set_if_absent(&mut caption.province, value),
        100 => set_if_absent(&mut caption.country_code, value),
        101 => set_if_absent(&mut caption.country, value),
        103 => set_if_absent(&mut caption.transmission_reference, value),
        105 => set_if_absent(&mut caption.headline, value),
        110 => set_if_absent(&mut caption.credit, value),
        115 => set_if_absent(&mut caption.source, value),
        116 => set_if_absent(&mut caption.copyright_notice, value),
        120 => set_if_absent(&mut caption.description, value),
        135 => set_if_absent(&mut caption.language, value),
        187 => set_if_absent(&mut caption.uri, value),
        _ => {}
    }
}

/// Extracts the name from an object attribute reference `001:Current`; a bare name is also accepted.
pub(super) fn genre_name(value: &str) -> &str {
    match value.split_once(':') {
        Some((number, name)) if number.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => value,
    }
}

/// Extracts the code from a subject reference `IPTC:04000000:…`; a bare code is also accepted.
fn subject_code(value: &str) -> &str {
    match value.split_once(':') {
        Some((_, rest)) => rest.split(':').next().unwrap_or_default(),
        None => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(datasets: &[(u8, u8, &[u8])]) -> Vec<u8> {
        let mut iim = Vec::new();
        for (record, number, value) in datasets {
            let length = u16::try_from(value.len()).expect("a short value");
            iim.extend([TAG, *record, *number]);
            iim.extend(length.to_be_bytes());
            iim.extend_from_slice(value);
        }
        iim
    }

    fn check(datasets: &[(u8, u8, &[u8])]) -> (StandardFields, Vec<String>) {
        let mut warnings = Vec::new();
        (read(&bytes(datasets), &mut warnings), warnings)
    }

    #[test]
    fn the_character_set_is_honoured() {
        let (fields, warnings) = check(&[(1, 90, UTF8), (2, 90, "Åre".as_bytes())]);
        assert_eq!((fields.caption.city.as_str(), warnings.len()), ("Åre", 0));
        let (fields, _) = check(&[(1, 90, b"\x1B.A"), (2, 90, "Åre".as_bytes())]);
        assert_eq!(fields.caption.city, "Ã…re");
    }

    #[test]
    fn without_a_character_set_each_value_is_guessed() {
        let (fields, warnings) = check(&[(2, 90, b"\xC5re"), (2, 105, "Snö".as_bytes())]);
        assert_eq!(
            (fields.caption.city.as_str(), fields.caption.headline.as_str()),
            ("Åre", "Snö")
        );
        assert_eq!(warnings.len(), 0);
    }

    #[test]
    fn latin1_that_claims_utf8_is_read_with_a_warning() {
        let (fields, warnings) = check(&[(1, 90, UTF8), (2, 90, b"\xC5re")]);
        assert_eq!((fields.caption.city.as_str(), warnings.len()), ("Åre", 1));
    }

    #[test]
    fn repeated_datasets_are_collected() {
        let (fields, _) = check(&[
            (2, 25, b"sn\xF6"),
            (2, 80, b"Ann Ek"),
            (2, 12, b"IPTC:04000000:EBF::"),
            (2, 25, b""),
            (2, 25, b"is"),
            (2, 80, b"Bo Ek"),
            (2, 12, b"17000000"),
            (2, 122, b"first"),
            (2, 122, b"second"),
        ]);
        assert_eq!(fields.caption.keywords, ["snö", "is"]);
        assert_eq!(fields.caption.byline, "Ann Ek, Bo Ek");
        assert_eq!(fields.caption.subject_codes, ["04000000", "17000000"]);
    }

    #[test]
    fn date_and_time_make_one_timestamp() {
        let (fields, _) = check(&[(2, 60, b"101500+0100"), (2, 55, b"20170211")]);
        let created = fields.created.map(|stamp| stamp.to_string());
        assert_eq!(created.as_deref(), Some("2017-02-11T10:15:00+01:00"));
        let (fields, warnings) = check(&[(2, 55, b"20171399")]);
        assert_eq!((fields.created, warnings.len()), (None, 1));
    }

    #[test]
    fn an_extended_length_is_read() {
        let mut iim = vec![TAG, 2, 120, 0x80, 4, 0, 0, 0, 3];
        iim.extend(b"abc");
        assert_eq!(read(&iim, &mut Vec::new()).caption.description, "abc");
    }

    #[test]
    fn fields_before_the_damage_are_kept() {
        let mut iim = bytes(&[(2, 105, b"Rubrik")]);
        iim.extend([TAG, 2, 120, 0x80, 9, 0, 0]);
        let mut warnings = Vec::new();
        assert_eq!(read(&iim, &mut warnings).caption.headline, "Rubrik");
        assert_eq!(warnings, ["iim is broken at byte 11"]);
    }
}
