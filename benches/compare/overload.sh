#!/usr/bin/env bash
# Cached hits while renders are saturated, and beside idle connections: p50 and p99, quiet and under the
# flood in turns of one run. Needs wrk, python3, util-linux and a release build; for 20,000 connections
# `ulimit -n` must allow 21,000, or be raised by root.
#
#   benches/compare/overload.sh [ROUNDS] [SECONDS] [CONNECTIONS]
set -euo pipefail
cd "$(dirname "$0")/../.."
connections="${3:-20000}"
ulimit -n "$((connections * 2 + 2000))" 2>/dev/null || ulimit -n "$(ulimit -Hn)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
python3 benches/compare/overload.py "${CARGO_TARGET_DIR:-target}/release/wirephoto" "$work" \
    "${1:-5}" "${2:-5}" "$connections"
