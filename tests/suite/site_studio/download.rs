//! Crops that are downloaded: login, agreement and form token.

use std::fs;

use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use serde_json::json;

use super::{LEFT, agrees, fields, focus, type_over};
use crate::common::{
    LARGE, Server,
    browser::{Browser, DESKTOP},
    pictures::Picture,
};

#[test]
fn a_crop_is_downloaded_after_the_login() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    let downloads = browser.save_downloads();
    browser.visit(&format!("{}/item/{LARGE}/crop", server.url));
    type_over(&browser, "#width", "1500");
    type_over(&browser, "#height", "900");
    type_over(&browser, "#x", "1201");
    type_over(&browser, "#y", "803");
    agrees(&browser, &server, LARGE, [1500, 900, 1201, 803]);
    browser.follow("#login");
    assert!(browser.address().contains("/o/login?return_to="), "{}", browser.address());
    browser.fill("#username", "demo-editor");
    browser.fill("#password", "demo-editor-password");
    browser.follow("main button[type=submit]");
    assert_eq!(fields(&browser), [1500, 900, 1201, 803]);
    agrees(&browser, &server, LARGE, [1500, 900, 1201, 803]);
    focus(&browser, "#mover");
    browser.press(LEFT);
    browser.click("#watermark");
    browser.click("#download");
    let jpeg = saved(&server, &downloads);
    let found = Picture::decode(&jpeg);
    assert_eq!(found.size(), (1500, 900));
    let key = crate::common::DEMO_KEY;
    let path = format!("/media/{LARGE}-crop_w1500_h900_x1200_y803-watermark.jpg?ak={key}");
    let expected = Picture::decode(&server.bytes(&path));
    assert!(found == expected, "the file is what the address delivers");
    browser.check_layout("after the download");
    // The session expires; the form is stored during the login and gives the same crop.
    let clear = json!({ "cmd": "Network.clearBrowserCookies", "params": {} });
    browser.post("/goog/cdp/execute", &clear);
    browser.follow("#download");
    browser.fill("#username", "demo-editor");
    browser.fill("#password", "demo-editor-password");
    browser.follow("main button[type=submit]");
    let shown = browser.text("document.querySelector('main').innerText");
    assert!(shown.contains("1500") && shown.contains("803"), "{shown}");
    browser.screenshot("studio-kept.png");
    browser.click("main form button[type=submit]");
    assert!(Picture::decode(&saved(&server, &downloads)) == expected);
}

/// Returns and removes the file that the browser saved.
fn saved(server: &Server, folder: &std::path::Path) -> Vec<u8> {
    server.until("the download", || {
        let files = fs::read_dir(folder).ok()?.flatten().map(|file| file.path());
        let mut done = files.filter(|path| path.extension().is_some_and(|end| end == "jpg"));
        let path = done.next()?;
        // The browser reserves the name with an empty file and renames the finished one over it.
        let bytes = fs::read(&path).ok().filter(|bytes| !bytes.is_empty())?;
        fs::remove_file(path).ok()?;
        Some(bytes)
    })
}

/// The session cookie of a demo user, with the form token of its pages.
fn session(server: &Server, user: &str, page: &str) -> (String, String) {
    let token = |text: &str| {
        let token = text.split_once("name=\"csrf\" value=\"").expect("a token").1;
        token.split('"').next().expect("a token").to_owned()
    };
    let response = server.get("/o/login");
    let form = response.headers()[SET_COOKIE].to_str().expect("ASCII").to_owned();
    let form = form.split(';').next().expect("a cookie").to_owned();
    let csrf = token(&response.text().expect("text"));
    let password = format!("{user}-password");
    let fields = [("username", user), ("password", password.as_str()), ("csrf", csrf.as_str())];
    let request = server.client.post(format!("{}/o/login", server.url)).header(COOKIE, form);
    let response = request.form(&fields).send().expect("answer");
    let cookies = response.headers().get_all(SET_COOKIE).iter();
    let cookies = cookies.map(|line| line.to_str().expect("ASCII").to_owned());
    let session = cookies.into_iter().find(|line| line.starts_with("wirephoto_session="));
    let session = session.expect("a session").split(';').next().expect("a cookie").to_owned();
    let text = server.get_with(page, &[("cookie", &session)]).text().expect("text");
    (session, token(&text))
}

