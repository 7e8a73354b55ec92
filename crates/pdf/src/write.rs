//! Writes a changed document as bytes.

use std::collections::{BTreeMap, HashMap, HashSet};

use lopdf::xref::XrefType;
use lopdf::{Document, Object, ObjectId, SaveOptions};

use crate::PdfError;

/// Applies `changes`, drops unreferenced objects, and writes the document.
///
/// A file with a cross-reference stream is again written with object streams, so that it does not grow. Fails if
/// lopdf cannot write the result.
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
    let reached = reachable(&document);
    document.objects.retain(|id, _| reached.contains(id));
    renumber(&mut document);
    let options = SaveOptions::builder()
        .use_object_streams(uses_xref_streams)
        .use_xref_streams(uses_xref_streams)
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
    document.trailer.iter_mut().for_each(|(_, value)| update_references(value, &numbers));
    document.max_id = u32::try_from(objects.len()).unwrap_or(u32::MAX);
    for (id, mut object) in objects {
        update_references(&mut object, &numbers);
        document.objects.insert(numbers[&id], object);
    }
}

/// Replaces references with the new numbers. Recurses once per nesting level of an object; the parser allows 100.
fn update_references(object: &mut Object, numbers: &HashMap<ObjectId, ObjectId>) {
    match object {
        Object::Reference(id) => match numbers.get(id) {
            Some(number) => *id = *number,
            None => *object = Object::Null,
        },
        Object::Array(array) => {
            array.iter_mut().for_each(|value| update_references(value, numbers));
        }
        Object::Dictionary(dictionary) => {
            dictionary.iter_mut().for_each(|(_, value)| update_references(value, numbers));
        }
        Object::Stream(stream) => {
            stream.dict.iter_mut().for_each(|(_, value)| update_references(value, numbers));
        }
        Object::Null
        | Object::Boolean(_)
        | Object::Integer(_)
        | Object::Real(_)
        | Object::Name(_)
        | Object::String(..) => {}
    }
}

/// Returns the objects that are reachable from the trailer.
fn reachable(document: &Document) -> HashSet<ObjectId> {
    let mut reached = HashSet::new();
    let mut pending: Vec<&Object> = document.trailer.iter().map(|(_, value)| value).collect();
    while let Some(object) = pending.pop() {
        match object {
            Object::Reference(id) => {
                if let Some(target) = document.objects.get(id)
                    && reached.insert(*id)
                {
                    pending.push(target);
                }
            }
            Object::Array(array) => pending.extend(array),
            Object::Dictionary(dictionary) => pending.extend(dictionary.iter().map(|(_, v)| v)),
            Object::Stream(stream) => pending.extend(stream.dict.iter().map(|(_, value)| value)),
            Object::Null
            | Object::Boolean(_)
            | Object::Integer(_)
            | Object::Real(_)
            | Object::Name(_)
            | Object::String(..) => {}
        }
    }
    reached
}
