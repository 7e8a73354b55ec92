//! The formats in which pages offer a picture: `<source>` elements before the JPEG of an `<img>`.

use serde::Serialize;

use imaging::ImageFormat;

/// A format in which a page offers a picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct PictureSource {
    /// The MIME type, by which a browser decides whether it can show the format.
    mime: &'static str,
    /// The addresses in that format, as the value of `srcset`.
    srcset: String,
}

/// Lists the formats of a picture besides JPEG that take fewer bytes and look as good: AVIF, where it is made
/// ahead. A WebP of the same bytes looks worse than our JPEG.
///
/// `jpegs` is the value of `srcset` for JPEG, or one address. Standard renditions have the same address in every
/// format, except for the extension. Without addresses of ours there is no other format.
pub(super) fn picture_sources(jpegs: &str, offers_avif: bool) -> Vec<PictureSource> {
    // An AVIF that has to be made first would show later than any other format.
    let avif = offers_avif.then_some(ImageFormat::AVIF);
    avif.into_iter()
        .filter_map(|format| {
            let candidates = jpegs.split(", ").map(|candidate| in_format(candidate, format));
            let srcset = candidates.collect::<Option<Vec<_>>>()?.join(", ");
            Some(PictureSource { mime: format.mime_type(), srcset })
        })
        .collect()
}

/// A candidate of a `srcset`, `<address> <width>w`, in another format; `None` if it is no JPEG.
fn in_format(candidate: &str, format: ImageFormat) -> Option<String> {
    let end = candidate.find(' ').unwrap_or(candidate.len());
    let (address, width) = candidate.split_at(end);
    let name = address.strip_suffix(ImageFormat::JPEG.extension())?;
    Some(format!("{name}{}{width}", format.extension()))
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
        let [jpegs, avifs] = [".jpg", ".avif"].map(both);
        check(&jpegs, false, &[]);
        check(&jpegs, true, &[("image/avif", avifs.as_str())]);
        check("/media/image/a.jpg", true, &[("image/avif", "/media/image/a.avif")]);
        check("/media/image/a.png", true, &[]);
        check("/media/a.jpg 1w, /media/b.gif 2w", true, &[]);
        check("", true, &[]);
    }
}
