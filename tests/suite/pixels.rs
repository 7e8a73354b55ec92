//! Renditions compared with the results of other programs: Pillow with LittleCMS, libjpeg-turbo, exiftool.

use std::fs;

use serde_json::Value;
use turbojpeg::{Compressor, Image, PixelFormat, Subsamp, Transform, TransformOp};

use crate::common::{
    DEMO_KEY, LARGE, Server, oracle,
    pictures::{Picture, grey_profile, with_orientation, with_profile},
};

/// The bytes of `/media/image/<file>`, with the demo key.
fn fetch(server: &Server, file: &str) -> Vec<u8> {
    server.bytes(&format!("/media/image/{file}?ak={DEMO_KEY}"))
}

fn picture(server: &Server, file: &str) -> Picture {
    Picture::decode(&fetch(server, file))
}

fn progressive(jpeg: &[u8]) -> Vec<u8> {
    let mut transform = Transform::op(TransformOp::None);
    transform.progressive = true;
    turbojpeg::transform(&transform, jpeg).expect("a JPEG").to_vec()
}

/// Left, top, right and lower edge (exclusive) of the area that differs by more than noise.
fn changed(one: &Picture, other: &Picture) -> Option<[usize; 4]> {
    assert_eq!(one.size(), other.size());
    let mut found: Option<[usize; 4]> = None;
    for (x, y) in (0..one.height).flat_map(|y| (0..one.width).map(move |x| (x, y))) {
        let pairs = one.at(x, y).into_iter().zip(other.at(x, y));
        if pairs.into_iter().any(|(a, b)| a.abs_diff(b) > 24) {
            let [left, top, right, lower] = found.unwrap_or([x, y, x + 1, y + 1]);
            found = Some([left.min(x), top.min(y), right.max(x + 1), lower.max(y + 1)]);
        }
    }
    found
}

// ---- Orientation -------------------------------------------------------------------------------

const SMALL: [&str; 4] = [
    "media.preview_px=80",
    "media.thumbnail_px=40",
    "media.cropped_thumbnail_px=24",
    "media.web_preview_px=80",
];

#[test]
fn all_eight_orientations_are_delivered_and_reported_upright() {
    let stored = Picture::corners(160, 96).jpeg();
    let turned = |tag| (format!("turned{tag}"), with_orientation(&stored, tag));
    let pictures: Vec<_> = (1..=8).map(turned).collect();
    let server = Server::with_pictures(&SMALL, &pictures);
    let delivered = tempfile::tempdir().expect("folder");
    for (id, original) in &pictures {
        for (file, jpeg) in check_upright(&server, id, &oracle::upright(original)) {
            fs::write(delivered.path().join(file), jpeg).expect("written");
        }
    }
    let reported = oracle::exiftool_folder(delivered.path());
    assert_eq!(reported.len(), 8 * 8);
    for (file, tags) in reported {
        let tag = tags.get("IFD0:Orientation").and_then(Value::as_u64).unwrap_or(1);
        assert_eq!(tag, 1, "{file}");
    }
}

