"""What happens at one node and shows at another: withdrawals, and polls that wait.

    across.py BINARY FOLDER [DATABASE] [ROUNDS]

Starts two nodes of BINARY over data directories in FOLDER with accounts of their own and, with DATABASE
(postgres://…, an empty database), over that; without it both serve one SQLite file. The originals are
one folder. Each round withdraws a photograph through one node whose Preview the other one has in memory,
and takes in a text through one node for which a poll waits at the other. Prints the times until the
other node shows it, from when the answer to the change came. Needs python3.
"""
import http.client
import json
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

BINARY, FOLDER = sys.argv[1], Path(sys.argv[2])
DATABASE = sys.argv[3] if len(sys.argv) > 3 else ""
ROUNDS = int(sys.argv[4]) if len(sys.argv) > 4 else 200
KEY = "bench-key-00000001"
AUTH = {"Authorization": f"ApiKey {KEY}"}
PHOTO = next(Path(__file__).parents[2].glob("media-store/demo/**/*.jpg"))
STEP = 0.002


class Node:
    """A running `wirephoto serve`."""

    def __init__(self, name):
        data = FOLDER / (name if DATABASE else "data")
        self.settings = ["--data", str(data), "--set", f"store.originals={FOLDER}/originals"]
        if DATABASE:
            self.settings += ["--set", f"database.url={DATABASE}"]
        if name == "first":
            file = FOLDER / "accounts.json"
            file.write_text(json.dumps(accounts()))
            subprocess.run([BINARY, "import", *self.settings, str(file)], check=True, capture_output=True)
        command = [BINARY, "serve", "--listen", "127.0.0.1:0", *self.settings, "--set", "telemetry.log_level=warn",
                   "--set", "media.warm=false", "--set", "server.public_url=http://nodes.example"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.host = line.rsplit("http://", 1)[1].strip()

    def connect(self):
        return http.client.HTTPConnection(self.host, timeout=90)


def accounts():
    return {
        "organizations": [{"id": 1, "name": "Bench", "address": {}, "phoneNumber": {}}],
        "products": [{"id": 1, "code": "FOTO", "name": "Photo"}],
        "agreements": [{"id": 1, "organization": 1, "type": "Subscription", "superAgreement": True, "products": ["FOTO"]}],
        "users": [{"id": 1, "organization": 1, "userName": "bench", "roles": ["ROLE_PROVIDER"], "agreements": [1],
                   "access": {"admin": False, "mediebank": True}, "active": True}],
        "apiKeys": [{"user": "bench", "key": KEY, "name": "bench"}],
    }


def call(connection, method, path, body=None, kind=None):
    headers = dict(AUTH, **({"Content-Type": kind} if kind else {}))
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def document(uri, headline):
    return json.dumps({"uri": f"http://h/media/{uri}", "headline": headline, "product": [{"code": "FOTO"}],
                       "versioncreated": "2026-03-05T09:15:00Z"}).encode()


def withdraw(number, here, there):
    """Seconds until a photograph that was withdrawn through one node is gone at the other."""
    uri = f"image/w{number}"
    parts = [("item", document(uri, "Hamn")), ("NormalHires.jpg", PHOTO.read_bytes())]
    form = b"".join(b'--xyzzy\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (name.encode(), body)
                    for name, body in parts) + b"--xyzzy--\r\n"
    status, _ = call(here, "PUT", f"/ingest/v1/{uri}", form, "multipart/form-data; boundary=xyzzy")
    assert status == 201, status
    preview = f"/media/{uri}_NormalPreview.jpg"
    until(lambda: call(there, "GET", preview)[0] == 200)
    for _ in range(3):
        assert call(there, "GET", preview)[0] == 200
    status, _ = call(here, "DELETE", f"/ingest/v1/{uri}")
    assert 200 <= status < 300, status
    began = time.perf_counter()
    until(lambda: call(there, "GET", preview)[0] != 200)
    return time.perf_counter() - began


def wake(number, here, there):
    """Seconds until a poll at one node has what came in through the other, without the half way back."""
    status, body = call(here, "POST", f"/content/v1/text/notification/stream?q=isbrytare{number}")
    assert status == 200, body
    stream = f"/content/v1/text/notification/{json.loads(body)['id']}"
    path = f"{stream}/stream?wait=60"
    got = []

    def poll():
        status, body = call(there.connect(), "GET", path)
        got.append((time.perf_counter(), status, body))

    thread = threading.Thread(target=poll)
    thread.start()
    time.sleep(random.uniform(0.3, 1.3))
    uri = f"text/t{number}"
    status, _ = call(here, "PUT", f"/ingest/v1/{uri}", document(uri, f"Isbrytare{number}"), "application/json")
    answered = time.perf_counter()
    assert status == 201, status
    thread.join()
    at, status, body = got[0]
    assert status == 200 and f"t{number}" in body.decode(), (status, body[:200])
    assert call(here, "DELETE", stream)[0] < 300
    return max(at - answered, 0.0)


def until(look):
    began = time.perf_counter()
    while not look():
        assert time.perf_counter() - began < 60, "it did not happen"
        time.sleep(STEP)


def show(what, seconds, goal):
    seconds = sorted(seconds)
    at = lambda share: seconds[min(len(seconds) * share // 100, len(seconds) - 1)] * 1e3
    print(f"{what}: p50 {at(50):.0f} ms, p90 {at(90):.0f}, p99 {at(99):.0f}, max {seconds[-1] * 1e3:.0f} "
          f"({len(seconds)} rounds; goal {goal} ms)", flush=True)


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "originals").mkdir(exist_ok=True)
    nodes = []
    try:
        nodes = [Node("first")]
        nodes.append(Node("second"))
        connections = [node.connect() for node in nodes]
        for way, (here, there) in (("first to second", (0, 1)), ("second to first", (1, 0))):
            gone, woken = [], []
            for number in range(ROUNDS):
                number = f"{here}x{number}"
                gone.append(withdraw(number, connections[here], connections[there]))
                woken.append(wake(number, connections[here], nodes[there]))
            show(f"withdrawn, {way}", gone, 2000)
            show(f"poll woken, {way}", woken, 250)
    finally:
        for node in nodes:
            node.process.terminate()
        for node in nodes:
            node.process.wait()


main()
