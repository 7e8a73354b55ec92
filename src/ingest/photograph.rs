//! A photograph on its way in: read, checked, measured, stored.

use std::path::Path;

use jiff::tz::TimeZone;

use super::{IngestError, IngestLimits, files};
use crate::compute;
use crate::item::{Document, DocumentError, Picture};
use crate::media::caption::{self, Caption};
use crate::media::jpeg::header::{Header, Process};
use crate::media::original::{NewOriginal, Originals};
use crate::media::raster::{
    self, Colour, Job, Marker, Orientation, Output, RenderLimits, Sampling, Step,
};
use crate::types::{Hash, ItemId, ItemKey, RenditionName};

/// Long side to which a photograph is decoded to see whether it can be, pixels.
const CHECK_PX: u32 = 64;

/// A photograph that was read and found good.
pub(super) struct Photograph {
    bytes: Vec<u8>,
    header: Header,
    caption: Caption,
    orientation: u8,
    pub(super) warnings: Vec<String>,
}

/// Reads the photograph at `path` and checks its headers.
pub(super) fn read(path: &Path, limits: &IngestLimits) -> Result<Photograph, IngestError> {
    parse(files::read(path, limits.file_bytes_max, "media.file_bytes_max")?, limits)
}

/// Checks the headers of a photograph that was read.
pub(super) fn parse(bytes: Vec<u8>, limits: &IngestLimits) -> Result<Photograph, IngestError> {
    let header = Header::parse(&bytes, &limits.header)
        .map_err(|cause| IngestError::Picture(cause.to_string()))?;
    let size = header.size;
    if size.pixels() > limits.pixels_max {
        let (found, limit) = (size.pixels(), limits.pixels_max);
        let setting = "media.megapixels_max";
        return Err(IngestError::TooLarge { found, limit, unit: "pixels", setting });
    }
    let reading = caption::read(&header, &bytes);
    Ok(Photograph {
        caption: reading.caption,
        orientation: reading.orientation,
        warnings: reading.warnings,
        bytes,
        header,
    })
}

/// An id made from a file's content.
pub(super) fn derived_id(content: Hash) -> ItemId {
    let hash = content.to_string();
    ItemId::parse(&format!("p{}", &hash[..20])).expect("a letter and hex digits are an id")
}

impl Photograph {
    /// Decodes the picture at a fraction of its size; gives what the decoder finds odd.
    fn check_decodes(
        &self,
        limits: &IngestLimits,
        marker: &Marker,
    ) -> Result<Option<String>, IngestError> {
        let source = raster::Source {
            jpeg: &self.bytes,
            orientation: Orientation::of_tag(1),
            icc: None,
            adobe: self.header.adobe_transform.is_some(),
            stored: self.header.size,
            shows: self.header.size,
            bands: None,
        };
        let output = Output { quality: 50, sampling: Sampling::S420, colour: Colour::Keep };
        let limits = RenderLimits { pixels_max: limits.pixels_max };
        let steps = [Step::Fit { long_px: CHECK_PX }];
        let job = Job { source, steps: &steps, output, limits };
        let checked = raster::render(&job, marker, &|_| true);
        let unusable = |cause| IngestError::Picture(format!("cannot be decoded: {cause}"));
        checked.map(|rendered| rendered.warning).map_err(unusable)
    }

    /// An id made from the picture's bytes, for a file whose name is none.
    pub(super) fn derived_id(&self) -> ItemId {
        derived_id(Hash::of(&self.bytes))
    }

    /// The document that the embedded caption makes.
    ///
    /// A property that breaks the schema is left out with a warning: a photograph is not refused
    /// for a slip in its caption.
    pub(super) fn document(
        &self,
        key: &ItemKey,
        zone: &TimeZone,
    ) -> Result<(Document, Vec<String>), DocumentError> {
        let mut fields = self.caption.to_fields(zone);
        match Document::from_fields(key, fields.clone()) {
            Ok(document) => Ok((document, Vec::new())),
            Err(DocumentError::Schema(problems)) => {
                let mut warnings = Vec::new();
                for problem in problems {
                    let name = problem.path.trim_start_matches('/').split('/').next();
                    if let Some(name) = name.filter(|name| fields.shift_remove(*name).is_some()) {
                        warnings.push(format!("embedded {name} is left out: {}", problem.message));
                    }
                }
                Document::from_fields(key, fields).map(|document| (document, warnings))
            }
            Err(other) => Err(other),
        }
    }

    /// Stores the bytes with what is derived from them, sees that the picture can be decoded, and
    /// gives the facts about it and what is odd.
    pub(super) fn store(
        &self,
        originals: &Originals,
        name: RenditionName,
        (limits, marker): (&IngestLimits, &Marker),
    ) -> Result<(Picture, Vec<String>), IngestError> {
        let new = NewOriginal { bytes: &self.bytes, header: &self.header };
        let stored = originals.store_new(&new, &compute::spread)?;
        let damage = if stored.decoded {
            stored.warning
        } else {
            // The index has shown the codes to be sound; a decoder may still not like the kind.
            self.check_decodes(limits, marker)?
        };
        let mut odd = self.warnings.clone();
        odd.extend(damage.map(|damage| format!("picture data is damaged: {damage}")));
        let asset = Picture {
            name,
            blob: stored.hash,
            length: self.bytes.len() as u64,
            stored: self.header.size,
            orientation: self.orientation,
            progressive: self.header.process == Process::Progressive,
            components: u8::try_from(self.header.components.len()).unwrap_or(u8::MAX),
        };
        Ok((asset, odd))
    }
}