/// Compares every kind of rendition with `upright`; returns the renditions.
fn check_upright(server: &Server, id: &str, upright: &Picture) -> Vec<(String, Vec<u8>)> {
    let (preview, thumbnail) = (upright.reduced(2), upright.reduced(4));
    let (width, height) = upright.size();
    let upper = |picture: &Picture| picture.crop(0, 0, picture.width, picture.height / 2);
    let mut delivered = Vec::new();
    let mut check = |rest: &str, expected: &Picture, part: &dyn Fn(&Picture) -> Picture| {
        let file = format!("{id}{rest}");
        let jpeg = fetch(server, &file);
        let found = Picture::decode(&jpeg);
        assert_eq!(found.size(), expected.size(), "{file}");
        let distance = part(&found).distance(&part(expected));
        assert!(distance < 10.0, "{file} differs by {distance}");
        delivered.push((file, jpeg));
    };
    check("_NormalPreview.jpg", &preview, &Picture::clone);
    check("_WebPreview.jpg", &preview, &Picture::clone);
    check("_NormalThumbnail.jpg", &thumbnail, &Picture::clone);
    let crop = "-crop_w21_h17_x5_y7_NormalPreview.jpg";
    check(crop, &preview.crop(5, 7, 21, 17), &Picture::clone);
    check("-crop_w71_h51_x13_y9.jpg", &upright.crop(13, 9, 71, 51), &Picture::clone);
    let corner = Picture::flat(24, 24, upright.at(width - 4, 4));
    let crop = format!("-crop_w24_h24_x{}_y0.jpg", width - 24);
    check(&crop, &corner, &Picture::clone);
    check("-watermark.jpg", upright, &upper);
    let mark = changed(&Picture::decode(&delivered[6].1), upright).expect("a mark");
    assert!(mark[2] <= width / 2 && mark[1] >= height / 2, "{id}: {mark:?}");
    // The window of a CroppedThumbnail depends on the content; it only has to be upright.
    let file = format!("{id}_CroppedThumbnail.jpg");
    let jpeg = fetch(server, &file);
    let found = Picture::decode(&jpeg);
    assert_eq!(found.size(), (24, 24), "{file}");
    let windows = (0..=thumbnail.width - 24)
        .flat_map(|x| (0..=thumbnail.height - 24).map(move |y| (x, y)))
        .map(|(x, y)| thumbnail.crop(x, y, 24, 24).distance(&found));
    let nearest = windows.fold(f64::INFINITY, f64::min);
    assert!(nearest < 10.0, "{file} differs by {nearest} from every window");
    delivered.push((file, jpeg));
    delivered
}

#[test]
fn the_plain_hires_keeps_its_tag_and_its_picture_data() {
    let jpeg = with_orientation(&Picture::corners(160, 96).jpeg(), 6);
    let slow = progressive(&jpeg);
    let server = Server::with_pictures(&[], &[("turned", jpeg.clone()), ("slow", slow.clone())]);
    for (id, original) in [("turned", jpeg), ("slow", slow)] {
        for file in [format!("{id}.jpg"), format!("{id}_NormalHires.jpg")] {
            let delivered = fetch(&server, &file);
            let tag = oracle::exiftool(&delivered)["IFD0:Orientation"].clone();
            assert_eq!(tag, 6, "{file}");
            assert_eq!(picture_data(&delivered), picture_data(&original), "{file}");
        }
    }
}

/// From the first scan's marker to the end.
fn picture_data(jpeg: &[u8]) -> &[u8] {
    let mut at = 2;
    while jpeg[at + 1] != 0xDA {
        at += 2 + usize::from(u16::from_be_bytes([jpeg[at + 2], jpeg[at + 3]]));
    }
    &jpeg[at..]
}

// ---- Crops and sizes ---------------------------------------------------------------------------

#[test]
fn a_hires_crop_is_that_part_of_the_full_decode() {
    let waves = Picture::waves(203, 149);
    let samplings = [
        ("s420", Subsamp::Sub2x2),
        ("s422", Subsamp::Sub2x1),
        ("s444", Subsamp::None),
        ("s440", Subsamp::Sub1x2),
        ("grey", Subsamp::Gray),
    ];
    let baseline = samplings.map(|(id, sampling)| (id.to_owned(), waves.jpeg_with(sampling, 95)));
    let slow = baseline.clone().map(|(id, jpeg)| (format!("{id}-slow"), progressive(&jpeg)));
    let pictures = [baseline, slow].concat();
    let server = Server::with_pictures(&[], &pictures);
    let crops = [
        [0, 0, 64, 48],
        [0, 0, 203, 31],
        [0, 0, 33, 149],
        [170, 0, 33, 149],
        [0, 118, 203, 31],
        [139, 101, 64, 48],
        [37, 53, 71, 45],
        [1, 1, 201, 147],
        [202, 148, 1, 1],
    ];
    for (id, original) in &pictures {
        let whole = Picture::decode(original);
        for [x, y, width, height] in crops {
            let file = format!("{id}-crop_w{width}_h{height}_x{x}_y{y}.jpg");
            let found = picture(&server, &file);
            assert_eq!(found.size(), (width, height), "{file}");
            let psnr = found.psnr(&whole.crop(x, y, width, height));
            assert!(psnr >= 40.0, "{file}: {psnr:.1} dB");
        }
    }
}

