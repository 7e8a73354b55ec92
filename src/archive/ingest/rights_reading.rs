//! Reads the rights in originals that were stored before rights were read, and fills the records of their
//! items. Whether a picture has no colours is looked up with them.
//!
//! Items are visited in the order of their numbers, which new versions extend. The progress is stored with
//! what was filled, in one transaction, so that another node or another run continues where one stopped. An
//! item whose originals carry rights or have no colours gets a new version, since its renditions change or a
//! search finds it by other filters; the others stay as they are.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::write::{self, LocalMoment};
use super::{Ingest, Uploads, catch_panics};
use crate::media::original::OriginalError;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::RIGHTS_READING_BATCH;
use crate::runtime::telemetry;
use crate::storage::blobs::StoreError;
use crate::storage::database::{Db, DbError, WriteTx};
use metadata::RightsMetadata;
use model::item::{Asset, AssetFile, PictureFile, RIGHTS_READING};
use model::{ContentHash, ItemKey};

/// The name of the progress in the database.
const STATE_KEY: &str = "rights-reading";

/// How far the originals of an archive were read, and what was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct RightsReading {
    /// What is read from a file; another reading begins again.
    reading: u32,
    /// The number of the pass over all items; it rises when originals are tried again.
    #[serde(default)]
    pass: u64,
    /// Whether the pass has reached the newest item. Later items are visited as they arrive.
    #[serde(default)]
    is_complete: bool,
    /// The number of the last item that was visited.
    pub at: i64,
    /// Originals that were read.
    pub read: u64,
    /// Originals with rights that their records lacked, and that were filled.
    pub filled: u64,
    /// Originals that are missing or damaged, or that the disk or the reader fails at.
    pub unreadable: u64,
}

/// The outcome of one run over a number of items.
#[derive(Clone, Copy, Debug)]
pub struct RightsReadingRun {
    /// The progress after the run.
    pub progress: RightsReading,
    /// The number of the newest item.
    pub last: i64,
    /// Whether all items were visited.
    pub is_complete: bool,
}

/// What the originals of an item say.
struct ReadItem {
    key: ItemKey,
    originals: Vec<ReadOriginal>,
}

/// What an original says about its rights, and whether its picture has no colours.
struct ReadOriginal {
    blob: ContentHash,
    rights: RightsMetadata,
    is_grey: bool,
}

impl ReadOriginal {
    /// Whether the record of the item lacks it.
    fn is_news(&self) -> bool {
        self.is_grey || !self.rights.is_empty()
    }
}

impl RightsReading {
    /// Loads the progress; none where nothing was read as this version reads it.
    pub fn load(db: &Db) -> Result<Self> {
        let text = db.read_blocking(|tx| tx.find_state(STATE_KEY))?;
        Ok(Self::parse(text.as_deref()))
    }

    /// Begins a new pass where the last one is complete and could not read some originals, which may have been
    /// restored since; returns the progress. A pass that was interrupted is continued instead. Originals with
    /// rights that were read are skipped.
    pub fn retry_unreadable(db: &Db) -> Result<Self> {
        Ok(db.write_blocking(|tx| {
            let stored = Self::parse(tx.as_read().find_state(STATE_KEY)?.as_deref());
            if !stored.is_complete || stored.unreadable == 0 {
                return Ok(stored);
            }
            let pass = stored.pass + 1;
            let again = Self { pass, is_complete: false, at: 0, unreadable: 0, ..stored };
            again.write(tx)?;
            Ok(again)
        })?)
    }

    fn parse(text: Option<&str>) -> Self {
        let found = text.and_then(|text| serde_json::from_str::<Self>(text).ok());
        let found = found.filter(|found| found.reading == RIGHTS_READING);
        found.unwrap_or(Self { reading: RIGHTS_READING, ..Self::default() })
    }

    /// Stores the progress, unless another run has come further meanwhile or has begun a new pass; returns
    /// whether it did.
    fn save(&self, tx: &WriteTx<'_>) -> std::result::Result<bool, DbError> {
        let stored = Self::parse(tx.as_read().find_state(STATE_KEY)?.as_deref());
        if stored.pass != self.pass || stored.at > self.at {
            return Ok(false);
        }
        self.write(tx).map(|()| true)
    }

    fn write(&self, tx: &WriteTx<'_>) -> std::result::Result<(), DbError> {
        // A struct of numbers cannot fail to serialize.
        tx.write_state(STATE_KEY, &serde_json::to_string(self).unwrap_or_default())
    }
}

