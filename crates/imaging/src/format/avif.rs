//! Writes AVIF: the smallest files, at many times the cost of JPEG. AVIF is not read.
//!
//! `av1_encoder` encodes the pixels. This module writes the container: the AV1 Image File Format 1.1 (AVIF), which
//! is HEIF (ISO/IEC 23008-12) under the rules of MIAF (ISO/IEC 23000-22). EXIF and XMP are items that describe the
//! picture item. HEIF has no place for IIM, so it is omitted; XMP has the same texts.

use std::borrow::Cow;

use av1_encoder::{Av1Config, Av1Error, Av1Options, Av1Picture, ChromaSampling, PixelView};
use geometry::Size;

use super::boxes::{HEAD_BYTES, find, full_box, length_u32, plain_box};
use super::quality::interpolate;
use crate::RasterError;
use crate::format::{ImageAttachments, ImageCodec, UnencodedPicture};

/// The codec for AVIF.
pub static CODEC: ImageCodec = ImageCodec {
    extension: ".avif",
    other_extensions: &[],
    mime_type: "image/avif",
    magic: &[(4, b"ftypavif")],
    decoder: None,
    encode,
    embed,
    supports_grey: true,
    supports_cmyk: false,
    side_px_max: av1_encoder::SIDE_PX_MAX,
    pixels_max: PIXELS_MAX,
    encoding_cost: 100,
    encoder_bytes_per_pixel: |_| BYTES_PER_PIXEL,
};

/// Memory per pixel at [`SPEED`]: the planes and the allocations of libaom.
const BYTES_PER_PIXEL: u64 = 100;
/// The maximum number of pixels of a picture. AV1 allows twice as many, but this many need 1.6 GB already.
const PIXELS_MAX: u64 = 16_000_000;

/// libaom's speed. At equal bytes, 6 needs twice the time for half a point of SSIMULACRA2; 8 writes larger files
/// than JPEG; 9 needs a fifth of the time and loses two points.
const SPEED: u8 = 7;

/// libaom's quantizer, 0 to 63, for quality 0, 10, ... 100. For photographs of 1,024 pixels it gives fewer bytes
/// than a JPEG of this quality, at a SSIMULACRA2 score of one or two points less; thumbnails score higher than the
/// JPEG. At 0 libaom would switch to its lossless mode.
const QUANTIZERS: [f32; 11] = [63.0, 57.0, 48.0, 41.0, 35.0, 30.3, 27.5, 25.0, 18.6, 10.0, 1.0];

/// The identifier of the picture item; metadata items have the next identifiers.
const PICTURE_ID: u16 = 1;
/// Colour primaries, transfer and matrix (ITU-T H.273), then the flag of full range: sRGB in the matrix of BT.601,
/// with which the encoder converts pixels to planes.
const NCLX_SRGB: [u8; 7] = [0, 1, 0, 13, 0, 6, 0x80];
/// The same matrix with unspecified primaries and transfer, which an ICC profile defines.
const NCLX_UNSPECIFIED: [u8; 7] = [0, 2, 0, 2, 0, 6, 0x80];
/// The highest level of the AVIF Baseline profile, 5.1, and of the Advanced profile, 6.0, as `seq_level_idx`.
const LEVEL_MAX_BASELINE: u8 = 13;
const LEVEL_MAX_ADVANCED: u8 = 16;
/// The marker bit and the version of an `av1C` box.
const AV1C_VERSION: u8 = 0x81;

/// A picture item: its properties in the container, and its data.
struct PictureItem<'a> {
    size: Size,
    /// The payload of the `av1C` box.
    configuration: [u8; 4],
    obus: &'a [u8],
}

/// An item that describes the picture item.
struct MetadataItem<'a> {
    kind: [u8; 4],
    /// The content type with its terminating zero, for items of type `mime`.
    content_type: &'static [u8],
    data: Cow<'a, [u8]>,
}

fn encode(picture: &UnencodedPicture<'_>) -> Result<Vec<u8>, RasterError> {
    let pixels = &*picture.pixels;
    let view = PixelView { size: pixels.size, channels: pixels.channels, data: &pixels.data };
    let options = Av1Options {
        quantizer: quantizer(picture.output.quality),
        speed: SPEED,
        // Full chroma costs more bytes than it adds to the score, and some hardware decoders support only the Main
        // profile.
        chroma: ChromaSampling::Quarter,
    };
    let Av1Picture { obus, config } = av1_encoder::encode(view, options).map_err(|e| error(&e))?;
    let configuration = configuration(config);
    write(&PictureItem { size: pixels.size, configuration, obus: &obus }, None, &[])
}

fn quantizer(quality: u8) -> u8 {
    let rounded = interpolate(quality, &QUANTIZERS).round();
    // Exact: a whole number between the ends of the table.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 63")]
    let quantizer = rounded as u8;
    quantizer
}

