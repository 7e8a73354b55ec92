"""Previews a second from a bucket that is far away; see far_bucket.sh.

The service talks to HAProxy, which waits before each request, and HAProxy to nginx, which keeps what the S3 server
answered to reads: the S3 server alone would be slower than the service.
"""

import atexit
import glob
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

binary, work, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3])
photos = sys.argv[4:] or sorted(glob.glob("media-store/demo/image/*/NormalHires.jpg"))
here = os.path.dirname(os.path.abspath(__file__))
DELAY_MS = 100
COPIES = 40
started = []


def stop_all():
    for process in reversed(started):
        process.send_signal(signal.SIGTERM)
    for process in reversed(started):
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()


atexit.register(stop_all)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(*command, **more):
    process = subprocess.Popen(command, text=True, **more)
    started.append(process)
    return process


def wait_for_port(port):
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"nothing listens at port {port}")


def start_bucket():
    """Starts the S3 server; returns its port and key."""
    environment = {**os.environ, "PYTHONPATH": "tests/clients"}
    server = start(os.environ["S3_PYTHON"], "tests/clients/s3_server.py", work, "127.0.0.1",
                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    return json.loads(server.stdout.readline())


def start_cache(upstream):
    port = free_port()
    conf = f"{work}/nginx.conf"
    with open(conf, "w") as file:
        file.write(f"""
            daemon off; worker_processes 1; pid {work}/nginx.pid; error_log {work}/nginx.log;
            {"user root;" if os.geteuid() == 0 else ""}
            events {{ worker_connections 1024; }}
            http {{
                access_log off; keepalive_requests 1000000; client_max_body_size 0;
                client_body_temp_path {work}/t1; proxy_temp_path {work}/t2;
                fastcgi_temp_path {work}/t3; uwsgi_temp_path {work}/t4; scgi_temp_path {work}/t5;
                proxy_cache_path {work}/cache keys_zone=all:16m;
                server {{
                    listen 127.0.0.1:{port};
                    location / {{
                        proxy_pass http://127.0.0.1:{upstream};
                        proxy_http_version 1.1; proxy_set_header Connection "";
                        proxy_set_header Host $http_host; proxy_set_header Range $http_range;
                        # Signed as well; a cache leaves them out of its requests.
                        proxy_set_header If-Match $http_if_match;
                        proxy_set_header If-None-Match $http_if_none_match;
                        # A HEAD that became a GET would not have the method that its signature covers.
                        proxy_cache all; proxy_cache_convert_head off; proxy_cache_valid 200 206 1h;
                        # What is written meanwhile is read for the first time after it.
                        proxy_cache_key "$request_method $request_uri $http_range";
                    }}
                }}
            }}""")
    start("/usr/sbin/nginx", "-c", conf, "-p", work, stderr=subprocess.DEVNULL)
    wait_for_port(port)
    return port


def start_delay(upstream):
    port = free_port()
    with open(f"{work}/delay.lua", "w") as file:
        file.write(f'core.register_action("delay", {{"http-req"}}, function() core.msleep({DELAY_MS}) end)\n')
    conf = f"{work}/haproxy.cfg"
    with open(conf, "w") as file:
        file.write(f"""
global
    lua-load {work}/delay.lua
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend far
    bind 127.0.0.1:{port}
    http-request lua.delay
    default_backend bucket
backend bucket
    server s3 127.0.0.1:{upstream}
""")
    start("/usr/sbin/haproxy", "-f", conf, stderr=subprocess.DEVNULL)
    wait_for_port(port)
    return port


def serve(port, bucket, settings):
    command = [binary, "serve", "--listen", "127.0.0.1:0", "--data", f"{work}/data"]
    given = {
        "store.originals": "s3://bilder/far", "store.endpoint": f"http://127.0.0.1:{port}",
        "store.region": "eu-north-1", "store.access_key_id": bucket["id"], "store.secret_access_key": bucket["key"],
        "store.plain_http": "true", "telemetry.log_level": "warn", **settings,
    }
    for name, value in given.items():
        command += ["--set", f"{name}={value}"]
    process = start(*command, stdout=subprocess.PIPE)
    url = re.search(r"http://[0-9.:]+", process.stdout.readline()).group()
    return process, url, given


def stop(process):
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    started.remove(process)


def ingest(settings):
    """Takes each photograph in as often as it takes for COPIES items, each with bytes of its own."""
    folder = f"{work}/photos"
    os.makedirs(folder, exist_ok=True)
    for number in range(COPIES):
        with open(photos[number % len(photos)], "rb") as file:
            jpeg = file.read()
        comment = f"copy {number}".encode()
        segment = b"\xff\xfe" + (len(comment) + 2).to_bytes(2, "big") + comment
        with open(f"{folder}/far-{number}.jpg", "wb") as file:
            file.write(jpeg[:2] + segment + jpeg[2:])
    command = [binary, "ingest", "--data", f"{work}/data", folder]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def path_of(url, number):
    return f"{url}/media/image/far-{number}_NormalPreview.jpg"


def wait_until_kept(url):
    for number in range(COPIES):
        for _ in range(600):
            with urllib.request.urlopen(path_of(url, number), timeout=120) as answer:
                if answer.headers["Wirephoto-Path"] == "stored":
                    break
            time.sleep(0.5)


def load(url, connections):
    script = f"{work}/previews.lua"
    with open(script, "w") as file:
        file.write(f"""
            local count = 0
            request = function()
                count = count + 1
                return wrk.format("GET", "/media/image/far-" .. (count % {COPIES}) .. "_NormalPreview.jpg")
            end""")
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "--latency", "-s", script, url]
    text = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1))
    median = re.search(r"50%\s+(\S+)", text).group(1)
    errors = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    return rate, median, int(errors.group(1)) if errors else 0


bucket = start_bucket()
near = start_cache(bucket["port"])
far = start_delay(near)
off = {"cache.memory_bytes": 0, "cache.disk_bytes": 0}
process, url, given = serve(near, bucket, off)
ingest({name: value for name, value in given.items() if name.startswith("store.")})
wait_until_kept(url)
stop(process)
print(f"{COPIES} photographs, result caches off, default settings, {seconds} s each\n")
print("| bucket | connections | Previews/s | p50 | refused |\n|---|---|---|---|---|")
for name, port in [("near", near), (f"{DELAY_MS} ms away", far)]:
    process, url, _ = serve(port, bucket, off)
    load(url, 8)
    for connections in (8, 32):
        rate, median, errors = load(url, connections)
        print(f"| {name} | {connections} | {rate:.0f} | {median} | {errors} |", flush=True)
    stop(process)
