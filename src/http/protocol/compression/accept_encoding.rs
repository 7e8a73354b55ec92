//! Parses `Accept-Encoding` (RFC 9110 §12.5.3).

use axum::http::{HeaderMap, header};

use super::encode::ContentCoding;

/// The weights that a client gives to content codings; 0 for a coding that it does not accept.
#[derive(Clone, Copy, Debug)]
pub(super) struct AcceptedCodings {
    brotli: f32,
    gzip: f32,
    /// The weight of the plain body, if the field names it.
    identity: Option<f32>,
}

impl AcceptedCodings {
    /// Parses the field of these headers. Without the field nothing is compressed; malformed members are
    /// skipped.
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let lines = headers.get_all(header::ACCEPT_ENCODING).iter();
        let lines = lines.filter_map(|line| line.to_str().ok());
        let mut brotli = None;
        let mut gzip = None;
        let mut identity = None;
        let mut others = None;
        for (name, weight) in lines.flat_map(|line| line.split(',')).filter_map(parse_member) {
            let slot = match name.to_ascii_lowercase().as_str() {
                "br" => &mut brotli,
                // Recipients treat `x-gzip` as `gzip` (RFC 9110 §8.4.1.3).
                "gzip" | "x-gzip" => &mut gzip,
                "identity" => &mut identity,
                "*" => &mut others,
                _ => continue,
            };
            *slot = Some(weight);
        }
        // `*` sets the weight of the codings that the field does not name (RFC 9110 §12.5.3).
        let brotli = brotli.or(others).unwrap_or(0.0);
        let gzip = gzip.or(others).unwrap_or(0.0);
        Self { brotli, gzip, identity }
    }

    /// Returns the coding that the client prefers; `None` if it prefers the plain body.
    pub(super) fn preferred(&self) -> Option<ContentCoding> {
        // On a tie, brotli wins because its results are shorter.
        let coding =
            if self.brotli >= self.gzip { ContentCoding::Brotli } else { ContentCoding::Gzip };
        let best = self.weight(coding);
        // Identity is acceptable without being named, so only a higher weight makes it better.
        let plain_is_better = self.identity.is_some_and(|identity| identity > best);
        (best > 0.0 && !plain_is_better).then_some(coding)
    }

    /// Returns whether the client accepts this coding.
    pub(super) fn accepts(&self, coding: ContentCoding) -> bool {
        self.weight(coding) > 0.0
    }

    fn weight(&self, coding: ContentCoding) -> f32 {
        match coding {
            ContentCoding::Brotli => self.brotli,
            ContentCoding::Gzip => self.gzip,
        }
    }
}

/// Parses a coding with its weight; `None` if it is malformed.
fn parse_member(text: &str) -> Option<(&str, f32)> {
    let (name, parameters) = text.split_once(';').unwrap_or((text, ""));
    let name = name.trim();
    if name.is_empty() {
        return None;
    }
    let parameters = parameters.trim();
    if parameters.is_empty() {
        return Some((name, 1.0));
    }
    let (key, value) = parameters.split_once('=')?;
    let weight: f32 = value.trim().parse().ok()?;
    // `NaN` parses as a number and is in no range.
    let is_weight = key.trim().eq_ignore_ascii_case("q") && (0.0..=1.0).contains(&weight);
    is_weight.then_some((name, weight))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn accepted(lines: &[&str]) -> AcceptedCodings {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::ACCEPT_ENCODING, HeaderValue::from_str(line).unwrap());
        }
        AcceptedCodings::from_headers(&headers)
    }

    #[test]
    fn the_coding_with_the_highest_weight_is_preferred() {
        let (br, gzip) = (Some(ContentCoding::Brotli), Some(ContentCoding::Gzip));
        for (lines, expected) in [
            (&[][..], None),
            (&[""], None),
            (&["identity"], None),
            (&["deflate, zstd"], None),
            (&["gzip"], gzip),
            (&["X-GZip"], gzip),
            (&["gzip, deflate, br, zstd"], br),
            (&["gzip", "br"], br),
            (&["br;q=0.5, gzip"], gzip),
            (&["br;q=0.5, gzip;q=0.8"], gzip),
            (&["br ; Q=1.000 ,gzip; q=1"], br),
            (&["br;q=0, gzip;q=0"], None),
            (&["br;q=0, *"], gzip),
            (&["*"], br),
            (&["*;q=0"], None),
            (&["gzip;q=0.5, identity"], None),
            (&["gzip;q=0.5, identity;q=0.5"], gzip),
            (&["gzip, identity;q=0"], gzip),
            (&["br;q=2, gzip"], gzip),
            (&["br;q=NaN, gzip;q=x, ;q=1, br;level=4"], None),
        ] {
            assert_eq!(accepted(lines).preferred(), expected, "{lines:?}");
        }
    }

    #[test]
    fn every_coding_with_a_weight_is_accepted() {
        let found = accepted(&["gzip;q=0.1, identity"]);
        assert!(found.accepts(ContentCoding::Gzip) && !found.accepts(ContentCoding::Brotli));
        let found = accepted(&["gzip;q=0, *;q=0.1"]);
        assert!(!found.accepts(ContentCoding::Gzip) && found.accepts(ContentCoding::Brotli));
        assert!(!accepted(&[]).accepts(ContentCoding::Gzip));
    }

    proptest! {
        #[test]
        fn what_is_preferred_is_accepted(text in "[a-z*;=0-9., -]{0,40}") {
            let found = accepted(&[&text]);
            prop_assert!(found.preferred().is_none_or(|coding| found.accepts(coding)));
        }
    }
}
