-- Schema 12: links by which users set a password, where and when logins and keys were used, and
-- browsers that a user logged in with before.

-- A link holds no secret: its token is derived from the id with a key of the archive.
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
