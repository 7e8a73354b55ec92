//! The cost of a rendition: the memory to render it, and the pixels that its client is charged for.

use super::plan::{PlannedRendition, RenditionPlan};
use super::recipes::StandardUsage;
use imaging::{Orientation, RenderStep, decoded_size, output_size};
use model::Size;
use model::item::PictureFile;

/// Minimum pixels that a render is charged: a small one costs more than its pixels.
const RENDER_PIXELS_MIN: u64 = 100_000;
/// The usual length of the metadata before the picture data of an original, in bytes.
const HEAD_BYTES: u64 = 256 << 10;
/// Pixels that are encoded as JPEG in the time in which one pixel is decoded.
const ENCODED_PIXELS_PER_DECODED: u64 = 8;

impl RenditionPlan {
    /// Returns the peak memory of rendering in bytes: the input, the decoded pixels with all intermediate results,
    /// and the output. A conservative estimate.
    ///
    /// `has_random_access` says whether the original allows random access, if known.
    pub fn memory_bytes(&self, has_random_access: Option<bool>) -> u64 {
        /// Headers, index and buffers.
        const SMALL: u64 = 4 << 20;
        let Some(output) = self.output else { return SMALL };
        let encoder = output.format.encoder_bytes(self.size().pixels(), output.sampling);
        let needed = if let Some(standard) = self.standard {
            // The set may have to be made first. Its base is decoded, reduced and marked afterwards. The coefficients
            // of a marked picture are in the memory of the encoder.
            let working = standard.working_bytes;
            let set = standard_memory_bytes(&self.source, working, has_random_access);
            let base = match standard.usage {
                StandardUsage::Scaled(base) => base.pixels().saturating_mul(9),
                StandardUsage::Stored | StandardUsage::Marked => 0,
            };
            set.max(base.saturating_add(encoder))
        } else if has_random_access == Some(true) && self.is_direct() {
            self.memory_bytes_direct()
        } else {
            self.memory_bytes_whole(has_random_access == Some(true)).saturating_add(encoder)
        };
        SMALL.saturating_add(needed)
    }

    /// Returns whether the store contains the rendition, so that it is read instead of rendered.
    pub(super) fn is_stored(&self) -> bool {
        match self.standard {
            Some(standard) => standard.usage == StandardUsage::Stored,
            // The original's own picture data.
            None => self.output.is_none(),
        }
    }

    /// Returns the maximum number of bytes that are read from the store for the rendition.
    pub(super) fn read_bytes(&self) -> u64 {
        match self.standard {
            Some(standard) => standard.set_bytes,
            // The metadata before the picture data.
            None if self.output.is_none() => HEAD_BYTES.min(self.source.length),
            None => self.source.length,
        }
    }

    /// Returns the size of the result in pixels.
    fn size(&self) -> Size {
        let upright = self.source.upright();
        // Planning has already computed this size, so the steps are valid.
        output_size(upright, &self.steps).unwrap_or(upright)
    }

    /// Returns the approximate number of pixels that rendering decodes, before its render path is known; 0 for the
    /// original's own picture data.
    ///
    /// Random access is assumed if it is not known, because nearly all originals allow it. The standard set, the
    /// source of most small renditions, is assumed to exist: it is made once for all of them.
    pub fn decoded_pixels(&self, has_random_access: Option<bool>) -> u64 {
        /// The base of a standard set is somewhat larger than a Preview.
        const BASE_PIXELS: u64 = 1 << 20;
        if self.output.is_none() {
            return 0;
        }
        let full = self.source.stored.pixels();
        let has_random_access = has_random_access.unwrap_or(true);
        if self.standard.is_some() {
            return BASE_PIXELS.min(full).max(RENDER_PIXELS_MIN);
        }
        let pixels = match self.steps.first() {
            // The part that is scaled, from the original.
            Some(RenderStep::Scale { region, .. }) if has_random_access => region.size().pixels(),
            // Only the rows of blocks under a mark are decoded. Their share depends on the mark; an eighth of
            // the picture covers the default text.
            Some(RenderStep::Crop(_) | RenderStep::Watermark)
                if has_random_access && self.is_direct() =>
            {
                self.cut().map_or(full / 8, Size::pixels)
            }
            _ => full,
        };
        pixels.max(RENDER_PIXELS_MIN)
    }

    /// Returns whether only the visible part is decoded, if the original allows random access. True for a JPEG in
    /// the colours of its original whose only steps are crops and marks, as in [`imaging::DirectPlan`].
    fn is_direct(&self) -> bool {
        let keeps_original = self.output.is_some_and(|output| output.keeps_original());
        let is_only_cut_or_marked = self
            .steps
            .iter()
            .all(|step| matches!(step, RenderStep::Crop(_) | RenderStep::Watermark));
        // A mark on the whole picture is drawn on separate planes, which four inks do not have. Without a crop,
        // only a picture that is stored upright retains the rest of its blocks.
        let can_be_marked = match self.steps.as_slice() {
            [RenderStep::Watermark] => self.source.components < 4 && self.source.orientation <= 1,
            [RenderStep::Watermark, ..] => self.source.components < 4,
            _ => true,
        };
        keeps_original && can_be_marked && is_only_cut_or_marked
    }

