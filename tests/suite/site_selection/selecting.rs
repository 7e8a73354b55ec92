//! Making a selection: by mouse, keyboard and touch, across pages, searches and tabs of a visit.

use serde_json::json;

use super::{COUNT, KEPT, center, focus, photographs, shift_click, shift_press, ticked};
use crate::common::{
    Server,
    browser::{Browser, DESKTOP, PHONE},
};

#[test]
fn items_are_selected_by_mouse_and_keyboard_and_stay_selected_for_a_visit() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", "/");
    let bar = "getComputedStyle(document.querySelector('.selection-bar')).display";
    assert_eq!(browser.eval(bar), "none");
    let tile = |number: usize, what: &str| format!(".wall li:nth-child({number}) {what}");
    center(&browser, &tile(2, "img"));
    browser.click(&tile(2, ".picker input"));
    assert_eq!((browser.text(COUNT), ticked(&browser)), ("1 item selected".to_owned(), vec![2]));
    // With Shift the items in between come too, also by a click on the picture, which opens nothing.
    shift_click(&browser, &tile(4, ".picker input"));
    assert_eq!(ticked(&browser), [2, 3, 4]);
    shift_click(&browser, &tile(6, "img"));
    assert_eq!(ticked(&browser), [2, 3, 4, 5, 6]);
    assert!(browser.address().ends_with('/'), "{}", browser.address());
    center(&browser, &tile(3, "img"));
    browser.click(&tile(3, ".picker input"));
    assert_eq!(ticked(&browser), [2, 4, 5, 6]);
    // By keyboard.
    focus(&browser, &tile(8, "a"));
    browser.press("x");
    focus(&browser, &tile(10, "a"));
    shift_press(&browser, "x");
    focus(&browser, &tile(1, "input"));
    browser.press(" ");
    assert_eq!(ticked(&browser), [1, 2, 4, 5, 6, 8, 9, 10]);
    assert_eq!(browser.text(COUNT), "8 items selected");
    browser.press("b");
    assert_eq!(
        browser.eval("document.querySelector('.selection-bar').contains(document.activeElement)"),
        true
    );
    browser.check_layout("a selection");
    browser.check_appearance("selection-bar");
    // The order is that of the selection: the first that was ticked comes first, the last one last.
    let kept = browser.eval(KEPT);
    let place = |number: usize| {
        let value =
            browser.eval(&format!("document.querySelector('{}').value", tile(number, "input")));
        kept.as_array().expect("a list").iter().position(|one| *one == value).expect("kept")
    };
    assert_eq!((place(2), place(1), place(10)), (0, 7, 6));
    // Other searches, items and pages of the visit show the same count.
    for path in [
        "/?q=sunset",
        "/?type=text",
        "/item/image/demo-urtavla",
        "/collections",
        "/?q=no-such-word",
    ] {
        browser.visit(&format!("{}{path}", server.url));
        assert_eq!(browser.text(COUNT), "8 items selected", "{path}");
        assert_ne!(browser.eval(bar), "none", "{path}");
        browser.check_layout(path);
    }
    browser.visit(&format!("{}/", server.url));
    assert_eq!(ticked(&browser), [1, 2, 4, 5, 6, 8, 9, 10]);
    browser.click("[data-do=all]");
    assert_eq!(browser.text(COUNT), format!("{} items selected", photographs().len() + 1));
    browser.click("[data-do=clear]");
    assert_eq!((ticked(&browser), browser.eval(bar)), (vec![], json!("none")));
    // Hits that arrive later, and boxes that other scripts tick, count as well.
    browser.eval("document.querySelector('.picker input').click() ?? null");
    browser.eval(
        "document.querySelector('.wall').append(\
            (copy => { copy.querySelector('input').checked = false; return copy; })\
            (document.querySelector('.wall li').cloneNode(true))) ?? null",
    );
    browser.wait("the tick", "document.querySelector('.wall li:last-child input').checked");
}

#[test]
fn a_selection_belongs_to_the_session_and_to_all_of_its_tabs() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", "/");
    browser.eval("document.querySelector('.picker input').click() ?? null");
    browser.eval("window.open('/', '_blank', 'noopener') ?? null");
    let tabs = browser.windows();
    browser.switch_to(&tabs[1]);
    browser.wait("the other tab's selection", &format!("{COUNT} === '1 item selected'"));
    browser.eval("document.querySelectorAll('.picker input')[1].click() ?? null");
    browser.switch_to(&tabs[0]);
    browser.wait("the change", &format!("{COUNT} === '2 items selected'"));
    // Another user in the same browser does not see it.
    browser.follow(".site-head form button");
    browser.log_in(&server.url, "demo-buyer", "/");
    let bar = "getComputedStyle(document.querySelector('.selection-bar')).display";
    assert_eq!((ticked(&browser), browser.eval(bar)), (vec![], json!("none")));
}

#[test]
fn a_selection_is_added_to_a_collection_from_any_page() {
    let server = Server::demo();
    let browser = Browser::open(PHONE);
    browser.log_in(&server.url, "demo-editor", "/?q=bridge");
    browser.eval("document.querySelector('.picker input').click() ?? null");
    browser.check_layout("a selection on a phone");
    browser.screenshot("selection-phone.png");
    // An item is selected on its own page too.
    browser.visit(&format!("{}/item/image/demo-urtavla", server.url));
    let pressed = "document.querySelector('[data-select]').ariaPressed";
    for (expected, count) in [("true", "2 items selected"), ("false", "1 item selected")] {
        center(&browser, "[data-select]");
        browser.click("[data-select]");
        assert_eq!(
            (browser.text(pressed), browser.text(COUNT)),
            (expected.to_owned(), count.to_owned())
        );
    }
    browser.follow(".selection-bar [formaction='/collections/add']");
    browser.fill("#name", "Broar");
    browser.follow("main button[type=submit]");
    let said = browser.text("document.querySelector('.said').innerText");
    assert!(said.contains("Added to the collection"), "{said}");
    assert!(browser.address().ends_with("/item/image/demo-urtavla"), "{}", browser.address());
    assert_eq!(browser.text(COUNT), "1 item selected");
    browser.visit(&format!("{}/collections", server.url));
    assert!(browser.text("document.querySelector('main').innerText").contains("Broar"));
}
