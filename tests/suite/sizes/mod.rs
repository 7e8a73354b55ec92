//! Sizes and formats of renditions (`docs/contract/media.md`): what an address with a size shows and to whom, its
//! spelling, the widths that are served, presets, and malformed sizes.

mod detail;
mod document;
mod formats;
mod limits;
mod negotiation;

use reqwest::blocking::Response;
use serde_json::Value;

use crate::common::{DEMO_KEY, Server, api::ApiCaller, oracle, pictures::Picture};
use crate::media::refusal;

/// The key of `demo-buyer`, whose agreements cover no picture of these tests.
const BUYER_KEY: &str = "demo-key-0000-0000-000000000003";

/// The text of a header, of all its lines; empty if it is absent.
fn header(response: &Response, name: &str) -> String {
    let lines = response.headers().get_all(name).iter();
    lines.map(|line| line.to_str().expect("ASCII")).collect::<Vec<_>>().join(", ")
}

/// GET of `/media/image/<file>` without credentials.
fn open(server: &Server, file: &str) -> Response {
    server.get(&format!("/media/image/{file}"))
}

/// GET of `/media/image/<file>` with a key.
fn with_key(server: &Server, file: &str, key: &str) -> Response {
    let key = format!("ApiKey {key}");
    server.get_with(&format!("/media/image/{file}"), &[("authorization", &key)])
}

/// The body and the size of `/media/image/<file>` as the demo editor gets it; a size that the headers state is that
/// of the picture.
#[track_caller]
fn picture(server: &Server, file: &str) -> (Vec<u8>, (usize, usize)) {
    let response = with_key(server, file, DEMO_KEY);
    assert_eq!(response.status(), 200, "{file}");
    let stated = header(&response, "wirephoto-size");
    let body = response.bytes().expect("body").to_vec();
    let (width, height) = oracle::srgb(&oracle::readable(&body), 0).size();
    assert!(stated.is_empty() || stated == format!("{width}x{height}"), "{file}: {stated}");
    (body, (width, height))
}

#[track_caller]
fn has_size(server: &Server, file: &str, size: (usize, usize)) {
    assert_eq!(picture(server, file).1, size, "{file}");
}

