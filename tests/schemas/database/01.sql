-- A database of schema 1 as it was made then, with rows in every table. It never changes.
PRAGMA foreign_keys = OFF;
BEGIN;
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

-- Rows.
INSERT INTO items (item_id, media_type, id, document, assets, pubstatus, order_ms, embargoed_ms, stored_ms) VALUES (1, 'text', 'story', '{"headline":"Is i skärgården","body_text":"Vintern kom tidigt.","versioncreated":"2026-01-05T11:00:00Z","copyrightholder":"TT","product":[{"code":"FOTO","name":"FOTO"}],"type":"text","versionstored":"2026-11-22T16:25:15+01:00","representationtype":"complete","pubstatus":"usable","version":"1","profile":"PUBL","datetime":"2026-01-05T11:00:00Z","date":"2026-01-05","$standard":{"name":"TTNINJS","version":"1.6","schema":"https://tt.se/spec/ttninjs/ttninjs-schema_1.6.json"}}', '[]', 'usable', 1767610800000, NULL, 1795361115967);
INSERT INTO items (item_id, media_type, id, document, assets, pubstatus, order_ms, embargoed_ms, stored_ms) VALUES (2, 'image', 'old', '{"headline":"Isbrytaren Oden","versioncreated":"2026-01-05T10:00:00Z","copyrightholder":"TT","product":[{"code":"FOTO","name":"FOTO"}],"type":"picture","versionstored":"2026-11-22T16:25:15+01:00","representationtype":"complete","pubstatus":"usable","version":"1","profile":"PUBL","datetime":"2026-01-05T10:00:00Z","date":"2026-01-05","mimetype":"image/jpeg","originaltransmissionreference":"old","altids":{"originaltransmissionreference":"old"},"$standard":{"name":"TTNINJS","version":"1.6","schema":"https://tt.se/spec/ttninjs/ttninjs-schema_1.6.json"}}', '[{"name":{"variant":"Normal","usage":"Hires"},"blob":"0c4b45c632dfd054a1a7310d61bc09ee91f6780645e09ac59ac2c811f641b1f5","length":1190,"stored":{"width":96,"height":64},"orientation":1,"progressive":false,"components":3}]', 'usable', 1767607200000, NULL, 1795361115966);
INSERT INTO items (item_id, media_type, id, document, assets, pubstatus, order_ms, embargoed_ms, stored_ms) VALUES (3, 'text', 'ice', '{"versioncreated":"2026-01-06T11:00:00Z","copyrightholder":"TT","product":[{"code":"FOTO","name":"FOTO"}],"headline":"En isbrytare till","type":"text","versionstored":"2026-11-22T16:26:08+01:00","representationtype":"complete","pubstatus":"usable","version":"1","profile":"PUBL","datetime":"2026-01-06T11:00:00Z","date":"2026-01-06","$standard":{"name":"TTNINJS","version":"1.6","schema":"https://tt.se/spec/ttninjs/ttninjs-schema_1.6.json"}}', '[]', 'usable', 1767697200000, NULL, 1795361168173);
INSERT INTO items (item_id, media_type, id, document, assets, pubstatus, order_ms, embargoed_ms, stored_ms) VALUES (5, 'text', 'later', '{"versioncreated":"2026-01-06T11:00:00Z","copyrightholder":"TT","product":[{"code":"FOTO","name":"FOTO"}],"headline":"Later","embargoed":"2035-01-01T00:00:00Z","type":"text","versionstored":"2026-11-22T16:26:08+01:00","representationtype":"complete","pubstatus":"usable","version":"1","profile":"PUBL","datetime":"2026-01-06T11:00:00Z","date":"2026-01-06","$standard":{"name":"TTNINJS","version":"1.6","schema":"https://tt.se/spec/ttninjs/ttninjs-schema_1.6.json"}}', '[]', 'usable', 1767697200000, 2051222400000, 1795361168209);
INSERT INTO items (item_id, media_type, id, document, assets, pubstatus, order_ms, embargoed_ms, stored_ms) VALUES (6, 'text', 'gone', '{"versioncreated":"2026-01-06T11:00:00Z","copyrightholder":"TT","product":[{"code":"FOTO","name":"FOTO"}],"headline":"Gone","type":"text","versionstored":"2026-11-22T16:26:28+01:00","representationtype":"complete","pubstatus":"canceled","version":"1","profile":"PUBL","datetime":"2026-01-06T11:00:00Z","date":"2026-01-06","$standard":{"name":"TTNINJS","version":"1.6","schema":"https://tt.se/spec/ttninjs/ttninjs-schema_1.6.json"}}', '[]', 'canceled', 1767697200000, NULL, 1795361188249);
INSERT INTO item_log (seq, media_type, id, change, at_ms) VALUES (1, 'text', 'story', 'created', 1795361115967);
INSERT INTO item_log (seq, media_type, id, change, at_ms) VALUES (2, 'image', 'old', 'created', 1795361115966);
INSERT INTO item_log (seq, media_type, id, change, at_ms) VALUES (3, 'text', 'ice', 'created', 1795361168173);
INSERT INTO item_log (seq, media_type, id, change, at_ms) VALUES (4, 'text', 'gone', 'created', 1795361168165);
INSERT INTO item_log (seq, media_type, id, change, at_ms) VALUES (5, 'text', 'later', 'created', 1795361168209);
INSERT INTO item_log (seq, media_type, id, change, at_ms) VALUES (6, 'text', 'gone', 'replaced', 1795361188249);
INSERT INTO users (user_name, active, roles) VALUES ('demo-editor', 1, '["ROLE_OFP","ROLE_MEDIEBANK"]');
INSERT INTO users (user_name, active, roles) VALUES ('demo-admin', 1, '["ROLE_OFP","ROLE_MEDIEBANK","ROLE_PROVIDER"]');
INSERT INTO users (user_name, active, roles) VALUES ('demo-buyer', 1, '["ROLE_OFP"]');
INSERT INTO users (user_name, active, roles) VALUES ('demo-service', 1, '["ROLE_OFP"]');
INSERT INTO api_keys (key_hash, user_name, name, created_ms) VALUES ('f25ce943300fe965fd1c6903e2e1258a782f87c04480d404a5c2bf0c47d39b5b', 'demo-editor', 'demo', 1795361116096);
INSERT INTO api_keys (key_hash, user_name, name, created_ms) VALUES ('62ce89a6aadadd6d1dab5bc29956916087a47b7a574e93d959a315c75a2ce3ff', 'demo-buyer', 'demo', 1795361116096);
DELETE FROM versions;
INSERT INTO versions (what, version) VALUES ('accounts', 0);
PRAGMA user_version = 1;
COMMIT;
