//! Lists the blobs that a handle of a store adds to it.

use std::{mem, sync::Arc};

use parking_lot::Mutex;

use model::ContentHash;

/// Receives the hash of a blob that was not in the store and is about to be added.
pub(super) type NoteNew<'a> = &'a dyn Fn(ContentHash);

/// The blobs that were added to a store. A blob whose write failed is included, because it may exist
/// nevertheless. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct NewBlobs(Arc<Mutex<Vec<ContentHash>>>);

impl NewBlobs {
    pub(super) fn note(&self, hash: ContentHash) {
        self.0.lock().push(hash);
    }

    /// Returns the blobs so far, and clears the list.
    pub fn take(&self) -> Vec<ContentHash> {
        mem::take(&mut self.0.lock())
    }
}