#[test]
fn a_preview_crop_is_that_part_of_the_preview() {
    let pictures = [("waves", Picture::waves(800, 600).jpeg())];
    let server = Server::with_pictures(&["media.preview_px=400"], &pictures);
    let preview = picture(&server, "waves_NormalPreview.jpg");
    assert_eq!(preview.size(), (400, 300));
    for [x, y, width, height] in [[0, 0, 33, 31], [367, 269, 33, 31], [101, 57, 151, 99]] {
        let file = format!("waves-crop_w{width}_h{height}_x{x}_y{y}_NormalPreview.jpg");
        let found = picture(&server, &file);
        assert_eq!(found.size(), (width, height), "{file}");
        let psnr = found.psnr(&preview.crop(x, y, width, height));
        assert!(psnr >= 36.0, "{file}: {psnr:.1} dB");
    }
}

#[test]
fn nothing_is_enlarged() {
    let tiny = Picture::waves(1, 1).jpeg();
    let pictures = [("small", Picture::waves(100, 50).jpeg()), ("tiny", tiny)];
    let server = Server::with_pictures(&[], &pictures);
    for rendition in
        ["NormalPreview", "NormalThumbnail", "CroppedThumbnail", "WatermarkPreview", "WebPreview"]
    {
        assert_eq!(picture(&server, &format!("small_{rendition}.jpg")).size(), (100, 50));
        assert_eq!(picture(&server, &format!("tiny_{rendition}.jpg")).size(), (1, 1));
    }
}

#[test]
fn delivered_sizes_match_the_document() {
    let server = Server::demo();
    let turned = "image/demo-trumma-och-vin";
    for (key, query) in [
        (LARGE, ""),
        (LARGE, "-crop_w1001_h777_x1503_y333"),
        (LARGE, "-crop_w1_h1_x4271_y2847"),
        (turned, ""),
        (turned, "-crop_w1201_h3001_x700_y800"),
        ("image/demo-Falcon9-DSCOVR", ""),
    ] {
        let text = server.bytes(&format!("/media/{key}{query}.json"));
        let document: Value = serde_json::from_slice(&text).expect("JSON");
        let renditions = document["renditions"].as_object().expect("renditions");
        assert_eq!(renditions.len(), 5);
        for rendition in renditions.values() {
            let href = rendition["href"].as_str().expect("a link");
            let path = href.strip_prefix(&server.url).expect("our link");
            let found = Picture::decode(&server.bytes(&format!("{path}?ak={DEMO_KEY}")));
            let reported = (&rendition["width"], &rendition["height"]);
            // The plain Hires is stored rotated; its reported size is the upright one.
            let lying = key == turned && href.ends_with(".jpg") && !href.contains("-crop");
            let hires = rendition["usage"] == "Hires" && lying;
            let (width, height) = if hires { (found.height, found.width) } else { found.size() };
            assert_eq!(reported, (&Value::from(width), &Value::from(height)), "{path}");
        }
    }
}

// ---- Colour ------------------------------------------------------------------------------------

/// Compares a delivered picture with a reference: means and differences in levels.
fn check_colours(what: &str, found: &Picture, expected: &Picture) {
    assert_eq!(found.size(), expected.size(), "{what}");
    let distance = found.distance(expected);
    assert!(distance <= 3.0, "{what}: mean difference {distance:.2}");
    let (width, height) = found.size();
    let means = found.mean(0, 0, width, height).into_iter();
    for (mean, reference) in means.zip(expected.mean(0, 0, width, height)) {
        assert!(
            (mean - reference).abs() <= 4.0,
            "{what}: a channel's mean is {mean:.1}, not {reference:.1}"
        );
    }
}

