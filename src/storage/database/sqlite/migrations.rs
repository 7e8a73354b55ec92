//! The schema, one step a release that changed it. A step that was released never changes.

use rusqlite_migration::{M, Migrations};

const ITEMS: &str = "
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
";

/// Search. An item's number, `items.item_id`, is from now on the number of the log row that wrote its
/// current version: it rises with every write, and `words` and `facts` have a row of that number.
const SEARCH: &str = "
DROP INDEX items_by_time;
ALTER TABLE item_log ADD COLUMN previous INTEGER;
ALTER TABLE item_log ADD COLUMN fresh INTEGER NOT NULL DEFAULT 1;

CREATE VIRTUAL TABLE words USING fts5(
    headline, description, body, rest, tags,
    content = '', contentless_delete = 1, tokenize = \"ascii tokenchars '._=+'\"
);

-- Words of one transaction are gathered within this many bytes, so that a batch of an archive makes
-- one segment of the index and not many that have to be merged.
INSERT INTO words (words, rank) VALUES ('hashsize', 67108864);

CREATE TABLE facts (
    doc INTEGER PRIMARY KEY,
    facts BLOB NOT NULL
) STRICT;

CREATE TABLE facet_values (
    facet INTEGER NOT NULL,
    value_id INTEGER NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (facet, value_id),
    UNIQUE (facet, value)
) STRICT, WITHOUT ROWID;

INSERT INTO versions (what, version) VALUES ('index', 0);
";

/// Accounts with all that hangs on them. Tokens, codes, sessions and keys are stored as hashes.
const ACCOUNTS: &str = "
CREATE TABLE organizations (
    organization_id INTEGER PRIMARY KEY,
    name TEXT,
    currency TEXT,
    country TEXT,
    address TEXT NOT NULL,
    phone_direct TEXT
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
    prepaid_remaining INTEGER CHECK (prepaid_remaining >= 0)
) STRICT;

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

ALTER TABLE users RENAME TO users_before;
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
-- Users had no numbers: they get provisional ones below zero until an accounts file states theirs.
INSERT INTO users (user_id, user_name, roles, admin, mediebank, active, service_account, created_ms)
    SELECT -rowid, user_name, roles, 0, 0, active, 0, 0 FROM users_before;
INSERT INTO users (user_id, user_name, roles, admin, mediebank, active, service_account, created_ms)
    SELECT -1000000000 - min(rowid), user_name, '[]', 0, 0, 1, 0, 0 FROM api_keys
    WHERE user_name NOT IN (SELECT user_name FROM users_before) GROUP BY user_name;
DROP TABLE users_before;

