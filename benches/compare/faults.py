"""Waits and failures of clients while parts of a cluster break; see faults.sh."""

import glob
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

binary, work, wanted = sys.argv[1], sys.argv[2], sys.argv[3:]
ROUNDS, QUIET = int(os.environ.get("ROUNDS", "1")), float(os.environ.get("QUIET", "12"))
BALANCER = os.environ.get("BALANCER", "nginx")
KEY, PROVIDER = "demo-key-0000-0000-000000000001", "faults-key-0000-0000-000000000001"
# What a client waits for an answer; a browser would wait longer.
CLIENT_S = 30
ITEMS, NODES = 40, 3
# Longer than store.answer_s and store.give_up_s; longer than it takes until a node is taken for dead.
HANG_S, CUT_S, TURN_S = 40, 20, 80
# Calls a second of each kind, and how many may be under way. They are sent when it is time, whether
# earlier ones were answered or not, and a wait counts from then.
RATES = {"hit": 40, "crop": 6, "search": 5, "write": 5, "upload": 2, "purchase": 2}
UNDER_WAY = 150
LARGE = 4272, 2848
process = os.getpid()
subnet = f"10.{192 + (process >> 8) % 64}.{process % 256}"
host, bridge = f"{subnet}.1", f"wpb{process}"
started, made = [], []


def run(*command, check=True, **more):
    return subprocess.run(command, check=check, text=True, stdout=subprocess.PIPE, **more).stdout


def ip(text):
    run("ip", *text.split())


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(*command, name, ready=None):
    """A program that ends with this one; with `ready`, what its output said that matches."""
    with open(f"{work}/{name}.log", "a") as log:
        one = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE if ready else log, stderr=log, text=True)
    started.append(one)
    for line in one.stdout or ():
        if found := re.match(ready, line):
            return one, found.group(1)
    if ready:
        raise SystemExit(open(f"{work}/{name}.log").read())
    return one


def connect():
    """A bridge with a link for each node."""
    ip(f"link add {bridge} type bridge")
    made.append(f"link del {bridge}")
    ip(f"addr add {host}/24 dev {bridge}")
    ip(f"link set {bridge} up")
    for at in range(NODES):
        ip(f"netns add {space(at)}")
        made.extend([f"netns del {space(at)}", f"link del {end(at)}"])
        ip(f"link add {end(at)} type veth peer name eth0 netns {space(at)}")
        ip(f"link set {end(at)} master {bridge} up")
        ip(f"-n {space(at)} addr add {subnet}.{at + 2}/24 dev eth0")
        ip(f"-n {space(at)} link set eth0 up")
        ip(f"-n {space(at)} link set lo up")


def space(at):
    return f"wirephoto-{process}-{at}"


def end(at):
    return f"wp{process}-{at}"


class Database:
    def __init__(self):
        self.bin = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]))[-1]
        self.dir, self.port = f"{work}/postgres", free_port()
        os.mkdir(self.dir)
        shutil.chown(self.dir, "postgres")
        self.program("initdb", "-U", "wirephoto", "-A", "trust", "-E", "UTF8", "--locale=C")
        with open(f"{self.dir}/data/pg_hba.conf", "w") as rules:
            rules.write("host all all 0.0.0.0/0 trust\n")
        self.up()
        run(f"{self.bin}/psql", self.url("postgres"), "-qc", "CREATE DATABASE archive")

    def program(self, name, *arguments):
        with open(f"{work}/postgres.log", "a") as log:
            subprocess.run(["runuser", "-u", "postgres", "--", f"{self.bin}/{name}", "-D", f"{self.dir}/data", *arguments],
                           check=True, cwd=self.dir, stdout=log, stderr=log)

    def up(self):
        options = f"-p {self.port} -c listen_addresses={host} -c unix_socket_directories="
        self.program("pg_ctl", "-w", "-l", f"{self.dir}/server.log", "-o", options, "start")

    def down(self, mode):
        self.program("pg_ctl", "-w", "-m", mode, "stop")

    def url(self, name="archive"):
        return f"postgres://wirephoto@{host}:{self.port}/{name}"


