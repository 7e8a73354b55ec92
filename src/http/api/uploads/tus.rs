//! The headers of the protocol tus 1.0.0 for resumable uploads (<https://tus.io/protocols/resumable-upload>).

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use base64::{Engine, engine::general_purpose::STANDARD};

use super::checksum::ALGORITHM_NAMES;
use crate::archive::ingest::{NewUpload, UploadLimits};
use crate::http::api::response;
use crate::http::protocol::conditional;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::database::PendingUpload;

/// Bytes of the header with the metadata of an upload.
const UPLOAD_METADATA_BYTES_MAX: usize = 4096;
/// Characters of the name of an uploaded file; file systems allow 255 bytes.
const UPLOAD_NAME_CHARS_MAX: usize = 255;
/// Characters of the text by which a client recognizes its file again.
const UPLOAD_FINGERPRINT_CHARS_MAX: usize = 400;
/// The only version of the protocol.
const VERSION: &str = "1.0.0";
/// The extensions that the service supports.
const EXTENSIONS: &str = "creation,expiration,checksum,termination";
/// The type of a body with bytes of an upload.
const BYTES_TYPE: &str = "application/offset+octet-stream";

const TUS_RESUMABLE: HeaderName = HeaderName::from_static("tus-resumable");
const TUS_VERSION: HeaderName = HeaderName::from_static("tus-version");
const TUS_EXTENSION: HeaderName = HeaderName::from_static("tus-extension");
const TUS_MAX_SIZE: HeaderName = HeaderName::from_static("tus-max-size");
const TUS_CHECKSUM_ALGORITHM: HeaderName = HeaderName::from_static("tus-checksum-algorithm");
const UPLOAD_LENGTH: HeaderName = HeaderName::from_static("upload-length");
const UPLOAD_OFFSET: HeaderName = HeaderName::from_static("upload-offset");
const UPLOAD_METADATA: HeaderName = HeaderName::from_static("upload-metadata");
const UPLOAD_EXPIRES: HeaderName = HeaderName::from_static("upload-expires");
const UPLOAD_CHECKSUM: HeaderName = HeaderName::from_static("upload-checksum");

