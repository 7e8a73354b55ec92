//! Properties of every format, and a trivial format that proves the interface: a portable pixmap.

use super::*;
use crate::OutputColour;
use ::jpeg::codec::{ChromaSubsampling, ColourSpace};
use metadata::{Caption, WriteOptions};

/// A portable pixmap (netpbm, P6): a header of text and three bytes a pixel.
static PIXMAP: ImageCodec = ImageCodec {
    name: "pixmap",
    extension: ".ppm",
    other_extensions: &[],
    mime_type: "image/x-portable-pixmap",
    magic: &[(0, b"P6")],
    decoder: None,
    encode: |picture| {
        let Size { width, height } = picture.pixels.size;
        let head = format!("P6 {width} {height} 255\n").into_bytes();
        Ok([head, picture.pixels.data.clone()].concat())
    },
    embed: |file, _| Ok(file.to_owned()),
    supports_grey: false,
    supports_cmyk: false,
    side_px_max: 100,
    pixels_max: 5_000,
    encoding_cost: 1,
    encoder_bytes_per_pixel: |_| 3,
};

fn picture(size: Size, channels: usize) -> UnencodedPicture<'static> {
    let data = vec![0; usize::try_from(size.pixels()).unwrap() * channels];
    UnencodedPicture {
        pixels: Cow::Owned(Pixels { size, channels, data }),
        output: OutputOptions {
            format: ImageFormat(&PIXMAP),
            quality: 80,
            sampling: OutputSampling::Keep,
            colour: OutputColour::Keep,
            bytes_max: None,
        },
        original: PictureHeader {
            size,
            space: ColourSpace::Cmyk,
            chroma: ChromaSubsampling::Full,
        },
        is_quarter_turned: false,
        inks_inverted: false,
    }
}

/// The shortest head of a file by which a format is recognised.
fn head_of(format: ImageFormat) -> Vec<u8> {
    let mut head = Vec::new();
    for (offset, bytes) in format.0.magic {
        head.resize(*offset, 0);
        head.extend_from_slice(bytes);
    }
    head
}

#[test]
fn formats_differ_in_name_extension_mime_type_and_first_bytes() {
    let all: Vec<_> = ImageFormat::all().collect();
    for (at, one) in all.iter().enumerate() {
        assert!(one.extension().starts_with('.'), "{one:?}");
        assert_eq!(ImageFormat::of_extension(&one.extension().to_uppercase()), Some(*one));
        assert_eq!(ImageFormat::of_file(&head_of(*one)), Some(*one));
        let written = serde_json::to_string(one).unwrap();
        assert_eq!(serde_json::from_str::<ImageFormat>(&written).unwrap(), *one);
        for other in &all[..at] {
            assert_ne!(one.mime_type(), other.mime_type());
        }
    }
}

#[test]
fn jpeg_is_recognised_by_its_extensions_and_first_bytes() {
    for extension in [".jpg", "jpeg", "JPG"] {
        assert_eq!(ImageFormat::of_extension(extension), Some(ImageFormat::JPEG));
    }
    assert_eq!(ImageFormat::of_file(b"\xFF\xD8\xFF"), Some(ImageFormat::JPEG));
    assert_eq!(ImageFormat::of_file(b"\xFF"), None);
    assert_eq!(ImageFormat::of_extension("txt"), None);
    assert!(serde_json::from_str::<ImageFormat>("\"none\"").is_err());
}

#[test]
fn cmyk_becomes_srgb_in_formats_without_it() {
    let file = ImageFormat(&PIXMAP).encode(picture(Size::new(2, 1), 4), None).unwrap();
    // No ink means white paper.
    assert!(file.starts_with(b"P6 2 1 255\n"));
    assert_eq!(file.len(), 11 + 6);
    let refused = ImageFormat(&PIXMAP).open(&file).err().expect("only written");
    assert_eq!(refused.to_string(), "unsupported JPEG: pixmap files are only written");
    assert!(file[11..].iter().all(|value| *value > 240), "{file:?}");
}

#[test]
fn a_picture_larger_than_a_format_allows_is_refused() {
    let format = ImageFormat(&PIXMAP);
    for (size, holds) in [((100, 50), true), ((101, 1), false), ((71, 71), false)] {
        let size = Size::new(size.0, size.1);
        assert_eq!(format.supports_size(size), holds, "{size}");
        assert_eq!(format.encode(picture(size, 3), None).is_ok(), holds, "{size}");
    }
    let refused = format.encode(picture(Size::new(101, 1), 3), None).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "unsupported JPEG: 101x1 pixels; pixmap files have at most 100 pixels on a side and 5000 \
         in all"
    );
    assert_eq!(ImageFormat::WEBP.size_limits(), "webp files have at most 16383 pixels on a side");
    assert!(ImageFormat::AVIF.supports_size(Size::new(4_000, 4_000)));
    assert!(!ImageFormat::AVIF.supports_size(Size::new(4_001, 4_000)));
}

#[test]
fn a_jpeg_gets_its_metadata() {
    let jpeg =
        ::jpeg::samples::pictures::photograph(Size::new(32, 16), ChromaSubsampling::Quarter);
    let caption = Caption { headline: "Harbour".to_owned(), ..Caption::default() };
    let rights = metadata::RightsMetadata::default();
    let options = WriteOptions { orientation: 1, gps: false };
    let blocks = metadata::build_embedded(&caption, &rights, &[], options);
    let file = ImageFormat::JPEG.embed(&jpeg, &blocks, None).unwrap();
    let header = ::jpeg::header::JpegHeader::parse(&file, &::jpeg::samples::LIMITS).unwrap();
    assert_eq!(metadata::read(&header, &file).caption.headline, "Harbour");
    assert!(ImageFormat::JPEG.embed(b"no picture", &blocks, None).is_err());
}
