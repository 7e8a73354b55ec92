#!/usr/bin/env python3
"""Measures the service over HTTP on 127.0.0.1 and prints tables: cached hits beside nginx, and
cold crops.

usage: service.py WIREPHOTO WORK_DIR ROUNDS SECONDS PHOTO...

Everything it starts ends with it. Run it with a Python that has Pillow.
"""
import atexit, json, os, re, signal, socket, statistics, subprocess, sys, time, urllib.request
from PIL import Image

binary, work, rounds, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
photos = sys.argv[5:]
here = os.path.dirname(os.path.abspath(__file__))
data = os.path.join(work, "data")
KEY = "bench-key-0123456789abcdef"
TARGET_BYTES = 100_000
started = []


def stop(process):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    started.remove(process)


atexit.register(lambda: [stop(process) for process in list(started)])
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def wirephoto(*arguments):
    command = [binary, *arguments, "--data", data]
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout


class Server:
    """A running `wirephoto serve`."""

    def __init__(self, **settings):
        command = [binary, "serve", "--listen", "127.0.0.1:0", "--data", data]
        settings = {"telemetry.log_level": "warn", "media.client_megapixels_s": 0, **settings}
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(self.process)
        line = self.process.stdout.readline()
        self.url = re.search(r"http://[0-9.:]+", line).group()

    def peak_mb(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

    def stop(self):
        stop(self.process)


def cpu_seconds(pid):
    """Processor time of a process and its children so far: user, system."""
    children = subprocess.run(["ps", "--ppid", str(pid), "-o", "pid="], text=True, capture_output=True).stdout
    total = [0.0, 0.0]
    for each in [str(pid), *children.split()]:
        with open(f"/proc/{each}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        for index in (0, 1):
            total[index] += int(fields[11 + index]) / os.sysconf("SC_CLK_TCK")
    return total


def get(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read()


def load(url, script, connections, threads, duration, **environment):
    """Runs wrk: requests a second, median and 99th percentile in ms, errors."""
    command = ["wrk", f"-t{threads}", f"-c{connections}", f"-d{duration}s", "--timeout", "30s",
               "-s", os.path.join(here, script), url]
    text = subprocess.run(command, check=True, text=True, capture_output=True,
                          env={**os.environ, **environment}).stdout
    requests, micros, p50, p99, errors = re.search(r"^RESULT (.*)$", text, re.M).group(1).split()
    return int(requests) / (int(micros) / 1e6), float(p50), float(p99), int(errors), int(requests)


def start_nginx(root):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    conf = os.path.join(work, "nginx.conf")
    with open(conf, "w") as file:
        file.write(f"""
            daemon off; worker_processes 2; pid {work}/nginx.pid; error_log {work}/nginx.log;
            {"user root;" if os.geteuid() == 0 else ""}
            events {{ worker_connections 1024; }}
            http {{
                access_log off; sendfile on; tcp_nodelay on;
                keepalive_timeout 300s; keepalive_requests 1000000000;
                open_file_cache max=1000 inactive=300s; open_file_cache_valid 300s;
                client_body_temp_path {work}/t1; proxy_temp_path {work}/t2;
                fastcgi_temp_path {work}/t3; uwsgi_temp_path {work}/t4; scgi_temp_path {work}/t5;
                types {{ image/jpeg jpg; }}
                server {{ listen 127.0.0.1:{port} reuseport backlog=4096; root {root}; }}
            }}""")
    process = subprocess.Popen(["/usr/sbin/nginx", "-c", conf, "-p", work], stderr=subprocess.DEVNULL)
    started.append(process)
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return process, f"http://127.0.0.1:{port}"
        except OSError:
            time.sleep(0.05)
    raise SystemExit("nginx does not start")


def ingest():
    accounts = os.path.join(work, "accounts.json")
    with open(accounts, "w") as file:
        json.dump({
            "organizations": [{"id": 1, "name": "Bench"}],
            "products": [{"id": 1, "code": "BENCH"}],
            "agreements": [{"id": 1, "organization": 1, "type": "Subscription", "superAgreement": True,
                            "products": ["BENCH"]}],
            "users": [{"id": 1, "organization": 1, "userName": "bench", "roles": ["ROLE_OFP"], "agreements": [1],
                       "emailAddress": "bench@example.com", "firstName": "Bench", "lastName": "Bench"}],
            "apiKeys": [{"user": "bench", "key": KEY, "name": "bench"}],
        }, file)
    wirephoto("import", accounts)
    items = []
    for photo in photos:
        lines = wirephoto("ingest", "--json", photo).splitlines()
        key = next(json.loads(line)["item"] for line in lines if '"item"' in line)
        size = Image.open(photo).size
        items.append((key, *size))
    return items


def near_target(item):
    """The quality at which the Preview has about 100 kB."""
    low, high, best = 20, 98, None
    while low <= high:
        quality = (low + high) // 2
        server = Server(**{"media.preview_quality": quality, "cache.disk_bytes": 0})
        length = len(get(f"{server.url}/media/{item}_NormalPreview.jpg"))
        server.stop()
        if best is None or abs(length - TARGET_BYTES) < abs(best[1] - TARGET_BYTES):
            best = quality, length
        low, high = (quality + 1, high) if length < TARGET_BYTES else (low, quality - 1)
    return best[0]


def cached(item):
    quality = near_target(item)
    server = Server(**{"media.preview_quality": quality})
    path = f"/media/{item}_NormalPreview.jpg"
    bytes_ = get(server.url + path)
    root = os.path.join(work, "static")
    os.makedirs(root, exist_ok=True)
    with open(os.path.join(root, "preview.jpg"), "wb") as file:
        file.write(bytes_)
    nginx, nginx_url = start_nginx(root)
    assert get(nginx_url + "/preview.jpg") == bytes_ == get(server.url + path)
    urls = {"nginx": nginx_url + "/preview.jpg", "ours": server.url + path}
    pids = {"nginx": nginx.pid, "ours": server.process.pid}
    for url in urls.values():
        load(url, "cached.lua", 64, 2, 1)
    results = {name: [] for name in urls}
    order = list(urls)
    for _ in range(rounds):
        order.reverse()
        for name in order:
            before = cpu_seconds(pids[name])
            result = load(urls[name], "cached.lua", 64, 2, seconds)
            after = cpu_seconds(pids[name])
            micros = [(now - then) * 1e6 / result[4] for now, then in zip(after, before)]
            results[name].append((*result, *micros))
    peak = server.peak_mb()
    server.stop()
    stop(nginx)
    print(f"\n### Cached hits: the same JPEG of {len(bytes_)} bytes, wrk -t2 -c64, "
          f"{rounds} rounds of {seconds} s in turn\n")
    print("| | requests/s (rounds) | median | p50, ms | p99, ms | errors | CPU a request, µs: user + system |\n|---|---|---|---|---|---|---|")
    median = lambda name, index: statistics.median(result[index] for result in results[name])
    for name in urls:
        each = ", ".join(f"{result[0]:.0f}" for result in results[name])
        errors = sum(result[3] for result in results[name])
        print(f"| {name} | {each} | {median(name, 0):.0f} | {median(name, 1):.2f} | {median(name, 2):.2f} | {errors} "
              f"| {median(name, 5):.1f} + {median(name, 6):.1f} |")
    pairs = [ours[0] / other[0] for ours, other in zip(results["ours"], results["nginx"])]
    print(f"\nours/nginx: {median('ours', 0) / median('nginx', 0):.2f} of the medians, "
          f"{statistics.median(pairs):.2f} as median of the rounds; peak resident memory {peak:.0f} MB")


def cold(kind, items, concurrencies):
    text = ",".join(f"{key}:{width}:{height}" for key, width, height in items)
    off = {"cache.memory_bytes": 0, "cache.disk_bytes": 0}
    print(f"\n### Cold crops 800x600 of the Hires, random positions, caches off; "
          f"{kind} originals: {len(items)}\n")
    print("| connections | requests/s | p50, ms | p99, ms | errors | peak resident MB |\n|---|---|---|---|---|---|")
    first = 1
    for connections in concurrencies:
        server = Server(**off)  # fresh, so that the peak belongs to these connections
        answers = []
        load(server.url, "crops.lua", connections, 1, 1, ITEMS=text, KEY=KEY, FIRST=str(first))
        first += 100_000
        for _ in range(3):
            answers.append(load(server.url, "crops.lua", connections, 1, seconds, ITEMS=text, KEY=KEY, FIRST=str(first)))
            first += 100_000
        column = lambda index: statistics.median(answer[index] for answer in answers)
        print(f"| {connections} | {column(0):.0f} | {column(1):.1f} | {column(2):.1f} | "
              f"{sum(answer[3] for answer in answers)} | {server.peak_mb():.0f} |", flush=True)
        server.stop()


items = ingest()
cached(items[0][0])
progressive = [item for item, photo in zip(items, photos) if Image.open(photo).info.get("progressive")]
baseline = [item for item in items if item not in progressive]
if baseline:
    cold("baseline", baseline, (1, 4, 16))
if progressive:
    cold("progressive", progressive, (16,))
