//! Ingest of a photograph: reads, checks, measures and stores it.

use std::path::Path;

use jiff::tz::TimeZone;

use super::{IngestError, IngestLimits, IngestResult, files};
use crate::media::original::{NewOriginal, OriginalStore};
use crate::runtime::clock::Stopwatch;
use crate::runtime::compute;
use imaging::{
    self, EncodeEffort, ImageFormat, Orientation, OutputColour, OutputOptions, OutputSampling,
    RasterError, RenderJob, RenderOutput, RenderStep, ShouldContinue, Watermark,
};
use jpeg::header::JpegHeader;
use metadata::{FileMetadata, RightsMetadata};
use model::item::{Document, DocumentError, PictureFile};
use model::{ContentHash, ItemId, ItemKey, RenditionName, Size};

/// Pixels of one JPEG times its scans. Each scan is a pass over the whole picture, however short its
/// data. 100 megapixels of a camera in 12 scans are 1.2 billion.
const JPEG_SCAN_PIXELS_MAX: u64 = 8_000_000_000;
/// The long side, in pixels, of the decode that checks whether a photograph can be decoded.
const CHECK_PX: u32 = 64;

/// The JPEG quality of the picture of an unpublished upload.
const PREVIEW_QUALITY: u8 = 80;

/// A reduced picture to render.
struct ReducedPicture<'a> {
    /// The embedded colour profile; `None` to leave the colours unchanged.
    icc: Option<&'a [u8]>,
    /// The long side in pixels.
    long_px: u32,
    output: OutputOptions,
}

/// A photograph that was read and whose headers are valid.
pub(super) struct CheckedPhotograph {
    bytes: Vec<u8>,
    header: JpegHeader,
    pub(super) metadata: FileMetadata,
}

/// Reads the photograph at `path` and checks its headers.
pub(super) fn read(path: &Path, limits: &IngestLimits) -> IngestResult<CheckedPhotograph> {
    parse(files::read(path, limits.file_bytes_max, "media.file_bytes_max")?, limits)
}

/// Checks the headers of a photograph in memory.
pub(super) fn parse(bytes: Vec<u8>, limits: &IngestLimits) -> IngestResult<CheckedPhotograph> {
    let header = JpegHeader::parse(&bytes, &limits.header)
        .map_err(|cause| IngestError::Picture(cause.to_string()))?;
    let size = header.size;
    let pixels_max = limits.pixels_max;
    IngestError::check_limit(size.pixels(), pixels_max, "pixels", "media.megapixels_max")?;
    // A small file can repeat scans of a large picture, and each scan is a pass over all pixels.
    let passes = size.pixels().saturating_mul(u64::from(header.scans));
    let unit = "pixels in all scans together";
    IngestError::check_limit(passes, JPEG_SCAN_PIXELS_MAX, unit, "fixed")?;
    let metadata = metadata::read(&header, &bytes);
    Ok(CheckedPhotograph { bytes, header, metadata })
}

/// Derives an id from the content of a file.
pub(super) fn derived_id(content: ContentHash) -> ItemId {
    let hash = content.to_string();
    // 80 bits of the hash, so that two files of an archive practically never share an id.
    ItemId::parse(&format!("p{}", &hash[..20])).expect("a letter and hex digits are an id")
}

impl CheckedPhotograph {
    /// Decodes the picture at a reduced size, and returns the decoder's warning.
    fn check_decodes(
        &self,
        limits: &IngestLimits,
        marker: &Watermark,
        should_continue: ShouldContinue<'_>,
    ) -> IngestResult<Option<String>> {
        let output = OutputOptions {
            format: ImageFormat::Jpeg,
            quality: 50,
            // The result is discarded, so the fast encoder suffices.
            sampling: OutputSampling::Keep,
            colour: OutputColour::Keep,
            effort: EncodeEffort::Fast,
            bytes_max: None,
        };
        // Colours do not affect whether the data can be decoded.
        let reduced = ReducedPicture { icc: None, long_px: CHECK_PX, output };
        Ok(self.render(&reduced, limits, marker, should_continue)?.warning)
    }

    /// Renders a small JPEG for people, upright and in sRGB.
    pub(super) fn preview(
        &self,
        long_px: u32,
        limits: &IngestLimits,
        marker: &Watermark,
    ) -> IngestResult<Vec<u8>> {
        let output = OutputOptions {
            format: ImageFormat::Jpeg,
            quality: PREVIEW_QUALITY,
            sampling: OutputSampling::S420,
            colour: OutputColour::Srgb,
            effort: EncodeEffort::Fast,
            bytes_max: None,
        };
        // A baseline picture is decoded at a reduced scale, a progressive picture with all of its coefficients.
        if self.header.needs_coefficient_buffer() {
            self.fits_as_a_whole(limits, "it is progressive")?;
        }
        let icc = self.header.icc(&self.bytes);
        let reduced = ReducedPicture { icc: icc.as_deref(), long_px, output };
        let stopwatch = Stopwatch::start();
        let rendered =
            self.render(&reduced, limits, marker, &|| stopwatch.elapsed() <= limits.file_time)?;
        Ok(rendered.file)
    }

    /// Returns the size in pixels of the upright picture.
    pub(super) fn shown_size(&self) -> Size {
        Orientation::from_tag(u32::from(self.metadata.orientation)).oriented_size(self.header.size)
    }

