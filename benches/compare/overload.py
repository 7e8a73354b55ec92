"""Cached hits beside floods of cold crops and beside idle connections; see overload.sh."""

import os
import re
import resource
import socket
import statistics
import subprocess
import sys
import time
import urllib.request

binary, work, rounds, seconds, connections = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
here = os.path.dirname(os.path.abspath(__file__))
KEY = "demo-key-0000-0000-000000000001"
LARGE = "demo-solnedgang-over-bergen"
HIT = f"/media/image/{LARGE}_NormalPreview.jpg"
# Crops of the same photograph, 4272x2848, at positions that never come twice in a run.
ITEMS = f"image/{LARGE}:4272:2848"
# Other priorities of render threads, to compare.
PRIORITIES = [("renders of the idle class", "--idle", 0), ("renders as everybody else", "--other", 0)]
first = 0


def serve(*settings):
    command = [binary, "serve", "--demo", "--listen", "127.0.0.1:0", "--data", os.path.join(work, "data")]
    for setting in ("telemetry.log_level=warn", "media.client_megapixels_s=0", *settings):
        command += ["--set", setting]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=open(os.path.join(work, "log"), "w"), text=True)
    for line in server.stdout:
        if found := re.match(r"listening on (\S+)", line):
            return server, found.group(1)
    raise SystemExit(open(os.path.join(work, "log")).read())


def wrk(url, script, clients, duration, **environment):
    command = ["wrk", "-t1", f"-c{clients}", f"-d{duration}s", "--timeout", "30s", "-s", os.path.join(here, script), url]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})


def result(process):
    text, _ = process.communicate()
    requests, micros, p50, p99, errors = re.search(r"^RESULT (.*)$", text, re.M).group(1).split()
    return {"rate": int(requests) / (int(micros) / 1e6), "p50": float(p50), "p99": float(p99), "errors": int(errors),
            "requests": int(requests)}


def hits(url):
    return result(wrk(url + HIT, "paced.lua", 32, seconds, PAUSE="40"))


def flood(url, clients, pause):
    """Cold crops for two seconds longer than the hits, each another one."""
    global first
    script = "crops.lua" if pause is None else "paced_crops.lua"
    process = wrk(url, script, clients, seconds + 2, ITEMS=ITEMS, KEY=KEY, FIRST=str(first), PAUSE=str(pause or 0))
    first += 400_000
    time.sleep(1)
    return process


def metric(url, name, label=""):
    with urllib.request.urlopen(url + "/metrics") as answer:
        lines = answer.read().decode().splitlines()
    values = [line.rsplit(" ", 1) for line in lines if line.startswith(name) and label in line]
    return sum(float(value) for _, value in values)


def render_threads(server):
    folder = f"/proc/{server.pid}/task"
    named = ((thread, open(f"{folder}/{thread}/comm").read().strip()) for thread in os.listdir(folder))
    return [thread for thread, name in named if re.fullmatch(r"render-\d+", name)]


def prioritise(server, policy, niceness):
    """Gives the render threads another priority from outside; only root may raise one."""
    for thread in render_threads(server):
        subprocess.run(["chrt", policy, "-p", "0", thread], check=True)
        subprocess.run(["renice", "-n", str(niceness), "-p", thread], check=True, stdout=subprocess.DEVNULL)


def settle(server):
    """Waits until the server has made its demo archive and the renditions of it."""
    def used():
        fields = open(f"/proc/{server.pid}/stat").read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    for _ in range(120):
        before = used()
        time.sleep(1)
        if used() - before <= 1:
            return
    raise SystemExit("the server does not come to rest")


def medians(rows):
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}


def show(name, row, quiet):
    ratio = row["p99"] / quiet["p99"]
    print(f"  {name:<42} {row['rate']:>7.0f}/s  p50 {row['p50']:6.2f}  p99 {row['p99']:6.2f} ms  {ratio:5.2f} of quiet")


def measure(url, kinds):
    """Hits quiet and beside each kind of flood, in turns."""
    rows, crops = {}, {}
    for _ in range(rounds):
        rows.setdefault("quiet", []).append(hits(url))
        for name, (clients, pause) in kinds.items():
            process = flood(url, clients, pause)
            rows.setdefault(name, []).append(hits(url))
            crops.setdefault(name, []).append(result(process))
    rows = {name: medians(found) for name, found in rows.items()}
    for name, row in rows.items():
        show(name, row, rows["quiet"])
        if name in crops:
            made = medians(crops[name])
            print(f"    crops: {made['rate']:.0f}/s answered, of which {made['errors'] / made['requests']:.0%} with 503")


def hold(address, count):
    """Connections that were used once and wait for their next request."""
    host, port = address.removeprefix("http://").split(":")
    held = []
    for _ in range(count):
        one = socket.create_connection((host, int(port)))
        one.sendall(b"GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n")
        if b" 200 " not in one.recv(4096):
            raise SystemExit("a connection was refused")
        held.append(one)
    return held


def resident_mb(server):
    with open(f"/proc/{server.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def main():
    print(f"cores {os.cpu_count()}, load {os.getloadavg()[0]:.2f}; {rounds} rounds of {seconds} s in turns, medians;")
    print("hits: 32 connections with pauses of 0 to 40 ms; server and load on the same cores")
    floods = {
        "120 clients that ask for crops": (120, None),
        "400 clients, most of them refused": (400, 300),
    }
    server, url = serve()
    urllib.request.urlopen(url + HIT).read()
    settle(server)
    print("cached Preview; renders as built")
    measure(url, floods)
    if os.geteuid() == 0:
        for name, policy, niceness in PRIORITIES:
            prioritise(server, policy, niceness)
            print(f"the same, {name}")
            measure(url, floods)
    server.terminate()
    server.wait()
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 200
    count = min(connections, allowed)
    # Idle connections are closed early when fewer than an eighth are free.
    server, url = serve(f"server.connections_max={count * 8 // 7 + 1000}", "server.idle_timeout_s=3600")
    urllib.request.urlopen(url + HIT).read()
    settle(server)
    before, quiet = resident_mb(server), [hits(url) for _ in range(rounds)]
    held = hold(url, count)
    after, beside = resident_mb(server), [hits(url) for _ in range(rounds)]
    print(f"{metric(url, 'wirephoto_connections '):.0f} connections open, {len(held)} of them idle:")
    print(f"  {before:.0f} MB resident before, {after:.0f} MB with them: {(after - before) * 1024 / count:.1f} kB each")
    show("quiet", medians(quiet), medians(quiet))
    show("beside them", medians(beside), medians(quiet))
    server.kill()


main()