#[test]
fn a_download_needs_a_session_its_token_and_an_agreement() {
    let server = Server::demo();
    let page = format!("/item/{LARGE}/crop");
    let (cookie, csrf) = session(&server, "demo-buyer", &page);
    let post = |cookie: Option<&str>, fields: &[(&str, &str)]| {
        let mut request = server.client.post(format!("{}{page}/download", server.url));
        if let Some(cookie) = cookie {
            request = request.header(COOKIE, cookie);
        }
        request.header("origin", &server.url).form(fields).send().expect("answer")
    };
    let crop = [("x", "100"), ("y", "200"), ("width", "300"), ("height", "150")];
    let with = |more: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
        crop.iter().chain(more).map(|(name, value)| (*name, (*value).to_owned())).collect()
    };
    let send = |cookie: Option<&str>, more: &[(&'static str, &str)]| {
        let fields = with(more);
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        post(cookie, &fields)
    };
    // Anonymous visitors and users with an expired session log in first; the crop is kept.
    let response = send(None, &[("csrf", &csrf)]);
    assert!(response.status() == 200 || response.status() == 303, "{}", response.status());
    assert!(response.headers().get("content-disposition").is_none());
    let text = response.text().expect("text");
    assert!(text.contains("kept_fields") && text.contains("width=300"), "{text}");
    // Without the token of a page of ours nothing is bought; the page asks for confirmation first.
    for wrong in [&[][..], &[("csrf", "wrong")]] {
        let response = send(Some(&cookie), wrong);
        assert!(response.headers().get("content-disposition").is_none(), "{wrong:?}");
        let kind = response.headers()["content-type"].to_str().expect("ASCII").to_owned();
        assert!(kind.starts_with("text/html"), "{wrong:?}: {kind}");
    }
    // Invalid numbers show the studio again.
    let typed = |name: &str, value: &str| {
        let fields: Vec<_> = crop
            .iter()
            .map(|(own, text)| (*own, if *own == name { value } else { *text }))
            .chain([("csrf", csrf.as_str())])
            .collect();
        post(Some(&cookie), &fields)
    };
    for (name, value) in [("x", "99999"), ("width", "0"), ("y", "<b>"), ("height", "1e3")] {
        let response = typed(name, value);
        assert_eq!(response.status(), 400, "{name}={value}");
        let text = response.text().expect("text");
        assert!(text.contains("role=\"alert\"") && !text.contains("<b>"), "{name}={value}");
        let text = text.replace("&#x2f;", "/");
        assert!(text.contains(&format!("name=\"return_to\" value=\"{page}\"")), "{text}");
    }
    assert_eq!(send(Some(&cookie), &[("csrf", &csrf), ("agr", "x")]).status(), 400);
    let refused = send(Some(&cookie), &[("csrf", &csrf), ("agr", "1")]);
    assert_eq!(refused.status(), 403);
    let text = refused.text().expect("text");
    assert!(text.contains("id=\"refused\"") && text.contains("value=\"300\""), "{text}");
    // Nothing has been bought so far: the prepaid agreement still has all of its downloads.
    assert!(is_untouched(&server, &cookie));
    let response = send(Some(&cookie), &[("csrf", &csrf), ("agr", "1002")]);
    assert_eq!(response.status(), 200);
    let name = response.headers()["content-disposition"].to_str().expect("ASCII").to_owned();
    assert!(name.contains("attachment") && name.contains("demo-solnedgang-over-bergen"), "{name}");
    assert_eq!(Picture::decode(&response.bytes().expect("body")).size(), (300, 150));
    assert!(!is_untouched(&server, &cookie));
    let get = server.get(&format!("{page}/download"));
    assert_eq!(get.status(), 405);
    assert!(get.headers().get(LOCATION).is_none());
}

/// Returns whether the buyer's prepaid agreement still has all of its downloads.
fn is_untouched(server: &Server, cookie: &str) -> bool {
    let item = server.get_with(&format!("/item/{LARGE}"), &[("cookie", cookie)]);
    item.text().expect("text").contains("10 of 10")
}