/// A picture of 1500 x 1000 pixels, whose Preview has 1024 x 683.
fn large() -> [(&'static str, Vec<u8>); 1] {
    [("one", Picture::waves(1500, 1000).jpeg())]
}

#[test]
fn one_size_has_one_tag_and_one_cache_entry_however_it_is_spelled() {
    let server = Server::with_pictures(&["media.warm=false"], &large());
    let check = |spellings: &[&str]| {
        let answers: Vec<_> = spellings
            .iter()
            .map(|rest| {
                let response = with_key(&server, &format!("one{rest}"), DEMO_KEY);
                assert_eq!(response.status(), 200, "{rest}");
                (header(&response, "etag"), response.bytes().expect("body"))
            })
            .collect();
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{spellings:?}");
        answers[0].0.clone()
    };
    let fit = check(&[
        "-fit_w640_h480_NormalPreview.jpg",
        "-fit_h480_w640_NormalPreview.jpg",
        "-FIT_W0640_h480_normalPREVIEW.JPG",
    ]);
    let marked = check(&[
        "-fit_w640-watermark_NormalPreview.jpg",
        "-watermark-fit_w640_NormalPreview.jpg",
        "-fit_w640_WatermarkPreview.jpg",
        "-watermark-fit_w640_WatermarkedPreview.jpg",
    ]);
    let cut = check(&[
        "-crop_w300_h200_x9_y8-fill_w160_h90-watermark_NormalPreview.jpg",
        "-crop_y8_x9_h200_w300-watermark-fill_h90_w160_NormalPreview.jpg",
    ]);
    check(&["-fill_w300_h200.webp", "-fill_h200_w300_NormalHires.WEBP"]);
    // Where a size changes nothing, the rendition is the one without a size.
    let preview = check(&["_NormalPreview.jpg", "-fit_w1024_NormalPreview.jpg"]);
    check(&[".jpg", "-fit_w1500.jpg", "-fit_w9999_h9999_NormalHires.jpg"]);
    let all = std::collections::BTreeSet::from([fit, marked, cut, preview]);
    assert_eq!(all.len(), 4, "{all:?}");
    let renders = server.metric("wirephoto_render_paths_total", "");
    assert!((renders - 6.0).abs() < 0.5, "{renders}");
}

#[test]
fn a_fit_keeps_the_ratio_and_a_fill_has_the_size_and_nothing_is_enlarged() {
    let pictures = [("wide", Picture::waves(600, 400).jpeg())];
    let server = Server::with_pictures(&["media.widths=any", "media.warm=false"], &pictures);
    for name in ["", "_NormalPreview"] {
        let check = |size: &str, expected: (usize, usize)| {
            has_size(&server, &format!("wide{size}{name}.jpg"), expected);
        };
        check("-fit_w300", (300, 200));
        check("-fit_h100", (150, 100));
        check("-fit_w300_h100", (150, 100));
        check("-fit_w301", (301, 201));
        check("-fit_w1", (1, 1));
        check("-fit_w5000", (600, 400));
        check("-fit_w4294967295_h4294967295", (600, 400));
        check("-fill_w300_h100", (300, 100));
        check("-fill_w100_h300", (100, 300));
        check("-fill_w600_h400", (600, 400));
        check("-fill_w5000_h5000", (400, 400));
        check("-crop_w300_h200_x10_y10-fit_w150", (150, 100));
        check("-crop_w300_h200_x10_y10-fit_w900", (300, 200));
        check("-crop_w300_h200-fit_w900", (300, 200));
        check("-crop_w300_h200-fill_w900_h900", (200, 200));
        check("-crop_w300_h200_x10_y10-fill_w50_h80", (50, 80));
        check("-watermark-crop_w300_h200-fit_w150", (150, 100));
    }
    // The picture of an address without a size needs no header.
    let plain = open(&server, "wide_NormalPreview.jpg");
    assert_eq!(header(&plain, "wirephoto-size"), "");
    // The size is stated without the picture too.
    let path = format!("{}/media/image/wide-fit_w300_NormalPreview.jpg", server.url);
    let head = server.client.head(&path).send().expect("answer");
    assert_eq!((head.status().as_u16(), header(&head, "wirephoto-size")), (200, "300x200".into()));
    let tag = header(&head, "etag");
    let known = server.client.get(&path).header("if-none-match", tag).send().expect("answer");
    assert_eq!(
        (known.status().as_u16(), header(&known, "wirephoto-size")),
        (304, "300x200".into())
    );
}

#[test]
fn an_open_width_off_the_ladder_is_answered_with_the_next_one_and_a_bought_one_is_exact() {
    let server = Server::with_pictures(&["media.warm=false"], &large());
    let stated = |server: &Server, rest: &str| {
        let response = with_key(server, &format!("one{rest}"), DEMO_KEY);
        assert_eq!(response.status(), 200, "{rest}");
        header(&response, "wirephoto-size")
    };
    for (rest, size) in [
        ("-fit_w160_NormalPreview.jpg", "160x107"),
        ("-fit_w161_NormalPreview.jpg", "240x160"),
        ("-fit_w240_NormalThumbnail.jpg", "240x160"),
        ("-fit_h100_NormalPreview.jpg", "160x107"),
        ("-fit_w700_WebPreview.jpg", "800x533"),
        ("-fit_w1000_NormalPreview.jpg", "1024x683"),
        ("-fit_w9000_NormalPreview.jpg", "1024x683"),
        ("-fill_w300_h300_NormalPreview.webp", "320x320"),
        ("-crop_w200_h100-fit_w161_NormalPreview.jpg", "200x100"),
        ("-fit_w161.jpg", "161x107"),
        ("-fill_w300_h301.jpg", "300x301"),
    ] {
        assert_eq!(stated(&server, rest), size, "{rest}");
    }
    has_size(&server, "one-fit_w161_NormalPreview.jpg", (240, 160));
    let tag = |rest: &str| header(&open(&server, &format!("one{rest}")), "etag");
    assert_eq!(tag("-fit_w161_NormalPreview.jpg"), tag("-fit_w240_NormalPreview.jpg"));
    let server = server.restart(&["media.widths=100, 200", "media.warm=false"]);
    assert_eq!(stated(&server, "-fit_w161_NormalPreview.jpg"), "200x133");
    assert_eq!(stated(&server, "-fit_w201_NormalPreview.jpg"), "201x134", "beyond the last width");
    let server = server.restart(&["media.widths=any", "media.warm=false"]);
    assert_eq!(stated(&server, "-fit_w161_NormalPreview.jpg"), "161x107");
}

const PRESETS: &str = r#"media.presets={"card":{"fill":[320,180],"quality":60,"max_bytes":6000},
    "wide":{"fit":[300,0],"mark":true},"fine":{"fill":[320,180],"quality":95}}"#;

#[test]
fn a_preset_decides_size_quality_mark_and_bytes() {
    /// The most that a caption adds to a file; `max_bytes` limits the picture.
    const CAPTION_BYTES: usize = 6000;
    let pictures = [("grain", Picture::grain(640, 480).jpeg())];
    let settings = [PRESETS, "media.widths=any", "media.warm=false"];
    let server = Server::with_pictures(&settings, &pictures);
    for extension in ["jpg", "webp", "avif"] {
        let named = |preset: &str| {
            picture(&server, &format!("grain-preset_{preset}_NormalPreview.{extension}"))
        };
        let (small, size) = named("card");
        assert_eq!(size, (320, 180), "{extension}");
        assert!(small.len() <= 6000 + CAPTION_BYTES, "{extension}: {} bytes", small.len());
        let (fine, size) = named("fine");
        assert_eq!(size, (320, 180), "{extension}");
        assert!(fine.len() > 2 * small.len(), "{extension}: {} and {}", fine.len(), small.len());
    }
    // It is what the operations that it stands for are.
    let spelled = ["-preset_wide", "-PRESET_Wide", "-fit_w300-watermark", "-watermark-fit_w300"];
    let bodies = spelled.map(|rest| picture(&server, &format!("grain{rest}_NormalPreview.jpg")).0);
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    has_size(&server, "grain-crop_w100_h80-preset_card_NormalPreview.jpg", (100, 56));
    has_size(&server, "grain-preset_card.jpg", (320, 180));
    assert_eq!(open(&server, "grain-preset_card.jpg").status(), 401);
    let (part, message) = refusal(&server, "/media/image/grain-preset_none_NormalPreview.jpg");
    assert!(part == "preset" && message.contains("no preset none"), "{part}: {message}");
}

