//! Limits of sizes: of formats, of a preset's bytes, and of the work for several sizes at a time.

use std::{sync::Barrier, thread};

use serde_json::Value;

use super::{open, picture, with_key};
use crate::common::{DEMO_KEY, Server, pictures::Picture};
use crate::media::refusal;

#[test]
fn a_size_that_a_format_does_not_hold_is_a_400_with_the_limit() {
    // 17 to 16 times as large as the largest size, so that both sides are whole numbers there.
    let pictures = [("wide", Picture::waves(17_408, 68).jpeg())];
    let settings = ["media.open_px=16384", "media.widths=any", "media.warm=false"];
    let server = Server::with_pictures(&settings, &pictures);
    let check = |file: &str, limit: &str| {
        let (part, message) = refusal(&server, &format!("/media/image/{file}"));
        assert!(part == "extension" && message.contains(limit), "{file}: {part}: {message}");
    };
    check("wide-fit_w16384_NormalPreview.webp", "webp files have at most 16383 pixels on a side");
    assert_eq!(open(&server, "wide-fit_w16383_NormalPreview.webp").status(), 200);
    assert_eq!(open(&server, "wide-fit_w16384_NormalPreview.jpg").status(), 200);
    // The document lists the sizes that the format holds.
    let document: Value = open(&server, "wide.renditions.json").json().expect("JSON");
    let widths = |format: &str| {
        let srcset = document["srcset"][format].as_str().expect("text");
        srcset.split(", ").filter(|candidate| candidate.ends_with("w")).count()
    };
    assert_eq!(["jpg", "avif"].map(widths), [1, 1], "{}", document["srcset"]);
    // The right comes first.
    for (file, status) in [("wide-watermark.avif", 400), ("wide-fit_w16384.webp", 400)] {
        assert_eq!(open(&server, file).status(), 401, "{file}");
        assert_eq!(with_key(&server, file, DEMO_KEY).status(), status, "{file}");
    }
    assert_eq!(with_key(&server, "wide.jpg", DEMO_KEY).status(), 200);
}

#[test]
fn the_bytes_of_a_preset_are_kept_to_for_the_hires_as_well() {
    /// The most that a caption adds to a file; `max_bytes` limits the picture.
    const CAPTION_BYTES: usize = 6000;
    const PRESETS: &str = r#"media.presets={"light":{"fit":[5000,0],"max_bytes":120000}}"#;
    let pictures = [("grain", Picture::grain(640, 480).jpeg())];
    let server = Server::with_pictures(&[PRESETS, "media.warm=false"], &pictures);
    for (rest, size) in [
        ("-preset_light.jpg", (640, 480)),
        // On the grid of coded units, where a crop is otherwise copied.
        ("-crop_w320_h240_x16_y16-preset_light.jpg", (320, 240)),
        ("-crop_w320_h240_x17_y17-preset_light.webp", (320, 240)),
    ] {
        let (file, found) = picture(&server, &format!("grain{rest}"));
        assert_eq!(found, size, "{rest}");
        assert!(file.len() <= 120_000 + CAPTION_BYTES, "{rest}: {} bytes", file.len());
    }
}

#[test]
fn several_sizes_of_a_new_picture_share_one_standard_set() {
    // Large enough for a base, so that every size comes from the set.
    let pictures = [("one", Picture::waves(2700, 1800).jpeg())];
    let settings = ["media.warm=false", "media.workers=4", "media.client_megapixels_s=0"];
    let server = Server::with_pictures(&settings, &pictures);
    let files: Vec<String> = [160, 240, 320, 480, 640, 800, 960]
        .iter()
        .flat_map(|width| ["jpg", "webp"].map(|kind| (width, kind)))
        .map(|(width, kind)| format!("one-fit_w{width}_NormalPreview.{kind}"))
        .collect();
    let (start, shared) = (&Barrier::new(files.len()), &server);
    thread::scope(|scope| {
        for file in &files {
            scope.spawn(move || {
                start.wait();
                assert_eq!(open(shared, file).status(), 200, "{file}");
            });
        }
    });
    let sets = server.metric("wirephoto_standard_sets_total", "");
    assert!((sets - 1.0).abs() < 0.5, "{sets} sets were made");
}
