//! Converts images from any colour space and filter to DeviceGray.
//!
//! Uses the cheapest conversion that preserves every pixel. One component of up to 8 bits stays packed and gets a
//! table of greys; for a YCbCr JPEG the luminance is extracted losslessly; only other images are decoded.

use std::rc::Rc;

use lopdf::{Dictionary, Object, StringFormat, dictionary};

use crate::filter::{DecodedStream, decode, deflate, names};
use crate::jpeg::{self, JpegFacts};
use crate::number::{byte, count, dictionary_of, entry, interpolate, numbers, real};
use crate::predictor::predict;
use crate::samples::{ImageSamples, greys, key_mask};
use crate::scope::DocumentScope;
use crate::space::{PdfColourSpace, device_space};
use crate::space_parser::grey_in;
use crate::{PdfError, jpeg2000};

/// An image in the document.
#[derive(Debug)]
pub(super) struct DocumentImage<'a> {
    pub(super) dictionary: &'a Dictionary,
    /// The data, still encoded by its filters.
    pub(super) content: &'a [u8],
    /// The resources that define named colour spaces.
    pub(super) resources: &'a Dictionary,
}

/// A mask that a converted image needs, of the same size as the image.
#[derive(Debug)]
pub(super) enum ImageMask {
    /// One bit per pixel, rows padded to bytes; 1 is masked out.
    Stencil(Vec<u8>),
    /// One byte per pixel; 0 is masked out.
    Soft(Vec<u8>),
}

/// The result of converting an image.
#[derive(Debug)]
pub(super) struct ConvertedImage {
    pub(super) dictionary: Dictionary,
    pub(super) content: Vec<u8>,
    pub(super) mask: Option<ImageMask>,
}

/// Converts an image to grey; `None` if it is grey already or has no colours of its own.
///
/// Fails if a limit is reached or the image cannot be decoded.
pub(super) fn grey_image(
    scope: &mut DocumentScope<'_>,
    picture: &DocumentImage<'_>,
) -> Result<Option<ConvertedImage>, PdfError> {
    let document = scope.document;
    let dictionary = picture.dictionary;
    if matches!(entry(document, dictionary, b"ImageMask"), Object::Boolean(true)) {
        // A stencil mask is painted in the current colour and has no colour of its own (ISO 32000-1 §8.9.6.2).
        return Ok(None);
    }
    let space = match dictionary.get(b"ColorSpace") {
        Ok(space) => PdfColourSpace::parse(scope, space, picture.resources)?,
        Err(_) => None,
    };
    let filters = names(document, dictionary);
    // Before the checks of space and depth, because JPEG 2000 data states both and the dictionary may omit them
    // (§7.4.9).
    if filters.iter().any(|name| name == b"JPXDecode") {
        return jpeg2000_image(scope, picture, space);
    }
    let Some(space) = space.filter(|space| space.components() > 0) else { return Ok(None) };
    // The filter determines the depth (§8.9.5, Table 89), and writers may leave it out.
    let default_bits = if filters.iter().any(|filter| is_fax(filter)) { 1 } else { 8 };
    let mut bits = count(document, dictionary, b"BitsPerComponent").unwrap_or(default_bits);
    if filters.iter().any(|filter| is_jpeg(filter)) {
        bits = 8;
    }
    if !matches!(bits, 1 | 2 | 4 | 8 | 16) {
        return Ok(None);
    }
    if matches!(*space, PdfColourSpace::Grey) {
        return Ok(plain_grey(picture));
    }
    // At most 256 values occur, so the data need not be decoded.
    if space.components() == 1 && bits <= 8 {
        return Ok(Some(with_table(scope, picture, &space, bits)?));
    }
    let data = decode(document, dictionary, picture.content, &mut scope.budget)?;
    match &data.image_filter {
        Some((filter, parameters)) if is_jpeg(filter) => {
            let transform = count(document, parameters, b"ColorTransform");
            jpeg_image(scope, picture, space, data.bytes, transform)
        }
        None => packed_image(scope, picture, &space, data, bits),
        Some(_) => Err(refuse(scope, dictionary, "its filter does not hold colours")),
    }
}

