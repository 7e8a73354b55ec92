//! Renders a plan from its inputs, by the cheapest render path that the original allows.

use std::sync::Arc;

use super::cache::{BlobExtent, BodyPart, RenditionBody};
use super::inputs::{RenderInputs, RenderSourceBytes, give_up_parts, indexed_source, read_whole};
use super::original::{IndexedPicture, JpegHead, OpenOriginal, StandardPicture, StandardSet};
use super::plan::RenditionPlan;
use super::recipes::{StandardRecipes, StandardUsage};
use super::render_error::RenderError;
use super::rights::{DescribedPixels, EffectiveRights};
use super::settings::DecodeLimits;
use super::{MediaState, RenditionAnswer};
use crate::runtime::{compute, telemetry};
use imaging::{
    BandDecoder, CoefficientError, CoefficientLimits, DirectError, DirectOutput, DirectPlan,
    ImageFormat, Orientation, OutputColour, OutputOptions, RenderJob, RenderOutput, RenderPath,
    RenderStage, RenderStep, ShouldContinue, mark_file, output_size, profile_fits, shown_region,
};
use jpeg::header::HeaderLimits;
use jpeg::rewrite::{rewrite_metadata, rewrite_with_tables};
use jpeg::scan::{ByteRanges, patch::PatchedScan};
use metadata::{Caption, EmbeddedMetadata, EmbeddingPicture, PictureColours, WriteOptions};
use model::{Rect, Size};

/// Bytes after a local mark that are sent from memory; more are streamed from the store.
const TAIL_READ_BYTES_MAX: u64 = 256 * 1024;
/// Maximum number of scans of a picture in a standard set. Our encoder writes at most 16.
const STANDARD_SCANS_MAX: u32 = 64;
/// The EXIF orientation of a picture whose first row is at the top and starts at the left.
const UPRIGHT: u8 = 1;

/// The part of the original that metadata describes if the visible part is unknown. It is empty, so metadata
/// describes no region that may have been cut off.
const UNKNOWN_PART: Rect = Rect::new(0, 0, Size::new(0, 0));

/// The texts that can be embedded in a rendition. The plan selects them.
pub(super) struct RenditionTexts {
    caption: Caption,
    rights: Arc<EffectiveRights>,
}

impl RenditionTexts {
    pub(super) fn new(answer: &RenditionAnswer) -> Self {
        let association = answer.association.as_ref();
        Self {
            caption: answer.entry.caption_of(association).0.clone(),
            rights: answer.entry.effective_rights(association),
        }
    }
}

/// Callbacks of a render.
#[derive(Clone, Copy)]
pub(super) struct RenderHooks<'a> {
    /// Called when a stage begins or continues. If it returns false, the render stops.
    pub(super) begin: &'a dyn Fn(RenderStage) -> bool,
    /// Called in the long loops of a stage, on all threads. If it returns false, the render stops.
    pub(super) should_continue: ShouldContinue<'a>,
}

/// The file of a whole picture, and its random-access index if it has one.
pub(super) struct FullPicture<'a> {
    pub(super) jpeg: Vec<u8>,
    /// The index with the segments that define the colours of the components.
    indexed: Option<(&'a IndexedPicture, Vec<u8>)>,
}

impl<'a> FullPicture<'a> {
    /// Creates the picture from its file `jpeg` and the head of its original.
    pub(super) fn new(
        jpeg: Vec<u8>,
        head: &JpegHead,
        picture: Option<&'a IndexedPicture>,
    ) -> Self {
        let indexed = picture.map(|picture| (picture, picture.colour_segments(head)));
        Self { jpeg, indexed }
    }

    /// Returns the decoder of bands on several threads.
    pub(super) fn bands<'b>(
        &'b self,
        should_continue: ShouldContinue<'b>,
    ) -> Option<BandDecoder<'b>> {
        let (picture, colour) = self.indexed.as_ref()?;
        Some(BandDecoder {
            scan: picture.scan(),
            index: picture.index(),
            colour,
            parallel_map: &compute::run_parallel,
            should_continue,
        })
    }
}

/// The inputs of one render.
struct RenditionMaker<'a> {
    inner: &'a MediaState,
    plan: &'a RenditionPlan,
    texts: &'a RenditionTexts,
    hooks: RenderHooks<'a>,
    original: &'a OpenOriginal,
    head: &'a JpegHead,
    icc: Option<&'a [u8]>,
}