class Cluster:
    """The database, the bucket, the nodes, and the balancer before them."""

    def __init__(self):
        connect()
        self.database = Database()
        os.mkdir(f"{work}/s3")
        self.s3, ready = start(os.environ["S3_PYTHON"], "tests/clients/s3_server.py", f"{work}/s3", host,
                               name="s3", ready=r"(\{.*\})")
        ready = json.loads(ready)
        self.settings = [
            f"database.url={self.database.url()}", "store.originals=s3://bilder/faults", "store.plain_http=true",
            f"store.endpoint=http://{host}:{ready['port']}", "store.region=eu-north-1",
            f"store.access_key_id={ready['id']}", f"store.secret_access_key={ready['key']}",
            "server.public_url=http://photos.example", f"server.trusted_proxies={host}",
            "media.warm=false", "media.client_megapixels_s=0",
        ]
        self.take_in()
        self.nodes = [self.node(at) for at in range(NODES)]
        self.port = free_port()
        self.balancer = self.balance()

    def sets(self):
        return [word for setting in self.settings for word in ("--set", setting)]

    def take_in(self):
        """One photograph under many names, and the accounts."""
        incoming = f"{work}/incoming"
        for number in range(ITEMS):
            folder = f"{incoming}/image/n{number}"
            os.makedirs(folder)
            with open(f"{folder}/item.json", "w") as file:
                json.dump(document(f"Solnedgång {number}"), file)
            os.symlink(os.path.abspath("media-store/demo/image/demo-solnedgang-over-bergen/NormalHires.jpg"),
                       f"{folder}/NormalHires.jpg")
        with open(f"{work}/more.json", "w") as file:
            json.dump({"apiKeys": [{"user": "demo-admin", "key": PROVIDER, "name": "faults"}]}, file)
        for word, path in (("ingest", incoming), ("import", "media-store/accounts.json"), ("import", f"{work}/more.json")):
            with open(f"{work}/{word}.log", "w") as log:
                subprocess.run([binary, word, path, "--data", f"{work}/data-0", *self.sets()], check=True, stdout=log, stderr=log)

    def node(self, at):
        one, _ = start("nsenter", f"--net=/run/netns/{space(at)}", binary, "serve", "--demo-public", "--listen", f"{subnet}.{at + 2}:8080",
                       "--data", f"{work}/data-{at}", "--set", "telemetry.log_level=warn", *self.sets(),
                       name=f"node-{at}", ready=r"listening on (\S+)")
        return one

    def balance(self):
        name = {"nginx": "nodes-nginx.conf", "haproxy": "nodes-haproxy.cfg"}[BALANCER]
        text = open(f"examples/{name}").read()
        for at in range(NODES):
            text = text.replace(f"127.0.0.1:808{at + 1}", f"{subnet}.{at + 2}:8080")
        text = text.replace("listen 8000;", f"listen 127.0.0.1:{self.port};").replace("bind :8000", f"bind 127.0.0.1:{self.port}")
        site = f"{work}/site.conf"
        with open(site, "w") as file:
            file.write(text)
        if BALANCER == "haproxy":
            one = start("/usr/sbin/haproxy", "-db", "-f", site, name="balancer")
        else:
            kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
            temporary = "".join(f"{kind}_temp_path {work}/{kind};" for kind in kinds)
            with open(f"{work}/nginx.conf", "w") as file:
                file.write(f"daemon off; user root; worker_processes 1; pid {work}/pid; events {{ worker_connections 4096; }}\n"
                           f"http {{ access_log off; {temporary} include {site}; }}")
            one = start("/usr/sbin/nginx", "-p", work, "-e", "stderr", "-c", "nginx.conf", name="balancer")
        for _ in range(200):
            try:
                if Client(self.port).call("GET", "/health/ready")[0] == 200:
                    return one
            except OSError:
                pass
            time.sleep(0.05)
        raise SystemExit(open(f"{work}/balancer.log").read())

    def metric(self, at, name):
        client = Client(8080, f"{subnet}.{at + 2}")
        lines = client.call("GET", "/metrics")[1].decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


def document(headline):
    product = [{"code": "FOTO", "name": "FOTO"}]
    return {"headline": headline, "versioncreated": "2026-03-05T09:15:00+01:00", "copyrightholder": "TT", "product": product}


class Client:
    """A connection that is made again when it broke."""

    def __init__(self, port, address="127.0.0.1"):
        self.place, self.connection, self.used = (address, port), None, 0

    def call(self, method, path, body=None, headers={}):
        # A balancer closes connections that idle, after 60 s or more.
        if self.connection and time.monotonic() - self.used > 30:
            self.connection.close()
            self.connection = None
        try:
            if self.connection is None:
                self.connection = http.client.HTTPConnection(*self.place, timeout=CLIENT_S)
            self.connection.request(method, path, body, headers)
            answer = self.connection.getresponse()
            body = answer.read()
            self.used = time.monotonic()
            return answer.status, body
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.connection = None
            raise