fn refuse(scope: &DocumentScope<'_>, dictionary: &Dictionary, what: &'static str) -> PdfError {
    let width = count(scope.document, dictionary, b"Width").unwrap_or(0);
    let height = count(scope.document, dictionary, b"Height").unwrap_or(0);
    jpeg::broken(width, height, what)
}

/// Returns whether a filter gives only black and white pixels.
fn is_fax(filter: &[u8]) -> bool {
    matches!(filter, b"CCITTFaxDecode" | b"CCF" | b"JBIG2Decode")
}

fn is_jpeg(filter: &[u8]) -> bool {
    matches!(filter, b"DCTDecode" | b"DCT")
}

/// Simplifies an image whose colour space is a synonym of DeviceGray.
fn plain_grey(picture: &DocumentImage<'_>) -> Option<ConvertedImage> {
    if matches!(picture.dictionary.get(b"ColorSpace"), Ok(Object::Name(name))
        if name == b"DeviceGray" || name == b"G")
    {
        return None;
    }
    let mut dictionary = picture.dictionary.clone();
    dictionary.set("ColorSpace", "DeviceGray");
    Some(ConvertedImage { dictionary, content: picture.content.to_vec(), mask: None })
}

/// Converts one component of few bits. The samples do not change; a table maps each value to its grey.
fn with_table(
    scope: &mut DocumentScope<'_>,
    picture: &DocumentImage<'_>,
    space: &PdfColourSpace,
    bits: usize,
) -> Result<ConvertedImage, PdfError> {
    let max = (1usize << bits) - 1;
    let range = space.sample_range(0, bits);
    let decode = numbers(scope.document, picture.dictionary, b"Decode");
    let decode = decode.filter(|decode| decode.len() >= 2).map(|decode| [decode[0], decode[1]]);
    let last = match (space, decode) {
        // Readers clamp larger indices to the last entry (§8.6.6.3), so the table may end there.
        (PdfColourSpace::Indexed { last, .. }, None) => max.min(*last),
        _ => max,
    };
    let mut table = Vec::with_capacity(last + 1);
    for value in 0..=last {
        let colour = interpolate(real(value), [0.0, real(max)], decode.unwrap_or(range));
        table.push(byte(space.grey(&mut scope.budget, &[colour])?));
    }
    let mut dictionary = picture.dictionary.clone();
    // The table already maps stored values, not decoded ones.
    dictionary.remove(b"Decode");
    let mut entries = table.iter().enumerate();
    let is_ramp = entries.all(|(value, grey)| usize::from(*grey) == (value * 255 + max / 2) / max);
    // A table that is a linear ramp is DeviceGray itself.
    if last == max && is_ramp {
        dictionary.set("ColorSpace", "DeviceGray");
    } else {
        let table = Object::String(table, StringFormat::Hexadecimal);
        let last = i64::try_from(last).unwrap_or(255);
        let space = vec![name("Indexed"), name("DeviceGray"), last.into(), table];
        dictionary.set("ColorSpace", space);
    }
    Ok(ConvertedImage { dictionary, content: picture.content.to_vec(), mask: None })
}

/// Builds the object of a name.
pub(super) fn name(text: &str) -> Object {
    Object::Name(text.as_bytes().to_vec())
}

