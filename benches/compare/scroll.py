"""What a wall takes in a browser while 10,000 hits are scrolled through."""

import json
import pathlib
import random
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

from PIL import Image

PICTURES = 10_000
STEP = 1_000
COUNT = "return document.querySelectorAll('[data-hits] > li').length"


def make_pictures(folder):
    """Made pictures of 640x427, no two equal."""
    folder.mkdir()
    random.seed(5)
    noise = Image.effect_noise((160, 107), 70)
    for number in range(PICTURES):
        shift = (random.randrange(160), random.randrange(107))
        planes = [noise.rotate(0, translate=shift), noise, noise.transpose(Image.FLIP_LEFT_RIGHT)]
        picture = Image.merge("RGB", planes).resize((640, 427))
        picture.putpixel((number % 640, number // 640), (number % 256, 0, 0))
        picture.save(folder / f"made{number:05}.jpg", quality=80)


class Browser:
    """A headless Chromium behind chromedriver."""

    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.driver = subprocess.Popen(["chromedriver", f"--port={self.port}"], stdout=subprocess.DEVNULL)
        options = {"args": ["--headless=new", "--no-sandbox", "--window-size=1440,900", "--disable-dev-shm-usage"]}
        while True:
            try:
                opened = self.call("/session", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}})
                break
            except (ConnectionError, urllib.error.URLError):
                time.sleep(0.1)
        self.path = f"/session/{opened['sessionId']}"

    def call(self, path, body):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]

    def visit(self, url):
        self.call(f"{self.path}/url", {"url": url})

    def eval(self, script):
        return self.call(f"{self.path}/execute/sync", {"script": script, "args": []})

    def devtools(self, command, **params):
        return self.call(f"{self.path}/goog/cdp/execute", {"cmd": command, "params": params})

    def close(self):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{self.path}", method="DELETE")
        urllib.request.urlopen(request, timeout=60).close()
        self.driver.terminate()
        self.driver.wait()


def resident():
    """Resident memory of the largest tab of the browser, MB."""
    listing = subprocess.run(["ps", "-eo", "rss,args"], capture_output=True, text=True, check=True).stdout
    sizes = re.findall(r"^ *(\d+) .*--type=renderer", listing, re.MULTILINE)
    return max(map(int, sizes)) / 1024


def report(browser, hits, started):
    browser.devtools("HeapProfiler.collectGarbage")
    metrics = {one["name"]: one["value"] for one in browser.devtools("Performance.getMetrics")["metrics"]}
    filled = browser.eval("return document.querySelectorAll('[data-hits] > li:not(.emptied)').length")
    heap = metrics["JSHeapUsedSize"] / 1e6
    print(
        f"| {hits:,} | {filled} | {metrics['Nodes']:,.0f} | {heap:.1f} | {resident():.0f} "
        f"| {time.monotonic() - started:.0f} |",
        flush=True,
    )


def main():
    binary, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    make_pictures(folder / "pictures")
    data = ["--data", folder / "data"]
    subprocess.run([binary, "ingest", folder / "pictures", *data], check=True, stdout=subprocess.DEVNULL)
    words = ["serve", "--listen", "127.0.0.1:0", "--set", "telemetry.log_level=warn", *data]
    server = subprocess.Popen([binary, *words], stdout=subprocess.PIPE, text=True)
    url = re.search(r"http://[0-9.:]+", server.stdout.readline()).group()
    browser = Browser()
    try:
        browser.devtools("Performance.enable")
        browser.visit(f"{url}/")
        started, last, due = time.monotonic(), 0, STEP
        print("| hits | of them filled | DOM nodes | heap, MB | tab, MB resident | after, s |")
        print("|---|---|---|---|---|---|")
        while True:
            browser.eval("scrollTo(0, document.documentElement.scrollHeight)")
            until = time.monotonic() + 20
            while (hits := browser.eval(COUNT)) == last and time.monotonic() < until:
                time.sleep(0.02)
            if hits == last:
                break
            last = hits
            if hits >= due:
                report(browser, hits, started)
                due += STEP
        report(browser, last, started)
        browser.eval("scrollTo(0, 0)")
        time.sleep(5)
        print("at the top again:")
        report(browser, last, started)
    finally:
        browser.close()
        server.terminate()
        server.wait()


main()
