#!/usr/bin/env bash
# What one PostgreSQL takes: bytes a row of the tables that grow with the archive, and transactions a
# second while one lock lets one writer commit at a time, beside the same without the lock. The schema
# is that of the service (src/storage/database), written down here in PostgreSQL's types. Needs PostgreSQL's server and
# pgbench, python3 and a folder of news texts (archive.py).
#
#   benches/scale/database.sh CORPUS [COUNT] [SECONDS]
#
# PG_BIN=/usr/lib/postgresql/15/bin. The cluster lies in a temporary folder, whose disk is what is
# measured (TMPDIR), and is removed at the end.
set -euo pipefail
cd "$(dirname "$0")/../.."
corpus="$1" count="${2:-100000}" seconds="${3:-4}"
bin="${PG_BIN:-/usr/lib/postgresql/15/bin}"
work="$(mktemp -d)"
as=()
if [ "$(id -u)" -eq 0 ]; then as=(runuser -u postgres --); fi
cleanup() {
    [ ! -f "$work/data/postmaster.pid" ] || "${as[@]}" "$bin/pg_ctl" -D "$work/data" -m fast -w stop >/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

python3 benches/compare/archive.py "$corpus" "$count" "$work/items.jsonl" "$work/queries.json"
python3 - "$work" <<'PYTHON'
"""The rows of the archive, as the service would write them."""
import json, sys
work = sys.argv[1]
plain = lambda text: text.replace('\\', '\\\\').replace('\t', ' ').replace('\n', ' ')
out = {name: open(f'{work}/{name}.tsv', 'w') for name in ('items', 'item_log')}
for number, line in enumerate(open(f'{work}/items.jsonl'), 1):
    item = json.loads(line)
    media_type, name = item['uri'].rsplit('/', 2)[1:]
    rows = {
        'items': [number, media_type, name, plain(line.strip()), '{}', 'usable', 10**12, '\\N', 10**12],
        'item_log': [number, media_type, name, 'written', 10**12, '\\N', 1],
    }
    for table, row in rows.items():
        out[table].write('\t'.join(map(str, row)) + '\n')
PYTHON
chmod 711 "$work"
chmod 644 "$work"/*.tsv
mkdir "$work/socket" && chmod 777 "$work/socket"
if [ "$(id -u)" -eq 0 ]; then install -d -o postgres "$work/data" "$work/flush"; fi
"${as[@]}" "$bin/initdb" -D "$work/data" -U postgres -A trust >/dev/null
options="-k $work/socket -c listen_addresses= -c shared_buffers=512MB -c max_wal_size=4GB"
"${as[@]}" "$bin/pg_ctl" -D "$work/data" -o "$options" -l "$work/data/log" -w start >/dev/null
query() { "${as[@]}" psql -h "$work/socket" -U postgres -q "$@"; }

flushes() {
    "${as[@]}" "$bin/pg_test_fsync" -s 1 -f "$work/flush/file" 2>/dev/null |
        awk '$1 == "fdatasync" && $3 == "ops/sec" { print "fdatasync on this disk: " $2 " a second"; exit }'
}
query -v ON_ERROR_STOP=1 >/dev/null <<SQL
CREATE TABLE items (item_id bigint PRIMARY KEY, media_type text NOT NULL, id text NOT NULL, document text NOT NULL,
    assets text NOT NULL, pubstatus text NOT NULL, order_ms bigint NOT NULL, embargoed_ms bigint,
    stored_ms bigint NOT NULL, UNIQUE (media_type, id));
CREATE TABLE item_log (seq bigserial PRIMARY KEY, media_type text NOT NULL, id text NOT NULL, change text NOT NULL,
    at_ms bigint NOT NULL, previous bigint, fresh bigint NOT NULL DEFAULT 1);
CREATE TABLE queued_items (position bigserial PRIMARY KEY, number bigint NOT NULL, media_type text NOT NULL,
    id text NOT NULL, seq bigint NOT NULL, UNIQUE (number, media_type, id));
CREATE INDEX ON queued_items (number, place);
CREATE TABLE orders (order_id bigserial PRIMARY KEY, organization_id bigint, user_id bigint, agreement_id bigint,
    media_type text, item_id text, headline text, byline text, source text, agreement text, product text,
    created_ms bigint, until_ms bigint);
CREATE INDEX ON orders (organization_id, media_type, item_id, agreement_id, until_ms);
CREATE INDEX ON orders (organization_id, order_id);
CREATE INDEX ON orders (user_id, order_id);
\\copy items from $work/items.tsv
\\copy item_log from $work/item_log.tsv
CREATE TABLE pool AS SELECT item_id AS n, document FROM items WHERE item_id <= 5000;
CREATE UNIQUE INDEX ON pool (n);
SELECT setval('item_log_seq_seq', 10 * $count);
ANALYZE;
SQL

mkdir "$work/scripts"
lock='SELECT pg_advisory_xact_lock(1);'
cat >"$work/scripts/purchase.sql" <<SQL
\\set org random(1, 1000)
BEGIN; $lock
SELECT 1 FROM orders WHERE organization_id = :org AND media_type = 'image' AND item_id = 'a' AND agreement_id = 1
    AND until_ms > 5 LIMIT 1;
INSERT INTO orders (organization_id, user_id, agreement_id, media_type, item_id, headline, byline, source, agreement,
    product, created_ms, until_ms) VALUES (:org, :org, 1, 'image', 'a' || :org, 'A headline of some words', 'A Byline',
    'TT', '{"a":1}', '{"code":"FOINR"}', 1, 0);
COMMIT;
SQL
sed "s/ $lock//" "$work/scripts/purchase.sql" >"$work/scripts/purchase-unlocked.sql"
items() {
    cat <<SQL
\\set n random(1, $((5000 - $1)))
BEGIN; $lock
WITH q AS (SELECT nextval('item_log_seq_seq') AS seq, document FROM pool WHERE n > :n AND n <= :n + $1),
 l AS (INSERT INTO item_log (seq, media_type, id, change, at_ms) SELECT seq, 'image', 'b' || seq, 'written', 1 FROM q)
 INSERT INTO items SELECT seq, 'image', 'b' || seq, document, '{}', 'usable', 1, NULL, 1 FROM q;
COMMIT;
SQL
}
items 1 >"$work/scripts/item.sql"
items 100 >"$work/scripts/items-100.sql"
for rows in 362 3808; do
    cat >"$work/scripts/queue-$rows.sql" <<SQL
\\set n random(1, 100000000)
BEGIN; $lock
INSERT INTO queued_items (number, media_type, id, seq) SELECT (g * 9973 + :n) % 100000, 'image', 'x' || :n, :n
    FROM generate_series(1, $rows) g ON CONFLICT DO NOTHING;
COMMIT;
SQL
done
chmod -R a+rX "$work/scripts"
# In turns, because a disk that others use too flushes faster at one moment than at another.
for round in 1 2 3; do
    flushes
    for script in purchase purchase-unlocked item items-100 queue-362 queue-3808; do
        for clients in 1 8; do
            "${as[@]}" "$bin/pgbench" -h "$work/socket" -U postgres -n -M prepared -c "$clients" -j 1 -T "$seconds" \
                -f "$work/scripts/$script.sql" postgres 2>/dev/null |
                awk -v name="$script $clients" '/^tps/ { print name, $3 }' >>"$work/rounds"
        done
    done
done
flushes
echo "transactions a second: median of three rounds, and all three"
sort -k1,2 -k3n "$work/rounds" | awk '{ key = $1 ", " $2 " clients"; all[key] = all[key] " " int($3 + 0.5); if (++n[key] == 2) middle[key] = int($3 + 0.5) }
    END { for (key in n) printf "%-32s %6d  (%s )\n", key, middle[key], all[key] }' | sort
echo "bytes a row: table, indexes"
query -At -F ' ' -c "SELECT relname, round(pg_table_size(oid) / n), round(pg_indexes_size(oid) / n) FROM pg_class,
    LATERAL (SELECT greatest(1, CASE relname WHEN 'items' THEN (SELECT count(*) FROM items)
        WHEN 'item_log' THEN (SELECT count(*) FROM item_log) WHEN 'orders' THEN (SELECT count(*) FROM orders)
        ELSE (SELECT count(*) FROM queued_items) END) AS n) rows
    WHERE relname IN ('items', 'item_log', 'orders', 'queued_items') ORDER BY relname"
