#!/usr/bin/env bash
# Search over a large archive as its users meet it: time to take it in, to start, to answer over HTTP,
# also while items come in, and resident memory. Needs wrk, python3, curl and a release build.
#
#   benches/compare/search.sh CORPUS [COUNT] [SECONDS]
#
# CORPUS is a folder of news texts (see archive.py). KEEP=DIR keeps the archive there and uses it again.
# With DATABASE=postgres://… , a database that is empty, the archive moves there first (`wirephoto migrate`);
# that needs psql. Each process builds its own index, which is waited for.
set -euo pipefail
cd "$(dirname "$0")/../.."
corpus="$1" count="${2:-1000000}" seconds="${3:-30}"
binary="${CARGO_TARGET_DIR:-target}/release/wirephoto"
work="${KEEP:-$(mktemp -d)}"
mkdir -p "$work"
server=
cleanup() {
    [ -z "$server" ] || { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; }
    [ -n "${KEEP:-}" ] || rm -rf "$work"
}
trap cleanup EXIT

if [ ! -f "$work/queries.json" ]; then
    python3 benches/compare/archive.py "$corpus" "$count" "$work/items.jsonl" "$work/queries.json"
fi
if [ ! -f "$work/taken" ]; then
    rm -rf "$work/data"
    echo "taking in $count items, $(stat -c %s "$work/items.jsonl") bytes"
    /usr/bin/env time -f '%e s, %M KiB resident at most' "$binary" ingest --data "$work/data" "$work/items.jsonl" \
        && touch "$work/taken"
fi
python3 - "$work" <<'PYTHON'
import json, sys, urllib.parse
work = sys.argv[1]
made = json.load(open(f'{work}/queries.json'))
products = [{'id': at + 1, 'code': code} for at, code in enumerate(made['products'])]
user = lambda id, name, roles, agreements: {
    'id': id, 'organization': 1, 'userName': name, 'password': 'bench-password', 'roles': roles,
    'agreements': agreements, 'emailAddress': f'{name}@example.com', 'firstName': 'Bench', 'lastName': name}
accounts = {
    'organizations': [{'id': 1, 'name': 'Bench'}], 'products': products,
    'agreements': [{'id': 1, 'organization': 1, 'type': 'Subscription', 'superAgreement': False, 'products': made['products']}],
    'users': [user(1, 'bench-provider', ['ROLE_PROVIDER'], []), user(2, 'bench-customer', ['ROLE_OFP'], [1])],
    'apiKeys': [{'user': 'bench-provider', 'key': 'bench-key-0000-0000-000000000001', 'name': 'bench'},
                {'user': 'bench-customer', 'key': 'bench-key-0000-0000-000000000002', 'name': 'bench'}]}
json.dump(accounts, open(f'{work}/accounts.json', 'w'))
with open(f'{work}/requests.tsv', 'w') as out:
    for one in made['queries']:
        key = 2 if one['agreement'] else 1
        out.write(f"{one['path']}?{urllib.parse.urlencode(one['parameters'])}\tbench-key-0000-0000-00000000000{key}\n")
PYTHON
# An archive that has moved takes no writes.
[ -f "$work/moved" ] || "$binary" import --data "$work/data" "$work/accounts.json" >/dev/null

data="$work/data" settings=(--set telemetry.log_level=warn)
serve() {
    "$binary" serve --listen 127.0.0.1:0 --data "$data" "${settings[@]}" >"$work/out" 2>"$work/log" &
    server=$!
    until grep -q '^listening on' "$work/out"; do kill -0 "$server"; sleep 0.02; done
}
if [ -n "${DATABASE:-}" ]; then
    if [ ! -f "$work/moved" ]; then
        echo "moving to PostgreSQL"
        /usr/bin/env time -f '%e s' "$binary" migrate --data "$data" --to "$DATABASE" --switch | tail -3
        touch "$work/moved"
    fi
    data="$work/there"
    settings+=(--set "database.url=$DATABASE" --set "store.originals=$work/data/originals"
        --set "secrets.key_file=$work/data/secrets.key")
    psql "$DATABASE" -AtXc VACUUM -c ANALYZE
fi
whole() {
    local base
    base="$(sed -n 's/^listening on //p' "$work/out")"
    until curl -sf "$base/health/search" | grep -q '"rowsBehind":0'; do kill -0 "$server"; sleep 0.2; done
}
began="$(date +%s.%N)"
serve
whole
echo "index built or opened: $(awk -v a="$began" -v b="$(date +%s.%N)" 'BEGIN { printf "%.2f", b - a }') s"
kill "$server"; wait "$server" || true
began="$(date +%s.%N)"
serve
whole
echo "start: $(awk -v a="$began" -v b="$(date +%s.%N)" 'BEGIN { printf "%.2f", b - a }') s"
base="$(sed -n 's/^listening on //p' "$work/out")"
resident() {
    awk '/^VmHWM/ { most = $2 } /^VmRSS/ { now = $2 } /^RssAnon/ { own = $2 }
        END { printf "%d MB resident (%d MB at most), %d MB of it no mapped files\n", now / 1000, most / 1000, own / 1000 }
    ' "/proc/$server/status"
}
resident

# Asks every query once for each name that follows.
ask() {
    python3 - "$base" "$work/requests.tsv" "$@" <<'PYTHON'
import http.client, json, sys, time
host = sys.argv[1].removeprefix('http://')
requests = [line.rstrip('\n').split('\t') for line in open(sys.argv[2])]
connection = http.client.HTTPConnection(host)
for turn in sys.argv[3:]:
    times, refused, hits = [], 0, 0
    for path, key in requests:
        began = time.perf_counter()
        connection.request('GET', path, headers={'Authorization': f'ApiKey {key}'})
        answer = connection.getresponse()
        body = answer.read()
        times.append((time.perf_counter() - began) * 1e3)
        refused += answer.status != 200
        hits += json.loads(body).get('total', 0) if answer.status == 200 else 0
    slowest = sorted(zip(times, requests), reverse=True)[:5]
    times.sort()
    at = lambda share: times[min(len(times) * share // 100, len(times) - 1)]
    print(f'{turn}, one by one: p50 {at(50):.1f} ms, p90 {at(90):.1f} ms, p95 {at(95):.1f} ms, p99 {at(99):.1f} ms, '
          f'max {at(100):.0f} ms; {refused} refused; {hits / len(times):.0f} matches on average')
    for ms, (path, _) in slowest:
        print(f'    {ms:.0f} ms {path}')
PYTHON
}
ask 'first time' 'second time'
resident
for round in 1 2 3; do
    REQUESTS="$work/requests.tsv" wrk -t1 -c16 -d"${seconds}s" --latency -s benches/compare/search.lua "$base" | tail -1
done
resident
# Last, because the archive grows. What came in before is found again as fast as before.
ITEMS="$work/items.jsonl" KEY=bench-key-0000-0000-000000000001 \
    wrk -t1 -c16 -d"$((seconds * 2))s" --latency -s benches/compare/feed.lua "$base" >"$work/fed" &
feeder=$!
sleep 1
ask 'while items come in'
wait "$feeder"
tail -1 "$work/fed"
whole
resident