fn jpeg_image(
    scope: &mut DocumentScope<'_>,
    picture: &DocumentImage<'_>,
    space: Rc<PdfColourSpace>,
    mut data: Vec<u8>,
    transform: Option<usize>,
) -> Result<Option<ConvertedImage>, PdfError> {
    // The decoder sees only the data, so the transform that the dictionary states is recorded in the data.
    if let Some(transform) = transform
        && let Some(marked) = jpeg::with_adobe_marker(&data, transform != 0)
    {
        data = marked;
    }
    let facts = jpeg::read_facts(&data, &scope.budget)?;
    let document = scope.document;
    // Readers trust the image data if it contradicts the dictionary.
    let space = match device_space(facts.components) {
        Some(basic) if space.components() != facts.components => Rc::new(basic),
        _ => space,
    };
    let decode = numbers(document, picture.dictionary, b"Decode");
    let key = color_key(scope, picture.dictionary);
    let mut dictionary = grey_dictionary(picture.dictionary, facts.width, facts.height);
    dictionary.set("Filter", "DCTDecode");
    // The luma of an sRGB picture is its grey. Other spaces, `Decode` and a colour key need the samples.
    let exact = facts.has_luma && matches!(*space, PdfColourSpace::Rgb | PdfColourSpace::Grey);
    if exact
        && decode.is_none()
        && key.is_none()
        && let Some(content) = jpeg::luma(&data)
    {
        return Ok(Some(ConvertedImage { dictionary, content, mask: None }));
    }
    let JpegFacts { width, height, components, .. } = facts;
    let bytes = jpeg::samples(&data, facts, &mut scope.budget)?;
    let samples = ImageSamples { bytes, bits: 8, components, width, height };
    // A colour key compares the original components, so it is applied before they become grey.
    let mask = key.map(|key| ImageMask::Stencil(key_mask(&samples, &key)));
    let greys = greys(scope, &samples, &space, decode.as_deref())?;
    let Some(content) = jpeg::encode(&greys, width, height) else {
        return Err(refuse(scope, picture.dictionary, "it is too large for a jpeg"));
    };
    Ok(Some(ConvertedImage { dictionary, content, mask }))
}

/// Converts an image whose samples are the output of general-purpose filters.
fn packed_image(
    scope: &mut DocumentScope<'_>,
    picture: &DocumentImage<'_>,
    space: &PdfColourSpace,
    data: DecodedStream,
    bits: usize,
) -> Result<Option<ConvertedImage>, PdfError> {
    let document = scope.document;
    let width = count(document, picture.dictionary, b"Width").unwrap_or(0);
    let height = count(document, picture.dictionary, b"Height").unwrap_or(0);
    if width == 0 || height == 0 {
        return Ok(None);
    }
    scope.budget.check_image(width, height)?;
    let components = space.components();
    let samples = ImageSamples { bytes: data.bytes, bits, components, width, height };
    let key = color_key(scope, picture.dictionary);
    let mask = key.map(|key| ImageMask::Stencil(key_mask(&samples, &key)));
    let decode = numbers(document, picture.dictionary, b"Decode");
    let greys = greys(scope, &samples, space, decode.as_deref())?;
    let mut dictionary = grey_dictionary(picture.dictionary, width, height);
    let content = pack(&greys, width, data.predicted, &mut dictionary);
    Ok(Some(ConvertedImage { dictionary, content, mask }))
}

/// Compresses greys with Flate and records that in the dictionary.
fn pack(greys: &[u8], width: usize, predicted: bool, dictionary: &mut Dictionary) -> Vec<u8> {
    dictionary.set("Filter", "FlateDecode");
    // The benefit of a predictor depends on the picture; the original suggests it.
    if !predicted {
        return deflate(greys);
    }
    let columns = i64::try_from(width).unwrap_or(i64::MAX);
    dictionary.set("DecodeParms", dictionary! { "Predictor" => 15, "Columns" => columns });
    deflate(&predict(greys, width))
}

