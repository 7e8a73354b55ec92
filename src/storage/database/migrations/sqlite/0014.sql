-- Schema 14: what operators look at. Orders and their events by time, for statistics; deliveries by state;
-- figures that nodes publish; the newest ingest errors and slow searches, which are removed by number and
-- age.
CREATE INDEX orders_by_time ON orders (created_ms);
CREATE INDEX audit_log_of_orders ON audit_log (at_ms) WHERE action = 'order_created';
CREATE INDEX deliveries_by_state ON deliveries (state, delivery_id);
ALTER TABLE nodes ADD COLUMN figures TEXT NOT NULL DEFAULT '{}';
ALTER TABLE nodes ADD COLUMN figures_ms INTEGER;
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
