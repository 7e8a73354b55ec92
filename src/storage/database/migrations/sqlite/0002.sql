-- Accounts with all that hangs on them. Tokens, codes, sessions and keys are stored as hashes.

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
