//! Limits for editing items and for resumable uploads.

/// Changes of one item by editors that are remembered; the oldest are removed.
pub const ITEM_EDITS_MAX: usize = 100;
/// Times that a change without a condition is repeated when the item changes in between.
pub const EDIT_TRIES_MAX: usize = 3;
/// Metadata templates of the archive, and separately of each organization.
pub const TEMPLATES_MAX: usize = 200;
/// Items that one form of the site edits together.
pub const SITE_EDIT_ITEMS_MAX: usize = 100;
/// Uploads that one form of the site describes and publishes together.
pub const SITE_PUBLISH_ITEMS_MAX: usize = 20;
/// Bytes of a form of the desk. That of [`SITE_PUBLISH_ITEMS_MAX`] uploads has all their captions, in which a
/// character that is not ASCII takes six bytes or more.
pub const DESK_FORM_BYTES_MAX: usize = 1024 * 1024;
/// Times that the form of an item is applied to a newer version that others changed in other fields.
pub const SITE_EDIT_TRIES_MAX: usize = 3;
/// Unpublished uploads of one user.
pub const UPLOADS_PER_USER_MAX: usize = 1000;
/// Bytes of a stored part of an upload, which is the most that a process that is killed can lose: what arrived before
/// a connection broke off is stored. Each part in transit is in memory.
pub const UPLOAD_PART_BYTES: usize = 4 * 1024 * 1024;
/// Requests that send parts of uploads at a time, each with at most [`UPLOAD_PART_BYTES`] in memory.
pub const UPLOAD_REQUESTS_MAX: usize = 64;
/// Requests of one user that send parts of uploads at a time.
pub const UPLOAD_REQUESTS_PER_USER_MAX: usize = 8;
/// Bytes of the header with the metadata of an upload.
pub const UPLOAD_METADATA_BYTES_MAX: usize = 4096;
/// Characters of the name of an uploaded file; file systems allow 255 bytes.
pub const UPLOAD_NAME_CHARS_MAX: usize = 255;
/// Characters of the text by which a client recognizes its file again.
pub const UPLOAD_FINGERPRINT_CHARS_MAX: usize = 400;
/// Descriptions and pictures of unpublished uploads that are made at a time; further ones wait. They share the
/// workers of ingest, where more would delay wire feeds.
pub const UPLOAD_READINGS_MAX: usize = 2;
/// Long side in pixels of the picture of an unpublished upload.
pub const UPLOAD_PREVIEW_PX: u32 = 512;
/// Time between two removals of expired uploads, and of parts that no upload has.
pub const UPLOADS_SWEEP: std::time::Duration = std::time::Duration::from_secs(600);
/// Expired uploads that are removed in one transaction; each has up to a thousand parts.
pub const UPLOADS_SWEPT_AT_A_TIME: usize = 20;