fn demo_original(id: &str) -> Vec<u8> {
    let path = crate::common::checkout(&format!("media-store/demo/image/{id}/NormalHires.jpg"));
    fs::read(path).expect("a demo photograph")
}

/// YCCK as Adobe's programs write it: inverted CMYK with CMY converted to luma and chroma.
fn ycck(width: usize, height: usize, inks: &[u8]) -> Vec<u8> {
    let inverted: Vec<u8> = inks.iter().map(|ink| 255 - ink).collect();
    let pixels = inverted.as_slice();
    let image = Image { pixels, width, pitch: width * 4, height, format: PixelFormat::CMYK };
    let mut compressor = Compressor::new().expect("compressor");
    compressor.set_quality(95).expect("quality");
    compressor.set_subsamp(Subsamp::None).expect("sampling");
    compressor.compress_to_vec(image).expect("compressed")
}

/// One picture in every colour space, with Pillow's name for its mode.
pub fn colour_spaces() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let waves = Picture::waves(240, 160);
    let plain = waves.jpeg();
    let grey = waves.jpeg_with(Subsamp::Gray, 95);
    let p3 = oracle::profile(&demo_original("demo-fig-in-red-bowl_P3"));
    let adobe_rgb = oracle::profile(&demo_original("demo-Falcon9-DSCOVR"));
    assert!(!p3.is_empty() && !adobe_rgb.is_empty());
    let cmyk = oracle::cmyk(&plain, "plain");
    vec![
        ("srgb", "RGB", plain.clone()),
        ("p3", "RGB", with_profile(&plain, &p3)),
        ("adobe-rgb", "RGB", with_profile(&plain, &adobe_rgb)),
        ("grey", "L", grey.clone()),
        ("grey-profile", "L", with_profile(&grey, &grey_profile())),
        ("cmyk-slow", "CMYK", progressive(&cmyk)),
        ("cmyk", "CMYK", cmyk),
        ("cmyk-profile", "CMYK", oracle::cmyk(&plain, "profile")),
        ("ycck", "CMYK", ycck(240, 160, &oracle::cmyk(&plain, "raw"))),
    ]
}

#[test]
fn previews_are_srgb_as_littlecms_sees_every_colour_space() {
    let spaces = colour_spaces();
    let pictures: Vec<_> = spaces.iter().map(|(id, _, jpeg)| (*id, jpeg.clone())).collect();
    let server = Server::with_pictures(&[], &pictures);
    for (id, mode, original) in &spaces {
        let preview = fetch(&server, &format!("{id}_NormalPreview.jpg"));
        check_colours(id, &Picture::decode(&preview), &oracle::srgb(original, 0));
        let expected = if *mode == "L" { "L 240 160 plain" } else { "RGB 240 160 plain" };
        assert_eq!(oracle::describe(&preview), expected, "{id}");
    }
}

#[test]
fn wide_gamut_photographs_keep_their_saturation() {
    let server = Server::demo();
    for id in ["demo-fig-in-red-bowl_P3", "demo-Falcon9-DSCOVR"] {
        let preview = picture(&server, &format!("{id}_NormalPreview.jpg"));
        let long = preview.width.max(preview.height);
        // Downscaled, so that the comparison is of colours and not of encoder noise.
        let reference = oracle::srgb(&demo_original(id), long);
        check_colours(id, &preview.reduced(4), &reference.reduced(4));
    }
}

