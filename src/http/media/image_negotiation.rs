//! Chooses the image format of an `.auto` address by `Accept` (RFC 9110 §12.5.1).

use axum::http::{HeaderMap, header};

use imaging::ImageFormat;

/// Returns AVIF and JPEG, as far as the client accepts them according to its `Accept` header, the preferred one
/// first.
///
/// AVIF precedes JPEG if both have the same weight, because its files are smaller at equal quality. WebP files are
/// larger than JPEG files at equal quality (`benches/RESULTS.md`), so WebP takes the place of JPEG only for a client
/// that does not accept JPEG.
///
/// Wildcards match only JPEG. Other formats must be named, because clients that cannot decode them send `*/*` too.
/// Members that do not parse are ignored. If no format is acceptable, the result is JPEG alone.
pub(crate) fn accepted_formats(headers: &HeaderMap) -> Vec<ImageFormat> {
    let lines = headers.get_all(header::ACCEPT).iter();
    // Split before the text is decoded, so that a stray byte invalidates only its own member.
    let members: Vec<MediaRange<'_>> = lines
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .filter_map(|member| str::from_utf8(member).ok())
        .filter_map(MediaRange::parse)
        .collect();
    let baseline = [ImageFormat::Jpeg, ImageFormat::Webp]
        .into_iter()
        .find(|format| weight(&members, *format) > 0)
        .unwrap_or(ImageFormat::Jpeg);
    match (weight(&members, ImageFormat::Avif), weight(&members, baseline)) {
        (0, _) => vec![baseline],
        (_, 0) => vec![ImageFormat::Avif],
        (avif, other) if avif >= other => vec![ImageFormat::Avif, baseline],
        _ => vec![baseline, ImageFormat::Avif],
    }
}

/// Returns the weight of `format` in thousandths: the weight of the most specific range that matches it.
fn weight(members: &[MediaRange<'_>], format: ImageFormat) -> u16 {
    let named = weight_of_range(members, format.mime_type());
    if format != ImageFormat::Jpeg {
        return named.unwrap_or(0);
    }
    named
        .or_else(|| weight_of_range(members, "image/*"))
        .or_else(|| weight_of_range(members, "*/*"))
        .unwrap_or(0)
}

/// Returns the highest weight of the members that name `range`.
fn weight_of_range(members: &[MediaRange<'_>], range: &str) -> Option<u16> {
    members.iter().filter(|member| member.is(range)).map(|member| member.weight).max()
}

/// A member of the header `Accept`.
struct MediaRange<'a> {
    /// Type and subtype, as written.
    name: &'a str,
    /// The weight in thousandths.
    weight: u16,
}

impl<'a> MediaRange<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let (kind, subtype) = name.split_once('/')?;
        if !is_token(kind) || !is_token(subtype) {
            return None;
        }
        let mut weight = 1000;
        // A semicolon may stand without a parameter (RFC 9110 §5.6.6).
        for parameter in parts.filter(|parameter| !parameter.is_empty()) {
            let (key, value) = parameter.split_once('=')?;
            if !key.trim().eq_ignore_ascii_case("q") {
                // A parameter of the media type asks for a representation that is not served here.
                return None;
            }
            weight = parse_weight(value.trim())?;
        }
        Some(Self { name, weight })
    }

    fn is(&self, range: &str) -> bool {
        self.name.eq_ignore_ascii_case(range)
    }
}

/// Parses a weight such as `0.8` into thousandths: at most three decimals, at most 1.
fn parse_weight(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.len() > 3 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths: u16 = format!("{decimals:0<3}").parse().ok()?;
    match (whole, thousandths) {
        ("0", _) => Some(thousandths),
        ("1", 0) => Some(1000),
        _ => None,
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_token_byte)
}

