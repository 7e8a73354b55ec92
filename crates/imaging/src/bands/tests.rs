//! Strips compared with a decode of the whole picture.

use super::*;
use jpeg::IndexedJpeg;
use jpeg::codec::{ChromaSubsampling, ColourSpace};
use jpeg::samples::{self, pictures};

fn decoder_of(indexed: &IndexedJpeg) -> BandDecoder<'_> {
    BandDecoder {
        scan: &indexed.scan,
        index: &indexed.index,
        colour: &indexed.colour,
        parallel_map: &|count, work| (0..count).for_each(work),
        should_continue: &|| true,
    }
}

/// Strips of `jpeg` in all columns of `region` have the samples of the whole picture.
fn check(jpeg: &[u8], region: Rect, length: usize) {
    let whole = codec::decode(jpeg, DecodeScale::FULL).unwrap().value;
    let indexed = IndexedJpeg::open(jpeg.to_vec(), &samples::LIMITS).unwrap();
    let bands = decoder_of(&indexed);
    let decoder = StripDecoder::new(&bands, jpeg, region);
    let columns = decoder.columns();
    assert!(columns.start <= region.x && columns.end >= region.x + region.width);
    let (top, bottom) = (index(region.y), index(region.y + region.height));
    let first = index(region.x - columns.start) * whole.channels;
    let count = index(region.width) * whole.channels;
    let stride = index(columns.end - columns.start) * whole.channels;
    for start in (top..bottom).step_by(length) {
        let end = (start + length).min(bottom);
        let strip = decoder.decode(start..end).unwrap();
        assert_eq!((strip.warning.clone(), strip.samples().len()), (None, stride * (end - start)));
        for (row, found) in (start..end).zip(strip.samples().chunks_exact(stride)) {
            let at = (row * index(whole.size.width) + index(region.x)) * whole.channels;
            let expected = &whole.data[at..at + count];
            assert!(found[first..first + count] == *expected, "{region} row {row}");
        }
    }
}

#[test]
fn strips_are_exactly_the_rows_of_the_whole_picture() {
    let size = Size::new(203, 157);
    for (space, chroma) in pictures::KINDS {
        let jpeg = pictures::jpeg(size, space, chroma, 9);
        for length in [1, 16, 37, 157] {
            check(&jpeg, Rect::new(0, 0, size), length);
            check(&jpeg, Rect::new(5, 20, Size::new(190, 101)), length);
        }
    }
}

#[test]
fn narrow_strips_are_exactly_the_columns_of_the_whole_picture() {
    let size = Size::new(203, 157);
    for (space, chroma) in pictures::KINDS {
        let jpeg = pictures::jpeg(size, space, chroma, 9);
        for region in [
            Rect::new(0, 0, Size::new(40, 157)),
            Rect::new(77, 33, Size::new(61, 90)),
            Rect::new(202, 156, Size::new(1, 1)),
        ] {
            check(&jpeg, region, 29);
        }
    }
}

#[test]
fn a_cancelled_strip_is_not_decoded() {
    let (space, chroma) = (ColourSpace::YCbCr, ChromaSubsampling::Quarter);
    let jpeg = pictures::jpeg(Size::new(64, 64), space, chroma, 9);
    let indexed = IndexedJpeg::open(jpeg.clone(), &samples::LIMITS).unwrap();
    let bands = BandDecoder { should_continue: &|| false, ..decoder_of(&indexed) };
    let decoder = StripDecoder::new(&bands, &jpeg, Rect::new(0, 0, Size::new(64, 64)));
    let stopped = decoder.decode(0..16).err();
    assert_eq!(stopped, Some(ScanError::Stopped));
}

#[test]
fn a_refused_strip_is_not_reported_as_missing_bytes() {
    let size = Size::new(64, 64);
    let jpeg = pictures::jpeg(size, ColourSpace::YCbCr, ChromaSubsampling::Quarter, 9);
    let indexed = IndexedJpeg::open(jpeg.clone(), &samples::LIMITS).unwrap();
    // The frame header of a differential process, which libjpeg-turbo does not support.
    let colour = [0xFF, 0xC5];
    let bands = BandDecoder { colour: &colour, ..decoder_of(&indexed) };
    let strip = StripDecoder::new(&bands, &jpeg, Rect::new(0, 0, size)).decode(0..16);
    assert_eq!(strip.err(), Some(ScanError::Strip));
    let IndexedJpeg { scan, index, .. } = &indexed;
    let bytes = ByteRanges::whole(&jpeg);
    let half = DecodeScale::from_eighths(4);
    let whole = decode_bands(scan, index, &colour, &bytes, half, &in_sequence);
    assert_eq!(whole.err(), Some(ScanError::Strip));
}
