//! Writes EXIF: a small block with the caption's texts, its date and time, and the mandatory fields.
//!
//! The block is built from scratch, so that no thumbnail, maker note, serial number or other camera data
//! leaks. Only GPS data is copied, and only if the operator enables it, and the colour space of unchanged colours.

use std::io::Cursor;

use exif::experimental::Writer;
use exif::{Field, In, Rational, Tag, Value};

use crate::date_time::PartialDateTime;
use crate::exif_read::ExifBlocks;
use crate::{Caption, EmbeddingPicture, PictureColours, WriteOptions, text};
use geometry::Size;
use jpeg::rewrite::{PAYLOAD_BYTES_MAX, segment as jpeg_segment};

/// Code of the APP1 marker.
const MARKER: u8 = 0xE1;
/// Signature of an Exif segment.
const SIGNATURE: &[u8] = b"Exif\0\0";
/// Maximum bytes of the description. XMP has the complete text. With these limits, all texts and the position fit
/// into one segment.
const DESCRIPTION_BYTES_MAX: usize = 32_000;
const BYLINE_BYTES_MAX: usize = 4_000;
const COPYRIGHT_BYTES_MAX: usize = 4_000;
/// Maximum bytes of a copied text.
const FACT_BYTES_MAX: usize = 128;
/// Maximum count of numbers in a copied value.
const FACT_NUMBERS_MAX: usize = 4;

/// Value of `ColorSpace` for sRGB.
const SRGB: u16 = 1;
/// Value of `ColorSpace` for all other colours.
const UNCALIBRATED: u16 = 0xFFFF;

/// GPS fields that are copied if [`WriteOptions::gps`] is set.
const GPS_FACTS: [Tag; 12] = [
    Tag::GPSLatitudeRef,
    Tag::GPSLatitude,
    Tag::GPSLongitudeRef,
    Tag::GPSLongitude,
    Tag::GPSAltitudeRef,
    Tag::GPSAltitude,
    Tag::GPSTimeStamp,
    Tag::GPSImgDirectionRef,
    Tag::GPSImgDirection,
    Tag::GPSMapDatum,
    Tag::GPSDateStamp,
    Tag::GPSHPositioningError,
];

/// Writes the block, a TIFF file; empty for an upright picture without a caption or a position.
///
/// A caption without any field that has an EXIF tag gets a block too, so that every rendition with a caption has
/// both EXIF and XMP.
pub(super) fn block(caption: &Caption, originals: &[&[u8]], options: WriteOptions) -> Vec<u8> {
    let mut fields = texts(caption);
    fields.extend(moment(caption));
    if options.gps {
        let blocks = ExifBlocks::parse(originals, &mut Vec::new());
        fields.extend(position(caption, &blocks));
    }
    let orientation = if (1..=8).contains(&options.orientation) { options.orientation } else { 1 };
    if fields.is_empty() && orientation == 1 && !caption.has_text() {
        return Vec::new();
    }
    fields.push(field(Tag::Orientation, Value::Short(vec![u16::from(orientation)])));
    fields.extend(required());
    if let Some(picture) = options.picture {
        fields.extend(required_of_pixels(picture, originals));
    }
    let mut writer = Writer::new();
    for field in &fields {
        writer.push_field(field);
    }
    let mut tiff = Cursor::new(Vec::new());
    if writer.write(&mut tiff, false).is_err()
        || SIGNATURE.len() + tiff.get_ref().len() > PAYLOAD_BYTES_MAX
    {
        // Unreachable: all values have known types, and their sizes are bounded above.
        debug_assert!(false, "an exif block of bounded fields is written");
        return Vec::new();
    }
    tiff.into_inner()
}

/// Wraps a block in a JPEG segment; empty for an empty block.
pub(super) fn segment(block: &[u8]) -> Vec<u8> {
    if block.is_empty() { Vec::new() } else { jpeg_segment(MARKER, &[SIGNATURE, block]) }
}

fn field(tag: Tag, value: Value) -> Field {
    Field { tag, ifd_num: In::PRIMARY, value }
}

