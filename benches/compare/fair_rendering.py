"""A customer beside a flood of anonymous renders; see fair_rendering.sh."""

import asyncio
import atexit
import collections
import re
import signal
import statistics
import subprocess
import sys
import time

binary, work, requests = sys.argv[1], sys.argv[2], int(sys.argv[3])
KEY = "demo-key-0000-0000-000000000001"
CONNECTIONS = 180
# The flood waits after a refusal; the customer asks at a steady pace.
PAUSE_S, PACE_S = 0.25, 0.2
ITEM = sys.argv[4] if len(sys.argv) > 4 else "image/demo-solnedgang-over-bergen"
started = []
atexit.register(lambda: [process.kill() for process in started])
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def serve():
    command = [binary, "serve", "--demo", "--listen", "127.0.0.1:0", "--data", f"{work}/data",
               "--set", "telemetry.log_level=warn", "--set", "server.trusted_proxies=127.0.0.1",
               "--set", "cache.memory_bytes=0", "--set", "cache.disk_bytes=0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    started.append(process)
    for line in process.stdout:
        if url := re.search(r"http://([0-9.]+):(\d+)", line):
            return url.group(1), int(url.group(2))
    raise SystemExit("the service did not start")


class Client:
    """A connection that stays open."""

    def __init__(self, address, forwarded):
        self.address, self.forwarded, self.reader = address, forwarded, None

    async def get(self, path, headers=""):
        if self.reader is None:
            self.reader, self.writer = await asyncio.open_connection(*self.address)
        head = f"GET {path} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {self.forwarded}\r\n{headers}\r\n"
        self.writer.write(head.encode())
        answer = await self.reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", answer.lower()).group(1))
        body = await self.reader.readexactly(length)
        return int(answer.split(b" ", 2)[1]), body


def crop(number, extension):
    """A crop of the Preview that differs for each number."""
    x, y = number % 300, number // 300 % 200
    return f"/media/{ITEM}-crop_w{500 + number // 60000}_h400_x{x}_y{y}_NormalPreview.{extension}"


async def flood(address, numbers, extension, seen):
    client = Client(address, "192.0.2.1")
    while True:
        status, body = await client.get(crop(next(numbers), extension))
        code = re.search(rb'"errorCode":"(\w+)"', body) if status == 503 else None
        seen[code.group(1).decode() if code else str(status)] += 1
        if status == 503:
            await asyncio.sleep(PAUSE_S)


async def customer(address, numbers, extension):
    client = Client(address, "192.0.2.2")
    waits, statuses = [], collections.Counter()
    for _ in range(requests):
        began = time.monotonic()
        status, _ = await client.get(crop(next(numbers), extension), f"Authorization: ApiKey {KEY}\r\n")
        waits.append((time.monotonic() - began) * 1000)
        statuses[status] += 1
        await asyncio.sleep(PACE_S)
    waits.sort()
    return statistics.median(waits), waits[int(len(waits) * 0.95)], dict(statuses)


async def main():
    address = serve()
    numbers = iter(range(10_000_000))
    # The standard set is kept from here on.
    await asyncio.sleep(20)
    print(f"the customer's {requests} renders of {ITEM}, alone and beside {CONNECTIONS} connections of one address\n")
    print("| format | | p50, ms | p95, ms | statuses | the flood's answers |\n|---|---|---|---|---|---|")
    for extension in ("jpg", "webp", "avif"):
        p50, p95, statuses = await customer(address, numbers, extension)
        print(f"| {extension} | alone | {p50:.0f} | {p95:.0f} | {statuses} | |", flush=True)
        seen = collections.Counter()
        floods = [asyncio.create_task(flood(address, numbers, extension, seen)) for _ in range(CONNECTIONS)]
        await asyncio.sleep(3)
        p50, p95, statuses = await customer(address, numbers, extension)
        for each in floods:
            each.cancel()
        await asyncio.gather(*floods, return_exceptions=True)
        print(f"| {extension} | flood | {p50:.0f} | {p95:.0f} | {statuses} | {dict(seen)} |", flush=True)


asyncio.run(main())
