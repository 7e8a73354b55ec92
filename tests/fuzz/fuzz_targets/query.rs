//! Any text is parsed or refused as a query; what is parsed prints to an equal query, and what is
//! wrong with a text lies within it.
#![no_main]

use jiff::tz::TimeZone;
use libfuzzer_sys::fuzz_target;
use query::limits::QUERY_TEXT_BYTES_MAX;
use query::parse;

fuzz_target!(|text: &str| {
    match parse(text, &TimeZone::UTC) {
        Ok(query) => {
            let printed = query.to_string();
            // Names of fields are repeated for each word, which can make it too long.
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