fn ascii(tag: Tag, text: &str) -> Field {
    field(tag, Value::Ascii(vec![text.as_bytes().to_vec()]))
}

/// Builds the caption's text fields in UTF-8, which readers detect in the same way as this crate.
fn texts(caption: &Caption) -> Vec<Field> {
    [
        (Tag::ImageDescription, caption.description.as_str(), DESCRIPTION_BYTES_MAX),
        (Tag::Artist, caption.byline.as_str(), BYLINE_BYTES_MAX),
        (Tag::Copyright, caption.copyright(), COPYRIGHT_BYTES_MAX),
    ]
    .into_iter()
    .filter(|(_, text, _)| !text.is_empty())
    .map(|(tag, text, bytes_max)| ascii(tag, text::cut(text, bytes_max)))
    .collect()
}

/// Copies a field if the original has it and its value is a text or a few numbers.
///
/// Other types could hide arbitrary data.
fn copy_original_field(blocks: &ExifBlocks, tag: Tag) -> Option<Field> {
    let value = &blocks.field(tag)?.value;
    let count = match value {
        Value::Ascii(_) => {
            let text = text::line(&blocks.text(tag));
            let text = text::cut(&text, FACT_BYTES_MAX);
            return (!text.is_empty()).then(|| ascii(tag, text));
        }
        Value::Byte(numbers) => numbers.len(),
        Value::Short(numbers) => numbers.len(),
        Value::Long(numbers) => numbers.len(),
        Value::Rational(numbers) => numbers.len(),
        Value::SRational(numbers) => numbers.len(),
        Value::SByte(_)
        | Value::Undefined(..)
        | Value::SShort(_)
        | Value::SLong(_)
        | Value::Float(_)
        | Value::Double(_)
        | Value::Unknown(..) => return None,
    };
    (1..=FACT_NUMBERS_MAX).contains(&count).then(|| field(tag, value.clone()))
}

/// Builds the fields for the date and time of creation, with the UTC offset if known.
fn moment(caption: &Caption) -> Vec<Field> {
    let Some(stamp) = caption.created.as_deref().and_then(PartialDateTime::parse) else {
        return Vec::new();
    };
    // EXIF has no tag for a date without a time.
    let Some(time) = stamp.exif_time() else {
        return Vec::new();
    };
    let offset = stamp.exif_offset().map(|offset| ascii(Tag::OffsetTimeOriginal, &offset));
    let fraction = stamp.exif_fraction().map(|digits| ascii(Tag::SubSecTimeOriginal, digits));
    [Some(ascii(Tag::DateTimeOriginal, &time)), offset, fraction].into_iter().flatten().collect()
}

/// Builds the GPS fields from the caption's position. If the caption has no position, or the same position as the
/// original, copies the GPS fields of the original.
///
/// The altitude, direction and time of the original would be wrong for a different position and meaningless
/// without a position.
fn position(caption: &Caption, blocks: &ExifBlocks) -> Vec<Field> {
    let original = blocks.position();
    let mut fields = match caption.position {
        Some((latitude, longitude)) if caption.position != original => vec![
            ascii(Tag::GPSLatitudeRef, if latitude < 0.0 { "S" } else { "N" }),
            field(Tag::GPSLatitude, degrees(latitude)),
            ascii(Tag::GPSLongitudeRef, if longitude < 0.0 { "W" } else { "E" }),
            field(Tag::GPSLongitude, degrees(longitude)),
        ],
        Some(_) | None if original.is_some() => {
            GPS_FACTS.into_iter().filter_map(|tag| copy_original_field(blocks, tag)).collect()
        }
        Some(_) | None => return Vec::new(),
    };
    // The version is required in a block with any GPS field.
    fields.push(field(Tag::GPSVersionID, Value::Byte(vec![2, 3, 0, 0])));
    fields
}

/// Converts an angle to degrees, minutes and seconds; a millionth of a second is 0.03 mm on the ground.
fn degrees(degrees: f64) -> Value {
    const PARTS: u32 = 1_000_000;
    let micros = (degrees.abs().min(180.0) * 3600.0 * f64::from(PARTS)).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most 180 degrees in millionths of a second, 6.48e11, and not negative"
    )]
    let micros = micros as u64;
    let minute = u64::from(PARTS) * 60;
    Value::Rational(vec![
        Rational { num: numerator(micros / minute / 60), denom: 1 },
        Rational { num: numerator(micros / minute % 60), denom: 1 },
        Rational { num: numerator(micros % minute), denom: PARTS },
    ])
}