/// Returns whether a byte may be in a token (RFC 9110 §5.6.2).
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn names(lines: &[&str]) -> Vec<&'static str> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::ACCEPT, HeaderValue::from_str(line).expect("a header"));
        }
        names_of(&headers)
    }

    fn names_of(headers: &HeaderMap) -> Vec<&'static str> {
        accepted_formats(headers).into_iter().map(ImageFormat::name).collect()
    }

    #[test]
    fn browsers_get_avif_if_they_name_it_and_else_jpeg() {
        let chrome = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8";
        assert_eq!(names(&[chrome]), ["avif", "jpeg"]);
        let firefox = "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5";
        assert_eq!(names(&[firefox]), ["avif", "jpeg"]);
        let safari_14 = "image/webp,image/png,image/svg+xml,image/*;q=0.8,video/*;q=0.8,*/*;q=0.5";
        assert_eq!(names(&[safari_14]), ["jpeg"]);
        assert_eq!(names(&["image/jpeg", "image/avif"]), ["avif", "jpeg"]);
        assert_eq!(names(&["IMAGE/AVIF ; Q=1.0"]), ["avif"]);
    }

    #[test]
    fn webp_takes_the_place_of_jpeg_only_where_jpeg_is_not_accepted() {
        assert_eq!(names(&["image/webp"]), ["webp"]);
        assert_eq!(names(&["image/webp;q=0.001,*/*;q=0"]), ["webp"]);
        assert_eq!(names(&["image/webp,image/jpeg;q=0,*/*"]), ["webp"]);
        assert_eq!(names(&["image/webp", "image/avif"]), ["avif", "webp"]);
        assert_eq!(names(&["image/webp,image/jpeg;q=0.001"]), ["jpeg"]);
        assert_eq!(names(&["image/webp,*/*;q=0.1"]), ["jpeg"]);
    }

    #[test]
    fn wildcards_mean_jpeg() {
        for line in ["*/*", "image/*", "*/*;q=0.1", "image/png, */*;q=0.5", "text/html"] {
            assert_eq!(names(&[line]), ["jpeg"], "{line}");
        }
        assert_eq!(names(&[]), ["jpeg"]);
    }

    #[test]
    fn weights_decide_before_the_order_of_formats() {
        assert_eq!(names(&["image/avif;q=0.5,image/webp;q=0.9"]), ["webp", "avif"]);
        assert_eq!(names(&["image/avif;q=0.5,image/jpeg"]), ["jpeg", "avif"]);
        assert_eq!(names(&["image/avif;q=0,image/webp,*/*"]), ["jpeg"]);
        assert_eq!(names(&["image/jpeg;q=0,image/*"]), ["jpeg"], "nothing acceptable is left");
        assert_eq!(names(&["image/avif,*/*;q=0"]), ["avif"]);
    }

    #[test]
    fn members_that_do_not_parse_are_ignored() {
        for bad in [
            "image",
            "image/",
            "/webp",
            "image/webp;q=2",
            "image/webp;q=0.1234",
            "image/webp;q=",
            "image/webp;q=-1",
            "image/webp;q",
            "image/webp;level=1",
            "image/we bp",
            ";",
        ] {
            assert_eq!(names(&[&format!("{bad}, image/avif")]), ["avif"], "{bad}");
        }
    }

    #[test]
    fn a_byte_outside_ascii_costs_its_own_member_only() {
        for line in [
            &b"image/\xE4,image/avif"[..],
            b"image/avif,image/webp;q=\xFF",
            "image/webp;ä=1, image/avif".as_bytes(),
        ] {
            let mut headers = HeaderMap::new();
            headers.append(header::ACCEPT, HeaderValue::from_bytes(line).expect("a header"));
            assert_eq!(names_of(&headers), ["avif"], "{line:?}");
        }
    }

    #[test]
    fn an_empty_parameter_is_skipped() {
        assert_eq!(names(&["image/webp;"]), ["webp"]);
        assert_eq!(names(&["image/webp; ;q=0.5;, image/avif;;q=0.6"]), ["avif", "webp"]);
        assert_eq!(names(&["image/webp;q=0;"]), ["jpeg"]);
    }

    proptest! {
        #[test]
        fn any_field_gives_at_least_one_format(text in "[ -~]{0,80}") {
            let found = names(&[&text]);
            prop_assert!(found.len() == 1 || found.len() == 2);
        }
    }
}