class Load:
    """Calls of every kind at their rates; what came of each: kind, when it was due, wait, whether it was well."""

    def __init__(self, port):
        self.port, self.rows, self.going = port, [], True
        self.local, self.lock = threading.local(), threading.Lock()
        self.count = 0
        self.small = small_photograph()
        self.pools = {kind: ThreadPoolExecutor(UNDER_WAY if kind == "hit" else 60) for kind in RATES}
        self.pacers = [threading.Thread(target=self.pace, args=(kind, rate)) for kind, rate in RATES.items()]
        for number in range(ITEMS):
            self.ask("hit", number)
            self.ask("purchase", number)
            self.ask("crop", number)
        for pacer in self.pacers:
            pacer.start()

    def ask(self, kind, number):
        if not hasattr(self.local, "client"):
            self.local.client = Client(self.port)
        key = {"authorization": f"ApiKey {KEY}"}
        item = f"/media/image/n{number % ITEMS}"
        if kind == "hit":
            call = "GET", f"{item}_NormalPreview.jpg"
        elif kind == "crop":
            x, y = random.randrange(LARGE[0] - 800), random.randrange(LARGE[1] - 600)
            call = "GET", f"{item}-crop_w800_h600_x{x}_y{y}.jpg", None, key
        elif kind == "search":
            call = "GET", f"/content/v1/image/search?q={number % ITEMS}", None, key
        elif kind == "write":
            call = "PUT", "/user/v1/profile/faults", json.dumps({"faults": number}), {**key, "content-type": "application/json"}
        elif kind == "upload":
            call = "PUT", f"/ingest/v1/image/u{number}", self.upload(number), {
                "authorization": f"ApiKey {PROVIDER}", "content-type": "multipart/form-data; boundary=xyzzy"}
        else:
            # Of what came in a while ago, so that it is new to the buyer.
            recent = f"/media/image/u{number - 20}" if number >= 20 + ITEMS else item
            call = "GET", f"{recent}.jpg", None, key
        return self.local.client.call(*call)[0]

    def upload(self, number):
        parts = (("item", json.dumps(document(f"Ny {number}")).encode()), ("NormalHires.jpg", self.small))
        head = '--xyzzy\r\nContent-Disposition: form-data; name="{}"\r\n\r\n'
        return b"".join(head.format(name).encode() + data + b"\r\n" for name, data in parts) + b"--xyzzy--\r\n"

    def one(self, kind, number, due):
        try:
            status = self.ask(kind, number)
            # What was not taken in cannot be bought.
            well = 200 <= status < 300 or (kind == "purchase" and status == 404)
            what = str(status)
        except (OSError, http.client.HTTPException) as why:
            well, what = False, type(why).__name__
        row = kind, due, time.monotonic() - due, well, what
        with self.lock:
            self.rows.append(row)

    def pace(self, kind, rate):
        first = time.monotonic()
        number = 0
        while self.going:
            due = first + number / rate
            time.sleep(max(0, due - time.monotonic()))
            self.pools[kind].submit(self.one, kind, number + ITEMS, due)
            number += 1

    def end(self):
        self.going = False
        for pacer in self.pacers:
            pacer.join()
        for pool in self.pools.values():
            pool.shutdown()


def small_photograph():
    """One that everybody can decode."""
    return subprocess.run(["/usr/bin/python3", "-c", "import sys; from PIL import Image; "
                           "Image.new('RGB', (64, 48), (90, 120, 60)).save(sys.stdout.buffer, 'JPEG')"],
                          check=True, stdout=subprocess.PIPE).stdout


def kill(cluster, round_):
    at = round_ % NODES
    cluster.nodes[at].kill()
    cluster.nodes[at].wait()
    time.sleep(5)
    cluster.nodes[at] = cluster.node(at)


def crash(cluster, _):
    cluster.database.down("immediate")
    time.sleep(3)
    cluster.database.up()


def restart(cluster, _):
    cluster.database.down("fast")
    cluster.database.up()


def hang(cluster, _):
    cluster.s3.send_signal(signal.SIGSTOP)
    time.sleep(HANG_S)
    cluster.s3.send_signal(signal.SIGCONT)


def cut(cluster, round_):
    at = round_ % NODES
    ip(f"link set {end(at)} down")
    time.sleep(CUT_S)
    ip(f"link set {end(at)} up")


def cut_writer(cluster, round_):
    """Cuts a node off in the midst of a transaction, for which the others wait."""
    at = round_ % NODES
    held = f"SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND client_addr = '{subnet}.{at + 2}'"
    going = True

    def write():
        client, key = Client(8080, f"{subnet}.{at + 2}"), {"authorization": f"ApiKey {KEY}", "content-type": "application/json"}
        while going:
            try:
                client.call("PUT", "/user/v1/profile/turn", '{"turn": 1}', key)
            except (OSError, http.client.HTTPException):
                pass

    writers = [threading.Thread(target=write, daemon=True) for _ in range(4)]
    for writer in writers:
        writer.start()
    for _ in range(20):
        time.sleep(0.3)
        ip(f"link set {end(at)} down")
        time.sleep(0.2)
        if int(run(f"{cluster.database.bin}/psql", cluster.database.url(), "-qAtc", held)):
            break
        ip(f"link set {end(at)} up")
        time.sleep(2)
    else:
        print("it was never in a transaction")
    going = False
    time.sleep(TURN_S)
    ip(f"link set {end(at)} up")


