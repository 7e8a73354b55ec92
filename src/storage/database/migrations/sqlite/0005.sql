-- Notifications, what they found and was not read or sent yet, and how far the item log was
-- matched. Triggers write `notification_log`, so that a matcher in memory misses no change, also
-- none that a removed user takes along.

CREATE TABLE notifications (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    notification_id TEXT NOT NULL UNIQUE,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    type TEXT NOT NULL,
    media_type TEXT NOT NULL,
    title TEXT NOT NULL,
    q TEXT,
    p TEXT NOT NULL,
    agr TEXT NOT NULL,
    tr TEXT,
    email TEXT,
    schedule TEXT,
    timezone TEXT,
    created_ms INTEGER NOT NULL,
    after_seq INTEGER NOT NULL,
    active_ms INTEGER,
    next_ms INTEGER
) STRICT;
CREATE INDEX notifications_by_user ON notifications (user_id, number);
CREATE INDEX notifications_active ON notifications (active_ms) WHERE active_ms IS NOT NULL;
CREATE INDEX notifications_due ON notifications (next_ms) WHERE next_ms IS NOT NULL;

CREATE TABLE notification_log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    number INTEGER NOT NULL
) STRICT;
CREATE TRIGGER notifications_made AFTER INSERT ON notifications
    BEGIN INSERT INTO notification_log (number) VALUES (new.number); END;
CREATE TRIGGER notifications_changed
    AFTER UPDATE OF q, p, agr, tr, media_type ON notifications
    BEGIN INSERT INTO notification_log (number) VALUES (new.number); END;
CREATE TRIGGER notifications_gone AFTER DELETE ON notifications
    BEGIN INSERT INTO notification_log (number) VALUES (old.number); END;

CREATE TABLE queued_items (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    number INTEGER NOT NULL REFERENCES notifications ON DELETE CASCADE,
    media_type TEXT NOT NULL,
    id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    UNIQUE (number, media_type, id)
) STRICT;
CREATE INDEX queued_items_in_order ON queued_items (number, place);

CREATE TABLE embargoed_items (
    media_type TEXT NOT NULL,
    id TEXT NOT NULL,
    until_ms INTEGER NOT NULL,
    PRIMARY KEY (media_type, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX embargoed_items_by_end ON embargoed_items (until_ms);

CREATE TABLE outbox (
    message_id TEXT PRIMARY KEY,
    lane TEXT NOT NULL,
    number INTEGER NOT NULL,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    content TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    next_ms INTEGER,
    error TEXT,
    created_ms INTEGER NOT NULL,
    queued_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX outbox_due ON outbox (lane, next_ms) WHERE next_ms IS NOT NULL;
CREATE INDEX outbox_by_user ON outbox (user_id, lane, number) WHERE next_ms IS NOT NULL;
CREATE INDEX outbox_parked ON outbox (updated_ms) WHERE next_ms IS NULL;

CREATE TABLE cursors (
    name TEXT PRIMARY KEY,
    seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO cursors SELECT 'matching', coalesce(max(seq), 0) FROM item_log;
INSERT INTO embargoed_items
    SELECT media_type, id, embargoed_ms FROM items
    WHERE embargoed_ms > (SELECT coalesce(max(at_ms), 0) FROM item_log);
