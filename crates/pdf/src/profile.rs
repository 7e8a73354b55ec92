//! Applies embedded ICC profiles, converting to sRGB with moxcms.

use std::sync::Arc;

use moxcms::{
    ColorProfile, DataColorSpace, Layout, RenderingIntent, Transform8BitExecutor, TransformOptions,
};

use crate::luminance::{self, rgb_byte};
use crate::number::byte;

/// A transformation from a profile's components to grey.
#[derive(Clone)]
pub(super) struct GreyProfile {
    transform: Arc<Transform8BitExecutor>,
    components: usize,
    /// The output of each sRGB level after black point compensation.
    levels: Option<Box<[u8; 256]>>,
}

/// The maximum length of a profile in bytes; profiles of printing presses have about 2 MB.
const PROFILE_BYTES_MAX: usize = 16 << 20;

impl GreyProfile {
    /// Parses the profile of a space with `components` components. Returns `None` if it is unsuitable or broken;
    /// the caller then uses the device space with this number of components.
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
        // The number of components in the PDF determines the layout of the samples, so the profile must have the
        // same number.
        if source.color_space != space {
            return None;
        }
        let options = TransformOptions {
            // Maps the white of the paper to white; black is mapped by the levels below.
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

    /// Converts whole pixels to grey: `samples` is `[pixels][components]`, `greys` is `[pixels]`.
    ///
    /// `greys` is not changed if the profile cannot be applied.
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

/// Computes black point compensation, which readers apply and moxcms lacks: the darkest neutral that the press
/// prints becomes black, and the range up to white is stretched in linear light.
///
/// The darkest neutral is found as in Little CMS, by converting sRGB black to ink and back.
fn black_point_levels(
    source: &ColorProfile,
    transform: &Transform8BitExecutor,
) -> Option<[u8; 256]> {
    let options = TransformOptions {
        rendering_intent: RenderingIntent::Perceptual,
        ..TransformOptions::default()
    };
    let srgb = ColorProfile::new_srgb();
    // Full ink is used as black if the profile does not convert to ink.
    let mut inks = [255; 4];
    if let Ok(separate) = srgb.create_transform_8bit(Layout::Rgb, source, Layout::Rgba, options) {
        separate.transform(&[0; 3], &mut inks).ok()?;
    }
    let mut black = [0; 3];
    transform.transform(&inks, &mut black).ok()?;
    let level = f32::from(rgb_byte(black[0], black[1], black[2])) / 255.0;
    // A black lighter than L* 50 means a broken profile.
    let black = luminance::srgb_decode(level).min(0.184);
    let mut levels = [0; 256];
    for (at, level) in (0..=u8::MAX).zip(&mut levels) {
        let linear = luminance::srgb_decode(f32::from(at) / 255.0);
        *level = byte(luminance::srgb_encode((linear - black) / (1.0 - black)));
    }
    Some(levels)
}
