-- A database of schema 13 as it was made then, with rows in every table. It never changes.
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
CREATE TABLE item_log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    media_type TEXT NOT NULL,
    id TEXT NOT NULL,
    change TEXT NOT NULL,
    at_ms INTEGER NOT NULL
, previous INTEGER, fresh INTEGER NOT NULL DEFAULT 1) STRICT;
CREATE TABLE versions (
    what TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) STRICT;
CREATE TABLE organizations (
    organization_id INTEGER PRIMARY KEY,
    name TEXT,
    currency TEXT,
    country TEXT,
    address TEXT NOT NULL,
    phone_direct TEXT
, mail_domains TEXT) STRICT;
CREATE TABLE products (
    product_id INTEGER PRIMARY KEY,
    code TEXT NOT NULL UNIQUE,
    name TEXT,
    description TEXT
) STRICT;
CREATE TABLE agreements (
    agreement_id INTEGER PRIMARY KEY,
    organization_id INTEGER NOT NULL REFERENCES organizations,
    type TEXT NOT NULL,
    super INTEGER NOT NULL,
    name TEXT,
    description TEXT,
    expires_ms INTEGER,
    prepaid_total INTEGER,
    prepaid_remaining INTEGER CHECK (prepaid_remaining >= 0)
, approver TEXT) STRICT;
CREATE TABLE agreement_products (
    agreement_id INTEGER NOT NULL REFERENCES agreements ON DELETE CASCADE,
    product_id INTEGER NOT NULL REFERENCES products,
    PRIMARY KEY (agreement_id, product_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE licenses (
    uuid TEXT PRIMARY KEY,
    product_id INTEGER NOT NULL REFERENCES products,
    period TEXT,
    volume TEXT,
    price TEXT,
    description TEXT
) STRICT;
CREATE TABLE users (
    user_id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id INTEGER REFERENCES organizations,
    user_name TEXT NOT NULL UNIQUE,
    password TEXT,
    first_name TEXT,
    last_name TEXT,
    email_address TEXT,
    department TEXT,
    phone_direct TEXT,
    phone_mobile TEXT,
    roles TEXT NOT NULL,
    admin INTEGER NOT NULL,
    mediebank INTEGER NOT NULL,
    active INTEGER NOT NULL,
    service_account INTEGER NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX users_by_organization ON users (organization_id, user_id);
CREATE TABLE user_agreements (
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    agreement_id INTEGER NOT NULL REFERENCES agreements,
    PRIMARY KEY (user_id, agreement_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX user_agreements_by_agreement ON user_agreements (agreement_id);
CREATE TABLE api_keys (
    key_id INTEGER PRIMARY KEY AUTOINCREMENT,
    key_hash TEXT NOT NULL UNIQUE,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    name TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    revoked_ms INTEGER
, made_by_user INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX api_keys_by_user ON api_keys (user_id);
CREATE TABLE profiles (
    user_id INTEGER PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    profile TEXT NOT NULL
) STRICT;
CREATE TABLE devices (
    token TEXT PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    type TEXT NOT NULL,
    name TEXT,
    model TEXT NOT NULL,
    registered_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX devices_by_user ON devices (user_id);
CREATE TABLE clients (
    client_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    secret TEXT,
    redirect_uris TEXT NOT NULL,
    grants TEXT NOT NULL,
    active INTEGER NOT NULL,
    created_ms INTEGER NOT NULL
, scopes_enforced INTEGER NOT NULL DEFAULT 0, access_token_s INTEGER) STRICT;
CREATE TABLE families (
    family_id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    client_id TEXT NOT NULL REFERENCES clients ON DELETE CASCADE,
    scopes TEXT NOT NULL,
    auth_ms INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL
, lifetime_from_ms INTEGER) STRICT;
CREATE INDEX families_by_user ON families (user_id, client_id, family_id);
CREATE INDEX families_by_end ON families (expires_ms);
CREATE TABLE codes (
    code_hash TEXT PRIMARY KEY,
    family_id INTEGER NOT NULL REFERENCES families ON DELETE CASCADE,
    redirect_uri TEXT,
    challenge TEXT,
    nonce TEXT,
    expires_ms INTEGER NOT NULL,
    used_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX codes_by_family ON codes (family_id);
CREATE TABLE access_tokens (
    token_hash TEXT PRIMARY KEY,
    family_id INTEGER NOT NULL REFERENCES families ON DELETE CASCADE,
    scopes TEXT NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX access_tokens_by_family ON access_tokens (family_id);
CREATE INDEX access_tokens_by_end ON access_tokens (expires_ms);
CREATE TABLE refresh_tokens (
    token_hash TEXT PRIMARY KEY,
    family_id INTEGER NOT NULL REFERENCES families ON DELETE CASCADE,
    expires_ms INTEGER NOT NULL,
    used_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX refresh_tokens_by_family ON refresh_tokens (family_id, used_ms);
CREATE INDEX refresh_tokens_by_end ON refresh_tokens (expires_ms);
CREATE TABLE sessions (
    session_hash TEXT PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    auth_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_by_end ON sessions (expires_ms);
CREATE TABLE signing_keys (
    kid TEXT PRIMARY KEY,
    pkcs8 BLOB NOT NULL,
    created_ms INTEGER NOT NULL,
    retired_ms INTEGER
) STRICT;
CREATE TABLE orders (
    order_id INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id INTEGER NOT NULL REFERENCES organizations,
    user_id INTEGER NOT NULL REFERENCES users,
    agreement_id INTEGER NOT NULL REFERENCES agreements,
    media_type TEXT NOT NULL,
    item_id TEXT NOT NULL,
    headline TEXT NOT NULL,
    byline TEXT NOT NULL,
    source TEXT NOT NULL,
    agreement TEXT NOT NULL,
    product TEXT NOT NULL,
    license TEXT,
    created_ms INTEGER NOT NULL,
    downloadable_until_ms INTEGER NOT NULL,
    reporting_deadline_ms INTEGER,
    reported_ms INTEGER,
    approved INTEGER,
    manual INTEGER NOT NULL,
    invoice_text TEXT
) STRICT;
CREATE INDEX orders_by_item ON orders
    (organization_id, media_type, item_id, agreement_id, downloadable_until_ms);
CREATE INDEX orders_by_organization ON orders (organization_id, order_id);
CREATE INDEX orders_by_user ON orders (user_id, order_id);
CREATE TABLE account_log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    what TEXT NOT NULL,
    id TEXT NOT NULL,
    at_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE state (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE channels (
    channel_id INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    name TEXT NOT NULL,
    method TEXT NOT NULL,
    formats TEXT NOT NULL,
    settings TEXT NOT NULL,
    active INTEGER NOT NULL,
    created_ms INTEGER NOT NULL, made_by_user INTEGER NOT NULL DEFAULT 0,
    UNIQUE (user_id, name)
) STRICT;
CREATE TABLE deliveries (
    delivery_id TEXT PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    organization_id INTEGER NOT NULL REFERENCES organizations,
    channel TEXT NOT NULL,
    media_type TEXT NOT NULL,
    item_id TEXT NOT NULL,
    version TEXT NOT NULL,
    agreement_id INTEGER,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    claim TEXT,
    next_ms INTEGER,
    error TEXT,
    created_ms INTEGER NOT NULL,
    queued_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    delivered_ms INTEGER, life TEXT,
    UNIQUE (user_id, channel, media_type, item_id, version)
) STRICT;
CREATE INDEX deliveries_due ON deliveries (next_ms) WHERE next_ms IS NOT NULL;
CREATE INDEX deliveries_waiting ON deliveries (organization_id) WHERE next_ms IS NOT NULL;
CREATE INDEX deliveries_ended ON deliveries (updated_ms) WHERE next_ms IS NULL;
CREATE INDEX deliveries_by_organization ON deliveries (organization_id, delivery_id);
CREATE INDEX deliveries_by_user ON deliveries (user_id, delivery_id);
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
    seq INTEGER NOT NULL, life TEXT, freed INTEGER NOT NULL DEFAULT 0,
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
, life TEXT) STRICT;
CREATE INDEX outbox_due ON outbox (lane, next_ms) WHERE next_ms IS NOT NULL;
CREATE INDEX outbox_by_user ON outbox (user_id, lane, number) WHERE next_ms IS NOT NULL;
CREATE INDEX outbox_parked ON outbox (updated_ms) WHERE next_ms IS NULL;
CREATE TABLE cursors (
    name TEXT PRIMARY KEY,
    seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
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
CREATE INDEX queued_items_freed ON queued_items (freed);
CREATE INDEX queued_items_held ON queued_items (life) WHERE life IS NOT NULL;
CREATE INDEX outbox_sending ON outbox (life) WHERE state = 'sending';
CREATE TABLE calls (
    session_hash TEXT PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    calls TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE failed_logins (
    key_hash TEXT PRIMARY KEY,
    failures INTEGER NOT NULL,
    since_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX failed_logins_by_time ON failed_logins (since_ms);
CREATE TABLE "consents" (
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    client_id TEXT NOT NULL REFERENCES clients ON DELETE CASCADE,
    response_type TEXT NOT NULL,
    scopes TEXT NOT NULL,
    given_ms INTEGER NOT NULL,
    PRIMARY KEY (user_id, client_id, response_type)
) STRICT, WITHOUT ROWID;
CREATE TABLE user_requests (
    user_id INTEGER PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    organization_id INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    requests INTEGER NOT NULL
) STRICT;
CREATE INDEX user_requests_by_organization ON user_requests (organization_id, since_ms);
CREATE TABLE audit_log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms INTEGER NOT NULL,
    action TEXT NOT NULL,
    outcome TEXT NOT NULL,
    user_id INTEGER,
    user_name TEXT,
    credential TEXT NOT NULL,
    credential_id TEXT,
    address TEXT,
    object TEXT,
    detail TEXT,
    count INTEGER NOT NULL
) STRICT;
CREATE INDEX audit_log_by_time ON audit_log (at_ms);
CREATE TABLE mail_counts (
    subject TEXT NOT NULL,
    hour INTEGER NOT NULL,
    mails INTEGER NOT NULL,
    PRIMARY KEY (subject, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX mail_counts_by_hour ON mail_counts (hour);
CREATE TABLE mail_recipients (
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    address TEXT NOT NULL,
    token_hash TEXT,
    told_ms INTEGER,
    asked_ms INTEGER,
    confirmed_ms INTEGER,
    refused_ms INTEGER,
    used_ms INTEGER NOT NULL,
    PRIMARY KEY (user_id, address)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX mail_recipients_by_token ON mail_recipients (token_hash);
CREATE INDEX mail_recipients_by_use ON mail_recipients (used_ms);
INSERT OR REPLACE INTO items (item_id, media_type, id, document, assets, pubstatus, order_ms, embargoed_ms, stored_ms) VALUES (1, 'text', 'story', '{"headline":"Is i skärgården","body_text":"Vintern kom tidigt.","versioncreated":"2026-01-05T11:00:00Z","copyrightholder":"TT","product":[{"code":"FOTO","name":"FOTO"}],"type":"text","versionstored":"2026-11-22T16:25:15+01:00","representationtype":"complete","pubstatus":"usable","version":"1","profile":"PUBL","datetime":"2026-01-05T11:00:00Z","date":"2026-01-05","$standard":{"name":"TTNINJS","version":"1.6","schema":"https://tt.se/spec/ttninjs/ttninjs-schema_1.6.json"}}', '[]', 'usable', 1767610800000, NULL, 1795361115967);
INSERT OR REPLACE INTO items (item_id, media_type, id, document, assets, pubstatus, order_ms, embargoed_ms, stored_ms) VALUES (2, 'image', 'old', '{"headline":"Isbrytaren Oden","versioncreated":"2026-01-05T10:00:00Z","copyrightholder":"TT","product":[{"code":"FOTO","name":"FOTO"}],"type":"picture","versionstored":"2026-11-22T16:25:15+01:00","representationtype":"complete","pubstatus":"usable","version":"1","profile":"PUBL","datetime":"2026-01-05T10:00:00Z","date":"2026-01-05","mimetype":"image/jpeg","originaltransmissionreference":"old","altids":{"originaltransmissionreference":"old"},"$standard":{"name":"TTNINJS","version":"1.6","schema":"https://tt.se/spec/ttninjs/ttninjs-schema_1.6.json"}}', '[{"name":{"variant":"Normal","usage":"Hires"},"blob":"0c4b45c632dfd054a1a7310d61bc09ee91f6780645e09ac59ac2c811f641b1f5","length":1190,"stored":{"width":96,"height":64},"orientation":1,"progressive":false,"components":3}]', 'usable', 1767607200000, NULL, 1795361115966);
INSERT OR REPLACE INTO items (item_id, media_type, id, document, assets, pubstatus, order_ms, embargoed_ms, stored_ms) VALUES (3, 'text', 'ice', '{"versioncreated":"2026-01-06T11:00:00Z","copyrightholder":"TT","product":[{"code":"FOTO","name":"FOTO"}],"headline":"En isbrytare till","type":"text","versionstored":"2026-11-22T16:26:08+01:00","representationtype":"complete","pubstatus":"usable","version":"1","profile":"PUBL","datetime":"2026-01-06T11:00:00Z","date":"2026-01-06","$standard":{"name":"TTNINJS","version":"1.6","schema":"https://tt.se/spec/ttninjs/ttninjs-schema_1.6.json"}}', '[]', 'usable', 1767697200000, NULL, 1795361168173);
INSERT OR REPLACE INTO items (item_id, media_type, id, document, assets, pubstatus, order_ms, embargoed_ms, stored_ms) VALUES (5, 'text', 'later', '{"versioncreated":"2026-01-06T11:00:00Z","copyrightholder":"TT","product":[{"code":"FOTO","name":"FOTO"}],"headline":"Later","embargoed":"2035-01-01T00:00:00Z","type":"text","versionstored":"2026-11-22T16:26:08+01:00","representationtype":"complete","pubstatus":"usable","version":"1","profile":"PUBL","datetime":"2026-01-06T11:00:00Z","date":"2026-01-06","$standard":{"name":"TTNINJS","version":"1.6","schema":"https://tt.se/spec/ttninjs/ttninjs-schema_1.6.json"}}', '[]', 'usable', 1767697200000, 2051222400000, 1795361168209);
INSERT OR REPLACE INTO items (item_id, media_type, id, document, assets, pubstatus, order_ms, embargoed_ms, stored_ms) VALUES (6, 'text', 'gone', '{"versioncreated":"2026-01-06T11:00:00Z","copyrightholder":"TT","product":[{"code":"FOTO","name":"FOTO"}],"headline":"Gone","type":"text","versionstored":"2026-11-22T16:26:28+01:00","representationtype":"complete","pubstatus":"canceled","version":"1","profile":"PUBL","datetime":"2026-01-06T11:00:00Z","date":"2026-01-06","$standard":{"name":"TTNINJS","version":"1.6","schema":"https://tt.se/spec/ttninjs/ttninjs-schema_1.6.json"}}', '[]', 'canceled', 1767697200000, NULL, 1795361188249);
INSERT OR REPLACE INTO item_log (seq, media_type, id, change, at_ms, previous, fresh) VALUES (1, 'text', 'story', 'created', 1795361115967, NULL, 1);
INSERT OR REPLACE INTO item_log (seq, media_type, id, change, at_ms, previous, fresh) VALUES (2, 'image', 'old', 'created', 1795361115966, NULL, 1);
INSERT OR REPLACE INTO item_log (seq, media_type, id, change, at_ms, previous, fresh) VALUES (3, 'text', 'ice', 'created', 1795361168173, NULL, 1);
INSERT OR REPLACE INTO item_log (seq, media_type, id, change, at_ms, previous, fresh) VALUES (4, 'text', 'gone', 'created', 1795361168165, NULL, 1);
INSERT OR REPLACE INTO item_log (seq, media_type, id, change, at_ms, previous, fresh) VALUES (5, 'text', 'later', 'created', 1795361168209, NULL, 1);
INSERT OR REPLACE INTO item_log (seq, media_type, id, change, at_ms, previous, fresh) VALUES (6, 'text', 'gone', 'replaced', 1795361188249, 4, 0);
INSERT OR REPLACE INTO versions (what, version) VALUES ('accounts', 0);
INSERT OR REPLACE INTO organizations (organization_id, name, currency, country, address, phone_direct, mail_domains) VALUES (1, 'Demo desk', 'SEK', 'SE', '{"visit":{"street":"Demo street 1","zipCode":"000 00","city":"Demo"}}', '+46 8 465 004 00', NULL);
INSERT OR REPLACE INTO organizations (organization_id, name, currency, country, address, phone_direct, mail_domains) VALUES (2, 'Demo agency', 'SEK', 'SE', '{"visit":{"street":"Demo street 2","zipCode":"000 00","city":"Demo"},"billing":{"box":"2","zipCode":"000 00","city":"Demo"}}', '+46 8 465 004 10', NULL);
INSERT OR REPLACE INTO products (product_id, code, name, description) VALUES (10, 'FOTO', 'Photo', 'Demo product: the photographs of the demo archive');
INSERT OR REPLACE INTO agreements (agreement_id, organization_id, type, super, name, description, expires_ms, prepaid_total, prepaid_remaining, approver) VALUES (1001, 1, 'Subscription', 1, 'Demo subscription', 'Demo agreement: every item of the archive, without a limit, so that your own pictures can be tried too', 4102444800000, NULL, NULL, NULL);
INSERT OR REPLACE INTO agreements (agreement_id, organization_id, type, super, name, description, expires_ms, prepaid_total, prepaid_remaining, approver) VALUES (1002, 2, 'Prepaid', 0, 'Demo prepaid', 'Demo agreement: ten downloads that are paid for', 4102444800000, 10, 10, NULL);
INSERT OR REPLACE INTO agreements (agreement_id, organization_id, type, super, name, description, expires_ms, prepaid_total, prepaid_remaining, approver) VALUES (1003, 2, 'Direct', 0, 'Demo direct', 'Demo agreement: every download is an order that somebody approves', NULL, NULL, NULL, NULL);
INSERT OR REPLACE INTO agreements (agreement_id, organization_id, type, super, name, description, expires_ms, prepaid_total, prepaid_remaining, approver) VALUES (1004, 1, 'Normal', 0, 'Demo normal', 'Demo agreement: every download is an order that somebody approves', NULL, NULL, NULL, NULL);
INSERT OR REPLACE INTO agreement_products (agreement_id, product_id) VALUES (1001, 10);
INSERT OR REPLACE INTO agreement_products (agreement_id, product_id) VALUES (1002, 10);
INSERT OR REPLACE INTO agreement_products (agreement_id, product_id) VALUES (1003, 10);
INSERT OR REPLACE INTO agreement_products (agreement_id, product_id) VALUES (1004, 10);
INSERT OR REPLACE INTO licenses (uuid, product_id, period, volume, price, description) VALUES ('2c916e2d-b755-446d-9e18-d636a1447141', 10, 'Single', '1', '250.00', 'Demo licence: one publication');
INSERT OR REPLACE INTO licenses (uuid, product_id, period, volume, price, description) VALUES ('2cc67f22-3921-40f5-b159-a62f9a997cae', 10, 'Month', '1-100', '1200.00', 'Demo licence: a month, up to 100 photographs');
INSERT OR REPLACE INTO licenses (uuid, product_id, period, volume, price, description) VALUES ('d1b5418c-c323-4aa1-923d-d7d5713bf31e', 10, 'Year', 'unlimited', '9600.00', 'Demo licence: a year, any number of photographs');
INSERT OR REPLACE INTO users (user_id, organization_id, user_name, password, first_name, last_name, email_address, department, phone_direct, phone_mobile, roles, admin, mediebank, active, service_account, created_ms) VALUES (101, 1, 'demo-editor', '$argon2id$v=19$m=19456,t=2,p=1$rsV27FHMtBN7puzLDBgKIA$/EVfK+szgm1NkOtRIxibATrdbD0yem6R3JInkAtWPUs', 'Demo', 'Editor', 'demo-editor@demo-desk.example', 'Demo picture desk', '+46 8 465 004 01', NULL, '["ROLE_OFP","ROLE_MEDIEBANK"]', 0, 1, 1, 0, 1795361116096);
INSERT OR REPLACE INTO users (user_id, organization_id, user_name, password, first_name, last_name, email_address, department, phone_direct, phone_mobile, roles, admin, mediebank, active, service_account, created_ms) VALUES (102, 1, 'demo-admin', '$argon2id$v=19$m=19456,t=2,p=1$bJ4ZPwR/sHxnywakVEnBPQ$7SFgPldjDM2H3WlCKwB4HoVLlyttjk1VgKZgchFUXCQ', 'Demo', 'Admin', 'demo-admin@demo-desk.example', 'Demo picture desk', '+46 8 465 004 02', NULL, '["ROLE_OFP","ROLE_MEDIEBANK","ROLE_PROVIDER"]', 1, 1, 1, 0, 1795361116096);
INSERT OR REPLACE INTO users (user_id, organization_id, user_name, password, first_name, last_name, email_address, department, phone_direct, phone_mobile, roles, admin, mediebank, active, service_account, created_ms) VALUES (103, 2, 'demo-buyer', '$argon2id$v=19$m=19456,t=2,p=1$4CuSi9boAa8StGnUgq3N2Q$YAnEVJKV1KDmIGFaeR5ddSb1e7QGwKUA1HW3XGZOHAw', 'Demo', 'Buyer', 'demo-buyer@demo-agency.example', 'Demo purchasing', '+46 8 465 004 11', NULL, '["ROLE_OFP"]', 0, 0, 1, 0, 1795361116096);
INSERT OR REPLACE INTO users (user_id, organization_id, user_name, password, first_name, last_name, email_address, department, phone_direct, phone_mobile, roles, admin, mediebank, active, service_account, created_ms) VALUES (104, 1, 'demo-service', '$argon2id$v=19$m=19456,t=2,p=1$uz7eb3MSYDKnMAAsf/3cWA$btqOhS5EI2b2aTp3QaPIhE9cpyeCsQdfXx5LBBzNRCw', 'Demo', 'Service', NULL, NULL, NULL, NULL, '["ROLE_OFP"]', 0, 1, 1, 1, 1795361116096);
INSERT OR REPLACE INTO user_agreements (user_id, agreement_id) VALUES (101, 1001);
INSERT OR REPLACE INTO user_agreements (user_id, agreement_id) VALUES (102, 1001);
INSERT OR REPLACE INTO user_agreements (user_id, agreement_id) VALUES (104, 1001);
INSERT OR REPLACE INTO user_agreements (user_id, agreement_id) VALUES (103, 1002);
INSERT OR REPLACE INTO user_agreements (user_id, agreement_id) VALUES (103, 1003);
INSERT OR REPLACE INTO user_agreements (user_id, agreement_id) VALUES (102, 1004);
INSERT OR REPLACE INTO api_keys (key_id, key_hash, user_id, name, created_ms, revoked_ms, made_by_user) VALUES (1, 'f25ce943300fe965fd1c6903e2e1258a782f87c04480d404a5c2bf0c47d39b5b', 101, 'demo', 1795361116096, NULL, 0);
INSERT OR REPLACE INTO api_keys (key_id, key_hash, user_id, name, created_ms, revoked_ms, made_by_user) VALUES (2, '62ce89a6aadadd6d1dab5bc29956916087a47b7a574e93d959a315c75a2ce3ff', 103, 'demo', 1795361116096, NULL, 0);
INSERT OR REPLACE INTO profiles (user_id, profile) VALUES (101, '{"layout":"wide"}');
INSERT OR REPLACE INTO devices (token, user_id, type, name, model, registered_ms) VALUES ('token-1', 101, 'android', 'phone', 'Pixel', 1795361168345);
INSERT OR REPLACE INTO clients (client_id, name, secret, redirect_uris, grants, active, created_ms, scopes_enforced, access_token_s) VALUES ('demo-client', 'Demo client', '$argon2id$v=19$m=19456,t=2,p=1$mlwgoIR18GCwfECGPdqSUg$F/E4QeaLaKlnE7HvLWl0uKI6jqQgA4NWnEi0LeghvY4', '["http://127.0.0.1:9000/cb","http://localhost:9000/cb"]', '["authorization_code","password","refresh_token","implicit"]', 1, 1795361116096, 0, NULL);
INSERT OR REPLACE INTO clients (client_id, name, secret, redirect_uris, grants, active, created_ms, scopes_enforced, access_token_s) VALUES ('demo-app', 'Demo app', NULL, '["http://127.0.0.1:9000/cb","http://localhost:9000/cb","com.example.demo:/cb"]', '["authorization_code","refresh_token","implicit"]', 1, 1795361116096, 0, NULL);
INSERT OR REPLACE INTO families (family_id, user_id, client_id, scopes, auth_ms, created_ms, expires_ms, lifetime_from_ms) VALUES (1, 101, 'demo-client', 'openid roles email user customer profile collection', 1795361140834, 1795361140834, 4102444800000, NULL);
INSERT OR REPLACE INTO codes (code_hash, family_id, redirect_uri, challenge, nonce, expires_ms, used_ms) VALUES ('5694d08a2e53ffcae0c3103e5ad6f6076abd960eb1f8a56577040bc1028f702b', 1, 'http://127.0.0.1:9000/cb', NULL, NULL, 4102444800000, NULL);
INSERT OR REPLACE INTO access_tokens (token_hash, family_id, scopes, expires_ms) VALUES ('9edfe6617f7855926a522772463ddd4a031aa26b635a15e915b2679325ca4ba0', 1, 'openid roles email user customer profile collection', 4102444800000);
INSERT OR REPLACE INTO refresh_tokens (token_hash, family_id, expires_ms, used_ms) VALUES ('913d107541485e1c32c80a4a5279ee205374dd37b144b057f64d902eff7e696b', 1, 4102444800000, NULL);
INSERT OR REPLACE INTO sessions (session_hash, user_id, auth_ms, expires_ms) VALUES ('3f3af1ecebbd1410ab417ec0d27bbfcb5d340e177ae159b59fc8626c2dfd9175', 101, 1795361140000, 4102444800000);
INSERT OR REPLACE INTO signing_keys (kid, pkcs8, created_ms, retired_ms) VALUES ('AuiXBUZ-9m380K2fsz099zOkhRi2l8NjOCsK18NTm6I', x'308204be020100300d06092a864886f70d0101010500048204a8308204a40201000282010100aca337185f71a65e998788be9bf3a7afb4bd9c1f2286d53ae09644a2886e893eb3212a65cc502f739d81b139ebf81d0858e083636adee8f1974f77ccf5b788194bd4efce352cb66917483e2a3a96b2bb282fa5bd7bf9c7926311c8d862056acb1ed20a0657cf5b477229dde694242f3729205fe0d9fc5ee531a1bbf5e043b76775421ee38505be425fce82e864f6ad01722238b7c9fae0c06bd0ffc74d2f4654342c51121f01f4405055168cfa793fac4f64064cdfbc8a247938ea1dceae3e32391c3592b9407f9d265adf970e77b4e7eddb2a9a97db46886cbb8bc4f3cb8ec9aa637d333a6aa7e835abc19309d881aca7172e1af1c2d9e1b00289af5e5b8a9d0203010001028201001fc91b534afb6f60da8eb85034018c1dcf3edbf8659082c108e9d1f04503691498c1a1ff453b7c4922b666cd9dd33c71357ffce0f8a3db2ae42b9708af3320055c4f73e9b923a6e0398fad16745c1bc356d653034cc8c40481661c5f2ec9058d297b0daa764f70e47a32182fa495f6f5868675f0bde1f80ce5f2fbdafcf42ad7bd2e7632fedbce468029169c42b77e7bf991070ab1687e2c0cb24798ee627d4d95ed4bc4b407eb609ca4eb5e621193a5c2f052742ad1d08d7e850c5114e086e3730b1a425dd576db197999417ede29a57afaa7a515aac2d6af9aa12e0b4f255ba32b3dc39699ce6b3912b5e90cdeca2e4dffbbdd4dbffdd15ecb32d5cc8e043702818100ec5e600ec4b0aa7d3350f7bd53326a46f81a035ec32f4ed746f4e04b4ea88fe9188d4fa71a0c78be668300b7cd3b89641c893f79aa968027913ada8f1a7bb896c2fc3679bed76000c6fcb31f44d6a15d68ee7bc9e99b38a5771ae74994832b02aa7361e0caee7cd63f0cef2d2660eb59af57d0f7693af552b8bf33b15578c9f302818100baf9cd3f81fe78bd794cd903178ae3938e27b8dc0e603a23e4aa21e602818007ba774e8421ea73c357a1fd2701db0ddd3761e43af51eab53c5caadfe76e460ecfc043d65f7db9418391f4bbfa1d5ef62ead79a35a68534f79519861e54a906256b8120e50f7c66b501b500d8294aa6b0a71b07884b8fa2974a6ab03bce866d2f02818100a8e542c42abd8605525ebfb733b4a9862e8fffea7d93d745327995af99f40e68e3d74d9c3c9bbec7665ea36bb2a5a125bcd2415e018beae4dafc6fe1a36dd6573bda965e660465a0088fd6ba38291942b2d0fdf9280876f09cebc76aa74916b99fec347b38e632a3b087e07ba599c971db3de79e723de3c0092cee95ff5a010b02818052bb112c1692c84dde0c38c17b7b42f319254e50603407c5b5f9e981e27df66e74fd314a99cf2965b7b2bf56b12581deee106c7201df8e23451347259ee9b25169b95e896dc044a8eb2d83d0c904e62538902975afb6a5171f6be9c225e79c0696a8ce2b4c4cd90d22323aab6aa9d353babce4fa53a4bc6680d0f025a65e28950281810098dd23f3a8d05837d2c5ea437f4225ecabb16f15863c4f51028c4d21ee27ea637628a1abd809810596a80a63639b878282d03135e32e9d53c626fd2d9cac8af10695b91e36e155502d59abd4b8a453dcf5432b3d6cf5cbdcc6cf97a2128f7eca42d3a583626b6102de74f4c4f58c486bd5f259de9cf97816053e96c8125ce74b', 1795361116798, NULL);
INSERT OR REPLACE INTO orders (order_id, organization_id, user_id, agreement_id, media_type, item_id, headline, byline, source, agreement, product, license, created_ms, downloadable_until_ms, reporting_deadline_ms, reported_ms, approved, manual, invoice_text) VALUES (1, 1, 101, 1001, 'image', 'old', 'Isbrytaren Oden', '', '', '{"id":1001,"name":"Demo subscription","type":"Subscription"}', '{"id":10,"code":"FOTO","name":"Photo","description":"Demo product: the photographs of the demo archive"}', NULL, 1795361140697, 4102444800000, 1800545140697, NULL, NULL, 0, NULL);
INSERT OR REPLACE INTO account_log (seq, what, id, at_ms) VALUES (1, 'user', '101', 1795361140000);
INSERT OR REPLACE INTO state (name, value) VALUES ('archive id', 'cb4c88306c4d64581ad8665254240526');
INSERT OR REPLACE INTO state (name, value) VALUES ('notifications-alive', '2026-11-22T15:26:28Z');
INSERT OR REPLACE INTO state (name, value) VALUES ('unsubscribe-key', 'Wpc-6jfF1_T8cd_AYxxmbfenGKWnL89rzHcWn55MtvY');
INSERT OR REPLACE INTO channels (channel_id, user_id, name, method, formats, settings, active, created_ms, made_by_user) VALUES (1, 101, 'demo-download', 'download', '["_NormalHires.jpg",".json",".xml"]', '{}', 1, 1795361116096, 0);
INSERT OR REPLACE INTO channels (channel_id, user_id, name, method, formats, settings, active, created_ms, made_by_user) VALUES (2, 101, 'demo-folder', 'directory', '["_NormalHires.jpg",".json"]', '{"path":"demo-editor"}', 1, 1795361116096, 0);
INSERT OR REPLACE INTO channels (channel_id, user_id, name, method, formats, settings, active, created_ms, made_by_user) VALUES (3, 101, 'demo-mail', 'email', '["_NormalPreview.jpg",".json"]', '{"to":"demo-editor@demo-desk.example"}', 1, 1795361116096, 0);
INSERT OR REPLACE INTO channels (channel_id, user_id, name, method, formats, settings, active, created_ms, made_by_user) VALUES (4, 101, 'agency-ftp', 'ftp', '[".json"]', '{"host":"ftp.agency.example","password":"channel-password-of-schema-9","username":"desk"}', 1, 1795361116096, 1);
INSERT OR REPLACE INTO deliveries (delivery_id, user_id, organization_id, channel, media_type, item_id, version, agreement_id, state, attempts, claim, next_ms, error, created_ms, queued_ms, updated_ms, delivered_ms, life) VALUES ('01a203dd-5c0a-711a-97bd-9530a4d06165', 101, 1, 'demo-folder', 'image', 'old', 'OU4wewmFYU_ZUfZuFGvjHw', NULL, 'delivered', 1, NULL, NULL, NULL, 1795361168393, 1795361168393, 4102444800000, 1795361168473, NULL);
INSERT OR REPLACE INTO notifications (number, notification_id, user_id, type, media_type, title, q, p, agr, tr, email, schedule, timezone, created_ms, after_seq, active_ms, next_ms) VALUES (1, 'be01ca24-0656-4bcd-9258-8d00caa20bda', 101, 'stream', '_all', 'Ice', 'isbrytare', '[]', '[]', NULL, NULL, NULL, NULL, 1795361143464, 2, 4102444800000, NULL);
INSERT OR REPLACE INTO notifications (number, notification_id, user_id, type, media_type, title, q, p, agr, tr, email, schedule, timezone, created_ms, after_seq, active_ms, next_ms) VALUES (2, 'ebaf9f4a-531e-4cde-8524-3fdac60e9ed9', 101, 'scheduled-email', 'image', 'Mail', 'isbrytare', '[]', '[]', NULL, 'a@demo.example', '0 7 * * *', 'Europe/Stockholm', 1795361143538, 2, NULL, 4102444800000);
INSERT OR REPLACE INTO notifications (number, notification_id, user_id, type, media_type, title, q, p, agr, tr, email, schedule, timezone, created_ms, after_seq, active_ms, next_ms) VALUES (3, '17920f11-1445-4ab3-9bf9-8a89b869e007', 101, 'email', 'image', 'Now', 'isbrytare', '[]', '[]', NULL, 'a@demo.example', NULL, NULL, 1795361143601, 2, NULL, NULL);
INSERT OR REPLACE INTO notification_log (seq, number) VALUES (3, 3);
INSERT OR REPLACE INTO queued_items (place, number, media_type, id, seq, life, freed) VALUES (1, 1, 'text', 'ice', 3, NULL, 1);
INSERT OR REPLACE INTO embargoed_items (media_type, id, until_ms) VALUES ('text', 'later', 2051222400000);
INSERT OR REPLACE INTO outbox (message_id, lane, number, user_id, content, state, attempts, next_ms, error, created_ms, queued_ms, updated_ms, life) VALUES ('01a203dd-5c0a-711a-97bd-9530a4d06199', 'mail', 3, 101, '{"kind":"item","item":"text/ice"}', 'parked', 20, NULL, 'nobody answered', 1795361168393, 1795361168393, 4102444800000, NULL);
INSERT OR REPLACE INTO cursors (name, seq) VALUES ('matching', 6);
INSERT OR REPLACE INTO cursors (name, seq) VALUES ('purging POST http://cdn.example/purge', 6);
INSERT OR REPLACE INTO cursors (name, seq) VALUES ('streams', 0);
INSERT OR REPLACE INTO collections (number, collection_id, user_id, name, public, created_ms, accessed_ms, modified_ms) VALUES (1, 'c6ee16b9-76f6-45a9-b662-f6cdc9c9fd18', 101, 'Winter', 0, 1795361143652, 1795361143652, 1795361188249);
INSERT OR REPLACE INTO collection_items (number, media_type, id, position, expires_ms) VALUES (1, 'image', 'old', 1, NULL);
INSERT OR REPLACE INTO removed_items (place, number, media_type, id, headline, description, removed_ms) VALUES (1, 1, 'text', 'gone', 'Gone', NULL, 1795361188249);
INSERT OR REPLACE INTO purges (purge_id, lane, key, due_ms, since_ms, again, refused) VALUES (1, 'POST http://cdn.example/purge', 'image-old', 1795361188249, 1795361188249, 1, 0);
INSERT OR REPLACE INTO nodes (life, node, role, beat, followed, seen_ms) VALUES ('0d4f6d0e-6c1c-4d5c-8a55-3f1d0a1b2c3d', '6a1f8c52-1c77-4f0c-9a3e-5b2d7e8f9a01', 'all', 7, 6, 1795361188249);
INSERT OR REPLACE INTO leases (name, life) VALUES ('sweeping', '0d4f6d0e-6c1c-4d5c-8a55-3f1d0a1b2c3d');
INSERT OR REPLACE INTO calls (session_hash, calls) VALUES ('3f3af1ecebbd1410ab417ec0d27bbfcb5d340e177ae159b59fc8626c2dfd9175', '[]');
INSERT OR REPLACE INTO failed_logins (key_hash, failures, since_ms) VALUES ('9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08', 2, 1795361188249);
INSERT OR REPLACE INTO consents (user_id, client_id, response_type, scopes, given_ms) VALUES (101, 'demo-client', 'code', '["openid"]', 1795361140000);
INSERT OR REPLACE INTO user_requests (user_id, organization_id, since_ms, requests) VALUES (101, 2, 1795361188249, 1);
INSERT OR REPLACE INTO audit_log (seq, at_ms, action, outcome, user_id, user_name, credential, credential_id, address, object, detail, count) VALUES (1, 1795361188249, 'login', 'ok', 101, 'demo-editor', 'password', NULL, '127.0.0.1', NULL, NULL, 1);
INSERT OR REPLACE INTO mail_counts (subject, hour, mails) VALUES ('user 101', 498711, 1);
INSERT OR REPLACE INTO mail_recipients (user_id, address, token_hash, told_ms, asked_ms, confirmed_ms, refused_ms, used_ms) VALUES (101, 'desk@example.com', NULL, 1795361188249, NULL, 1795361188249, NULL, 1795361188249);
ALTER TABLE deliveries ADD COLUMN crop TEXT;
ALTER TABLE nodes ADD COLUMN about TEXT NOT NULL DEFAULT '{}';
ALTER TABLE nodes ADD COLUMN faults TEXT NOT NULL DEFAULT '';
UPDATE deliveries SET crop = '-crop_w20_h10_x1_y2';
UPDATE nodes SET about = '{"version":"0.1.0"}', faults = 'store';
CREATE TABLE password_links (
    link_id TEXT PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    kind TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX password_links_by_user ON password_links (user_id, created_ms);
CREATE INDEX password_links_by_expiry ON password_links (expires_ms);
CREATE TABLE browsers (
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    browser_hash TEXT NOT NULL,
    seen_ms INTEGER NOT NULL,
    PRIMARY KEY (user_id, browser_hash)
) STRICT, WITHOUT ROWID;
ALTER TABLE sessions ADD COLUMN browser TEXT;
ALTER TABLE sessions ADD COLUMN address TEXT;
ALTER TABLE sessions ADD COLUMN last_used_ms INTEGER;
ALTER TABLE api_keys ADD COLUMN last_used_ms INTEGER;
ALTER TABLE families ADD COLUMN last_used_ms INTEGER;
INSERT OR REPLACE INTO password_links (link_id, user_id, kind, created_ms, expires_ms) VALUES ('q7gkJ2m0R1uV5dXw', 104, 'invitation', 1795361188249, 4102444800000);
INSERT OR REPLACE INTO browsers (user_id, browser_hash, seen_ms) VALUES (101, '5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9', 1795361188249);
UPDATE sessions SET browser = 'Firefox, Linux', address = '127.0.0.1', last_used_ms = 1795361188249;
UPDATE api_keys SET last_used_ms = 1795361188249 WHERE key_id = 1;
UPDATE families SET last_used_ms = 1795361188249;
CREATE TABLE item_rights (
    change_id INTEGER PRIMARY KEY AUTOINCREMENT,
    media_type TEXT NOT NULL,
    id TEXT NOT NULL,
    rights TEXT NOT NULL,
    changed_ms INTEGER NOT NULL,
    user_name TEXT
) STRICT;
CREATE INDEX item_rights_by_item ON item_rights (media_type, id, change_id);
INSERT OR REPLACE INTO item_rights (change_id, media_type, id, rights, changed_ms, user_name) VALUES (1, 'image', 'old', '{"jobid":"7"}', 1795361188249, 'demo-editor');
PRAGMA user_version = 13;
COMMIT;