    /// Returns the size of the crop, if there is one.
    fn cut(&self) -> Option<Size> {
        self.steps.iter().find_map(|step| match step {
            RenderStep::Crop(crop) => Some(crop.size()),
            RenderStep::Fit { .. }
            | RenderStep::Cover { .. }
            | RenderStep::Scale { .. }
            | RenderStep::Watermark => None,
        })
    }

    /// Returns the memory for a picture of which only the visible part is decoded.
    fn memory_bytes_direct(&self) -> u64 {
        let length = self.source.length;
        match self.cut() {
            // The samples, as planes and rotated, and the file.
            Some(cut) => {
                let samples = cut.pixels().saturating_mul(u64::from(self.source.components));
                samples.saturating_mul(4).saturating_add(length)
            }
            // A mark alone rewrites the scan data from the mark on, about half the file. The output of a
            // progressive original comes from its working copy, at most 4 times as long, and is held in memory.
            None if self.source.progressive => length / 2 + 4 * length,
            None => length / 2,
        }
    }

    /// Returns the memory for a picture that is decoded as a whole, from its own file or a working copy.
    fn memory_bytes_whole(&self, has_random_access: bool) -> u64 {
        let PictureFile { stored, length, orientation, .. } = self.source;
        let components = u64::from(self.source.components);
        let orientation = Orientation::from_tag(u32::from(orientation));
        let first = self.steps.first();
        let decoded = first.map_or(stored, |first| decoded_size(stored, orientation, first));
        let decoded = decoded.pixels().saturating_mul(components);
        // A progressive picture is held as coefficients, two bytes each, until its last scan.
        let by_scans = self.source.progressive && !has_random_access;
        let samples = stored.pixels().saturating_mul(components);
        let coefficients = if by_scans { samples.saturating_mul(2) } else { 0 };
        // The file, or a longer working copy, and its bands; the pixels, the pixels rotated or
        // converted, and the pixels of the result.
        let needed = length.saturating_mul(3).saturating_add(coefficients);
        needed.saturating_add(decoded.saturating_mul(3))
    }
}

impl PlannedRendition {
    /// Returns the pixels that the client is charged for: the decoded pixels, or more if encoding lasts longer, as
    /// for a picture that is encoded several times to keep to a number of bytes.
    ///
    /// `has_random_access` is as for [`RenditionPlan::memory_bytes`].
    pub(super) fn charged_pixels(&self, has_random_access: Option<bool>) -> u64 {
        // The original's own picture data is sent as it is.
        let Some(output) = self.plan.output else { return 0 };
        let cost = u64::from(self.format.encoding_cost()) * u64::from(output.encodes_max());
        let encoded = self.size.pixels().saturating_mul(cost) / ENCODED_PIXELS_PER_DECODED;
        self.plan.decoded_pixels(has_random_access).max(encoded)
    }
}

