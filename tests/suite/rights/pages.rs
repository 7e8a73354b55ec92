//! Rights on pages: badges, licensors and statements, data for search engines and for social networks, in a real
//! browser.

use serde_json::{Value, json};

use super::fixtures::{self, alternative, bag, entry};
use super::{PLAIN, header};
use crate::common::{
    Server,
    browser::{Browser, DESKTOP},
};

/// A text that would end the block of data, or become an element, where it is not escaped.
const HOSTILE: &str = "&lt;/script&gt;&lt;script&gt;document.title='gone'&lt;/script&gt;&lt;!--";

/// XMP of a picture that a model made, with licensors and statements.
fn stated(name: &str, link: &str) -> String {
    let member = |name: &str, text: &str| format!("<{name}>{text}</{name}>");
    let licensor = entry(&(member("plus:LicensorName", name) + &member("plus:LicensorURL", link)));
    fixtures::ai_made("trainedAlgorithmicMedia", "DMI-PROHIBITED-AIMLTRAINING")
        + &format!("<plus:Licensor><rdf:Seq>{licensor}</rdf:Seq></plus:Licensor>")
        + &member("xmpRights:WebStatement", link)
        + &alternative("xmpRights:UsageTerms", name)
        + &alternative("plus:OtherConstraints", name)
        + &alternative("Iptc4xmpCore:AltTextAccessibility", name)
        + &alternative("dc:description", name)
        + &alternative("dc:rights", name)
        + &member("photoshop:Headline", name)
        + &member("photoshop:Credit", name)
        + &member("Iptc4xmpExt:AISystemUsed", name)
        + &bag("Iptc4xmpExt:EventId", "<rdf:li>https://agency.example/event</rdf:li>")
}

fn server() -> Server {
    let plain = fixtures::plain();
    let pictures = [
        (
            "made",
            fixtures::with_xmp(&plain, &stated("Agency", "https://agency.example/licence?a=1")),
        ),
        ("hostile", fixtures::with_xmp(&plain, &stated(HOSTILE, "javascript:alert(1)"))),
        ("plain", plain),
    ];
    Server::with_pictures(&PLAIN, &pictures)
}

/// The data for search engines on the current page; null if it has none.
fn image_object(browser: &Browser) -> Value {
    let block = "document.querySelector('script[type=\"application/ld+json\"]')";
    browser.eval(&format!("({block} && JSON.parse({block}.textContent))"))
}

/// The content of an OpenGraph property of the current page.
fn open_graph(browser: &Browser, name: &str) -> Value {
    browser.eval(&format!(
        "(it => it && it.content)(document.querySelector('meta[property=\"og:{name}\"]'))"
    ))
}

fn main_text(browser: &Browser) -> String {
    browser.text("document.querySelector('main').innerText")
}

#[test]
fn the_page_of_an_item_shows_its_rights_and_states_them_for_search_engines() {
    let server = server();
    let browser = Browser::open(DESKTOP);
    let page = format!("{}/item/image/made", server.url);
    browser.visit(&page);
    let text = main_text(&browser);
    for shown in ["Created by AI", "Data mining prohibited", "Prohibited for AI training"] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    let links = browser.eval("[...document.querySelectorAll('main a')].map(a => a.href)");
    assert!(links.to_string().contains("https://agency.example/licence?a=1"), "{links}");
    assert!(links.to_string().contains("/media/image/made.metadata.json"), "{links}");
    assert_eq!(browser.eval("document.querySelector('.hero img').alt"), "Agency");
    let preview = format!("{}/media/image/made_NormalPreview.jpg", server.url);
    let object = image_object(&browser);
    for (name, value) in [
        ("@context", "https://schema.org"),
        ("@type", "ImageObject"),
        ("contentUrl", preview.as_str()),
        ("name", "Agency"),
        ("creditText", "Agency"),
        ("copyrightNotice", "Agency"),
        ("license", "https://agency.example/licence?a=1"),
        ("acquireLicensePage", "https://agency.example/licence?a=1"),
        ("digitalSourceType", "https://schema.org/TrainedAlgorithmicMediaDigitalSource"),
    ] {
        assert_eq!(object[name], value, "{name}: {object:#}");
    }
    assert_eq!(open_graph(&browser, "title"), "Agency");
    assert_eq!(open_graph(&browser, "url"), page.as_str());
    assert_eq!(open_graph(&browser, "image"), preview.as_str());
    assert_eq!(open_graph(&browser, "image:width"), "320");
    // The picture that the data name is open to everyone.
    assert_eq!(server.get("/media/image/made_NormalPreview.jpg").status(), 200);
    browser.check_layout("the page of a picture with rights");
    browser.check_accessible("the page of a picture with rights");
    let swedish = server.get_with("/item/image/made", &[("accept-language", "sv")]);
    assert!(header(&swedish, "content-type").starts_with("text/html"));
    let swedish = swedish.text().expect("text");
    for shown in ["Skapad av AI", "Datautvinning förbjuden"] {
        assert!(swedish.contains(shown), "{shown}: {swedish}");
    }
}

#[test]
fn hostile_metadata_neither_leave_their_block_nor_become_links() {
    let server = server();
    let browser = Browser::open(DESKTOP);
    browser.visit(&format!("{}/item/image/hostile", server.url));
    assert_ne!(browser.text("document.title"), "gone");
    let object = image_object(&browser);
    let name = object["name"].as_str().expect("a name");
    assert!(name.starts_with("</script><script>"), "{object:#}");
    assert_eq!((object.get("license"), object.get("acquireLicensePage")), (None, None));
    let links = browser.eval("[...document.querySelectorAll('[href]')].map(a => a.href)");
    assert!(!links.to_string().contains("javascript:"), "{links}");
    browser.check_layout("the page of a picture with hostile metadata");
}

#[test]
fn a_picture_without_rights_has_no_badge_and_search_shows_and_narrows_by_them() {
    let server = server();
    server.wait_for_index();
    let browser = Browser::open(DESKTOP);
    browser.visit(&format!("{}/item/image/plain", server.url));
    let text = main_text(&browser);
    assert!(!text.contains("Created by AI") && !text.contains("Data mining"), "{text}");
    let object = image_object(&browser);
    assert_eq!(object["@type"], "ImageObject");
    for absent in ["digitalSourceType", "license", "acquireLicensePage"] {
        assert_eq!(object.get(absent), None, "{object:#}");
    }
    browser.visit(&server.url);
    let badges = "[...document.querySelectorAll('main .badge')].map(it => it.textContent.trim())";
    assert_eq!(browser.eval(badges), json!(["Created by AI", "Created by AI"]));
    let choices = "[...document.querySelectorAll('.facets a')]";
    let narrowed = format!("{choices}.find(a => a.textContent.trim() === 'Created by AI')");
    browser.eval(&format!("{narrowed}.id = 'narrow'"));
    // The driver takes what a closed element contains for invisible, although the styles show it on a desktop.
    browser
        .eval("document.querySelectorAll('details:has(#narrow)').forEach(it => it.open = true)");
    browser.follow("#narrow");
    let hits = "[...document.querySelectorAll('main a[href*=\"/item/image/\"]')].map(a => a.href)";
    let hits = browser.eval(hits).to_string();
    assert!(hits.contains("/item/image/made") && hits.contains("/item/image/hostile"), "{hits}");
    assert!(!hits.contains("/item/image/plain"), "{hits}");
}
