#!/usr/bin/env python3
"""Measures cached hits of our server beside nginx and Varnish on 127.0.0.1, in turns.

usage: hits.py RESULTS WORK_DIR ROUNDS SECONDS      (run by peers.sh)

Every turn becomes a line of JSON in RESULTS: 64 connections of keep-alive for one URL. nginx serves the same bytes
as files, and as a cache in front of ours; so does Varnish. Over TLS and HTTP/2 ours is compared with files of nginx.
Before the first turn each response is compared with that of ours.
"""
import atexit, json, os, re, shutil, subprocess, sys
from servers import TICKS, cpu_ticks, free_port, here, nginx, start, start_wirephoto, stop, stop_all, version

results, work, rounds, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
ITEM = "/media/image/demo-solnedgang-over-bergen"
PATHS = {
    "Preview": f"{ITEM}_NormalPreview.jpg",
    "Thumbnail": f"{ITEM}_NormalThumbnail.jpg",
    "304": f"{ITEM}_NormalThumbnail.jpg",
    "crop": f"{ITEM}-crop_w400_h300_x100_y100_NormalPreview.jpg",
}
# Renditions carry the public URL in their metadata: with one URL all processes serve the same bytes.
OURS = {"telemetry.log_level": "warn", "media.client_megapixels_s": 0, "cdn.max_age_s": 86400,
        "server.public_url": "http://localhost"}
NO_CACHE = {"cache.memory_bytes": 0, "cache.disk_bytes": 0}
VARNISH = "/usr/sbin/varnishd"
atexit.register(stop_all)


def record(**fields):
    with open(results, "a") as file:
        file.write(json.dumps(fields) + "\n")


class Server:
    """A URL to send requests to, the processes behind it, and a header that shows that it answered from where it should."""

    def __init__(self, name, url, processes, header=None, pattern="", http2=False, rows=tuple(PATHS)):
        self.name, self.url, self.processes, self.rows = name, url, processes, rows
        self.header, self.pattern, self.http2 = header, pattern, http2

    def fetch(self, row, tag=None):
        """Status, headers with names in lower case, and body of a response."""
        head, body = os.path.join(work, "head"), os.path.join(work, "body")
        command = ["curl", "-sk", "-D", head, "-o", body, "-w", "%{http_code}", self.url + PATHS[row]]
        command += ["--http2-prior-knowledge"] if self.http2 else ["--http1.1"]
        command += ["-H", f"If-None-Match: {tag}"] if tag else []
        open(body, "wb").close()
        status = subprocess.run(command, check=True, text=True, capture_output=True).stdout
        with open(head) as lines, open(body, "rb") as file:
            headers = dict(line.strip().split(": ", 1) for line in lines if ": " in line)
            return int(status), {name.lower(): value for name, value in headers.items()}, file.read()

    def prepare(self, row, bodies):
        """Checks the response and keeps the headers of the request."""
        self.fetch(row)  # fills caches
        status, headers, body = self.fetch(row)
        if status != 200 or body != bodies.setdefault(row, body):
            raise SystemExit(f"{row} of {self.name}: status {status}, {len(body)} bytes; expected {len(bodies[row])}")
        if self.header and not re.search(self.pattern, headers.get(self.header, "")):
            raise SystemExit(f"{row} of {self.name} is not a hit: {self.header}: {headers.get(self.header)}")
        if row != "304":
            return []
        status, _, body = self.fetch(row, headers["etag"])
        if status != 304 or body:
            raise SystemExit(f"{row} of {self.name}: status {status}")
        return ["-H", f"If-None-Match: {headers['etag']}"]

    def ticks(self):
        return sum(cpu_ticks(process.pid) for process in self.processes)


def wrk(url, headers, duration):
    command = ["wrk", "-t2", "-c64", f"-d{duration}s", "--timeout", "30s", *headers,
               "-s", os.path.join(here, "cached.lua"), url]
    text = subprocess.run(command, check=True, text=True, capture_output=True).stdout
    count, micros, p50, p99, errors = map(float, re.search(r"^RESULT (.*)$", text, re.M).group(1).split())
    return {"requests": int(count), "rate": count / micros * 1e6, "p50_ms": p50, "p99_ms": p99, "errors": int(errors)}


