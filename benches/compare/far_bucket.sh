#!/usr/bin/env bash
# Previews from a bucket that is far away: 100 ms are added to each of its requests. The result caches are off, so
# each Preview is read from the kept set. Needs wrk, nginx, haproxy with Lua, python3 with venv; an S3 server (moto)
# is installed beside, once.
#
#   benches/compare/far_bucket.sh BINARY [SECONDS] [PHOTO…]
#
# BINARY is a release build. Without photographs those of the demo are used.
set -euo pipefail
binary="$(realpath "$1")"
seconds="${2:-10}"
shift "$(($# < 2 ? $# : 2))"
cd "$(dirname "$0")/../.."
. benches/compare/s3_server.sh
work="$(mktemp -d)"
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
python3 benches/compare/far_bucket.py "$binary" "$work" "$seconds" "$@"
