//! Walls of pictures: which rendition a browser takes for a tile.

use serde_json::{Value, json};

use crate::common::{
    Server,
    browser::{Browser, DESKTOP},
};
use crate::site::Session;

/// The pictures of a wall that are there: address and width of the tile, pixels.
const SHOWN: &str = "[...document.querySelectorAll('.wall img, .cells img')]
    .filter(image => image.complete && image.currentSrc)
    .map(image => [image.currentSrc, image.clientWidth])";

fn shown(browser: &Browser) -> Vec<(String, u64)> {
    let list = browser.eval(SHOWN);
    let list = list.as_array().expect("a list").iter();
    list.map(|one| {
        let src = one[0].as_str().expect("an address").to_owned();
        (src, one[1].as_u64().expect("pixels"))
    })
    .collect()
}

/// The pixel ratio of the window; a screen of 2 has twice the pixels for a tile.
fn set_pixel_ratio(browser: &Browser, ratio: u32) {
    let metrics =
        json!({ "width": 1280, "height": 900, "deviceScaleFactor": ratio, "mobile": false });
    let body = json!({ "cmd": "Emulation.setDeviceMetricsOverride", "params": metrics });
    browser.post("/goog/cdp/execute", &body);
}

#[test]
fn a_tile_takes_the_picture_that_fits_it() {
    let server = Server::demo();
    for (ratio, name) in [(1, "_WebPreview.jpg"), (2, "_NormalPreview.jpg")] {
        let browser = Browser::open(DESKTOP);
        set_pixel_ratio(&browser, ratio);
        browser.visit(&format!("{}/", server.url));
        browser.settle();
        let pictures = shown(&browser);
        let tiles = pictures.iter().filter(|(_, width)| (300..=420).contains(width));
        let tiles: Vec<_> = tiles.collect();
        assert!(tiles.len() >= 3, "{pictures:?}");
        for (src, width) in tiles {
            assert!(src.ends_with(name), "{width} px at {ratio}x: {src}");
        }
    }
}

#[test]
fn walls_of_collections_offer_three_sizes() {
    let server = Server::demo();
    let owner = Session::open(&server, "demo-editor");
    let uri = |id: &str| format!("{}/media/image/{id}", server.url);
    let (first, second) = (uri("demo-bridge-cables"), uri("demo-urtavla"));
    let fields = [("name", "Wall"), ("uri", &first), ("uri", &second), ("return_to", "/")];
    assert_eq!(owner.post(&server, "/collections/add", &fields).status(), 303);
    let token = format!("Session {}", owner.csrf);
    let headers = [("cookie", owner.cookie.as_str()), ("authorization", token.as_str())];
    let all: Value =
        server.get_with("/collection/v1/collection", &headers).json().expect("collections");
    let path = format!("/collections/{}", all[0]["id"].as_str().expect("an id"));
    let fields = [("name", "Wall"), ("public", "on")];
    assert_eq!(owner.post(&server, &path, &fields).status(), 303);
    for (user, class) in [("demo-editor", "class=\"cells\""), ("demo-admin", "class=\"wall\"")] {
        let page = Session::open(&server, user).get(&server, &path).text().expect("text");
        let page = page.replace("&#x2f;", "/");
        assert!(page.contains(class), "{user}: {page}");
        for size in
            ["_NormalThumbnail.jpg 256w", "_WebPreview.jpg 512w", "_NormalPreview.jpg 1024w"]
        {
            assert_eq!(page.matches(size).count(), 2, "{user} {size}: {page}");
        }
    }
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-admin", &path);
    for (src, width) in shown(&browser) {
        assert!(src.ends_with("_WebPreview.jpg"), "{width} px: {src}");
    }
}
