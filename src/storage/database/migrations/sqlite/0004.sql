-- Channels and what goes through them. A channel's settings hold the passwords of other systems as
-- they are, because they must be presented there: whoever reads the database reads them.

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
