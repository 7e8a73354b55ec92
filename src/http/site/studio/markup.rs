//! Writes the markup with which customers show a crop on their own pages: a `<picture>` as AVIF and JPEG in
//! several widths.
//!
//! `assets/js/markup.js` writes the same text while the visitor moves the frame; a test compares both.

use serde_json::Value;

use super::{CropPictures, ItemPicture, SiteRequest};
use crate::http::site::template_environment::escaped;
use imaging::ImageFormat;
use model::media_url::{MediaPath, PictureOperation};
use model::{ItemKey, ResizeSpec};

/// The widths that are offered if the settings allow any width.
const WIDTHS: [u32; 6] = [160, 320, 640, 1024, 1600, 2048];

/// The widths in which a photograph may be loaded without credentials, from its `.renditions.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OpenWidths {
    /// Width of the Hires.
    hires: u32,
    /// The largest open width of the whole photograph.
    pub(super) whole: u32,
    /// The smaller widths, in ascending order.
    pub(super) smaller: Vec<u32>,
}

impl OpenWidths {
    /// Loads the widths of the photograph `key`; `None` if they cannot be loaded.
    pub(super) async fn load(site: &SiteRequest, key: &ItemKey) -> Option<Self> {
        Self::from_json(&site.get(format!("/media/{key}.renditions.json")).await.ok()?)
    }

    fn from_json(listed: &Value) -> Option<Self> {
        let mut renditions = listed["renditions"].as_array()?.iter();
        let hires = renditions
            .find(|rendition| rendition["variant"] == "Normal" && rendition["usage"] == "Hires")?;
        let hires = hires["width"].as_u64()?;
        let mut smaller: Vec<u32> =
            listed["srcset"]["jpg"].as_str()?.split(", ").filter_map(width_of).collect();
        let whole = smaller.pop()?;
        if listed["widths"] == "any" {
            smaller = WIDTHS.into_iter().filter(|width| *width < whole).collect();
        }
        Some(Self { hires: u32::try_from(hires).ok()?, whole, smaller })
    }

    /// Chooses the widths in which a crop is offered, in ascending order: the width of its cut of the Preview, and
    /// further widths, each at most two thirds of the next one.
    fn of_crop(&self, pictures: &CropPictures) -> Vec<u32> {
        let open = open_width(pictures.hires.width, self);
        let mut chosen = vec![pictures.preview.width];
        let allowed: Vec<u32> =
            self.smaller.iter().copied().filter(|width| *width <= open).collect();
        for width in allowed.iter().rev() {
            if u64::from(*width) * 3 <= last(&chosen) * 2 {
                chosen.push(*width);
            }
        }
        chosen.reverse();
        // The settings may permit larger widths than the Preview.
        for width in allowed {
            if u64::from(width) * 2 >= last(&chosen) * 3 {
                chosen.push(width);
            }
        }
        chosen
    }
}

/// Returns the width that was chosen last; 0 if no width was chosen.
fn last(chosen: &[u32]) -> u64 {
    chosen.last().map_or(0, |width| u64::from(*width))
}

/// Returns the largest open width of a crop that is `width` pixels wide on the Hires, rounded to the nearest
/// pixel.
fn open_width(width: u32, widths: &OpenWidths) -> u32 {
    let whole = u64::from(widths.whole);
    let hires = u64::from(widths.hires.max(1));
    let open = (2 * u64::from(width) * whole + hires) / (2 * hires);
    u32::try_from(open).unwrap_or(u32::MAX)
}

/// Parses the width of a candidate of a `srcset`, `<URL> <width>w`.
fn width_of(candidate: &str) -> Option<u32> {
    candidate.rsplit_once(' ')?.1.strip_suffix('w')?.parse().ok()
}

/// Writes the markup of the crop `pictures`, with `headline` as its alternative text. Without `widths` the crop is
/// offered in one width.
pub(super) fn picture_markup(
    pictures: &CropPictures,
    widths: Option<&OpenWidths>,
    headline: &str,
) -> String {
    let CropPictures { hires, preview, .. } = pictures;
    let ItemPicture { url, width, height } = preview;
    let widths = widths.map_or_else(|| vec![*width], |widths| widths.of_crop(pictures));
    let avifs = candidates(preview, &widths, ImageFormat::Avif);
    let avif = ImageFormat::Avif.mime_type();
    let jpegs = match widths.len() {
        // The URL in `src` is the only candidate.
        1 => String::new(),
        _ => format!("{}\n", candidates(preview, &widths, ImageFormat::Jpeg)),
    };
    format!(
        "<!-- This is the preview. The original, {} × {}, with a key: {} -->\n<picture>\n  \
         <source\n    type=\"{avif}\"\n{avifs}>\n  \
         <img\n    src=\"{url}\"\n{jpegs}    width=\"{width}\" height=\"{height}\"\n    \
         alt=\"{}\" loading=\"lazy\">\n</picture>",
        hires.width,
        hires.height,
        hires.url,
        in_markup(headline)
    )
}

