//! The cost of a selection before anything is bought, and the one confirmation that downloads, delivers or orders it.

use reqwest::header::CONTENT_DISPOSITION;
use serde_json::Value;

use super::{KEPT, fields, location, members, orders, photographs, plain, shown_cost, uri, uris};
use crate::common::{
    Server,
    browser::{Browser, DESKTOP},
};
use crate::site::Session;

#[test]
fn the_cost_of_a_selection_is_shown_before_anything_is_bought() {
    let server = Server::demo();
    let buyer = Session::open(&server, "demo-buyer");
    let mut keys = photographs();
    let covered = keys.len();
    assert!(covered > 10, "more than the prepaid downloads");
    keys.extend(
        ["image/demo-aitzgorri-host", "text/demo-aceh-rescue", "image/no-such-item"]
            .map(str::to_owned),
    );
    let uris = uris(&server, &keys);
    let page = plain(buyer.post(&server, "/selection", &fields(&uris, &[("return_to", "/?q=a")])));
    for part in [
        "10 of 10 downloads left, 0 after this",
        "Left out until an order is approved",
        "Download zip with 10 items",
        "Licences from 250.00 SEK",
        "Not covered",
        "Not available",
        "href=\"/?q=a\"",
        "Demo prepaid",
        "Demo direct",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(page.contains(&format!("Order {} items for approval", covered - 10)), "{page}");
    assert_eq!(orders(&server, &buyer), Vec::<Value>::new(), "the page buys nothing");
    // Without what the page showed, nothing is bought; nor if it differs.
    let shown = shown_cost(&page);
    let cheaper = shown.replace("=buys-1002", "=free");
    for shown in ["", cheaper.as_str(), "nonsense"] {
        for path in ["/selection/zip", "/selection/deliver", "/selection/order"] {
            let answer = buyer.post(&server, path, &fields(&uris, &[("shown", shown)]));
            assert_eq!(answer.status(), 409, "{path}");
            assert!(plain(answer).contains("nothing has been bought"), "{path}");
        }
    }
    assert_eq!(orders(&server, &buyer), Vec::<Value>::new());
    // Under the agreement that needs approvals nothing is delivered at once.
    let page = plain(buyer.post(&server, "/selection", &fields(&uris, &[("agr", "1003")])));
    assert!(page.contains(&format!("Order {covered} items for approval")), "{page}");
    assert!(
        page.contains("can be downloaded now") && !page.contains("Download zip with"),
        "{page}"
    );
}

#[test]
fn one_confirmation_buys_what_was_shown_and_orders_the_rest() {
    let server = Server::demo();
    let buyer = Session::open(&server, "demo-buyer");
    let keys = photographs();
    let uris = uris(&server, &keys);
    let page = plain(buyer.post(&server, "/selection", &fields(&uris, &[])));
    let shown = shown_cost(&page);
    // One confirmation.
    let answer =
        buyer.post(&server, "/selection/zip", &fields(&uris, &[("shown", shown.as_str())]));
    assert_eq!(answer.status(), 200);
    let name = answer.headers()[CONTENT_DISPOSITION].to_str().expect("ASCII").to_owned();
    assert!(
        name.starts_with("attachment; filename=\"selection-20") && name.ends_with(".zip\""),
        "{name}"
    );
    let names = members(&answer.bytes().expect("bytes"));
    let pictures: Vec<_> = names.iter().filter(|name| name.ends_with(".jpg")).collect();
    assert_eq!(pictures.len(), 10, "{names:?}");
    let first = keys[0].strip_prefix("image/").expect("a key");
    assert_eq!(
        *pictures[0],
        format!("01_{first}_NormalHires.jpg"),
        "the order is that of the form"
    );
    assert!(names.contains(&"left-out.txt".to_owned()), "{names:?}");
    assert_eq!(orders(&server, &buyer).len(), 10);
    // Again it is free, and the page that was shown before still confirms it.
    let page = plain(buyer.post(&server, "/selection", &fields(&uris, &[])));
    assert!(page.contains("Already bought. Download again free until"), "{page}");
    assert!(!page.contains("after this"), "{page}");
    let answer =
        buyer.post(&server, "/selection/zip", &fields(&uris[..10], &[("shown", shown.as_str())]));
    assert_eq!((answer.status().as_u16(), orders(&server, &buyer).len()), (200, 10));
    // The others are ordered at once, and no file is delivered for them.
    let cost = shown_cost(&page);
    let answer =
        buyer.post(&server, "/selection/order", &fields(&uris, &[("shown", cost.as_str())]));
    assert_eq!(location(&answer), "/account/orders?done=all_placed");
    let placed = orders(&server, &buyer);
    assert_eq!(placed.len(), keys.len());
    let waiting = placed.iter().filter(|order| order["price"]["agreement"]["id"] == 1003).count();
    assert_eq!(waiting, keys.len() - 10);
    let page = plain(buyer.post(&server, "/selection", &fields(&uris, &[])));
    assert!(
        page.contains("Ordered, waiting for approval") && !page.contains("for approval</button>"),
        "{page}"
    );
    let page = plain(buyer.get(&server, "/account/orders?done=all_placed"));
    assert!(page.contains("Items ordered."), "{page}");
}

#[test]
fn an_order_for_approval_buys_nothing_with_downloads_that_other_items_were_quoted() {
    let server = Server::demo();
    let buyer = Session::open(&server, "demo-buyer");
    let keys = photographs();
    let uris = uris(&server, &keys);
    let shown = shown_cost(&plain(buyer.post(&server, "/selection", &fields(&uris, &[]))));
    assert!(shown.contains("=buys-1002") && shown.contains("=order-1003"), "{shown}");
    // All prepaid downloads are left, and an item alone would be bought with one of them.
    let answer =
        buyer.post(&server, "/selection/order", &fields(&uris, &[("shown", shown.as_str())]));
    assert_eq!(location(&answer), "/account/orders?done=all_placed");
    let placed = orders(&server, &buyer);
    assert_eq!(placed.len(), keys.len() - 10);
    for order in &placed {
        assert_eq!(order["price"]["agreement"]["id"], 1003, "{order}");
    }
    let page = plain(buyer.post(&server, "/selection", &fields(&uris, &[])));
    assert!(page.contains("10 of 10 downloads left, 0 after this"), "{page}");
}

#[test]
fn a_selection_is_downloaded_after_one_confirmation() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    let downloads = browser.save_downloads();
    browser.log_in(&server.url, "demo-buyer", "/");
    browser.eval("[...document.querySelectorAll('.picker input')].slice(0, 3).reverse().forEach(one => one.click())");
    let kept = browser.eval(KEPT);
    browser.follow(".selection-acts > [formaction='/selection']");
    let listed = "[...document.querySelectorAll('.selection-items input')].map(one => one.value)";
    assert_eq!(browser.eval(listed), kept);
    let cost = "document.querySelector('.selection-cost').innerText";
    assert!(
        browser.text(cost).contains("10 of 10 downloads left, 7 after this"),
        "{}",
        browser.text(cost)
    );
    browser.check_layout("review");
    browser.check_appearance("selection-review");
    // What is unticked leaves the cost and the selection; the order stays when it is ticked again.
    browser.click(".selection-items li:nth-child(2) input");
    browser.wait("the cost of two", &format!("{cost}.includes('8 after this')"));
    assert_eq!(browser.eval(&format!("{KEPT}.length")), 2);
    browser.click(".selection-items li:nth-child(2) input");
    browser.wait("the cost of three", &format!("{cost}.includes('7 after this')"));
    assert_eq!(browser.eval(KEPT), kept);
    browser.eval("(select => { select.value = '1003'; select.dispatchEvent(new Event('change', { bubbles: true })); })(document.querySelector('#agr')) ?? null");
    browser.wait("the other agreement", &format!("{cost}.includes('Order 3 items for approval')"));
    browser.eval("(select => { select.value = ''; select.dispatchEvent(new Event('change', { bubbles: true })); })(document.querySelector('#agr')) ?? null");
    browser.wait("the automatic choice", &format!("{cost}.includes('7 after this')"));
    // Enter on a tick box presses the first button of the form, which buys nothing.
    let first = "document.querySelector('.selection-review button').getAttribute('formaction')";
    assert_eq!(browser.eval(first), "/selection");
    browser.click("[formaction='/selection/zip']");
    let zip = server.until("the download", || {
        let files = std::fs::read_dir(&downloads).ok()?;
        let files = files.filter_map(|file| Some(file.ok()?.path()));
        let mut zips = files.filter(|path| path.extension().is_some_and(|end| end == "zip"));
        let bytes = std::fs::read(zips.next()?).ok()?;
        bytes.windows(4).any(|four| four == b"PK\x05\x06").then_some(bytes)
    });
    let names = members(&zip);
    let ids = kept.as_array().expect("a list").iter();
    let ids: Vec<_> = ids.filter_map(|uri| uri.as_str()?.rsplit('/').next()).collect();
    for (place, id) in (1..).zip(ids) {
        assert!(names.contains(&format!("0{place}_{id}_NormalHires.jpg")), "{names:?}");
    }
    // The page says by itself what the download took.
    browser.wait(
        "the purchase",
        &format!("{cost}.includes('Already bought') && !{cost}.includes('after this')"),
    );
    let states = "[...document.querySelectorAll('.state')].map(one => one.textContent)";
    for state in browser.eval(states).as_array().expect("a list") {
        assert!(state.as_str().expect("text").contains("Already bought"), "{state}");
    }
    browser.check_layout("bought");
}

