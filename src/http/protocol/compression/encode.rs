//! Compresses bodies with gzip and brotli.

use std::io::{self, Write};

use brotli::enc::BrotliEncoderParams;
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use strum::{EnumIter, IntoStaticStr};

/// Gzip level for a body that is compressed for each response: 0.1 ms for a search of 20 hits (27 kB), 0.8 ms for
/// one of 227 kB. Level 9 needs twice the time.
const GZIP_EACH: u32 = 5;
/// Gzip level for a body that is compressed once.
const GZIP_ONCE: u32 = 9;
/// Brotli quality for a body that is compressed for each response: 0.2 ms for the same search, 1.3 ms for the long
/// one. Quality 5 and above clears tables of megabytes first, so 27 kB need 5 ms, for a result that is only 5 %
/// shorter.
const BROTLI_EACH: i32 = 4;
/// Brotli quality for a body that is compressed once: 15 ms for 227 kB. Quality 11 needs 200 ms and saves an
/// eighth.
const BROTLI_ONCE: i32 = 9;
/// Smallest and largest brotli window, as powers of two of bytes.
const BROTLI_WINDOW: (u32, u32) = (16, 20);

/// A content coding that the server produces; the coding with the shorter results comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[derive(EnumIter, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(super) enum ContentCoding {
    #[strum(serialize = "br")]
    Brotli,
    Gzip,
}

impl ContentCoding {
    /// Returns the name of the coding in `Content-Encoding`.
    pub(super) fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the suffix of the entity tag of a response in this coding. Plain tags are made of hash digits,
    /// which contain no `+`.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Brotli => "+br",
            Self::Gzip => "+gzip",
        }
    }
}

/// The effort of a compression: more time for a shorter result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CodingEffort {
    /// The body is compressed for each response.
    Each,
    /// The body is compressed once per process.
    Once,
}

/// Compresses `body` with `coding`.
pub(super) fn encode(
    coding: ContentCoding,
    effort: CodingEffort,
    body: &[u8],
) -> io::Result<Bytes> {
    // JSON and HTML usually shrink to less than a quarter, so one allocation is enough.
    let mut coded = Vec::with_capacity(body.len() / 4);
    match coding {
        ContentCoding::Gzip => {
            let level = match effort {
                CodingEffort::Each => GZIP_EACH,
                CodingEffort::Once => GZIP_ONCE,
            };
            let mut encoder = GzEncoder::new(&mut coded, Compression::new(level));
            encoder.write_all(body)?;
            encoder.finish()?;
        }
        ContentCoding::Brotli => {
            let quality = match effort {
                CodingEffort::Each => BROTLI_EACH,
                CodingEffort::Once => BROTLI_ONCE,
            };
            // A window larger than the body costs memory, and time to clear it.
            let (window_min, window_max) = BROTLI_WINDOW;
            let window = (usize::BITS - body.len().leading_zeros()).clamp(window_min, window_max);
            let parameters = BrotliEncoderParams {
                quality,
                lgwin: i32::try_from(window).unwrap_or(i32::MAX),
                size_hint: body.len(),
                ..BrotliEncoderParams::default()
            };
            brotli::BrotliCompress(&mut &*body, &mut coded, &parameters)?;
        }
    }
    Ok(coded.into())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use strum::IntoEnumIterator;

    use super::*;

    fn decode(coding: ContentCoding, coded: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        match coding {
            ContentCoding::Gzip => drop(GzDecoder::new(coded).read_to_end(&mut body).unwrap()),
            ContentCoding::Brotli => brotli::BrotliDecompress(&mut &*coded, &mut body).unwrap(),
        }
        body
    }

    #[test]
    fn what_is_coded_reads_as_it_was() {
        let hit = r#"{"headline": "Isbrytare i Kvarken", "uri": "http://a/media/image/ice"},"#;
        for body in [String::new(), "a".to_owned(), hit.to_owned(), hit.repeat(50_000)] {
            for coding in ContentCoding::iter() {
                for effort in [CodingEffort::Each, CodingEffort::Once] {
                    let coded = encode(coding, effort, body.as_bytes()).unwrap();
                    assert_eq!(decode(coding, &coded), body.as_bytes(), "{coding:?}");
                    assert_eq!(coded, encode(coding, effort, body.as_bytes()).unwrap());
                    assert!(body.len() < 10_000 || coded.len() < body.len() / 20, "{coding:?}");
                }
            }
        }
    }
}
