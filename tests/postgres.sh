#!/usr/bin/env bash
# Runs tests on a temporary PostgreSQL server: the unit tests that both database engines must pass, and the suite's
# tests of several nodes and purchases; with --all the unit tests and the whole suite. Other arguments are passed to
# the test runner: tests/postgres.sh --lib storage::database::
set -euo pipefail
cd "$(dirname "$0")/.."

programs="$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)"
dir="$(mktemp -d)"
as=()
if [ "$(id -u)" -eq 0 ]; then
    # PostgreSQL's programs refuse to run as root.
    chown postgres "$dir"
    as=(runuser -u postgres --)
fi
port="$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"
stop() {
    (cd "$dir" && "${as[@]}" "$programs/pg_ctl" -D "$dir/data" -m immediate -w stop >/dev/null 2>&1) || true
    rm -rf "$dir"
}
trap stop EXIT
(
    cd "$dir"
    "${as[@]}" "$programs/initdb" -D "$dir/data" -U wirephoto -A trust -E UTF8 --locale=C --no-sync >/dev/null
    "${as[@]}" "$programs/pg_ctl" -D "$dir/data" -l "$dir/log" -w start >/dev/null -o \
        "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off \
         -c full_page_writes=off -c max_connections=500"
)
export TEST_POSTGRES="postgres://wirephoto@127.0.0.1:$port/postgres"

# --all skips tests that need the SQLite file (copies, damaged pages, full disks, migration to PostgreSQL, queries and
# locks), tests of default settings, tests with their own PostgreSQL, and starts without a database.
sqlite=(
    backup:: backup_bucket:: container:: damage:: faults:: migrate:: operator:: packaging:: postgres::
    systemd:: upgrades::
    documented::maintenance:: documented::production:: documented::run::
    attacks::at_rest::a_data_directory_open
    clients::the_public_client_library_searches clients::the_public_client_library_uses_notifications
    nodes::an_edge_does_not_start nodes::two_nodes_that_start_at_once_over_nothing
    orphans::a_refused_upload_leaves
    ownership::a_restore_and_a_migration ownership::an_adopted_store_refuses
    site_desk::a_login_that_cannot_be_verified
    store_marks::commands_leave
    store_s3::a_backup_fetches store_s3::originals_in_a_bucket
)
if [ "${1:-}" = --all ]; then
    cargo test --locked --lib
    tests/suite.sh $(printf -- '--skip %s ' "${sqlite[@]}")
    exit
fi
if [ "$#" -gt 0 ]; then
    cargo test --locked "$@"
    exit
fi
cargo test --locked --lib -- storage::database:: storage::search:: cluster:: access:: archive:: distribution::
tests/suite.sh nodes:: nodes_work:: purchases:: \
    --skip faults:: --skip nodes::an_edge_does_not_start --skip nodes::two_nodes_that_start_at_once_over_nothing
