#!/usr/bin/env bash
# Cold crops through a balancer: two nodes of one core each over one data directory against one such
# node. The balancer is the example for nginx; it and the load generator run on the cores of the nodes
# that are measured, so neither side has a core for nothing. Needs wrk, nginx, python3 with PIL, curl, util-linux.
#
#   benches/compare/nodes.sh BINARY [PHOTO] [ROUNDS] [SECONDS]
#
# BINARY is a release build. Without a photograph (or with "") one of 24 megapixels is made. CORES="0 1"
# names the two cores, ITEMS=400 how many names the photograph gets, CONNECTIONS=32 how many ask, GOAL=1.8
# what the ratio has to be for exit status 0.
set -euo pipefail
binary="$(realpath "$1")" photo="${2:-}" rounds="${3:-5}" seconds="${4:-6}"
[ -z "$photo" ] || photo="$(realpath "$photo")"
cd "$(dirname "$0")/../.."
read -r first second <<<"${CORES:-0 1}"
items="${ITEMS:-400}" connections="${CONNECTIONS:-32}" goal="${GOAL:-1.8}"
key=demo-key-0000-0000-000000000001
work="$(mktemp -d)"
started=()
cleanup() {
    for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done
    for process in "${started[@]}"; do wait "$process" 2>/dev/null || true; done
    rm -rf "$work"
}
trap cleanup EXIT

if [ -z "$photo" ]; then
    /usr/bin/python3 benches/compare/camera.py "$work/camera" >&2
    photo="$work/camera/p24_420.jpg"
fi
# One original under many names: its crops are cut anew for each, and names are what nodes share out.
mkdir "$work/incoming"
cp "$photo" "$work/photo.jpg"
for number in $(seq "$items"); do ln "$work/photo.jpg" "$work/incoming/n$number.jpg"; done
"$binary" ingest --data "$work/data" "$work/incoming" >"$work/ingest.log"
"$binary" import --data "$work/data" media-store/accounts.json >/dev/null

port_of() { until grep -q '^listening on' "$1"; do kill -0 "$2"; sleep 0.05; done; sed -n 's/^listening on .*://p' "$1"; }
ports=()
for core in "$first" "$second"; do
    taskset -c "$core" "$binary" serve --demo-public --listen 127.0.0.1:0 --data "$work/data" --set telemetry.log_level=warn \
        --set media.workers=1 --set media.warm=false --set media.client_megapixels_s=0 --set cache.memory_bytes=0 \
        --set cache.disk_bytes=0 --set server.trusted_proxies=127.0.0.1 \
        --set server.public_url=http://photos.example >"$work/out-$core" 2>"$work/log-$core" &
    started+=("$!")
    ports+=("$(port_of "$work/out-$core" "$!")")
done

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
# The example for the nodes that are named, on the cores that are named.
balance() {
    local name="$1" cores="$2" port="$3" folder="$work/$1"
    shift 3
    mkdir "$folder"
    sed -e "s/listen 8000;/listen 127.0.0.1:$port;/" -e "s/127.0.0.1:8081/127.0.0.1:$1/" examples/nodes-nginx.conf >"$folder/site.conf"
    if [ "$#" -gt 1 ]; then sed -i "s/127.0.0.1:8082/127.0.0.1:$2/" "$folder/site.conf"; fi
    sed -i '/server 127.0.0.1:808[23]/d' "$folder/site.conf"
    { [ "$(id -u)" -ne 0 ] || echo "user root;"
      echo "daemon off; worker_processes 1; pid $folder/pid; events {}"
      echo "http { access_log off; include $folder/site.conf;"
      for kind in client_body proxy fastcgi uwsgi scgi; do echo "${kind}_temp_path $folder/$kind;"; done
      echo "}"; } >"$folder/nginx.conf"
    taskset -c "$cores" /usr/sbin/nginx -p "$folder" -e stderr -c nginx.conf 2>"$folder/log" &
    started+=("$!")
    until curl -sf "http://127.0.0.1:$port/health/ready" >/dev/null; do kill -0 "$!"; sleep 0.05; done
}
one="$(free_port)" two="$(free_port)"
balance one "$first" "$one" "${ports[0]}"
balance two "$first,$second" "$two" "${ports[@]}"

# Each item once at each node, so that what is bought is known and the side file is at hand.
for port in "${ports[@]}"; do
    for number in $(seq "$items"); do echo "url = http://127.0.0.1:$port/media/image/n$number-crop_w16_h16.jpg?ak=$key"; echo 'output = /dev/null'; done |
        curl -sf -K -
done
size="$(/usr/bin/python3 -c 'import sys, PIL.Image; print("%d:%d" % PIL.Image.open(sys.argv[1]).size)' "$photo")"
export KEY="$key" ITEMS="" FIRST=0
for number in $(seq "$items"); do ITEMS="$ITEMS${ITEMS:+,}image/n$number:$size"; done

# Crops a second; the next turn goes on where this one ended.
turn() {
    local result
    result="$(taskset -c "$2" wrk -t1 -c"$connections" -d"${seconds}s" --timeout 60s -s benches/compare/crops.lua "http://127.0.0.1:$1" | grep '^RESULT')"
    echo "$result" | awk '{ if ($6 > 0) { print "errors: " $6 > "/dev/stderr"; exit 1 } printf "%.1f %.1f %.1f\n", $2 / ($3 / 1e6), $4, $5 }'
}
: >"$work/one.txt"
: >"$work/two.txt"
for round in $(seq "$rounds"); do
    turn "$one" "$first" | tee -a "$work/one.txt" | sed "s/^/round $round, one node: crops\/s, p50 ms, p99 ms: /"
    FIRST=$((FIRST + 1000000))
    turn "$two" "$first,$second" | tee -a "$work/two.txt" | sed "s/^/round $round, two nodes: /"
    FIRST=$((FIRST + 1000000))
done
asked() { curl -sf "http://127.0.0.1:$1/metrics" | awk '/^wirephoto_http_requests_total.*media/ { sum += $NF } END { print sum }'; }
echo "requests of media at the nodes: $(asked "${ports[0]}"), $(asked "${ports[1]}")"
python3 - "$work/one.txt" "$work/two.txt" "$goal" <<'PYTHON'
import statistics, sys
one, two = ([float(line.split()[0]) for line in open(path)] for path in sys.argv[1:3])
ratio = statistics.median(two) / statistics.median(one)
print(f'medians: one node {statistics.median(one):.1f}/s, two nodes {statistics.median(two):.1f}/s, ratio {ratio:.2f}, goal {sys.argv[3]}')
sys.exit(ratio < float(sys.argv[3]))
PYTHON
