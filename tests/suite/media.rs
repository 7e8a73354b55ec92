//! Media URLs (`docs/contract/media.md`): valid ones, and the errors for malformed ones.

use serde_json::{Value, json};

use crate::common::pictures::{Picture, with_orientation};
use crate::common::{DEMO_KEY, LARGE, Server, news};

/// The part and the message of the only detail of a 400 response.
pub fn refusal(server: &Server, path: &str) -> (String, String) {
    let response = server.get(path);
    assert_eq!(response.status(), 400, "{path}");
    let body: Value = response.json().unwrap();
    assert_eq!(body["message"], "Request validation failed", "{path}");
    let detail = &body["errors"][0];
    assert_eq!(detail["location"], "path", "{path}");
    let text = |name: &str| detail[name].as_str().unwrap().to_owned();
    assert!(text("errorCode").ends_with(".openapi.requestValidation"));
    (text("path"), text("message"))
}

#[test]
fn a_malformed_url_is_a_400_that_names_the_part() {
    let server = Server::demo();
    let check = |rest: &str, part: &str, message: &str| {
        let found = refusal(&server, &format!("/media/{rest}"));
        assert_eq!(found.0, part, "{rest}: {}", found.1);
        assert!(found.1.contains(message), "{rest}: {}", found.1);
    };
    check("images/x.jpg", "mediaType", "\"images\"");
    check("image/x.jpeg", "extension", ".jpeg");
    check("image/x.exe", "extension", ".exe");
    check("image/x-crop.jpg", "crop", "at least one");
    check("image/x-crop_w0_h10.jpg", "crop.w", "zero");
    check("image/x-crop_w10_w10.jpg", "crop.w", "more than once");
    check("image/x-crop_w10_z5.jpg", "crop", "_z5");
    check("image/x-crop_w-10.jpg", "crop.w", "whole number");
    check("image/x-crop_w4294967296.jpg", "crop.w", "too large");
    check("image/x-crop_w18446744073709551616.jpg", "crop.w", "too large");
    check("image/x-crop_w10_NormalHuge.jpg", "crop", "_NormalHuge");
    check("image/x-watermark-watermark.jpg", "operation", "watermark");
    check("image/x-watermark.json", "operation", "watermark");
    check("image/x-crop_w10.xml", "operation", "crop");
    check("image/.jpg", "id", "");
    check(&format!("image/{}.jpg", "x".repeat(129)), "id", "128");
}

#[test]
fn a_crop_that_leaves_the_image_is_a_400_with_the_images_size() {
    let server = Server::demo();
    let check = |suffix: &str, size: &str| {
        let separator = if suffix.ends_with(".json") { "" } else { "?" };
        let path = format!("/media/{LARGE}{suffix}{separator}");
        let path = if separator.is_empty() { path } else { format!("{path}ak={DEMO_KEY}") };
        let (part, message) = refusal(&server, &path);
        assert_eq!(part, "crop");
        assert!(message.contains(size), "{suffix}: {message}");
    };
    check("-crop_w4273_h10.jpg", "4272x2848");
    check("-crop_w10_h10_x4263.jpg", "4272x2848");
    check("-crop_w10_h10_x4294967295.jpg", "4272x2848");
    check("-crop_w4294967295_h1_x1.jpg", "4272x2848");
    check("-crop_x4272.jpg", "4272x2848");
    check("-crop_w1025_h10_NormalPreview.jpg", "1024x683");
    check("-crop_w257_h10_NormalThumbnail.jpg", "256x171");
    check("-crop_w257_h10_CroppedThumbnail.jpg", "256x256");
    check("-crop_w513_h10_WebPreview.jpg", "512x341");
    check("-crop_w4272_h2849.json", "4272x2848");
}

#[test]
fn unknown_items_and_renditions_are_404() {
    let server = Server::demo();
    for path in [
        "image/unknown.json",
        "image/unknown_NormalPreview.jpg",
        "image/unknown",
        "video/demo-urtavla.json",
        "image/Demo-urtavla.json",
        "image/demo-urtavla_NormalHuge.json",
        "image/demo-urtavla_BlackAndWhitePreview.jpg",
        "image/demo-urtavla_CroppedPreview.jpg",
        "image/demo-urtavla_FramegrabThumbnail.jpg",
        "image/demo-urtavla_WebThumbnail.jpg",
        "image/demo-urtavla_WebHires.jpg",
    ] {
        // With a key, the response is not about authorization.
        let response = server.get(&format!("/media/{path}?ak={DEMO_KEY}"));
        assert_eq!(response.status(), 404, "{path}");
        let body: Value = response.json().unwrap();
        assert!(body["message"].as_str().is_some_and(|message| !message.is_empty()));
    }
}

