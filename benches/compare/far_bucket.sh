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
home="${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/wirephoto/faults"
if ! cmp -s tests/clients/outbound.txt "$home/installed"; then
    python3 -m venv --clear "$home/venv"
    "$home/venv/bin/pip" install --quiet --disable-pip-version-check -r tests/clients/outbound.txt
    cp tests/clients/outbound.txt "$home/installed"
fi
work="$(mktemp -d)"
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
S3_PYTHON="$home/venv/bin/python" python3 benches/compare/far_bucket.py "$binary" "$work" "$seconds" "$@"