#[test]
fn hires_crops_and_marks_stay_in_the_colour_space_of_the_original() {
    let spaces = colour_spaces();
    let pictures: Vec<_> = spaces.iter().map(|(id, _, jpeg)| (*id, jpeg.clone())).collect();
    let server = Server::with_pictures(&[], &pictures);
    for (id, mode, original) in &spaces {
        let profile = oracle::profile(original);
        let icc = if profile.is_empty() { "plain" } else { "icc" };
        let upper = oracle::srgb(original, 0).crop(31, 13, 151, 77);
        let crop = fetch(&server, &format!("{id}-crop_w151_h77_x31_y13.jpg"));
        assert_eq!(oracle::describe(&crop), format!("{mode} 151 77 {icc}"), "{id}");
        assert!(oracle::profile(&crop) == profile, "{id}: another profile");
        check_colours(id, &oracle::srgb(&crop, 0), &upper);
        let marked = fetch(&server, &format!("{id}-watermark.jpg"));
        assert_eq!(oracle::describe(&marked), format!("{mode} 240 160 {icc}"), "{id}");
        assert!(oracle::profile(&marked) == profile, "{id}: another profile");
        check_colours(id, &oracle::srgb(&marked, 0).crop(31, 13, 151, 77), &upper);
        let plain = fetch(&server, &format!("{id}.jpg"));
        assert!(oracle::profile(&plain) == profile, "{id}: the Hires has another profile");
    }
}

// ---- Watermark ---------------------------------------------------------------------------------

#[test]
fn the_mark_is_lower_left_in_the_same_proportion_at_every_size() {
    let soft = Picture::new(900, 600, |x, y| {
        [100, 110, 120].map(|base| base + u8::try_from((x + y) / 60).expect("small"))
    });
    let server = Server::with_pictures(&["media.preview_px=300"], &[("soft", soft.jpeg())]);
    let hires = changed(&picture(&server, "soft.jpg"), &picture(&server, "soft-watermark.jpg"));
    let hires = hires.expect("a mark on the Hires");
    let [left, top, right, lower] = hires;
    assert!((5..60).contains(&left) && (5..60).contains(&(600 - lower)), "{hires:?}");
    assert!((130..240).contains(&(right - left)) && top > 450, "{hires:?}");
    let plain = picture(&server, "soft_NormalPreview.jpg");
    let preview = changed(&plain, &picture(&server, "soft_WatermarkPreview.jpg"));
    for (large, small) in hires.iter().zip(preview.expect("a mark on the Preview")) {
        assert!(large.abs_diff(small * 3) <= 9, "{hires:?} and {preview:?}");
    }
}

