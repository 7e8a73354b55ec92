//! Decodes JPEG 2000 images inside PDFs.

use hayro_jpeg2000::{ColorSpace, DecodeSettings, DecoderContext, Image};

use crate::PdfError;
use crate::budget::WorkBudget;
use crate::profile::GreyProfile;
use crate::samples::ImageSamples;
use crate::space::{PdfColourSpace, device_space};

/// A decoded JPEG 2000 picture.
pub(super) struct Jpeg2000Picture {
    /// Samples of 8 bits, without alpha.
    pub(super) samples: ImageSamples,
    /// `[height][width]`; 255 is opaque.
    pub(super) alpha: Option<Vec<u8>>,
    /// The colour space stated in the file.
    pub(super) space: Option<PdfColourSpace>,
}

/// Decodes a JPEG 2000 file. With `raw`, the indexes of its palette are not resolved.
///
/// Returns `None` if the file is damaged. Fails if it is too large.
pub(super) fn decode(
    data: &[u8],
    raw: bool,
    budget: &mut WorkBudget,
) -> Result<Option<Jpeg2000Picture>, PdfError> {
    // Not strict: as with other filters, the decodable part of damaged data is used.
    let settings =
        DecodeSettings { resolve_palette_indices: !raw, strict: false, target_resolution: None };
    let Ok(image) = Image::new(data, &settings) else { return Ok(None) };
    let width = usize::try_from(image.width()).unwrap_or(usize::MAX);
    let height = usize::try_from(image.height()).unwrap_or(usize::MAX);
    budget.check_image(width, height)?;
    let colours = usize::from(image.color_space().num_channels());
    let channels = colours + usize::from(image.has_alpha());
    // The decoder uses four bytes for each sample.
    budget.take_bytes(width * height * channels * 4)?;
    let mut context = DecoderContext::default();
    let Ok(decoded) = image.decode(&mut context) else { return Ok(None) };
    let bytes = decoded.data_u8();
    // The slices below rely on this, but the decoder does not guarantee it.
    if bytes.len() != width * height * channels || channels == 0 || colours == 0 {
        return Ok(None);
    }
    let space = match image.color_space() {
        ColorSpace::Icc { profile, .. } => match GreyProfile::parse(profile, colours) {
            Some(profile) => Some(PdfColourSpace::Icc { profile, components: colours }),
            // A broken profile is no reason to lose the picture.
            None => device_space(colours),
        },
        ColorSpace::Gray | ColorSpace::RGB | ColorSpace::CMYK | ColorSpace::Unknown { .. } => {
            device_space(colours)
        }
    };
    let (bytes, alpha) = if image.has_alpha() {
        let alpha = bytes.chunks_exact(channels).map(|pixel| pixel[colours]).collect();
        let colour = bytes.chunks_exact(channels).flat_map(|pixel| &pixel[..colours]);
        (colour.copied().collect(), Some(alpha))
    } else {
        (bytes, None)
    };
    let samples = ImageSamples { bytes, bits: 8, components: colours, width, height };
    Ok(Some(Jpeg2000Picture { samples, alpha, space }))
}
