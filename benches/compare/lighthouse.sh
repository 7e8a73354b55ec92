#!/usr/bin/env bash
# What Lighthouse says of the pages of the demo: first page, search, an item and the crop studio, on
# a desktop and on a phone (its slow processor and network are simulated). Needs npm, chromium,
# python3 and a release build. Lighthouse is fetched by npm.
#
#   benches/compare/lighthouse.sh [ROUNDS] [BINARY]
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds="${1:-3}" binary="${2:-${CARGO_TARGET_DIR:-target}/release/wirephoto}"
lighthouse="lighthouse@12.8.2"
work="$(mktemp -d)"
"$binary" serve --demo --listen 127.0.0.1:0 --data "$work/data" \
    --set telemetry.log_level=warn >"$work/out" 2>"$work/log" &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
until grep -q '^listening on' "$work/out"; do kill -0 "$server"; sleep 0.2; done
base="$(sed -n 's/^listening on //p' "$work/out")"
CHROME_PATH="$(command -v chromium || command -v google-chrome)"
export CHROME_PATH

item="/item/image/demo-solnedgang-over-bergen"
for page in "first:/" "search:/?q=mountains" "item:$item" "studio:$item/crop"; do
    # A visitor is rarely the first one: renditions are in the cache.
    curl -fsS -o /dev/null "$base${page#*:}"
    for round in $(seq "$rounds"); do
        for form in desktop mobile; do
            preset=()
            if [ "$form" = desktop ]; then preset=(--preset=desktop); fi
            npx --yes "$lighthouse" "$base${page#*:}" "${preset[@]}" --quiet --output=json \
                --only-categories=performance --output-path="$work/${page%%:*}-$form-$round.json" \
                --chrome-flags="--headless=new --no-sandbox --disable-dev-shm-usage"
        done
    done
done

cat >"$work/report.py" <<'PYTHON'
import glob, json, statistics, sys
print("| page | form | performance | first paint | largest paint | blocked | shift | bytes |")
print("|---|---|---|---|---|---|---|---|")
for page in ("first", "search", "item", "studio"):
    for form in ("desktop", "mobile"):
        runs = [json.load(open(name)) for name in glob.glob(f"{sys.argv[1]}/{page}-{form}-*.json")]
        def middle(audit):
            return statistics.median(run["audits"][audit]["numericValue"] for run in runs)
        score = statistics.median(run["categories"]["performance"]["score"] * 100 for run in runs)
        print(f"| {page} | {form} | {score:.0f} | {middle('first-contentful-paint') / 1000:.1f} s "
              f"| {middle('largest-contentful-paint') / 1000:.1f} s "
              f"| {middle('total-blocking-time'):.0f} ms "
              f"| {middle('cumulative-layout-shift'):.3f} "
              f"| {middle('total-byte-weight') / 1000:.0f} kB |")
PYTHON
python3 "$work/report.py" "$work"
if [ -n "${KEEP:-}" ]; then mkdir -p "$KEEP" && cp "$work"/*-*.json "$KEEP"; fi
