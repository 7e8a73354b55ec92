//! Renders a picture by applying steps to it.
//!
//! Crops and watermarks are applied lazily: the necessary part of the original is decoded, turned, converted and
//! watermarked only at the end or before a change of scale. So a crop never processes pixels that it discards,
//! whether it comes before or after the watermark.
//!
//! Pictures are scaled in linear light, see [`crate::linear`], as planes where the rest of the render needs no pixels. Pixels that have to be converted to sRGB are
//! converted first, because only then do their samples determine the light.

use crate::bands::in_sequence;
use crate::blend::{SampleModel, blend_pixels, blend_planes, translate_mark};
use crate::colour::SrgbConversion;
use crate::format::{DecodableFile, UnencodedPicture, encode_planes};
use crate::linear::{PixelRegion, SampleLight, scale_region};
use crate::mark::Watermark;
use crate::orient::orient_planes;
use crate::reduce::{ReducedPicture, Reduction, light_of};
use crate::resize::crop_pixels;
use crate::steps::{check_scale, cover, fit};
use crate::{
    ImageFormat, OutputColour, OutputOptions, OutputSampling, RasterError, RenderJob,
    RenderOutput, RenderPath, RenderSource, RenderStage, RenderStep, ReversedAxes, StepError,
    colour, interest,
};
use geometry::{Rect, Size};
use jpeg::codec::{
    self, ChromaSubsampling, CodecError, ColourSpace, DecodeOutput, DecodeScale, PictureHeader,
    Pixels, Planes,
};
use std::borrow::Cow;

/// Renders a job: decodes the original, applies the steps and encodes the result.
///
/// `stage` is called at the start of each stage and again before each further part of it. A job may visit stages
/// several times and in any order. Once `stage` returns false, the render ends with [`RasterError::Abandoned`]. A
/// single part, such as decoding a whole picture, is not interrupted, except for decoding in bands, which calls
/// [`crate::BandDecoder::should_continue`] before each band.
///
/// Memory: for a crop a small multiple of the crop; for a whole picture its samples once or twice. Scaling needs
/// about 100 MB at most and the result twice. If the picture has an index and is scaled first, only strips of it
/// are in memory. Progressive originals need two more bytes for each sample of each component.
///
/// Damaged picture data still gives a picture, always the same one, with [`RenderOutput::warning`].
///
/// # Errors
///
/// [`RasterError`] for a file that is not a JPEG or is of an unsupported kind, for more pixels than allowed, and
/// for crops that extend beyond the picture.
pub fn render(
    job: &RenderJob<'_>,
    marker: &Watermark,
    stage: &dyn Fn(RenderStage) -> bool,
) -> Result<RenderOutput, RasterError> {
    let mut state = RenderState::new(job, marker, stage, open(&job.source, job.pixels_max)?);
    let mut steps = job.steps;
    while let Some((step, rest)) = steps.split_first() {
        state.apply(step, rest)?;
        steps = rest;
    }
    state.finish()
}

/// Opens the file, repairs its headers if necessary, and checks its size.
pub(crate) fn open<'a>(
    source: &RenderSource<'a>,
    pixels_max: u64,
) -> Result<DecodableFile<'a>, RasterError> {
    let opened = source.format.open(source.file)?;
    let size = opened.header.size;
    // The limit applies to the original, even if `file` is a smaller copy of it.
    if size.pixels().max(source.stored.pixels()) > pixels_max {
        return Err(RasterError::TooLarge { size, pixels_max });
    }
    // Crops are in pixels of the size that the caller expects, so they would cut a different part.
    if size != source.shows {
        let text = format!("the file holds {size} pixels, expected {}", source.shows);
        return Err(RasterError::Decode(text));
    }
    Ok(opened)
}

/// The state of a render between steps: base pixels, the visible region, and pending watermarks.
struct RenderState<'a> {
    job: &'a RenderJob<'a>,
    marker: &'a Watermark,
    stage: &'a dyn Fn(RenderStage) -> bool,
    file: Cow<'a, [u8]>,
    header: PictureHeader,
    /// Pixels after a change of scale; `None` while the base is the original.
    base: Option<Pixels>,
    /// The scaled and upright picture as planes, if all other steps are watermarks.
    planes: Option<Planes>,
    /// The part of the upright base that is still visible, in its pixels.
    region: Rect,
    /// Pending watermarks: the region at each watermark step, in pixels of the upright base.
    marks: Vec<Rect>,
    /// The windows that earlier cuts have chosen.
    windows: Vec<Rect>,
    /// True if the pixels of the base have been converted to sRGB.
    srgb: bool,
    decoded_pixels: u64,
    render_path: RenderPath,
    warning: Option<String>,
}