impl MediaState {
    /// Renders the plan from `inputs`, or reads the inputs if `None`. If derived files are damaged, rebuilds them
    /// and repeats the render once.
    pub(super) fn make(
        &self,
        plan: &RenditionPlan,
        texts: &RenditionTexts,
        hooks: RenderHooks<'_>,
        inputs: Option<RenderInputs>,
    ) -> Result<(RenditionBody, RenderPath), RenderError> {
        match self.make_once(plan, texts, hooks, inputs) {
            Err(RenderError::Original(cause)) if cause.is_derived() => {
                tracing::warn!("{cause}");
                let asset = &plan.source;
                self.originals.rebuild_files(asset.blob, asset.length, &compute::run_parallel)?;
                self.make_once(plan, texts, hooks, None)
            }
            other => other,
        }
    }

    fn make_once(
        &self,
        plan: &RenditionPlan,
        texts: &RenditionTexts,
        hooks: RenderHooks<'_>,
        inputs: Option<RenderInputs>,
    ) -> Result<(RenditionBody, RenderPath), RenderError> {
        let inputs = match inputs {
            Some(inputs) => inputs,
            None => self.read_on_worker(plan, hooks)?,
        };
        let RenderInputs { original, head, source } = inputs;
        let icc = head.header.icc(&head.bytes);
        let maker = RenditionMaker {
            inner: self,
            plan,
            texts,
            hooks,
            original: &original,
            head: &head,
            icc: icc.as_deref(),
        };
        // Without an output the picture data is sent from the store, so nothing is decoded.
        let Some(output) = plan.output else {
            return Ok((maker.original_body(), RenderPath::Original));
        };
        let source = match source {
            RenderSourceBytes::StandardSet(set) => {
                return maker.serve_from_standard_set(&set, output);
            }
            RenderSourceBytes::MissingSet => match maker.make_standard_set()? {
                Some(set) => return maker.serve_from_standard_set(&set, output),
                // The picture cannot be decoded. The render below reports that.
                None => maker.read_picture()?,
            },
            RenderSourceBytes::Unchanged
            | RenderSourceBytes::Parts { .. }
            | RenderSourceBytes::Whole { .. } => source,
        };
        maker.render_picture(source, output)
    }

    /// Reads the inputs of a plan on the worker, and rebuilds missing derived files.
    fn read_on_worker(
        &self,
        plan: &RenditionPlan,
        hooks: RenderHooks<'_>,
    ) -> Result<RenderInputs, RenderError> {
        if !(hooks.begin)(RenderStage::Read) {
            return Err(RenderError::Abandoned);
        }
        let asset = &plan.source;
        let original = self.originals.open(asset.blob, asset.length, &compute::run_parallel)?;
        self.read_inputs(plan, original)
    }
}

