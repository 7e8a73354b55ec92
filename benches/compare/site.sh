#!/usr/bin/env bash
# Measures pages of the web site beside the API calls that they are made of, over an archive with
# more hits than can be paged through.
#   benches/compare/site.sh [ITEMS]
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo build --release --locked --bin wirephoto
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 benches/compare/site.py \
    "${CARGO_TARGET_DIR:-target}/release/wirephoto" "$folder" "${1:-20000}"
