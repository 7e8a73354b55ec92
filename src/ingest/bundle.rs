//! An item with its files, as a folder or an upload brings it.

use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Ingest, IngestError, Refusal, Taken, files::DOCUMENT, photograph};
use crate::item::{Asset, Document, DocumentError, has_picture};
use crate::types::{ItemKey, MediaType, RenditionName, Usage, Variant};

/// A document with the files of its item.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The item.
    pub key: ItemKey,
    /// The text of the document; its `uri` may be missing.
    pub document: Vec<u8>,
    /// The files, each name once.
    pub files: Vec<BundleFile>,
}

/// A file of an item.
#[derive(Clone, Debug)]
pub struct BundleFile {
    /// What it is, `NormalHires.jpg`.
    pub name: String,
    /// Where it lies.
    pub path: PathBuf,
}

/// An error with the file that it belongs to.
pub(super) fn refused(file: &str, error: IngestError) -> IngestError {
    IngestError::Refused(vec![refusal(file, error)])
}

fn refusal(file: &str, error: IngestError) -> Refusal {
    Refusal { file: file.to_owned(), error }
}

impl Ingest {
    /// Takes an item in with its files; `now` is when it comes in.
    ///
    /// An item of pictures may come as a document alone, whose own renditions are then told.
    /// Fails with [`IngestError::Refused`], which lists what is wrong with names and document, or
    /// else with the files.
    pub fn take_bundle(&self, bundle: &Bundle, now: Timestamp) -> Result<Taken, IngestError> {
        let key = &bundle.key;
        let mut refusals = Vec::new();
        let mut pictures = Vec::new();
        for file in &bundle.files {
            match name_of(key.media_type, &file.name) {
                Ok(name) => pictures.push((name, file)),
                Err(error) => refusals.push(refusal(&file.name, error)),
            }
        }
        let document = match read_document(key, &bundle.document) {
            Ok(document) if refusals.is_empty() => document,
            Ok(_) => return Err(IngestError::Refused(refusals)),
            Err(error) => {
                refusals.insert(0, refusal(DOCUMENT, error.into()));
                return Err(IngestError::Refused(refusals));
            }
        };
        let is_hires = |(name, _): &(RenditionName, _)| *name == RenditionName::NORMAL_HIRES;
        if !pictures.is_empty() && !pictures.iter().any(is_hires) {
            return Err(IngestError::NoPicture);
        }
        let (mut assets, mut warnings) = (Vec::new(), Vec::new());
        for (name, file) in pictures {
            match self.take_picture(name, file) {
                Ok((asset, odd)) => {
                    assets.push(asset);
                    warnings.extend(odd);
                }
                Err(error) => refusals.push(refusal(&file.name, error)),
            }
        }
        if !refusals.is_empty() {
            return Err(IngestError::Refused(refusals));
        }
        let assets = Some(assets).filter(|assets| !assets.is_empty());
        self.write(key, document, assets, now).map(|taken| Taken { warnings, ..taken })
    }

    fn take_picture(
        &self,
        name: RenditionName,
        file: &BundleFile,
    ) -> Result<(Asset, Vec<String>), IngestError> {
        let picture = photograph::read(&file.path, &self.limits)?;
        self.store(&picture, name)
    }
}

/// Reads the document of the item `key`.
fn read_document(key: &ItemKey, bytes: &[u8]) -> Result<Document, DocumentError> {
    Document::from_fields(key, read_fields(bytes)?)
}

/// The properties of a document. A byte order mark in front is no part of it.
pub(super) fn read_fields(bytes: &[u8]) -> Result<Map<String, Value>, DocumentError> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let wrong = |why: &str| DocumentError::NotJson(why.to_owned());
    let text =
        std::str::from_utf8(bytes).map_err(|cause| wrong(&format!("not UTF-8: {cause}")))?;
    if let Some(at) = memchr::memchr(0, bytes) {
        return Err(wrong(&format!("a NUL at byte {}", at + 1)));
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(wrong("another kind of value")),
        Err(cause) => Err(wrong(&cause.to_string())),
    }
}

/// The rendition that the file `name` of an item of `media_type` is.
///
/// A photograph's Hires, Preview and Thumbnail may come in as files; the others are made. Fails with
/// what is taken.
pub fn name_of(media_type: MediaType, name: &str) -> Result<RenditionName, IngestError> {
    if !has_picture(media_type) {
        return Err(IngestError::Name(format!(
            "is a file of an item of media type {media_type}, which are taken in as documents \
             alone so far; expected item.json and nothing else"
        )));
    }
    let known = name.strip_suffix(".jpg").and_then(|stem| RenditionName::parse(stem).ok());
    known.filter(|known| file_name(*known) == name && is_taken(*known)).ok_or_else(|| {
        IngestError::Name(
            "is not a file that is taken in; expected item.json, NormalHires.jpg, \
             NormalPreview.jpg or NormalThumbnail.jpg"
                .to_owned(),
        )
    })
}

fn is_taken(name: RenditionName) -> bool {
    let used = matches!(name.usage, Usage::Hires | Usage::Preview | Usage::Thumbnail);
    name.variant == Variant::Normal && used
}

/// The name of a rendition's file, `NormalHires.jpg`.
fn file_name(name: RenditionName) -> String {
    format!("{name}.jpg")
}