/// Writes the attributes `srcset` and `sizes` for one format, each on its own line. With a single width, writes
/// only `srcset`.
fn candidates(preview: &ItemPicture, widths: &[u32], format: ImageFormat) -> String {
    let own = preview.width;
    if let [width] = widths {
        return format!("    srcset=\"{}\"", candidate_address(preview, *width, format));
    }
    let mut listed = Vec::new();
    for width in widths {
        listed.push(format!("{} {width}w", candidate_address(preview, *width, format)));
    }
    let listed = listed.join(",\n            ");
    format!("    srcset=\"{listed}\"\n    sizes=\"(max-width: {own}px) 100vw, {own}px\"")
}

fn candidate_address(preview: &ItemPicture, width: u32, format: ImageFormat) -> String {
    // The width of the cut of the Preview is one of `widths`. It needs no resize operation.
    let resized = (width != preview.width).then_some(width);
    address(&preview.url, resized, format).unwrap_or_else(|| preview.url.clone())
}

/// Returns the URL of the picture at `href` in a different format, and in a different width if `width` is given.
fn address(href: &str, width: Option<u32>, format: ImageFormat) -> Option<String> {
    let (base, path) = href.rsplit_once("/media/")?;
    let mut path = MediaPath::parse(path).ok()?;
    if width.is_some() {
        let fit = ResizeSpec::Fit { width, height: None };
        path = path.with_operation(PictureOperation::Resize(fit)).ok()?;
    }
    Some(format!("{base}/media/{}", path.with_image_format(format)))
}

/// Escapes a text for an attribute in the markup that customers copy.
pub(super) fn in_markup(text: &str) -> String {
    escaped(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listed(srcset: &str, widths: &Value) -> Option<OpenWidths> {
        OpenWidths::from_json(&json!({
            "widths": widths,
            "renditions": [
                { "variant": "Watermark", "usage": "Hires", "width": 1 },
                { "variant": "Normal", "usage": "Hires", "width": 4000 },
            ],
            "srcset": { "jpg": srcset },
        }))
    }

    /// A crop of the Preview of a photograph of 4000 pixels.
    fn cut(width: u32) -> CropPictures {
        let link = |width: u32, name: &str| ItemPicture {
            url: format!("http://a/media/image/a_b-crop_w{width}_h9_x0_y0_{name}.jpg"),
            width,
            height: 9,
        };
        CropPictures {
            hires: link(4 * width, "NormalHires"),
            preview: link(width, "NormalPreview"),
            thumbnail: link(1, "NormalThumbnail"),
        }
    }

    #[test]
    fn a_crop_is_offered_in_widths_that_differ_by_a_half() {
        let ladder: Vec<u32> = (1..=20).map(|step| step * 80).collect();
        let srcset = |whole: u32| {
            let widths = ladder.iter().filter(|width| **width < whole).chain([&whole]);
            widths.map(|width| format!("http://a/b {width}w")).collect::<Vec<_>>().join(", ")
        };
        let check = |whole: u32, crop: u32, expected: &[u32]| {
            let widths = listed(&srcset(whole), &json!(ladder)).expect("widths");
            assert_eq!(widths.of_crop(&cut(crop)), expected, "{crop} of {whole}");
        };
        check(1000, 1000, &[80, 160, 240, 400, 640, 1000]);
        check(1000, 479, &[80, 160, 240, 479]);
        check(1000, 100, &[100]);
        // Less is open than the Preview shows, or more.
        check(500, 900, &[80, 160, 240, 400, 900]);
        check(2000, 500, &[80, 160, 320, 500, 800]);
        let any = listed("http://a/b 1000w", &json!("any")).expect("widths");
        assert_eq!(any.smaller, [160, 320, 640]);
        for text in ["", "http://a/b", "http://a/b 2x"] {
            assert_eq!(listed(text, &json!([])), None, "{text}");
        }
        assert_eq!(OpenWidths::from_json(&Value::Null), None);
    }

    #[test]
    fn a_size_precedes_the_watermark_in_an_address() {
        let crop = "http://a/media/x/media/image/a_b-crop_w9_h9_x0_y0";
        let marked = format!("{crop}-watermark_NormalPreview.jpg");
        let found = address(&marked, Some(3), ImageFormat::Avif);
        assert_eq!(found, Some(format!("{crop}-fit_w3-watermark_NormalPreview.avif")));
        let found = address(&marked, None, ImageFormat::Avif);
        assert_eq!(found, Some(format!("{crop}-watermark_NormalPreview.avif")));
    }

    #[test]
    fn a_picture_of_one_width_has_one_address_for_each_format() {
        let markup = picture_markup(&cut(3), None, "a \"b\"");
        let preview = "http://a/media/image/a_b-crop_w3_h9_x0_y0_NormalPreview";
        let hires = "http://a/media/image/a_b-crop_w12_h9_x0_y0_NormalHires.jpg";
        let expected = format!(
            "<!-- This is the preview. The original, 12 × 9, with a key: {hires} -->\n\
             <picture>\n  \
             <source\n    type=\"image/avif\"\n    srcset=\"{preview}.avif\">\n  \
             <img\n    src=\"{preview}.jpg\"\n    width=\"3\" height=\"9\"\n    \
             alt=\"a &quot;b&quot;\" loading=\"lazy\">\n</picture>"
        );
        assert_eq!(markup, expected);
    }

    #[test]
    fn a_headline_stays_inside_its_attribute() {
        assert_eq!(in_markup("a\n \"b\" <i>&amp;"), "a &quot;b&quot; &lt;i&gt;&amp;amp;");
    }
}
