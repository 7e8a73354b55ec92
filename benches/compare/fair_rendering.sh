#!/usr/bin/env bash
# A customer's renders while one anonymous address asks for distinct open crops over 180 connections: status and
# latency of the customer, and what the flood was refused with, for JPEG, WebP and AVIF. Needs python3 and a release
# build.
#
#   benches/compare/fair_rendering.sh BINARY [REQUESTS]
set -euo pipefail
binary="$(realpath "$1")"
cd "$(dirname "$0")/../.."
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
python3 benches/compare/fair_rendering.py "$binary" "$work" "${2:-100}"
