-- Schema 10: what closing the findings of a security review needs.

-- Failed logins, which nodes count together. A key is the hash of what is counted.
CREATE TABLE failed_logins (
    key_hash TEXT PRIMARY KEY,
    failures INTEGER NOT NULL,
    since_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX failed_logins_by_time ON failed_logins (since_ms);
-- Clients whose scopes are enforced, agreements with an approver, mail domains of organizations.
ALTER TABLE clients ADD COLUMN scopes_enforced INTEGER NOT NULL DEFAULT 0;
ALTER TABLE clients ADD COLUMN access_token_s INTEGER;
ALTER TABLE agreements ADD COLUMN approver TEXT;
ALTER TABLE organizations ADD COLUMN mail_domains TEXT;

-- When the absolute lifetime of a grant began. Grants of earlier versions begin it at their next
-- refresh, so that the upgrade ends none.
ALTER TABLE families ADD COLUMN lifetime_from_ms INTEGER;

-- Consent is remembered per response type. What was given before counts for codes, and for the
-- implicit response types only of clients that could ask for nothing else.
CREATE TABLE consents_10 (
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    client_id TEXT NOT NULL REFERENCES clients ON DELETE CASCADE,
    response_type TEXT NOT NULL,
    scopes TEXT NOT NULL,
    given_ms INTEGER NOT NULL,
    PRIMARY KEY (user_id, client_id, response_type)
) STRICT, WITHOUT ROWID;
INSERT INTO consents_10 (user_id, client_id, response_type, scopes, given_ms)
    SELECT user_id, client_id, kind, scopes, given_ms
    FROM consents JOIN clients USING (client_id) JOIN (
        SELECT 'code' AS kind UNION ALL SELECT 'token' UNION ALL SELECT 'id_token'
        UNION ALL SELECT 'id_token token') AS kinds
    ON (kind = 'code') = (grants LIKE '%"authorization_code"%');
DROP TABLE consents;
ALTER TABLE consents_10 RENAME TO consents;

-- Requests of administrators to make users, counted in windows.
CREATE TABLE user_requests (
    user_id INTEGER PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    organization_id INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    requests INTEGER NOT NULL
) STRICT;
CREATE INDEX user_requests_by_organization ON user_requests (organization_id, since_ms);
-- The audit log. Users are named as they were then, so rows refer to no other table.
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
-- Mails by hour for rate limits, and what recipients other than the user said to being mailed.
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

-- Search is an index beside the database, fed from the item log.
DROP TABLE words;
DROP TABLE facts;
DROP TABLE facet_values;
DELETE FROM versions WHERE what = 'index';
-- Tells this archive from every other one, wherever its database is copied to.
INSERT INTO state (name, value) VALUES ('archive id', lower(hex(randomblob(16))));
