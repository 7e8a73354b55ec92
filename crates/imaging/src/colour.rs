//! Colour management: converts from the profile of the original to sRGB.
//!
//! Uses the relative colorimetric intent without black point compensation and tetrahedral interpolation, as
//! libvips does by default. If a profile has only the perceptual table, that table is used, as the ICC standard
//! specifies and Pillow does. Profiles are untrusted input: a profile that cannot be parsed, or does not match the
//! number of components, is ignored, and the samples are treated as sRGB (grey, RGB) or as inks of the built-in
//! profile (CMYK).

use crate::{OutputColour, RasterError, RenderSource};
use jpeg::codec::Pixels;
use moxcms::{
    ColorProfile, DataColorSpace, InterpolationMethod, Layout, ProfileClass, RenderingIntent,
    Transform8BitExecutor, TransformOptions,
};
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

/// The default profile for CMYK: the general-purpose profile that libvips includes, "Chemical proof" by
/// Graeme W. Gill, in the public domain.
static CMYK_ICC: &[u8] = include_bytes!("../assets/cmyk.icc");

/// The transform for CMYK without a profile. The profile is built in, so it is never `None` in practice.
static DEFAULT_INKS: LazyLock<Option<Arc<Transform8BitExecutor>>> = LazyLock::new(|| {
    let profile = ColorProfile::new_from_slice(CMYK_ICC).ok()?;
    transform(&profile, Layout::Rgba)
});

/// Maximum difference in levels from sRGB for a profile to be treated as sRGB.
///
/// Copies of the sRGB profile round its curve and its primaries in several ways; all copies in use are
/// within this tolerance.
const SRGB_TOLERANCE: u8 = 2;

/// The levels of each component at which a profile is compared with sRGB.
const PROBES: [u8; 6] = [0, 24, 80, 140, 200, 255];

/// Rendering intents in order of preference; print profiles often have only one table.
const INTENTS: [RenderingIntent; 2] =
    [RenderingIntent::RelativeColorimetric, RenderingIntent::Perceptual];

fn options(rendering_intent: RenderingIntent) -> TransformOptions {
    TransformOptions {
        rendering_intent,
        // Gives the same result as other programs, which use only the curves.
        allow_use_cicp_transfer: false,
        interpolation_method: InterpolationMethod::Tetrahedral,
        ..TransformOptions::default()
    }
}

fn transform(from: &ColorProfile, layout: Layout) -> Option<Arc<Transform8BitExecutor>> {
    let srgb = ColorProfile::new_srgb();
    INTENTS.into_iter().find_map(|intent| {
        from.create_transform_8bit(layout, &srgb, Layout::Rgb, options(intent)).ok()
    })
}

/// Returns the number of components of pictures with this profile; `None` if the profile is not for pictures.
fn channels_of(profile: &ColorProfile) -> Option<usize> {
    let for_pictures = !matches!(
        profile.profile_class,
        ProfileClass::DeviceLink | ProfileClass::Abstract | ProfileClass::Named
    );
    let spaces = [(DataColorSpace::Gray, 1), (DataColorSpace::Rgb, 3), (DataColorSpace::Cmyk, 4)];
    let found = spaces.iter().find(|(space, _)| for_pictures && *space == profile.color_space);
    found.map(|(_, channels)| *channels)
}

/// Parses the profile; `None` if it is invalid or not for pictures with `channels` components.
fn matching_profile(icc: Option<&[u8]>, channels: usize) -> Option<ColorProfile> {
    let profile = ColorProfile::new_from_slice(icc?).ok()?;
    (channels_of(&profile) == Some(channels)).then_some(profile)
}

/// Returns whether a profile is valid for pictures with `channels` components.
pub fn is_profile_for(icc: Option<&[u8]>, channels: usize) -> bool {
    matching_profile(icc, channels).is_some()
}

/// A prepared conversion to sRGB, for pictures that are converted in parts.
pub(crate) struct SrgbConversion {
    channels: usize,
    kind: ConversionKind,
}

enum ConversionKind {
    /// The samples are in sRGB, or must stay in their colour space.
    None,
    /// The sRGB level for each level of grey.
    Curve(Vec<u8>),
    /// A transform to RGB; inks are inverted before it if they are stored with 0 for full ink.
    Transform { transform: Arc<Transform8BitExecutor>, inverted: bool },
}