fn error(error: &Av1Error) -> RasterError {
    match error {
        Av1Error::Size { .. } => RasterError::Unsupported(error.to_string()),
        Av1Error::Layout { .. } | Av1Error::Library { .. } | Av1Error::Stream(_) => {
            RasterError::Internal(error.to_string())
        }
    }
}

/// Returns the payload of `av1C` (AV1 Codec ISO Media File Format Binding, 2.3.3): profile and level, tier 0, 8
/// bits, monochrome, subsampling, unknown chroma position.
fn configuration(config: Av1Config) -> [u8; 4] {
    let monochrome = u8::from(config.is_monochrome) << 4;
    let subsampling = if config.has_full_chroma { 0 } else { 0b1100 };
    [AV1C_VERSION, config.profile << 5 | config.level, monochrome | subsampling, 0]
}

fn embed(file: &[u8], attachments: &ImageAttachments<'_>) -> Result<Vec<u8>, RasterError> {
    let Some(picture) = read(file) else {
        return Err(RasterError::Decode("no AVIF file of our encoder".to_owned()));
    };
    let mut items = Vec::new();
    let metadata = attachments.metadata;
    if !metadata.exif.is_empty() {
        // The block follows the offset of its TIFF header (HEIF, A.2.1). The offset is 0, because the header is at
        // the start.
        let data = Cow::Owned([&[0; 4], &metadata.exif[..]].concat());
        items.push(MetadataItem { kind: *b"Exif", content_type: b"", data });
    }
    if !metadata.xmp.is_empty() {
        let data = Cow::Borrowed(&metadata.xmp[..]);
        items.push(MetadataItem { kind: *b"mime", content_type: b"application/rdf+xml\0", data });
    }
    write(&picture, attachments.icc, &items)
}

/// Reads a file that [`write`] wrote; its metadata is skipped.
fn read(file: &[u8]) -> Option<PictureItem<'_>> {
    if !find(file, *b"ftyp")?.starts_with(b"avif") {
        return None;
    }
    let meta = find(file, *b"meta")?.get(4..)?;
    let properties = find(find(meta, *b"iprp")?, *b"ipco")?;
    let extents = find(properties, *b"ispe")?.get(4..)?;
    let (width, height) = extents.split_first_chunk::<4>()?;
    let configuration = *find(properties, *b"av1C")?.first_chunk::<4>()?;
    let locations = find(meta, *b"iloc")?.get(6..)?;
    // After the number of items, the picture comes first: identifier, data reference and number of extents, then
    // offset and length.
    let entry = locations.get(2..16)?;
    if entry[..6] != [0, 1, 0, 0, 0, 1] {
        return None;
    }
    let start = number(&entry[6..])?;
    let length = number(&entry[10..])?;
    let obus = file.get(start..start.checked_add(length)?)?;
    let height = u32::from_be_bytes(*height.first_chunk()?);
    let size = Size::new(u32::from_be_bytes(*width), height);
    Some(PictureItem { size, configuration, obus })
}

/// Reads the number of four bytes at the start of `bytes`.
fn number(bytes: &[u8]) -> Option<usize> {
    usize::try_from(u32::from_be_bytes(*bytes.first_chunk()?)).ok()
}

