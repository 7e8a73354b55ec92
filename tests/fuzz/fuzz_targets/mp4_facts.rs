//! The facts of any file are read or refused; the reader stays within its limits and reads little.
#![no_main]

use std::io::Cursor;

use formats::mp4::{VideoLimits, facts};
use libfuzzer_sys::fuzz_target;

// The first byte selects whether the file is longer or shorter than its stated length.
fuzz_target!(|data: &[u8]| {
    let Some((&first, data)) = data.split_first() else { return };
    let length = u64::try_from(data.len()).expect("length fits");
    let size_bytes = match first {
        0 => length + 1000,
        1 => length / 2,
        2 => u64::MAX,
        _ => length,
    };
    let limits = VideoLimits { boxes: 10_000, ..VideoLimits::default() };
    match facts(&mut Cursor::new(data), size_bytes, &limits) {
        Ok(facts) => {
            assert!((1..=limits.side_px).contains(&facts.width), "{facts:?}");
            assert!((1..=limits.side_px).contains(&facts.height), "{facts:?}");
            assert!(facts.duration_ms <= limits.duration_ms, "{facts:?}");
            // The same bytes give the same facts.
            let again = facts_of(data, size_bytes, &limits);
            assert_eq!(again, Some(facts));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

fn facts_of(
    data: &[u8],
    size_bytes: u64,
    limits: &VideoLimits,
) -> Option<formats::mp4::VideoFacts> {
    facts(&mut Cursor::new(data), size_bytes, limits).ok()
}
