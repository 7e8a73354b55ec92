//! Decodes a part of a picture and reduces it in linear light.
//!
//! The original is decoded at its full size. With an index, it is decoded strip by strip, in parallel, and each
//! strip is reduced at once, so the decoded picture is never in memory as a whole. Without an index it is decoded
//! as a whole. It is decoded at a reduced scale only if the result is much smaller.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::bands::{StripDecoder, decode_bands, in_sequence};
use crate::colour::SrgbConversion;
use crate::direct::DirectError;
use crate::linear::{Downscale, LightPixels, PixelRegion, STRIP_PIXELS, SampleLight};
use crate::planar::{LightPlanes, PlanarReduction, PlanarTarget, has_abrupt_colours, is_planar};
use crate::resize::decode_eighths;
use crate::steps::whole_edge;
use crate::{
    BandDecoder, Orientation, ParallelMap, RasterError, RenderPath, RenderSource, collect, index,
};
use geometry::{Rect, Size};
use jpeg::codec::{
    self, ChromaSubsampling, CodecError, DecodeOutput, DecodeScale, PictureHeader, Pixels,
};
use jpeg::scan::{ByteRanges, ScanError};

/// The number of source pixels in a strip that is decoded at once.
///
/// Neighbouring strips decode a few rows twice, 3 % of a picture of 24 megapixels at this size.
const DECODE_STRIP_PIXELS: usize = 1 << 22;

/// A part of a picture, and the size to which it is reduced.
pub(crate) struct Reduction<'a> {
    pub(crate) source: &'a RenderSource<'a>,
    /// The file, with repaired headers.
    pub(crate) file: &'a [u8],
    pub(crate) header: PictureHeader,
    /// The part, in pixels of the upright original.
    pub(crate) region: Rect,
    /// The size of the result, upright.
    pub(crate) target: Size,
    /// The conversion of decoded pixels, before they are reduced.
    pub(crate) conversion: &'a SrgbConversion,
}

/// A reduced part of a picture as stored, not turned upright.
pub(crate) struct ReducedPicture<T> {
    pub(crate) value: T,
    pub(crate) decoded_pixels: u64,
    pub(crate) warning: Option<String>,
    pub(crate) render_path: RenderPath,
}

/// The decoder's information about a strip.
struct StripFacts {
    decoded_pixels: u64,
    warning: Option<String>,
}

/// Returns the meaning of the samples that `conversion` returns: light on a curve, or ink.
pub(crate) fn light_of(conversion: &SrgbConversion) -> SampleLight {
    if conversion.converted_channels() == 4 {
        SampleLight::Proportional
    } else {
        SampleLight::Srgb
    }
}

impl<T> ReducedPicture<T> {
    fn map<U>(self, change: impl FnOnce(T) -> U) -> ReducedPicture<U> {
        let Self { value, decoded_pixels, warning, render_path } = self;
        ReducedPicture { value: change(value), decoded_pixels, warning, render_path }
    }
}

