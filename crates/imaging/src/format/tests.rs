//! Properties of every format, and the conversions and limits that all formats share.

use super::*;
use crate::{EncodeEffort, OutputColour};
use ::jpeg::codec::{ChromaSubsampling, ColourSpace};
use metadata::{Caption, WriteOptions};

fn picture(size: Size, channels: usize) -> UnencodedPicture<'static> {
    let data = vec![0; usize::try_from(size.pixels()).unwrap() * channels];
    UnencodedPicture {
        pixels: Cow::Owned(Pixels { size, channels, data }),
        output: OutputOptions {
            format: ImageFormat::Webp,
            quality: 80,
            sampling: OutputSampling::Keep,
            colour: OutputColour::Keep,
            effort: EncodeEffort::Small,
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
    for (offset, bytes) in format.codec().magic {
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
        assert_eq!(ImageFormat::of_extension(extension), Some(ImageFormat::Jpeg));
    }
    assert_eq!(ImageFormat::of_file(b"\xFF\xD8\xFF"), Some(ImageFormat::Jpeg));
    assert_eq!(ImageFormat::of_file(b"\xFF"), None);
    assert_eq!(ImageFormat::of_extension("txt"), None);
    assert!(serde_json::from_str::<ImageFormat>("\"none\"").is_err());
}

#[test]
fn cmyk_becomes_srgb_in_formats_without_it() {
    let size = Size::new(2, 1);
    let file = ImageFormat::Webp.encode(picture(size, 4), None).unwrap();
    let inks = picture(size, 4).pixels.into_owned();
    let srgb = colour::to_srgb(inks, None, false).unwrap();
    // No ink means white paper.
    assert!(srgb.data.iter().all(|value| *value > 240), "{srgb:?}");
    let expected = UnencodedPicture { pixels: Cow::Owned(srgb), ..picture(size, 4) };
    assert_eq!(file, ImageFormat::Webp.encode(expected, None).unwrap());
    let refused = ImageFormat::Webp.open(&file).err().expect("only written");
    assert_eq!(refused.to_string(), "unsupported JPEG: webp files are only written");
}

#[test]
fn a_picture_larger_than_a_format_allows_is_refused() {
    let refused = ImageFormat::Avif.encode(picture(Size::new(16_385, 1), 3), None).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "unsupported JPEG: 16385x1 pixels; avif files have at most 16384 pixels on a side and \
         16000000 in all"
    );
    assert!(ImageFormat::Webp.encode(picture(Size::new(16_384, 1), 3), None).is_err());
    assert_eq!(ImageFormat::Webp.size_limits(), "webp files have at most 16383 pixels on a side");
    assert!(ImageFormat::Avif.supports_size(Size::new(4_000, 4_000)));
    assert!(!ImageFormat::Avif.supports_size(Size::new(4_001, 4_000)));
    assert!(ImageFormat::Avif.supports_size(Size::new(16_384, 1)));
}

#[test]
fn a_jpeg_gets_its_metadata() {
    let jpeg =
        ::jpeg::samples::pictures::photograph(Size::new(32, 16), ChromaSubsampling::Quarter);
    let caption = Caption { headline: "Harbour".to_owned(), ..Caption::default() };
    let rights = metadata::RightsMetadata::default();
    let options = WriteOptions { orientation: 1, gps: false, picture: None };
    let blocks = metadata::build_embedded(&caption, &rights, &[], options);
    let file = ImageFormat::Jpeg.embed(&jpeg, &blocks, None).unwrap();
    let header = ::jpeg::header::JpegHeader::parse(&file, &::jpeg::samples::LIMITS).unwrap();
    assert_eq!(metadata::read(&header, &file).caption.headline, "Harbour");
    assert!(ImageFormat::Jpeg.embed(b"no picture", &blocks, None).is_err());
}
