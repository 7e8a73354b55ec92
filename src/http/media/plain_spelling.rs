//! The redirect from two spellings of a media URL to its plain one, so that caches in front of the service store one
//! answer for all of them (contract media-9).

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

use crate::http::cache_policy::CachePolicy;
use crate::http::media::cors;
use crate::http::protocol::respond;
use model::media_url::MediaPath;

/// Redirects a path below `/media/` with a slash at its end, or with percent-encoded characters that need no
/// encoding, to the same path without them. Returns `None` for other paths, and if the plain path is no media URL.
pub(super) fn redirect_to_plain(path: &str, query: Option<&str>) -> Option<Response> {
    let location = HeaderValue::from_str(&plain_url(path, query)?).ok()?;
    let mut response = respond::empty(StatusCode::PERMANENT_REDIRECT);
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, location);
    CachePolicy::NoStore.set(headers);
    // A script follows a redirect only if it may read it.
    cors::allow_origins(headers);
    Some(response)
}

fn plain_url(path: &str, query: Option<&str>) -> Option<String> {
    // Nearly all requests are spelled plainly, and cost nothing more.
    if !path.ends_with('/') && !path.contains('%') {
        return None;
    }
    let plain = decode_unreserved(path.strip_suffix('/').unwrap_or(path));
    // The redirect leads to media only: `%2e%2e` would lead out of them.
    if plain == path || MediaPath::parse(&plain).is_err() {
        return None;
    }
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    // Relative to the folder of all media, which a proxy may serve below a path of its own (`server.media_url`).
    let up = "../".repeat(path.matches('/').count());
    Some(format!("{up}{plain}{query}"))
}

/// Decodes the percent-encoded characters that RFC 3986 §2.3 calls unreserved, once; all others stay encoded.
fn decode_unreserved(path: &str) -> String {
    let mut pieces = path.split('%');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match split_unreserved(piece) {
            Some((character, rest)) => {
                plain.push(character);
                plain.push_str(rest);
            }
            None => {
                plain.push('%');
                plain.push_str(piece);
            }
        }
    }
    plain
}

/// Splits the text after a percent sign into the unreserved character that it encodes and the rest.
fn split_unreserved(piece: &str) -> Option<(char, &str)> {
    let (digits, rest) = piece.split_at_checked(2)?;
    let code = u8::from_str_radix(digits, 16).ok()?;
    let is_unreserved = code.is_ascii_alphanumeric() || matches!(code, b'-' | b'.' | b'_' | b'~');
    is_unreserved.then_some((char::from(code), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_spellings_lead_to_the_plain_url_and_others_stay() {
        let check = |path: &str, query: Option<&str>, expected: Option<&str>| {
            assert_eq!(plain_url(path, query).as_deref(), expected, "{path}");
        };
        let plain = "../image/x-y_NormalPreview.jpg";
        let of_folder = "../../image/x-y_NormalPreview.jpg";
        check("image/x-y_NormalPreview.jpg/", None, Some(of_folder));
        check("image/x%2Dy%5fNormalPreview%2Ejpg", None, Some(plain));
        check("im%61ge/x%2dy_NormalPreview.jpg/", None, Some(of_folder));
        check("image/x/", Some("agr=1%2D"), Some("../../image/x?agr=1%2D"));
        check("image/x/pricelist/", None, Some("../../../image/x/pricelist"));
        for other in [
            "",
            "image/x-y_NormalPreview.jpg",
            "image/X-Y_normalpreview.JPG",
            "image/",
            "image/x.jpg//",
            "image/%2e%2e",
            "image/%2e%2e/x.jpg",
            "image/x%252Dy.jpg",
            "image/x%2%44y.jpg",
            "image/x%2Fy.jpg",
            "image/x%+Ay.jpg",
            "image/x%",
            "image/x%å",
        ] {
            check(other, None, None);
        }
    }
}