#[test]
fn with_nothing_ticked_there_is_no_cost_and_nothing_to_confirm() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-buyer", "/");
    browser.eval("document.querySelector('.picker input').click() ?? null");
    browser.follow(".selection-acts > [formaction='/selection']");
    let cost = "document.querySelector('.selection-cost').innerText";
    let before = browser.text(cost);
    assert!(
        before.contains("9 after this") && !before.contains("Nothing is selected."),
        "{before}"
    );
    browser.click(".selection-items input");
    // At once: nothing has to be asked for.
    let after = browser.text(cost);
    assert!(after.contains("Nothing is selected.") && !after.contains("after this"), "{after}");
    assert!(!after.contains("Download zip"), "{after}");
    browser.check_layout("nothing ticked");
    browser.click(".selection-items input");
    browser.wait("the cost of one", &format!("{cost}.includes('9 after this')"));
    let again = browser.text(cost);
    assert!(again.contains("Download zip with 1 item"), "{again}");
    assert!(!again.contains("Nothing is selected."), "{again}");
}

#[test]
fn without_scripts_a_form_with_nothing_ticked_says_so_and_does_nothing() {
    let server = Server::demo();
    let editor = Session::open(&server, "demo-editor");
    let form = [("listed", "1"), ("shown", ""), ("channel", "user:demo-editor:demo-folder")];
    let said = "Nothing is selected.";
    let shown = editor.post(&server, "/selection", &form);
    assert_eq!(shown.status(), 200);
    assert!(plain(shown).contains(said));
    assert!(!plain(editor.get(&server, "/selection")).contains(said), "no form was sent");
    for act in ["zip", "deliver", "order", "captions.txt", "captions.csv"] {
        let refused = editor.post(&server, &format!("/selection/{act}"), &form);
        assert_eq!(refused.status(), 400, "{act}");
        let page = plain(refused);
        assert!(page.contains(said), "{act}: {page}");
    }
    assert_eq!(orders(&server, &editor), Vec::<Value>::new());
}