/// Converts degrees, minutes or millionths of a second to the type of the format.
fn numerator(number: u64) -> u32 {
    u32::try_from(number).expect("less than 3,600 or 60 million")
}

/// Builds the fields that the standard requires of a JPEG file and that depend on its pixels.
fn required_of_pixels(picture: EmbeddingPicture, originals: &[&[u8]]) -> [Field; 3] {
    let space = match picture.colours {
        PictureColours::Srgb => SRGB,
        PictureColours::Original { has_profile } => {
            let blocks = ExifBlocks::parse(originals, &mut Vec::new());
            let stated = blocks.field(Tag::ColorSpace).and_then(|field| field.value.get_uint(0));
            let is_srgb = stated.map_or(!has_profile, |space| space == u32::from(SRGB));
            if is_srgb { SRGB } else { UNCALIBRATED }
        }
    };
    let Size { width, height } = picture.size;
    [
        field(Tag::ColorSpace, Value::Short(vec![space])),
        field(Tag::PixelXDimension, Value::Long(vec![width])),
        field(Tag::PixelYDimension, Value::Long(vec![height])),
    ]
}

/// Builds the fields that the standard requires in every block, with values that match a JPEG file.
fn required() -> Vec<Field> {
    let dpi = Value::Rational(vec![Rational { num: 72, denom: 1 }]);
    vec![
        field(Tag::XResolution, dpi.clone()),
        field(Tag::YResolution, dpi),
        // 2: pixels per inch.
        field(Tag::ResolutionUnit, Value::Short(vec![2])),
        // 1: centred, as in JFIF.
        field(Tag::YCbCrPositioning, Value::Short(vec![1])),
        field(Tag::ExifVersion, Value::Undefined(b"0232".to_vec(), 0)),
        field(Tag::ComponentsConfiguration, Value::Undefined(vec![1, 2, 3, 0], 0)),
        field(Tag::FlashpixVersion, Value::Undefined(b"0100".to_vec(), 0)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNCHANGED: PictureColours = PictureColours::Original { has_profile: false };
    const PROFILED: PictureColours = PictureColours::Original { has_profile: true };

    /// Writes the block of a picture of 30 x 20 pixels.
    fn written(colours: PictureColours, originals: &[&[u8]]) -> Vec<u8> {
        let caption = Caption { byline: "x".to_owned(), ..Caption::default() };
        let picture = Some(EmbeddingPicture { size: Size::new(30, 20), colours });
        block(&caption, originals, WriteOptions { orientation: 1, gps: false, picture })
    }

    /// Reads the width, the height and the colour space.
    fn numbers(bytes: &[u8]) -> [Option<u32>; 3] {
        let blocks = ExifBlocks::parse(&[bytes], &mut Vec::new());
        [Tag::PixelXDimension, Tag::PixelYDimension, Tag::ColorSpace]
            .map(|tag| blocks.field(tag).and_then(|field| field.value.get_uint(0)))
    }

    #[test]
    fn the_size_and_the_colours_are_those_of_the_picture() {
        let check = |colours: PictureColours, originals: &[&[u8]], space: u16| {
            let expected = [Some(30), Some(20), Some(u32::from(space))];
            assert_eq!(numbers(&written(colours, originals)), expected, "{colours:?}");
        };
        check(PictureColours::Srgb, &[], SRGB);
        check(UNCHANGED, &[], SRGB);
        check(PROFILED, &[], UNCALIBRATED);
        // The original knows its colours better.
        let srgb = written(UNCHANGED, &[]);
        let other = written(PROFILED, &[]);
        check(PROFILED, &[&srgb], SRGB);
        check(UNCHANGED, &[&other], UNCALIBRATED);
        check(PictureColours::Srgb, &[&other], SRGB);
    }
}
