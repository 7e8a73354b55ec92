-- Several processes over one database: which of them live, what one of them does at a time, and what each
-- has under way. Calls of pages are there for whichever of them shows them.

CREATE TABLE nodes (
    life TEXT PRIMARY KEY,
    node TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    beat INTEGER NOT NULL,
    followed INTEGER NOT NULL,
    seen_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    life TEXT NOT NULL REFERENCES nodes ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

ALTER TABLE queued_items ADD COLUMN life TEXT;
ALTER TABLE queued_items ADD COLUMN freed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX queued_items_freed ON queued_items (freed);
CREATE INDEX queued_items_held ON queued_items (life) WHERE life IS NOT NULL;
INSERT INTO cursors (name, seq) VALUES ('streams', 0);

ALTER TABLE outbox ADD COLUMN life TEXT;
CREATE INDEX outbox_sending ON outbox (life) WHERE state = 'sending';

ALTER TABLE deliveries ADD COLUMN life TEXT;

CREATE TABLE calls (
    session_hash TEXT PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    calls TEXT NOT NULL
) STRICT, WITHOUT ROWID;
