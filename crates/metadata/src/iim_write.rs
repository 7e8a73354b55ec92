//! Writes IIM: one Photoshop segment with the caption's datasets.
//!
//! IIM 4.2 limits the length of every dataset in bytes. Longer text is truncated at a character boundary; the
//! complete text is in XMP, which has precedence when this crate reads a file.

use crate::date_time::PartialDateTime;
use crate::iim_read::{TAG, UTF8};
use crate::{Caption, RightsMetadata, country, text};
use jpeg::rewrite::{PAYLOAD_BYTES_MAX, segment as jpeg_segment};

/// Code of the APP13 marker.
const MARKER: u8 = 0xED;
/// Signature of a Photoshop segment.
const SIGNATURE: &[u8] = b"Photoshop 3.0\0";
/// Signature, number and empty name of the resource that holds IIM.
const RESOURCE: &[u8] = b"8BIM\x04\x04\0\0";
/// Maximum bytes of IIM in a segment, next to signatures, a length and padding.
const IIM_BYTES_MAX: usize = PAYLOAD_BYTES_MAX - SIGNATURE.len() - RESOURCE.len() - 4 - 1;
/// Maximum bytes of the identifier. IIM does not define this dataset, and readers expect no more. A truncated
/// identifier would identify nothing or a different picture, so a longer one is only in XMP.
const URI_BYTES_MAX: usize = 128;
/// Minimum bytes of the intellectual genre in 2:04.
const GENRE_BYTES_MIN: usize = 4;
/// Number of digits of an IPTC subject code.
const SUBJECT_CODE_DIGITS: usize = 8;

/// A buffer to which the datasets of a caption are written.
struct DatasetWriter(Vec<u8>);

/// Writes the Photoshop image resource that holds the datasets; empty if IIM has no dataset for the caption and
/// the rights.
pub(super) fn block(caption: &Caption, rights: &RightsMetadata) -> Vec<u8> {
    let iim = datasets(caption, rights);
    if iim.is_empty() {
        return Vec::new();
    }
    let mut envelope = DatasetWriter(Vec::new());
    envelope.add(1, 90, UTF8);
    // 2:00 is the version of the record: 4.
    envelope.add(2, 0, &[0, 4]);
    let iim = [envelope.0, iim].concat();
    let length = u32::try_from(iim.len()).expect("`add` keeps it within a segment");
    // Photoshop resources have an even length.
    let pad: &[u8] = if iim.len() % 2 == 1 { &[0] } else { &[] };
    [RESOURCE, &length.to_be_bytes(), &iim, pad].concat()
}

/// Wraps a block in a JPEG segment; empty for an empty block.
pub(super) fn segment(block: &[u8]) -> Vec<u8> {
    if block.is_empty() { Vec::new() } else { jpeg_segment(MARKER, &[SIGNATURE, block]) }
}

fn datasets(caption: &Caption, rights: &RightsMetadata) -> Vec<u8> {
    let mut datasets = DatasetWriter(Vec::new());
    // 2:40 and 2:116 each hold two fields; see the section on precedence in the crate's docs.
    let terms = [&caption.usage_terms, &caption.instructions].map(String::as_str);
    let terms = terms.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ");
    let genre = rights.text("intellectualGenre").unwrap_or_default();
    if genre.len() >= GENRE_BYTES_MIN {
        datasets.text(4, 64, genre);
    }
    datasets.text(5, 64, &caption.title);
    datasets.text(10, 1, &caption.urgency.map(|urgency| urgency.to_string()).unwrap_or_default());
    datasets.text(40, 256, &terms);
    if let Some(stamp) = caption.created.as_deref().and_then(PartialDateTime::parse) {
        datasets.text(55, 8, &stamp.iim_date());
        datasets.text(60, 11, &stamp.iim_time().unwrap_or_default());
    }
    datasets.text(80, 32, &caption.byline);
    datasets.text(85, 32, &caption.byline_role);
    datasets.text(90, 32, &caption.city);
    datasets.text(92, 32, &caption.sublocation);
    datasets.text(95, 32, &caption.province);
    datasets.text(100, 3, &country::alpha3_code(&caption.country_code).unwrap_or_default());
    datasets.text(101, 64, &caption.country);
    datasets.text(103, 32, &caption.transmission_reference);
    datasets.text(105, 256, &caption.headline);
    datasets.text(110, 32, &caption.credit);
    datasets.text(115, 32, &caption.source);
    datasets.text(116, 128, caption.copyright());
    // Not a single line: only the description keeps its line feeds.
    datasets.add(2, 120, text::cut(&caption.description, 2_000).as_bytes());
    datasets.text(122, 32, rights.text("captionWriter").unwrap_or_default());
    // The dataset holds an ISO 639 code of two or three letters, without a region.
    let language = caption.language.split('-').next().unwrap_or_default();
    if (2..=3).contains(&language.len()) {
        datasets.text(135, 3, language);
    }
    if caption.uri.len() <= URI_BYTES_MAX {
        datasets.text(187, URI_BYTES_MAX, &caption.uri);
    }
    for code in caption.subject_codes.iter().filter(|code| is_subject_code(code)) {
        datasets.text(12, 236, &format!("IPTC:{code}:::"));
    }
    // Keywords come last, so that they are omitted first when the segment is full.
    for keyword in &caption.keywords {
        datasets.text(25, 64, keyword);
    }
    datasets.0
}

