#!/usr/bin/env bash
# Our server beside other image servers over HTTP, in one run and in turn.
# usage: peers.sh [PHOTO…]      ROUNDS=3 SECONDS_EACH=4 CONNECTIONS=1,4,16
#   PEERS="ours sharp ipx thumbor nginx"   which (also sharp-threads); what cannot be installed is left out
#   OPERATIONS="crop,watermark Hires,watermark Preview,Preview,Thumbnail,800 px,Preview WebP"
#   LONGEST=60           seconds a turn may last when a render is slow
#   COPIES=20            of each photograph, at least 4 more than connections; TMPDIR needs room for twice that
#   RESULTS=FILE         every turn as a line of JSON
#   WIREPHOTO=PROGRAM    ours as built elsewhere (otherwise built here); OUR_SETTINGS="media.workers=2 …"
#   OUR_URL=http://…     ours as it runs already, with OUR_PID, OUR_ITEMS="id id…" (copies of the one
#                        PHOTO that differ, or equal requests are rendered once), OUR_KEY, MARK=its PNG;
#                        the caches off, qualities 90, 80, 80, watermark_opacity=1
#   PEERS_HOME=FOLDER    where the other servers are kept
# Without photographs it makes one of 24 and one of 100 megapixels, with the grain of a camera's file.
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
trap 'rm -rf "$work"' EXIT
photos=()
for photo in "$@"; do photos+=("$(cd "$OLDPWD" && realpath "$photo")"); done
for file in RESULTS WIREPHOTO MARK PEERS_HOME; do
    [ -z "${!file:-}" ] || export "$file=$(cd "$OLDPWD" && realpath -m "${!file}")"
done
[ -z "${OUR_URL:-}" ] || [ "${#photos[@]}" -eq 1 ] || { echo "OUR_URL goes with one PHOTO" >&2; exit 2; }

export PEERS="${PEERS:-ours sharp ipx thumbor nginx}" PEERS_HOME="${PEERS_HOME:-$cache/bench-peers}"
export NGINX_MODULE="${NGINX_MODULE:-/usr/lib/nginx/modules/ngx_http_image_filter_module.so}"
mkdir -p "$PEERS_HOME"
need wrk wrk
/usr/bin/python3 -c 'import PIL' 2>/dev/null || need pillow python3-pil

# Versions fixed, so that a later run measures the same.
install_node() {
    need npm npm
    mkdir -p "$PEERS_HOME/node"
    (cd "$PEERS_HOME/node" && npm install --no-audit --no-fund sharp@0.35.5 ipx@3.1.1) >"$work/npm.log" 2>&1
}
install_sharp() {
    need node nodejs
    [ -d "$PEERS_HOME/node/node_modules/ipx" ] || install_node
    (cd "$PEERS_HOME/node" && node -e 'require("sharp")')
}
install_thumbor() {
    [ -x "$PEERS_HOME/thumbor/bin/thumbor" ] && return
    need jpegtran libjpeg-turbo-progs
    python3 -m venv "$PEERS_HOME/thumbor" && "$PEERS_HOME/thumbor/bin/pip" install -q thumbor==7.8.0
}
install_nginx() {
    need nginx nginx-light
    [ -f "$NGINX_MODULE" ] || need image_filter libnginx-mod-http-image-filter
    [ -f "$NGINX_MODULE" ]
}
there=""
for peer in $PEERS; do
    case "$peer" in
    ours) there="$there ours" && continue ;;
    sharp | sharp-threads | ipx) program=install_sharp ;;
    thumbor) program=install_thumbor ;;
    nginx) program=install_nginx ;;
    *) echo "unknown peer: $peer" >&2; exit 2 ;;
    esac
    if $program 2>"$work/install.log"; then there="$there $peer"; else
        echo "$peer cannot be installed here and is left out: $(tail -1 "$work/install.log")" >&2
    fi
done
PEERS="${there# }"

if [ -z "${WIREPHOTO:-}" ] && [ -z "${OUR_URL:-}" ]; then
    cargo build --locked --release --bin wirephoto 2>"$work/build.log" || { cat "$work/build.log" >&2; exit 1; }
    WIREPHOTO="$(realpath "$target")/release/wirephoto"
fi
export WIREPHOTO="${WIREPHOTO:-}"
if [ "${#photos[@]}" -eq 0 ]; then
    need jpegtran libjpeg-turbo-progs
    [ -s "$cache/camera-1/p100_444.jpg" ] || /usr/bin/python3 benches/compare/camera.py "$cache/camera-1" >&2
    photos=("$cache/camera-1/p24_420.jpg" "$cache/camera-1/p100_420.jpg")
fi
machine
/usr/bin/python3 benches/compare/measure.py "$work" "${ROUNDS:-3}" "${SECONDS_EACH:-4}" "${photos[@]}"
