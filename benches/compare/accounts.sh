#!/usr/bin/env bash
# What accounts cost the data plane: cached Previews with and without a token, and cached Previews
# while 2,000 password logins a minute come in. Needs wrk, curl, python3 and a release build.
#
#   benches/compare/accounts.sh [ROUNDS] [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds="${1:-7}" seconds="${2:-4}"
binary="${CARGO_TARGET_DIR:-target}/release/wirephoto"
work="$(mktemp -d)"
"$binary" serve --demo --listen 127.0.0.1:0 --data "$work/data" \
    --set telemetry.log_level=warn >"$work/out" 2>"$work/log" &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
until grep -q '^listening on' "$work/out"; do kill -0 "$server"; sleep 0.2; done
base="$(sed -n 's/^listening on //p' "$work/out")"
url="$base/media/image/demo-solnedgang-over-bergen_NormalPreview.jpg"

login() {
    curl -fsS "$base/o/oauth2/token" -u demo-client:demo-client-secret -d grant_type=password \
        -d username=demo-editor -d password=demo-editor-password -d scope=roles
}
token="$(login | python3 -c 'import json, sys; print(json.load(sys.stdin)["access_token"])')"
key="demo-key-0000-0000-000000000001"

# Requests a second of one run.
rate() { wrk -t1 -c16 -d"${seconds}s" "$@" "$url" | awk '/^Requests\/sec/ { print $2 }'; }
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

rate >/dev/null
for _ in $(seq "$rounds"); do
    rate >>"$work/open"
    rate -H "Authorization: Bearer $token" >>"$work/bearer"
    rate -H "Authorization: ApiKey $key" >>"$work/key"
done
echo "cached Preview, requests a second, median of $rounds rounds of $seconds s, in turns"
open="$(median <"$work/open")"
for kind in open bearer key; do
    now="$(median <"$work/$kind")"
    awk -v k="$kind" -v n="$now" -v o="$open" 'BEGIN { printf "  %-8s %9.0f  %.3f of open\n", k, n, n / o }'
done

cat >"$work/logins.py" <<'PYTHON'
# Sends 2,000 password logins a minute, evenly, and prints how they ended.
import collections, http.client, sys, threading, time, urllib.parse
host, stop = sys.argv[1].removeprefix("http://"), sys.argv[2]
form = urllib.parse.urlencode({
    "grant_type": "password", "username": "demo-editor", "password": "demo-editor-password",
    "scope": "roles", "client_id": "demo-client", "client_secret": "demo-client-secret"})
kind = {"Content-Type": "application/x-www-form-urlencoded"}
answers = collections.Counter()
def login():
    connection = http.client.HTTPConnection(host, timeout=120)
    try:
        connection.request("POST", "/o/oauth2/token", form, kind)
        answers[connection.getresponse().status] += 1
    except OSError:
        answers["failed"] += 1
begin, sent = time.monotonic(), 0
import os
while not os.path.exists(stop):
    while sent < (time.monotonic() - begin) * 2000 / 60:
        threading.Thread(target=login, daemon=True).start()
        sent += 1
    time.sleep(0.01)
print(f"  sent {sent} logins in {time.monotonic() - begin:.0f} s; answered: {dict(answers)}")
PYTHON

for round in $(seq "$rounds"); do
    rate >>"$work/alone"
    python3 "$work/logins.py" "$base" "$work/stop-$round" >>"$work/logins" &
    logins=$!
    # The queue of logins is there before the measuring begins.
    sleep 1
    rate >>"$work/beside"
    touch "$work/stop-$round"
    wait "$logins"
done
alone="$(median <"$work/alone")" beside="$(median <"$work/beside")"
echo "cached Preview beside 2,000 password logins a minute"
awk -v a="$alone" -v b="$beside" 'BEGIN { printf "  alone %.0f, beside %.0f: %.3f\n", a, b, b / a }'
cat "$work/logins"
