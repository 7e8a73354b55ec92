//! Walls of pictures: which rendition a browser loads for a tile, and what typical first searches of the demo find.

use serde_json::{Value, json};

use crate::common::{
    DEMO_KEY, Server,
    browser::{Browser, DESKTOP},
    checkout,
    pictures::Picture,
};
use crate::site::Session;

/// The loaded pictures of a wall that are wider than high: URL, and width of the tile in pixels.
const SHOWN: &str = "[...document.querySelectorAll('.wall img, .cells img')]
    .filter(image => image.complete && image.naturalWidth > 1.3 * image.naturalHeight)
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
fn a_tile_loads_the_rendition_that_fits_it() {
    let server = Server::demo();
    for (ratio, name) in [(1, "_WebPreview.jpg"), (2, "_NormalPreview.jpg")] {
        let browser = Browser::open(DESKTOP);
        set_pixel_ratio(&browser, ratio);
        browser.visit(&format!("{}/", server.url));
        browser.follow(".density [value=large]");
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
        for (name, width) in
            [("NormalThumbnail", 256), ("WebPreview", 512), ("NormalPreview", 1024)]
        {
            let candidate = format!("_{name}.jpg {width}w");
            assert_eq!(page.matches(&candidate).count(), 2, "{user} {candidate}: {page}");
        }
    }
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-admin", &path);
    for (src, width) in shown(&browser) {
        assert!(src.ends_with("_WebPreview.jpg"), "{width} px: {src}");
    }
}

/// The pictures of a page: their formats besides JPEG, whether these have the widths of the JPEG, the extension of the
/// address that the browser chose, and whether it loaded.
const PICTURES: &str = "[...document.querySelectorAll('main picture')].map(picture => {
    const [image, sources] = [picture.querySelector('img'), [...picture.querySelectorAll('source')]];
    const jpegs = image.getAttribute('srcset') ?? image.getAttribute('src');
    const isSame = source => source.srcset.replaceAll('.auto', '.jpg') === jpegs
        && source.sizes === image.sizes;
    return [sources.map(source => source.type).join(), sources.every(isSame),
        image.currentSrc.split('.').at(-1), image.naturalWidth > 0 && image.hasAttribute('alt')];
})";

#[test]
fn every_page_shows_its_pictures_as_jpeg_and_all_load() {
    let server = Server::demo();
    let owner = Session::open(&server, "demo-admin");
    let uri = |key: &str| format!("{}/media/{key}", server.url);
    let (photograph, graphic) = (uri("image/demo-urtavla"), uri("graphic/demo-sweden-map"));
    let fields = [("name", "All"), ("uri", &photograph), ("uri", &graphic), ("return_to", "/")];
    assert_eq!(owner.post(&server, "/collections/add", &fields).status(), 303);
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-admin", "/collections");
    let collection = browser.text("document.querySelector('.sets h2 a').pathname");
    for (path, count) in [
        ("/collections", 1),
        (collection.as_str(), 2),
        ("/", 15),
        ("/?type=_all", 10),
        ("/item/image/demo-urtavla", 1),
        ("/item/graphic/demo-sweden-map", 1),
        ("/item/text/demo-aceh-rescue", 1),
    ] {
        browser.visit(&format!("{}{path}", server.url));
        let pictures = browser.eval(PICTURES);
        let pictures = pictures.as_array().expect("a list");
        assert!(pictures.len() >= count, "{path}: {pictures:?}");
        for picture in pictures {
            assert_eq!(picture, &json!(["", true, "jpg", true]), "{path}");
        }
        browser.check_layout(path);
    }
    browser.visit(&format!("{}/item/image/demo-urtavla", server.url));
    // The sizes and formats for programs.
    let link = "document.querySelector('a[href$=\".renditions.json\"]').href";
    let told: Value = server.client.get(browser.text(link)).send().unwrap().json().expect("JSON");
    assert_eq!(told["uri"], json!(photograph));
}

/// The `Accept` of the browser's requests for pictures.
const ACCEPT: &str = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8";

