//! Structure of WebP and AVIF files, read back chunk by chunk and box by box.

use super::*;
use crate::{EncodeEffort, OutputColour, OutputSampling};
use ::jpeg::codec::{ChromaSubsampling, ColourSpace};

fn file(format: ImageFormat, size: Size, channels: usize) -> Vec<u8> {
    let count = usize::try_from(size.pixels()).unwrap() * channels;
    let data = (0..count).map(|at| u8::try_from(at * 31 % 256).unwrap()).collect();
    let space = if channels == 1 { ColourSpace::Grey } else { ColourSpace::YCbCr };
    let (sampling, colour) = (OutputSampling::S420, OutputColour::Srgb);
    let picture = UnencodedPicture {
        pixels: Cow::Owned(Pixels { size, channels, data }),
        output: OutputOptions {
            format,
            quality: 80,
            sampling,
            colour,
            effort: EncodeEffort::Small,
            bytes_max: None,
        },
        original: PictureHeader { size, space, chroma: ChromaSubsampling::Quarter },
        is_quarter_turned: false,
        inks_inverted: false,
    };
    format.encode(picture, None).unwrap()
}

fn blocks(exif: &[u8], xmp: &[u8]) -> EmbeddedMetadata {
    let (exif, xmp, iim) = (exif.to_vec(), xmp.to_vec(), b"not for these".to_vec());
    EmbeddedMetadata { exif, xmp, split_xmp: None, iim }
}

/// All chunks of a WebP file, which must fill it exactly.
fn chunks(file: &[u8]) -> Vec<(&[u8], &[u8])> {
    assert_eq!((&file[..4], &file[8..12]), (&b"RIFF"[..], &b"WEBP"[..]));
    let length = |at: usize| {
        usize::try_from(u32::from_le_bytes(*file[at..].first_chunk().unwrap())).unwrap()
    };
    assert_eq!(length(4), file.len() - 8);
    let (mut found, mut at) = (Vec::new(), 12);
    while at < file.len() {
        let end = at + 8 + length(at + 4);
        found.push((&file[at..at + 4], &file[at + 8..end]));
        if end % 2 == 1 {
            assert_eq!(file[end], 0, "padding");
        }
        at = end.next_multiple_of(2);
    }
    assert_eq!(at, file.len());
    found
}

/// All boxes of a list, which must fill it exactly.
fn boxes(list: &[u8]) -> Vec<(&[u8], &[u8])> {
    let (mut found, mut rest) = (Vec::new(), list);
    while !rest.is_empty() {
        let length = u32::from_be_bytes(*rest.first_chunk().unwrap());
        let (one, after) = rest.split_at(usize::try_from(length).unwrap());
        found.push((&one[4..8], &one[8..]));
        rest = after;
    }
    found
}

fn kinds<'a>(list: &[(&'a [u8], &[u8])]) -> Vec<&'a str> {
    list.iter().map(|(kind, _)| std::str::from_utf8(kind).unwrap()).collect()
}

/// The payload of a box inside `meta`, without version and flags.
fn in_meta<'a>(file: &'a [u8], kind: &[u8]) -> Option<&'a [u8]> {
    let meta = boxes(file)[1].1;
    boxes(&meta[4..]).into_iter().find(|(found, _)| *found == kind).map(|(_, payload)| payload)
}

/// The data of all items of an AVIF file, as `iloc` gives them.
fn item_data(file: &[u8]) -> Vec<&[u8]> {
    let locations = in_meta(file, b"iloc").unwrap();
    assert_eq!(locations[..6], [0, 0, 0, 0, 0x44, 0]);
    let entries = locations[8..].as_chunks::<14>().0;
    assert_eq!(usize::from(locations[7]), entries.len());
    let number =
        |bytes: &[u8]| usize::try_from(u32::from_be_bytes(*bytes.first_chunk().unwrap())).unwrap();
    let data = entries.iter().zip(1..).map(|(entry, id)| {
        assert_eq!(entry[..6], [0, id, 0, 0, 0, 1], "one extent of item {id}");
        &file[number(&entry[6..])..][..number(&entry[10..])]
    });
    data.collect()
}

/// The payloads of the properties of an AVIF file, with their types.
fn properties(file: &[u8]) -> Vec<(&[u8], &[u8])> {
    boxes(boxes(in_meta(file, b"iprp").unwrap())[0].1)
}

const SIZES: [(u32, u32); 6] = [(1, 1), (1, 300), (300, 1), (17, 31), (64, 64), (255, 299)];

#[test]
fn a_webp_file_without_metadata_is_one_chunk() {
    for (width, height) in SIZES {
        for channels in [1, 3] {
            let file = file(ImageFormat::Webp, Size::new(width, height), channels);
            assert_eq!(ImageFormat::of_file(&file), Some(ImageFormat::Webp));
            assert_eq!(kinds(&chunks(&file)), ["VP8 "]);
            let same = ImageFormat::Webp.embed(&file, &EmbeddedMetadata::default(), None).unwrap();
            assert_eq!(same, file);
        }
    }
}