#[test]
fn a_selection_is_delivered_after_one_confirmation() {
    let server = Server::demo();
    let editor = Session::open(&server, "demo-editor");
    let keys = ["image/demo-urtavla", "image/demo-bridge-cables"].map(str::to_owned);
    let uris = uris(&server, &keys);
    let page = plain(editor.post(&server, "/selection", &fields(&uris, &[])));
    assert!(
        page.contains("Included, recorded as purchases") && page.contains("Deliver 2 items"),
        "{page}"
    );
    assert!(
        !page.contains("demo-download"),
        "a channel that sends nothing is not offered: {page}"
    );
    let shown = shown_cost(&page);
    let folder = "user:demo-editor:demo-folder";
    let deliver = |channel: &str, shown: &str| {
        let more = [("shown", shown), ("channel", channel)];
        editor.post(&server, "/selection/deliver", &fields(&uris, &more))
    };
    // A channel that does not exist delivers and buys nothing, and each item is named.
    let answer = deliver("user:demo-editor:none", &shown);
    assert!(answer.status().is_client_error(), "{}", answer.status());
    let text = plain(answer);
    for key in &keys {
        assert!(text.contains(&format!("<code>{key}</code>")), "{key}: {text}");
    }
    assert_eq!(deliver("", &shown).status(), 400);
    assert_eq!(orders(&server, &editor), Vec::<Value>::new());
    assert_eq!(location(&deliver(folder, &shown)), "/account/deliveries?done=sent");
    server.until("the deliveries", || {
        let page = plain(editor.get(&server, "/account/deliveries"));
        let mut ids = keys.iter().filter_map(|key| key.rsplit('/').next());
        ids.all(|id| page.contains(id)).then_some(())
    });
    assert_eq!(orders(&server, &editor).len(), 2);
}

