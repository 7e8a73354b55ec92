//! The quick check of the originals: presence and length, and the content of a random sample.

use uuid::Uuid;

use super::check::{
    ArchiveCheck, ArchiveProblem, CheckReport, FileOfItem, OrphanReport, is_named,
};
use super::parallel::for_each_parallel;
use crate::runtime::error::{Error, Result};
use crate::storage::database::NamedOriginal;
use model::ContentHash;

impl ArchiveCheck<'_> {
    /// Compares the originals that items refer to with the store's listing, and reads a random sample of the
    /// existing originals, on `workers` threads.
    ///
    /// Needs one pass over the files of all items, one listing of the store, and 90 bytes of memory per
    /// original.
    pub(super) fn quick(self, workers: usize, sample: usize) -> Result<CheckReport> {
        // The items are read first: an original is stored before an item refers to it and stays while one
        // does, so the listing lacks it only if it is lost, or was pruned after its item had been replaced.
        let (named, rows) = self.archive.db.read_blocking(|tx| tx.named_originals())?;
        let stored = self.archive.originals.store.list_with_sizes().map_err(Error::internal)?;
        let is_complete = rows.is_empty();
        for flaw in rows {
            self.report(&ArchiveProblem::Database { flaw, repaired: None });
        }
        let found = StoreComparison::new(&named, &stored);
        found.report(|named| self.file_of(named), |problem| self.report(problem));
        // An unreadable item may refer to any original, so orphans are known only if all items were read.
        let orphans = if is_complete {
            self.report_orphans(found.unnamed)?
        } else {
            OrphanReport::default()
        };
        let sampled = random_sample(found.present, sample);
        let read = sampled.len();
        for_each_parallel(workers, sampled.into_iter(), &|named| {
            self.original(named);
            Ok(())
        })?;
        let remaining = self.remaining.into_inner();
        Ok(CheckReport {
            originals: named.len(),
            read,
            remaining,
            orphans: orphans.left,
            pruned: orphans.pruned,
            is_complete,
            ..CheckReport::default()
        })
    }
}

/// The differences between the originals that items refer to and the originals in a store.
#[derive(Default)]
pub(super) struct StoreComparison {
    /// Originals that exist with the right length.
    pub(super) present: Vec<NamedOriginal>,
    /// Originals that are missing.
    pub(super) missing: Vec<NamedOriginal>,
    /// Originals that exist with a different length, and that length in bytes.
    pub(super) other_length: Vec<(NamedOriginal, u64)>,
    /// Blobs of the store that no item refers to, with their lengths in bytes.
    pub(super) unnamed: Vec<(ContentHash, u64)>,
}

impl StoreComparison {
    /// Compares two lists that are sorted by hash.
    pub(super) fn new(named: &[NamedOriginal], stored: &[(ContentHash, u64)]) -> Self {
        let mut found = Self::default();
        for original in named {
            match stored.binary_search_by_key(&original.hash, |(hash, _)| *hash) {
                Ok(index) if stored[index].1 == original.length => found.present.push(*original),
                Ok(index) => found.other_length.push((*original, stored[index].1)),
                Err(_) => found.missing.push(*original),
            }
        }
        found.unnamed =
            stored.iter().filter(|(hash, _)| !is_named(named, hash)).copied().collect();
        found
    }

    /// Reports the originals that are missing or have a different length; `file_of` names the files of items.
    pub(super) fn report(
        &self,
        file_of: impl Fn(NamedOriginal) -> FileOfItem,
        report: impl Fn(&ArchiveProblem),
    ) {
        for named in &self.missing {
            report(&ArchiveProblem::Missing { of: file_of(*named), hash: named.hash });
        }
        for (named, found) in &self.other_length {
            let of = file_of(*named);
            let NamedOriginal { hash, length: expected, .. } = *named;
            report(&ArchiveProblem::Length { of, hash, found: *found, expected });
        }
    }
}

/// Picks `count` elements of `from` at random with equal probability, or all if there are fewer.
fn random_sample(mut from: Vec<NamedOriginal>, count: usize) -> Vec<NamedOriginal> {
    let count = count.min(from.len());
    // The first steps of a Fisher-Yates shuffle.
    for index in 0..count {
        let remaining = from.len() - index;
        from.swap(index, index + random_below(remaining));
    }
    from.truncate(count);
    from
}

/// Returns a random number below `bound`, which must not be 0.
fn random_below(bound: usize) -> usize {
    // The modulo bias is below 2^-40 for a million originals.
    let drawn = Uuid::new_v4().as_u128() % (bound as u128);
    usize::try_from(drawn).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_sample_has_no_original_twice_and_each_can_be_in_it() {
        let all: Vec<NamedOriginal> = (0..20_u8)
            .map(|n| NamedOriginal {
                hash: ContentHash::new(&[n]),
                length: 1,
                version: i64::from(n),
            })
            .collect();
        let docs = |count: usize| -> BTreeSet<i64> {
            random_sample(all.clone(), count).iter().map(|one| one.version).collect()
        };
        assert_eq!(docs(7).len(), 7);
        assert_eq!(docs(20).len(), 20);
        assert_eq!(docs(1000).len(), 20);
        assert!(docs(0).is_empty());
        // The probability that one of twenty is in none of 400 samples of five is 1 in 10^48.
        let seen: BTreeSet<i64> = (0..400).flat_map(|_| docs(5)).collect();
        assert_eq!(seen.len(), 20);
    }

    #[test]
    fn named_and_stored_originals_are_compared() {
        let mut hashes: Vec<ContentHash> = (0..4_u8).map(|n| ContentHash::new(&[n])).collect();
        hashes.sort_unstable();
        let named = |at: usize| NamedOriginal { hash: hashes[at], length: 10, version: 0 };
        let stored = [(hashes[0], 10), (hashes[1], 9), (hashes[3], 10)];
        let found = StoreComparison::new(&[named(0), named(1), named(2)], &stored);
        assert_eq!(found.present, [named(0)]);
        assert_eq!(found.other_length, [(named(1), 9)]);
        assert_eq!(found.missing, [named(2)]);
        assert_eq!(found.unnamed, [(hashes[3], 10)]);
    }
}