impl Reduction<'_> {
    /// Decodes and reduces the part, and calls `finish` with each slab of rows, from the top down.
    ///
    /// Fails with [`RasterError::Abandoned`] if [`BandDecoder::should_continue`] returns false.
    pub(crate) fn run<T>(
        &self,
        finish: impl Fn(LightPixels) -> T,
    ) -> Result<ReducedPicture<Vec<T>>, RasterError> {
        // Of a level, planes are tried only where they are the result. Here they may have been tried and refused.
        if !self.is_level()
            && let Some(planes) = self.planes(ChromaSubsampling::Full)?
        {
            return Ok(planes.map(|planes| vec![finish(planes.to_rgb())]));
        }
        let stored = self.stored_region()?;
        let target = self.orientation().oriented_size(self.target);
        let eighths = self.eighths();
        let scale = DecodeScale::from_eighths(eighths);
        let bands = self.bands();
        if let Some(bands) = bands
            && scale == DecodeScale::FULL
            && let Some(reduced) = self.reduce_strips(&bands, stored, target, &finish)?
        {
            return Ok(reduced);
        }
        let (decoded, in_bands) = self.decode_whole(scale, bands)?;
        // Each pixel of a reduced decode shows `8 / eighths` pixels of the file, including the last pixel.
        let region = stored.scaled_by(f64::from(eighths) / 8.0, f64::from(eighths) / 8.0);
        let value = self.reduce_pixels(&decoded.value, region, target, &finish)?;
        let render_path = if in_bands { RenderPath::Bands } else { self.whole_path() };
        let decoded_pixels = decoded.value.size.pixels();
        Ok(ReducedPicture { value, decoded_pixels, warning: decoded.warning, render_path })
    }

    /// Decodes and reduces the part to planes with subsampled `chroma`, as stored; `None` if that is not possible.
    ///
    /// Fails with [`RasterError::Abandoned`] if [`BandDecoder::should_continue`] returns false.
    pub(crate) fn planes(
        &self,
        chroma: ChromaSubsampling,
    ) -> Result<Option<ReducedPicture<LightPlanes>>, RasterError> {
        // A reduced scale needs less time than planes of the full size.
        if !is_planar(&self.header, self.conversion) || self.eighths() != 8 {
            return Ok(None);
        }
        let target = PlanarTarget {
            region: self.stored_region()?,
            size: self.orientation().oriented_size(self.target),
            chroma,
            reversed: self.orientation().reversed_axes(),
        };
        if let Some(bands) = self.bands()
            && let Some(reduced) = self.reduce_plane_strips(&bands, target)?
        {
            return Ok(Some(reduced));
        }
        let Some(plan) = PlanarReduction::new(self.header.size, &self.header, target) else {
            return Ok(None);
        };
        let DecodeOutput { value: decoded, warning } = match codec::decode_planes(self.file) {
            Ok(decoded) => decoded,
            // The library can decode some samplings to pixels but not to planes.
            Err(CodecError::Unsupported(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if self.is_level() && has_abrupt_colours(&decoded) {
            return Ok(None);
        }
        Ok(Some(ReducedPicture {
            value: plan.reduce_whole(&decoded, self.parallel_map()),
            decoded_pixels: decoded.size.pixels(),
            warning,
            render_path: self.whole_path(),
        }))
    }

    /// Decodes and reduces the part to planes strip by strip; `None` if it cannot be decoded in strips.
    fn reduce_plane_strips(
        &self,
        bands: &BandDecoder<'_>,
        target: PlanarTarget,
    ) -> Result<Option<ReducedPicture<LightPlanes>>, RasterError> {
        let decoder = StripDecoder::new(bands, self.file, self.stored_rect());
        let columns = decoder.columns();
        let size = Size { width: columns.end - columns.start, ..self.header.size };
        let region =
            PixelRegion { x: target.region.x - f64::from(columns.start), ..target.region };
        let target = PlanarTarget { region, ..target };
        let Some(plan) = PlanarReduction::new(size, &self.header, target) else {
            return Ok(None);
        };
        let strips = plan.strips(DECODE_STRIP_PIXELS);
        let reduced = collect(bands.parallel_map, strips.len(), |number| {
            let strip = &strips[number];
            let rows = plan.picture_rows(strip, index(size.height));
            let (DecodeOutput { value: planes, warning }, top) = decoder.decode_planes(rows)?;
            let rows = plan.reduce_strip(strip, &planes, top);
            Ok((rows, StripFacts { decoded_pixels: planes.size.pixels(), warning }))
        });
        let mut rows = Vec::with_capacity(strips.len());
        let mut decoded_pixels = 0;
        let mut warning = None;
        for strip in reduced {
            match strip {
                Some(Ok((strip, facts))) => {
                    rows.push(strip);
                    decoded_pixels += facts.decoded_pixels;
                    warning = warning.or(facts.warning);
                }
                Some(Err(ScanError::Stopped)) => return Err(RasterError::Abandoned),
                // The whole file may still be readable.
                Some(Err(_)) | None => return Ok(None),
            }
        }
        let render_path = self.strips_path();
        let value = plan.join(rows);
        Ok(Some(ReducedPicture { value, decoded_pixels, warning, render_path }))
    }

    fn is_level(&self) -> bool {
        self.header.size != self.source.stored
    }

    /// Returns the random access to the file; `None` for a level, which has none.
    fn bands(&self) -> Option<BandDecoder<'_>> {
        self.source.bands.filter(|_| !self.is_level())
    }

    /// Returns the part in pixels of the file, as stored.
    ///
    /// Fails if the file is a level with fewer pixels than the result.
    fn stored_region(&self) -> Result<PixelRegion, RasterError> {
        let stored = PixelRegion::from(self.stored_rect());
        let stored = stored.rescaled(self.source.stored, self.header.size);
        let target = self.orientation().oriented_size(self.target);
        if self.is_level()
            && (stored.width + 1.0 < f64::from(target.width)
                || stored.height + 1.0 < f64::from(target.height))
        {
            let text = "a smaller copy was given for a step that needs the original";
            return Err(RasterError::Internal(text.to_owned()));
        }
        Ok(stored)
    }

    /// Returns the scale at which the file is decoded, in eighths.
    fn eighths(&self) -> u8 {
        decode_eighths(self.header.size, self.orientation().oriented_size(self.whole_target()))
    }

    /// Returns the path of a render that decodes the whole file at once.
    fn whole_path(&self) -> RenderPath {
        if self.is_level() { RenderPath::Level } else { RenderPath::Whole }
    }

    /// Returns the path of a render that decodes the file in strips.
    fn strips_path(&self) -> RenderPath {
        let is_whole = self.stored_rect().size() == self.header.size;
        if is_whole { RenderPath::Bands } else { RenderPath::Region }
    }

    fn orientation(&self) -> Orientation {
        self.source.orientation
    }

    fn parallel_map(&self) -> ParallelMap<'_> {
        self.source.bands.map_or(&in_sequence, |bands| bands.parallel_map)
    }

    /// Returns the part in pixels as stored.
    fn stored_rect(&self) -> Rect {
        self.orientation().to_stored(self.region, self.source.stored)
    }

    /// Returns the size of the whole upright picture at the scale of the result.
    fn whole_target(&self) -> Size {
        let upright = self.orientation().oriented_size(self.source.stored);
        Size {
            width: whole_edge(upright.width, self.target.width, self.region.width),
            height: whole_edge(upright.height, self.target.height, self.region.height),
        }
    }

    /// Decodes the whole file; also returns whether it was decoded in bands.
    fn decode_whole(
        &self,
        scale: DecodeScale,
        bands: Option<BandDecoder<'_>>,
    ) -> Result<(DecodeOutput<Pixels>, bool), RasterError> {
        if let Some(bands) = bands {
            let BandDecoder { scan, index, colour, parallel_map, should_continue } = bands;
            let bytes = ByteRanges::whole(self.file).with_cancellation(should_continue);
            match decode_bands(scan, index, colour, &bytes, scale, parallel_map) {
                Ok(decoded) => return Ok((decoded, true)),
                Err(ScanError::Stopped) => return Err(RasterError::Abandoned),
                // The whole file may still be readable.
                Err(_) => {}
            }
        }
        Ok((self.source.format.decode(self.file, scale)?, false))
    }

    /// Converts and reduces a decoded picture, in strips.
    fn reduce_pixels<T>(
        &self,
        decoded: &Pixels,
        region: PixelRegion,
        target: Size,
        finish: &impl Fn(LightPixels) -> T,
    ) -> Result<Vec<T>, RasterError> {
        let channels = self.conversion.converted_channels();
        let stride = index(decoded.size.width) * decoded.channels;
        let light = light_of(self.conversion).light_of();
        let slabs = Downscale::new(decoded.size, channels, region, target).slabs();
        let mut reduced = Vec::with_capacity(slabs.len());
        for slab in &slabs {
            let strips = slab.strips(STRIP_PIXELS);
            let pixels: Result<LightPixels, RasterError> =
                slab.reduce_strips(&strips, self.parallel_map(), |strip| {
                    let rows = slab.source_rows(strip);
                    let samples = &decoded.data[rows.start * stride..rows.end * stride];
                    Ok(slab.reduce_strip(strip, &self.conversion.convert(samples)?, light))
                });
            reduced.push(finish(pixels?));
        }
        Ok(reduced)
    }

    /// Decodes and reduces the part strip by strip; `None` if the picture cannot be decoded in strips.
    fn reduce_strips<T>(
        &self,
        bands: &BandDecoder<'_>,
        region: PixelRegion,
        target: Size,
        finish: &impl Fn(LightPixels) -> T,
    ) -> Result<Option<ReducedPicture<Vec<T>>>, RasterError> {
        let decoder = StripDecoder::new(bands, self.file, self.stored_rect());
        let columns = decoder.columns();
        let size = Size { width: columns.end - columns.start, ..self.header.size };
        let region = PixelRegion { x: region.x - f64::from(columns.start), ..region };
        let channels = self.conversion.converted_channels();
        let facts = Mutex::new(BTreeMap::new());
        let mut slabs = Vec::new();
        for slab in Downscale::new(size, channels, region, target).slabs() {
            let strips = slab.strips(DECODE_STRIP_PIXELS);
            let pixels = slab.reduce_strips::<DirectError>(&strips, bands.parallel_map, |strip| {
                let rows = slab.source_rows(strip);
                let decoded = decoder.decode(rows.clone())?;
                let fact = StripFacts {
                    decoded_pixels: decoded.decoded_pixels,
                    warning: decoded.warning.clone(),
                };
                facts.lock().unwrap_or_else(PoisonError::into_inner).insert(rows.start, fact);
                let samples = self.conversion.convert(decoded.samples())?;
                let light = light_of(self.conversion).light_of();
                Ok(slab.reduce_strip(strip, &samples, light))
            });
            match pixels {
                Ok(pixels) => slabs.push(finish(pixels)),
                Err(DirectError::Scan(ScanError::Stopped)) => return Err(RasterError::Abandoned),
                // The whole file may still be readable.
                Err(DirectError::Scan(_)) => return Ok(None),
                Err(DirectError::Raster(error)) => return Err(error),
            }
        }
        // In the order of the picture, so that the warning does not depend on threads.
        let facts = facts.into_inner().unwrap_or_else(PoisonError::into_inner);
        let decoded_pixels = facts.values().map(|strip| strip.decoded_pixels).sum();
        let warning = facts.into_values().find_map(|strip| strip.warning);
        let render_path = self.strips_path();
        Ok(Some(ReducedPicture { value: slabs, decoded_pixels, warning, render_path }))
    }
}
