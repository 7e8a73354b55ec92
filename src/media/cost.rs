//! What a rendition costs: the memory that it takes while it is made, and the pixels that its client is charged
//! for.

use super::plan::{PlannedRendition, RenditionPlan};
use crate::runtime::limits::RENDER_PIXELS_MIN;
use imaging::{Orientation, RenderStep, decoded_size};
use model::Size;
use model::item::PictureFile;

/// Encoding this many pixels as JPEG takes as long as decoding one.
const ENCODED_PIXELS_PER_DECODED: u64 = 8;

impl RenditionPlan {
    /// The memory in bytes that rendering takes at its peak: the input, the decoded pixels with all
    /// intermediate results, and the output. A conservative estimate.
    ///
    /// `has_random_access` says whether the original allows random access, if that is known.
    #[must_use]
    pub fn memory_bytes(&self, has_random_access: Option<bool>) -> u64 {
        /// Headers, index and buffers.
        const SMALL: u64 = 4 << 20;
        let Some(first) = self.steps.first() else { return SMALL };
        let components = u64::from(self.source.components);
        let length = self.source.length;
        let only_cuts = self
            .steps
            .iter()
            .all(|step| matches!(step, RenderStep::Crop(_) | RenderStep::Watermark));
        let needed = match has_random_access {
            // The standard set may have to be made first.
            _ if self.is_small() => standard_memory_bytes(&self.source, has_random_access),
            Some(true) if only_cuts => {
                let cut = self.steps.iter().find_map(|step| match step {
                    // The samples, as planes, rotated, and the file.
                    RenderStep::Crop(crop) => {
                        Some(crop.size().pixels().saturating_mul(components * 4))
                    }
                    RenderStep::Fit { .. }
                    | RenderStep::Cover { .. }
                    | RenderStep::Scale { .. }
                    | RenderStep::Watermark => None,
                });
                // A mark alone rewrites the scan data from the mark on: about half the file. The
                // output of a progressive original comes from its working copy, at most 4 times as
                // long, and is held in memory.
                let copied = if self.source.progressive { 4 * length } else { 0 };
                cut.map_or(length / 2 + copied, |cut| cut.saturating_add(length))
            }
            Some(_) | None => self.memory_bytes_whole(first, has_random_access == Some(true)),
        };
        SMALL.saturating_add(needed)
    }

    /// The approximate number of pixels that rendering decodes, before its render path is known; 0 for the
    /// original's own picture data.
    ///
    /// If it is not known whether the original allows random access, it is assumed: nearly all do. A small
    /// rendition is assumed to come from the standard set, which is made once for all of them.
    #[must_use]
    pub fn decoded_pixels(&self, has_random_access: Option<bool>) -> u64 {
        /// The base of a standard set is somewhat larger than a Preview.
        const BASE_PIXELS: u64 = 1 << 20;
        let full = self.source.stored.pixels();
        let has_random_access = has_random_access.unwrap_or(true);
        let cut = self.steps.iter().find_map(|step| match step {
            RenderStep::Crop(crop) => Some(crop.size().pixels()),
            RenderStep::Fit { .. }
            | RenderStep::Cover { .. }
            | RenderStep::Scale { .. }
            | RenderStep::Watermark => None,
        });
        let pixels = match self.steps.first() {
            None => return 0,
            Some(_) if self.is_small() => BASE_PIXELS.min(full),
            Some(RenderStep::Fit { .. } | RenderStep::Cover { .. }) => full,
            // The part that is scaled, from the original.
            Some(RenderStep::Scale { region, .. }) if has_random_access => region.size().pixels(),
            Some(RenderStep::Scale { .. }) => full,
            Some(RenderStep::Crop(_)) if has_random_access => cut.unwrap_or(full),
            // Only the rows of blocks under the mark are decoded. Their share depends on the mark; an eighth of
            // the picture covers the default text.
            Some(RenderStep::Watermark) if has_random_access => cut.unwrap_or(full / 8),
            Some(RenderStep::Crop(_) | RenderStep::Watermark) => full,
        };
        pixels.max(RENDER_PIXELS_MIN)
    }

    /// The memory for a picture that is decoded as a whole, from its own file or a working copy.
    fn memory_bytes_whole(&self, first: &RenderStep, has_random_access: bool) -> u64 {
        let PictureFile { stored, length, orientation, .. } = self.source;
        let components = u64::from(self.source.components);
        let orientation = Orientation::from_tag(u32::from(orientation));
        let samples = |size: Size| size.pixels().saturating_mul(components);
        let decoded = samples(decoded_size(stored, orientation, first));
        // A progressive picture is held as coefficients, two bytes each, until its last scan.
        let by_scans = self.source.progressive && !has_random_access;
        let coefficients = if by_scans { samples(stored).saturating_mul(2) } else { 0 };
        // The file, or a longer working copy, and its bands; the pixels, the pixels rotated or
        // converted, and the output.
        let needed = length.saturating_mul(3).saturating_add(coefficients);
        needed.saturating_add(decoded.saturating_mul(3))
    }
}

impl PlannedRendition {
    /// The pixels that the client is charged for: what is decoded, or more where encoding takes longer.
    ///
    /// `has_random_access` is as for [`RenditionPlan::memory_bytes`].
    pub(super) fn charged_pixels(&self, has_random_access: Option<bool>) -> u64 {
        let cost = u64::from(self.format.encoding_cost());
        let encoded = self.size.pixels().saturating_mul(cost) / ENCODED_PIXELS_PER_DECODED;
        match self.plan.output {
            // The original's own picture data is sent as it is.
            None => 0,
            Some(_) => self.plan.decoded_pixels(has_random_access).max(encoded),
        }
    }
}

/// The memory in bytes to make a standard set: the file or its working copy, strips of decoded pixels, and the
/// pictures as linear samples.
pub(super) fn standard_memory_bytes(
    picture: &PictureFile,
    has_random_access: Option<bool>,
) -> u64 {
    /// What `imaging::standard_pictures` takes for strips and pictures of any size.
    const STRIPS: u64 = 100 << 20;
    let samples = picture.stored.pixels().saturating_mul(u64::from(picture.components));
    let whole = match (has_random_access, picture.progressive) {
        (Some(true), _) => 0,
        (Some(false) | None, false) => samples,
        // A progressive picture is held as coefficients, two bytes each, until its last scan.
        (Some(false) | None, true) => samples.saturating_mul(3),
    };
    picture
        .length
        .saturating_mul(4)
        .saturating_add(whole)
        .saturating_add(STRIPS.min(samples.saturating_mul(8)))
}
