//! Any body of an upload is parsed or refused, however it is split into chunks. Encoded parts are decoded unchanged
//! within their limits, and no file is left behind.
#![no_main]

use std::convert::Infallible;
use std::fs;
use std::path::PathBuf;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use libfuzzer_sys::fuzz_target;
use model::MediaType;
use strum::IntoEnumIterator;
use wirephoto::archive::ingest::{FileName, UploadSpool};
use wirephoto::http::api::ingest::{ItemUpload, read_upload};

/// Maximum bytes of a file; small, so that the fuzzer reaches it.
const FILE_BYTES_MAX: u64 = 1024;
const MULTIPART: &str = "multipart/form-data; boundary=B";
/// Names of parts by their number.
const NAMES: [&str; 8] = [
    "item",
    "NormalHires.jpg",
    "NormalPreview.jpg",
    "NormalThumbnail.jpg",
    "a000_NormalHires.jpg",
    "NormalPreview.mp4",
    "NormalHires.pdf",
    "other.txt",
];

/// Document and files by name.
type Parts = (Vec<u8>, Vec<(String, Vec<u8>)>);

// The first byte selects media type and kind of body, the second the size of the chunks.
fuzz_target!(|data: &[u8]| {
    let Some((&[options, step], rest)) = data.split_first_chunk::<2>() else { return };
    let media_type = MediaType::iter().cycle().nth(usize::from(options >> 2));
    let media_type = media_type.expect("a cycle has no end");
    let (kind, body, wanted) = match options & 3 {
        0 => ("application/json", rest.to_vec(), Some((rest.to_vec(), Vec::new()))),
        1 => {
            let (body, wanted) = build(media_type, rest);
            (MULTIPART, body, wanted)
        }
        _ => (MULTIPART, rest.to_vec(), None),
    };
    let whole = upload(media_type, kind, &body, body.len().max(1));
    let pieces = upload(media_type, kind, &body, 1 + usize::from(step));
    assert_eq!(whole, pieces, "in pieces of {}", 1 + usize::from(step));
    if options & 3 < 2 {
        assert_eq!(whole, wanted);
    }
    let left = fs::read_dir(folder()).expect("a folder").count();
    assert_eq!(left, 0, "files stay behind");
});

/// The result of a body that arrives in chunks of `step` bytes.
fn upload(media_type: MediaType, kind: &str, body: &[u8], step: usize) -> Option<Parts> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let pieces: Vec<_> =
        body.chunks(step).map(|piece| Ok::<_, Infallible>(piece.to_vec())).collect();
    let request = Request::put("/").header(header::CONTENT_TYPE, kind);
    let request = request.body(Body::from_stream(futures_util::stream::iter(pieces)));
    let spool = UploadSpool::open(&folder(), FILE_BYTES_MAX).expect("a folder");
    match runtime.block_on(read_upload(&spool, media_type, request.expect("a request"))) {
        Ok(upload) => Some(contents(media_type, &upload)),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

fn contents(media_type: MediaType, upload: &ItemUpload) -> Parts {
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for (name, file) in &upload.files {
        assert!(FileName::parse(media_type, name).is_ok(), "{name:?}");
        assert!(files.iter().all(|(known, _)| known != name), "{name:?} twice");
        let bytes = fs::read(file.path()).expect("a file");
        let length = u64::try_from(bytes.len()).expect("64 bits");
        assert!(length == file.bytes() && length <= FILE_BYTES_MAX, "{name:?}");
        files.push((name.clone(), bytes));
    }
    (upload.document.clone(), files)
}

/// A body of parts, and its expected result; `None` if it must be refused.
///
/// Each part begins with a byte for its name and ends at a byte 0xFE.
fn build(media_type: MediaType, data: &[u8]) -> (Vec<u8>, Option<Parts>) {
    let (mut body, mut document, mut files) = (Vec::new(), None, Vec::new());
    let mut is_good = true;
    for part in data.split(|byte| *byte == 0xFE).take(12) {
        let Some((&head, content)) = part.split_first() else { continue };
        if content.windows(5).any(|window| window == b"\r\n--B") || content.starts_with(b"--B") {
            continue;
        }
        let name = NAMES[usize::from(head) % NAMES.len()];
        // A part is named by its own name or by that of its file.
        let disposition = match head >> 3 & 3 {
            0 if name != "item" => format!("name=\"file\"; filename=\"{name}\""),
            1 => format!("name={name}"),
            _ => format!("name=\"{name}\""),
        };
        body.extend_from_slice(b"--B\r\nContent-Disposition: form-data; ");
        body.extend_from_slice(disposition.as_bytes());
        body.extend_from_slice(b"\r\n\r\n");
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
        let fits = u64::try_from(content.len()).is_ok_and(|length| length <= FILE_BYTES_MAX);
        if name == "item" {
            is_good &= document.replace(content.to_vec()).is_none();
        } else {
            let is_new = files.iter().all(|(known, _)| known != name);
            is_good &= fits && is_new && FileName::parse(media_type, name).is_ok();
            files.push((name.to_owned(), content.to_vec()));
        }
    }
    body.extend_from_slice(b"--B--\r\n");
    (body, document.filter(|_| is_good).map(|document| (document, files)))
}

fn folder() -> PathBuf {
    std::env::temp_dir().join(format!("wirephoto-fuzz-uploads-{}", std::process::id()))
}