/// Builds the dictionary of a decoded image: grey, 8 bits, no filter yet, no colour key.
fn grey_dictionary(original: &Dictionary, width: usize, height: usize) -> Dictionary {
    let mut dictionary = original.clone();
    // These keys describe the former samples. `F` and `DP` are the abbreviations of inline images.
    for key in [&b"Decode"[..], b"DecodeParms", b"Filter", b"SMaskInData", b"F", b"DP"] {
        dictionary.remove(key);
    }
    // An array is a colour key, whose components no longer exist; a stream is a mask, which is kept.
    if matches!(dictionary.get(b"Mask"), Ok(Object::Array(_))) {
        dictionary.remove(b"Mask");
    }
    dictionary.set("ColorSpace", "DeviceGray");
    dictionary.set("BitsPerComponent", 8);
    dictionary.set("Width", i64::try_from(width).unwrap_or(i64::MAX));
    dictionary.set("Height", i64::try_from(height).unwrap_or(i64::MAX));
    dictionary
}

/// Returns the colour key of an image; a soft mask overrides it.
fn color_key(scope: &DocumentScope<'_>, dictionary: &Dictionary) -> Option<Vec<f32>> {
    if matches!(entry(scope.document, dictionary, b"SMask"), Object::Stream(_)) {
        return None;
    }
    numbers(scope.document, dictionary, b"Mask")
}

fn jpeg2000_image(
    scope: &mut DocumentScope<'_>,
    picture: &DocumentImage<'_>,
    space: Option<Rc<PdfColourSpace>>,
) -> Result<Option<ConvertedImage>, PdfError> {
    let document = scope.document;
    let data = decode(document, picture.dictionary, picture.content, &mut scope.budget)?;
    // The palette of the dictionary replaces the palette in the data, so indexes must stay indexes.
    let raw = matches!(space.as_deref(), Some(PdfColourSpace::Indexed { .. }));
    let Some(image) = jpeg2000::decode(&data.bytes, raw, &mut scope.budget)? else {
        return Err(refuse(scope, picture.dictionary, "its jpeg 2000 data is damaged"));
    };
    let jpeg2000::Jpeg2000Picture { samples, alpha, space: embedded_space } = image;
    // The dictionary overrides the data (§7.4.9) unless it contradicts the number of components.
    let space = space.filter(|space| space.components() == samples.components);
    let space = space.or(embedded_space.map(Rc::new));
    let Some(space) = space.or_else(|| device_space(samples.components).map(Rc::new)) else {
        return Err(refuse(scope, picture.dictionary, "its jpeg 2000 colours are unknown"));
    };
    if matches!(*space, PdfColourSpace::Grey) {
        return Ok(if picture.dictionary.get(b"ColorSpace").is_ok() {
            plain_grey(picture)
        } else {
            None
        });
    }
    let in_data = count(document, picture.dictionary, b"SMaskInData").unwrap_or(0) > 0;
    let mask = match (color_key(scope, picture.dictionary), alpha) {
        (_, Some(alpha)) if in_data => Some(ImageMask::Soft(alpha)),
        (Some(key), _) => Some(ImageMask::Stencil(key_mask(&samples, &key))),
        _ => None,
    };
    let decode = numbers(document, picture.dictionary, b"Decode");
    let greys = greys(scope, &samples, &space, decode.as_deref())?;
    let width = samples.width;
    let height = samples.height;
    let mut dictionary = grey_dictionary(picture.dictionary, width, height);
    let content = match jpeg::encode(&greys, width, height) {
        Some(content) => {
            dictionary.set("Filter", "DCTDecode");
            content
        }
        // A JPEG has at most 65,535 pixels on a side; a JPEG 2000 image may have more.
        None => pack(&greys, width, true, &mut dictionary),
    };
    Ok(Some(ConvertedImage { dictionary, content, mask }))
}

/// Returns the grey of the matte, the colour with which a soft-masked image was preblended, if any.
pub(super) fn matte(
    scope: &mut DocumentScope<'_>,
    picture: &DocumentImage<'_>,
) -> Result<Option<f32>, PdfError> {
    let document = scope.document;
    let Some(mask) = dictionary_of(entry(document, picture.dictionary, b"SMask")) else {
        return Ok(None);
    };
    let Some(colour) = numbers(document, mask, b"Matte") else { return Ok(None) };
    grey_in(scope, picture.dictionary.get(b"ColorSpace").ok(), picture.resources, &colour)
}
