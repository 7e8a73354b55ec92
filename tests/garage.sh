#!/usr/bin/env bash
# Runs the store's tests and a part of the suite on Garage, a distributed S3 server: each test has a cluster of
# three nodes on loopback. `tests/tools.sh` builds Garage once. Arguments are passed to the test runner:
# tests/garage.sh --test suite garage::
set -euo pipefail
cd "$(dirname "$0")/.."

[ -n "${TEST_GARAGE:-}" ] || TEST_GARAGE="$(tests/tools.sh garage)"
export TEST_GARAGE
[ -x "$TEST_GARAGE" ] || { echo "garage.sh: $TEST_GARAGE is not a program" >&2; exit 1; }

if [ "$#" -gt 0 ]; then
    exec cargo test --locked "$@"
fi

# Garage issues no session tokens.
tests/suite.sh \
    garage:: store_s3:: backup_bucket:: migrate::an_archive_moves postgres::outages::cache_hits_and_304s_need_neither \
    --skip store_s3::a_temporary_key

# The unit tests of the store expect a running server. The suite has installed its Python packages.
target="$(cargo metadata --locked --no-deps --format-version 1 |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')"
ports="$(python3 -c '
import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(6)]
print(",".join(str(one.getsockname()[1]) for one in sockets))')"
dir="$(mktemp -d)"
coproc CLUSTER {
    NO_PROXY=127.0.0.1 PYTHONDONTWRITEBYTECODE=1 exec "$target/tmp/clients/outbound/bin/python" \
        tests/clients/garage_server.py "$dir" "$ports" 2>"$dir/log"
}
cluster=$CLUSTER_PID
# The nodes stop with this process.
trap 'kill "$cluster" 2>/dev/null || true; wait "$cluster" 2>/dev/null || true; rm -rf "$dir"' EXIT
read -r ready <&"${CLUSTER[0]}" || { cat "$dir/log" >&2; exit 1; }
TEST_S3="$(python3 -c '
import json, sys
ready = json.loads(sys.argv[1])
print("http://127.0.0.1:%d" % ready["port"], ready["id"], ready["key"])' "$ready")"
export TEST_S3
cargo test --locked --lib -- storage::blobs::

# The services of examples/compose.yaml, including Garage.
tests/compose.sh "$target/debug/wirephoto"