#[test]
fn a_malformed_size_is_a_400_that_names_the_part() {
    let server = Server::empty();
    let check = |rest: &str, part: &str, message: &str| {
        let found = refusal(&server, &format!("/media/image/x{rest}"));
        assert_eq!(found.0, part, "{rest}: {}", found.1);
        assert!(found.1.contains(message), "{rest}: {}", found.1);
    };
    check("-fit_.jpg", "fit", "expected _w or _h");
    check("-fit_x10.jpg", "fit", "_x10");
    check("-fit_w0.jpg", "fit.w", "zero");
    check("-fit_h0_w1.webp", "fit.h", "zero");
    check("-fit_w10_w10.jpg", "fit.w", "more than once");
    check("-fit_w-10.jpg", "fit.w", "whole number");
    check("-fit_w1.5.jpg", "fit.w", "whole number");
    check("-fit_w4294967296.avif", "fit.w", "too large");
    check("-fill_w10.jpg", "fill.h", "_h");
    check("-fill_h10.auto", "fill.w", "_w");
    check("-fill_w10_h0.jpg", "fill.h", "zero");
    check("-preset_.jpg", "preset", "");
    check("-preset_2up.jpg", "preset", "2up");
    check("-preset_a-b.jpg", "preset", "a-b");
    check(&format!("-preset_{}.jpg", "a".repeat(33)), "preset", "32");
    check("-fit_w10-fit_w10.jpg", "operation", "more than once");
    check("-fit_w10-fill_w1_h1.jpg", "operation", "second size");
    check("-preset_card-fit_w10.jpg", "operation", "second size");
    check("-fit_w10-crop_w5_h5.jpg", "operation", "must precede");
    check("-preset_card-watermark.jpg", "operation", "takes no");
    check("-watermark-preset_card_NormalPreview.jpg", "operation", "takes no");
    check("-watermark-fit_w9-watermark.jpg", "operation", "more than once");
    check("-fit_w10.json", "operation", "-fit");
    check("-fit_w10.pdf", "operation", "-fit");
    check("-preset_card.mp4", "operation", "-preset");
    check("-crop_w9_h9.renditions.json", "operation", "-crop");
    check("_NormalPreview.renditions.json", "suffix", "NormalPreview");
    check("_NormalPreview.jxl", "extension", ".jxl");
}

#[test]
fn sizes_of_the_hires_are_bought_once_at_any_size_and_in_any_format() {
    let settings = [PRESETS, "media.warm=false"];
    let server = Server::with_pictures(&settings, &large());
    let editor = ApiCaller::with_scopes(&server, "demo-editor", "roles");
    let orders = || editor.orders().len();
    let sizes = [
        ("-fit_w1200.jpg", (1200, 800)),
        ("-fit_w9000.webp", (1500, 1000)),
        ("-fill_w90_h60_NormalHires.avif", (90, 60)),
        ("-crop_w400_h300_x9_y9-fit_w200-watermark.jpg", (200, 150)),
        ("-preset_card.webp", (320, 180)),
        ("-fit_w200_WatermarkHires.jpg", (200, 133)),
        ("-fit_w200.auto", (200, 133)),
    ];
    for (rest, _) in sizes {
        let file = format!("one{rest}");
        let refused = open(&server, &file);
        assert_eq!(refused.status(), 401, "{rest}");
        assert!(header(&refused, "www-authenticate").contains("ApiKey"), "{rest}");
        let refused = with_key(&server, &file, BUYER_KEY);
        assert_eq!(refused.status(), 403, "{rest}");
        let body: Value = refused.json().expect("JSON");
        assert_eq!(body["errors"][0]["errorCode"], "agreement_required", "{rest}");
    }
    let before = orders();
    for (rest, size) in sizes {
        has_size(&server, &format!("one{rest}"), size);
        let response = with_key(&server, &format!("one{rest}"), DEMO_KEY);
        assert!(header(&response, "cache-control").contains("private"), "{rest}");
        let name = header(&response, "content-disposition");
        assert!(name.contains("one."), "{rest}: {name}");
    }
    assert_eq!(orders(), before + 1, "every size belongs to one order");
    // The Hires itself is the original, in no other format.
    for rest in [".webp", ".avif", ".auto", "_NormalHires.webp", "_normalhires.AUTO"] {
        let file = format!("one{rest}");
        assert_eq!(open(&server, &file).status(), 401, "{rest}");
        assert_eq!(with_key(&server, &file, DEMO_KEY).status(), 404, "{rest}");
    }
}
