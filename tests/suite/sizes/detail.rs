//! The detail of open addresses: no chain of operations gives any caller more than the open picture has.
//!
//! The picture is a fine checkerboard. Its cells are much smaller than a pixel of the open picture, so whatever has
//! no more detail than that is an even grey.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{BUYER_KEY, header, open, with_key};
use crate::common::{DEMO_KEY, Server, oracle, pictures::Picture};

/// The picture, and the open picture: 8.2 times smaller.
const FULL: (usize, usize) = (615, 410);
const OPEN: (usize, usize) = (75, 50);
/// The side of a cell in pixels of the picture.
const CELL_PX: usize = 2;
/// The largest difference between two samples of an even grey. Where a crop cuts cells off, pixels of the open picture
/// differ by 12 levels at most; the rest is what encoders change.
const EVEN_LEVELS: u8 = 40;

const SETTINGS: [&str; 9] = [
    "media.open_px=75",
    "media.preview_px=75",
    "media.web_preview_px=50",
    "media.thumbnail_px=25",
    "media.cropped_thumbnail_px=16",
    "media.widths=any",
    r#"media.presets={"big":{"fit":[5000,5000],"quality":95},"tile":{"fill":[900,900],"mark":true}}"#,
    "media.client_megapixels_s=0",
    "media.warm=false",
];

/// A rendition that is open, its size, and the size in which its whole part may be seen.
struct OpenName {
    suffix: &'static str,
    size: (usize, usize),
    limit: (usize, usize),
}

const OPEN_NAMES: [OpenName; 6] = [
    OpenName { suffix: "_NormalPreview", size: OPEN, limit: OPEN },
    OpenName { suffix: "_WatermarkPreview", size: OPEN, limit: OPEN },
    OpenName { suffix: "_WebPreview", size: (50, 33), limit: OPEN },
    OpenName { suffix: "_NormalThumbnail", size: (25, 17), limit: OPEN },
    OpenName { suffix: "_WatermarkThumbnail", size: (25, 17), limit: OPEN },
    // A square that is smaller than the open picture.
    OpenName { suffix: "_CroppedThumbnail", size: (16, 16), limit: (16, 16) },
];

const SIZES: [&str; 9] = [
    "",
    "-fit_w5000",
    "-fit_h5000",
    "-fit_w5000_h4000",
    "-fit_w40",
    "-fill_w5000_h5000",
    "-fill_w90_h10",
    "-preset_big",
    "-preset_tile",
];

/// The place of the mark among the operations.
#[derive(Clone, Copy, PartialEq)]
enum Mark {
    None,
    First,
    Last,
}

/// An address and what it may show.
struct Case {
    file: String,
    /// The largest size.
    most: (usize, usize),
    /// True if the picture has a mark of its own, in its lower left corner.
    is_marked: bool,
}

fn server() -> Server {
    let (width, height) = FULL;
    let level = |x: usize, y: usize| {
        [if (x / CELL_PX + y / CELL_PX).is_multiple_of(2) { 255 } else { 0 }; 3]
    };
    let checkers = Picture::new(width, height, level).jpeg();
    Server::with_pictures(&SETTINGS, &[("checkers", checkers)])
}

/// The crops of a rendition: none, all of it, its last pixel at the top, a part at the upper right and one that begins
/// at the corner; each with its size.
fn crops(size: (usize, usize)) -> [(String, (usize, usize)); 5] {
    let (w, h) = size;
    let cut = |w: usize, h: usize, x: usize| (format!("-crop_w{w}_h{h}_x{x}_y0"), (w, h));
    let part = (w / 2, h / 3);
    [
        (String::new(), size),
        cut(w, h, 0),
        cut(1, 1, w - 1),
        cut(part.0, part.1, w - part.0),
        cut(part.0, part.1, 0),
    ]
}

