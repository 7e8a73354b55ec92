//! Repairs headers that libjpeg-turbo refuses but other readers accept.

use crate::header::{APP0, APP14, HeaderLimits, JpegHeader, is_jfif};
use crate::rewrite::segment;

/// Generous limits, because the caller has already checked the file against stricter ones.
const LIMITS: HeaderLimits =
    HeaderLimits { scans_max: u32::MAX, segments_max: 1 << 20, metadata_bytes_max: 1 << 30 };

/// Offset of the major version in the payload of a JFIF segment.
const VERSION_OFFSET: usize = 5;

/// Offset of the colour transform in the payload of an Adobe segment: 0 for none, 1 for YCbCr, 2 for YCCK.
const TRANSFORM_OFFSET: usize = 11;

/// Rewrites a file so that it has only the headers that decoding needs, without stray bytes between them.
///
/// libjpeg-turbo refuses stray bytes, unknown JFIF versions and unknown Adobe transforms; other readers display
/// such files. Returns `None` if the headers cannot be parsed or no scan follows them.
pub fn repair(jpeg: &[u8]) -> Option<Vec<u8>> {
    let header = JpegHeader::parse_start(jpeg, &LIMITS, jpeg.len()).ok()?;
    let mut out = vec![0xFF, 0xD8];
    for part in &header.segments {
        let payload = jpeg.get(part.payload.clone())?;
        match part.marker {
            APP0 if is_jfif(payload) => {
                // The segment must stay, because it decides the colour model. JFIF has no major version but 1.
                let mut payload = payload.to_vec();
                payload[VERSION_OFFSET] = 1;
                out.extend(segment(APP0, &[&payload]));
            }
            APP14 if payload.starts_with(b"Adobe") && payload.len() > TRANSFORM_OFFSET => {
                let mut payload = payload.to_vec();
                if payload[TRANSFORM_OFFSET] != 0 {
                    // For a value that does not fit, the library warns and assumes the same.
                    payload[TRANSFORM_OFFSET] = if header.components.len() == 4 { 2 } else { 1 };
                }
                out.extend(segment(APP14, &[&payload]));
            }
            marker if is_needed_to_decode(marker) => out.extend(segment(marker, &[payload])),
            _ => {}
        }
    }
    out.extend_from_slice(jpeg.get(header.first_scan..)?);
    Some(out)
}

/// Returns whether the marker starts a table, a frame or the restart interval (the JPEG standard, T.81, table B.1).
///
/// Metadata is not needed. Reserved markers must go: the library refuses files with them, and other readers skip them.
fn is_needed_to_decode(marker: u8) -> bool {
    matches!(marker, 0xC0..=0xC7 | 0xC9..=0xCF | 0xDB | 0xDD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{adobe, file, jfif};

    #[test]
    fn stray_bytes_and_metadata_are_removed() {
        let clean = file(&[]);
        let mut dirty = vec![0xFF, 0xD8, 9, 9];
        dirty.extend(segment(0xE1, &[b"Exif\0\0"]));
        dirty.extend_from_slice(&clean[2..]);
        assert_eq!(repair(&dirty), Some(clean));
    }

    #[test]
    fn reserved_segments_are_removed() {
        let clean = file(&[]);
        for marker in [0x02, 0xBF, 0xC8, 0xDE, 0xDF, 0xF0, 0xFD] {
            assert_eq!(
                repair(&file(&segment(marker, &[b"?"]))).as_ref(),
                Some(&clean),
                "{marker:02X}"
            );
        }
    }

    #[test]
    fn an_unknown_adobe_transform_gets_its_usual_meaning() {
        assert_eq!(repair(&file(&adobe(7))), Some(file(&adobe(1))));
        assert_eq!(repair(&file(&adobe(0))), Some(file(&adobe(0))));
        // The file has three components; transform 2 is defined only for four.
        assert_eq!(repair(&file(&adobe(2))), Some(file(&adobe(1))));
    }

    #[test]
    fn a_jfif_segment_of_another_version_still_decides_the_colour_model() {
        let mut dirty = jfif();
        dirty[4 + VERSION_OFFSET] = 2;
        let [clean, dirty] = [jfif(), dirty].map(|jfif| file(&[jfif, adobe(0)].concat()));
        assert_eq!(repair(&dirty), Some(clean));
    }

    #[test]
    fn every_prefix_of_a_file_is_repaired_or_refused_without_panic() {
        let jpeg = file(&adobe(7));
        for end in 0..jpeg.len() {
            let repaired = repair(&jpeg[..end]);
            assert!(repaired.is_none_or(|repaired| repaired.len() <= end));
        }
    }
}
