"""Answers and log lines of a service whose database is away; see database_away.sh."""

import collections
import glob
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

binary, work, outage_s, calls = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
KEY = "demo-key-0000-0000-000000000001"
# Before and after the outage.
QUIET_S = 5
PHOTO, TEXT = "/media/image/demo-urtavla", "/media/text/demo-aceh-rescue"
fresh = iter(range(10**9))


def new_crop():
    """A crop that no earlier call requested."""
    at = next(fresh)
    return f"{PHOTO}-crop_w{100 + at % 400}_h{100 + at // 400}_NormalPreview.jpg"


# Each kind of call: the path, and whether it is open to anonymous callers.
CALLS = {
    "Preview": (lambda: f"{PHOTO}_NormalPreview.jpg", True),
    "new crop": (new_crop, True),
    "document": (lambda: f"{PHOTO}.json", True),
    "Hires": (lambda: f"{PHOTO}.jpg", False),
    "text": (lambda: f"{TEXT}.json", False),
    "search": (lambda: "/content/v1/image/search?q=bro", False),
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Database:
    def __init__(self):
        self.bin = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]))[-1]
        self.dir, self.port = f"{work}/postgres", free_port()
        os.mkdir(self.dir)
        self.user = []
        if os.geteuid() == 0:
            # The programs of PostgreSQL refuse to run as root.
            shutil.chown(self.dir, "postgres")
            self.user = ["runuser", "-u", "postgres", "--"]
        self.program("initdb", "-U", "wirephoto", "-A", "trust", "-E", "UTF8", "--locale=C")
        self.up()
        subprocess.run([f"{self.bin}/psql", self.url("postgres"), "-qc", "CREATE DATABASE archive"], check=True)

    def program(self, name, *arguments):
        command = [*self.user, f"{self.bin}/{name}", "-D", f"{self.dir}/data", *arguments]
        with open(f"{work}/postgres.log", "a") as log:
            subprocess.run(command, check=True, cwd=self.dir, stdout=log, stderr=log)

    def up(self):
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories="
        self.program("pg_ctl", "-w", "-l", f"{self.dir}/server.log", "-o", options, "start")

    def down(self):
        self.program("pg_ctl", "-w", "-m", "immediate", "stop")

    def url(self, name="archive"):
        return f"postgres://wirephoto@127.0.0.1:{self.port}/{name}"


def serve(database):
    """The service over the demo archive; returns its process and its host."""
    rest = ["--data", f"{work}/data", "--set", f"database.url={database.url()}"]
    for command, what in (("ingest", "media-store/demo"), ("import", "media-store/accounts.json")):
        subprocess.run([binary, command, what, *rest], check=True, stdout=subprocess.DEVNULL)
    command = [binary, "serve", "--listen", "127.0.0.1:0", *rest, "--set", "media.client_megapixels_s=0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=open(f"{work}/log", "w"), text=True)
    for line in server.stdout:
        if found := re.match(r"listening on http://(\S+)", line):
            return server, found.group(1)
    raise SystemExit(open(f"{work}/log").read())


phase = "before"
stop = threading.Event()
answers = collections.defaultdict(collections.Counter)


def client(host, kind, key):
    """Sends calls of one kind at their rate, each when it is time or the one before is answered."""
    path, _ = CALLS[kind]
    headers = {"Authorization": f"ApiKey {KEY}"} if key else {}
    connection = http.client.HTTPConnection(host, timeout=60)
    due = time.monotonic()
    while not stop.is_set():
        try:
            connection.request("GET", path(), headers=headers)
            response = connection.getresponse()
            response.read()
            status = response.status
        except OSError as error:
            connection.close()
            status = type(error).__name__
        answers[kind, key, phase][status] += 1
        due = max(due + 1 / calls, time.monotonic())
        time.sleep(max(0, due - time.monotonic()))


def lines():
    with open(f"{work}/log") as log:
        return [json.loads(line) for line in log if line.startswith("{")]


def wait_for_preview(host):
    """Waits for the first Preview: the standard renditions of all photographs are made at the start."""
    connection = http.client.HTTPConnection(host, timeout=300)
    connection.request("GET", CALLS["Preview"][0]())
    connection.getresponse().read()


database = Database()
server, host = serve(database)
try:
    wait_for_preview(host)
    threads = [threading.Thread(target=client, args=(host, kind, key)) for kind in CALLS for key in (False, True)]
    for thread in threads:
        thread.start()
    time.sleep(QUIET_S)
    before = len(lines())
    phase = "stopping"
    database.down()
    # The service finds out within a tenth of a second.
    time.sleep(1)
    phase = "outage"
    time.sleep(outage_s)
    phase = "recovery"
    database.up()
    time.sleep(QUIET_S)
    phase = "after"
    time.sleep(QUIET_S)
    stop.set()
    for thread in threads:
        thread.join()
    logged = lines()[before:]
finally:
    server.terminate()
    server.wait()
    database.down()


def said(counter):
    return ", ".join(f"{count} x {status}" for status, count in sorted(counter.items(), key=str)) or "none"


print(f"database stopped for {outage_s:.0f} s, {calls:.0f} calls a second of each kind\n")
print("| call | key | before | outage | after |\n| --- | --- | --- | --- | --- |")
for kind, (_, is_open) in CALLS.items():
    for key in (False, True):
        found = [said(answers[kind, key, each]) for each in ("before", "outage", "after")]
        name = kind if is_open else f"{kind}, needs rights" if kind != "search" else kind
        print(f"| {name} | {'yes' if key else 'no'} | {' | '.join(found)} |")
other = collections.Counter((line["level"], line["message"].split(":")[0]) for line in logged if line["message"] != "request")
requests = sum(line["message"] == "request" for line in logged)
print(f"\nLog lines of the outage: {requests} of requests, {sum(other.values())} others:")
for (level, message), count in sorted(other.items()):
    print(f"- {count} {level} {message}")
for line in logged:
    if line["message"] == "the database can be used again":
        print(f"\nAt its end: refused={line['refused']}, seconds={line['seconds']}")
