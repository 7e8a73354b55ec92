//! Decodes and encodes JPEG images inside PDFs with libjpeg-turbo, to convert their pictures to grey.

use turbojpeg::{
    Colorspace, Compressor, Decompressor, Image, PixelFormat, Subsamp, Transform, Transformer,
};

use crate::PdfError;
use crate::budget::WorkBudget;

/// The properties in the header of a JPEG. Sides are in pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct JpegFacts {
    pub(super) width: usize,
    pub(super) height: usize,
    /// Samples per pixel after decoding: 1 grey, 3 RGB, 4 CMYK.
    pub(super) components: usize,
    /// True if the first component, as stored, is the luminance of the picture.
    pub(super) has_luma: bool,
}

/// The maximum number of scans of a JPEG: each needs a pass over the picture, and real files have about ten.
const SCANS_MAX: usize = 200;
/// The quality of encoded JPEGs, on libjpeg's scale of 1 to 100.
const QUALITY: i32 = 90;

/// The code of the marker at the end of an image (ITU-T T.81, table B.1). Codes follow a byte 0xFF.
const END_OF_IMAGE: u8 = 0xd9;
/// The code of the marker at the start of a scan.
const START_OF_SCAN: u8 = 0xda;
/// The code of the marker of Adobe's segment.
const APP14: u8 = 0xee;

/// Reads the header of a JPEG.
///
/// Fails if the header is damaged, if the image is larger than `budget` allows, or if it has more than [`SCANS_MAX`]
/// scans. Spends nothing of `budget`.
pub(super) fn read_facts(data: &[u8], budget: &WorkBudget) -> Result<JpegFacts, PdfError> {
    let mut reader = Decompressor::new().map_err(|_| broken(0, 0, "out of memory"))?;
    let header =
        reader.read_header(data).map_err(|_| broken(0, 0, "its jpeg header is damaged"))?;
    budget.check_image(header.width, header.height)?;
    // Compressed data escapes 0xFF, so it contains no marker. A match inside a segment only increases the count.
    let scans = data.windows(2).filter(|pair| *pair == [0xff, START_OF_SCAN]).count();
    if scans > SCANS_MAX {
        // The number is `SCANS_MAX`, which a static text cannot contain.
        return Err(broken(0, 0, "its jpeg has more than 200 scans"));
    }
    let (components, has_luma) = match header.colorspace {
        Colorspace::Gray => (1, true),
        Colorspace::YCbCr => (3, true),
        Colorspace::RGB => (3, false),
        Colorspace::CMYK | Colorspace::YCCK => (4, false),
    };
    Ok(JpegFacts { width: header.width, height: header.height, components, has_luma })
}

/// Returns a copy of a JPEG with an Adobe marker, from which decoders read the colour transform: YCbCr or YCCK if
/// `is_transformed`, otherwise none. A PDF can state the transform outside the JPEG, where decoders do not find it.
///
/// Returns `None` if the JPEG has an Adobe marker already, or does not begin like a JPEG.
pub(super) fn with_adobe_marker(data: &[u8], is_transformed: bool) -> Option<Vec<u8>> {
    // Only the segments before the image data count.
    let mut head =
        segments(data).take_while(|(marker, _)| !matches!(*marker, END_OF_IMAGE | START_OF_SCAN));
    if head.any(|(marker, payload)| marker == APP14 && payload.starts_with(b"Adobe")) {
        return None;
    }
    let rest = data.strip_prefix(b"\xff\xd8")?;
    // Start of image, then the segment: its marker, its length of 14 bytes, the name, version 100, two empty flags, and
    // the transform below.
    let mut marked = b"\xff\xd8\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00".to_vec();
    // 0 is no transform, 1 is YCbCr, 2 is YCCK.
    let transform = match (is_transformed, frame_components(data)) {
        (false, _) => 0,
        (true, 4) => 2,
        (true, _) => 1,
    };
    marked.push(transform);
    marked.extend_from_slice(rest);
    Some(marked)
}