#[test]
fn the_item_url_redirects_to_its_page() {
    let server = Server::demo();
    let response = server.get(&format!("/media/{LARGE}"));
    assert_eq!(response.status(), 302);
    let location = response.headers()["location"].to_str().unwrap();
    assert_eq!(location, format!("{}/item/{LARGE}", server.url));
    assert_eq!(server.client.get(location).send().unwrap().status(), 200);
}

#[test]
fn the_urls_of_an_association_show_the_editors_crop() {
    let server = Server::demo();
    let (clock, crop) = ("/media/image/demo-urtavla", "-crop_w800_h600_x10_y20");
    let mut text = news::document("Text", &["FOTO"], "2026-03-09T12:00:00+01:00");
    text["associations"] = json!({
        "a001": { "uri": format!("http://other.example{clock}{crop}") },
        "a002": { "uri": format!("http://other.example{clock}-crop_w99999_h600") },
    });
    news::ingest(&server, "text/cropped", &text);
    let key = format!("ApiKey {DEMO_KEY}");
    let get = |path: &str| server.get_with(path, &[("authorization", &key)]);
    let tag = |path: &str| {
        let response = get(path);
        assert_eq!(response.status(), 200, "{path}");
        response.headers()["etag"].to_str().unwrap().to_owned()
    };
    // The uri itself leads to the studio, which shows the crop.
    let page = server.get(&format!("{clock}{crop}"));
    assert_eq!(page.status(), 302);
    let location = page.headers()["location"].to_str().unwrap();
    assert_eq!(
        location,
        format!("{}/item/image/demo-urtavla/crop?w=800&h=600&x=10&y=20", server.url)
    );
    let shown = server.client.get(location).send().unwrap().text().unwrap();
    assert!(shown.contains("_NormalPreview.jpg"), "{shown}");
    let list = |path: &str| get(path).text().unwrap();
    let licences = list(&format!("{clock}/pricelist"));
    assert!(licences.contains("uuid"), "{licences}");
    assert_eq!(list(&format!("{clock}{crop}/pricelist")), licences);
    // Below the text it is the same rendition that the `.json` with that crop lists.
    let document: Value = get(&format!("{clock}{crop}.json")).json().unwrap();
    for rendition in document["renditions"].as_object().unwrap().values() {
        let href = rendition["href"].as_str().unwrap();
        let (path, (_, suffix)) =
            (href.strip_prefix(&server.url).unwrap(), href.rsplit_once('_').unwrap());
        assert_eq!(tag(&format!("/media/text/cropped/a001_{suffix}")), tag(path), "{path}");
    }
    let hires = get("/media/text/cropped/a001_NormalHires.jpg").bytes().unwrap();
    assert_eq!(Picture::decode(&hires).size(), (800, 600));
    // A crop in the URL lies within that region.
    let inner = "/media/text/cropped/a001-crop_w30_h20_x5_y6_NormalHires.jpg";
    assert_eq!(tag(inner), tag(&format!("{clock}-crop_w30_h20_x15_y26.jpg")));
    assert_eq!(get("/media/text/cropped/a001-crop_w801_NormalHires.jpg").status(), 400);
    // A crop that does not fit the picture, which may have been replaced, is ignored.
    let whole = format!("{clock}_NormalPreview.jpg");
    assert_eq!(tag("/media/text/cropped/a002_NormalPreview.jpg"), tag(&whole));
}

#[test]
fn one_rendition_has_one_tag_and_one_cache_entry_however_it_is_spelled() {
    let server = Server::demo();
    let check = |spellings: &[&str]| {
        let answers: Vec<_> = spellings
            .iter()
            .map(|spelling| {
                let response = server.get(&format!("/media/{LARGE}{spelling}?ak={DEMO_KEY}"));
                assert_eq!(response.status(), 200, "{spelling}");
                (response.headers()["etag"].clone(), response.bytes().unwrap())
            })
            .collect();
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{spellings:?}");
    };
    check(&[
        "-crop_w90_h80_x7_y6_NormalPreview.jpg",
        "-crop_y6_x7_h80_w90_NormalPreview.jpg",
        "-CROP_W0090_h80_X7_y006_normalPREVIEW.JPG",
    ]);
    check(&["_WatermarkPreview.jpg", "_WatermarkedPreview.jpg", "-watermark_NormalPreview.jpg"]);
    check(&[".jpg", "_NormalHires.jpg", "-crop_w4272_h2848.jpg", "-crop_x0.jpg"]);
    check(&["-crop_w50_h40_NormalPreview.jpg", "-crop_w50_h40_x0_y0_NormalPreview.jpg"]);
    let renders = server.metric("wirephoto_render_paths_total", "");
    assert!((renders - 4.0).abs() < 0.5, "{renders}");
}

