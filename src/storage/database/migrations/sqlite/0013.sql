-- Schema 13: what was set about the rights in items. A row is a change and has everything that is set for
-- the item from then on, as JSON; the newest row of an item counts. Users are named as they were then.
CREATE TABLE item_rights (
    change_id INTEGER PRIMARY KEY AUTOINCREMENT,
    media_type TEXT NOT NULL,
    id TEXT NOT NULL,
    rights TEXT NOT NULL,
    changed_ms INTEGER NOT NULL,
    user_name TEXT
) STRICT;
CREATE INDEX item_rights_by_item ON item_rights (media_type, id, change_id);