/// Every combination of an open name with a crop, a size and a mark.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for name in &OPEN_NAMES {
        for (crop, (w, h)) in crops(name.size) {
            let share = |cut: usize, size: usize, limit: usize| (cut * limit).div_ceil(size);
            let most = (share(w, name.size.0, name.limit.0), share(h, name.size.1, name.limit.1));
            for size in SIZES {
                for mark in [Mark::None, Mark::First, Mark::Last] {
                    let is_preset = size.starts_with("-preset");
                    if is_preset && mark != Mark::None {
                        continue;
                    }
                    let operations = match mark {
                        Mark::None => format!("{crop}{size}"),
                        Mark::First => format!("-watermark{crop}{size}"),
                        Mark::Last => format!("{crop}{size}-watermark"),
                    };
                    let file = format!("checkers{operations}{}.jpg", name.suffix);
                    // A mark in front of a crop is drawn on the whole picture, below what the crops show.
                    let is_marked = mark == Mark::Last
                        || mark == Mark::First && (crop.is_empty() || h == name.size.1)
                        || name.suffix.starts_with("_Watermark")
                        || size == "-preset_tile";
                    cases.push(Case { file, most, is_marked });
                }
            }
        }
    }
    cases
}

/// Asserts that the picture is an even grey, above its mark.
#[track_caller]
fn is_even(file: &str, picture: &Picture, is_marked: bool) {
    let (width, height) = picture.size();
    // The mark is lower than a fifth of the width, and an encoder spreads it by a block at most.
    let rows = if is_marked { height.saturating_sub(width / 5 + 8) } else { height };
    let shown = &picture.pixels[..rows * width * 3];
    let (Some(low), Some(high)) = (shown.iter().min(), shown.iter().max()) else { return };
    assert!(high - low <= EVEN_LEVELS, "{file}: from {low} to {high}");
    // Black and white would be 0 and 255.
    assert!((100..225).contains(low) && (100..225).contains(high), "{file}: {low} to {high}");
}

#[test]
fn no_open_address_shows_more_detail_than_the_open_picture() {
    let server = server();
    let cases = cases();
    assert!(cases.len() > 600, "{}", cases.len());
    let mut sizes = BTreeSet::new();
    for Case { file, most, is_marked } in &cases {
        let response = open(&server, file);
        assert_eq!(response.status(), 200, "{file}");
        let stated = header(&response, "wirephoto-size");
        let picture = Picture::decode(&response.bytes().expect("body"));
        let (width, height) = picture.size();
        assert!(width <= most.0 && height <= most.1, "{file}: {width}x{height}, not {most:?}");
        let is_sized = file.contains("-f") || file.contains("-preset");
        let expected = if is_sized { format!("{width}x{height}") } else { String::new() };
        assert_eq!(stated, expected, "{file}");
        is_even(file, &picture, *is_marked);
        sizes.insert((width, height));
    }
    assert!(sizes.len() > 20 && sizes.contains(&OPEN), "{sizes:?}");
}

/// Pictures that are little larger than the open picture of 80 x 53 pixels, where rounding counts most: 1.05, 1.5 and
/// 1.95 times.
const CLOSE: [(&str, usize, usize); 3] =
    [("near", 84, 56), ("half", 120, 80), ("twice", 156, 104)];
const CLOSE_SETTINGS: [&str; 6] = [
    "media.open_px=80",
    "media.preview_px=80",
    // Encoding changes next to nothing.
    "media.preview_quality=100",
    "media.widths=any",
    "media.client_megapixels_s=0",
    "media.warm=false",
];

/// The largest difference between the samples of two pictures of one size, levels.
#[track_caller]
fn most_different(found: &Picture, expected: &Picture) -> u8 {
    assert_eq!(found.size(), expected.size());
    let pairs = found.pixels.iter().zip(&expected.pixels);
    pairs.map(|(one, other)| one.abs_diff(*other)).max().expect("samples")
}