fn is_subject_code(code: &str) -> bool {
    code.len() == SUBJECT_CODE_DIGITS && code.bytes().all(|byte| byte.is_ascii_digit())
}

impl DatasetWriter {
    /// Adds a line of text to record 2, truncated to `bytes_max` bytes; skips an empty text.
    fn text(&mut self, number: u8, bytes_max: usize, value: &str) {
        let line = text::line(value);
        self.add(2, number, text::cut(&line, bytes_max).as_bytes());
    }

    /// Adds a dataset; skips it if it is empty or does not fit into the segment.
    fn add(&mut self, record: u8, number: u8, value: &[u8]) {
        // The envelope needs room for its two datasets of 8 and 7 bytes.
        let room = IIM_BYTES_MAX - 8 - 7;
        if value.is_empty() || self.0.len() + 5 + value.len() > room {
            return;
        }
        let length = u16::try_from(value.len()).expect("a segment has 65,533 bytes");
        self.0.extend([TAG, record, number]);
        self.0.extend(length.to_be_bytes());
        self.0.extend_from_slice(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iim_read::read;

    /// The IIM bytes of a written block.
    fn iim(caption: &Caption) -> Vec<u8> {
        block(caption, &RightsMetadata::default()).split_off(RESOURCE.len() + 4)
    }

    #[test]
    fn the_character_set_comes_first() {
        let caption = Caption { headline: "Snö".into(), ..Caption::default() };
        assert!(iim(&caption).starts_with(b"\x1C\x01\x5A\x00\x03\x1B%G\x1C\x02\x00\x00\x02"));
    }

    #[test]
    fn an_empty_caption_has_no_block() {
        assert_eq!(block(&Caption::default(), &RightsMetadata::default()), Vec::<u8>::new());
        let persons = Caption { persons: vec!["Ann Ek".into()], ..Caption::default() };
        assert_eq!(block(&persons, &RightsMetadata::default()), Vec::<u8>::new());
    }

    #[test]
    fn long_text_is_cut_on_a_character_boundary() {
        let long = "å".repeat(3_000);
        let caption = Caption {
            byline: format!("x{long}"),
            description: long.clone(),
            keywords: vec![long.clone()],
            copyright_notice: long,
            ..Caption::default()
        };
        let restored = read(&iim(&caption), &mut Vec::new()).caption;
        assert_eq!(restored.byline, format!("x{}", "å".repeat(15)));
        assert_eq!(restored.description, "å".repeat(1_000));
        assert_eq!(restored.keywords, ["å".repeat(32)]);
        assert_eq!(restored.copyright_notice, "å".repeat(64));
    }

    #[test]
    fn a_country_has_three_letters_and_an_identifier_is_whole_or_absent() {
        let fields = |country_code: &str, uri: &str| {
            let (country_code, uri) = (country_code.to_owned(), uri.to_owned());
            let caption =
                Caption { country_code, uri, headline: "x".into(), ..Caption::default() };
            let restored = read(&iim(&caption), &mut Vec::new()).caption;
            (restored.country_code, restored.uri)
        };
        assert_eq!(fields("SE", "urn:x"), ("SWE".to_owned(), "urn:x".to_owned()));
        assert_eq!(fields("Sverige", &"x".repeat(129)), (String::new(), String::new()));
        assert_eq!(fields("NOR", &"x".repeat(128)), ("NOR".to_owned(), "x".repeat(128)));
    }

    #[test]
    fn too_many_keywords_still_fit_one_segment() {
        let caption = Caption { keywords: vec!["k".repeat(64); 2_000], ..Caption::default() };
        let bytes = segment(&block(&caption, &RightsMetadata::default()));
        assert!(bytes.len() <= PAYLOAD_BYTES_MAX + 4, "{}", bytes.len());
        assert!(read(&iim(&caption), &mut Vec::new()).caption.keywords.len() > 900);
    }

    #[test]
    fn only_iptc_subject_codes_are_written() {
        let codes = vec!["04000000".into(), "medtop:20000209".into()];
        let caption = Caption { subject_codes: codes, ..Caption::default() };
        assert_eq!(read(&iim(&caption), &mut Vec::new()).caption.subject_codes, ["04000000"]);
    }

    #[test]
    fn line_feeds_stay_in_the_description_only() {
        let text = "en\ntvå".to_owned();
        let caption = Caption { headline: text.clone(), description: text, ..Caption::default() };
        let restored = read(&iim(&caption), &mut Vec::new()).caption;
        assert_eq!(
            (restored.headline.as_str(), restored.description.as_str()),
            ("en två", "en\ntvå")
        );
    }
}
