CREATE TABLE nodes (
    life TEXT PRIMARY KEY,
    node TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    beat BIGINT NOT NULL,
    followed BIGINT NOT NULL,
    seen_ms BIGINT NOT NULL
);

CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    life TEXT NOT NULL REFERENCES nodes ON DELETE CASCADE DEFERRABLE
);
CREATE INDEX leases_by_life ON leases (life);

ALTER TABLE queued_items ADD COLUMN life TEXT;
ALTER TABLE queued_items ADD COLUMN freed BIGINT NOT NULL DEFAULT 0;
CREATE INDEX queued_items_freed ON queued_items (freed);
CREATE INDEX queued_items_held ON queued_items (life) WHERE life IS NOT NULL;
INSERT INTO cursors (name, seq) VALUES ('streams', 0);

ALTER TABLE outbox ADD COLUMN life TEXT;
CREATE INDEX outbox_sending ON outbox (life) WHERE state = 'sending';

ALTER TABLE deliveries ADD COLUMN life TEXT;

CREATE TABLE calls (
    session_hash TEXT PRIMARY KEY REFERENCES sessions ON DELETE CASCADE DEFERRABLE,
    calls TEXT NOT NULL
);