    fn render(
        &self,
        reduced: &ReducedPicture<'_>,
        limits: &IngestLimits,
        marker: &Watermark,
        should_continue: ShouldContinue<'_>,
    ) -> IngestResult<RenderOutput> {
        let source = imaging::RenderSource {
            format: ImageFormat::Jpeg,
            file: &self.bytes,
            orientation: Orientation::from_tag(u32::from(self.metadata.orientation)),
            icc: reduced.icc,
            adobe: self.header.adobe_transform.is_some(),
            stored: self.header.size,
            shows: self.header.size,
            bands: None,
        };
        let too_slow = limits.too_slow();
        let pixels_max = limits.pixels_max;
        let steps = [RenderStep::Fit { long_px: reduced.long_px }];
        let job = RenderJob { source, steps: &steps, output: reduced.output, pixels_max };
        match imaging::render(&job, marker, &|_| should_continue()) {
            Ok(rendered) => Ok(rendered),
            Err(RasterError::Abandoned) => Err(too_slow),
            Err(cause) => Err(IngestError::Picture(format!("cannot be decoded: {cause}"))),
        }
    }

    /// Checks that the picture, which can only be decoded as a whole because of `reason`, fits into the memory
    /// limit for one photograph. Even a crop of it needs all of its pixels.
    fn fits_as_a_whole(&self, limits: &IngestLimits, reason: &str) -> IngestResult<()> {
        let components = u64::try_from(self.header.components.len()).unwrap_or(u64::MAX);
        let samples = self.header.size.pixels().saturating_mul(components);
        // The pixels, the pixels rotated, and the output; and coefficients of two bytes each.
        let bytes_per_sample = if self.header.needs_coefficient_buffer() { 5 } else { 3 };
        let found = samples.saturating_mul(bytes_per_sample);
        let limit = limits.memory_bytes;
        if found <= limit {
            return Ok(());
        }
        Err(IngestError::Picture(format!(
            "can only be decoded as a whole ({reason}), which needs {found} bytes, more than the \
             limit of {limit} (ingest.memory_bytes)"
        )))
    }

    /// Returns the memory in bytes that [`CheckedPhotograph::store`] needs, in addition to the bytes that were
    /// read.
    pub(super) fn memory_bytes(&self, originals: &OriginalStore) -> u64 {
        originals.memory_bytes(&self.header, self.bytes.len() as u64)
    }

    /// Derives an id from the picture's bytes, for a file whose name is not a valid id.
    pub(super) fn derived_id(&self) -> ItemId {
        derived_id(ContentHash::new(&self.bytes))
    }

    /// Builds the document from the embedded caption.
    ///
    /// A property that violates the schema is left out with a warning. A mistake in its caption is no reason to
    /// refuse a photograph.
    pub(super) fn document(
        &self,
        key: &ItemKey,
        zone: &TimeZone,
    ) -> Result<(Document, Vec<String>), DocumentError> {
        let mut fields = formats::caption::to_fields(&self.metadata.caption, zone);
        let mut warnings = Vec::new();
        let problems = match Document::from_fields(key, fields.clone()) {
            Err(DocumentError::Schema(problems)) => problems,
            outcome => return outcome.map(|document| (document, warnings)),
        };
        for problem in problems {
            let name = problem.path.trim_start_matches('/').split('/').next();
            // A second problem of the same property finds the property already removed and causes no second warning.
            if let Some(name) = name.filter(|name| fields.shift_remove(*name).is_some()) {
                warnings.push(format!("embedded {name} is left out: {}", problem.message));
            }
        }
        Document::from_fields(key, fields).map(|document| (document, warnings))
    }

    /// Stores the bytes with their derived files, checks that the picture can be decoded, and returns its
    /// facts and warnings.
    pub(super) fn store(
        &self,
        originals: &OriginalStore,
        name: RenditionName,
        limits: &IngestLimits,
        marker: &Watermark,
    ) -> IngestResult<(PictureFile, Vec<String>)> {
        let new = NewOriginal {
            bytes: &self.bytes,
            header: &self.header,
            hash_orientation: Some(self.metadata.orientation),
        };
        let stopwatch = Stopwatch::start();
        let should_continue = || stopwatch.elapsed() <= limits.file_time;
        let stored = originals.store_new(&new, &compute::run_parallel, &should_continue)?;
        let stored = stored.ok_or_else(|| limits.too_slow())?;
        if let Some(reason) = &stored.whole_decode_reason {
            self.fits_as_a_whole(limits, reason)?;
        }
        let damage = if stored.decoded {
            stored.warning
        } else {
            // The index build verified the entropy-coded data, but the decoder may still not support this kind of
            // JPEG.
            self.check_decodes(limits, marker, &should_continue)?
        };
        let mut warnings = self.metadata.warnings.clone();
        warnings.extend(damage.map(|damage| format!("picture data is damaged: {damage}")));
        let asset = PictureFile {
            name,
            blob: stored.hash,
            length: self.bytes.len() as u64,
            stored: self.header.size,
            orientation: self.metadata.orientation,
            progressive: self.header.needs_coefficient_buffer(),
            components: u8::try_from(self.header.components.len()).unwrap_or(u8::MAX),
            is_grey: stored.is_grey.unwrap_or(false),
            picture_hash: stored.picture_hash,
            rights: self.metadata.rights.clone(),
            source_rights: RightsMetadata::default(),
        };
        Ok((asset, warnings))
    }
}
