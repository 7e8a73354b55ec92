"""Measures notifications of a server that runs: open polls, their wake-up, media beside them, lag.

    notifications.py BINARY FOLDER [POLLS]

Starts BINARY over a data directory in FOLDER with accounts of its own. Prints one line a figure.
"""
import asyncio
import json
import os
import re
import resource
import sqlite3
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

BINARY, FOLDER = sys.argv[1], Path(sys.argv[2])
POLLS = int(sys.argv[3]) if len(sys.argv) > 3 else 10_000
WOKEN, PER_USER = POLLS // 10, 500
USERS = POLLS // PER_USER + 22
PORT = 18_080
DATA = FOLDER / "data"
WORDS = [f"ord{number}" for number in range(20_000)]


def key(user):
    return f"bench-key-{user:08}"


def accounts():
    users = range(1, USERS + 1)
    return {
        "organizations": [{"id": 1, "name": "Bench", "address": {}, "phoneNumber": {}}],
        "products": [{"id": 1, "code": "FOTO", "name": "Photo"}],
        "agreements": [{"id": 1, "organization": 1, "type": "Subscription",
                        "superAgreement": True, "products": ["FOTO"]}],
        "users": [{"id": user, "organization": 1, "userName": f"bench{user}",
                   "roles": ["ROLE_PROVIDER"] if user == 1 else ["ROLE_OFP"],
                   "access": {"admin": False, "mediebank": True}, "agreements": [1],
                   "active": True} for user in users],
        "apiKeys": [{"user": f"bench{user}", "key": key(user), "name": "bench"} for user in users],
    }


def document(number, words):
    return {
        "uri": f"http://h/media/text/i{number}", "headline": " ".join(words[:8]),
        "body_text": " ".join(words), "versioncreated": "2026-03-05T09:15:00Z",
        "product": [{"code": "FOTO"}],
    }


def command(*arguments):
    subprocess.run([BINARY, *arguments, "--data", str(DATA)], check=True, capture_output=True)


def ingest(name, documents):
    file = FOLDER / f"{name}.jsonl"
    file.write_text("\n".join(json.dumps(one) for one in documents))
    command("ingest", str(file))


def call(method, path, user, body=None, kind="application/json"):
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", method=method, data=body)
    request.add_header("authorization", f"ApiKey {key(user)}")
    request.add_header("content-type", kind)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def start(polls):
    settings = [f"server.connections_max={polls + 1000}", f"notifications.polls={polls + 100}",
                f"notifications.client_polls={polls + 100}", "server.connections_per_address=0",
                "telemetry.log_level=warn"]
    arguments = [BINARY, "serve", "--listen", f"127.0.0.1:{PORT}", "--data", str(DATA)]
    for setting in settings:
        arguments += ["--set", setting]
    server = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health/ready")
            return server
        except OSError:
            time.sleep(0.05)
    raise SystemExit("the server did not start")


def resident_mb(server):
    status = Path(f"/proc/{server.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def media(url, seconds=8):
    """Cached hits a second."""
    said = subprocess.run(["wrk", "-t1", "-c16", f"-d{seconds}s", url], capture_output=True,
                          text=True, check=True).stdout
    return float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1])


async def poll(stream, user, ready, woken):
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    while True:
        writer.write(f"GET /content/v1/_all/notification/{stream}/stream?wait=60&layout=bare "
                     f"HTTP/1.1\r\nhost: h\r\nauthorization: ApiKey {key(user)}\r\n\r\n".encode())
        ready()
        head = await reader.readuntil(b"\r\n\r\n")
        at = time.perf_counter()
        assert head.startswith(b"HTTP/1.1 200"), head
        body = await reader.readexactly(int(re.search(rb"content-length: (\d+)", head)[1]))
        if len(body) > 20:
            woken(at)


def spread(name, seconds):
    seconds.sort()
    at = lambda part: seconds[min(len(seconds) - 1, int(len(seconds) * part))] * 1000
    print(f"{name}: {len(seconds)}, p50 {at(0.5):.0f} ms, p99 {at(0.99):.0f} ms, "
          f"last {seconds[-1] * 1000:.0f} ms")


def metric(name):
    text = urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics").read().decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
               if re.split(r"[ {]", line)[0] == name)


