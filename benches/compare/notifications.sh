#!/usr/bin/env bash
# Measures open polls of streams, their wake-up, media beside them, and the lag of matching.
#   benches/compare/notifications.sh [POLLS]
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo build --release --locked --bin wirephoto
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 benches/compare/notifications.py \
    "${CARGO_TARGET_DIR:-target}/release/wirephoto" "$folder" "${1:-10000}"
