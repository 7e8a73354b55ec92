//! Embeds arbitrary metadata and profiles in WebP and AVIF files, and reads arbitrary bytes as such files.
//!
//! Nothing may panic. Metadata that is embedded and then replaced by none leaves the file as it was.

#![no_main]

use std::sync::LazyLock;

use imaging::ImageFormat;
use libfuzzer_sys::fuzz_target;
use metadata::EmbeddedMetadata;

/// A file of each format, of one pixel.
static FILES: LazyLock<[(ImageFormat, Vec<u8>); 2]> = LazyLock::new(|| {
    let size = geometry::Size::new(1, 1);
    let data = &[90, 140, 30][..];
    let options = webp_encoder::WebpOptions { quality: 50.0, method: 0 };
    let picture = webp_encoder::PixelView { size, channels: 3, data };
    let webp = webp_encoder::encode(picture, options).expect("a picture");
    let none = EmbeddedMetadata::default();
    let avif = ImageFormat::Avif.embed(&smallest_avif(), &none, None).expect("a file");
    [(ImageFormat::Webp, webp), (ImageFormat::Avif, avif)]
});

/// The boxes that are read when metadata is embedded, and four bytes for a picture.
fn smallest_avif() -> Vec<u8> {
    let boxed = |kind: &[u8], payload: &[u8]| {
        let length = u32::try_from(payload.len() + 8).expect("a small box");
        [&length.to_be_bytes()[..], kind, payload].concat()
    };
    let size = boxed(b"ispe", &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
    let configuration = boxed(b"av1C", &[0x81, 0, 0b1100, 0]);
    let properties = boxed(b"iprp", &boxed(b"ipco", &[size, configuration].concat()));
    let file_type = boxed(b"ftyp", b"avif\0\0\0\0avifmif1");
    // The picture is in the last four bytes of the file.
    let meta = |start: u8| {
        let entry = [0, 0, 0, 0, 0x44, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, start, 0, 0, 0, 4];
        boxed(b"meta", &[&[0; 4], &properties[..], &boxed(b"iloc", &entry)].concat())
    };
    let start = u8::try_from(file_type.len() + meta(0).len() + 8).expect("a small file");
    [&file_type[..], &meta(start), &boxed(b"mdat", b"OBUS")].concat()
}

fuzz_target!(|bytes: &[u8]| {
    let [first, second, rest @ ..] = bytes else { return };
    let (exif, rest) = rest.split_at(usize::from(*first).min(rest.len()));
    let (xmp, icc) = rest.split_at(usize::from(*second).min(rest.len()));
    let (exif, xmp, iim) = (exif.to_vec(), xmp.to_vec(), icc.to_vec());
    let metadata = EmbeddedMetadata { exif, xmp, split_xmp: None, iim };
    for (format, plain) in &*FILES {
        let file = format.embed(plain, &metadata, Some(icc)).expect("metadata fits");
        assert_eq!(ImageFormat::of_file(&file), Some(*format));
        let again = format.embed(&file, &EmbeddedMetadata::default(), None).expect("a file");
        assert_eq!(&again, plain);
        // Arbitrary bytes, and a file with arbitrary bytes after a valid start.
        let _ = format.embed(bytes, &metadata, None);
        let start = usize::from(*first) % file.len();
        let _ = format.embed(&[&file[..start], icc].concat(), &metadata, None);
    }
});
