# Sourced by ./test: exports CARGO_TARGET_DIR, a build folder outside the checkout, so that a machine compiles
# dependencies once for all checkouts. A CARGO_TARGET_DIR of the caller is kept. If the folder cannot be created,
# or while the tests of a different checkout run in it, `target` in this checkout is used.

if [ -z "${CARGO_TARGET_DIR:-}" ]; then
    CARGO_TARGET_DIR="${XDG_CACHE_HOME:-${HOME:-/dev/null}/.cache}/wirephoto/target"
    # The process and the checkout that used it last.
    user="$CARGO_TARGET_DIR/used-by"
    pid="" checkout=""
    [ ! -f "$user" ] || read -r pid checkout <"$user" || true
    if ! mkdir -p "$CARGO_TARGET_DIR" 2>/dev/null || [ ! -w "$CARGO_TARGET_DIR" ]; then
        CARGO_TARGET_DIR="$PWD/target"
    elif [ "$checkout" != "$PWD" ] && kill -0 "$pid" 2>/dev/null; then
        # Both would write the same binaries.
        echo "test: $checkout is being tested in $CARGO_TARGET_DIR; building in $PWD/target" >&2
        CARGO_TARGET_DIR="$PWD/target"
    else
        # Cargo identifies workspace packages by their relative path and compares only timestamps, so it would
        # mistake a package of the other checkout for this one's.
        [ "$checkout" = "$PWD" ] || rm -rf "$CARGO_TARGET_DIR"/*/.fingerprint/wirephoto-*
        echo "$$ $PWD" >"$user"
    fi
fi
export CARGO_TARGET_DIR
mkdir -p "$CARGO_TARGET_DIR"
