//! Any text is parsed or refused as a media path; a parsed path prints to an equal one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::media_url::MediaPath;

fuzz_target!(|text: &str| {
    if let Ok(path) = MediaPath::parse(text) {
        let printed = path.print();
        assert_eq!(MediaPath::parse(&printed).as_ref(), Ok(&path), "{text:?} prints {printed:?}");
    }
});
