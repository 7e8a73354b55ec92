#!/usr/bin/env bash
# Installs programs that checks need and Debian does not package into the tools folder, unless they are there, and
# prints the path of each: tests/tools.sh garage deny. A second call waits for the first.
set -euo pipefail

tools="${TEST_TOOLS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/wirephoto/tools}"
mkdir -p "$tools"

# install PACKAGE@VERSION PROGRAM OPTIONS…: does nothing if the folder holds that version. Unoptimized builds
# take a third of the time.
install() {
    local package="$1" program="$tools/bin/$2"
    shift 2
    (
        flock 9
        if ! "$program" --version 2>/dev/null | grep -qwF "${package#*@}"; then
            # Use a separate build folder, because a build of the tree locks its own.
            env -u CARGO_TARGET_DIR -u RUSTC_WORKSPACE_WRAPPER CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 \
                cargo install --quiet --debug --locked --root "$tools" --force "$package" "$@" >&2
        fi
    ) 9>"$tools/.${package%@*}.lock"
    echo "$program"
}

for name; do
    case "$name" in
    deny) command -v cargo-deny || install cargo-deny@0.20.2 cargo-deny ;;
    machete) command -v cargo-machete || install cargo-machete@0.9.2 cargo-machete ;;
    garage)
        # The version in docs/operations/s3.md. Optimize only code that hashes, compresses and compares all data:
        # the rest is not worth the compile time.
        optimize=()
        for hot in blake2 sha1 sha2 md-5 digest block-buffer generic-array hmac aes aes-gcm polyval crc32fast \
            crc-fast xxhash-rust libsodium-sys zstd-sys lmdb-master-sys ring memchr; do
            optimize+=(--config "profile.dev.package.$hot.opt-level=2")
        done
        install garage@2.5.0 garage --no-default-features --features bundled-libs,lmdb "${optimize[@]}"
        ;;
    *) echo "tools.sh: no tool is called $name" >&2; exit 1 ;;
    esac
done
