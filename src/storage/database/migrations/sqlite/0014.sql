-- Schema 14: uploads that are not published yet, with the parts that were received; what editors changed in
-- items; metadata templates. A part is a file of the store of originals, under the key `part_key`.
CREATE TABLE uploads (
    upload_id TEXT PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    file_name TEXT NOT NULL,
    fingerprint TEXT,
    length INTEGER NOT NULL,
    received INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX uploads_by_user ON uploads (user_id, created_ms);
CREATE INDEX uploads_by_expiry ON uploads (expires_ms);
CREATE TABLE upload_parts (
    part_key TEXT PRIMARY KEY,
    upload_id TEXT NOT NULL REFERENCES uploads ON DELETE CASCADE,
    start INTEGER NOT NULL,
    length INTEGER NOT NULL,
    checksum TEXT NOT NULL
) STRICT;
CREATE INDEX upload_parts_by_upload ON upload_parts (upload_id, start);
CREATE TABLE item_edits (
    edit_id INTEGER PRIMARY KEY AUTOINCREMENT,
    media_type TEXT NOT NULL,
    id TEXT NOT NULL,
    version TEXT NOT NULL,
    changes TEXT NOT NULL,
    changed_ms INTEGER NOT NULL,
    user_name TEXT
) STRICT;
CREATE INDEX item_edits_by_item ON item_edits (media_type, id, edit_id);
CREATE TABLE metadata_templates (
    template_id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id INTEGER REFERENCES organizations ON DELETE CASCADE,
    name TEXT NOT NULL,
    fields TEXT NOT NULL,
    changed_ms INTEGER NOT NULL,
    user_name TEXT
) STRICT;
CREATE INDEX metadata_templates_by_owner ON metadata_templates (organization_id, name);

-- What operators look at: orders and their events by time, for statistics; deliveries by state;
-- figures that nodes publish; the newest ingest errors and slow searches, which are removed by number and
-- age.
CREATE INDEX orders_by_time ON orders (created_ms);
CREATE INDEX audit_log_of_orders ON audit_log (at_ms) WHERE action = 'order_created';
CREATE INDEX deliveries_by_state ON deliveries (state, delivery_id);
ALTER TABLE nodes ADD COLUMN figures TEXT NOT NULL DEFAULT '{}';
ALTER TABLE nodes ADD COLUMN figures_ms INTEGER;
CREATE TABLE diagnostics (
    record_id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    node TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    duration_ms INTEGER,
    count INTEGER NOT NULL
) STRICT;
CREATE INDEX diagnostics_by_kind ON diagnostics (kind, record_id);
CREATE INDEX diagnostics_by_time ON diagnostics (at_ms);
