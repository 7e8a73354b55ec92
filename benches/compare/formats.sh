#!/usr/bin/env bash
# Documents, markup, archives and grey PDFs: requests a second, time to the first byte, memory.
# Needs wrk, curl, python3 with Pillow and a release build. PDFs to convert may be named.
#
#   benches/compare/formats.sh [ROUNDS] [SECONDS] [PDF...]
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds="${1:-5}" seconds="${2:-4}"
shift $(($# > 2 ? 2 : $#))
pdfs=("$@" media-store/demo/graphic/demo-sweden-map/NormalHires.pdf)
binary="$(realpath "${CARGO_TARGET_DIR:-target}/release/wirephoto")"
work="$(mktemp -d)"
trap 'kill "${server:-}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"' EXIT

# A text with 20 pictures of 24 megapixels.
python3 - "$work" <<'PYTHON'
import io, json, os, random, sys
from PIL import Image
folder = os.path.join(sys.argv[1], "text", "bench-text")
os.makedirs(folder)
random.seed(7)
noise = Image.effect_noise((1500, 1000), 60).resize((6000, 4000), Image.BICUBIC)
associations = {}
for number in range(20):
    grey = noise.point(lambda value, n=number: (value * (3 + n % 5) // 5 + n * 7) % 256)
    picture = Image.merge("RGB", (grey, noise, grey.transpose(Image.FLIP_LEFT_RIGHT)))
    picture.save(os.path.join(folder, f"a{number:03}_NormalHires.jpg"), quality=92)
    associations[f"a{number:03}"] = {
        "uri": f"http://localhost/media/image/bench-{number}", "type": "picture",
        "headline": f"Picture {number}"}
document = {"headline": "A text with 20 pictures", "body_html5": "<p>One paragraph.</p>" * 20,
            "associations": associations}
with open(os.path.join(folder, "item.json"), "w") as file:
    json.dump(document, file)
PYTHON
"$binary" serve --demo --listen 127.0.0.1:0 --data "$work/data" \
    --set telemetry.log_level=warn >"$work/out" 2>"$work/log" &
server=$!
until grep -q '^listening on' "$work/out"; do kill -0 "$server"; sleep 0.2; done
base="$(sed -n 's/^listening on //p' "$work/out")"
"$binary" ingest --data "$work/data" "$work/text" >/dev/null 2>&1
key="demo-key-0000-0000-000000000001"
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
until curl -fsS -o /dev/null "$base/media/text/bench-text.json?ak=$key"; do sleep 0.2; done

cpu() { awk '{ print ($14 + $15) / 100 }' "/proc/$server/stat"; }
echo "documents, 16 connections, median of $rounds rounds of $seconds s; CPU is the server's alone"
for path in image/demo-Hubble_XDF.json image/demo-Hubble_XDF.xml text/demo-aceh-rescue.xml; do
    wrk -t1 -c16 -d1s "$base/media/$path?ak=$key" >/dev/null
    for _ in $(seq "$rounds"); do
        before="$(cpu)"
        n="$(wrk -t1 -c16 -d"${seconds}s" "$base/media/$path?ak=$key" | tee "$work/wrk" | awk '/requests in/ { print $1 }')"
        grep -q 'Non-2xx' "$work/wrk" && { cat "$work/wrk"; exit 1; }
        awk -v n="$n" -v s="$seconds" -v b="$before" -v a="$(cpu)" 'BEGIN { print n / s, n / (a - b) }'
    done >"$work/rates"
    rate="$(awk '{ print $1 }' "$work/rates" | median)" core="$(awk '{ print $2 }' "$work/rates" | median)"
    printf '  %-32s %8.0f a second, %8.0f a second of one core\n' "$path" "$rate" "$core"
done

resident() { awk '/VmRSS/ { print $2 / 1024 }' "/proc/$server/status"; }
peak() { awk '/VmHWM/ { print $2 / 1024 }' "/proc/$server/status"; }
url="$base/media/text/bench-text.zip?ak=$key"
curl -fsS -o /dev/null -r 0-0 "$base/media/image/demo-Hubble_XDF.zip?ak=$key"
before="$(resident)"
echo 5 >"/proc/$server/clear_refs"
size="$(curl -fsS -o "$work/whole.zip" -w '%{size_download} %{time_starttransfer} %{time_total}' "$url")"
after="$(peak)"
for _ in $(seq "$rounds"); do
    curl -fsS -o /dev/null -w '%{time_starttransfer}\n' "$url"
done >"$work/first"
awk -v s="$size" -v b="$before" -v p="$after" -v f="$(median <"$work/first")" 'BEGIN {
    split(s, v, " ")
    printf "archive of 20 pictures of 24 megapixels: %.0f MB in %.2f s; first byte %.0f ms, again %.0f ms\n",
        v[1] / 1e6, v[3], v[2] * 1000, f * 1000
    printf "  resident before %.0f MB, at most %.0f MB\n", b, p }'
unzip -tq "$work/whole.zip" >/dev/null && echo "  unzip finds it sound"

echo "grey PDFs, whole process, median of $rounds rounds"
for pdf in "${pdfs[@]}"; do
    for _ in $(seq "$rounds"); do
        start="$(date +%s%N)"
        "$binary" pdf grey --memory-bytes 1073741824 --seconds 60 --long-px 1 "$pdf" >"$work/grey.pdf"
        echo $((($(date +%s%N) - start) / 1000))
    done >"$work/times"
    awk -v t="$(median <"$work/times")" -v n="$(basename "$pdf")" 'BEGIN { printf "  %-32s %.0f ms\n", n, t / 1000 }'
done