#[test]
fn webp_metadata_is_around_the_frame_with_a_canvas_of_its_size() {
    for (width, height) in SIZES {
        let plain = file(ImageFormat::Webp, Size::new(width, height), 3);
        let frame = chunks(&plain)[0].1;
        let file =
            ImageFormat::Webp.embed(&plain, &blocks(b"II*", b"<x/>"), Some(b"profile")).unwrap();
        let [(_, extended), rest @ ..] = &chunks(&file)[..] else { panic!("no chunks") };
        assert_eq!(extended[..4], [0b10_1100, 0, 0, 0], "profile, EXIF and XMP");
        assert_eq!(extended[4..7], (width - 1).to_le_bytes()[..3]);
        assert_eq!(extended[7..], (height - 1).to_le_bytes()[..3]);
        let expected: [(&[u8], &[u8]); 4] =
            [(b"ICCP", b"profile"), (b"VP8 ", frame), (b"EXIF", b"II*"), (b"XMP ", b"<x/>")];
        assert_eq!(rest, expected);
        // New metadata replaces the old.
        let again = ImageFormat::Webp.embed(&file, &blocks(b"", b"<y/>"), None).unwrap();
        assert_eq!(kinds(&chunks(&again)), ["VP8X", "VP8 ", "XMP "]);
        assert_eq!(chunks(&again)[0].1[0], 0b100);
    }
}

#[test]
fn an_avif_file_describes_its_picture() {
    for (width, height) in SIZES {
        for channels in [1, 3] {
            let file = file(ImageFormat::Avif, Size::new(width, height), channels);
            assert_eq!(ImageFormat::of_file(&file), Some(ImageFormat::Avif));
            let top = boxes(&file);
            assert_eq!(kinds(&top), ["ftyp", "meta", "mdat"]);
            assert_eq!(top[0].1, b"avif\0\0\0\0avifmif1miafMA1B");
            let children = boxes(&top[1].1[4..]);
            assert_eq!(kinds(&children), ["hdlr", "pitm", "iinf", "iprp", "iloc"]);
            assert_eq!(item_data(&file), [top[2].1]);
            let properties = properties(&file);
            assert_eq!(kinds(&properties), ["ispe", "pixi", "av1C", "colr"]);
            assert_eq!(properties[0].1[4..8], width.to_be_bytes());
            assert_eq!(properties[0].1[8..], height.to_be_bytes());
            assert_eq!(usize::from(properties[1].1[4]), channels);
            // Main profile, 8 bits, subsampled; monochrome for grey.
            let monochrome = if channels == 1 { 0b1_0000 } else { 0 };
            assert_eq!((properties[2].1[0], properties[2].1[2]), (0x81, 0b1100 | monochrome));
            assert_eq!(properties[3].1, b"nclx\0\x01\0\x0D\0\x06\x80");
        }
    }
}

#[test]
fn avif_metadata_is_in_items_that_describe_the_picture() {
    let plain = file(ImageFormat::Avif, Size::new(33, 21), 3);
    let picture = boxes(&plain)[2].1;
    let file = ImageFormat::Avif.embed(&plain, &blocks(b"II*", b"<x/>"), Some(b"icc")).unwrap();
    assert_eq!(item_data(&file), [picture, b"\0\0\0\0II*", b"<x/>"]);
    let infos = in_meta(&file, b"iinf").unwrap();
    assert_eq!(infos[..6], [0, 0, 0, 0, 0, 3]);
    let infos: Vec<_> = boxes(&infos[6..]).into_iter().map(|(_, info)| &info[4..]).collect();
    let expected: [&[u8]; 3] =
        [b"\0\x01\0\0av01\0", b"\0\x02\0\0Exif\0", b"\0\x03\0\0mime\0application/rdf+xml\0"];
    assert_eq!(infos, expected);
    let references = boxes(&in_meta(&file, b"iref").unwrap()[4..]);
    let expected: [(&[u8], &[u8]); 2] =
        [(b"cdsc", &[0, 2, 0, 1, 0, 1]), (b"cdsc", &[0, 3, 0, 1, 0, 1])];
    assert_eq!(references, expected);
    let properties = properties(&file);
    assert_eq!(kinds(&properties), ["ispe", "pixi", "av1C", "colr", "colr"]);
    assert_eq!(properties[3].1, b"proficc");
    assert_eq!(properties[4].1, b"nclx\0\x02\0\x02\0\x06\x80", "the profile has the primaries");
    // New metadata replaces the old.
    let none = EmbeddedMetadata::default();
    assert_eq!(ImageFormat::Avif.embed(&file, &none, None).unwrap(), plain);
}

#[test]
fn a_file_of_another_format_or_a_truncated_one_is_refused() {
    let none = EmbeddedMetadata::default();
    for format in [ImageFormat::Webp, ImageFormat::Avif] {
        let whole = file(format, Size::new(40, 20), 3);
        for end in 0..whole.len() - 1 {
            assert!(format.embed(&whole[..end], &none, None).is_err(), "{format:?} {end}");
        }
        assert!(format.embed(b"\xFF\xD8\xFF\xD9", &none, None).is_err());
    }
}

#[test]
fn a_side_that_a_format_does_not_hold_is_refused() {
    for (format, side) in [(ImageFormat::Webp, 16_383), (ImageFormat::Avif, 16_384)] {
        assert_eq!(format.codec().side_px_max, side);
        let size = Size::new(side + 1, 1);
        let data = vec![0; usize::try_from(size.pixels()).unwrap()];
        let picture = UnencodedPicture {
            pixels: Cow::Owned(Pixels { size, channels: 1, data }),
            output: OutputOptions {
                format,
                quality: 80,
                sampling: OutputSampling::S420,
                colour: OutputColour::Srgb,
                effort: EncodeEffort::Small,
                bytes_max: None,
            },
            original: PictureHeader {
                size,
                space: ColourSpace::Grey,
                chroma: ChromaSubsampling::Full,
            },
            is_quarter_turned: false,
            inks_inverted: false,
        };
        assert!(matches!(format.encode(picture, None), Err(RasterError::Unsupported(_))));
    }
}
