//! Writes a changed document as bytes.

use std::collections::{BTreeMap, HashMap};

use lopdf::xref::XrefType;
use lopdf::{Document, Object, ObjectId, SaveOptions};

use crate::PdfError;

/// Applies `changes`, drops unreferenced objects, and writes the document.
///
/// A file whose table of object positions is a compressed stream is again written with such streams, so that it does
/// not grow. Fails if lopdf cannot write the result.
pub(super) fn write(
    mut document: Document,
    changes: BTreeMap<ObjectId, Object>,
) -> Result<Vec<u8>, PdfError> {
    let uses_xref_streams =
        matches!(document.reference_table.cross_reference_type, XrefType::CrossReferenceStream);
    for (id, object) in changes {
        document.max_id = document.max_id.max(id.0);
        document.objects.insert(id, object);
    }
    // These keys belong to the cross-reference data of the old file.
    for key in [
        &b"Prev"[..],
        b"XRefStm",
        b"Size",
        b"Type",
        b"W",
        b"Index",
        b"Filter",
        b"DecodeParms",
        b"Length",
    ] {
        document.trailer.remove(key);
    }
    // After the conversion, some profiles and colour spaces have no reference.
    document.prune_objects();
    renumber(&mut document);
    let options = SaveOptions::builder()
        .use_object_streams(uses_xref_streams)
        .use_xref_streams(uses_xref_streams)
        // The usual level of zlib, from 0 to 9.
        .compression_level(6)
        .build();
    let mut bytes = Vec::new();
    document.save_with_options(&mut bytes, options).map_err(|_| PdfError::Write)?;
    Ok(bytes)
}

/// Renumbers the objects consecutively from 1, because poppler reports a cross-reference table with gaps as
/// damaged. References to missing objects become null.
fn renumber(document: &mut Document) {
    let objects = std::mem::take(&mut document.objects);
    let numbers: HashMap<ObjectId, ObjectId> =
        objects.keys().zip(1..).map(|(id, number)| (*id, (number, 0))).collect();
    document.max_id = u32::try_from(objects.len()).unwrap_or(u32::MAX);
    document.objects = objects.into_iter().map(|(id, object)| (numbers[&id], object)).collect();
    // No unreferenced objects are left, so this visits every object.
    document.traverse_objects(|object| {
        if let Object::Reference(id) = object {
            match numbers.get(id) {
                Some(number) => *id = *number,
                None => *object = Object::Null,
            }
        }
    });
}
