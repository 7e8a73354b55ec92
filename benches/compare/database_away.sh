#!/usr/bin/env bash
# What callers with and without a key get while the database of a running service is away, and what the log says
# of it: answers by kind of call before, during and after the outage, and lines by level. Needs root or the user
# postgres, PostgreSQL and python3.
#
#   benches/compare/database_away.sh BINARY [SECONDS] [CALLS]
#
# SECONDS is the length of the outage (15), CALLS the calls a second of each kind (20).
set -euo pipefail
binary="$(realpath "$1")"
cd "$(dirname "$0")/../.."
work="$(mktemp -d)"
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
python3 benches/compare/database_away.py "$binary" "$work" "${2:-15}" "${3:-20}"