/// Returns the memory in bytes to make a standard set: the file or its working copy, the whole picture if the
/// original does not allow random access, and the `working_bytes` of the recipes.
pub(super) fn standard_memory_bytes(
    picture: &PictureFile,
    working_bytes: u64,
    has_random_access: Option<bool>,
) -> u64 {
    let samples = picture.stored.pixels().saturating_mul(u64::from(picture.components));
    let whole = if has_random_access == Some(true) {
        0
    } else if picture.progressive {
        // A progressive picture is held as coefficients, two bytes each, until its last scan.
        samples.saturating_mul(3)
    } else {
        samples
    };
    picture.length.saturating_mul(4).saturating_add(whole).saturating_add(working_bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::media::test_plans::{FILE_BYTES, picture, plan_of, settings};

    /// The pixels of the picture in these tests.
    const FULL: u64 = 6000 * 4000;

    /// Memory and decoded pixels of a rendition of a picture with random access.
    fn costs(picture: &PictureFile, rest: &str) -> (u64, u64) {
        let planned = plan_of(picture, rest, &settings(&[])).expect(rest);
        (planned.plan.memory_bytes(Some(true)), planned.plan.decoded_pixels(Some(true)))
    }

    #[test]
    fn a_jpeg_that_is_cut_or_marked_costs_what_it_shows() {
        let picture = picture(6000, 4000);
        for rest in [
            "-crop_w600_h400.jpg",
            "-crop_w600_h400-watermark.jpg",
            "-watermark-crop_w600_h400.jpg",
        ] {
            let (memory, pixels) = costs(&picture, rest);
            assert_eq!(pixels, 600 * 400, "{rest}");
            assert!(memory < 600 * 400 * 12 + FILE_BYTES + (5 << 20), "{rest}: {memory}");
        }
        let (memory, pixels) = costs(&picture, "-watermark.jpg");
        assert!(pixels == FULL / 8 && memory < 6 << 20, "{memory} bytes, {pixels} pixels");
        assert_eq!(costs(&picture, ".jpg"), (4 << 20, 0));
    }

    #[test]
    fn what_is_decoded_as_a_whole_costs_the_whole() {
        let upright = picture(6000, 4000);
        let turned = PictureFile { orientation: 6, ..picture(4000, 6000) };
        let inks = PictureFile { components: 4, ..picture(6000, 4000) };
        for (picture, rest) in [
            (&upright, "-crop_w600_h400.webp"),
            (&upright, "-crop_w600_h400.avif"),
            (&upright, "-watermark.webp"),
            (&upright, "-watermark-fit_w600.jpg"),
            (&upright, "-watermark-crop_w600_h400-fit_w100.jpg"),
            (&upright, "-crop_w600_h400-fill_w900_h900.jpg"),
            (&turned, "-watermark.jpg"),
            (&inks, "-watermark.jpg"),
            (&inks, "-watermark-crop_w600_h400.jpg"),
        ] {
            let (memory, pixels) = costs(picture, rest);
            assert!(memory >= FULL * 3, "{rest}: {memory} bytes");
            assert_eq!(pixels, FULL, "{rest}");
        }
    }

    #[test]
    fn a_small_rendition_costs_the_whole_where_no_base_is_kept() {
        let pixels = |width, height, rest: &str| costs(&picture(width, height), rest).1;
        // Between the open picture and twice its base there is no base.
        let no_base = 2400 * 1600;
        assert_eq!(pixels(2400, 1600, "-fit_w640_NormalPreview.jpg"), no_base);
        assert_eq!(pixels(2400, 1600, "-crop_w600_h400_NormalPreview.jpg"), no_base);
        assert_eq!(pixels(2400, 1600, "_WatermarkPreview.webp"), no_base);
        assert_eq!(pixels(2400, 1600, "_NormalPreview.jpg"), 1 << 20);
        assert_eq!(pixels(2400, 1600, "_WatermarkPreview.jpg"), 1 << 20);
        assert_eq!(pixels(6000, 4000, "-fit_w640_NormalPreview.jpg"), 1 << 20);
        assert_eq!(pixels(6000, 4000, "-crop_w600_h400_NormalPreview.webp"), 1 << 20);
    }

    #[test]
    fn encoders_take_memory_for_each_pixel_of_the_result() {
        let memory = |rest: &str| costs(&picture(6000, 4000), rest).0;
        let (small, large) = (600 * 400, 2400 * 1600);
        for (extension, bytes_per_pixel) in [("jpg", 6), ("webp", 7), ("avif", 100)] {
            let [less, more] =
                ["-fit_w600", "-fit_w2400"].map(|rest| memory(&format!("{rest}.{extension}")));
            assert_eq!(more - less, (large - small) * bytes_per_pixel, "{extension}");
        }
        // Small renditions have an encoder of their own, which takes more than making the set they come from.
        let settings = settings(&[("media.open_px", "4000"), ("media.widths", "any")]);
        let original = picture(12_000, 8000);
        let [jpg, avif] = ["jpg", "avif"].map(|extension| {
            let rest = format!("-fit_w4000_NormalPreview.{extension}");
            plan_of(&original, &rest, &settings).expect(&rest).plan.memory_bytes(Some(true))
        });
        assert_eq!(avif - jpg, 4000 * 2667 * 40);
    }

    #[test]
    fn a_limit_of_bytes_is_charged_for_every_encode() {
        let presets = json!({
            "free": { "fit": [2000, 0], "quality": 80 },
            "limited": { "fit": [2000, 0], "quality": 80, "max_bytes": 50000 },
        });
        let settings = settings(&[("media.presets", &presets.to_string())]);
        let charged = |rest: &str| {
            let planned = plan_of(&picture(6000, 4000), rest, &settings).expect(rest);
            planned.charged_pixels(Some(true))
        };
        let pixels = 2000 * 1333;
        assert_eq!(charged("-preset_free.webp"), FULL);
        assert_eq!(charged("-preset_limited.webp"), pixels * 12 * 9 / 8);
        assert_eq!(charged("-preset_free.avif"), pixels * 100 / 8);
        assert_eq!(charged("-preset_limited.avif"), pixels * 100 * 9 / 8);
        assert_eq!(charged(".jpg"), 0);
    }
}
