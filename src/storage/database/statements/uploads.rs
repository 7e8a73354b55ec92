//! Stores unpublished uploads: declared properties, number of received bytes, and the keys of the parts,
//! whose bytes are in the store of originals.

use std::collections::HashSet;

use jiff::Timestamp;
use uuid::Uuid;

use super::{ReadTx, WriteTx, parse, time};
use crate::storage::database::engine::{ResultRow, params};
use crate::storage::database::error::DbResult;
use model::ContentHash;
use model::account::UserId;

/// An upload that is not published yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingUpload {
    pub id: Uuid,
    pub user: UserId,
    pub file_name: String,
    /// The text by which the client recognizes the file again.
    pub fingerprint: Option<String>,
    /// The declared length of the file in bytes.
    pub length: u64,
    /// The number of bytes that are stored.
    pub received: u64,
    pub created: Timestamp,
    /// Time at which it is removed unless more bytes arrive.
    pub expires: Timestamp,
}

impl PendingUpload {
    /// Returns whether all bytes of the file are stored.
    pub fn is_complete(&self) -> bool {
        self.received == self.length
    }
}

/// A stored part of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadPart {
    /// The unique key of its file.
    pub key: ContentHash,
    /// The offset of its first byte in the uploaded file.
    pub start: u64,
    /// The number of its bytes.
    pub length: u64,
    /// The hash of its bytes.
    pub checksum: ContentHash,
}

/// The number and total size of unpublished uploads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UploadUsage {
    pub uploads: usize,
    /// The sum of the declared lengths in bytes.
    pub bytes: u64,
}

/// The columns that [`read_usage`] reads.
const USAGE: &str = "count(*) AS uploads, CAST(coalesce(sum(length), 0) AS BIGINT) AS bytes";

const COLUMNS: &str =
    "upload_id, user_id, file_name, fingerprint, length, received, created_ms, expires_ms";

fn read_upload(row: &dyn ResultRow) -> DbResult<PendingUpload> {
    let id: String = row.get("upload_id")?;
    let what = format!("upload {id}");
    Ok(PendingUpload {
        id: parse(&what, &id)?,
        user: row.get("user_id")?,
        file_name: row.get("file_name")?,
        fingerprint: row.get("fingerprint")?,
        length: row.get("length")?,
        received: row.get("received")?,
        created: time(&what, row.get("created_ms")?)?,
        expires: time(&what, row.get("expires_ms")?)?,
    })
}

impl ReadTx<'_> {
    /// Finds the upload with this id, unless it has expired.
    pub fn find_upload(&self, id: Uuid, now: Timestamp) -> DbResult<Option<PendingUpload>> {
        let sql =
            format!("SELECT {COLUMNS} FROM uploads WHERE upload_id = ?1 AND expires_ms > ?2");
        self.tx.find(&sql, params![id, now], read_upload)
    }

    /// Lists the uploads of a user that have not expired, oldest first.
    pub fn list_uploads(&self, user: UserId, now: Timestamp) -> DbResult<Vec<PendingUpload>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM uploads WHERE user_id = ?1 AND expires_ms > ?2
                 ORDER BY created_ms, upload_id"
        );
        self.tx.list(&sql, params![user, now], read_upload)
    }

    /// Returns the usage of a user's uploads, including expired ones that are not removed yet.
    pub fn upload_usage(&self, user: UserId) -> DbResult<UploadUsage> {
        let sql = format!("SELECT {USAGE} FROM uploads WHERE user_id = ?1");
        self.tx.load(&sql, params![user], read_usage)
    }

    /// Returns the usage of the uploads of all users.
    pub fn total_upload_usage(&self) -> DbResult<UploadUsage> {
        let sql = format!("SELECT {USAGE} FROM uploads");
        self.tx.load(&sql, params![], read_usage)
    }

    /// Lists the parts of an upload in the order of their bytes.
    pub fn list_upload_parts(&self, id: Uuid) -> DbResult<Vec<UploadPart>> {
        let what = format!("upload {id}");
        let sql = "SELECT part_key, start, length, checksum FROM upload_parts WHERE upload_id = ?1
             ORDER BY start";
        self.tx.list(sql, params![id], |row| {
            Ok(UploadPart {
                key: parse(&what, row.text("part_key")?)?,
                start: row.get("start")?,
                length: row.get("length")?,
                checksum: parse(&what, row.text("checksum")?)?,
            })
        })
    }

    /// Returns the keys of the parts of all uploads.
    pub fn upload_part_keys(&self) -> DbResult<HashSet<ContentHash>> {
        let keys = self.tx.list("SELECT part_key FROM upload_parts", params![], |row| {
            parse::<ContentHash>("parts of uploads", row.text("part_key")?)
        })?;
        Ok(keys.into_iter().collect())
    }

    /// Returns whether an upload has a part with this key.
    pub fn has_upload_part(&self, key: ContentHash) -> DbResult<bool> {
        let sql = "SELECT 1 FROM upload_parts WHERE part_key = ?1";
        self.tx.exists(sql, params![key])
    }
}