CREATE TABLE user_agreements (
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    agreement_id INTEGER NOT NULL REFERENCES agreements,
    PRIMARY KEY (user_id, agreement_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX user_agreements_by_agreement ON user_agreements (agreement_id);

ALTER TABLE api_keys RENAME TO api_keys_before;
CREATE TABLE api_keys (
    key_id INTEGER PRIMARY KEY AUTOINCREMENT,
    key_hash TEXT NOT NULL UNIQUE,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    name TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    revoked_ms INTEGER
) STRICT;
INSERT INTO api_keys (key_hash, user_id, name, created_ms)
    SELECT key_hash, user_id, name, api_keys_before.created_ms
    FROM api_keys_before JOIN users USING (user_name);
DROP TABLE api_keys_before;
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
) STRICT;

CREATE TABLE families (
    family_id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    client_id TEXT NOT NULL REFERENCES clients ON DELETE CASCADE,
    scopes TEXT NOT NULL,
    auth_ms INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT;
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

CREATE TABLE consents (
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    client_id TEXT NOT NULL REFERENCES clients ON DELETE CASCADE,
    scopes TEXT NOT NULL,
    given_ms INTEGER NOT NULL,
    PRIMARY KEY (user_id, client_id)
) STRICT, WITHOUT ROWID;

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
";

/// Channels and what goes through them. A channel's settings hold the passwords of other systems as
/// they are, because they must be presented there: whoever reads the database reads them.
const DELIVERIES: &str = "
CREATE TABLE channels (
    channel_id INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    name TEXT NOT NULL,
    method TEXT NOT NULL,
    formats TEXT NOT NULL,
    settings TEXT NOT NULL,
    active INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
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
    delivered_ms INTEGER,
    UNIQUE (user_id, channel, media_type, item_id, version)
) STRICT;
CREATE INDEX deliveries_due ON deliveries (next_ms) WHERE next_ms IS NOT NULL;
CREATE INDEX deliveries_waiting ON deliveries (organization_id) WHERE next_ms IS NOT NULL;
CREATE INDEX deliveries_ended ON deliveries (updated_ms) WHERE next_ms IS NULL;
CREATE INDEX deliveries_by_organization ON deliveries (organization_id, delivery_id);
CREATE INDEX deliveries_by_user ON deliveries (user_id, delivery_id);
";

/// Notifications, what they found and was not read or sent yet, and how far the item log was
/// matched. Triggers write `notification_log`, so that a matcher in memory misses no change, also
/// none that a removed user takes along.
const NOTIFICATIONS: &str = "
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
";

/// Keys and channels that users make themselves. What was there before is the operator's.
const MADE_BY_USERS: &str = "
ALTER TABLE api_keys ADD COLUMN made_by_user INTEGER NOT NULL DEFAULT 0;
ALTER TABLE channels ADD COLUMN made_by_user INTEGER NOT NULL DEFAULT 0;
";

/// Collections, their items in order, and what they lost. An item may come and go by itself: its
/// rows here name it and do not refer to it. `expires_ms` is that of the item's current version.
const COLLECTIONS: &str = "
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
";

/// Keys that a CDN is to be told of, each from a moment on. Each address that is called has a lane of
/// its own, with a place of its own in the item log.
const PURGES: &str = "
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
";

/// Several processes over one database: which of them live, what one of them does at a time, and what each
/// has under way. Calls of pages are there for whichever of them shows them.
const NODES: &str = "
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
";

pub(super) fn all() -> Migrations<'static> {
    Migrations::new(vec![
        M::up(ITEMS),
        M::up(ACCOUNTS),
        M::up(SEARCH),
        M::up(DELIVERIES),
        M::up(NOTIFICATIONS),
        M::up(MADE_BY_USERS),
        M::up(COLLECTIONS),
        M::up(PURGES),
        M::up(NODES),
        M::up(include_str!("0010.sql")),
        M::up(include_str!("0011.sql")),
        M::up(include_str!("0012.sql")),
    ])
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    #[test]
    fn the_migrations_run_on_an_empty_database() {
        assert_eq!(super::all().validate(), Ok(()));
    }

    /// The schema's statements in their order.
    fn statements(connection: &Connection) -> Vec<String> {
        let sql = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid";
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    }

    #[test]
    fn a_step_that_was_released_never_changes() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schemas/database");
        for number in 1.. {
            let path = format!("{folder}/{number:02}.sql");
            let Ok(dump) = std::fs::read_to_string(&path) else { break };
            let then = Connection::open_in_memory().unwrap();
            then.execute_batch(&dump).unwrap();
            let mut now = Connection::open_in_memory().unwrap();
            super::all().to_version(&mut now, number).unwrap();
            assert_eq!(statements(&then), statements(&now), "{path}");
        }
    }

    #[test]
    fn every_column_moves_to_another_database_or_is_made_anew_there() {
        use crate::storage::database::statements::moving::{ITEM_LOG, ITEMS, TABLES, Table};
        let mut connection = Connection::open_in_memory().unwrap();
        super::all().to_latest(&mut connection).unwrap();
        let sql =
            "SELECT m.name || '.' || c.name FROM sqlite_schema m, pragma_table_info(m.name) c
             WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'";
        let mut statement = connection.prepare(sql).unwrap();
        let columns = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        // Made from documents, or true of one database and the nodes over it alone.
        let anew = [
            "versions.",
            "nodes.",
            "leases.",
            "queued_items.life",
            "outbox.life",
            "deliveries.life",
        ];
        let known: Vec<String> =
            TABLES.iter().chain([&ITEMS, &ITEM_LOG]).flat_map(Table::columns).collect();
        for column in columns.map(Result::unwrap) {
            let is_anew = anew.iter().any(|start| column.starts_with(start));
            assert!(is_anew || known.contains(&column), "{column} does not move");
        }
    }

    #[test]
    fn users_and_keys_of_the_first_schema_are_taken_over() {
        let mut connection = Connection::open_in_memory().unwrap();
        super::all().to_version(&mut connection, 1).unwrap();
        let rows = "INSERT INTO users VALUES ('editor', 1, '[\"ROLE_OFP\"]'), ('gone', 0, '[]');
             INSERT INTO api_keys VALUES ('a', 'editor', 'desk', 5), ('b', 'orphan', 'old', 6),
                 ('c', 'orphan', 'new', 7);";
        connection.execute_batch(rows).unwrap();
        super::all().to_latest(&mut connection).unwrap();
        let mut statement = connection
            .prepare(
                "SELECT user_name, active, user_id < 0, group_concat(key_hash)
                 FROM users LEFT JOIN api_keys USING (user_id) GROUP BY user_id ORDER BY user_name",
            )
            .unwrap();
        let found: Vec<(String, bool, bool, Option<String>)> = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let row = |name: &str, active, keys: Option<&str>| {
            (name.to_owned(), active, true, keys.map(str::to_owned))
        };
        let expected = [
            row("editor", true, Some("a")),
            row("gone", false, None),
            row("orphan", true, Some("b,c")),
        ];
        assert_eq!(found, expected);
    }
}
