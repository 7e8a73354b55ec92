//! Crops that the script computes are the crops that the server delivers.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Rect, agrees, document, fields, map, place, rendition, run, shown};
use crate::common::{
    Server,
    browser::{Browser, DESKTOP},
    oracle,
    pictures::{Picture, with_orientation},
};

/// The next number of a deterministic pseudo-random sequence.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn random_rect(state: &mut u64, width: i64, height: i64) -> Rect {
    let mut below = |bound: i64| {
        let bound = u64::try_from(bound).expect("positive");
        i64::try_from(next(state) % bound).expect("small")
    };
    let (x, y) = (below(width), below(height));
    [1 + below(width - x), 1 + below(height - y), x, y]
}

/// Returns the address and size of each rendition that the page computes for the given crops.
const SCALED_CROPS: &str = "const crop = await import('/assets/js/crop.js');
    return given.map(({ uri, hires, renditions, rect: [width, height, x, y] }) =>
        Object.fromEntries(Object.entries(renditions).map(([place, one]) => {
            const cut = crop.scaleCrop({ x, y, width, height }, hires, one);
            const url = crop.renditionUrl(uri, one.variant + one.usage, cut, false);
            return [place, [url, cut.width, cut.height]];
        })));";

#[test]
fn crops_computed_by_the_script_match_the_metadata_to_the_pixel() {
    let plain = |width, height| Picture::flat(width, height, [90, 120, 60]).jpeg();
    let pictures = [
        ("large", plain(4001, 2667)),
        ("portrait", plain(1201, 1999)),
        ("odd", plain(1023, 769)),
        ("small", plain(640, 431)),
        ("tiny", plain(7, 5)),
        ("dot", plain(1, 1)),
        ("panorama", plain(3001, 17)),
        ("turned", with_orientation(&plain(1601, 1203), 6)),
        ("inks", oracle::cmyk(&plain(1500, 1001), "plain")),
    ];
    let server = Server::with_pictures(&[], &pictures);
    let browser = Browser::open(DESKTOP);
    browser.visit(&format!("{}/item/image/large/crop", server.url));
    let mut state = 0x9E37_79B9_7F4A_7C15;
    let mut wanted = Vec::new();
    let mut expected: Vec<BTreeMap<String, Value>> = Vec::new();
    for (id, _) in &pictures {
        let key = format!("image/{id}");
        let plain: Value =
            serde_json::from_slice(&server.bytes(&format!("/media/{key}.json"))).unwrap();
        let all = plain["renditions"].as_object().expect("renditions");
        let hires = rendition(&plain, "Hires");
        let side = |name: &str| hires[name].as_i64().expect("pixels");
        let (width, height) = (side("width"), side("height"));
        if *id == "turned" {
            assert_eq!((width, height), (1203, 1601), "the Hires is upright");
        }
        let mut rects = vec![
            [width, height, 0, 0],
            [1, 1, width - 1, height - 1],
            [1, 1, 0, 0],
            [1, height, width / 2, 0],
            [width, 1, 0, height / 2],
        ];
        rects.extend((0..45).map(|_| random_rect(&mut state, width, height)));
        for rect in rects {
            let document = document(&server, &key, rect);
            let reported = document["renditions"].as_object().expect("renditions");
            expected.push(
                reported
                    .iter()
                    .map(|(place, one)| {
                        let reported = json!([one["href"], one["width"], one["height"]]);
                        (place.clone(), reported)
                    })
                    .collect(),
            );
            wanted.push(
                json!({ "uri": plain["uri"], "hires": hires, "renditions": all, "rect": rect }),
            );
        }
    }
    let found = run(&browser, SCALED_CROPS, &json!(wanted));
    let found = found.as_array().unwrap_or_else(|| panic!("{found}"));
    assert_eq!(found.len(), 9 * 50);
    for ((found, expected), wanted) in found.iter().zip(&expected).zip(&wanted) {
        assert_eq!(expected.len(), 5, "{wanted}");
        assert_eq!(found, &json!(expected), "{} {}", wanted["uri"], wanted["rect"]);
    }
}

