//! An item with its files, from a folder or an upload.

use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{
    FileName, Ingest, IngestError, IngestResult, IngestedItem, error::refusal, files::DOCUMENT,
    source_rights::apply_rights,
};
use metadata::RightsMetadata;
use model::item::{Document, DocumentError, has_picture};
use model::{ItemKey, RenditionName};

/// A document with the files of its item.
#[derive(Clone, Debug)]
pub struct ItemBundle {
    pub key: ItemKey,
    /// The text of the document; its `uri` may be missing.
    pub document: Vec<u8>,
    /// The files; names are unique.
    pub files: Vec<BundleFile>,
    /// The source's statement about the rights in the files.
    pub rights: RightsMetadata,
}

/// A file of an item.
#[derive(Clone, Debug)]
pub struct BundleFile {
    /// The name, which identifies the rendition, such as `NormalHires.jpg`.
    pub name: String,
    /// The path of the file on disk.
    pub path: PathBuf,
}

impl Ingest {
    /// Ingests an item with its files; `now` is its time of arrival.
    ///
    /// An item with pictures may arrive as a document alone, which then describes its own renditions. Fails with
    /// [`IngestError::Refused`], which lists either the problems of names and document, or the problems of the
    /// files.
    pub fn ingest_bundle(
        &self,
        bundle: &ItemBundle,
        now: Timestamp,
    ) -> IngestResult<IngestedItem> {
        // A document alone stores no original.
        if bundle.files.is_empty() {
            return self.store_bundle(bundle, now);
        }
        self.storing(|_| true, |ingest| ingest.store_bundle(bundle, now))
    }

    pub(super) fn store_bundle(
        &self,
        bundle: &ItemBundle,
        now: Timestamp,
    ) -> IngestResult<IngestedItem> {
        let key = &bundle.key;
        let mut refusals = Vec::new();
        let mut files = Vec::new();
        for file in &bundle.files {
            match FileName::parse(key.media_type, &file.name) {
                Ok(name) => files.push((name, file.path.clone())),
                Err(error) => refusals.push(refusal(&file.name, error)),
            }
        }
        let document = match read_document(key, &bundle.document) {
            Ok(document) => document,
            Err(error) => {
                // The remaining checks compare the files with the document, so they cannot run without it.
                refusals.insert(0, refusal(DOCUMENT, error.into()));
                return Err(IngestError::Refused(refusals));
            }
        };
        for (name, _) in &files {
            let Some(association) = &name.association else { continue };
            if document.association(association).is_none() {
                let association = association.to_string();
                let why =
                    format!("belongs to {association:?}, which is not among the associations");
                refusals.push(refusal(&name.to_string(), IngestError::Name(why)));
            }
        }
        if !refusals.is_empty() {
            return Err(IngestError::Refused(refusals));
        }
        // A picture of an associated object is not a picture of the item itself.
        let names = files.iter().map(|(name, _)| name);
        let own: Vec<&FileName> = names.filter(|name| name.association.is_none()).collect();
        let has_hires = if own.is_empty() {
            // If there are only files of associated objects, the item's existing picture remains.
            files.is_empty() || self.has_original(key)?
        } else {
            own.iter().any(|name| name.name == RenditionName::NORMAL_HIRES)
        };
        if has_picture(key.media_type) && !has_hires {
            return Err(IngestError::NoPicture);
        }
        self.ingest_files(bundle, document, &files, now)
    }

    fn ingest_files(
        &self,
        bundle: &ItemBundle,
        document: Document,
        files: &[(FileName, PathBuf)],
        now: Timestamp,
    ) -> IngestResult<IngestedItem> {
        let mut assets = Vec::new();
        let mut warnings = Vec::new();
        let mut refusals = Vec::new();
        for (name, path) in files {
            match self.ingest_file(name, path) {
                Ok((asset, file_warnings)) => {
                    assets.push(asset);
                    warnings.extend(
                        file_warnings.into_iter().map(|warning| format!("{name} {warning}")),
                    );
                }
                Err(error) => refusals.push(refusal(&name.to_string(), error)),
            }
        }
        if !refusals.is_empty() {
            return Err(IngestError::Refused(refusals));
        }
        // A document alone leaves the item's files unchanged, including the generated files.
        if !assets.is_empty() {
            warnings.extend(self.create_missing(bundle.key.media_type, &mut assets, files)?);
            apply_rights(&mut assets, &bundle.rights);
        }
        let assets = Some(assets).filter(|assets| !assets.is_empty());
        let item = self.write(&bundle.key, document, assets, now)?;
        Ok(IngestedItem { warnings, ..item })
    }
}

/// Parses the document of the item `key`.
fn read_document(key: &ItemKey, bytes: &[u8]) -> Result<Document, DocumentError> {
    Document::from_fields(key, read_fields(bytes)?)
}

/// Parses the properties of a document. A leading byte order mark is ignored.
pub(super) fn read_fields(bytes: &[u8]) -> Result<Map<String, Value>, DocumentError> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let text =
        std::str::from_utf8(bytes).map_err(|cause| not_json(&format!("not UTF-8: {cause}")))?;
    if let Some(offset) = memchr::memchr(0, bytes) {
        return Err(not_json(&format!("a NUL at byte {}", offset + 1)));
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(not_json("another kind of value")),
        Err(cause) => Err(not_json(&cause.to_string())),
    }
}

fn not_json(why: &str) -> DocumentError {
    DocumentError::NotJson(why.to_owned())
}