impl SrgbConversion {
    /// Returns the conversion that leaves samples unchanged.
    fn none(channels: usize) -> Self {
        Self { channels, kind: ConversionKind::None }
    }

    /// Prepares the conversion of pixels with `channels` components. Grey stays one component, with the tone curve
    /// of sRGB.
    ///
    /// With `inverted`, inks are stored with 0 for full ink, as in files with Adobe's marker.
    fn new(icc: Option<&[u8]>, channels: usize, inverted: bool) -> Result<Self, RasterError> {
        let profile = matching_profile(icc, channels);
        let kind = match channels {
            1 => profile.as_ref().and_then(grey_curve).map(ConversionKind::Curve),
            3 => profile
                .as_ref()
                .and_then(|profile| transform(profile, Layout::Rgb))
                // Skipping the identity saves time and keeps the samples unchanged.
                .filter(|transform| !is_srgb(&**transform))
                .map(|transform| ConversionKind::Transform { transform, inverted: false }),
            _ => {
                let embedded =
                    profile.as_ref().and_then(|profile| transform(profile, Layout::Rgba));
                let transform = embedded.or_else(|| DEFAULT_INKS.clone());
                let transform = transform.ok_or_else(|| {
                    RasterError::Internal("the built-in inks are missing".to_owned())
                })?;
                Some(ConversionKind::Transform { transform, inverted })
            }
        };
        Ok(Self { channels, kind: kind.unwrap_or(ConversionKind::None) })
    }

    /// Prepares the conversion that `output` requires for decoded pixels of `source`.
    pub(crate) fn for_output(
        output: OutputColour,
        source: &RenderSource<'_>,
        channels: usize,
    ) -> Result<Self, RasterError> {
        match output {
            OutputColour::Srgb => Self::new(source.icc, channels, source.adobe),
            OutputColour::Keep => Ok(Self::none(channels)),
        }
    }

    /// Returns whether samples stay unchanged.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self.kind, ConversionKind::None)
    }

    /// Returns the number of channels after the conversion.
    pub(crate) fn converted_channels(&self) -> usize {
        match self.kind {
            ConversionKind::None | ConversionKind::Curve(_) => self.channels,
            ConversionKind::Transform { .. } => 3,
        }
    }

    /// Converts interleaved samples of any number of pixels; borrows them if they do not change.
    pub(crate) fn convert<'s>(&self, samples: &'s [u8]) -> Result<Cow<'s, [u8]>, RasterError> {
        match &self.kind {
            ConversionKind::None => Ok(Cow::Borrowed(samples)),
            ConversionKind::Curve(curve) => {
                Ok(samples.iter().map(|level| curve[usize::from(*level)]).collect())
            }
            ConversionKind::Transform { transform, inverted } => {
                let mut converted = vec![0; samples.len() / self.channels * 3];
                // Profiles count ink from 0; files with Adobe's marker count it from 255.
                let from: Cow<'_, [u8]> = if *inverted {
                    samples.iter().map(|level| !level).collect()
                } else {
                    Cow::Borrowed(samples)
                };
                transform
                    .transform(&from, &mut converted)
                    .map_err(|error| RasterError::Internal(format!("colour: {error}")))?;
                Ok(Cow::Owned(converted))
            }
        }
    }
}

/// Converts pixels to sRGB as described at [`SrgbConversion::new`].
pub(crate) fn to_srgb(
    pixels: Pixels,
    icc: Option<&[u8]>,
    inverted: bool,
) -> Result<Pixels, RasterError> {
    let conversion = SrgbConversion::new(icc, pixels.channels, inverted)?;
    let channels = conversion.converted_channels();
    let data = match conversion.convert(&pixels.data)? {
        Cow::Borrowed(_) => return Ok(pixels),
        Cow::Owned(data) => data,
    };
    Ok(Pixels { size: pixels.size, channels, data })
}

/// Inverts every sample, which converts inks from either convention to the other.
pub(crate) fn invert(mut pixels: Pixels) -> Pixels {
    for sample in &mut pixels.data {
        *sample = !*sample;
    }
    pixels
}

/// Returns whether a transform is the identity within [`SRGB_TOLERANCE`].
fn is_srgb(transform: &Transform8BitExecutor) -> bool {
    let mut probes = Vec::new();
    for red in PROBES {
        for green in PROBES {
            for blue in PROBES {
                probes.extend_from_slice(&[red, green, blue]);
            }
        }
    }
    let mut converted = vec![0; probes.len()];
    if transform.transform(&probes, &mut converted).is_err() {
        return false;
    }
    let mut pairs = probes.iter().zip(&converted);
    pairs.all(|(before, after)| before.abs_diff(*after) <= SRGB_TOLERANCE)
}