#[test]
fn markup_of_the_script_equals_that_of_the_server() {
    let plain = |width, height| Picture::flat(width, height, [90, 120, 60]).jpeg();
    let pictures =
        [("large", plain(4001, 2667)), ("portrait", plain(1201, 1999)), ("tiny", plain(7, 5))];
    for settings in [&[][..], &["media.widths=any", "media.open_px=2000"]] {
        let server = Server::with_pictures(settings, &pictures);
        let browser = Browser::open(DESKTOP);
        let shown = || browser.text("document.getElementById('code-html').textContent");
        for (id, query) in [
            ("large", "x=0&y=0&width=4001&height=2000"),
            ("large", "x=101&y=57&width=2003&height=1201"),
            ("large", "x=3990&y=0&width=11&height=2667"),
            ("portrait", "x=3&y=5&width=701&height=700"),
            ("tiny", "x=1&y=1&width=5&height=3"),
        ] {
            let page = format!("{}/item/image/{id}/crop?{query}", server.url);
            browser.visit(&page);
            let plain = shown();
            browser.visit(&format!("{page}&watermark=1"));
            let marked = shown();
            assert!(marked.contains("-watermark_NormalPreview.avif"), "{marked}");
            assert_ne!(plain, marked);
            browser.click("#watermark");
            assert_eq!(shown(), plain, "{id} {query}");
            browser.click("#watermark");
            assert_eq!(shown(), marked, "{id} {query}");
        }
    }
}

#[test]
fn the_markup_has_the_widths_that_the_settings_open() {
    let picture = Picture::flat(4001, 2667, [90, 120, 60]).jpeg();
    let check = |settings: &[&str], expected: &[u32]| {
        let server = Server::with_pictures(settings, &[("large", picture.clone())]);
        let page = server.get("/item/image/large/crop?x=0&y=0&width=4001&height=2000");
        let page = page.text().expect("text").replace("&#x2f;", "/");
        let start = "-fit_w";
        let markup = page.split_once("id=\"code-html\"").expect("the markup").1;
        let markup = markup.split("</pre>").next().expect("its end");
        let jpegs = markup.split_once("&lt;img").expect("an image").1;
        let widths: Vec<u32> = jpegs
            .split(start)
            .skip(1)
            .map(|rest| rest.split('_').next().expect("a width").parse().expect("a number"))
            .collect();
        assert_eq!(widths, expected, "{settings:?}");
        for width in widths {
            let crop = "-crop_w1024_h512_x0_y0";
            let path = format!("/media/image/large{crop}{start}{width}_NormalPreview.webp");
            let size = server.get(&path).headers()["wirephoto-size"].clone();
            let size = size.to_str().expect("ASCII");
            assert!(size.starts_with(&format!("{width}x")), "{path}: {size}");
        }
    };
    check(&[], &[160, 320, 640]);
    check(&["media.widths=200, 400, 1500", "media.open_px=2000"], &[200, 400]);
    check(&["media.widths=200, 400, 1600", "media.open_px=2000"], &[200, 400, 1600]);
    check(&["media.widths=any", "media.open_px=512"], &[160, 320]);
}