impl Ingest {
    /// Visits the next items and fills what their records lack. `now` is the time of new versions.
    ///
    /// A single original that cannot be read is counted and skipped. Fails when the database or the whole store
    /// does not answer; then the run can be repeated.
    pub fn read_stored_rights(&self, now: Timestamp) -> Result<RightsReadingRun> {
        let before = RightsReading::load(&self.db)?;
        let (last, numbers) = self.db.read_blocking(move |tx| {
            let last = tx.last_version()?;
            Ok((last, tx.list_item_numbers(before.at, last, RIGHTS_READING_BATCH)?))
        })?;
        let is_at_end = numbers.len() < RIGHTS_READING_BATCH;
        let (mut progress, mut items) = (before, Vec::new());
        for number in numbers {
            items.extend(self.read_item(number, &mut progress)?);
            progress.at = number;
        }
        if is_at_end {
            progress.at = last;
            progress.is_complete = true;
        }
        let is_saved = progress == before || self.save_read(progress, items, now)?;
        if is_saved {
            metrics::counter!(telemetry::RIGHTS_FILLED).increment(progress.filled - before.filled);
        }
        // If another run went on meanwhile, the next one continues where that one is.
        Ok(RightsReadingRun { progress, last, is_complete: is_at_end && is_saved })
    }

    /// Writes the progress with what was read; returns false if another run went on meanwhile, which then
    /// visits the same items.
    fn save_read(
        &self,
        progress: RightsReading,
        items: Vec<ReadItem>,
        now: Timestamp,
    ) -> Result<bool> {
        let zone = self.zone.clone();
        Ok(self.db.write_blocking(move |tx| {
            let moment = LocalMoment { now, zone: &zone };
            let is_saved = progress.save(tx)?;
            if is_saved {
                items.iter().try_for_each(|item| fill(tx, item, moment))?;
            }
            Ok(is_saved)
        })?)
    }

    /// Reads the originals of an item that were not read before; `None` where its record lacks nothing.
    fn read_item(&self, number: i64, progress: &mut RightsReading) -> Result<Option<ReadItem>> {
        let found = match self.db.read_blocking(move |tx| tx.files_of_version(number)) {
            // `wirephoto check` reports the item.
            Err(DbError::Damaged { .. }) => return Ok(None),
            found => found?,
        };
        let Some((key, assets)) = found else { return Ok(None) };
        let mut originals = Vec::new();
        for picture in assets.iter().filter_map(unread) {
            match self.read_original(picture)? {
                Ok(found) => {
                    progress.read += 1;
                    progress.filled += u64::from(!found.rights.is_empty());
                    originals.push(found);
                }
                Err(cause) => {
                    progress.unreadable += 1;
                    tracing::warn!(item = %key, "rights in an original cannot be read: {cause}");
                }
            }
        }
        let is_changed = originals.iter().any(ReadOriginal::is_news);
        Ok(is_changed.then_some(ReadItem { key, originals }))
    }

    /// Reads the rights in an original; the inner error says why this original cannot be read.
    ///
    /// Fails when the store cannot be used at all.
    fn read_original(
        &self,
        picture: &PictureFile,
    ) -> Result<std::result::Result<ReadOriginal, String>> {
        let read = catch_panics(|| {
            let PictureFile { blob, length, .. } = *picture;
            Ok(self.originals.read_head(blob, length).and_then(|head| {
                let is_grey = self.originals.is_grey(blob, length, &head)?.unwrap_or(false);
                let rights = metadata::read(&head.header, &head.bytes).rights;
                Ok(ReadOriginal { blob, rights, is_grey })
            }))
        });
        match read {
            Ok(Ok(rights)) => Ok(Ok(rights)),
            // The store may recover, so the item is visited again.
            Ok(Err(cause)) if is_of_store(&cause) => Err(cause.into()),
            Ok(Err(cause)) => Ok(Err(cause.to_string())),
            Err(panicked) => Ok(Err(panicked.to_string())),
        }
    }
}

/// Whether the whole store cannot be used, and not only one original.
fn is_of_store(cause: &OriginalError) -> bool {
    match cause {
        OriginalError::Store(
            StoreError::Unavailable { .. }
            | StoreError::OtherArchive { .. }
            | StoreError::Setting { .. },
        ) => true,
        // A disk may fail at one file only, and must not stop the reading of all others.
        OriginalError::Store(
            StoreError::Io { .. }
            | StoreError::Missing(_)
            | StoreError::Length { .. }
            | StoreError::Corrupted(_),
        )
        | OriginalError::Changed(_)
        | OriginalError::Derived { .. }
        | OriginalError::Header(_) => false,
    }
}

/// Returns the picture of a file whose rights were not read. A picture that was made of another file carries
/// none.
fn unread(asset: &Asset) -> Option<&PictureFile> {
    asset.picture().filter(|picture| !asset.made && !picture.has_read_rights())
}

