#!/usr/bin/env bash
# What clients see of faults of three nodes behind a balancer: waits and failures by kind of call before,
# during and after a killed node, a database that crashes and restarts, a bucket that hangs and a node
# that is cut off. Needs root (network namespaces), nginx, haproxy, PostgreSQL, python3 with venv and
# iproute2; an S3 server (moto) is installed beside, once.
#
#   benches/compare/faults.sh BINARY [FAULT…]
#
# BINARY is a release build. Faults: kill crash restart hang cut turn; without any, all of them. ROUNDS=1,
# BALANCER=nginx or haproxy, QUIET=12 seconds before and after each fault.
set -euo pipefail
binary="$(realpath "$1")"
shift
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
S3_PYTHON="$home/venv/bin/python" python3 benches/compare/faults.py "$binary" "$work" "$@"
