#!/usr/bin/env bash
# Scrolls through as many hits as can be paged through, in a browser, and prints what its page takes every
# thousand hits: DOM nodes, heap after a garbage collection, memory of the tab's process.
# Needs chromium, chromedriver, python3 with Pillow and a release build.
#   benches/compare/scroll.sh [BINARY]
set -euo pipefail
cd "$(dirname "$0")/../.."
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
/usr/bin/python3 benches/compare/scroll.py "${1:-${CARGO_TARGET_DIR:-target}/release/wirephoto}" "$folder"
