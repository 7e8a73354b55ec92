//! Any query string and any body of an API request are parsed or refused; an error names the wrong part.
#![no_main]

use api::organization::UserUpdate;
use api::{JsonBody, JsonReader, RequestBody};
use libfuzzer_sys::fuzz_target;
use wirephoto::http::protocol::request::QueryParameters;

fuzz_target!(|data: &[u8]| {
    let read = <JsonBody<UserUpdate> as RequestBody>::read(&JsonReader::default(), data);
    if let Err(faults) = read {
        assert!(!faults.is_empty() && faults.iter().all(|fault| !fault.message.is_empty()));
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(query) = QueryParameters::parse(text) else { return };
    for name in ["p", "agr", "size", "q"] {
        let found = [
            query.text(name).err(),
            query.list(name).err(),
            query.integer(name, 0..=10).err(),
            query.integers(name).err(),
        ];
        for error in found.into_iter().flatten() {
            assert!(error.details().iter().all(|detail| detail.location == "query"), "{error}");
        }
    }
});
