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
. benches/compare/s3_server.sh
work="$(mktemp -d)"
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
python3 benches/compare/faults.py "$binary" "$work" "$@"
