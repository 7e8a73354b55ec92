#!/usr/bin/env bash
# Compares two builds side by side: cached hits, cold crops, searches and logins, in turns over the
# same demo archive. Needs wrk, curl and python3.
#
#   benches/compare/builds.sh BEFORE AFTER [ROUNDS] [SECONDS]
#
# BEFORE and AFTER are binaries. Each serves a data directory of its own; only one has load at a time.
# Prints the medians of all rounds and their ratio.
set -euo pipefail
before="$(realpath "$1")" after="$(realpath "$2")" rounds="${3:-7}" seconds="${4:-4}"
cd "$(dirname "$0")/../.."
work="$(mktemp -d)"
declare -A server base token
stop() {
    kill "${server[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap stop EXIT

key="demo-key-0000-0000-000000000001"
form=(-d grant_type=password -d username=demo-editor -d password=demo-editor-password -d scope=roles)
for build in before after; do
    # Rendering has no rate limit here, and crops are never cached.
    "${!build}" serve --demo --listen 127.0.0.1:0 --data "$work/$build" \
        --set telemetry.log_level=warn --set media.client_megapixels_s=0 \
        --set cache.crops_share=0 >"$work/$build.out" 2>"$work/$build.log" &
    server[$build]=$!
    until grep -q '^listening on' "$work/$build.out"; do
        kill -0 "${server[$build]}" || { cat "$work/$build.log" >&2; exit 1; }
        sleep 0.2
    done
    base[$build]="$(sed -n 's/^listening on //p' "$work/$build.out")"
    token[$build]="$(curl -fsS "${base[$build]}/o/oauth2/token" -u demo-client:demo-client-secret "${form[@]}" |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["access_token"])')"
done

rate() { wrk -t1 -c16 -d"${seconds}s" "$@" | awk '/^Requests\/sec/ { print $2 }'; }
preview="/media/image/demo-solnedgang-over-bergen_NormalPreview.jpg"
basic="Authorization: Basic $(printf 'demo-editor:demo-editor-password' | base64)"

# Logins a second through the token endpoint: 4 at a time, each of which hashes a password.
cat >"$work/logins.py" <<'PYTHON'
import http.client, sys, threading, time, urllib.parse
host, seconds = sys.argv[1].removeprefix("http://"), float(sys.argv[2])
form = urllib.parse.urlencode({
    "grant_type": "password", "username": "demo-editor", "password": "demo-editor-password",
    "scope": "roles", "client_id": "demo-client", "client_secret": "demo-client-secret"})
kind = {"Content-Type": "application/x-www-form-urlencoded"}
done, end = [0] * 4, time.monotonic() + seconds
def log_in(at):
    connection = http.client.HTTPConnection(host, timeout=60)
    while time.monotonic() < end:
        connection.request("POST", "/o/oauth2/token", form, kind)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        done[at] += 1
threads = [threading.Thread(target=log_in, args=(at,)) for at in range(4)]
begin = time.monotonic()
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(sum(done) / (time.monotonic() - begin))
PYTHON

measure() {
    local build="$1" round="$2" url="${base[$1]}"
    rate "$url$preview" >>"$work/$build.cached"
    rate -H "Authorization: Bearer ${token[$build]}" "$url$preview" >>"$work/$build.cached-token"
    rate -H "Authorization: ApiKey $key" "$url/media/image/demo-solnedgang-over-bergen.json" >>"$work/$build.document"
    ITEMS="image/demo-solnedgang-over-bergen:4272:2848" KEY="$key" FIRST="$((round * 100000))" \
        rate -s benches/compare/crops.lua "$url" >>"$work/$build.crops"
    rate -H "Authorization: ApiKey $key" "$url/content/v1/_all/search?q=sol+OR+demo&s=10" >>"$work/$build.search"
    rate -H "$basic" "$url/content/v1/image/search?q=sol&s=1" >>"$work/$build.search-basic"
    python3 "$work/logins.py" "$url" "$seconds" >>"$work/$build.logins"
}

for round in $(seq 0 "$rounds"); do
    # The first round warms both up and is not counted. Each round begins with the other one.
    order=(before after)
    ((round % 2)) && order=(after before)
    for build in "${order[@]}"; do measure "$build" "$round"; done
    ((round)) || rm -f "$work"/{before,after}.{cached,cached-token,document,crops,search,search-basic,logins}
done

median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
printf 'requests a second, medians of %s rounds of %s s, in turns\n' "$rounds" "$seconds"
for what in cached cached-token document crops search search-basic logins; do
    awk -v what="$what" -v b="$(median "$work/before.$what")" -v a="$(median "$work/after.$what")" \
        'BEGIN { printf "  %-14s before %9.1f   after %9.1f   %.3f\n", what, b, a, a / b }'
done
