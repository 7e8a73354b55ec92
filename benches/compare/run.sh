#!/usr/bin/env bash
# Our renders beside libvips and Pillow, in one run and in turn.
# usage: run.sh [PHOTO…]      ROUNDS=9, ONLY=preview,crop, VIPS_PIP="pyvips-binary==8.18.7"
#        (VIPS_PIP=none: Debian's libvips alone)
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
trap 'rm -rf "$work"' EXIT
photos=()
for photo in "$@"; do photos+=("$(cd "$OLDPWD" && realpath "$photo")"); done

need vips libvips-tools
/usr/bin/python3 -c 'import PIL' 2>/dev/null || need pillow python3-pil
/usr/bin/python3 -c 'import venv, ensurepip' 2>/dev/null || need venv python3-venv
# pyvips twice: with Debian's libvips and with a newer one that comes with it.
venv() {
    [ -x "$1/bin/python" ] || { python3 -m venv "$1" && "$1/bin/pip" install -q "${@:2}"; }
    "$1/bin/python" -c 'import pyvips' && pythons="${pythons:+$pythons,}$1/bin/python"
}
pythons=""
[ "${VIPS_PIP:=pyvips-binary==8.18.7}" = none ] || venv "$cache/bench-vips-new" pyvips==3.2.0 "$VIPS_PIP"
venv "$cache/bench-vips-system" pyvips==3.2.0

# The worker is the benchmark's own program.
worker="$(cargo bench --locked -p wirephoto-imaging --bench render --no-run --message-format=json 2>"$work/build.log" |
    sed -n 's/.*"name":"render".*"executable":"\([^"]*\)".*/\1/p' | tail -1)"
[ -x "$worker" ] || { cat "$work/build.log" >&2; exit 1; }
made_photo
machine
/usr/bin/python3 benches/compare/inprocess.py "$worker" "$pythons" "$work" "${ROUNDS:-9}" \
    "$work/made-24mp.jpg" "${photos[@]}"
