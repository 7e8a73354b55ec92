//! Decodes and encodes JPEG images inside PDFs with libjpeg-turbo.

use turbojpeg::{
    Colorspace, Compressor, Decompressor, Image, PixelFormat, Subsamp, Transform, Transformer,
};

use crate::PdfError;
use crate::budget::WorkBudget;

/// The properties in the header of a JPEG.
#[derive(Debug, Clone, Copy)]
pub(super) struct JpegFacts {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) components: usize,
    /// True if the first component is the luminance of the picture.
    pub(super) has_luma: bool,
}

/// The maximum number of scans of a JPEG: each needs a pass over the picture, and real files have ten.
const SCANS_MAX: usize = 200;
/// The quality of encoded JPEGs.
const QUALITY: i32 = 90;

/// Reads the header of a JPEG, and refuses a JPEG that is too expensive to decode.
pub(super) fn read_facts(data: &[u8], budget: &WorkBudget) -> Result<JpegFacts, PdfError> {
    let mut reader = Decompressor::new().map_err(|_| broken(0, 0, "out of memory"))?;
    let header =
        reader.read_header(data).map_err(|_| broken(0, 0, "its jpeg header is damaged"))?;
    budget.check_image(header.width, header.height)?;
    // 0xFF 0xDA begins a scan; compressed data escapes 0xFF. A match inside a segment only increases the count.
    let scans = data.windows(2).filter(|pair| *pair == [0xff, 0xda]).count();
    if scans > SCANS_MAX {
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

/// Adds an Adobe marker with the colour transform that the PDF declares: true for YCbCr and YCCK, false for none.
/// Returns `None` if the JPEG has an Adobe marker already, or does not begin like a JPEG.
pub(super) fn with_adobe_marker(data: &[u8], transform: bool) -> Option<Vec<u8>> {
    // Only the segments before the image data count.
    let mut head = segments(data).take_while(|(marker, _)| !matches!(marker, 0xd9 | 0xda));
    if head.any(|(marker, payload)| marker == 0xee && payload.starts_with(b"Adobe")) {
        return None;
    }
    let rest = data.strip_prefix(b"\xff\xd8")?;
    let mut marked = b"\xff\xd8\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00".to_vec();
    // The marker distinguishes the two transforms: 1 is YCbCr, 2 is YCCK.
    marked.push(u8::from(transform) + u8::from(transform && frame_components(data) == 4));
    marked.extend_from_slice(rest);
    Some(marked)
}

/// Returns the number of components in the frame header; 0 without a frame header.
fn frame_components(data: &[u8]) -> u8 {
    let frame = segments(data).find(|(marker, _)| {
        matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc)
    });
    frame.and_then(|(_, payload)| payload.get(5).copied()).unwrap_or(0)
}

/// Iterates over the segments: the code of the marker, and all data from its payload to the end of the file.
fn segments(data: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut position = 2;
    std::iter::from_fn(move || {
        let &[0xff, marker, high, low] = data.get(position..position + 4)? else { return None };
        let payload = &data[position + 4..];
        position += 2 + usize::from(u16::from_be_bytes([high, low]));
        Some((marker, payload))
    })
}

/// Extracts the luminance of a YCbCr JPEG as a grey JPEG, losslessly, without decoding to pixels. `None` if the
/// data is damaged or the result is not grey.
pub(super) fn luma(data: &[u8]) -> Option<Vec<u8>> {
    let mut transform = Transform::default();
    // Markers describe the colour picture (its profile, for example), so they are dropped.
    transform.gray = true;
    transform.copy_none = true;
    transform.optimize = true;
    let mut transformer = Transformer::new().ok()?;
    let result = transformer.transform_to_vec(&transform, data).ok()?;
    let header = turbojpeg::read_header(&result).ok()?;
    matches!(header.colorspace, Colorspace::Gray).then_some(result)
}

/// Decodes the samples of a JPEG: `[height][width][components]`, CMYK as stored.
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
    // libjpeg-turbo reports damage and mere warnings alike, so all samples decoded before are kept. If all are zero,
    // nothing was decoded.
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

/// Encodes greys, `[height][width]`, as a JPEG; `None` if libjpeg-turbo fails.
pub(super) fn encode(greys: &[u8], width: usize, height: usize) -> Option<Vec<u8>> {
    let mut encoder = Compressor::new().ok()?;
    encoder.set_quality(QUALITY).ok()?;
    encoder.set_subsamp(Subsamp::Gray).ok()?;
    encoder.set_optimize(true).ok()?;
    let image = Image { pixels: greys, width, pitch: width, height, format: PixelFormat::GRAY };
    encoder.compress_to_vec(image).ok()
}
