//! Any bytes as a PDF: facts and the grey version finish within tight limits, and the output can be read and
//! converted to grey again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pdf::{PdfLimits, facts, grey};

const LIMITS: PdfLimits = PdfLimits {
    bytes: 1 << 20,
    objects: 2_000,
    depth: 12,
    decoded_bytes: 4 << 20,
    operators: 20_000,
    pixels: 1 << 20,
    image_pixels: 1 << 18,
};

fuzz_target!(|data: &[u8]| {
    let _ = facts(data, &LIMITS);
    if let Ok(result) = grey(data, &LIMITS) {
        let _ = grey(&result, &LIMITS);
    }
});
