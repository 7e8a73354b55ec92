//! Converts samples to linear light and back.
//!
//! sRGB (IEC 61966-2-1) spaces its 256 levels unevenly: the darkest are 0.0003 of full light apart, the brightest
//! 0.009. Sums of light are therefore kept as `f32`, whose steps are far below the smallest difference of two
//! levels.

use std::sync::LazyLock;

/// The meaning of 8-bit samples: the amount of light or ink of each level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleLight {
    /// Levels on the tone curve of sRGB. Also used for other RGB and grey profiles, whose curves are nearly the
    /// same.
    Srgb,
    /// Levels proportional to an area, as for the inks of CMYK: the eye averages the areas of dots.
    Proportional,
}

/// The number of equal intervals of light for which [`LightTables::levels`] has an entry.
///
/// The number is more than 255 · 12.92, the inverse of the smallest distance of two levels of sRGB, so at most one
/// boundary between levels lies in an interval.
const INTERVALS: usize = 4096;
/// `INTERVALS` as an `f32`.
const INTERVALS_F32: f32 = 4096.0;

/// Tables between levels and light.
pub(super) struct LightTables {
    /// The light of each level, 0 to 1.
    light: [f32; 256],
    /// The smallest light that is rounded to a level above this one; infinite for the last level.
    boundaries: [f32; 256],
    /// The level at the start of each interval of light.
    levels: Vec<u8>,
}

static SRGB: LazyLock<LightTables> = LazyLock::new(|| LightTables::new(srgb_light));
static PROPORTIONAL: LazyLock<LightTables> = LazyLock::new(|| LightTables::new(|level| level));

/// Computes the light of an encoded value; both are 0 to 1.
fn srgb_light(encoded: f64) -> f64 {
    if encoded <= 0.04045 { encoded / 12.92 } else { ((encoded + 0.055) / 1.055).powf(2.4) }
}

impl SampleLight {
    pub(super) fn tables(self) -> &'static LightTables {
        match self {
            Self::Srgb => &SRGB,
            Self::Proportional => &PROPORTIONAL,
        }
    }

    /// Returns the function from a level to its light.
    pub(crate) fn light_of(self) -> impl Fn(u8) -> f32 + Copy {
        let light = &self.tables().light;
        |level| light[usize::from(level)]
    }
}

impl LightTables {
    #[expect(clippy::cast_possible_truncation, reason = "tables hold light as f32")]
    fn new(light_of: fn(f64) -> f64) -> Self {
        let all = std::array::from_fn::<u8, 256, _>(|level| level.to_le_bytes()[0]);
        let light = all.map(|level| light_of(f64::from(level) / 255.0) as f32);
        let mut boundaries = all.map(|level| light_of((f64::from(level) + 0.5) / 255.0) as f32);
        boundaries[255] = f32::INFINITY;
        let mut level = 0u8;
        let mut start = 0.0;
        let levels = std::iter::repeat_with(|| {
            while start >= boundaries[usize::from(level)] {
                level += 1;
            }
            start += 1.0 / INTERVALS_F32;
            level
        });
        let levels = levels.take(INTERVALS + 1).collect();
        Self { light, boundaries, levels }
    }

    /// Returns the light of a level with a fraction, from the straight line between the two levels beside it; levels
    /// outside 0 to 255 are clamped.
    #[inline]
    pub(super) fn light_at(&self, level: f32) -> f32 {
        let level = level.clamp(0.0, 255.0);
        let below = whole(level);
        let low = self.light[below];
        let high = self.light[(below + 1).min(255)];
        low + (high - low) * (level - level.floor())
    }

    /// Returns the level of `light` with its fraction, the inverse of [`LightTables::light_at`]; light outside 0 to 1
    /// is clamped.
    #[inline]
    pub(super) fn exact_level(&self, light: f32) -> f32 {
        let light = light.clamp(0.0, 1.0);
        let nearest = usize::from(self.level(light));
        let below = if light < self.light[nearest] { nearest - 1 } else { nearest.min(254) };
        let low = self.light[below];
        let high = self.light[below + 1];
        float(below) + (light - low) / (high - low)
    }

    /// Returns the level nearest to `light` on the tone curve; light outside 0 to 1 is clamped.
    #[inline]
    pub(super) fn level(&self, light: f32) -> u8 {
        let light = light.clamp(0.0, 1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the product is between 0 and INTERVALS"
        )]
        let level = self.levels[(light * INTERVALS_F32) as usize];
        level + u8::from(light >= self.boundaries[usize::from(level)])
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 255")]
fn whole(level: f32) -> usize {
    level as usize
}

#[expect(clippy::cast_precision_loss, reason = "at most 255")]
fn float(level: usize) -> f32 {
    level as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_is_restored_and_halves_are_rounded_to_the_nearest() {
        for light in [SampleLight::Srgb, SampleLight::Proportional] {
            let tables = light.tables();
            for level in 0..=255u8 {
                assert_eq!(tables.level(tables.light[usize::from(level)]), level);
            }
            let mut last = 0;
            for step in 0..=u16::MAX {
                let exact = f64::from(step) / 65_535.0;
                let level = tables.level(f32::from(step) / 65_535.0);
                assert!(level >= last, "{light:?}: the curve rises");
                let encoded = match light {
                    SampleLight::Srgb if exact <= 0.003_130_8 => exact * 12.92,
                    SampleLight::Srgb => 1.055 * exact.powf(1.0 / 2.4) - 0.055,
                    SampleLight::Proportional => exact,
                };
                assert!((encoded * 255.0 - f64::from(level)).abs() < 0.501, "{light:?} {exact}");
                last = level;
            }
        }
    }

    #[test]
    fn levels_with_fractions_are_restored() {
        let tables = SampleLight::Srgb.tables();
        for step in 0..=2550u16 {
            let level = f32::from(step) / 10.0;
            let found = tables.exact_level(tables.light_at(level));
            assert!((found - level).abs() < 0.01, "{found}, not {level}");
        }
    }

    #[test]
    fn light_outside_the_range_is_clamped() {
        for light in [SampleLight::Srgb, SampleLight::Proportional] {
            assert_eq!(light.tables().level(-0.2), 0);
            assert_eq!(light.tables().level(1.3), 255);
        }
    }
}
