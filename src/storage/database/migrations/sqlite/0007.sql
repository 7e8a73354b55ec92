-- Collections, their items in order, and what they lost. An item may come and go by itself: its
-- rows here name it and do not refer to it. `expires_ms` is that of the item's current version.

CREATE TABLE collections (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    collection_id TEXT NOT NULL UNIQUE,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    name TEXT NOT NULL,
    public INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    accessed_ms INTEGER NOT NULL,
    modified_ms INTEGER
) STRICT;
CREATE INDEX collections_by_user ON collections (user_id, number);

CREATE TABLE collection_items (
    number INTEGER NOT NULL REFERENCES collections ON DELETE CASCADE,
    media_type TEXT NOT NULL,
    id TEXT NOT NULL,
    position INTEGER NOT NULL,
    expires_ms INTEGER,
    PRIMARY KEY (number, media_type, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX collection_items_in_order ON collection_items (number, position);
CREATE INDEX collection_items_by_item ON collection_items (media_type, id);
CREATE INDEX collection_items_by_end ON collection_items (expires_ms)
    WHERE expires_ms IS NOT NULL;

CREATE TABLE removed_items (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    number INTEGER NOT NULL REFERENCES collections ON DELETE CASCADE,
    media_type TEXT NOT NULL,
    id TEXT NOT NULL,
    headline TEXT,
    description TEXT,
    removed_ms INTEGER NOT NULL,
    UNIQUE (number, media_type, id)
) STRICT;
CREATE INDEX removed_items_in_order ON removed_items (number, place);
