#!/usr/bin/env bash
# Our server beside other image servers, and its cached hits beside nginx and Varnish, over HTTP and in turns. Prints the
# tables of README.md.
# usage: peers.sh [PHOTO…]
#   PARTS="renders hits"   which part to measure
#   ROUNDS=3 SECONDS_EACH=4
#   RESULTS=FILE           every turn as a line of JSON; `table.py --details FILE` prints them all
#   WIREPHOTO=PROGRAM      ours as built elsewhere, otherwise it is built here; OUR_SETTINGS="media.workers=2 …"
#   PEERS_HOME=FOLDER      where the other servers are installed
# Renders:
#   PEERS="sharp oximg ipx thumbor nginx"   a peer that cannot be installed is left out
#   OPERATIONS="crop,Preview,…"             names of OPERATIONS in servers.py; otherwise all
#   CONNECTIONS=16
#   COPIES=24              of each photograph, at least 8 more than connections; TMPDIR needs room for four times that
#   LONGEST=60             seconds of a turn at most when renders are slow
#   MARK=FILE              a PNG to mark with
# Without photographs it makes one of 24 megapixels with the grain of a camera's file.
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
trap 'rm -rf "$work"' EXIT
photos=()
for photo in "$@"; do photos+=("$(cd "$OLDPWD" && realpath "$photo")"); done
for file in RESULTS WIREPHOTO MARK PEERS_HOME; do
    [ -z "${!file:-}" ] || export "$file=$(cd "$OLDPWD" && realpath -m "${!file}")"
done
parts="${PARTS:-renders hits}" results="${RESULTS:-$cache/peers.jsonl}"
export PEERS_HOME="${PEERS_HOME:-$cache/bench-peers}"
export NGINX_MODULE="${NGINX_MODULE:-/usr/lib/nginx/modules/ngx_http_image_filter_module.so}"
mkdir -p "$PEERS_HOME"

# venv NAME PACKAGE…: a Python environment with these packages.
venv() {
    [ -x "$PEERS_HOME/$1/bin/python" ] && "$PEERS_HOME/$1/bin/python" -c "import PIL" 2>/dev/null && return
    /usr/bin/python3 -c 'import venv, ensurepip' 2>/dev/null || need venv python3-venv
    /usr/bin/python3 -m venv "$PEERS_HOME/$1" && "$PEERS_HOME/$1/bin/pip" install -q "${@:2}"
}

# Versions fixed, so that a later run measures the same.
install_sharp() {
    need node nodejs
    need npm npm
    mkdir -p "$PEERS_HOME/node"
    cd "$PEERS_HOME/node" || return
    [ -d node_modules/ipx ] || npm install --no-audit --no-fund sharp@0.35.5 ipx@3.1.1 >"$work/npm.log" 2>&1
    node -e 'require("sharp")'
}
install_ipx() { install_sharp; }
install_oximg() {
    [ -x "$PEERS_HOME/oximg/bin/oximg" ] && return
    need cmake cmake
    need nasm nasm
    CARGO_TARGET_DIR="$work/oximg" cargo install --quiet --locked oximg --version 0.18.1 --root "$PEERS_HOME/oximg"
}
install_thumbor() {
    need jpegtran libjpeg-turbo-progs
    venv thumbor thumbor==7.8.0 pillow==12.3.0
}
install_nginx() {
    need nginx nginx-light
    [ -f "$NGINX_MODULE" ] || need image_filter libnginx-mod-http-image-filter
    [ -f "$NGINX_MODULE" ]
}
install_varnish() { need varnishd varnish; }
install_h2load() { need h2load nghttp2-client; }
# installed PROGRAM…: prints those that are installed or can be, and says why the others are left out.
installed() {
    local program there=""
    for program in "$@"; do
        [ "$(type -t "install_$program")" = function ] || { echo "unknown peer: $program" >&2; exit 2; }
        if ("install_$program") >"$work/install.log" 2>&1; then there="$there $program"; else
            echo "$program cannot be installed here and is left out: $(tail -1 "$work/install.log")" >&2
        fi
    done
    echo "${there# }"
}

need wrk wrk
need jpegtran libjpeg-turbo-progs
need openssl openssl
need curl curl
venv pillow pillow==12.3.0
python="$PEERS_HOME/pillow/bin/python"
if [ -z "${WIREPHOTO:-}" ]; then
    cargo build --locked --release --bin wirephoto 2>"$work/build.log" || { cat "$work/build.log" >&2; exit 1; }
    WIREPHOTO="$(realpath "$target")/release/wirephoto"
fi
export WIREPHOTO
rm -f "$results"
"$python" -c 'import json, sys; print(json.dumps({"part": "machine", "text": sys.argv[1]}))' "$(machine)" >"$results"
for part in $parts; do
    case "$part" in
    renders)
        if [ "${#photos[@]}" -eq 0 ]; then
            made="$cache/camera-2"
            [ -s "$made/p24_prog.jpg" ] || SIZES="p24=6000x4000" "$python" benches/compare/camera.py "$made" >&2
            photos=("$made/p24_420.jpg")
        fi
        # shellcheck disable=SC2086  # names of peers
        PEERS="$(installed ${PEERS:-sharp oximg ipx thumbor nginx})"
        export PEERS
        "$python" benches/compare/render.py "$results" "$work" "${ROUNDS:-3}" "${SECONDS_EACH:-4}" "${photos[@]}"
        ;;
    hits)
        [ -n "$(installed nginx)" ] || { echo "hits need nginx" >&2; exit 1; }
        HITS_WITH="$(installed varnish h2load)" \
            "$python" benches/compare/hits.py "$results" "$work" "${ROUNDS:-3}" "${SECONDS_EACH:-4}"
        ;;
    *) echo "unknown part: $part" >&2; exit 2 ;;
    esac
done
echo "every turn: $results" >&2
"$python" benches/compare/table.py "$results"
