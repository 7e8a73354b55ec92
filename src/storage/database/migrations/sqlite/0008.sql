-- Keys that a CDN is to be told of, each from a moment on. Each address that is called has a lane of
-- its own, with a place of its own in the item log.

CREATE TABLE purges (
    purge_id INTEGER PRIMARY KEY AUTOINCREMENT,
    lane TEXT NOT NULL,
    key TEXT NOT NULL,
    due_ms INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    again INTEGER NOT NULL,
    refused INTEGER NOT NULL,
    UNIQUE (lane, key, due_ms)
) STRICT;
CREATE INDEX purges_due ON purges (lane, due_ms, purge_id);
