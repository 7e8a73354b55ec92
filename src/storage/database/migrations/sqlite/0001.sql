CREATE TABLE items (
    item_id INTEGER PRIMARY KEY,
    media_type TEXT NOT NULL,
    id TEXT NOT NULL,
    document TEXT NOT NULL,
    assets TEXT NOT NULL,
    pubstatus TEXT NOT NULL,
    order_ms INTEGER NOT NULL,
    embargoed_ms INTEGER,
    stored_ms INTEGER NOT NULL,
    UNIQUE (media_type, id)
) STRICT;
CREATE INDEX items_by_time
    ON items (media_type, pubstatus, order_ms DESC, item_id DESC, embargoed_ms);

CREATE TABLE item_log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    media_type TEXT NOT NULL,
    id TEXT NOT NULL,
    change TEXT NOT NULL,
    at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE users (
    user_name TEXT PRIMARY KEY,
    active INTEGER NOT NULL,
    roles TEXT NOT NULL
) STRICT;

CREATE TABLE api_keys (
    key_hash TEXT PRIMARY KEY,
    user_name TEXT NOT NULL,
    name TEXT NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE versions (
    what TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) STRICT;
INSERT INTO versions (what, version) VALUES ('accounts', 0);