/// Checks the protocol version of the client. A request without the header is accepted.
pub(super) fn check_version(headers: &HeaderMap) -> Result<()> {
    match headers.get(&TUS_RESUMABLE) {
        Some(version) if version != VERSION => {
            let message = format!("Tus-Resumable is not {VERSION}");
            Err(Error::new(ErrorKind::Stale, message).with_code("tus_version"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Adds the version of the protocol to a response.
pub(super) fn with_version(mut response: Response) -> Response {
    let version = HeaderValue::from_static(VERSION);
    response.headers_mut().insert(TUS_RESUMABLE, version.clone());
    // A client with an unsupported version learns the supported one.
    if response.status() == StatusCode::PRECONDITION_FAILED {
        response.headers_mut().insert(TUS_VERSION, version);
    }
    response
}

/// Responds with the supported version, extensions, checksums and file size.
pub(super) fn capabilities(limits: UploadLimits) -> Response {
    let mut response = with_version(response::empty(StatusCode::NO_CONTENT));
    let headers = response.headers_mut();
    headers.insert(TUS_VERSION, HeaderValue::from_static(VERSION));
    headers.insert(TUS_EXTENSION, HeaderValue::from_static(EXTENSIONS));
    headers.insert(TUS_MAX_SIZE, HeaderValue::from(limits.file_bytes_max));
    headers.insert(TUS_CHECKSUM_ALGORITHM, HeaderValue::from_static(ALGORITHM_NAMES));
    response
}

/// Adds the progress of an upload to a response.
pub(super) fn with_progress(mut response: Response, upload: &PendingUpload) -> Response {
    let headers = response.headers_mut();
    headers.insert(UPLOAD_OFFSET, HeaderValue::from(upload.received));
    headers.insert(UPLOAD_LENGTH, HeaderValue::from(upload.length));
    let expires = u64::try_from(upload.expires.as_second()).unwrap_or_default();
    headers.insert(UPLOAD_EXPIRES, conditional::print_date(expires));
    with_version(response)
}

/// Parses the headers that declare a new upload.
pub(super) fn parse_new(headers: &HeaderMap) -> Result<NewUpload> {
    let length = integer(headers, &UPLOAD_LENGTH, "Upload-Length")?;
    if length == 0 {
        let message = "Upload-Length is 0, expected at least 1";
        return Err(Error::invalid("headers", "Upload-Length", "minimum", message));
    }
    let metadata = text(headers, &UPLOAD_METADATA, "Upload-Metadata")?;
    if metadata.len() > UPLOAD_METADATA_BYTES_MAX {
        let message = format!("Upload-Metadata has more than {UPLOAD_METADATA_BYTES_MAX} bytes");
        return Err(Error::invalid("headers", "Upload-Metadata", "maximum", message));
    }
    let file_name = metadata_value(metadata, "filename")?.unwrap_or_default();
    let fingerprint = metadata_value(metadata, "fingerprint")?;
    let file_name = clean_name(&file_name);
    if file_name.is_empty() {
        return Err(invalid_metadata("required", "Upload-Metadata has no filename"));
    }
    if file_name.chars().count() > UPLOAD_NAME_CHARS_MAX {
        return Err(invalid_metadata("maximum", "the filename of Upload-Metadata is too long"));
    }
    let longest = UPLOAD_FINGERPRINT_CHARS_MAX;
    if fingerprint.as_ref().is_some_and(|text| text.chars().count() > longest) {
        return Err(invalid_metadata("maximum", "the fingerprint of Upload-Metadata is too long"));
    }
    Ok(NewUpload { file_name, fingerprint, length })
}

fn invalid_metadata(rule: &str, message: &str) -> Error {
    Error::invalid("headers", "Upload-Metadata", rule, message)
}

/// Returns the last part of a name that may be a path, without control characters.
fn clean_name(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    name.chars().filter(|c| !c.is_control()).collect::<String>().trim().to_owned()
}

/// Reads a value of `Upload-Metadata`: keys with values in base64, separated by commas.
fn metadata_value(metadata: &str, name: &str) -> Result<Option<String>> {
    let pairs = metadata.split(',').map(str::trim);
    let mut pairs = pairs.map(|pair| pair.split_once(' ').unwrap_or((pair, "")));
    let Some((_, encoded)) = pairs.find(|(key, _)| *key == name) else { return Ok(None) };
    let decoded =
        STANDARD.decode(encoded.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.map(Some).ok_or_else(|| {
        let message = format!("{name} of Upload-Metadata is not UTF-8 in base64");
        Error::invalid("headers", "Upload-Metadata", "format", message)
    })
}

/// Reads the offset in the upload at which the bytes of a request begin.
pub(super) fn offset(headers: &HeaderMap) -> Result<u64> {
    integer(headers, &UPLOAD_OFFSET, "Upload-Offset")
}

/// Reads the declared checksum of a request's bytes, if there is one.
pub(super) fn checksum(headers: &HeaderMap) -> Result<Option<&str>> {
    let present = headers.contains_key(&UPLOAD_CHECKSUM);
    present.then(|| text(headers, &UPLOAD_CHECKSUM, "Upload-Checksum")).transpose()
}

/// Returns whether the body of a request is declared as bytes of an upload.
pub(super) fn has_bytes_type(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(BYTES_TYPE))
}

fn integer(headers: &HeaderMap, header: &HeaderName, name: &str) -> Result<u64> {
    let text = headers.get(header).and_then(|value| value.to_str().ok());
    let Some(text) = text else {
        let message = format!("{name} is missing");
        return Err(Error::invalid("headers", name, "required", message));
    };
    text.parse().map_err(|_| {
        let message = format!("{name} is not a number of bytes");
        Error::invalid("headers", name, "type", message)
    })
}

fn text<'a>(headers: &'a HeaderMap, header: &HeaderName, name: &str) -> Result<&'a str> {
    let text = headers.get(header).map(|value| value.to_str()).transpose();
    text.map(Option::unwrap_or_default).map_err(|_| {
        let message = format!("{name} is not ASCII");
        Error::invalid("headers", name, "format", message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::error_response;

    fn new_upload(length: &'static str, metadata: &'static str) -> Result<NewUpload> {
        let mut headers = HeaderMap::new();
        headers.insert(UPLOAD_LENGTH, HeaderValue::from_static(length));
        headers.insert(UPLOAD_METADATA, HeaderValue::from_static(metadata));
        parse_new(&headers)
    }

    #[test]
    fn ok_an_upload_is_declared_with_length_and_name() {
        let check = |metadata, file_name: &str, fingerprint: Option<&str>| {
            let expected = NewUpload {
                file_name: file_name.to_owned(),
                fingerprint: fingerprint.map(str::to_owned),
                length: 5,
            };
            assert_eq!(new_upload("5", metadata).expect("valid"), expected);
        };
        check("filename YS5qcGc=", "a.jpg", None);
        check("is_draft, filename YS5qcGc=,fingerprint eA==", "a.jpg", Some("x"));
        // `C:\tmp\å.jpg` with a bell in it.
        check("filename QzpcdG1wXAfDpS5qcGc=", "å.jpg", None);
    }

    #[test]
    fn err_a_declaration_is_refused_with_the_header() {
        let check = |length, metadata, header: &str, rule: &str| {
            let error = new_upload(length, metadata).expect_err("refused");
            let detail = &error.details()[0];
            assert_eq!(detail.path, header, "{length} {metadata}");
            assert!(detail.error_code.starts_with(rule), "{}", detail.error_code);
        };
        let name = "filename YS5qcGc=";
        check("", name, "Upload-Length", "type");
        check("-1", name, "Upload-Length", "type");
        check("0", name, "Upload-Length", "minimum");
        check("5", "", "Upload-Metadata", "required");
        check("5", "filename", "Upload-Metadata", "required");
        check("5", "filename ?", "Upload-Metadata", "format");
        check("5", "filename /w==", "Upload-Metadata", "format");
    }

    #[test]
    fn the_version_is_checked_and_announced() {
        let mut headers = HeaderMap::new();
        assert!(check_version(&headers).is_ok());
        headers.insert(TUS_RESUMABLE, HeaderValue::from_static("1.0.0"));
        assert!(check_version(&headers).is_ok());
        headers.insert(TUS_RESUMABLE, HeaderValue::from_static("0.2.2"));
        let error = check_version(&headers).expect_err("refused");
        let response = with_version(error_response::build(&error));
        assert_eq!(response.status(), StatusCode::PRECONDITION_FAILED);
        assert_eq!(response.headers()[TUS_VERSION], "1.0.0");
    }
}
