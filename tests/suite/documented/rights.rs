//! Runs the code blocks of `docs/guide/rights.md` as an agency would.

use serde_json::Value;

use super::pages::block;
use super::run::{Terminal, substitute};
use crate::items::provider;

const PAGE: &str = "docs/guide/rights.md";

/// The values of a text with several JSON documents.
fn documents(text: &str) -> Vec<Value> {
    let values = serde_json::Deserializer::from_str(text).into_iter();
    values.map(|value| value.unwrap_or_else(|cause| panic!("{cause}: {text}"))).collect()
}

#[test]
fn rights_are_read_set_and_listed_as_the_guide_shows() {
    let terminal = Terminal::demo();
    let run = |start: &str| terminal.run(&block(PAGE, start).text);
    let auth = provider(&terminal.server);
    let key = format!("KEY={}", auth.strip_prefix("ApiKey ").expect("a key"));
    let set = substitute(&block(PAGE, "KEY=...").text, &[("KEY=...", &key)]);
    let said = documents(&terminal.run(&set));
    let [changed, read, taken_back, changes] = said.as_slice() else { panic!("{said:?}") };
    let prohibited = "http://ns.useplus.org/ldf/vocab/DMI-PROHIBITED";
    assert_eq!(changed["dataMining"], prohibited);
    assert_eq!(read, changed);
    assert_eq!(taken_back.as_object().map(serde_json::Map::len), Some(1), "{taken_back}");
    assert_eq!(changes.as_array().map(Vec::len), Some(2), "{changes}");
    let listed = run("wirephoto audit list");
    assert!(listed.contains("item_rights_changed") && listed.contains("demo-admin"), "{listed}");

    let tags = run("curl -o preview.jpg");
    assert!(tags.contains("Data Mining"), "{tags}");
    let told = block(PAGE, "curl http").commands();
    let [metadata, newsml, ninjs, search] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(documents(&terminal.run(metadata))[0]["dataMining"], prohibited);
    assert!(terminal.run(newsml).contains("standardversion=\"2.30\""));
    let uri = &documents(&terminal.run(ninjs))[0]["uri"];
    assert!(uri.as_str().is_some_and(|uri| uri.ends_with("/media/image/demo-urtavla")), "{uri}");
    terminal.server.until("search to know", || {
        (documents(&terminal.run(search))[0]["total"] == 1).then_some(())
    });

    terminal.photograph("illustrations/robot.jpg");
    run("echo '{");
    terminal.shows("robot");
    let metadata = terminal.server.bytes("/media/image/robot.metadata.json");
    let metadata: Value = serde_json::from_slice(&metadata).expect("JSON");
    let made = "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia";
    assert_eq!(metadata["digitalSourceType"], made);
}
