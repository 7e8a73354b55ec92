//! Header parsers of conditional and range requests: nothing panics, no range leaves its bounds.
#![no_main]

use axum::http::{HeaderMap, HeaderValue, Method, header};
use libfuzzer_sys::fuzz_target;
use wirephoto::http::protocol::{
    conditional::{ETag, Validators, evaluate},
    range::{MultipartByteranges, RangeDecision, ranges},
};

// `length` uses eight bytes of `data`; the rest, split at zero bytes, fills the fields in turn.
fuzz_target!(|data: &[u8]| {
    let Some((length, fields)) = data.split_first_chunk::<8>() else { return };
    let length = u64::from_le_bytes(*length);
    let names = [
        header::RANGE,
        header::IF_RANGE,
        header::IF_MATCH,
        header::IF_NONE_MATCH,
        header::IF_MODIFIED_SINCE,
        header::IF_UNMODIFIED_SINCE,
    ];
    let mut headers = HeaderMap::new();
    for (name, value) in names.iter().cycle().zip(fields.split(|&byte| byte == 0)).take(24) {
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.append(name.clone(), value);
        }
    }
    let etag = ETag::new("abc").expect("legal tag");
    let validators = Validators { etag, last_modified: Some(1_795_240_800) };
    for method in [Method::GET, Method::HEAD, Method::PUT] {
        let _precondition = evaluate(&method, &headers, &validators);
    }
    let pieces = match ranges(&Method::GET, &headers, &validators, length) {
        RangeDecision::Full | RangeDecision::Unsatisfiable => return,
        RangeDecision::Single(piece) => vec![piece],
        RangeDecision::Multi(pieces) => pieces,
    };
    for piece in &pieces {
        assert!(piece.first() <= piece.last() && piece.last() < length);
    }
    let jpeg = HeaderValue::from_static("image/jpeg");
    let framed = MultipartByteranges::new(&pieces, &jpeg, length, &validators.etag);
    let bytes: u64 = pieces.iter().map(|piece| piece.len()).sum();
    assert!(framed.length > bytes);
});