fn read_usage(row: &dyn ResultRow) -> DbResult<UploadUsage> {
    Ok(UploadUsage { uploads: row.get("uploads")?, bytes: row.get("bytes")? })
}

impl WriteTx<'_> {
    /// Stores a new upload without received bytes.
    pub fn write_upload(&self, upload: &PendingUpload) -> DbResult<()> {
        let sql =
            format!("INSERT INTO uploads ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
        let PendingUpload { id, user, file_name, fingerprint, length, .. } = upload;
        let PendingUpload { received, created, expires, .. } = upload;
        let values = params![id, user, file_name, fingerprint, length, received, created, expires];
        self.tx.run(&sql, values)
    }

    /// Adds parts to an upload of which `received` bytes are stored, and postpones its expiry. Returns
    /// `false` and adds nothing if a different request has added parts or removed the upload.
    pub fn add_upload_parts(
        &self,
        id: Uuid,
        received: u64,
        parts: &[UploadPart],
        expires: Timestamp,
    ) -> DbResult<bool> {
        let added: u64 = parts.iter().map(|part| part.length).sum();
        let sql = "UPDATE uploads SET received = ?3, expires_ms = ?4
             WHERE upload_id = ?1 AND received = ?2";
        let values = params![id, received, received.saturating_add(added), expires];
        if !self.tx.changes(sql, values)? {
            return Ok(false);
        }
        for part in parts {
            let sql = "INSERT INTO upload_parts (part_key, upload_id, start, length, checksum)
                 VALUES (?1, ?2, ?3, ?4, ?5)";
            self.tx.run(sql, params![part.key, id, part.start, part.length, part.checksum])?;
        }
        Ok(true)
    }

    /// Removes an upload with its parts. Returns the parts, whose files remain to be removed.
    pub fn delete_upload(&self, id: Uuid) -> DbResult<Vec<UploadPart>> {
        let parts = self.list_upload_parts(id)?;
        // Its parts are removed by a foreign key.
        self.tx.run("DELETE FROM uploads WHERE upload_id = ?1", params![id])?;
        Ok(parts)
    }

    /// Removes uploads that expired before `now`, at most `limit`. Returns the parts of each.
    pub fn sweep_uploads(&self, now: Timestamp, limit: usize) -> DbResult<Vec<Vec<UploadPart>>> {
        let sql =
            "SELECT upload_id FROM uploads WHERE expires_ms < ?1 ORDER BY expires_ms LIMIT ?2";
        let expired: Vec<String> = self.tx.list_values(sql, params![now, limit])?;
        let mut parts = Vec::with_capacity(expired.len());
        for id in &expired {
            parts.push(self.delete_upload(parse(&format!("upload {id}"), id)?)?);
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::runtime::clock;
    use crate::storage::database::Db;

    fn upload(user: i64, length: u64, now: Timestamp) -> PendingUpload {
        PendingUpload {
            id: Uuid::now_v7(),
            user: UserId(user),
            file_name: "a.jpg".to_owned(),
            fingerprint: Some("a.jpg 5".to_owned()),
            length,
            received: 0,
            created: now,
            expires: now + SignedDuration::from_hours(1),
        }
    }

    fn part(start: u64, length: u64) -> UploadPart {
        let key = ContentHash::new(Uuid::now_v7().as_bytes());
        UploadPart { key, start, length, checksum: ContentHash::new(b"bytes") }
    }

    fn database() -> (Db, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::scratch(dir.path()).unwrap();
        db.write_blocking(|tx| tx.add_two_users()).unwrap();
        (db, dir)
    }

    #[test]
    fn parts_are_added_at_the_end_and_only_once() {
        let (db, _dir) = database();
        let now = clock::now();
        let new = upload(1, 8, now);
        let (id, later) = (new.id, now + SignedDuration::from_hours(2));
        let (first, second) = (part(0, 5), part(5, 3));
        let added = db.write_blocking(move |tx| {
            tx.write_upload(&new)?;
            let first_added = tx.add_upload_parts(id, 0, &[first], later)?;
            // A second request was sent from the same offset.
            let again = tx.add_upload_parts(id, 0, &[part(0, 5)], later)?;
            Ok((first_added, again, tx.add_upload_parts(id, 5, &[second], later)?))
        });
        assert_eq!(added.unwrap(), (true, false, true));
        let found =
            db.read_blocking(move |tx| Ok((tx.find_upload(id, now)?, tx.list_upload_parts(id)?)));
        let (found, parts) = found.unwrap();
        let found = found.unwrap();
        assert!(found.is_complete());
        assert_eq!((found.received, found.expires.as_second()), (8, later.as_second()));
        assert_eq!(parts, [first, second]);
        let keys = db.read_blocking(|tx| tx.upload_part_keys()).unwrap();
        assert_eq!(keys, HashSet::from([first.key, second.key]));
        let removed = db.write_blocking(move |tx| tx.delete_upload(id)).unwrap();
        assert_eq!(removed, parts);
        let left = db.read_blocking(move |tx| {
            Ok((tx.find_upload(id, now)?, tx.has_upload_part(first.key)?))
        });
        assert_eq!(left.unwrap(), (None, false));
    }

    #[test]
    fn uploads_count_until_they_are_removed_and_expired_ones_are_swept() {
        let (db, _dir) = database();
        let now = clock::now();
        let uploads = [upload(1, 8, now), upload(1, 4, now), upload(2, 2, now)];
        db.write_blocking(move |tx| uploads.iter().try_for_each(|one| tx.write_upload(one)))
            .unwrap();
        let usage =
            || db.read_blocking(|tx| Ok((tx.upload_usage(UserId(1))?, tx.total_upload_usage()?)));
        let of = |uploads, bytes| UploadUsage { uploads, bytes };
        assert_eq!(usage().unwrap(), (of(2, 12), of(3, 14)));
        let expiry = now + SignedDuration::from_hours(1) + SignedDuration::from_secs(1);
        let listed = db.read_blocking(move |tx| tx.list_uploads(UserId(1), expiry)).unwrap();
        assert!(listed.is_empty(), "expired");
        assert!(db.write_blocking(move |tx| tx.sweep_uploads(now, 9)).unwrap().is_empty());
        assert_eq!(db.write_blocking(move |tx| tx.sweep_uploads(expiry, 2)).unwrap().len(), 2);
        assert_eq!(db.write_blocking(move |tx| tx.sweep_uploads(expiry, 2)).unwrap().len(), 1);
        assert_eq!(usage().unwrap(), (of(0, 0), of(0, 0)));
    }
}
