"""Times of pages and of the API calls behind them, one connection, nothing cached by the client."""

import http.client
import json
import pathlib
import re
import socket
import statistics
import subprocess
import sys
import time
import urllib.parse

ROUNDS = 200
WORDS = "harbour ferry council budget winter storm election bridge school court".split()


def items(count):
    for number in range(count):
        words = " ".join(WORDS[(number * step) % len(WORDS)] for step in (1, 3, 7))
        yield {
            "uri": f"https://made.example/media/text/made{number}",
            "headline": f"Harbour report {number}: {words}",
            "description_text": f"Made text {number} about {words}.",
            "body_text": "\n".join(f"Paragraph {line} of {words}." for line in range(8)),
            "versioncreated": f"2026-10-{number % 28 + 1:02}T{number % 24:02}:{number % 60:02}:00Z",
            "byline": f"Reporter {number % 40}",
            "copyrightholder": "Wirephoto demo",
            "place": [{"name": f"Place {number % 60}"}],
            "product": [{"code": "TEXT", "name": "Text"}],
        }


class Server:
    def __init__(self, binary, folder):
        self.binary, self.data = binary, folder / "data"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def command(self, *words):
        subprocess.run([self.binary, *words, "--data", self.data], check=True, stdout=subprocess.DEVNULL)

    def start(self):
        listen = f"127.0.0.1:{self.port}"
        words = ["serve", "--listen", listen, "--data", self.data, "--set", "telemetry.log_level=warn"]
        self.child = subprocess.Popen([self.binary, *words], stdout=subprocess.PIPE, text=True)
        while "listening" not in self.child.stdout.readline():
            pass

    def ask(self, method, path, headers=None, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer, answer.read().decode()

    def log_in(self, user):
        page, text = self.ask("GET", "/o/login")
        cookie = page.getheader("set-cookie").split(";")[0]
        csrf = re.search('name="csrf" value="([^"]*)', text).group(1)
        form = urllib.parse.urlencode({"csrf": csrf, "username": user, "password": f"{user}-password"})
        kind = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
        answer, _ = self.ask("POST", "/o/login", kind, form)
        return answer.getheader("set-cookie").split(";")[0]


def times(port, path, headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    found, size = [], 0
    for _ in range(ROUNDS):
        start = time.perf_counter()
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, (path, answer.status, body[:300])
        found.append((time.perf_counter() - start) * 1000)
        size = len(body)
    found.sort()
    return statistics.median(found), found[int(len(found) * 0.95)], found[-1], size


def main():
    binary, folder, count = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    server = Server(binary, folder)
    archive = folder / "made.jsonl"
    archive.write_text("\n".join(json.dumps(item) for item in items(count)))
    server.command("ingest", archive)
    server.command("ingest", "media-store/demo")
    server.command("import", "media-store/accounts.json")
    server.start()
    try:
        key = {"Authorization": "ApiKey demo-key-0000-0000-000000000001"}
        cookie = {"Cookie": server.log_in("demo-admin")}
        facets = "facets=subject.code,place.name,person.name,product.code,copyrightholder"
        rows = [
            ("search, first page", "/?type=text&q=harbour", cookie),
            ("the API's answer", f"/content/v1/text/search?q=harbour&s=60&{facets}", key),
            ("search, page 160", "/?type=text&q=harbour&page=160", cookie),
            ("the API's answer", f"/content/v1/text/search?q=harbour&s=60&fr=9540&{facets}", key),
            ("photographs, a stranger", "/", {}),
            ("item page, a stranger", "/item/image/demo-bridge-cables", {}),
            ("item page, logged in", "/item/image/demo-bridge-cables", cookie),
            ("its .json", "/media/image/demo-bridge-cables.json", {}),
            ("crop studio", "/item/image/demo-bridge-cables/crop?x=100&y=100&width=800&height=600", cookie),
        ]
        print("| page | p50 ms | p95 ms | max ms | kB |\n| --- | --- | --- | --- | --- |")
        for name, path, headers in rows:
            times(server.port, path, headers)
            p50, p95, most, size = times(server.port, path, headers)
            print(f"| {name} | {p50:.1f} | {p95:.1f} | {most:.1f} | {size / 1000:.1f} |")
    finally:
        server.child.terminate()
        server.child.wait()


main()