/// Writes a new version of an item with what was read, unless its files were replaced meanwhile.
fn fill(
    tx: &WriteTx<'_>,
    read: &ReadItem,
    moment: LocalMoment<'_>,
) -> std::result::Result<(), DbError> {
    let change = |asset: &mut Asset| {
        let is_unread = unread(asset).is_some();
        let AssetFile::Picture(picture) = &mut asset.file else { return false };
        let found = read.originals.iter().find(|original| original.blob == picture.blob);
        let Some(original) = found.filter(|_| is_unread) else { return false };
        picture.rights = original.rights.clone();
        picture.rights_reading = RIGHTS_READING;
        picture.is_grey = original.is_grey;
        original.is_news()
    };
    write::change_files(tx, &read.key, moment, change).map(drop)
}

impl Uploads {
    /// Visits the next items and fills what their records lack, as [`Ingest::read_stored_rights`].
    pub async fn read_stored_rights(&self, now: Timestamp) -> Result<RightsReadingRun> {
        let uploads = self.clone();
        // Waits for the disk and the bucket, so not on the async threads.
        let run =
            tokio::task::spawn_blocking(move || uploads.ingest_here().read_stored_rights(now));
        run.await.map_err(Error::internal)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bad_original_is_skipped_and_a_store_that_fails_is_not() {
        let cause = || std::io::Error::other("fails");
        let place = || "originals".to_owned();
        let hash = ContentHash::of(b"x");
        for (cause, expected) in [
            (StoreError::Io { path: place(), cause: cause() }, false),
            (StoreError::Missing(hash), false),
            (StoreError::Corrupted(hash), false),
            (StoreError::Unavailable { place: place(), cause: cause() }, true),
            (StoreError::OtherArchive { place: place(), why: String::new() }, true),
        ] {
            let cause = OriginalError::Store(cause);
            assert_eq!(is_of_store(&cause), expected, "{cause}");
        }
        assert!(!is_of_store(&OriginalError::Changed(hash)));
    }

    #[test]
    fn another_reading_begins_again() {
        let stored = concat!(
            r#"{"reading":1,"pass":3,"is_complete":true,"#,
            r#""at":7,"read":5,"filled":2,"unreadable":1}"#
        );
        let found = RightsReading::parse(Some(stored));
        let expected = RightsReading {
            reading: 1,
            pass: 3,
            is_complete: true,
            at: 7,
            read: 5,
            filled: 2,
            unreadable: 1,
        };
        assert_eq!(found, expected);
        assert_eq!(serde_json::to_string(&found).unwrap(), stored);
        let new = RightsReading { reading: RIGHTS_READING, ..RightsReading::default() };
        let other = stored.replace("\"reading\":1", "\"reading\":0");
        for text in [None, Some("damaged"), Some(other.as_str())] {
            assert_eq!(RightsReading::parse(text), new);
        }
    }

    #[test]
    fn only_a_complete_pass_is_repeated_for_what_could_not_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::scratch(dir.path()).unwrap();
        let retry_after = |stored: RightsReading| {
            db.write_blocking(move |tx| stored.write(tx)).unwrap();
            let found = RightsReading::retry_unreadable(&db).unwrap();
            assert_eq!(RightsReading::load(&db).unwrap(), found);
            found
        };
        let new = RightsReading::parse(None);
        let part = RightsReading { at: 7, read: 5, unreadable: 1, ..new };
        assert_eq!(retry_after(part), part, "an interrupted pass is continued");
        let whole = RightsReading { is_complete: true, unreadable: 0, ..part };
        assert_eq!(retry_after(whole), whole);
        let again = RightsReading { pass: 1, at: 0, unreadable: 0, ..part };
        assert_eq!(retry_after(RightsReading { is_complete: true, ..part }), again);
    }

    #[test]
    fn a_run_that_was_overtaken_stores_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::scratch(dir.path()).unwrap();
        let new = RightsReading::parse(None);
        let stored = RightsReading { pass: 1, at: 4, ..new };
        db.write_blocking(move |tx| stored.write(tx)).unwrap();
        for (pass, at, expected) in [(0, 9, false), (2, 9, false), (1, 3, false), (1, 9, true)] {
            let progress = RightsReading { pass, at, ..new };
            let is_saved = db.write_blocking(move |tx| progress.save(tx)).unwrap();
            assert_eq!(is_saved, expected, "pass {pass} at {at}");
            let loaded = RightsReading::load(&db).unwrap();
            assert_eq!(loaded, if expected { progress } else { stored });
        }
    }
}
