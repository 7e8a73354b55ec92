//! Feeds arbitrary bytes to the reader of XMP, as the packet of a file.
//!
//! Nothing may panic, and a caption and rights must be unchanged after they were written and read again.

#![no_main]

mod caption;

use jpeg::rewrite::segment;
use libfuzzer_sys::fuzz_target;

const PACKET_BYTES_MAX: usize = 60_000;

fuzz_target!(|bytes: &[u8]| {
    let packet = bytes.get(..PACKET_BYTES_MAX).unwrap_or(bytes);
    let segments = segment(0xE1, &[b"http://ns.adobe.com/xap/1.0/\0", packet]);
    caption::there_and_back(caption::read_segments(&segments));
});
