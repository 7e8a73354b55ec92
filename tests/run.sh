#!/usr/bin/env bash
# Tests ./run as a new user would start it: it builds, ingests the demo archive, prints three working URLs, and
# stops cleanly on a signal.
set -euo pipefail
cd "$(dirname "$0")/.."

# Inside the build folder, because the folder for temporary files is small on some machines.
builds="${CARGO_TARGET_DIR:-$PWD/target}"
mkdir -p "$builds"
work="$(mktemp -d -p "$builds")"
trap 'rm -rf "$work"' EXIT
# As on a new machine: an empty build folder, plain rustc, the default profile.
export CARGO_TARGET_DIR="$work/target"
unset RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS RUN_PROFILE
# The build time does not count as start time.
cargo build --release --locked --quiet --bin wirephoto
echo "./run: built in $SECONDS s"
log="$work/log"
# A separate data directory, because that of the checkout may be in use.
./run --listen 127.0.0.1:0 --data "$work/data" >"$log" 2>"$work/errors" &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$work"' EXIT

for _ in $(seq 600); do
    grep -q '^  Demo API key' "$log" && break
    kill -0 "$server" 2>/dev/null || { cat "$log" "$work/errors" >&2; exit 1; }
    sleep 0.5
done
if ! grep -q '^  Demo API key' "$log"; then
    echo "./run did not come up" >&2
    cat "$log" "$work/errors" >&2
    exit 1
fi
urls=$(sed -n '/Three URLs/,/^$/p' "$log" | grep -o 'http://.*')
[ "$(printf '%s\n' "$urls" | wc -l)" -eq 3 ] || { echo "./run does not print three URLs" >&2; cat "$log" >&2; exit 1; }
while read -r url; do
    kind=$(curl -fsS -o "$work/picture" -w '%{http_code} %{content_type}' "$url")
    [ "$kind" = "200 image/jpeg" ] || { echo "$url gave $kind" >&2; exit 1; }
    /usr/bin/python3 -c 'import sys; from PIL import Image; Image.open(sys.argv[1]).load()' "$work/picture"
done <<<"$urls"
page=$(grep -o 'http://[^ ]*/$' "$log" | head -1)
curl -fsS -o "$work/page" "$page"
grep -q '<ul class="wall' "$work/page" || { echo "$page shows no pictures" >&2; head -c 2000 "$work/page" >&2; exit 1; }
kill -TERM "$server"
wait "$server"
echo "./run: three URLs and the page answer, SIGTERM ends it with status 0"