#[test]
fn a_narrow_part_is_a_part_of_the_open_picture() {
    const ENCODED_LEVELS: u8 = 4;
    // Grey, because chroma is subsampled.
    let noise = |x: usize, y: usize| {
        let level = (x * x * 31 + y * y * 17 + x * y * 13) % 256;
        [u8::try_from(level).expect("a byte"); 3]
    };
    let pictures = CLOSE.map(|(id, w, h)| (id, Picture::new(w, h, noise).jpeg()));
    let server = Server::with_pictures(&CLOSE_SETTINGS, &pictures);
    let shown = |file: &str| {
        let response = open(&server, &format!("{file}_NormalPreview.jpg"));
        assert_eq!(response.status(), 200, "{file}");
        Picture::decode(&response.bytes().expect("body"))
    };
    for (id, ..) in CLOSE {
        let whole = shown(id);
        let (width, height) = whole.size();
        assert_eq!((width, height), (80, 53), "{id}");
        for (x, y, w, h) in [
            (0, 0, 1, height),
            (10, 0, 1, height),
            (width - 1, 0, 1, height),
            (0, 7, width, 1),
            (0, height - 1, width, 1),
            (33, 20, 1, 1),
            (10, 4, 2, 3),
            (5, 5, 40, 30),
        ] {
            let crop = format!("{id}-crop_w{w}_h{h}_x{x}_y{y}");
            let part = whole.crop(x, y, w, h);
            for size in
                ["-fit_w5000".to_owned(), "-fit_h4000".to_owned(), format!("-fill_w{w}_h{h}")]
            {
                let most = most_different(&shown(&format!("{crop}{size}")), &part);
                assert!(most <= ENCODED_LEVELS, "{crop}{size}: {most} levels");
            }
            if h == 1 {
                continue;
            }
            // Without the first or the last of its rows.
            let cut = shown(&format!("{crop}-fill_w{w}_h{}", h - 1));
            let most = [y, y + 1].map(|y| most_different(&cut, &whole.crop(x, y, w, h - 1)));
            assert!(most.iter().any(|most| *most <= ENCODED_LEVELS), "{crop}: {most:?} levels");
        }
    }
}

#[test]
fn no_credentials_make_an_open_address_show_more() {
    let server = server();
    for Case { file, .. } in cases().iter().step_by(7) {
        let answer = open(&server, file);
        let tag = header(&answer, "etag");
        assert!(header(&answer, "cache-control").starts_with("public"), "{file}");
        for key in [BUYER_KEY, DEMO_KEY] {
            let key = format!("ApiKey {key}");
            let headers = [("authorization", key.as_str()), ("if-none-match", tag.as_str())];
            let same = server.get_with(&format!("/media/image/{file}"), &headers);
            assert_eq!(same.status(), 304, "{file}");
        }
    }
}

#[test]
fn no_format_of_an_open_address_shows_more_detail() {
    let server = server();
    for name in &OPEN_NAMES[..4] {
        for (crop, _) in crops(name.size) {
            for (size, extension) in [("-fit_w5000", "webp"), ("-fill_w900_h900", "avif")] {
                let file = format!("checkers{crop}{size}{}.{extension}", name.suffix);
                let response = open(&server, &file);
                assert_eq!(response.status(), 200, "{file}");
                let body = response.bytes().expect("body");
                let picture = oracle::srgb(&oracle::readable(&body), 0);
                let (width, height) = picture.size();
                assert!(width <= OPEN.0 && height <= OPEN.1, "{file}: {width}x{height}");
                is_even(&file, &picture, name.suffix.starts_with("_Watermark"));
            }
        }
    }
}

#[test]
fn the_hires_shows_its_cells_to_those_who_bought_it() {
    let server = server();
    let cells = |file: &str| {
        let response = with_key(&server, file, DEMO_KEY);
        assert_eq!(response.status(), 200, "{file}");
        let picture = Picture::decode(&response.bytes().expect("body"));
        let (low, high) = (picture.pixels.iter().min(), picture.pixels.iter().max());
        (picture.size(), high.expect("samples") - low.expect("samples"))
    };
    for (rest, size) in [
        ("-fit_w5000.jpg", FULL),
        ("-crop_w60_h40_x500_y9-fit_w5000.jpg", (60, 40)),
        ("-crop_w60_h40-fill_w50_h40_NormalHires.jpg", (50, 40)),
    ] {
        let (found, contrast) = cells(&format!("checkers{rest}"));
        assert!(found == size && contrast > 200, "{rest}: {found:?}, {contrast} levels");
    }
    // Every size of the Hires names needs the right, however small.
    for (crop, _) in crops(FULL) {
        for size in SIZES {
            for suffix in ["", "_NormalHires", "_WatermarkHires"] {
                let file = format!("checkers{crop}{size}{suffix}.jpg");
                assert_eq!(open(&server, &file).status(), 401, "{file}");
                let refused = with_key(&server, &file, BUYER_KEY);
                assert_eq!(refused.status(), 403, "{file}");
                let body: Value = refused.json().expect("JSON");
                assert_eq!(body["errors"][0]["errorCode"], "agreement_required", "{file}");
            }
        }
    }
}
