//! The pages of the agency's editors: uploads by drag and drop that survive interruptions, captions of one item and
//! of several, conflicts of two editors, metadata templates, withdrawal, and who may do all that.

use std::{
    fs,
    path::{Path, PathBuf},
};

use reqwest::{
    blocking::Response,
    header::{COOKIE, LOCATION},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use turbojpeg::Subsamp;

use crate::common::{
    Server,
    browser::{Browser, DESKTOP, PHONE},
    pictures::Picture,
    ports::free_port,
    server::wirephoto,
};
use crate::desk_edits::{get, patch, scene, served};
use crate::desk_uploads::Uploader;
use crate::items::put;
use crate::site::Session;

/// The text of the page.
const MAIN: &str = "document.querySelector('main').innerText";
/// The number of uploads that are complete.
const READY: &str = "document.querySelectorAll('#uploads [data-complete=yes]').length";
/// The button that saves the form of one item, and of several.
const SAVE: &str = ".editing-form > .act button";
const SAVE_MANY: &str = ".many > .act button";
const SAVE_CONFLICT: &str = ".conflicts > .act button";

/// Chooses files in the dialogue of the upload page.
fn choose(browser: &Browser, files: &[&Path]) {
    let found = browser.post("/element", &json!({ "using": "css selector", "value": "#files" }));
    let id = found.as_object().and_then(|one| one.values().next()).expect("an element");
    let names: Vec<_> = files.iter().map(|file| file.to_string_lossy()).collect();
    let text = json!({ "text": names.join("\n") });
    browser.post(&format!("/element/{}/value", id.as_str().expect("an id")), &text);
}

fn write(server: &Server, name: &str, bytes: &[u8]) -> PathBuf {
    let path = server.dir.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn shown(browser: &Browser) -> String {
    browser.text(MAIN)
}

/// A page without scripts, with unescaped slashes.
fn plain(page: Response) -> String {
    page.text().expect("text").replace("&#x2f;", "/")
}

fn location(response: &Response) -> &str {
    assert_eq!(response.status(), 303);
    response.headers()[LOCATION].to_str().expect("ASCII")
}

/// The value of the first field with that name.
fn field(page: &str, name: &str) -> String {
    let start = format!("name=\"{name}\" value=\"");
    let (_, rest) = page.split_once(&start).unwrap_or_else(|| panic!("{name}: {page}"));
    rest.split('"').next().expect("a value").replace("&quot;", "\"")
}

#[test]
fn files_are_chosen_and_dropped_described_and_published() {
    let server = Server::with_pictures::<&str>(&["ingest.required_fields=headline"], &[]);
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-admin", "/");
    browser.follow(".places a[href='/desk/upload']");
    browser.check_appearance("desk-upload-empty");
    let jpeg = write(&server, "harbour.jpg", &Picture::corners(320, 240).jpeg());
    let sheet = write(&server, "sheet.xls", b"x");
    choose(&browser, &[&jpeg, &sheet]);
    browser.wait("the photograph", &format!("{READY} === 1"));
    assert!(shown(&browser).contains("This kind of file cannot be uploaded."));
    choose(&browser, &[&jpeg]);
    let status = "document.querySelector('#upload-status').textContent";
    assert_eq!(browser.text(status), "harbour.jpg: This file is in the list already.");
    // Dropped beside the marked place, which would otherwise open the file instead of the page.
    let script = "
        const done = arguments[arguments.length - 1];
        const canvas = Object.assign(document.createElement('canvas'), { width: 300, height: 200 });
        canvas.getContext('2d').fillRect(0, 0, 150, 100);
        canvas.toBlob(blob => {
          const dragged = new DataTransfer();
          dragged.items.add(new File([blob], 'dropped.jpg', { type: 'image/jpeg' }));
          for (const name of ['dragover', 'drop']) {
            const options = { bubbles: true, cancelable: true, dataTransfer: dragged };
            document.querySelector('h1').dispatchEvent(new DragEvent(name, options));
          }
          done(null);
        }, 'image/jpeg');
    ";
    browser.post("/execute/async", &json!({ "script": script, "args": [] }));
    browser.wait("the dropped file", &format!("{READY} === 2"));
    browser.check_appearance("desk-upload");
    browser.follow("#publish-act button");
    assert!(shown(&browser).contains("2 files"), "{}", shown(&browser));
    browser.check_appearance("desk-publish");
    browser.fill(".card:nth-of-type(1) [name^='headline.']", "Ice in the harbour");
    browser.follow(".cards > .act button");
    // One is published; the other one waits for the field of the house rule.
    let page = shown(&browser);
    assert!(page.contains("image/harbour") && page.contains("Headline is missing."), "{page}");
    assert_eq!(served(&server, "image/harbour")["headline"], "Ice in the harbour");
    drop(browser.console_messages());
    browser.check_appearance("desk-publish-mistake");
    browser.fill("[name^='headline.']", "Dropped");
    browser.fill("[name^='description_text.']", "A caption\nin two lines");
    browser.follow(".cards > .act button");
    assert!(shown(&browser).contains("Published."), "{}", shown(&browser));
    let dropped = served(&server, "image/dropped");
    assert_eq!(dropped["description_text"], "A caption\nin two lines");
    assert_eq!(dropped["renditions"]["r00"]["width"], 300);
    assert!(shown(&browser).contains("There are no uploads."));
}

/// A server at a port that stays the same after a restart.
fn start_at(dir: TempDir, port: u16) -> Server {
    let mut command = wirephoto(dir.path());
    let address = format!("127.0.0.1:{port}");
    command.args(["serve", "--listen", &address, "--data"]).arg(dir.path().join("data"));
    Server::run(dir, command)
}

/// Limits what the browser sends to so many bytes per second.
fn slow_down(browser: &Browser, bytes_per_s: i32) {
    let conditions = json!({
        "offline": false, "latency": 0, "downloadThroughput": -1, "uploadThroughput": bytes_per_s,
    });
    for (cmd, params) in
        [("Network.enable", json!({})), ("Network.emulateNetworkConditions", conditions)]
    {
        browser.post("/goog/cdp/execute", &json!({ "cmd": cmd, "params": params }));
    }
}

#[test]
fn an_upload_in_the_browser_continues_after_a_restart_and_on_another_day() {
    let port = free_port();
    let server = start_at(Server::with_pictures::<&str>(&[], &[]).kill(), port);
    let jpeg = Picture::grain(2600, 2200).jpeg_with(Subsamp::None, 95);
    assert!(jpeg.len() > 9_000_000, "{}", jpeg.len());
    // Outside of the server's folder, which moves with it.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("big.jpg");
    fs::write(&file, &jpeg).unwrap();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-admin", "/desk/upload");
    slow_down(&browser, 2_000_000);
    choose(&browser, &[&file]);
    let sent = "document.querySelector('#uploads .sent').value > 5_000_000";
    browser.wait("the first part", sent);
    let id = browser.text("document.querySelector('#uploads li').dataset.id");
    let dir = server.kill();
    let state = "document.querySelector('#uploads li').dataset.state";
    browser.wait("another attempt", &format!("{state} === 'retrying'"));
    assert!(shown(&browser).contains("Interrupted, trying again"));
    let server = start_at(dir, port);
    browser.wait("progress after the restart", &format!("{state} === 'sending' && {sent}"));
    assert_eq!(browser.text("document.querySelector('#uploads li').dataset.id"), id);
    // The browser is closed, and the file is chosen again in another one.
    drop(browser);
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-admin", "/desk/upload");
    assert_eq!(browser.text("document.querySelector('#uploads li').dataset.id"), id);
    let kept = "document.querySelector('#uploads .sent').value > 4_000_000";
    assert_eq!(browser.eval(kept), true, "what was sent stays");
    assert!(shown(&browser).contains("Interrupted: choose the file again to continue."));
    choose(&browser, &[&file]);
    browser.wait("the rest", &format!("{READY} === 1"));
    assert_eq!(browser.eval("document.querySelectorAll('#uploads li').length"), 1);
    assert_eq!(browser.text("document.querySelector('#uploads li').dataset.id"), id);
    browser.follow("#publish-act button");
    // The whole file arrived, in order: it decodes.
    assert!(shown(&browser).contains("2600 × 2200"), "{}", shown(&browser));
    browser.follow(".cards > .act button");
    assert_eq!(served(&server, "image/big")["renditions"]["r00"]["width"], 2600);
}

#[test]
fn an_upload_is_discarded_and_tried_again_in_the_list() {
    let settings = ["ingest.upload_user_bytes=20000", "media.file_bytes_max=19000"];
    let server = Server::with_pictures::<&str>(&settings, &[]);
    let browser = Browser::open(PHONE);
    browser.log_in(&server.url, "demo-admin", "/desk/upload");
    let [first, second, large] = [("a.jpg", 12_000), ("b.jpg", 12_000), ("c.jpg", 19_001)]
        .map(|(name, length)| write(&server, name, &vec![7; length]));
    choose(&browser, &[&first]);
    browser.wait("the first file", &format!("{READY} === 1"));
    choose(&browser, &[&second, &large]);
    let failed = "[...document.querySelectorAll('#uploads [data-state=failed] .state')]";
    browser.wait("the limit", &format!("{failed}.length === 1"));
    let page = shown(&browser);
    assert!(page.contains("You have reached your limit of unpublished uploads."), "{page}");
    assert!(page.contains("The file is too large."), "{page}");
    drop(browser.console_messages());
    browser.click("#uploads li:nth-child(1) .discard");
    browser.wait(
        "the first file to be gone",
        "document.querySelectorAll('#uploads li').length === 2",
    );
    browser.click("#uploads li:nth-child(1) .again");
    browser.wait("the second file", &format!("{READY} === 1"));
    // The list is as the server has it after a new visit.
    browser.visit(&format!("{}/desk/upload", server.url));
    assert_eq!(browser.text("document.querySelector('#uploads .name').textContent"), "b.jpg");
    assert_eq!(browser.eval("document.querySelectorAll('#uploads li').length"), 1);
    // It is no picture: the page says so, and the upload waits until it is discarded.
    browser.follow("#publish-act button");
    assert!(shown(&browser).contains("b.jpg:"), "{}", shown(&browser));
}

#[test]
fn two_editors_of_one_item_see_each_others_values() {
    let (server, auth) = scene(&[]);
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-admin", "/item/image/ice");
    browser.follow("a[href^='/desk/edit?item=']");
    browser.check_appearance("desk-edit");
    browser.fill("#headline", "Mine");
    browser.fill("#keyword", "ice\nfrost");
    // Meanwhile another editor changes the same field, and one more.
    let theirs = json!({ "headline": "Theirs", "byline": "Other Editor" });
    assert_eq!(patch(&server, &auth, "/ingest/v1/image/ice", &theirs, "*").status(), 200);
    browser.follow(SAVE);
    let page = shown(&browser);
    assert!(page.contains("Others changed this item") && page.contains("Theirs"), "{page}");
    assert_eq!(browser.text("document.querySelector('.version textarea').value"), "Mine");
    assert_eq!(browser.eval("document.querySelectorAll('.conflict').length"), 1);
    assert_eq!(served(&server, "image/ice")["headline"], "Theirs", "nothing is lost yet");
    drop(browser.console_messages());
    browser.check_appearance("desk-conflict");
    browser.fill(".version textarea", "Mine, with theirs");
    browser.click("[name='pick.headline'][value=mine]");
    browser.follow(SAVE_CONFLICT);
    assert!(shown(&browser).contains("Saved."), "{}", shown(&browser));
    let item = served(&server, "image/ice");
    assert_eq!(
        (&item["headline"], &item["byline"]),
        (&json!("Mine, with theirs"), &json!("Other Editor"))
    );
    let names: Vec<_> =
        item["subject"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["environment", "ice", "frost"]);
    // The history says who changed what.
    let history = browser.text("document.querySelector('.history').innerText");
    assert!(history.contains("demo-admin") && history.contains("Theirs"), "{history}");
    // Changes of other fields are no conflict.
    browser.fill("#city", "Luleå");
    let other = json!({ "headline": "Theirs again" });
    assert_eq!(patch(&server, &auth, "/ingest/v1/image/ice", &other, "*").status(), 200);
    browser.follow(SAVE);
    assert!(shown(&browser).contains("Saved."), "{}", shown(&browser));
    let item = served(&server, "image/ice");
    assert_eq!(item["headline"], "Theirs again");
    assert!(item["place"].as_array().unwrap().iter().any(|place| place["name"] == "Luleå"));
}

#[test]
fn several_items_are_edited_and_withdrawn_together() {
    let (server, auth) = scene(&[]);
    server.wait_for_index();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-admin", "/");
    browser.eval("document.querySelectorAll('input[name=uri]').forEach(one => one.click())");
    browser.follow("[formaction='/desk/select']");
    assert!(shown(&browser).contains("Edit 2 items"), "{}", shown(&browser));
    assert!(shown(&browser).contains("Different values"));
    browser.check_appearance("desk-edit-many");
    browser.fill(".modes [name=city]", "Luleå");
    assert_eq!(browser.text("document.querySelector('[name=\"mode.city\"]').value"), "replace");
    browser.eval("document.querySelector('[name=\"mode.keyword\"]').value = 'append'");
    browser.fill(".modes [name=keyword]", "ice\nwinter");
    browser.follow(SAVE_MANY);
    assert!(shown(&browser).contains("Saved."), "{}", shown(&browser));
    let names = |key: &str, list: &str| -> Vec<Value> {
        let item = served(&server, key);
        item[list].as_array().unwrap().iter().map(|one| one["name"].clone()).collect()
    };
    for key in ["image/ice", "image/snow"] {
        assert_eq!(names(key, "subject"), ["environment", "ice", "winter"], "{key}");
        assert_eq!(names(key, "place"), ["Luleå"], "{key}");
    }
    // One of them changes while the form is open: it is not saved, and both values are shown.
    browser.fill(".modes [name=source]", "Mine");
    let theirs = json!({ "source": "Theirs" });
    assert_eq!(patch(&server, &auth, "/ingest/v1/image/snow", &theirs, "*").status(), 200);
    browser.follow(SAVE_MANY);
    let page = shown(&browser);
    assert!(page.contains("1 item is saved.") && page.contains("Theirs"), "{page}");
    assert_eq!(served(&server, "image/ice")["source"], "Mine");
    assert_eq!(served(&server, "image/snow")["source"], "Theirs");
    drop(browser.console_messages());
    browser.check_appearance("desk-edit-many-conflict");
    browser.follow(SAVE_MANY);
    assert_eq!(served(&server, "image/snow")["source"], "Mine");
    browser.visit(&format!("{}/desk/edit?item=image/ice&item=image/snow", server.url));
    browser.click(".sure summary");
    browser.follow("[formaction='/desk/withdraw']");
    assert!(shown(&browser).contains("Withdrawn."), "{}", shown(&browser));
    for key in ["image/ice", "image/snow"] {
        assert_eq!(server.get(&format!("/media/{key}_NormalPreview.jpg")).status(), 404, "{key}");
    }
}

#[test]
fn an_item_is_edited_withdrawn_and_restored_without_scripts() {
    let (server, auth) = scene(&["ingest.required_fields=byline"]);
    let session = Session::open(&server, "demo-admin");
    let edit = "/desk/edit?item=image/ice&return_to=/collections";
    let page = plain(session.get(&server, edit));
    assert!(page.contains("href=\"/collections\"") && page.contains(">required<"), "{page}");
    let (tag, version) = (field(&page, "tag"), field(&page, "version"));
    let send = |changes: &[(&str, &str)]| {
        let own = [("item", "image/ice"), ("tag", tag.as_str()), ("version", &version)];
        session.post(&server, "/desk/edit", &[&own[..], changes].concat())
    };
    let headline = [("base.headline", "Ice"), ("headline", "Ice breaks up")];
    let refused = send(&headline);
    assert_eq!(refused.status(), 400);
    let refused = plain(refused);
    assert!(
        refused.contains("Byline is missing.") && refused.contains("Ice breaks up"),
        "{refused}"
    );
    let saved = send(&[&headline[..], &[("byline", " Ada ")]].concat());
    assert_eq!(location(&saved), "/desk/edit?item=image%2Fice&done=saved");
    let item = served(&server, "image/ice");
    assert_eq!((&item["headline"], &item["byline"]), (&json!("Ice breaks up"), &json!("Ada")));
    // The same form again, as after a step back: the values are there already.
    assert_eq!(send(&headline).status(), 303);
    // The older form with another value: both values, and nothing is chosen for the editor.
    let conflict = send(&[("base.headline", "Ice"), ("headline", "Snow")]);
    assert_eq!(conflict.status(), 409);
    let conflict = plain(conflict);
    assert!(conflict.contains("Ice breaks up") && conflict.contains("Snow"), "{conflict}");
    assert!(!conflict.contains(" checked"), "{conflict}");
    let withdrawn = session.post(&server, "/desk/withdraw", &[("item", "image/ice")]);
    assert_eq!(location(&withdrawn), "/desk/edit?item=image%2Fice&done=withdrawn");
    assert_eq!(server.get("/media/image/ice_NormalPreview.jpg").status(), 404);
    let page = plain(session.get(&server, "/desk/edit?item=image/ice&done=withdrawn"));
    assert!(page.contains("/desk/restore") && !page.contains("/desk/withdraw"), "{page}");
    let restored = session.post(&server, "/desk/restore", &[("item", "image/ice")]);
    assert_eq!(location(&restored), "/desk/edit?item=image%2Fice&done=restored");
    server.bytes("/media/image/ice_NormalPreview.jpg");
    let changes: Value = get(&server, &auth, "/ingest/v1/image/ice/changes").json().expect("JSON");
    assert_eq!(changes.as_array().unwrap().len(), 3, "{changes}");
    assert_eq!(session.get(&server, "/desk/edit?item=image/none").status(), 404);
    assert!(plain(session.get(&server, "/desk/edit")).contains("Edit items"));
}

#[test]
fn publishing_again_gives_the_status_back_that_an_item_had() {
    let (server, auth) = scene(&[]);
    let session = Session::open(&server, "demo-admin");
    let change = |key: &str, change: &Value| {
        let path = format!("/ingest/v1/{key}");
        assert_eq!(patch(&server, &auth, &path, change, "*").status(), 200, "{change}");
    };
    let ice = "image/ice";
    let status = || -> Value {
        let item: Value = get(&server, &auth, "/ingest/v1/image/ice").json().expect("JSON");
        item["pubstatus"].clone()
    };
    let post = |page: &str| {
        let done = session.post(&server, page, &[("item", ice)]);
        assert_eq!(done.status(), 303, "{page}");
    };
    let desk = || post("/desk/withdraw");
    let feed = || {
        let document = json!({ "headline": "Ice", "pubstatus": "canceled" }).to_string();
        let body = ("application/json", document.into_bytes());
        assert_eq!(put(&server, ice, &auth, body).status(), 200);
    };
    for held in ["withheld", "commissioned", "usable"] {
        change(ice, &json!({ "pubstatus": held }));
        post("/desk/restore");
        assert_eq!(status(), held, "it is not withdrawn");
        for withdraw in [&desk as &dyn Fn(), &feed] {
            withdraw();
            assert_eq!(status(), "canceled");
            post("/desk/restore");
            assert_eq!(status(), held);
        }
    }
    change("image/snow", &json!({ "replacing": ["http://localhost/media/image/ice"] }));
    assert_eq!(status(), "replaced");
    for withdraw in [&desk as &dyn Fn(), &feed] {
        withdraw();
        assert_eq!(status(), "canceled");
        post("/desk/restore");
        assert_eq!(status(), "replaced", "its replacement is served");
    }
}

#[test]
fn the_page_of_a_withdrawn_item_says_who_will_see_it() {
    let (server, auth) = scene(&[]);
    let session = Session::open(&server, "demo-admin");
    let item = [("item", "image/ice")];
    let edit = "/desk/edit?item=image/ice";
    let check = |change: &Value, expected: &str, is_public: bool| {
        let changed = patch(&server, &auth, "/ingest/v1/image/ice", change, "*");
        assert_eq!(changed.status(), 200, "{change}");
        assert_eq!(session.post(&server, "/desk/withdraw", &item).status(), 303);
        let page = plain(session.get(&server, edit));
        assert!(page.contains(expected), "{expected}: {page}");
        assert_eq!(page.contains("Customers see the item again."), is_public, "{page}");
        assert_eq!(page.contains(">Publish again<"), is_public, "{page}");
        let restored = session.post(&server, "/desk/restore", &item);
        let done = if is_public { "restored" } else { "reinstated" };
        assert_eq!(location(&restored), format!("/desk/edit?item=image%2Fice&done={done}"));
        let seen = server.get("/media/image/ice_NormalPreview.jpg").status().as_u16();
        assert_eq!(seen, if is_public { 200 } else { 404 }, "{change}");
    };
    check(&json!({ "pubstatus": "withheld" }), "The item is withheld again", false);
    let commissioned = json!({ "pubstatus": "commissioned" });
    check(&commissioned, "Only administrators and the agency see it.", false);
    let embargoed = json!({ "pubstatus": "usable", "embargoed": "2099-01-01T11:00:00Z" });
    let until = "when its embargo ends. It is under embargo until 1 Jan 2099 12:00.";
    check(&embargoed, until, false);
    let page = plain(session.get(&server, &format!("{edit}&done=reinstated")));
    assert!(page.contains("The withdrawal is undone."), "{page}");
    check(&json!({ "embargoed": null }), "Customers see the item again.", true);
    // An item that arrived withdrawn has no status from before.
    let document = json!({ "headline": "Gone", "pubstatus": "canceled" }).to_string();
    let body = ("application/json", document.into_bytes());
    assert_eq!(put(&server, "text/gone", &auth, body).status(), 201);
    let page = plain(session.get(&server, "/desk/edit?item=text/gone"));
    assert!(page.contains("is not recorded. Customers see the item again."), "{page}");
}

#[test]
fn the_embargo_that_a_new_file_would_keep_is_shown_changed_and_cleared_without_scripts() {
    let (server, auth) = scene(&[]);
    let session = Session::open(&server, "demo-admin");
    let embargo = "2999-01-01T11:00:00Z";
    let change = json!({ "embargoed": embargo });
    assert_eq!(patch(&server, &auth, "/ingest/v1/image/ice", &change, "*").status(), 200);
    let stored = || -> Option<Value> {
        let item: Value = get(&server, &auth, "/ingest/v1/image/ice").json().expect("JSON");
        item.get("embargoed").cloned()
    };
    let is_shown = |page: &str, name: &str| {
        let found = page.find(&format!("name=\"{name}\" type=\"datetime-local\""));
        // Further down it would be folded.
        found.is_some_and(|at| at < page.find("More fields").expect("further fields"))
    };
    let page = plain(session.get(&server, "/desk/edit?item=image/ice"));
    assert!(is_shown(&page, "embargoed"), "{page}");
    let uploader = Uploader { auth: auth.clone() };
    let jpeg = Picture::corners(320, 240).jpeg();
    // Replaces the file with what the form has, or with another embargo; returns the form.
    let replace = |entered: Option<&str>| -> String {
        let path = uploader.upload(&server, "ice.jpg", &jpeg);
        let id = path.rsplit('/').next().expect("an id");
        let page = plain(session.get(&server, &format!("/desk/publish?upload={id}")));
        let [existing, base, own] =
            ["existing", "base.embargoed", "embargoed"].map(|name| format!("{name}.{id}"));
        let shown = field(&page, &base);
        assert_eq!(is_shown(&page, &own), !shown.is_empty(), "{page}");
        let form = [
            ("upload", id),
            (existing.as_str(), "replace"),
            (base.as_str(), shown.as_str()),
            (own.as_str(), entered.unwrap_or(&shown)),
        ];
        let published = session.post(&server, "/desk/publish", &form);
        assert!(location(&published).starts_with("/desk/upload?done=published"), "{entered:?}");
        page
    };
    let page = replace(None);
    assert!(page.contains("It is under embargo until 1 Jan 2999 12:00."), "{page}");
    assert!(page.contains("value=\"2999-01-01T12:00\""), "{page}");
    assert_eq!(stored(), Some(json!(embargo)), "it was left as it was");
    replace(Some("2035-07-01T08:30"));
    assert_eq!(stored(), Some(json!("2035-07-01T08:30:00+02:00")));
    replace(Some(""));
    assert_eq!(stored(), None);
    server.bytes("/media/image/ice_NormalPreview.jpg");
    assert!(!replace(None).contains("under embargo"));
}

#[test]
fn a_template_is_written_and_applied_to_an_item_and_to_uploads() {
    let (server, _) = scene(&[]);
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-admin", "/desk/templates");
    assert!(shown(&browser).contains("There are no templates yet."), "{}", shown(&browser));
    browser.follow("a[href='/desk/templates/new']");
    browser.check_appearance("desk-template");
    browser.fill("#name", "Winter desk");
    browser.fill(".modes [name=source]", "Agency");
    browser.fill(".modes [name=headline]", "Template headline");
    browser.eval("document.querySelector('[name=\"mode.headline\"]').value = 'fill'");
    browser.follow(SAVE_MANY);
    assert!(shown(&browser).contains("Created."), "{}", shown(&browser));
    assert!(shown(&browser).contains("Winter desk"));
    browser.check_appearance("desk-templates");
    // It is tried in the form of an item, and saved with it.
    browser.visit(&format!("{}/desk/edit?item=image/ice", server.url));
    browser.fill("#city", "Luleå");
    let first = "document.querySelector('#template').selectedIndex = 1";
    browser.eval(first);
    browser.follow("[name=apply]");
    assert_eq!(browser.text("document.querySelector('#source').value"), "Agency");
    assert_eq!(
        browser.text("document.querySelector('#headline').value"),
        "Ice",
        "it was not empty"
    );
    assert_eq!(browser.text("document.querySelector('#city').value"), "Luleå", "it stays");
    assert!(served(&server, "image/ice").get("source").is_none(), "not before it is saved");
    browser.follow(SAVE);
    assert_eq!(served(&server, "image/ice")["source"], "Agency");
    // To several items at once.
    browser.visit(&format!("{}/desk/edit?item=image/ice&item=image/snow", server.url));
    browser.eval(first);
    browser.follow(SAVE_MANY);
    assert_eq!(served(&server, "image/snow")["source"], "Agency");
    // To an upload, whose headline is empty.
    browser.visit(&format!("{}/desk/upload", server.url));
    choose(&browser, &[&write(&server, "new.jpg", &Picture::waves(200, 100).jpeg())]);
    browser.wait("the upload", &format!("{READY} === 1"));
    browser.follow("#publish-act button");
    browser.eval(first);
    browser.follow("[name=apply]");
    browser.follow(".cards > .act button");
    let item = served(&server, "image/new");
    assert_eq!(
        (&item["headline"], &item["source"]),
        (&json!("Template headline"), &json!("Agency"))
    );
    // A template that others changed is not overwritten.
    let session = Session::open(&server, "demo-admin");
    let page = plain(session.get(&server, "/desk/templates"));
    let path = page.split("href=\"").find(|part| {
        part.starts_with("/desk/templates/") && !part.starts_with("/desk/templates/new")
    });
    let path = path.and_then(|part| part.split('"').next()).expect("an address").to_owned();
    let tag = field(&plain(session.get(&server, &path)), "tag");
    let name = [("tag", tag.as_str()), ("name", "Other"), ("shared", "on")];
    assert_eq!(location(&session.post(&server, &path, &name)), "/desk/templates?done=saved");
    assert_eq!(session.post(&server, &path, &name).status(), 412);
    let removed = session.post(&server, &format!("{path}/remove"), &[]);
    assert_eq!(location(&removed), "/desk/templates?done=removed");
}

#[test]
fn the_desk_is_for_providers_alone() {
    let (server, _) = scene(&[]);
    let pages = [
        "/desk",
        "/desk/upload",
        "/desk/edit?item=image/ice",
        "/desk/templates",
        "/desk/templates/new",
        "/desk/publish?upload=x",
    ];
    let forms = [
        "/desk/edit",
        "/desk/select",
        "/desk/withdraw",
        "/desk/restore",
        "/desk/publish",
        "/desk/templates",
        "/desk/templates/1",
        "/desk/templates/1/remove",
        "/desk/uploads/publish",
        "/desk/uploads/1/discard",
    ];
    let item = [("item", "image/ice"), ("headline", "Changed")];
    for user in ["demo-editor", "demo-buyer"] {
        let session = Session::open(&server, user);
        for path in pages {
            assert_eq!(session.get(&server, path).status(), 403, "{user} {path}");
        }
        for path in forms {
            assert_eq!(session.post(&server, path, &item).status(), 403, "{user} {path}");
        }
        let page = plain(session.get(&server, "/"));
        assert!(!page.contains("/desk"), "{user}: {page}");
        assert!(!plain(session.get(&server, "/item/image/ice")).contains("/desk"), "{user}");
    }
    for path in pages {
        let answer = server.get(path);
        assert!(location(&answer).starts_with("/o/login?return_to="), "{path}");
    }
    // A form of another site has no token.
    let session = Session::open(&server, "demo-admin");
    let forged = server.client.post(format!("{}/desk/withdraw", server.url));
    drop(forged.header(COOKIE, &session.cookie).form(&item).send().expect("answer"));
    assert_eq!(served(&server, "image/ice")["headline"], "Ice");
    server.bytes("/media/image/ice_NormalPreview.jpg");
}