/// Computes the level on sRGB's tone curve for each of the 256 levels of a grey profile.
fn grey_curve(profile: &ColorProfile) -> Option<Vec<u8>> {
    // The library builds grey profiles only with a gamma, so the curve is replaced by the curve of sRGB.
    let mut grey = ColorProfile::new_gray_with_gamma(2.2);
    grey.gray_trc = ColorProfile::new_srgb().red_trc;
    let options = options(RenderingIntent::RelativeColorimetric);
    let transform =
        profile.create_transform_8bit(Layout::Gray, &grey, Layout::Gray, options).ok()?;
    let levels: Vec<u8> = (0..=255).collect();
    let mut curve = vec![0; levels.len()];
    transform.transform(&levels, &mut curve).ok()?;
    Some(curve)
}

#[cfg(test)]
mod tests {
    use super::*;
    use geometry::Size;

    fn pixels(channels: usize, data: &[u8]) -> Pixels {
        let width = u32::try_from(data.len() / channels).unwrap();
        Pixels { size: Size { width, height: 1 }, channels, data: data.to_vec() }
    }

    fn near(found: &[u8], expected: &[u8], tolerance: u8) {
        assert_eq!(found.len(), expected.len());
        for (a, b) in found.iter().zip(expected) {
            assert!(a.abs_diff(*b) <= tolerance, "{found:?} is not near {expected:?}");
        }
    }

    fn encoded(profile: &ColorProfile) -> Vec<u8> {
        profile.encode().expect("the profile can be written")
    }

    #[test]
    fn srgb_and_no_profile_leave_every_sample_unchanged() {
        let icc = encoded(&ColorProfile::new_srgb());
        let data = [1, 2, 3, 250, 128, 0];
        for icc in [None, Some(icc.as_slice()), Some(&b"no profile"[..])] {
            assert_eq!(to_srgb(pixels(3, &data), icc, false).unwrap().data, data);
        }
    }

    #[test]
    fn wide_gamuts_are_converted_as_lcms_does() {
        let adobe = encoded(&ColorProfile::new_adobe_rgb());
        let found = to_srgb(pixels(3, &[100, 150, 100, 128, 128, 128]), Some(&adobe), false);
        near(&found.unwrap().data, &[66, 151, 98, 127, 127, 127], 2);
        let p3 = encoded(&ColorProfile::new_display_p3());
        let found = to_srgb(pixels(3, &[200, 100, 100]), Some(&p3), false);
        near(&found.unwrap().data, &[213, 95, 97], 2);
    }

    #[test]
    fn a_profile_for_other_components_is_ignored() {
        let adobe = encoded(&ColorProfile::new_adobe_rgb());
        assert!(
            !is_profile_for(Some(&adobe), 1)
                && !is_profile_for(Some(CMYK_ICC), 3)
                && is_profile_for(Some(CMYK_ICC), 4)
        );
        let grey = to_srgb(pixels(1, &[9, 90]), Some(&adobe), false).unwrap();
        assert_eq!(grey.data, [9, 90]);
        let inks = pixels(4, &[0, 0, 0, 0]);
        assert_eq!(
            to_srgb(inks.clone(), Some(&adobe), false).unwrap(),
            to_srgb(inks, None, false).unwrap()
        );
    }

    #[test]
    fn grey_gets_the_tones_of_srgb() {
        let linear = encoded(&ColorProfile::new_gray_with_gamma(1.0));
        let found = to_srgb(pixels(1, &[0, 55, 255]), Some(&linear), false).unwrap();
        assert_eq!(found.channels, 1);
        near(&found.data, &[0, 128, 255], 2);
    }

    #[test]
    fn cmyk_becomes_white_and_black_in_both_conventions() {
        let plain = to_srgb(pixels(4, &[0, 0, 0, 0, 255, 255, 255, 255]), None, false).unwrap();
        let adobe = to_srgb(pixels(4, &[255, 255, 255, 255, 0, 0, 0, 0]), None, true).unwrap();
        assert_eq!(plain, adobe);
        near(&plain.data[..3], &[255, 255, 255], 3);
        assert!(plain.data[3..].iter().all(|level| *level < 50), "{:?}", plain.data);
    }
}