/// Writes a file: `ftyp`, `meta` with everything but the data, and `mdat` with the data of all items.
fn write(
    picture: &PictureItem<'_>,
    icc: Option<&[u8]>,
    items: &[MetadataItem<'_>],
) -> Result<Vec<u8>, RasterError> {
    let file_type = file_type(picture.configuration)?;
    let fixed = [
        handler()?,
        full_box(*b"pitm", 0, &[&PICTURE_ID.to_be_bytes()])?,
        item_infos(items)?,
        item_references(items)?,
        properties(picture, icc)?,
    ]
    .concat();
    let mut data = vec![picture.obus];
    data.extend(items.iter().map(|item| &*item.data));
    // The length of `iloc` does not depend on the offsets in it.
    let locations_bytes = item_locations(0, &data)?.len();
    let meta_bytes = HEAD_BYTES + 4 + locations_bytes + fixed.len();
    let start = file_type.len() + meta_bytes + HEAD_BYTES;
    let locations = item_locations(start, &data)?;
    let meta = full_box(*b"meta", 0, &[&fixed, &locations])?;
    Ok([file_type, meta, plain_box(*b"mdat", &data)?].concat())
}

/// Builds the `ftyp` box. The last brand, of an AVIF profile, is left out if level or profile exceed it.
fn file_type(configuration: [u8; 4]) -> Result<Vec<u8>, RasterError> {
    let profile = configuration[1] >> 5;
    let level = configuration[1] & 0x1F;
    let brand: &[u8] = match profile {
        0 if level <= LEVEL_MAX_BASELINE => b"MA1B",
        0 | 1 if level <= LEVEL_MAX_ADVANCED => b"MA1A",
        _ => b"",
    };
    plain_box(*b"ftyp", &[b"avif\0\0\0\0avifmif1miaf", brand])
}

/// Builds the `hdlr` box of pictures, with an empty name.
fn handler() -> Result<Vec<u8>, RasterError> {
    full_box(*b"hdlr", 0, &[&[0; 4], b"pict", &[0; 12], b"\0"])
}

/// Iterates over the identifiers of metadata items.
fn metadata_ids() -> impl Iterator<Item = [u8; 2]> {
    (PICTURE_ID + 1..).map(u16::to_be_bytes)
}

/// Returns the number of all items. There are at most three.
fn item_count(items: &[MetadataItem<'_>]) -> [u8; 2] {
    u16::try_from(items.len() + 1).expect("at most three items").to_be_bytes()
}

/// Builds the `iinf` box: types of all items, with empty names.
fn item_infos(items: &[MetadataItem<'_>]) -> Result<Vec<u8>, RasterError> {
    let mut infos = item_info(PICTURE_ID.to_be_bytes(), *b"av01", b"")?;
    for (item, id) in items.iter().zip(metadata_ids()) {
        infos.extend(item_info(id, item.kind, item.content_type)?);
    }
    full_box(*b"iinf", 0, &[&item_count(items), &infos])
}

/// Builds the `infe` box: type of an item, with an empty name.
fn item_info(id: [u8; 2], kind: [u8; 4], content_type: &[u8]) -> Result<Vec<u8>, RasterError> {
    full_box(*b"infe", 2, &[&id, &[0; 2], &kind, b"\0", content_type])
}

/// Builds the `iref` box: each metadata item describes the picture. Empty without metadata.
fn item_references(items: &[MetadataItem<'_>]) -> Result<Vec<u8>, RasterError> {
    let mut references = Vec::new();
    for (_, id) in items.iter().zip(metadata_ids()) {
        references.extend(plain_box(*b"cdsc", &[&id, &[0, 1], &PICTURE_ID.to_be_bytes()])?);
    }
    if references.is_empty() { Ok(references) } else { full_box(*b"iref", 0, &[&references]) }
}

/// Builds the `iloc` box: offset and length of the data of each item, in order, from `start` in the file.
fn item_locations(start: usize, data: &[&[u8]]) -> Result<Vec<u8>, RasterError> {
    let count = u16::try_from(data.len()).expect("at most three items").to_be_bytes();
    let mut entries = Vec::new();
    let mut offset = start;
    for (id, part) in (PICTURE_ID..).zip(data) {
        entries.extend(id.to_be_bytes());
        // Each item has no data reference and one extent.
        entries.extend([0, 0, 0, 1]);
        entries.extend(length_u32(offset)?.to_be_bytes());
        entries.extend(length_u32(part.len())?.to_be_bytes());
        offset += part.len();
    }
    // Offsets and lengths have four bytes; there is no base offset.
    full_box(*b"iloc", 0, &[&[0x44, 0], &count, &entries])
}

/// Builds the `iprp` box: the properties of the picture item.
fn properties(picture: &PictureItem<'_>, icc: Option<&[u8]>) -> Result<Vec<u8>, RasterError> {
    let Size { width, height } = picture.size;
    let is_monochrome = picture.configuration[2] & 0b1_0000 != 0;
    // The number of channels and their bits.
    let channels: &[u8] = if is_monochrome { &[1, 8] } else { &[3, 8, 8, 8] };
    let mut list = vec![
        full_box(*b"ispe", 0, &[&width.to_be_bytes(), &height.to_be_bytes()])?,
        full_box(*b"pixi", 0, &[channels])?,
        plain_box(*b"av1C", &[&picture.configuration])?,
    ];
    // Some decoders read only the first `colr` box, so the profile precedes the matrix.
    if let Some(profile) = icc {
        list.push(plain_box(*b"colr", &[b"prof", profile])?);
    }
    let nclx = if icc.is_some() { NCLX_UNSPECIFIED } else { NCLX_SRGB };
    list.push(plain_box(*b"colr", &[b"nclx", &nclx])?);
    // Indices start at 1; the first bit marks the property that a decoder must know, `av1C`.
    let indices: &[u8] = if icc.is_some() { &[5, 1, 2, 0x83, 4, 5] } else { &[4, 1, 2, 0x83, 4] };
    let associations =
        full_box(*b"ipma", 0, &[&1_u32.to_be_bytes(), &PICTURE_ID.to_be_bytes(), indices])?;
    plain_box(*b"iprp", &[&plain_box(*b"ipco", &[&list.concat()])?, &associations])
}
