#!/usr/bin/env bash
# The service over HTTP on 127.0.0.1: cached hits beside nginx, and cold crops.
# usage: http.sh [PHOTO…]      ROUNDS=5 SECONDS_EACH=4
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
trap 'rm -rf "$work"' EXIT
photos=()
for photo in "$@"; do photos+=("$(cd "$OLDPWD" && realpath "$photo")"); done

need nginx nginx-light
need wrk wrk
/usr/bin/python3 -c 'import PIL' 2>/dev/null || need pillow python3-pil
cargo build --locked --release --bin wirephoto 2>"$work/build.log" || { cat "$work/build.log" >&2; exit 1; }
[ "${#photos[@]}" -gt 0 ] || { made_photo; photos=("$work/made-24mp.jpg"); }
machine
echo "$(/usr/sbin/nginx -v 2>&1 | sed 's/.*: //'), $(wrk -v 2>&1 | head -1 | cut -d' ' -f1,2)"
/usr/bin/python3 benches/compare/service.py "$target/release/wirephoto" "$work" \
    "${ROUNDS:-5}" "${SECONDS_EACH:-4}" "${photos[@]}"
