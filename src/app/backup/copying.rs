//! Copies originals from one store to another.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::app::parallel::for_each_parallel;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::blobs::{BlobStore, CopyOutcome, StoreError};
use crate::storage::database::NamedOriginal;

/// Progress of a copy, reported from several threads.
#[derive(Clone, Copy, Debug)]
pub enum CopyEvent<'a> {
    /// The number of copied pages of the database, and the total.
    Pages(u64, u64),
    /// The number of originals to copy next.
    Originals(u64),
    /// An original was processed.
    Original,
    /// A failure that does not stop the copy.
    Failed(&'a str),
}

/// The receiver of progress events.
pub type CopyListener<'a> = &'a (dyn Fn(CopyEvent<'_>) + Sync);

/// Counts of copied originals.
#[derive(Clone, Copy, Debug, Default)]
pub struct CopyTally {
    /// Originals copied in this run.
    pub copied: usize,
    /// Bytes copied in this run.
    pub copied_bytes: u64,
    /// Originals that the target had before this run.
    pub present: usize,
    /// Originals that were removed because no item refers to them.
    pub pruned: usize,
}

pub(in crate::app) fn store_failed(cause: StoreError) -> Error {
    Error::new(ErrorKind::Unavailable, "a store of originals cannot be used").with_source(cause)
}

/// The parameters of a copy of originals.
#[derive(Clone, Copy, Debug)]
pub(in crate::app) struct CopyParameters {
    pub(in crate::app) workers: usize,
    /// Reads the originals that the target already has, and copies damaged ones again.
    pub(in crate::app) verify: bool,
    /// True to fail at an original that cannot be read, because a retry may succeed; false to count it as
    /// lost.
    pub(in crate::app) strict: bool,
}

/// Copies the originals in `named` between stores. Returns the counts, and the number of originals that the
/// source store has lost. All copied originals are durable when this function returns.
pub(in crate::app) fn copy_named_originals(
    from: &BlobStore,
    to: &BlobStore,
    named: &[NamedOriginal],
    CopyParameters { workers, verify, strict }: CopyParameters,
    progress: CopyListener<'_>,
) -> Result<(CopyTally, usize)> {
    progress(CopyEvent::Originals(u64::try_from(named.len()).unwrap_or(u64::MAX)));
    let tally = Mutex::new(CopyTally::default());
    let lost = AtomicUsize::new(0);
    for_each_parallel(workers, named.iter(), &|NamedOriginal { hash, length, .. }| {
        let mut outcome = to.copy_from(from, *hash, *length).map_err(store_failed)?;
        let is_present = matches!(outcome, CopyOutcome::AlreadyPresent);
        if is_present && verify && !to.is_intact(*hash, *length) {
            outcome = to.replace(from, *hash, *length).map_err(store_failed)?;
        }
        let mut tally = tally.lock();
        match outcome {
            CopyOutcome::Copied => {
                tally.copied += 1;
                tally.copied_bytes += length;
            }
            CopyOutcome::AlreadyPresent => tally.present += 1,
            CopyOutcome::Refused(why @ StoreError::Io { .. }) if strict => {
                return Err(store_failed(why));
            }
            CopyOutcome::Refused(why) => {
                lost.fetch_add(1, Ordering::Relaxed);
                progress(CopyEvent::Failed(&format!("original {hash} is not copied: {why}")));
            }
        }
        drop(tally);
        progress(CopyEvent::Original);
        Ok(())
    })?;
    // The manifest must not name originals that a power failure can still lose.
    to.flush().map_err(store_failed)?;
    Ok((tally.into_inner(), lost.into_inner()))
}
