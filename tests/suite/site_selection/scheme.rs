//! The colour scheme of the pages.

use reqwest::header::LOCATION;
use serde_json::json;

use crate::common::{
    Server,
    browser::{Browser, DESKTOP},
};

#[test]
fn the_colour_scheme_is_chosen_and_remembered() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.visit(&format!("{}/item/image/demo-urtavla", server.url));
    let ground = "getComputedStyle(document.body).backgroundColor";
    let (light, dark) = ("rgb(245, 245, 245)", "rgb(20, 20, 20)");
    browser.set_viewport(1280, "light");
    assert_eq!(browser.eval(ground), light);
    browser.set_viewport(1280, "dark");
    assert_eq!(browser.eval(ground), dark, "the default is that of the system");
    browser.follow("[name=scheme][value=light]");
    assert!(browser.address().ends_with("/item/image/demo-urtavla"), "{}", browser.address());
    for path in ["/item/image/demo-urtavla", "/", "/docs", "/docs/guide", "/o/login", "/nope"] {
        browser.visit(&format!("{}{path}", server.url));
        assert_eq!(browser.eval(ground), light, "{path}");
    }
    browser.visit(&format!("{}/", server.url));
    browser.follow("[name=scheme][value=dark]");
    browser.set_viewport(1280, "light");
    assert_eq!(browser.eval(ground), dark);
    assert_eq!(
        browser.eval("document.querySelector('[name=scheme][value=dark]').ariaPressed"),
        "true"
    );
    browser.check_accessible("dark by choice");
    browser.screenshot("scheme-dark.png");
    // Paper stays light.
    let media = json!({ "cmd": "Emulation.setEmulatedMedia", "params": { "media": "print" } });
    browser.post("/goog/cdp/execute", &media);
    assert_eq!(browser.eval("getComputedStyle(document.body).color"), "rgb(23, 23, 23)");
    let media = json!({ "cmd": "Emulation.setEmulatedMedia", "params": { "media": "" } });
    browser.post("/goog/cdp/execute", &media);
    browser.follow("[name=scheme][value=system]");
    browser.set_viewport(1280, "light");
    assert_eq!(browser.eval(ground), light);
    // A form of the foot leads only to pages of ours, and an unknown scheme sets nothing.
    let answer =
        server.post_form("/scheme", &[("scheme", "sepia"), ("return_to", "//evil.example/")]);
    assert_eq!(answer.headers()[LOCATION], "/");
    assert!(answer.headers().get("set-cookie").is_none());
    // The documentation of anonymous visitors stays cacheable without the choice.
    assert!(server.get("/docs").headers().contains_key("etag"));
}
