//! Any text is parsed or refused as a query; a parsed query prints to an equal one, and the position of an error is
//! within the text.
#![no_main]

use jiff::tz::TimeZone;
use libfuzzer_sys::fuzz_target;
use query::limits::QUERY_TEXT_BYTES_MAX;
use query::parse;

fuzz_target!(|text: &str| {
    match parse(text, &TimeZone::UTC) {
        Ok(query) => {
            let printed = query.to_string();
            // Field names are repeated for each word, which can make the printed query too long.
            if printed.len() <= QUERY_TEXT_BYTES_MAX {
                let again = parse(&printed, &TimeZone::UTC);
                assert_eq!(again.as_ref(), Ok(&query), "{text:?} prints {printed:?}");
            }
        }
        Err(error) => {
            let chars = text.chars().count();
            assert!((1..=chars + 1).contains(&error.position), "{text:?}: {error}");
        }
    }
});