def h2load(url, headers, duration):
    """One stream at a time on each connection, as with wrk. Times come from the log: the summary has no percentiles."""
    log = os.path.join(work, "h2load.log")
    command = ["h2load", "-t2", "-c64", "-m1", "-D", str(duration), f"--log-file={log}", *headers, url]
    text = subprocess.run(command, check=True, text=True, capture_output=True).stdout
    count, failed, errored, timeout = map(int, re.search(
        r"(\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout", text).groups())
    with open(log) as file:
        times = sorted(int(line.split("\t")[2]) for line in file)
    os.remove(log)
    return {"requests": count, "rate": count / duration, "p50_ms": times[len(times) // 2] / 1e3,
            "p99_ms": times[len(times) * 99 // 100] / 1e3, "errors": failed + errored + timeout}


def serve(name, settings, *options):
    """Ours with a copy of the demo archive of its own."""
    data, archive = os.path.join(work, name), os.path.join(work, "archive")
    if name != "archive":
        shutil.copytree(archive, data)
    return start_wirephoto(data, {**OURS, **settings}, os.path.join(work, f"{name}.log"), *options)


def certificate():
    names = os.path.join(work, "certificate.pem"), os.path.join(work, "key.pem")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
               "-subj", "/CN=localhost", "-days", "2", "-out", names[0], "-keyout", names[1]]
    subprocess.run(command, check=True, capture_output=True)
    return names


def nginx_servers(origin, tls):
    """Files over HTTP/1.1, TLS and HTTP/2, and a cache in front of ours; returns the process and the four ports.

    tcp_nopush makes files faster, but it delays responses from the cache by 40 ms, as sendfile does over HTTP/2
    without TLS.
    """
    ports = [free_port() for _ in range(4)]
    root = os.path.join(work, "static")
    command = nginx(work, "hits", f"""
        ssl_certificate {tls[0]}; ssl_certificate_key {tls[1]}; root {root};
        proxy_cache_path {work}/proxy_cache keys_zone=hits:10m max_size=1g use_temp_path=off;
        upstream ours {{ server {origin.removeprefix("http://")}; keepalive 64; }}
        server {{ listen 127.0.0.1:{ports[0]} reuseport backlog=4096; tcp_nopush on; }}
        server {{ listen 127.0.0.1:{ports[1]} ssl reuseport backlog=4096; }}
        server {{ listen 127.0.0.1:{ports[2]} http2 reuseport backlog=4096; sendfile off; }}
        server {{
            listen 127.0.0.1:{ports[3]} reuseport backlog=4096;
            location / {{
                proxy_pass http://ours; proxy_http_version 1.1; proxy_set_header Connection "";
                proxy_cache hits; proxy_cache_key $request_uri; add_header X-Cache $upstream_cache_status;
            }}
        }}""")
    return start("nginx", command, ports[0], os.path.join(work, "hits.log")), ports


def varnish(origin):
    port = free_port()
    command = [VARNISH, "-F", "-n", os.path.join(work, "varnish"), "-a", f"127.0.0.1:{port}",
               "-b", origin.removeprefix("http://"), "-s", "malloc,256m"]
    return start("varnish", command, port, os.path.join(work, "varnish.log")), f"http://127.0.0.1:{port}"


def start_servers(wanted):
    tls = certificate()
    stop(serve("archive", {}, "--demo")[0])
    ours, url = serve("warn", {})
    servers = [Server("ours", url, [ours], "wirephoto-path", "cache")]
    for row, path in PATHS.items():
        file = f"{work}/static{path}"
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "wb") as out:
            out.write(servers[0].fetch(row)[2])
    other, at = serve("info", {"telemetry.log_level": "info"})
    servers.append(Server("ours at info", at, [other], "wirephoto-path", "cache"))
    other, at = serve("tls", {"server.tls_certificate": tls[0], "server.tls_key": tls[1]})
    secure = Server("ours, TLS", at, [other], "wirephoto-path", "cache")
    other, at = serve("no-cache", NO_CACHE)
    # A crop is not stored.
    servers.append(Server("ours, no cache", at, [other], "wirephoto-path", "stored", rows=("Preview", "Thumbnail")))
    front, ports = nginx_servers(url, tls)
    local = [f"http://127.0.0.1:{port}" for port in ports]
    servers.append(Server("nginx", local[0], [front]))
    servers.append(Server("nginx proxy_cache", local[3], [front, ours], "x-cache", "HIT"))
    if "varnish" in wanted:
        cache, at = varnish(url)
        servers.append(Server("Varnish", at, [cache, ours], "x-varnish", r"\d+ \d+"))
    servers += [secure, Server("nginx, TLS", local[1].replace("http:", "https:"), [front])]
    if "h2load" in wanted:
        servers.append(Server("ours, HTTP/2", url, [ours], "wirephoto-path", "cache", http2=True))
        servers.append(Server("nginx, HTTP/2", local[2], [front], http2=True))
    return servers


def turn(server, row, headers, duration):
    client = h2load if server.http2 else wrk
    before = server.ticks()
    result = client(server.url + PATHS[row], headers, duration)
    result["cpu_us"] = (server.ticks() - before) / TICKS * 1e6 / max(result["requests"], 1)
    return result


def main():
    wanted = os.environ["HITS_WITH"].split()
    versions = {"nginx": version("/usr/sbin/nginx", "-v")}
    if "varnish" in wanted:
        said = subprocess.run([VARNISH, "-V"], text=True, capture_output=True).stderr
        versions["Varnish"] = re.search(r"varnish-([\d.]+)", said).group(1)
    record(part="hits", rounds=rounds, seconds=seconds, versions=versions)
    servers, bodies = start_servers(wanted), {}
    for row in PATHS:
        turns = [[server, server.prepare(row, bodies)] for server in servers if row in server.rows]
        for server, headers in turns:
            turn(server, row, headers, 1)  # warms up
        for _ in range(rounds):
            turns.append(turns.pop(0))
            for server, headers in turns:
                result = turn(server, row, headers, seconds)
                record(part="hit", row=row, server=server.name, bytes=0 if row == "304" else len(bodies[row]), **result)
                print(f"{row}, {server.name}: {result['rate']:.0f}/s, {result['cpu_us']:.1f} us of CPU, "
                      f"{result['errors']} errors", file=sys.stderr)


main()
