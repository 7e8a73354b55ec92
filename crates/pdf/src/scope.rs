//! The state while one document is processed: objects, budget, and cached colour spaces.

use std::collections::HashMap;
use std::rc::Rc;

use lopdf::{Document, Object, ObjectId, Stream};

use crate::budget::WorkBudget;
use crate::filter::{DecodedStream, decode};
use crate::number::resolve;
use crate::space::PdfColourSpace;
use crate::{PdfError, PdfLimits};

/// A document, which is read-only, with the state while it is processed.
pub(super) struct DocumentScope<'a> {
    pub(super) document: &'a Document,
    pub(super) budget: WorkBudget,
    /// Colour spaces by object id, so that each profile is parsed once.
    pub(super) spaces: HashMap<ObjectId, Rc<PdfColourSpace>>,
}

impl<'a> DocumentScope<'a> {
    /// Begins to process a document, with the whole budget.
    pub(super) fn new(document: &'a Document, limits: &PdfLimits) -> DocumentScope<'a> {
        DocumentScope { document, budget: WorkBudget::new(limits), spaces: HashMap::new() }
    }

    /// Returns the data of a stream after its general-purpose filters.
    pub(super) fn data(&mut self, stream: &Stream) -> Result<Vec<u8>, PdfError> {
        Ok(self.decoded(stream)?.bytes)
    }

    /// Joins the data of content streams. A token never continues in the next stream (ISO 32000-1 §7.8.2).
    pub(super) fn joined(&mut self, parts: &[Object]) -> Result<Vec<u8>, PdfError> {
        let mut bytes = Vec::new();
        for part in parts {
            if let Object::Stream(stream) = resolve(self.document, part) {
                bytes.extend(self.data(stream)?);
                bytes.push(b'\n');
            }
        }
        Ok(bytes)
    }

    /// Returns the data of a stream and its image filter, if any.
    pub(super) fn decoded(&mut self, stream: &Stream) -> Result<DecodedStream, PdfError> {
        decode(self.document, &stream.dict, &stream.content, &mut self.budget)
    }
}
