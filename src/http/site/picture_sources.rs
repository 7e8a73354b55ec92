//! The `<source>` elements of a picture: formats that a page offers besides the JPEG of the `<img>`.

use serde::Serialize;

use imaging::ImageFormat;
use model::media_url::RenditionExtension;

/// A format in which a page offers a picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct PictureSource {
    /// The MIME type. A browser uses it to decide whether it supports the format.
    mime: &'static str,
    /// The URLs in that format, as the value of `srcset`.
    srcset: String,
}

/// Lists the formats of a picture besides JPEG that need fewer bytes at equal quality: AVIF, if it is
/// pre-rendered. WebP is not offered, because at equal size it looks worse than our JPEG.
///
/// The URLs end in `.auto`: if the AVIF has not been rendered yet or was evicted, the service responds with a
/// JPEG at once. Browsers show it nevertheless.
///
/// `jpegs` is the value of `srcset` for JPEG, or one URL. The URLs of a standard rendition differ only in the
/// extension. If one of them does not end in the extension of JPEG, no format is listed.
pub(super) fn picture_sources(jpegs: &str, offers_avif: bool) -> Vec<PictureSource> {
    if !offers_avif {
        return Vec::new();
    }
    let candidates: Option<Vec<String>> = jpegs.split(", ").map(negotiated).collect();
    let srcset = candidates.map(|candidates| candidates.join(", "));
    let source =
        srcset.map(|srcset| PictureSource { mime: ImageFormat::Avif.mime_type(), srcset });
    source.into_iter().collect()
}

/// Changes a candidate of a `srcset`, `<URL> <width>w`, to the format that the browser prefers; `None` if it is
/// not a JPEG.
fn negotiated(candidate: &str) -> Option<String> {
    let end = candidate.find(' ').unwrap_or(candidate.len());
    let (address, width) = candidate.split_at(end);
    let name = address.strip_suffix(ImageFormat::Jpeg.extension())?;
    Some(format!("{name}{}{width}", RenditionExtension::Auto.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_offered_in_the_formats_that_are_there_at_once() {
        let check = |jpegs: &str, offers_avif: bool, expected: &[(&str, &str)]| {
            let found = picture_sources(jpegs, offers_avif);
            let found: Vec<_> = found.iter().map(|one| (one.mime, one.srcset.as_str())).collect();
            assert_eq!(found, expected, "{jpegs}");
        };
        let [thumbnail, preview] = ["https://cdn.jpg.example/a_T", "https://cdn.jpg.example/a_P"];
        let both =
            |extension: &str| format!("{thumbnail}{extension} 256w, {preview}{extension} 1024w");
        let [jpegs, negotiated] = [".jpg", ".auto"].map(both);
        check(&jpegs, false, &[]);
        check(&jpegs, true, &[("image/avif", negotiated.as_str())]);
        check("/media/image/a.jpg", true, &[("image/avif", "/media/image/a.auto")]);
        check("/media/image/a.png", true, &[]);
        check("/media/a.jpg 1w, /media/b.gif 2w", true, &[]);
        check("", true, &[]);
    }
}