#[test]
fn every_operation_keeps_the_rectangle_inside_the_picture() {
    let server = Server::with_pictures(&[], &[("map", map(60, 40).jpeg())]);
    let browser = Browser::open(DESKTOP);
    browser.visit(&format!("{}/item/image/map/crop", server.url));
    let wrong = run(
        &browser,
        "const crop = await import('/assets/js/crop.js');
         let state = 1;
         const below = (bound) => (state = (state * 48271) % 2147483647) % bound;
         const ratios = [null, [1, 1], [16, 9], [9, 16], [10000, 1], [1, 10000], [3, 7]];
         const handles = ['n', 'ne', 'e', 'se', 's', 'sw', 'w', 'nw'];
         const wrong = [];
         for (let round = 0; round < 20000; round += 1) {
             const sides = [1, 7, 900, 6000];
             const image = { width: 1 + below(sides[below(4)]), height: 1 + below(sides[below(4)]) };
             const [x, y] = [below(image.width), below(image.height)];
             const rect = { x, y, width: 1 + below(image.width - x), height: 1 + below(image.height - y) };
             const ratio = ratios[below(7)];
             const [dx, dy] = [below(4000) - 2000, below(4000) - 2000];
             const handle = handles[below(8)];
             const all = {
                 moved: crop.moved(rect, dx, dy, image),
                 turned: crop.turned(rect, image),
                 shaped: crop.shaped(rect, ratio, image),
                 resized: crop.resized(rect, handle, dx, dy, image, ratio),
                 led: crop.resized(rect, handle, dx, dy, image, ratio, dx % 2 ? 'x' : 'y'),
                 wide: crop.sized(rect, { width: 1 + below(9000) }, ratio, image),
                 high: crop.sized(rect, { height: 1 + below(9000) }, ratio, image),
                 drawn: crop.drawn({ x, y }, { x: dx, y: dy }, image, ratio),
             };
             for (const [name, found] of Object.entries(all)) {
                 const keeps = !ratio || ['moved', 'turned'].includes(name) || crop.hasRatio(found, ratio);
                 if (!crop.isInside(found, image) || !keeps) {
                     wrong.push([name, image, rect, ratio, handle, dx, dy, found]);
                 }
             }
             const same = crop.shaped(all.shaped, ratio, image);
             if (!crop.isSame(same, all.shaped)) wrong.push(['again', image, rect, ratio, same]);
         }
         return wrong.slice(0, 5);",
        &json!(null),
    );
    assert_eq!(wrong, json!([]));
}

#[test]
fn the_urls_deliver_the_pixels_that_the_frame_shows() {
    let (width, height) = (2048, 1366);
    let original = Picture::waves(width, height);
    let server = Server::with_pictures(&[], &[("waves", original.jpeg())]);
    let browser = Browser::open(DESKTOP);
    browser.visit(&format!("{}/item/image/waves/crop", server.url));
    let points = [(310, 220), (500, 500), (640, 710)].map(|(x, y)| place(&browser, x, y));
    browser.drag(&points);
    let rect = fields(&browser);
    agrees(&browser, &server, "image/waves", rect);
    let preview = Picture::decode(&server.bytes("/media/image/waves_NormalPreview.jpg"));
    let reported = document(&server, "image/waves", rect);
    let href = shown(&browser, "preview-url");
    let cut = Picture::decode(&server.client.get(&href).send().unwrap().bytes().unwrap());
    let size =
        ["width", "height"].map(|side| rendition(&reported, "Preview")[side].as_u64().unwrap());
    assert_eq!([cut.width, cut.height].map(|side| side as u64), size);
    let number = |name: char| -> usize {
        let rest = href.split_once(&format!("_{name}")).unwrap().1;
        rest.split(['_', '-']).next().unwrap().parse().unwrap()
    };
    let psnr = cut.psnr(&preview.crop(number('x'), number('y'), cut.width, cut.height));
    assert!(psnr >= 36.0, "{psnr:.1} dB");
    // Compared with the original, which is twice as large: the same region and not a shifted one.
    let [wide, high, x, y] = rect.map(|side| usize::try_from(side).unwrap());
    let part = original.crop(x, y, wide / 2 * 2, high / 2 * 2).reduced(2);
    let (wide, high) = (part.width.min(cut.width), part.height.min(cut.height));
    let psnr = cut.crop(0, 0, wide, high).psnr(&part.crop(0, 0, wide, high));
    assert!(psnr >= 28.0, "{psnr:.1} dB");
    // The Hires by its URL and a key.
    let hires = shown(&browser, "hires-url");
    assert_eq!(server.client.get(&hires).send().unwrap().status(), 401);
    let key = crate::common::DEMO_KEY;
    let jpeg = server.client.get(format!("{hires}?ak={key}")).send().unwrap().bytes().unwrap();
    let cut = Picture::decode(&jpeg);
    let [wide, high, x, y] = rect.map(|side| usize::try_from(side).unwrap());
    assert_eq!(cut.size(), (wide, high));
    let psnr = cut.psnr(&original.crop(x, y, wide, high));
    assert!(psnr >= 32.0, "{psnr:.1} dB");
}
