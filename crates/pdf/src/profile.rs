//! Embedded ICC profiles, through moxcms to sRGB.

use std::sync::Arc;

use moxcms::TransformOptions;
use moxcms::{ColorProfile, DataColorSpace, Layout, RenderingIntent, Transform8BitExecutor};

use crate::luminance::{self, rgb_byte};
use crate::number::byte;

/// A profile as a way from its components to grey.
pub(super) struct GreyProfile {
    transform: Arc<Transform8BitExecutor>,
    components: usize,
    /// What each sRGB level becomes when the press's black is made black.
    levels: Option<Box<[u8; 256]>>,
}

/// Longest profile that is read, in bytes; those of presses have about 2 MB.
const PROFILE_BYTES_MAX: usize = 16 << 20;

impl GreyProfile {
    /// Reads the profile of a space of `components` components; `None` when it does not fit or is
    /// broken, and the caller falls back to the basic space of as many components.
    pub(super) fn parse(bytes: &[u8], components: usize) -> Option<GreyProfile> {
        if bytes.len() > PROFILE_BYTES_MAX {
            return None;
        }
        let source = ColorProfile::new_from_slice(bytes).ok()?;
        let (space, layout) = match components {
            1 => (DataColorSpace::Gray, Layout::Gray),
            3 => (DataColorSpace::Rgb, Layout::Rgb),
            4 => (DataColorSpace::Cmyk, Layout::Rgba),
            _ => return None,
        };
        if source.color_space != space {
            return None;
        }
        let options = TransformOptions {
            rendering_intent: RenderingIntent::RelativeColorimetric,
            ..TransformOptions::default()
        };
        let target = ColorProfile::new_srgb();
        let transform =
            source.create_transform_8bit(layout, &target, Layout::Rgb, options).ok()?;
        let levels = match components {
            4 => Some(Box::new(black_point_levels(&source, &*transform)?)),
            _ => None,
        };
        Some(GreyProfile { transform, components, levels })
    }

    /// Greys of whole pixels: `samples` is `[pixels][components]`, `greys` is `[pixels]`.
    ///
    /// What the profile cannot transform stays as it is in `greys`.
    pub(super) fn greys(&self, samples: &[u8], greys: &mut [u8]) {
        let mut pixels = vec![0; greys.len() * 3];
        let samples = &samples[..greys.len() * self.components];
        if self.transform.transform(samples, &mut pixels).is_ok() {
            if let Some(levels) = &self.levels {
                pixels.iter_mut().for_each(|level| *level = levels[usize::from(*level)]);
            }
            for (grey, pixel) in greys.iter_mut().zip(pixels.chunks_exact(3)) {
                *grey = rgb_byte(pixel[0], pixel[1], pixel[2]);
            }
        }
    }
}

/// Black point compensation, which moxcms lacks and readers do: the darkest neutral that the press
/// prints becomes black, and what lies between it and white is stretched in linear light.
///
/// That black is sRGB black on its way to the inks and back, as Little CMS finds it.
fn black_point_levels(
    source: &ColorProfile,
    transform: &Transform8BitExecutor,
) -> Option<[u8; 256]> {
    let options = TransformOptions {
        rendering_intent: RenderingIntent::Perceptual,
        ..TransformOptions::default()
    };
    let srgb = ColorProfile::new_srgb();
    let mut inks = [255; 4];
    if let Ok(separate) = srgb.create_transform_8bit(Layout::Rgb, source, Layout::Rgba, options) {
        separate.transform(&[0; 3], &mut inks).ok()?;
    }
    let mut black = [0; 3];
    transform.transform(&inks, &mut black).ok()?;
    let level = f32::from(rgb_byte(black[0], black[1], black[2])) / 255.0;
    // A black lighter than L* 50 is a broken profile.
    let black = luminance::srgb_decode(level).min(0.184);
    let mut levels = [0; 256];
    for (at, level) in (0..=u8::MAX).zip(&mut levels) {
        let linear = luminance::srgb_decode(f32::from(at) / 255.0);
        *level = byte(luminance::srgb_encode((linear - black) / (1.0 - black)));
    }
    Some(levels)
}

impl std::fmt::Debug for GreyProfile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Profile").field("components", &self.components).finish_non_exhaustive()
    }
}