impl<'a> RenderState<'a> {
    fn new(
        job: &'a RenderJob<'a>,
        marker: &'a Watermark,
        stage: &'a dyn Fn(RenderStage) -> bool,
        opened: DecodableFile<'a>,
    ) -> RenderState<'a> {
        RenderState {
            job,
            marker,
            stage,
            file: opened.file,
            header: opened.header,
            base: None,
            planes: None,
            region: Rect::new(0, 0, job.source.orientation.oriented_size(job.source.stored)),
            marks: Vec::new(),
            windows: Vec::new(),
            srgb: false,
            decoded_pixels: 0,
            render_path: RenderPath::Whole,
            warning: None,
        }
    }

    fn begin(&self, stage: RenderStage) -> Result<(), RasterError> {
        if (self.stage)(stage) { Ok(()) } else { Err(RasterError::Abandoned) }
    }

    /// Applies a step; `rest` are the steps after it.
    fn apply(&mut self, step: &RenderStep, rest: &[RenderStep]) -> Result<(), RasterError> {
        let size = self.region.size();
        match step {
            RenderStep::Watermark => self.marks.push(self.region),
            RenderStep::Crop(crop) => {
                crop.checked_in(size).map_err(StepError::from)?;
                self.cut(*crop);
            }
            RenderStep::Scale { region, size: to } => {
                check_scale(*region, *to, size)?;
                self.cut(*region);
                self.scale(*to, rest)?;
            }
            RenderStep::Fit { long_px } => self.scale(fit(size, *long_px), rest)?,
            RenderStep::Cover { width, height } => {
                let (scaled, cut) = cover(size, *width, *height);
                self.scale_pixels(scaled)?;
                // The window is chosen by content, so the pixels are needed now.
                let pixels = self.marked_pixels()?;
                let window = interest::window(&pixels, cut);
                self.rebase(pixels);
                self.region = window;
                self.windows.push(window);
            }
        }
        Ok(())
    }

    /// Reduces the visible region to `part`, in its own pixels.
    fn cut(&mut self, part: Rect) {
        self.region = Rect { x: self.region.x + part.x, y: self.region.y + part.y, ..part };
    }

    fn rebase(&mut self, pixels: Pixels) {
        self.region = Rect::new(0, 0, pixels.size);
        self.base = Some(pixels);
    }

    /// Scales the region down to `target`; `rest` are the steps after this one.
    fn scale(&mut self, target: Size, rest: &[RenderStep]) -> Result<(), RasterError> {
        let output = self.job.output;
        let keeps_planes = target != self.region.size()
            && self.base.is_none()
            && self.marks.is_empty()
            && output.format == ImageFormat::Jpeg
            // A limit of bytes takes several encodes, which start from pixels.
            && output.bytes_max.is_none()
            && rest.iter().all(|step| *step == RenderStep::Watermark);
        if keeps_planes && let Some(planes) = self.reduce_to_planes(target)? {
            self.region = Rect::new(0, 0, target);
            self.planes = Some(planes);
            return Ok(());
        }
        self.scale_pixels(target)
    }

    /// Scales the region down to `target`, to pixels.
    fn scale_pixels(&mut self, target: Size) -> Result<(), RasterError> {
        // Without a change of size nothing is decoded yet, so `planes` can still keep the components.
        if target == self.region.size() {
            return Ok(());
        }
        let small = if self.base.is_none() && self.marks.is_empty() {
            self.reduce_original(target)?
        } else {
            let pixels = self.marked_pixels()?;
            let pixels = self.convert(pixels)?;
            self.begin(RenderStage::Decode)?;
            let light = match pixels.channels {
                4 => SampleLight::Proportional,
                _ => SampleLight::Srgb,
            };
            let region = PixelRegion::from(Rect::new(0, 0, pixels.size));
            let parallel_map = self.job.source.bands.map_or(&in_sequence as _, |b| b.parallel_map);
            scale_region(&pixels, region, target, light, parallel_map)
        };
        self.rebase(small);
        Ok(())
    }

    /// Decodes the region of the original, reduces it to `target` and turns it upright.
    fn reduce_original(&mut self, target: Size) -> Result<Pixels, RasterError> {
        self.begin(RenderStage::Decode)?;
        let orientation = self.job.source.orientation;
        let conversion = self.conversion()?;
        let reduced =
            self.reduction(target, &conversion).run(|slab| slab.encode(light_of(&conversion)))?;
        self.srgb = self.job.output.colour == OutputColour::Srgb;
        let size = orientation.oriented_size(target);
        let channels = conversion.converted_channels();
        let data = self.record_reduction(reduced)?.concat();
        Ok(orientation.orient(Pixels { size, channels, data }))
    }

    /// Decodes the region of the original, reduces it to planes of `target` pixels and turns them upright; `None` if
    /// it cannot be reduced as planes.
    fn reduce_to_planes(&mut self, target: Size) -> Result<Option<Planes>, RasterError> {
        self.begin(RenderStage::Decode)?;
        let orientation = self.job.source.orientation;
        let conversion = self.conversion()?;
        let chroma = match self.job.output.sampling {
            OutputSampling::Keep => self.header.chroma,
            OutputSampling::S420 => ChromaSubsampling::Quarter,
        };
        let Some(reduced) = self.reduction(target, &conversion).planes(chroma)? else {
            return Ok(None);
        };
        let planes = self.record_reduction(reduced)?.planes();
        let stored = Rect::new(0, 0, planes.size);
        Ok(Some(orient_planes(planes, stored, orientation)))
    }

    /// Returns the conversion of decoded pixels to the colours of the output.
    fn conversion(&self) -> Result<SrgbConversion, RasterError> {
        let channels = self.header.space.channels();
        SrgbConversion::for_output(self.job.output.colour, &self.job.source, channels)
    }

    fn reduction<'b>(&'b self, target: Size, conversion: &'b SrgbConversion) -> Reduction<'b> {
        Reduction {
            source: &self.job.source,
            file: &self.file,
            header: self.header,
            region: self.region,
            target,
            conversion,
        }
    }

    /// Records what was decoded for a reduced picture and returns the picture.
    fn record_reduction<T>(&mut self, reduced: ReducedPicture<T>) -> Result<T, RasterError> {
        self.decoded_pixels += reduced.decoded_pixels;
        self.warning = self.warning.take().or(reduced.warning);
        self.render_path = reduced.render_path;
        // The caller may cancel between decoding and turning.
        self.begin(RenderStage::Decode)?;
        Ok(reduced.value)
    }

    /// Returns the pixels of the region with the pending watermarks blended in.
    fn marked_pixels(&mut self) -> Result<Pixels, RasterError> {
        let region = self.region;
        let pixels = match self.base.take() {
            Some(base) => crop_pixels(base, region),
            None => self.decode()?,
        };
        if self.marks.is_empty() {
            return Ok(pixels);
        }
        // Marks are in sRGB, so pixels that have to be converted are converted before the blend.
        let mut pixels = self.convert(pixels)?;
        self.begin(RenderStage::Blend)?;
        let model = match pixels.channels {
            1 => SampleModel::Grey,
            3 => SampleModel::Rgb,
            _ => SampleModel::Inks { inverted: self.job.source.adobe },
        };
        for canvas in std::mem::take(&mut self.marks) {
            let (stamp, position) = self.marker.prepare(canvas.size());
            blend_pixels(&mut pixels, &stamp, translate_mark(position, canvas, region), model);
        }
        Ok(pixels)
    }

    /// Converts to sRGB if the output requires it and the pixels are not converted yet.
    fn convert(&mut self, pixels: Pixels) -> Result<Pixels, RasterError> {
        if self.srgb || self.job.output.colour == OutputColour::Keep {
            return Ok(pixels);
        }
        self.srgb = true;
        self.begin(RenderStage::Decode)?;
        let source = &self.job.source;
        colour::to_srgb(pixels, source.icc, source.adobe)
    }

    /// Decodes the region of the original at its full size and turns it upright.
    fn decode(&mut self) -> Result<Pixels, RasterError> {
        self.begin(RenderStage::Decode)?;
        let source = &self.job.source;
        // The file is a level, a smaller copy of the original.
        if self.header.size != source.stored {
            let text = "a smaller copy was given for a step that needs the original";
            return Err(RasterError::Internal(text.to_owned()));
        }
        let orientation = source.orientation;
        let stored = orientation.to_stored(self.region, source.stored);
        let DecodeOutput { value, warning } =
            source.format.decode(&self.file, DecodeScale::FULL)?;
        self.record_decode(value.size, warning);
        let pixels = crop_pixels(value, stored);
        // The caller may cancel between decoding and turning.
        self.begin(RenderStage::Decode)?;
        Ok(orientation.orient(pixels))
    }

    fn record_decode(&mut self, size: Size, warning: Option<String>) {
        self.decoded_pixels += u64::from(size.width) * u64::from(size.height);
        self.warning = self.warning.take().or(warning);
    }

    fn finish(mut self) -> Result<RenderOutput, RasterError> {
        let size = self.region.size();
        let channels = self.header.space.channels();
        let keeps_profile = self.job.output.colour == OutputColour::Keep
            && self.job.output.format.stores_unconverted(channels)
            && colour::is_profile_for(self.job.source.icc, channels);
        let file = match self.planes()? {
            Some(planes) => {
                self.begin(RenderStage::Encode)?;
                encode_planes(&planes, self.job.output)?
            }
            None => {
                let pixels = self.marked_pixels()?;
                let pixels = self.convert(pixels)?;
                self.begin(RenderStage::Encode)?;
                self.encode(&pixels)?
            }
        };
        let RenderState { windows, decoded_pixels, render_path, warning, .. } = self;
        Ok(RenderOutput {
            file,
            size,
            windows,
            keeps_profile,
            decoded_pixels,
            render_path,
            warning,
        })
    }

    /// Encodes the pixels with the highest quality that complies with [`OutputOptions::bytes_max`].
    fn encode(&self, pixels: &Pixels) -> Result<Vec<u8>, RasterError> {
        let output = self.job.output;
        let file = self.encode_at(pixels, output.quality)?;
        let Some(bytes_max) = output.bytes_max else { return Ok(file) };
        if file.len() as u64 <= bytes_max {
            return Ok(file);
        }
        // The best quality that fits is below `high`. If no quality fits, the file of quality 1 is the result.
        let mut best = self.encode_at(pixels, 1)?;
        let mut low = 1;
        let mut high = output.quality;
        while high - low > 1 {
            self.begin(RenderStage::Encode)?;
            let middle = low + (high - low) / 2;
            let file = self.encode_at(pixels, middle)?;
            if file.len() as u64 <= bytes_max {
                best = file;
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(best)
    }

    fn encode_at(&self, pixels: &Pixels, quality: u8) -> Result<Vec<u8>, RasterError> {
        let RenderJob { source, output, .. } = self.job;
        let picture = UnencodedPicture {
            pixels: Cow::Borrowed(pixels),
            output: OutputOptions { quality, ..*output },
            original: self.header,
            is_quarter_turned: source.orientation.swaps_axes(),
            inks_inverted: source.adobe,
        };
        output.format.encode(picture, source.icc)
    }

    /// Returns the region with its watermarks as planes, if it was scaled to planes or the components of the file can be
    /// kept.
    ///
    /// Chroma is then neither upsampled nor downsampled again, and colour conversions are avoided.
    fn planes(&mut self) -> Result<Option<Planes>, RasterError> {
        let planes = match self.planes.take() {
            Some(planes) => Some(planes),
            None => self.kept_planes()?,
        };
        let Some(mut planes) = planes else { return Ok(None) };
        if !self.marks.is_empty() {
            self.begin(RenderStage::Blend)?;
        }
        for canvas in std::mem::take(&mut self.marks) {
            let (stamp, position) = self.marker.prepare(canvas.size());
            blend_planes(&mut planes, &stamp, translate_mark(position, canvas, self.region));
        }
        Ok(Some(planes))
    }

    /// Returns the region as planes of the file. That requires no change of scale, colour or sampling, edges on the
    /// chroma grid, and no limit of bytes, which needs several encodes.
    fn kept_planes(&mut self) -> Result<Option<Planes>, RasterError> {
        let job = self.job;
        let PictureHeader { size, space, chroma } = self.header;
        let orientation = job.source.orientation;
        let stored = orientation.to_stored(self.region, size);
        let same_sampling = match job.output.sampling {
            OutputSampling::Keep => true,
            OutputSampling::S420 => {
                chroma == ChromaSubsampling::Quarter || space == ColourSpace::Grey
            }
        };
        let has_planes = matches!(space, ColourSpace::Grey | ColourSpace::YCbCr)
            && chroma != ChromaSubsampling::Other;
        let unconverted = self.base.is_none()
            && job.output.colour == OutputColour::Keep
            && job.output.format == ImageFormat::Jpeg
            && job.output.bytes_max.is_none();
        if !(same_sampling
            && has_planes
            && unconverted
            && is_on_chroma_grid(stored, orientation.reversed_axes(), chroma))
        {
            return Ok(None);
        }
        self.begin(RenderStage::Decode)?;
        let decoded = match codec::decode_planes(&self.file) {
            Ok(decoded) => decoded,
            // The library can decode some samplings to pixels but not to planes.
            Err(CodecError::Unsupported(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        self.record_decode(decoded.value.size, decoded.warning);
        Ok(Some(orient_planes(decoded.value, stored, orientation)))
    }
}

/// Returns whether a stored rectangle starts on a boundary between chroma samples, and on reversed axes also ends
/// on a boundary.
fn is_on_chroma_grid(stored: Rect, reversed: ReversedAxes, chroma: ChromaSubsampling) -> bool {
    let (across, down) = chroma.cell();
    let columns_fit = stored.x.is_multiple_of(across)
        && (!reversed.columns || (stored.x + stored.width).is_multiple_of(across));
    let rows_fit = stored.y.is_multiple_of(down)
        && (!reversed.rows || (stored.y + stored.height).is_multiple_of(down));
    columns_fit && rows_fit
}

#[cfg(test)]
mod scale_tests;
#[cfg(test)]
pub(crate) mod tests;
