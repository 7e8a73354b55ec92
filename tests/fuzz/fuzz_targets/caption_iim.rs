//! Feeds arbitrary bytes to the reader of IIM, as the resource of a Photoshop segment.
//!
//! Nothing may panic, and a caption and rights must be unchanged after they were written and read again.

#![no_main]

mod caption;

use jpeg::rewrite::segment;
use libfuzzer_sys::fuzz_target;

const IIM_BYTES_MAX: usize = 60_000;

fuzz_target!(|bytes: &[u8]| {
    let iim = bytes.get(..IIM_BYTES_MAX).unwrap_or(bytes);
    let length = u32::try_from(iim.len()).expect("cut above").to_be_bytes();
    let resource = segment(0xED, &[b"Photoshop 3.0\x008BIM\x04\x04\0\0", &length, iim]);
    caption::there_and_back(caption::read_segments(&resource));
});
