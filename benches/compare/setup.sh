# shellcheck shell=bash
# Sourced by run.sh and peers.sh: installs the other programs, sets $work, $cache and $target.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cache="${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/wirephoto"
mkdir -p "$cache"
work="$(mktemp -d "${TMPDIR:-/tmp}/wirephoto-bench.XXXXXX")"
target="${CARGO_TARGET_DIR:-target}"
if ! command -v cargo >/dev/null 2>&1 && [ -f "$HOME/.cargo/env" ]; then . "$HOME/.cargo/env"; fi

# need PROGRAM PACKAGE: installs the package unless the program is there.
need() {
    command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] && return
    local sudo=""
    [ "$(id -u)" -eq 0 ] || sudo="sudo"
    $sudo apt-get update -qq
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >/dev/null
}

machine() {
    echo "cores $(nproc), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), kernel $(uname -r)," \
        "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release); $(rustc --version | cut -d' ' -f1,2);" \
        "load $(cut -d' ' -f1-3 /proc/loadavg); $(date +%F)"
}

# The made picture, kept between runs.
made_photo() {
    [ -s "$cache/made-24mp-1.jpg" ] || {
        /usr/bin/python3 benches/compare/made.py "$work/made.jpg"
        mv "$work/made.jpg" "$cache/made-24mp-1.jpg"
    }
    ln -sf "$cache/made-24mp-1.jpg" "$work/made-24mp.jpg"
}