FAULTS = {
    "kill": (kill, "a node is killed and started again 5 s later"),
    "crash": (crash, "the database crashes and is started 3 s later"),
    "restart": (restart, "the database restarts (`fast`)"),
    "hang": (hang, f"the bucket hangs for {HANG_S} s"),
    "cut": (cut, f"a node is cut off for {CUT_S} s"),
    "turn": (cut_writer, f"a node is cut off for {TURN_S} s while it has the turn to write"),
}


def quantile(waits, part):
    return sorted(waits)[min(len(waits) - 1, int(len(waits) * part))]


def cell(rows):
    if not rows:
        return "–"
    waits = [wait * 1000 for _, _, wait, _, _ in rows]
    failed = sum(not well for *_, well, _ in rows) / len(rows)
    share = f"; {failed:.1%}" if failed else ""
    return f"{statistics.median(waits):.0f} / {quantile(waits, .99):.0f} / {max(waits):.0f}{share}"


def report(name, times, rows):
    """A table of one fault over its rounds; each time is start, fault, repair, end."""
    print(f"\n#### {FAULTS[name][1]}\n")
    print("| Call | before | during | after | last failure or wait over 1 s after it was over |\n| --- | --- | --- | --- | --- |")
    within = lambda row, a, b: a <= row[1] < b
    for kind in RATES:
        cells = []
        for first, second in ((0, 1), (1, 2), (2, 3)):
            cells.append(cell([row for row in rows if row[0] == kind and any(within(row, t[first], t[second]) for t in times)]))
        late = [row[1] - t[2] for t in times for row in rows
                if row[0] == kind and within(row, t[2], t[3]) and (not row[3] or row[2] > 1)]
        print(f"| {kind} | {' | '.join(cells)} | {f'{max(late):.1f} s' if late else 'none'} |")
    failures = {}
    for kind, due, _, well, what in rows:
        if not well and any(within((kind, due), t[1], t[3]) for t in times):
            failures[f"{kind} {what}"] = failures.get(f"{kind} {what}", 0) + 1
    print(f"\nFailures: {', '.join(f'{count} {what}' for what, count in sorted(failures.items())) or 'none'}.", flush=True)


def main():
    if os.geteuid() != 0:
        raise SystemExit("faults.py: network namespaces need root")
    cluster = Cluster()
    load = Load(cluster.port)
    print(f"cores {os.cpu_count()}, load {os.getloadavg()[0]:.2f}; {BALANCER}; {ROUNDS} rounds; calls/s: "
          + ", ".join(f"{kind} {rate}" for kind, rate in RATES.items()))
    print(f"waits p50 / p99 / max in ms, failed ones too; then the share that failed; a client waits for {CLIENT_S} s")
    time.sleep(5)
    for name in wanted or FAULTS:
        times = []
        for round_ in range(ROUNDS):
            begun = time.monotonic()
            time.sleep(QUIET)
            broken = time.monotonic()
            FAULTS[name][0](cluster, round_)
            mended = time.monotonic()
            time.sleep(QUIET)
            # What is under way may wait for as long as a client does.
            ended = time.monotonic()
            time.sleep(max(3, CLIENT_S + 2 - QUIET) if name in ("hang", "cut", "turn") else 3)
            times.append((begun, broken, mended, ended))
        with load.lock:
            rows = list(load.rows)
        report(name, times, rows)
    load.end()
    said = subprocess.run([binary, "check", "--data", f"{work}/data-0", *cluster.sets()], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(f"\n`wirephoto check`: status {said.returncode}")
    logs = "".join(open(f"{work}/node-{at}.log").read() for at in range(NODES))
    print(f"panics: {logs.count('panicked')}; nodes taken for dead: {logs.count('a node is dead')}")
    if kept := os.environ.get("LOGS"):
        shutil.copytree(work, kept, dirs_exist_ok=True, ignore=shutil.ignore_patterns("data-*", "postgres", "incoming"))
        with open(f"{kept}/rows.json", "w") as file:
            json.dump(load.rows, file)


def clean():
    for one in reversed(started):
        one.kill()
        one.wait()
    for arguments in reversed(made):
        run("ip", *arguments.split(), check=False, stderr=subprocess.DEVNULL)
    for pid in glob.glob(f"{work}/postgres/data/postmaster.pid"):
        os.kill(int(open(pid).readline()), signal.SIGQUIT)


try:
    main()
finally:
    clean()
    # Calls that still wait for an answer are no reason to.
    sys.stdout.flush()