impl RenditionMaker<'_> {
    /// Returns the metadata to embed in a file with these pixels and this ICC profile.
    fn metadata(&self, pixels: DescribedPixels, icc: Option<&[u8]>) -> EmbeddedMetadata {
        let RenditionTexts { caption, rights } = self.texts;
        let plan = self.plan;
        match (plan.caption, plan.rights) {
            (Some(_), _) if plan.credits_only => {
                let picture = self.embedding_picture(pixels, icc);
                let options = WriteOptions { orientation: UPRIGHT, gps: false, picture };
                metadata::build_embedded(&caption.credits(), &rights.short, &[], options)
            }
            (Some(_), stated) => {
                let orientation = match pixels {
                    DescribedPixels::Stored => plan.source.orientation,
                    DescribedPixels::Upright(_) => UPRIGHT,
                };
                let picture = self.embedding_picture(pixels, icc);
                let options = WriteOptions { orientation, gps: plan.keep_gps, picture };
                let stated = stated.map(|_| rights.shown(plan, pixels)).unwrap_or_default();
                let exif = self.head.header.exif(&self.head.bytes);
                metadata::build_embedded(caption, &stated, &exif, options)
            }
            // Thumbnails carry no caption (contract media-25).
            (None, Some(_)) => {
                let options = WriteOptions { orientation: UPRIGHT, gps: false, picture: None };
                metadata::build_embedded(&Caption::default(), &rights.short, &[], options)
            }
            (None, None) => EmbeddedMetadata::default(),
        }
    }

    /// Returns the size and the colours of a file with these pixels and this ICC profile, for EXIF.
    fn embedding_picture(
        &self,
        pixels: DescribedPixels,
        icc: Option<&[u8]>,
    ) -> Option<EmbeddingPicture> {
        let RenditionPlan { source, steps, output, .. } = self.plan;
        let size = match pixels {
            DescribedPixels::Stored => source.stored,
            DescribedPixels::Upright(_) => output_size(source.upright(), steps).ok()?,
        };
        let colours = match output.map(|output| output.colour) {
            Some(OutputColour::Srgb) => PictureColours::Srgb,
            Some(OutputColour::Keep) | None => {
                PictureColours::Original { has_profile: icc.is_some() }
            }
        };
        Some(EmbeddingPicture { size, colours })
    }

    /// Returns the metadata as JPEG segments, for a file with the original's own picture data.
    fn segments(&self) -> Vec<u8> {
        self.metadata(DescribedPixels::Stored, self.icc).jpeg_segments()
    }

    fn extent(&self, range: std::ops::Range<u64>) -> BodyPart {
        let asset = &self.plan.source;
        BodyPart::Store(BlobExtent { blob: asset.blob, blob_length: asset.length, range })
    }

    /// Returns the original's own picture data with new metadata.
    fn original_body(&self) -> RenditionBody {
        let JpegHead { bytes, header } = self.head;
        let (head, scans) = rewrite_metadata(bytes, header, &self.segments(), self.icc);
        // Only the head is rewritten. The body refers to the scans in the store.
        let scans = scans.start as u64..scans.end as u64;
        RenditionBody::new([BodyPart::Memory(head.into()), self.extent(scans)])
    }

    /// Reads the picture on the worker.
    fn read_picture(&self) -> Result<RenderSourceBytes, RenderError> {
        self.inner.read_picture(self.plan, self.original, self.head)
    }

    /// Renders the picture from its parts, or from the whole if they do not suffice.
    fn render_picture(
        &self,
        source: RenderSourceBytes,
        output: OutputOptions,
    ) -> Result<(RenditionBody, RenderPath), RenderError> {
        let (picture, jpeg) = match source {
            RenderSourceBytes::Parts { picture, direct, bytes } => {
                if let Some(rendered) = self.direct(&picture, &direct, bytes, output)? {
                    return Ok(rendered);
                }
                let jpeg = read_whole(self.original, Some(&picture))?;
                (Some(picture), jpeg)
            }
            RenderSourceBytes::Whole { picture, jpeg } => (picture, jpeg),
            RenderSourceBytes::Unchanged
            | RenderSourceBytes::StandardSet(_)
            | RenderSourceBytes::MissingSet => {
                return Err(RenderError::Picture("the picture was not read".to_owned()));
            }
        };
        if let Some(reason) = self.original.whole_decode_reason() {
            telemetry::count_abandoned_path("not-indexed");
            tracing::info!(original = %self.original.hash(), "no random access, decoding the whole picture: {reason}");
        }
        self.decode_and_render(&FullPicture::new(jpeg, self.head, picture.as_ref()), output)
    }

    /// Renders a crop or mark by decoding only the affected part, whose `bytes` were read; `None` if that is not
    /// possible.
    fn direct(
        &self,
        picture: &IndexedPicture,
        direct: &DirectPlan,
        bytes: ByteRanges<'static>,
        output: OutputOptions,
    ) -> Result<Option<(RenditionBody, RenderPath)>, RenderError> {
        let colour = picture.colour_segments(self.head);
        let indexed = indexed_source(self.plan, picture, &colour);
        let watermark = &self.inner.settings.watermark;
        let limits = &self.inner.settings.limits.header;
        let bytes = bytes.with_cancellation(self.hooks.should_continue);
        let begin = self.hooks.begin;
        match direct.run(&indexed, &bytes, watermark, output.quality, limits, begin) {
            Ok(DirectOutput::File { jpeg, size, render_path }) => {
                count_pixels(size.pixels());
                let channels = picture.scan().components.len();
                // A damaged profile, or a profile for a different number of channels, would only spoil the
                // colours.
                let icc = self.icc.filter(|icc| profile_fits(Some(icc), channels));
                Ok(Some((self.finish_file(&jpeg, output.format, icc, &[])?, render_path)))
            }
            Ok(DirectOutput::Part(small)) => self.finish_crop(direct, &small, output).map(Some),
            Ok(DirectOutput::Patched(patched)) => {
                Ok(Some((self.patched_body(picture, patched)?, RenderPath::LocalMark)))
            }
            Err(DirectError::Raster(cause)) => Err(cause.into()),
            Err(DirectError::Scan(error)) => give_up_parts(picture, error).map(|()| None),
        }
    }

    /// Renders the crop from the small JPEG `small` that contains it.
    fn finish_crop(
        &self,
        direct: &DirectPlan,
        small: &[u8],
        output: OutputOptions,
    ) -> Result<(RenditionBody, RenderPath), RenderError> {
        let &DirectPlan::Part { shows, crop, marked } = direct else {
            return Err(RenderError::Picture("no part was requested".to_owned()));
        };
        let mut steps = vec![RenderStep::Crop(crop)];
        steps.extend(marked.then_some(RenderStep::Watermark));
        let source = self.render_source(small, shows.size(), shows.size(), None);
        let rendered = self.render(source, &steps, output)?;
        let icc = self.icc.filter(|_| rendered.keeps_profile);
        Ok((self.finish_file(&rendered.file, output.format, icc, &[])?, RenderPath::Region))
    }

    /// Returns the picture with the re-encoded rows between its unchanged bytes.
    fn patched_body(
        &self,
        picture: &IndexedPicture,
        patched: PatchedScan,
    ) -> Result<RenditionBody, RenderError> {
        let JpegHead { bytes, header } = picture.head(self.head);
        let (mut head, scans) =
            rewrite_with_tables(bytes, header, &self.segments(), self.icc, &patched.tables);
        let PatchedScan { prefix, mut middle, suffix, .. } = patched;
        let start = usize::try_from(prefix.start).unwrap_or(usize::MAX);
        head.extend_from_slice(bytes.get(scans.start..start).unwrap_or_default());
        let rest = suffix..scans.end as u64;
        if !picture.is_original() {
            // A working copy can be rebuilt at any time, so the body must not refer to it.
            head.extend(picture.read_all(prefix)?);
            head.append(&mut middle);
            head.extend(picture.read_all(rest)?);
            return Ok(RenditionBody::memory(head));
        }
        let mut parts = vec![BodyPart::Memory(head.into()), self.extent(prefix)];
        // A short rest is held in memory, which saves a read of the store on each cache hit.
        if rest.end - rest.start <= TAIL_READ_BYTES_MAX {
            middle.extend(self.original.read(rest)?);
            parts.push(BodyPart::Memory(middle.into()));
        } else {
            parts.extend([BodyPart::Memory(middle.into()), self.extent(rest)]);
        }
        Ok(RenditionBody::new(parts))
    }

    /// Decodes the whole picture, at a reduced size if possible, and renders the steps.
    fn decode_and_render(
        &self,
        full: &FullPicture<'_>,
        output: OutputOptions,
    ) -> Result<(RenditionBody, RenderPath), RenderError> {
        let asset = &self.plan.source;
        let bands = full.bands(self.hooks.should_continue);
        let source = self.render_source(&full.jpeg, asset.stored, asset.stored, bands);
        let rendered = self.render(source, &self.plan.steps, output)?;
        let icc = self.icc.filter(|_| rendered.keeps_profile);
        let body = self.finish_file(&rendered.file, output.format, icc, &rendered.windows)?;
        Ok((body, rendered.render_path))
    }

    /// Reads the rendition from the standard set of the original, or makes it from a picture of the set.
    fn serve_from_standard_set(
        &self,
        set: &StandardSet,
        output: OutputOptions,
    ) -> Result<(RenditionBody, RenderPath), RenderError> {
        let standard = self.plan.standard;
        let found = standard.and_then(|standard| Some((standard, set.find(standard.key)?)));
        // A set is complete, so it contains the picture.
        let Some((standard, picture)) = found else {
            return Err(RenderError::Picture("the standard set lacks the picture".to_owned()));
        };
        // The set does not record where a picture was cut, so a cut picture carries no regions. The only standard
        // rendition that is cut is a thumbnail, and thumbnails have no regions.
        match standard.usage {
            StandardUsage::Stored => {
                let body = self.finish_file(&picture.file, output.format, None, &[])?;
                Ok((body, RenderPath::Stored))
            }
            StandardUsage::Marked => {
                if let Some(marked) = self.mark_standard(picture)? {
                    let body = self.finish_file(&marked, output.format, None, &[])?;
                    return Ok((body, RenderPath::LocalMark));
                }
                self.render_standard(picture, picture.size, &[RenderStep::Watermark], output)
            }
            StandardUsage::Scaled(_) => {
                self.render_standard(picture, self.plan.source.upright(), &self.plan.steps, output)
            }
        }
    }

    /// Changes the blocks of a standard rendition under the watermark; `None` if its coefficients cannot be read, so
    /// that it has to be decoded.
    fn mark_standard(&self, picture: &StandardPicture) -> Result<Option<Vec<u8>>, RenderError> {
        let DecodeLimits { header, pixels_max, .. } = self.inner.settings.limits;
        // The setting is for the files of others.
        let header = HeaderLimits { scans_max: STANDARD_SCANS_MAX, ..header };
        let should_continue = self.hooks.should_continue;
        let limits = CoefficientLimits { header, pixels_max, should_continue };
        let watermark = &self.inner.settings.watermark;
        match mark_file(&picture.file, watermark, &limits, self.hooks.begin) {
            Ok(marked) => {
                count_pixels(picture.size.pixels());
                Ok(Some(marked))
            }
            Err(CoefficientError::Stopped) => Err(RenderError::Abandoned),
            Err(error) => {
                telemetry::count_abandoned_path("coefficients");
                tracing::warn!(original = %self.plan.source.blob, "decoding a standard rendition: {error}");
                Ok(None)
            }
        }
    }

    /// Renders `steps` from a picture of the standard set, which shows the whole upright picture of size `full`.
    fn render_standard(
        &self,
        picture: &StandardPicture,
        full: Size,
        steps: &[RenderStep],
        output: OutputOptions,
    ) -> Result<(RenditionBody, RenderPath), RenderError> {
        // The pictures of a set are upright and in sRGB already.
        let source = imaging::RenderSource {
            format: ImageFormat::Jpeg,
            file: &picture.file,
            orientation: Orientation::from_tag(1),
            icc: None,
            adobe: false,
            stored: full,
            shows: picture.size,
            bands: None,
        };
        let rendered = self.render(source, steps, output)?;
        let body = self.finish_file(&rendered.file, output.format, None, &rendered.windows)?;
        Ok((body, rendered.render_path))
    }

    /// Makes the standard set of the original, unless it exists by now; `None` if the picture cannot be decoded.
    fn make_standard_set(&self) -> Result<Option<StandardSet>, RenderError> {
        let source = &self.plan.source;
        let recipes = StandardRecipes::for_picture(source, &self.inner.settings);
        if let Some(set) = self.inner.complete_standard_set(source, &recipes)? {
            return Ok(Some(set));
        }
        if !(self.hooks.begin)(RenderStage::Decode) {
            return Err(RenderError::Abandoned);
        }
        match self.inner.make_standard(source, &recipes, None, self.hooks.should_continue) {
            Ok(set) => {
                // If it cannot be stored, the next rendition makes it again.
                if let Err(cause) = self.inner.keep(source, &set) {
                    tracing::warn!(original = %source.blob, "standard renditions not kept: {cause}");
                }
                Ok(Some(set))
            }
            Err(RenderError::Picture(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    fn render_source<'b>(
        &'b self,
        file: &'b [u8],
        stored: Size,
        shows: Size,
        bands: Option<BandDecoder<'b>>,
    ) -> imaging::RenderSource<'b> {
        imaging::RenderSource {
            format: ImageFormat::Jpeg,
            file,
            orientation: Orientation::from_tag(u32::from(self.plan.source.orientation)),
            icc: self.icc,
            adobe: self.head.header.adobe_transform.is_some(),
            stored,
            shows,
            bands,
        }
    }

    fn render(
        &self,
        source: imaging::RenderSource<'_>,
        steps: &[RenderStep],
        output: OutputOptions,
    ) -> Result<RenderOutput, RenderError> {
        let pixels_max = self.inner.settings.limits.pixels_max;
        let job = RenderJob { source, steps, output, pixels_max };
        let rendered = imaging::render(&job, &self.inner.settings.watermark, self.hooks.begin)?;
        count_pixels(rendered.decoded_pixels);
        if let Some(warning) = &rendered.warning {
            tracing::warn!(blob = %self.plan.source.blob, "picture data is damaged: {warning}");
        }
        Ok(rendered)
    }

    /// Embeds the metadata in a rendered file, whose pixels are upright. `windows` are the parts that the render
    /// cut out. Without them, the file of a [`RenderStep::Cover`] carries no image regions.
    fn finish_file(
        &self,
        file: &[u8],
        format: ImageFormat,
        icc: Option<&[u8]>,
        windows: &[Rect],
    ) -> Result<RenditionBody, RenderError> {
        let shown = shown_region(self.plan.source.upright(), &self.plan.steps, windows);
        let pixels = DescribedPixels::Upright(shown.unwrap_or(UNKNOWN_PART));
        let metadata = self.metadata(pixels, icc);
        Ok(RenditionBody::memory(format.embed(file, &metadata, icc)?))
    }
}

/// Counts decoded pixels for the metrics.
pub(super) fn count_pixels(pixels: u64) {
    // The counter counts whole megapixels, so a small picture counts as one.
    metrics::counter!(telemetry::DECODED_MEGAPIXELS).increment(pixels.div_ceil(1_000_000));
}