#[test]
fn every_rendition_has_the_size_that_was_asked_for() {
    let server = Server::demo();
    let check = |suffix: &str, width: usize, height: usize| {
        let bytes = server.bytes(&format!("/media/{LARGE}{suffix}?ak={DEMO_KEY}"));
        assert_eq!(Picture::decode(&bytes).size(), (width, height), "{suffix}");
    };
    check(".jpg", 4272, 2848);
    check("_NormalPreview.jpg", 1024, 683);
    check("_NormalThumbnail.jpg", 256, 171);
    check("_CroppedThumbnail.jpg", 256, 256);
    check("_WatermarkPreview.jpg", 1024, 683);
    check("_WebPreview.jpg", 512, 341);
    check("_webpreview.JPG", 512, 341);
    check("-watermark_WebPreview.jpg", 512, 341);
    check("-crop_w100_h90_x412_y251-watermark_WebPreview.jpg", 100, 90);
    check("-crop_w1_h1_x4271_y2847.jpg", 1, 1);
    check("-crop_w801_h599_x1001_y703.jpg", 801, 599);
    check("-crop_x4000.jpg", 272, 2848);
    check("-crop_w333_h222_x111_y99-watermark.jpg", 333, 222);
    check("-watermark-crop_w333_h222_x111_y99_NormalPreview.jpg", 333, 222);
    check("-crop_w100_h90_CroppedThumbnail.jpg", 100, 90);
}

#[test]
fn settings_change_the_renditions_and_their_tags() {
    let server = Server::demo_with(&["media.preview_px=800", "media.preview_quality=60"]);
    let other = Server::demo();
    let path = format!("/media/{LARGE}_NormalPreview.jpg");
    let (ours, theirs) = (server.get(&path), other.get(&path));
    assert_ne!(ours.headers()["etag"], theirs.headers()["etag"]);
    assert_eq!(Picture::decode(&ours.bytes().unwrap()).size(), (800, 533));
    let document: Value = server.get(&format!("/media/{LARGE}.json")).json().unwrap();
    assert_eq!(document["renditions"]["r01"]["width"], 800);
}

#[test]
fn a_web_preview_has_its_own_size_and_quality() {
    let path = format!("/media/{LARGE}_WebPreview.jpg");
    let fine = ["media.web_preview_px=640", "media.web_preview_quality=90"];
    let server = Server::demo_with(&fine);
    let document: Value = server.get(&format!("/media/{LARGE}.json")).json().unwrap();
    assert_eq!(document["renditions"]["r04"]["width"], 640);
    let large = server.bytes(&path);
    assert_eq!(Picture::decode(&large).size(), (640, 427));
    let server = server.restart(&["media.web_preview_px=640", "media.web_preview_quality=40"]);
    let coarse = server.bytes(&path);
    assert!(coarse.len() * 2 < large.len(), "{} {}", coarse.len(), large.len());
}

#[test]
fn a_full_size_crop_of_a_rotated_hires_is_upright() {
    let stored = Picture::corners(320, 200);
    let jpeg = with_orientation(&stored.jpeg(), 6);
    let server = Server::with_pictures(&[], &[("lies", jpeg)]);
    let server_path = |suffix: &str| format!("/media/image/lies{suffix}?ak={DEMO_KEY}");
    let plain = Picture::decode(&server.bytes(&server_path(".jpg")));
    assert_eq!(plain.size(), (320, 200), "the Hires itself is untouched");
    let cut = Picture::decode(&server.bytes(&server_path("-crop_w200_h320.jpg")));
    assert_eq!(cut.size(), (200, 320));
    // Turned by a quarter clockwise, the lower left corner comes to the upper left.
    let [red, green, blue] = cut.mean(5, 5, 20, 20);
    assert!(red > 180.0 && green > 180.0 && blue < 80.0, "yellow: {red} {green} {blue}");
}