#[test]
fn avif_that_is_made_ahead_is_offered_first() {
    let jpeg = Picture::waves(1500, 1000).jpeg();
    let server = Server::with_pictures(&["media.avif=ahead"], &[("early", jpeg.clone())]);
    let file = server.dir.path().join("late.jpg");
    std::fs::write(&file, jpeg).expect("written");
    let output = server.command(&["ingest", &file.to_string_lossy()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Three renditions of the item that arrived, each as JPEG and as AVIF.
    let renders = || server.metric("wirephoto_render_paths_total", "");
    server.until("pre-rendering", || (renders() >= 6.0).then_some(()));
    for name in ["NormalPreview", "NormalThumbnail", "WebPreview"] {
        server.until(name, || {
            let answer = server.get(&format!("/media/image/late_{name}.avif"));
            assert_eq!(answer.headers()["content-type"], "image/avif");
            (answer.headers()["wirephoto-path"] == "cache").then_some(())
        });
    }
    assert!((renders() - 6.0).abs() < f64::EPSILON, "{}", renders());
    let browser = Browser::open(DESKTOP);
    browser.visit(&format!("{}/", server.url));
    for picture in browser.eval(PICTURES).as_array().expect("a list") {
        assert_eq!(picture, &json!(["image/avif", true, "auto", true]));
    }
    // That is the AVIF at once where it was made ahead, and later where the first visit began it.
    let chosen = shown(&browser);
    assert!(chosen.iter().any(|(src, _)| src.contains("/late_")), "{chosen:?}");
    for (src, _) in chosen {
        let path = src.strip_prefix(server.url.as_str()).expect("an address of the service");
        let kind = || {
            let answer = server.get_with(path, &[("accept", ACCEPT)]);
            assert_eq!(answer.status(), 200, "{src}");
            answer.headers()["content-type"].to_str().expect("ASCII").to_owned()
        };
        if src.contains("/late_") {
            assert_eq!(kind(), "image/avif", "{src}");
        }
        server.until("the AVIF", || (kind() == "image/avif").then_some(()));
    }
    browser.check_layout("AVIF");
    // A browser without AVIF shows the JPEG.
    browser.eval("document.querySelectorAll('source').forEach(one => { one.type = 'image/x' })");
    browser.wait(
        "the JPEG",
        "(image => image.currentSrc.endsWith('.jpg') && image.complete && image.naturalWidth > 0)\
         (document.querySelector('main picture img'))",
    );
}

#[test]
fn typical_first_searches_find_pictures_of_the_demo() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.visit(&format!("{}/", server.url));
    for (word, id) in [
        ("sunset", "demo-solnedgang-over-bergen"),
        ("bridge", "demo-bridge-cables"),
        ("dog", "demo_hundar_i_fonster"),
        ("dogs", "demo_hundar_i_fonster"),
        ("flag", "demo-flag-of-sweden"),
        ("klocka", "demo-urtavla"),
    ] {
        browser.fill("input[name=q]", word);
        browser.follow("form.finder button[type=submit]");
        let found = browser.eval(
            "[...document.querySelectorAll('.wall a')].map(link => new URL(link.href).pathname)",
        );
        assert_eq!(found, json!([format!("/item/image/{id}")]), "{word}");
        browser.check_layout(word);
        // The API finds it with the same words.
        let path = format!("/content/v1/image/search?q={word}");
        let answer: Value = server.get(&path).json().expect("JSON");
        assert_ne!(answer["total"], 0, "{word}");
    }
}

#[test]
fn every_demo_item_has_licences_for_entitled_users() {
    let server = Server::demo();
    let root = checkout("media-store/demo");
    let mut count = 0;
    for folder in std::fs::read_dir(&root).expect("the demo").flatten() {
        let media_type = folder.file_name().into_string().expect("UTF-8");
        // A photograph without metadata has no product.
        if !folder.path().is_dir() || media_type == "bare" {
            continue;
        }
        for item in std::fs::read_dir(folder.path()).expect("items").flatten() {
            let id = item.file_name().into_string().expect("UTF-8");
            let path = format!("/media/{media_type}/{id}/pricelist?ak={DEMO_KEY}");
            let licences: Value = server.get(&path).json().expect("JSON");
            assert!(licences.as_array().is_some_and(|all| !all.is_empty()), "{path}: {licences}");
            count += 1;
        }
    }
    assert!(count >= 23, "{count}");
}