async def polls(server):
    loop = asyncio.get_running_loop()
    streams = []
    for number in range(POLLS):
        user, word = 2 + number // PER_USER, "alfa" if number < WOKEN else "beta"
        path = f"/content/v1/text/notification/stream?q={word}"
        streams.append((call("POST", path, user)["id"], user))
    url = f"http://127.0.0.1:{PORT}/media/image/bench_NormalPreview.jpg"
    media(url, 2)
    alone = media(url)
    print(f"resident without polls: {resident_mb(server):.0f} MB")
    times = []
    tasks = [asyncio.create_task(poll(*stream, lambda: None, times.append)) for stream in streams]
    while await loop.run_in_executor(None, metric, "wirephoto_stream_polls_waiting") < POLLS:
        await asyncio.sleep(0.5)
    print(f"{POLLS} open polls: {resident_mb(server):.0f} MB resident")
    beside = await loop.run_in_executor(None, media, url)
    print(f"cached Preview: {alone:.0f}/s alone, {beside:.0f}/s beside them: {beside / alone:.3f}")
    for round_ in range(5):
        times.clear()
        boundary = "b"
        item = document(f"a{round_}", ["alfa", "gamma"])
        body = (f"--b\r\nContent-Disposition: form-data; name=\"item\"\r\n\r\n"
                f"{json.dumps(item)}\r\n--b--\r\n").encode()
        begin = time.perf_counter()
        path = f"/ingest/v1/text/ia{round_}"
        await loop.run_in_executor(
            None, lambda: call("PUT", path, 1, body, f"multipart/form-data; boundary={boundary}"))
        done = time.perf_counter()
        while len(times) < WOKEN and time.perf_counter() < done + 10:
            await asyncio.sleep(0.05)
        print(f"upload {1000 * (done - begin):.0f} ms; since it was sent:")
        spread("woken", [at - begin for at in times])
        await asyncio.sleep(1)
    print(f"resident after the wake-ups: {resident_mb(server):.0f} MB")
    for task in tasks:
        task.cancel()


def lag():
    """500 items a second for 20 s with 10,000 notifications of the usual mix."""
    for number in range(10_000):
        user = 2 + POLLS // PER_USER + number // PER_USER
        word = WORDS[(number * 7919) % len(WORDS)]
        query = word if number % 3 else f"{word}%20OR%20{WORDS[(number * 31) % len(WORDS)]}"
        call("POST", f"/content/v1/text/notification/stream?q={query}", user)
    database = sqlite3.connect(f"file:{DATA}/wirephoto.db?mode=ro", uri=True)
    worst, seen, begin, sent = 0.0, [], time.time(), 0
    feeder = None
    while time.time() < begin + 20 or feeder.poll() is None:
        if sent < (time.time() - begin) * 2 and time.time() < begin + 20 and (
                feeder is None or feeder.poll() is not None):
            first = sent * 250
            file = FOLDER / "lag.jsonl"
            words = [WORDS[(first * 13 + at * 17) % len(WORDS)] for at in range(150)]
            file.write_text("\n".join(json.dumps(document(
                f"l{first + one}", words[one % 20:] + [WORDS[(first + one) % 20_000]]))
                for one in range(250)))
            feeder = subprocess.Popen([BINARY, "ingest", str(file), "--data", str(DATA)],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            sent += 1
        row = database.execute(
            "SELECT at_ms FROM item_log WHERE seq > (SELECT seq FROM cursors) "
            "ORDER BY seq LIMIT 1").fetchone()
        seen.append(max(0.0, time.time() - row[0] / 1000) if row else 0.0)
        worst = max(worst, seen[-1])
        time.sleep(0.01)
    seen.sort()
    seconds = time.time() - begin
    print(f"{sent * 250 / seconds:.0f} items/s for {seconds:.0f} s, 10,000 notifications: lag p50 "
          f"{seen[len(seen) // 2] * 1000:.0f} ms, p99 {seen[int(len(seen) * 0.99)] * 1000:.0f} ms, "
          f"most {worst * 1000:.0f} ms")


def main():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "accounts.json").write_text(json.dumps(accounts()))
    command("import", str(FOLDER / "accounts.json"))
    picture = sorted(Path("media-store/demo").glob("**/*.jpg"))[0]
    (FOLDER / "bench.jpg").write_bytes(picture.read_bytes())
    command("ingest", str(FOLDER / "bench.jpg"))
    server = start(POLLS)
    try:
        asyncio.run(polls(server))
        lag()
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
