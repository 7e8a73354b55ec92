-- The schema of an archive in SQLite. The one of PostgreSQL has the same tables and columns.
--
-- Times are milliseconds since 1970 (`_ms`), durations seconds (`_s`). Tokens, codes, sessions and keys are
-- stored as hashes. Lists and objects that no statement looks into are JSON texts.


-- The archive ------------------------------------------------------------------------------------

-- Facts about the archive and the progress of background jobs, by name.
CREATE TABLE state (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- Tells this archive from every other one, wherever its database is copied to.
INSERT INTO state (name, value) VALUES ('archive id', lower(hex(randomblob(16))));

-- How far readers of the item log have come, and the counter of `queued_items.available_seq`.
CREATE TABLE cursors (
    name TEXT PRIMARY KEY,
    seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO cursors (name, seq) VALUES ('matching', 0), ('streams', 0);


-- Customers --------------------------------------------------------------------------------------

CREATE TABLE organizations (
    organization_id INTEGER PRIMARY KEY,
    name TEXT,
    currency TEXT,
    country TEXT,
    address TEXT NOT NULL,
    phone_direct TEXT,
    mail_domains TEXT
) STRICT;

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
    prepaid_remaining INTEGER CHECK (prepaid_remaining >= 0),
    approver TEXT
) STRICT;

CREATE TABLE agreement_products (
    agreement_id INTEGER NOT NULL REFERENCES agreements ON DELETE CASCADE,
    product_id INTEGER NOT NULL REFERENCES products,
    PRIMARY KEY (agreement_id, product_id)
) STRICT, WITHOUT ROWID;

-- Licences are offered in the order of their row numbers.
CREATE TABLE licenses (
    uuid TEXT PRIMARY KEY,
    product_id INTEGER NOT NULL REFERENCES products,
    period TEXT,
    volume TEXT,
    price TEXT,
    description TEXT
) STRICT;


-- Users ------------------------------------------------------------------------------------------

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

CREATE TABLE api_keys (
    key_id INTEGER PRIMARY KEY AUTOINCREMENT,
    key_hash TEXT NOT NULL UNIQUE,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    name TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    revoked_ms INTEGER,
    made_by_user INTEGER NOT NULL DEFAULT 0,
    last_used_ms INTEGER,
    read_only INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX api_keys_by_user ON api_keys (user_id);

-- Links by which users set a password. They hold no secret: the token is derived from the id with a key of
-- the archive.
CREATE TABLE password_links (
    link_id TEXT PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    kind TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX password_links_by_user ON password_links (user_id, created_ms);
CREATE INDEX password_links_by_expiry ON password_links (expires_ms);

-- Requests of administrators to create users, counted in windows.
CREATE TABLE user_requests (
    user_id INTEGER PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    organization_id INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    requests INTEGER NOT NULL
) STRICT;
CREATE INDEX user_requests_by_organization ON user_requests (organization_id, since_ms);


-- Logins -----------------------------------------------------------------------------------------

CREATE TABLE clients (
    client_id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    secret TEXT,
    redirect_uris TEXT NOT NULL,
    grants TEXT NOT NULL,
    active INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    scopes_enforced INTEGER NOT NULL DEFAULT 0,
    access_token_s INTEGER,
    read_only INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Consent is remembered for each response type of a client.
CREATE TABLE consents (
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    client_id TEXT NOT NULL REFERENCES clients ON DELETE CASCADE,
    response_type TEXT NOT NULL,
    scopes TEXT NOT NULL,
    given_ms INTEGER NOT NULL,
    PRIMARY KEY (user_id, client_id, response_type)
) STRICT, WITHOUT ROWID;

-- A family is one grant with all tokens that were issued for it. It ends as a whole.
CREATE TABLE families (
    family_id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    client_id TEXT NOT NULL REFERENCES clients ON DELETE CASCADE,
    scopes TEXT NOT NULL,
    auth_ms INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    last_used_ms INTEGER
) STRICT;
CREATE INDEX families_by_user ON families (user_id, client_id, family_id);
CREATE INDEX families_by_expiry ON families (expires_ms);

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
CREATE INDEX access_tokens_by_expiry ON access_tokens (expires_ms);

CREATE TABLE refresh_tokens (
    token_hash TEXT PRIMARY KEY,
    family_id INTEGER NOT NULL REFERENCES families ON DELETE CASCADE,
    expires_ms INTEGER NOT NULL,
    used_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX refresh_tokens_by_family ON refresh_tokens (family_id, used_ms);
CREATE INDEX refresh_tokens_by_expiry ON refresh_tokens (expires_ms);

CREATE TABLE signing_keys (
    kid TEXT PRIMARY KEY,
    pkcs8 BLOB NOT NULL,
    created_ms INTEGER NOT NULL,
    retired_ms INTEGER
) STRICT;

CREATE TABLE sessions (
    session_hash TEXT PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    auth_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    browser TEXT,
    address TEXT,
    last_used_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_by_expiry ON sessions (expires_ms);

-- Browsers that a user has logged in with: a login with a new one is reported to the user.
CREATE TABLE browsers (
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    browser_hash TEXT NOT NULL,
    seen_ms INTEGER NOT NULL,
    PRIMARY KEY (user_id, browser_hash)
) STRICT, WITHOUT ROWID;

-- Failed logins, which all nodes count together. A key is the hash of what is counted.
CREATE TABLE failed_logins (
    key_hash TEXT PRIMARY KEY,
    failures INTEGER NOT NULL,
    since_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX failed_logins_by_time ON failed_logins (since_ms);

-- Changes of the tables above, from which nodes learn what their caches must forget.
CREATE TABLE account_log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    at_ms INTEGER NOT NULL
) STRICT;


-- Items ------------------------------------------------------------------------------------------

-- The current version of each item. `item_id` is the number of the log row that wrote the version, so it rises
-- with every write. Other tables name items without referring to them, because items come and go.
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

-- Every write of an item, in order. Caches, search indexes, notifications and CDN purges follow it.
CREATE TABLE item_log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    media_type TEXT NOT NULL,
    id TEXT NOT NULL,
    change TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    previous_seq INTEGER,
    newly_indexed INTEGER NOT NULL DEFAULT 1
) STRICT;

-- Rights that were set for an item. A row has everything that is set from then on, and the newest row of an
-- item counts. Users are named as they were at the time, here and in the next two tables.
CREATE TABLE item_rights (
    change_id INTEGER PRIMARY KEY AUTOINCREMENT,
    media_type TEXT NOT NULL,
    id TEXT NOT NULL,
    rights TEXT NOT NULL,
    changed_ms INTEGER NOT NULL,
    user_name TEXT
) STRICT;
CREATE INDEX item_rights_by_item ON item_rights (media_type, id, change_id);

-- What editors changed in items.
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
    author_organization_id INTEGER REFERENCES organizations ON DELETE SET NULL,
    name TEXT NOT NULL,
    fields TEXT NOT NULL,
    changed_ms INTEGER NOT NULL,
    user_name TEXT
) STRICT;
CREATE INDEX metadata_templates_by_owner ON metadata_templates (organization_id, name);
CREATE INDEX metadata_templates_by_author ON metadata_templates (author_organization_id);

-- Uploads that are not published yet, with their received parts. A part is a file of the store of originals,
-- under the key `part_key`.
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


-- Orders -----------------------------------------------------------------------------------------

-- An order repeats what it is about as it was at the time, since agreements and items change.
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
-- For the operators' statistics.
CREATE INDEX orders_by_time ON orders (created_ms);


-- Collections ------------------------------------------------------------------------------------

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

-- `expires_ms` is copied from the item's current version.
CREATE TABLE collection_items (
    number INTEGER NOT NULL REFERENCES collections ON DELETE CASCADE,
    media_type TEXT NOT NULL,
    id TEXT NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (number, media_type, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX collection_items_in_order ON collection_items (number, position);
CREATE INDEX collection_items_by_item ON collection_items (media_type, id);

-- Withdrawn and expired items that were in collections.
CREATE TABLE removed_items (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    number INTEGER NOT NULL REFERENCES collections ON DELETE CASCADE,
    media_type TEXT NOT NULL,
    id TEXT NOT NULL,
    headline TEXT,
    description TEXT,
    removed_ms INTEGER NOT NULL,
    UNIQUE (number, media_type, id)
) STRICT;
CREATE INDEX removed_items_in_order ON removed_items (number, position);


-- Deliveries -------------------------------------------------------------------------------------

-- Settings hold passwords of other systems, which have to be presented there, so they cannot be hashed. They
-- are encrypted if the archive has a key.
CREATE TABLE channels (
    channel_id INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    name TEXT NOT NULL,
    method TEXT NOT NULL,
    formats TEXT NOT NULL,
    settings TEXT NOT NULL,
    active INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    made_by_user INTEGER NOT NULL DEFAULT 0,
    UNIQUE (user_id, name)
) STRICT;

-- `next_ms` is the time of the next attempt, or the end of the claim; without it the delivery has ended.
-- `crop` is that of the uri in the request, `-crop_w…_h…_x…_y…`.
CREATE TABLE deliveries (
    delivery_id TEXT PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    organization_id INTEGER NOT NULL REFERENCES organizations,
    channel TEXT NOT NULL,
    media_type TEXT NOT NULL,
    item_id TEXT NOT NULL,
    version TEXT NOT NULL,
    crop TEXT,
    agreement_id INTEGER,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    claim TEXT,
    incarnation TEXT,
    next_ms INTEGER,
    error TEXT,
    created_ms INTEGER NOT NULL,
    queued_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    delivered_ms INTEGER,
    UNIQUE (user_id, channel, media_type, item_id, version)
) STRICT;
CREATE INDEX deliveries_due ON deliveries (next_ms) WHERE next_ms IS NOT NULL;
CREATE INDEX deliveries_waiting ON deliveries (organization_id) WHERE next_ms IS NOT NULL;
CREATE INDEX deliveries_ended ON deliveries (updated_ms) WHERE next_ms IS NULL;
CREATE INDEX deliveries_by_organization ON deliveries (organization_id, delivery_id);
CREATE INDEX deliveries_by_user ON deliveries (user_id, delivery_id);
CREATE INDEX deliveries_by_state ON deliveries (state, delivery_id);


-- Notifications ----------------------------------------------------------------------------------

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

-- Changed queries. Triggers write it, so that the matcher in memory misses no change, including
-- notifications that are removed with their user.
CREATE TABLE notification_log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    number INTEGER NOT NULL
) STRICT;
CREATE TRIGGER notifications_inserted AFTER INSERT ON notifications
    BEGIN INSERT INTO notification_log (number) VALUES (new.number); END;
CREATE TRIGGER notifications_updated AFTER UPDATE OF q, p, agr, tr, media_type ON notifications
    BEGIN INSERT INTO notification_log (number) VALUES (new.number); END;
CREATE TRIGGER notifications_deleted AFTER DELETE ON notifications
    BEGIN INSERT INTO notification_log (number) VALUES (old.number); END;

-- Matched items that were not read or sent yet. `incarnation` holds a claim on the item; `available_seq` rises
-- when the item becomes available, which wakes the streams that wait for it.
CREATE TABLE queued_items (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    number INTEGER NOT NULL REFERENCES notifications ON DELETE CASCADE,
    media_type TEXT NOT NULL,
    id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    incarnation TEXT,
    available_seq INTEGER NOT NULL DEFAULT 0,
    UNIQUE (number, media_type, id)
) STRICT;
CREATE INDEX queued_items_in_order ON queued_items (number, position);
CREATE INDEX queued_items_available ON queued_items (available_seq);
CREATE INDEX queued_items_claimed ON queued_items (incarnation) WHERE incarnation IS NOT NULL;

-- Items that are matched when their embargo ends.
CREATE TABLE embargoed_items (
    media_type TEXT NOT NULL,
    id TEXT NOT NULL,
    until_ms INTEGER NOT NULL,
    PRIMARY KEY (media_type, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX embargoed_items_by_end ON embargoed_items (until_ms);

-- Messages to be sent; parked ones have no `next_ms`. `number` is the notification, 0 for a message about the
-- account.
CREATE TABLE outbox (
    message_id TEXT PRIMARY KEY,
    transport TEXT NOT NULL,
    number INTEGER NOT NULL,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    content TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    incarnation TEXT,
    next_ms INTEGER,
    error TEXT,
    created_ms INTEGER NOT NULL,
    queued_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX outbox_due ON outbox (transport, next_ms) WHERE next_ms IS NOT NULL;
CREATE INDEX outbox_by_user ON outbox (user_id, transport, number) WHERE next_ms IS NOT NULL;
CREATE INDEX outbox_parked ON outbox (updated_ms) WHERE next_ms IS NULL;
CREATE INDEX outbox_sending ON outbox (incarnation) WHERE state = 'sending';

-- Mails by hour, for rate limits.
CREATE TABLE mail_counts (
    subject TEXT NOT NULL,
    hour INTEGER NOT NULL,
    mails INTEGER NOT NULL,
    PRIMARY KEY (subject, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX mail_counts_by_hour ON mail_counts (hour);

-- The consent of recipients who are not the user.
CREATE TABLE mail_recipients (
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    address TEXT NOT NULL,
    token_hash TEXT,
    notified_ms INTEGER,
    confirmation_sent_ms INTEGER,
    confirmed_ms INTEGER,
    refused_ms INTEGER,
    used_ms INTEGER NOT NULL,
    PRIMARY KEY (user_id, address)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX mail_recipients_by_token ON mail_recipients (token_hash);
CREATE INDEX mail_recipients_by_use ON mail_recipients (used_ms);


-- CDN purges -------------------------------------------------------------------------------------

-- Keys to be purged at a CDN endpoint, each from a time on. Each endpoint has a queue of its own, and a cursor
-- of its own in the item log. A key that is `repeated` is due once more after it was sent.
CREATE TABLE purges (
    purge_id INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint TEXT NOT NULL,
    key TEXT NOT NULL,
    due_ms INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    repeated INTEGER NOT NULL,
    refusals INTEGER NOT NULL,
    UNIQUE (endpoint, key, due_ms)
) STRICT;
CREATE INDEX purges_due ON purges (endpoint, due_ms, purge_id);


-- The cluster ------------------------------------------------------------------------------------

-- The running incarnations of nodes. `heartbeat` is a counter; `heartbeat_at_ms` is for diagnosis only,
-- because clocks differ. `followed_seq` is the row of the item log up to which the node serves changes.
CREATE TABLE nodes (
    incarnation TEXT PRIMARY KEY,
    node TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    heartbeat INTEGER NOT NULL,
    heartbeat_at_ms INTEGER NOT NULL,
    followed_seq INTEGER NOT NULL,
    description TEXT NOT NULL DEFAULT '{}',
    faults TEXT NOT NULL DEFAULT '',
    figures TEXT NOT NULL DEFAULT '{}',
    figures_ms INTEGER
) STRICT, WITHOUT ROWID;

-- Work that one node does at a time.
CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    incarnation TEXT NOT NULL REFERENCES nodes ON DELETE CASCADE
) STRICT, WITHOUT ROWID;


-- Records for operators --------------------------------------------------------------------------

-- Users are named as they were at the time, so rows refer to no other table.
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
-- For the operators' statistics.
CREATE INDEX audit_log_of_orders ON audit_log (at_ms) WHERE action = 'order_created';

-- The newest ingest errors and slow searches, which are removed by number and age.
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