#[test]
fn without_scripts_a_form_selects_what_is_ticked_and_needs_its_token() {
    let server = Server::demo();
    let editor = Session::open(&server, "demo-editor");
    let wall = plain(editor.get(&server, "/"));
    for part in [
        "action=\"/selection\"",
        "formaction=\"/selection/captions.txt\"",
        "formaction=\"/collections/add\"",
    ] {
        assert!(wall.contains(part), "{part}: {wall}");
    }
    assert!(
        !plain(server.get("/")).contains("selection-bar"),
        "without a login nothing is selected"
    );
    let page = plain(editor.get(&server, "/selection"));
    assert!(page.contains("before anything is bought. Tick items"), "{page}");
    let page = plain(editor.post(&server, "/selection", &[]));
    assert!(page.contains("before anything is bought. Tick items"), "{page}");
    let twice = [uri(&server, "image/demo-urtavla"), uri(&server, "image/demo-urtavla")];
    let page = plain(editor.post(&server, "/selection", &fields(&twice, &[])));
    assert!(page.contains("Download zip with 1 item<"), "{page}");
    // More than one archive holds are left out and counted.
    let many: Vec<String> =
        (0..505).map(|number| uri(&server, &format!("image/none-{number}"))).collect();
    let page = plain(editor.post(&server, "/selection", &fields(&many, &[])));
    assert!(
        page.contains("Too many items for one zip file") && page.contains(">5</span>"),
        "{page}"
    );
    // A foreign address is no way back.
    let page = plain(editor.post(
        &server,
        "/selection",
        &fields(&twice, &[("return_to", "//evil.example/")]),
    ));
    assert!(!page.contains("evil.example"), "{page}");
    // The collection is asked for when the form has none.
    let page = plain(editor.post(
        &server,
        "/collections/add",
        &fields(&twice[..1], &[("step", "choose")]),
    ));
    assert!(page.contains("New collection's name") && !page.contains("role=\"alert\""), "{page}");
    let request = server.client.post(format!("{}/selection/zip", server.url));
    let request = request
        .header("cookie", &editor.cookie)
        .form(&[("csrf", "wrong"), ("uri", twice[0].as_str())]);
    assert_eq!(request.send().expect("answer").status(), 400);
    assert_eq!(orders(&server, &editor), Vec::<Value>::new());
}

#[test]
fn a_collection_is_reviewed_like_a_selection() {
    let server = Server::demo();
    let editor = Session::open(&server, "demo-editor");
    let uris =
        uris(&server, &["image/demo-urtavla", "image/demo-bridge-cables"].map(str::to_owned));
    let answer = editor.post(&server, "/collections/add", &fields(&uris, &[("name", "Vecka 47")]));
    let page = location(&answer);
    let page = page.split('?').next().expect("a path");
    let id = page.rsplit('/').next().expect("an id");
    assert!(plain(editor.get(&server, page)).contains("Show cost, deliver or list captions"));
    let shown =
        plain(editor.post(&server, "/selection", &[("of_collection", id), ("return_to", page)]));
    assert!(
        shown.contains("Download zip with 2 items") && shown.contains("Back to the collection"),
        "{shown}"
    );
    // It is not the visitor's selection, which unticking an item would change.
    assert!(!shown.contains("data-selection"), "{shown}");
    // With nothing ticked on that page nothing is selected and nothing is bought.
    assert!(shown.contains("name=\"listed\" value=\"1\""), "{shown}");
    let cost = shown_cost(&shown);
    let none = [("of_collection", id), ("listed", "1"), ("shown", cost.as_str())];
    let page = plain(editor.post(&server, "/selection", &none));
    assert!(page.contains("Nothing is selected.") && page.contains("Tick items"), "{page}");
    assert!(!page.contains("Download zip"), "{page}");
    assert_eq!(editor.post(&server, "/selection/zip", &none).status(), 400);
    assert_eq!(orders(&server, &editor), Vec::<Value>::new());
    let other = Session::open(&server, "demo-buyer");
    assert_eq!(other.post(&server, "/selection", &[("of_collection", id)]).status(), 404);
}

#[test]
fn pictures_that_come_with_a_text_are_shown_before_they_are_bought() {
    let server = Server::demo();
    let editor = Session::open(&server, "demo-editor");
    let uris = uris(&server, &["text/demo-aceh-rescue".to_owned()]);
    let page = plain(editor.post(&server, "/selection", &fields(&uris, &[])));
    assert!(page.contains("With 1 picture, which is recorded as a purchase too"), "{page}");
    let shown = shown_cost(&page);
    let own = "text/demo-aceh-rescue=buys-1001";
    assert_eq!(shown, format!("{own} text/demo-aceh-rescue+image/demo-bridge-cables=buys-1001"));
    let zip = |shown: &str| {
        let answer = editor.post(&server, "/selection/zip", &fields(&uris, &[("shown", shown)]));
        (answer.status().as_u16(), orders(&server, &editor).len())
    };
    // A page that showed the text alone buys nothing.
    assert_eq!(zip(own), (409, 0));
    assert_eq!(zip(&shown), (200, 2));
    let page = plain(editor.post(&server, "/selection", &fields(&uris, &[])));
    assert!(page.contains("Already bought") && !page.contains("With 1 picture"), "{page}");
}