#[test]
fn the_mark_is_legible_on_white_and_black_and_changes_nothing_else() {
    let grounds = [("white", 255), ("grey", 128), ("black", 0)];
    let flat = |(id, level): (&'static str, u8)| (id, Picture::flat(900, 600, [level; 3]).jpeg());
    let server = Server::with_pictures(&["media.preview_px=300"], &grounds.map(flat));
    for (id, _) in grounds {
        for file in ["-watermark.jpg", "_WatermarkPreview.jpg"] {
            let marked = picture(&server, &format!("{id}{file}"));
            let ground = marked.at(marked.width - 1, 0);
            let plain = Picture::flat(marked.width, marked.height, ground);
            let [left, top, right, lower] = changed(&marked, &plain).expect("a mark");
            let levels = (top..lower).flat_map(|y| (left..right).map(move |x| (x, y)));
            let levels: Vec<u8> = levels.map(|(x, y)| marked.at(x, y)[1]).collect();
            let (low, high) = (levels.iter().min().expect("some"), levels.iter().max());
            let contrast = high.expect("some") - low;
            assert!(contrast >= 100, "{id}{file}: contrast {contrast}");
            let above = marked.crop(0, 0, marked.width, top.saturating_sub(16));
            let outside = marked.crop(right + 16, 0, marked.width - right - 16, marked.height);
            for rest in [above, outside] {
                let untouched = Picture::flat(rest.width, rest.height, ground);
                assert!(rest.distance(&untouched) < 0.5, "{id}{file}");
            }
        }
    }
}

#[test]
fn the_watermark_operation_equals_the_variant_byte_for_byte() {
    let server = Server::with_pictures(&[], &[("one", Picture::waves(1100, 700).jpeg())]);
    for usage in ["Hires", "Preview", "Thumbnail"] {
        let variant = fetch(&server, &format!("one_Watermark{usage}.jpg"));
        assert!(variant != fetch(&server, &format!("one_Normal{usage}.jpg")), "{usage}");
        for file in [
            format!("one-watermark_Normal{usage}.jpg"),
            format!("one-watermark_Watermark{usage}.jpg"),
            format!("one_Watermarked{usage}.jpg"),
        ] {
            assert!(fetch(&server, &file) == variant, "{file}");
        }
    }
}

#[test]
fn operations_apply_in_the_order_written() {
    let waves = Picture::waves(600, 400);
    let server = Server::with_pictures(&[], &[("one", waves.jpeg())]);
    let whole = picture(&server, "one-watermark.jpg");
    // The crop gets its own mark in its own corner.
    let crop = picture(&server, "one-crop_w300_h200_x300_y0.jpg");
    let marked = picture(&server, "one-crop_w300_h200_x300_y0-watermark.jpg");
    let [left, top, right, lower] = changed(&crop, &marked).expect("a mark on the crop");
    assert!(left < 20 && lower > 180 && top > 140 && right < 90, "{left} {top} {right} {lower}");
    // The other order crops the marked picture: no mark at the top, the mark of the whole picture at the bottom.
    let above = picture(&server, "one-watermark-crop_w300_h200_x300_y0.jpg");
    assert_eq!(changed(&crop, &above), None);
    let below = picture(&server, "one-watermark-crop_w301_h199_x0_y201.jpg");
    assert!(below.psnr(&whole.crop(0, 201, 301, 199)) >= 36.0);
    let plain = waves.crop(0, 201, 301, 199);
    let [left, _, right, _] = changed(&below, &plain).expect("the mark of the whole");
    assert!(left < 20 && right > 110, "{left} {right}");
}

#[test]
fn a_png_can_be_the_mark() {
    let dir = tempfile::tempdir().expect("folder");
    let png = dir.path().join("mark.png");
    let script = "
import sys
from PIL import Image
Image.new('RGBA', (80, 40), (255, 0, 255, 255)).save(sys.stdout.buffer, 'PNG')
";
    fs::write(&png, oracle::python(script, &[], b"")).expect("written");
    let setting = format!("media.watermark_png={}", png.display());
    let pictures = [("white", Picture::flat(800, 600, [255; 3]).jpeg())];
    let opaque = [setting.as_str(), "media.watermark_opacity=1", "media.watermark_width=0.25"];
    let server = Server::with_pictures(&opaque, &pictures);
    let marked = picture(&server, "white-watermark.jpg");
    let white = Picture::flat(800, 600, [255; 3]);
    let [left, top, right, lower] = changed(&marked, &white).expect("a mark");
    assert!((right - left).abs_diff(200) <= 2 && (lower - top).abs_diff(100) <= 2);
    assert!(left.abs_diff(16) <= 2 && lower.abs_diff(584) <= 2, "{left} {lower}");
    let [red, green, blue] = marked.mean(left + 20, top + 20, 160, 60);
    assert!(red > 245.0 && green < 10.0 && blue > 245.0, "{red} {green} {blue}");
}

// ---- Caption metadata --------------------------------------------------------------------------

/// A photograph with a caption, a position and a thumbnail of another picture.
pub fn captioned() -> Vec<u8> {
    let dir = tempfile::tempdir().expect("folder");
    let thumbnail = dir.path().join("thumbnail.jpg");
    fs::write(&thumbnail, Picture::flat(40, 30, [200, 0, 0]).jpeg()).expect("written");
    let thumbnail = format!("-ThumbnailImage<={}", thumbnail.display());
    let arguments = [
        "-IPTC:CodedCharacterSet=UTF8",
        "-IPTC:Headline=Älgar på väg över ån",
        "-IPTC:Caption-Abstract=Två älgar går över Ångermanälven.",
        "-IPTC:By-line=Åsa Öberg",
        "-IPTC:CopyrightNotice=© Åsa Öberg",
        "-IPTC:Keywords=älg",
        "-IPTC:Keywords=vilt",
        "-IPTC:City=Åre",
        "-IPTC:Country-PrimaryLocationName=Sverige",
        "-GPSLatitude=63.4",
        "-GPSLatitudeRef=N",
        "-GPSLongitude=13.1",
        "-GPSLongitudeRef=E",
        &thumbnail,
    ];
    oracle::exiftool_write(&Picture::waves(1100, 700).jpeg(), &arguments)
}

pub const CAPTION: [(&str, &str, &str); 6] = [
    ("IPTC:Headline", "XMP-photoshop:Headline", "Älgar på väg över ån"),
    ("IPTC:Caption-Abstract", "XMP-dc:Description", "Två älgar går över Ångermanälven."),
    ("IPTC:By-line", "XMP-dc:Creator", "Åsa Öberg"),
    ("IPTC:CopyrightNotice", "XMP-dc:Rights", "© Åsa Öberg"),
    ("IPTC:City", "XMP-photoshop:City", "Åre"),
    ("IPTC:Country-PrimaryLocationName", "XMP-photoshop:Country", "Sverige"),
];

const CAPTIONED: [&str; 7] = [
    ".jpg",
    "_NormalHires.jpg",
    "-crop_w400_h300_x5_y5.jpg",
    "-watermark.jpg",
    "_NormalPreview.jpg",
    "_WatermarkPreview.jpg",
    "-crop_w100_h90_NormalPreview.jpg",
];

/// Returns whether any tag belongs to the group.
pub fn has_group(tags: &serde_json::Map<String, Value>, group: &str) -> bool {
    tags.keys().any(|key| key.starts_with(group))
}

#[test]
fn hires_and_preview_carry_the_caption_and_never_a_position_or_a_thumbnail() {
    let original = captioned();
    let before = oracle::exiftool(&original);
    assert!(has_group(&before, "GPS:") && has_group(&before, "IFD1:"), "{before:?}");
    let server = Server::with_pictures(&[], &[("moose", original)]);
    for rest in CAPTIONED {
        let tags = oracle::exiftool(&fetch(&server, &format!("moose{rest}")));
        for (iim, xmp, text) in CAPTION {
            assert_eq!(tags.get(iim), Some(&Value::from(text)), "{rest} {iim} {tags:#?}");
            assert_eq!(tags.get(xmp), Some(&Value::from(text)), "{rest} {xmp} {tags:#?}");
        }
        let keywords = serde_json::json!(["älg", "vilt"]);
        assert_eq!(tags["IPTC:Keywords"], keywords, "{rest}");
        assert_eq!(tags["XMP-dc:Subject"], keywords, "{rest}");
        assert_eq!(tags["IPTC:CodedCharacterSet"], "\u{1b}%G", "{rest} is UTF-8");
        assert!(!has_group(&tags, "GPS:") && !has_group(&tags, "IFD1:"), "{rest} {tags:#?}");
        assert!(!tags.keys().any(|key| key.contains("GPS")), "{rest} {tags:#?}");
    }
    for rest in ["_NormalThumbnail.jpg", "_CroppedThumbnail.jpg", "_WatermarkThumbnail.jpg"] {
        let tags = oracle::exiftool(&fetch(&server, &format!("moose{rest}")));
        for group in ["IPTC:", "XMP-", "IFD0:", "IFD1:", "ExifIFD:", "GPS:"] {
            assert!(!has_group(&tags, group), "{rest} {group} {tags:#?}");
        }
    }
}

#[test]
fn the_gps_position_is_kept_when_configured() {
    let server = Server::with_pictures(&["media.keep_gps=true"], &[("moose", captioned())]);
    for rest in CAPTIONED {
        let tags = oracle::exiftool(&fetch(&server, &format!("moose{rest}")));
        for (tag, degrees) in [("GPS:GPSLatitude", 63.4), ("GPS:GPSLongitude", 13.1)] {
            let found = tags.get(tag).and_then(Value::as_f64).expect("a position");
            assert!((found - degrees).abs() < 0.001, "{rest} {tag} {found}");
        }
        assert!(!has_group(&tags, "IFD1:"), "{rest} {tags:#?}");
    }
}

#[test]
fn the_embedded_caption_is_that_of_the_current_document() {
    let server = Server::with_pictures(&[], &[("moose", captioned())]);
    let old = fetch(&server, "moose_NormalPreview.jpg");
    let folder = server.dir.path().join("image/moose");
    fs::create_dir_all(&folder).expect("folder");
    let document = serde_json::json!({
        "headline": "Rättad rubrik", "byline": "Åsa Öberg", "copyrightnotice": "© Åsa Öberg",
    });
    fs::write(folder.join("item.json"), document.to_string()).expect("written");
    let output = server.command(&["ingest", &folder.to_string_lossy()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for rest in CAPTIONED {
        let file = format!("moose{rest}");
        let tags = server.until("the new caption", || {
            let tags = oracle::exiftool(&fetch(&server, &file));
            (tags["XMP-photoshop:Headline"] == "Rättad rubrik").then_some(tags)
        });
        assert_eq!(tags["IPTC:Headline"], "Rättad rubrik", "{rest}");
        assert!(!tags.contains_key("IPTC:Caption-Abstract"), "{rest}: the old text stays");
    }
    // Only the metadata differs.
    let new = fetch(&server, "moose_NormalPreview.jpg");
    assert!(picture_data(&new) == picture_data(&old));
}

// ---- Determinism -------------------------------------------------------------------------------

const EVERY_KIND: [&str; 9] = [
    ".jpg",
    "_NormalPreview.jpg",
    "_WebPreview.jpg",
    "_NormalThumbnail.jpg",
    "_CroppedThumbnail.jpg",
    "-crop_w99_h77_x31_y13.jpg",
    "-watermark.jpg",
    "-crop_w51_h41_x3_y5_WatermarkPreview.jpg",
    "-watermark-crop_w51_h41_x3_y5.jpg",
];

const UNCACHED: [&str; 3] = ["cache.memory_bytes=0", "cache.disk_bytes=0", "media.preview_px=160"];

#[test]
fn the_same_request_gives_the_same_bytes_when_nothing_is_cached() {
    let pictures = [("one", Picture::waves(240, 180).jpeg_with(Subsamp::Sub2x2, 90))];
    let server = Server::with_pictures(&UNCACHED, &pictures);
    for rest in EVERY_KIND {
        let (one, two) =
            (fetch(&server, &format!("one{rest}")), fetch(&server, &format!("one{rest}")));
        assert!(one == two, "{rest}");
    }
    assert!(server.metric("wirephoto_render_paths_total", "") >= 16.0);
}

#[test]
fn a_damaged_picture_is_ingested_with_a_warning_and_renders_the_same_bytes_twice() {
    let good = Picture::waves(240, 180).jpeg_with(Subsamp::Sub2x2, 90);
    let damage = |mut jpeg: Vec<u8>| {
        let data = jpeg.len() - picture_data(&jpeg).len();
        let (start, end) = (data + (jpeg.len() - data) / 3, data + (jpeg.len() - data) / 2);
        for (at, byte) in jpeg[start..end].iter_mut().enumerate() {
            *byte = if at % 7 == 0 { 0x01 } else { 0x5A };
        }
        jpeg
    };
    let slow = damage(progressive(&good));
    let pictures = [("overwritten", damage(good)), ("slow", slow)];
    let server = Server::with_pictures(&UNCACHED, &pictures);
    for (id, jpeg) in &pictures {
        let path = server.dir.path().join(format!("{id}.jpg"));
        fs::write(&path, jpeg).expect("written");
        let output = server.command(&["ingest", &path.to_string_lossy()]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.contains("warning"), "{id}: {said}");
        for rest in EVERY_KIND {
            let file = format!("{id}{rest}");
            assert!(fetch(&server, &file) == fetch(&server, &file), "{file}");
        }
    }
}
