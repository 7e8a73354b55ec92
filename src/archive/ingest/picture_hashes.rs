//! Adds perceptual hashes to the records of pictures that were stored before ingest computed them.
//!
//! Items are visited in the order of their numbers, which new versions extend. The progress is stored with the
//! hashes, in one transaction, so that another node or another run continues where one stopped. An item whose
//! picture has a hash gets a new version, since a search finds it by that; the others stay as they are, and are
//! visited again only in a new version.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Uploads;
use super::write::{self, LocalMoment};
use crate::runtime::error::Result;
use crate::runtime::telemetry;
use crate::storage::database::{DbError, ReadTx, WriteTx};
use model::item::AssetFile;
use model::{ContentHash, ItemKey, PictureHash};

/// The name of the progress in the database.
const STATE_KEY: &str = "picture-hashes";

/// How far the pictures of an archive that had no perceptual hash were measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct MeasuringProgress {
    /// The number of the last item that was visited.
    pub at: i64,
}

/// A picture of an item with the perceptual hash that was computed for it.
#[derive(Clone, Debug)]
pub struct MeasuredPicture {
    pub key: ItemKey,
    /// The key of the picture in the blob store.
    pub blob: ContentHash,
    pub hash: PictureHash,
}

impl MeasuringProgress {
    /// Loads the progress; none where nothing was measured yet.
    pub fn load(tx: &ReadTx<'_>) -> Result<Self, DbError> {
        Ok(Self::parse(tx.find_state(STATE_KEY)?.as_deref()))
    }

    fn parse(text: Option<&str>) -> Self {
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// Stores the progress, unless another run has come further meanwhile; returns whether it did.
    fn save(self, tx: &WriteTx<'_>) -> Result<bool, DbError> {
        if Self::load(&tx.as_read())?.at > self.at {
            return Ok(false);
        }
        // A struct of one number cannot fail to serialize.
        tx.write_state(STATE_KEY, &serde_json::to_string(&self).unwrap_or_default())?;
        Ok(true)
    }
}

impl Uploads {
    /// Writes the progress with the hashes of `pictures`, for which `now` is the time of new versions.
    ///
    /// Writes nothing if another run went on meanwhile: it has visited the same items.
    pub async fn fill_hashes(
        &self,
        progress: MeasuringProgress,
        pictures: Vec<MeasuredPicture>,
        now: Timestamp,
    ) -> Result<()> {
        let ingest = self.ingest_here();
        let zone = ingest.zone.clone();
        let written = ingest.db.write(move |tx| {
            let (moment, mut filled) = (LocalMoment { now, zone: &zone }, 0_u64);
            if progress.save(tx)? {
                for picture in &pictures {
                    filled += u64::from(fill(tx, picture, moment)?);
                }
            }
            Ok(filled)
        });
        let filled = written.await?;
        metrics::counter!(telemetry::PICTURE_HASHES_FILLED).increment(filled);
        Ok(())
    }
}

/// Writes a new version of an item with the hash of its picture, unless that was replaced or measured meanwhile;
/// returns whether it did.
fn fill(
    tx: &WriteTx<'_>,
    measured: &MeasuredPicture,
    moment: LocalMoment<'_>,
) -> Result<bool, DbError> {
    let filled = write::change_files(tx, &measured.key, moment, |asset| {
        let AssetFile::Picture(picture) = &mut asset.file else { return false };
        let lacks_hash = picture.blob == measured.blob && picture.picture_hash.is_none();
        if lacks_hash {
            picture.picture_hash = Some(measured.hash);
        }
        lacks_hash
    });
    match filled {
        // A document that does not parse must not stop all others. `wirephoto check` reports it.
        Err(DbError::Damaged { what, why }) => {
            tracing::warn!("a perceptual hash cannot be added: {what} is damaged: {why}");
            Ok(false)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::database::Db;

    #[test]
    fn a_run_that_was_overtaken_stores_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::scratch(dir.path()).unwrap();
        let load = || db.read_blocking(MeasuringProgress::load).unwrap();
        assert_eq!(load(), MeasuringProgress { at: 0 });
        for (at, expected, stored) in [(4, true, 4), (3, false, 4), (4, true, 4), (9, true, 9)] {
            let progress = MeasuringProgress { at };
            assert_eq!(db.write_blocking(move |tx| progress.save(tx)).unwrap(), expected, "{at}");
            assert_eq!(load(), MeasuringProgress { at: stored });
        }
        assert_eq!(MeasuringProgress::parse(Some("damaged")), MeasuringProgress::default());
        assert_eq!(MeasuringProgress::parse(Some(r#"{"at":7}"#)), MeasuringProgress { at: 7 });
    }
}