/// Returns the number of components in the frame header; 0 without a frame header.
fn frame_components(data: &[u8]) -> u8 {
    // The markers SOF0 to SOF15, without DHT, JPG and DAC between them.
    let frame = segments(data).find(|(marker, _)| {
        matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc)
    });
    // The number follows the precision (1 byte), height and width (2 bytes each).
    frame.and_then(|(_, payload)| payload.get(5).copied()).unwrap_or(0)
}

/// Iterates over the segments up to the first data that is not a segment. Each item is the code of the marker, and the data
/// from the payload of the segment to the end of the file.
fn segments(data: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    // After the start of image.
    let mut position = 2;
    std::iter::from_fn(move || {
        let &[0xff, marker, high, low] = data.get(position..position + 4)? else { return None };
        let payload = &data[position + 4..];
        position += 2 + usize::from(u16::from_be_bytes([high, low]));
        Some((marker, payload))
    })
}

/// Extracts the luminance of a JPEG with [`JpegFacts::has_luma`] as a grey JPEG, losslessly, without decoding to
/// pixels. `None` if the data is damaged or the result is not grey.
pub(super) fn luma(data: &[u8]) -> Option<Vec<u8>> {
    let mut transform = Transform::default();
    transform.gray = true;
    // Markers describe the colour picture (its profile, for example), so they are dropped.
    transform.copy_none = true;
    transform.optimize = true;
    let mut transformer = Transformer::new().ok()?;
    let result = transformer.transform_to_vec(&transform, data).ok()?;
    let header = turbojpeg::read_header(&result).ok()?;
    matches!(header.colorspace, Colorspace::Gray).then_some(result)
}

/// Decodes the samples of a JPEG to `[height][width][components]`: grey, RGB, or CMYK without inverting it.
///
/// Spends a byte of `budget` for each sample. Damaged data gives the samples before the damage, and zeros after it.
/// Fails if there are no samples before it, or if `budget` does not suffice.
pub(super) fn samples(
    data: &[u8],
    facts: JpegFacts,
    budget: &mut WorkBudget,
) -> Result<Vec<u8>, PdfError> {
    let JpegFacts { width, height, components, .. } = facts;
    let format = match components {
        1 => PixelFormat::GRAY,
        3 => PixelFormat::RGB,
        _ => PixelFormat::CMYK,
    };
    let length = width * height * components;
    // Spent before the memory is reserved.
    budget.take_bytes(length)?;
    let mut pixels = vec![0; length];
    let image =
        Image { pixels: &mut pixels[..], width, pitch: width * components, height, format };
    let mut decoder = Decompressor::new().map_err(|_| broken(width, height, "out of memory"))?;
    // libjpeg-turbo reports damage and mere warnings alike, so the samples that it decoded are kept. If all are zero,
    // it decoded nothing.
    let intact = decoder.decompress(data, image).is_ok();
    if !intact && pixels.iter().all(|sample| *sample == 0) {
        let what = "its jpeg data is damaged or of an unknown kind";
        return Err(broken(width, height, what));
    }
    Ok(pixels)
}

/// Returns the error for an image that cannot be decoded; its size is 0 × 0 if it is not known.
pub(super) fn broken(width: usize, height: usize, what: &'static str) -> PdfError {
    PdfError::Image {
        width: u64::try_from(width).unwrap_or(u64::MAX),
        height: u64::try_from(height).unwrap_or(u64::MAX),
        what,
    }
}

/// Encodes grey levels, `[height][width]`, as a JPEG; `None` if libjpeg-turbo fails, as for a side of more than 65,535
/// pixels.
pub(super) fn encode(greys: &[u8], width: usize, height: usize) -> Option<Vec<u8>> {
    let mut encoder = Compressor::new().ok()?;
    encoder.set_quality(QUALITY).ok()?;
    encoder.set_subsamp(Subsamp::Gray).ok()?;
    encoder.set_optimize(true).ok()?;
    let image = Image { pixels: greys, width, pitch: width, height, format: PixelFormat::GRAY };
    encoder.compress_to_vec(image).ok()
}
