#!/usr/bin/env python3
"""Measures renders of our server beside other image servers over HTTP on 127.0.0.1, in turns.

usage: render.py RESULTS WORK_DIR ROUNDS SECONDS PHOTO…      (peers.sh describes what else it reads)

Every turn becomes a line of JSON in RESULTS. For every operation each server is started again, so that its memory
belongs to that operation. Every response comes from a render or a stored rendition: no server caches results, and no
two requests in flight are equal, because ours would render them once. So each photograph is served under several
names, as copies that differ in a comment. In every round each server has its turn, and the order changes from round to
round. Before each turn the servers finish what the last turn left behind. Needs Pillow.
"""
import atexit, io, json, math, os, re, shutil, subprocess, sys, threading, time
from PIL import Image, ImageChops, ImageDraw, ImageStat
from servers import CORES, CROP, OPERATIONS, PEERS, TICKS, Ours, cpu_ticks, get, here, mark_name, stop_all, tree

results, work, rounds, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
connections = int(os.environ.get("CONNECTIONS", "16"))
PAGE = os.sysconf("SC_PAGE_SIZE")
# A turn is longer for slow renders, up to this many seconds.
LONGEST = int(os.environ.get("LONGEST", "60"))
Image.MAX_IMAGE_PIXELS = None
atexit.register(stop_all)


def record(**fields):
    with open(results, "a") as file:
        file.write(json.dumps(fields) + "\n")


def make_mark():
    image = Image.new("RGBA", (1600, 400), (0, 0, 0, 0))
    draw = ImageDraw.Draw(image)
    draw.rounded_rectangle((8, 8, 1591, 391), 80, fill=(0, 0, 0, 90), outline=(255, 255, 255, 200), width=12)
    for bar in range(9):
        draw.rectangle((160 + bar * 150, 100, 220 + bar * 150, 300), fill=(255, 255, 255, 170))
    return image


def fitted(size, side):
    scale = min(1, side / max(size))
    return tuple(max(1, round(edge * scale)) for edge in size)


def place(mark, size):
    """Where ours puts the mark by default: x, y, width, height, distance from the lower edge."""
    margin = min(round(0.02 * size[0]), size[1] // 4)
    width = 0.25 * size[0]
    height = round(width * mark.height / mark.width)
    return margin, size[1] - margin - height, round(width), height, margin


def copies(photo, folder, stem, count):
    """The photograph under several names; the files differ in a comment."""
    with open(photo, "rb") as file:
        jpeg = file.read()
    # A JFIF segment has to stay the first.
    at = 4 + int.from_bytes(jpeg[4:6], "big") if jpeg[2:4] == b"\xff\xe0" else 2
    names = []
    for number in range(count):
        names.append(f"{stem}-{number:02}.jpg")
        comment = f"copy {number:02}".encode()
        segment = b"\xff\xfe" + (len(comment) + 2).to_bytes(2, "big") + comment
        with open(os.path.join(folder, names[-1]), "wb") as file:
            file.write(jpeg[:at] + segment + jpeg[at:])
    return names


class PeakMemory(threading.Thread):
    """Samples the sum of resident memory over a process and its descendants."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pids, self.peak, self.over = tree(pid), 0, threading.Event()
        self.start()

    def run(self):
        while True:
            total = 0
            for pid in self.pids:
                try:
                    with open(f"/proc/{pid}/statm") as file:
                        total += int(file.read().split()[1]) * PAGE
                except OSError:
                    pass
            self.peak = max(self.peak, total)
            if self.over.wait(0.02):
                return

    def end(self):
        self.over.set()
        self.join()
        return self.peak / 2**20


def wait_until_idle(pid):
    """Waits for a server: renders continue after their client has left."""
    calm, last, end = 0, cpu_ticks(pid), time.monotonic() + 300
    while calm < 3 and time.monotonic() < end:
        time.sleep(0.1)
        now = cpu_ticks(pid)
        calm, last = (calm + 1 if now - last <= 1 else 0), now


class Photo:
    """A photograph, its copies, and what each operation should give before encoding."""

    def __init__(self, path, folder, mark, count):
        self.name, self.mark = os.path.basename(path), mark
        image = Image.open(path)
        self.size = image.size
        if self.size[0] < self.size[1]:
            raise SystemExit(f"{path} is upright: sizes would mean different things to the servers")
        kind = "progressive" if image.info.get("progressive") else "baseline"
        self.description = (f"{self.size[0] * self.size[1] / 1e6:.0f} megapixels, {kind} {sampling(image)}, "
                            f"{os.path.getsize(path) / 1e6:.1f} MB")
        self.image = image.convert("RGB")
        self.marks = {"mark-hires": place(mark, self.size), "mark-preview": place(mark, fitted(self.size, 1024))}
        for name, (_, _, width, height, _) in self.marks.items():
            mark.resize((width, height), Image.Resampling.LANCZOS).save(os.path.join(folder, f"{name}.png"))
        progressive = os.path.join(folder, "progressive.jpg")
        with open(progressive, "wb") as out:
            subprocess.run(["jpegtran", "-copy", "all", "-progressive", path], check=True, stdout=out)
        # By whether they are progressive.
        self.files = {False: copies(path, folder, "photo", count), True: copies(progressive, folder, "progressive", count)}

    def corner(self, operation):
        """A corner near the middle, on the grid of blocks only where the operation asks for it."""
        x, y = ((edge - crop) // 2 for edge, crop in zip(self.size, CROP))
        return (x // 16 * 16, y // 16 * 16) if operation.grid > 1 else (x | 1, y | 1)

    def reference(self, operation):
        image = self.image
        if operation.kind == "crop":
            x, y = self.corner(operation)
            return image.crop((x, y, x + CROP[0], y + CROP[1]))
        if operation.px:
            image = image.resize(fitted(self.size, operation.px), Image.Resampling.LANCZOS)
        if operation.kind == "mark":
            x, y, width, height, _ = self.marks[mark_name(operation)]
            stamp = self.mark.resize((width, height), Image.Resampling.LANCZOS)
            image = image.copy()
            image.paste(stamp, (x, y), stamp)
        return image


def sampling(image):
    layers = [tuple(layer[1:3]) for layer in getattr(image, "layer", [])]
    known = {(2, 2): "4:2:0", (2, 1): "4:2:2", (1, 1): "4:4:4"}
    return known.get(layers[0], "other") if len(layers) == 3 else "grey"


def check(server, operation, names, photo):
    """Compares one response with what it should be: its description, its PSNR in dB, and the seconds of another one."""
    x, y = photo.corner(operation)
    values = {"x": x, "y": y, "right": x + CROP[0], "bottom": y + CROP[1]}
    url = lambda number: server.url + server.path(operation).format(f=names[number], **values)
    body = get(url(0))
    got, wanted = Image.open(io.BytesIO(body)), photo.reference(operation)
    text = f"{got.width}x{got.height} {got.format}, {len(body)} bytes"
    if got.format == "JPEG":
        text += ", progressive" if got.info.get("progressive") else f", {sampling(got)}"
    if got.format.lower() != operation.format or max(abs(a - b) for a, b in zip(got.size, wanted.size)) > 1:
        raise SystemExit(f"{operation.name} of {server.name}: {text}; expected {wanted.size} {operation.format}")
    if got.size != wanted.size:  # rounded differently
        wanted = wanted.resize(got.size, Image.Resampling.LANCZOS)
    difference = ImageChops.difference(got.convert("RGB"), wanted)
    mean = sum(rms * rms for rms in ImageStat.Stat(difference).rms) / 3
    psnr = 99.0 if mean == 0 else 10 * math.log10(255 * 255 / mean)
    # A wrong crop has the right size, too.
    if psnr < 20:
        raise SystemExit(f"{operation.name} of {server.name} is a different picture: PSNR {psnr:.1f} dB")
    then = time.monotonic()
    get(url(1))
    return text, psnr, time.monotonic() - then


def load(server, operation, names, photo, duration, first):
    """One turn of wrk."""
    environment = {
        "TEMPLATE": server.path(operation), "NAMES": ",".join(names), "FIRST": str(first),
        "WIDTH": str(CROP[0]), "HEIGHT": str(CROP[1]), "GRID": str(operation.grid),
        "COLUMNS": str((photo.size[0] - CROP[0]) // operation.grid + 1),
        "ROWS": str((photo.size[1] - CROP[1]) // operation.grid + 1),
    }
    command = ["wrk", "-t1", f"-c{connections}", f"-d{duration}s", "--timeout", "300s",
               "-s", os.path.join(here, "spread.lua"), server.url]
    pid = server.process.pid
    memory, before = PeakMemory(pid), cpu_ticks(pid)
    text = subprocess.run(command, check=True, text=True, capture_output=True,
                          env={**os.environ, **environment}).stdout
    cpu_ms = (cpu_ticks(pid) - before) / TICKS * 1e3
    peak = memory.end()
    count, span, p50, p99, errors = map(float, re.search(r"^RESULT (.*)$", text, re.M).group(1).split())
    wait_until_idle(pid)
    # The time ends with the last response: a slow render that the end of the turn cut off does not count.
    return {"rate": count / span if count else 0.0, "p50_ms": p50, "p99_ms": p99, "errors": int(errors),
            "requests": int(count), "peak_mb": peak, "cpu_ms": cpu_ms / count if count else None}


def measure(operation, servers, photo):
    """Rounds of turns of all servers. `servers`: each with its names of the photograph."""
    checks = {}
    for server, names in servers:
        server.start()
        checks[server.name] = check(server, operation, names, photo)
        wait_until_idle(server.process.pid)
        # Warms up threads and memory, too.
        load(server, operation, names, photo, 1, 0)
    for number in range(rounds):
        servers.append(servers.pop(0))
        for server, names in servers:
            text, psnr, once = checks[server.name]
            # Long enough for each connection to receive about two responses.
            needed = math.ceil(2 * once * (connections + CORES) / CORES)
            duration = min(max(seconds, needed), max(seconds, LONGEST))
            turn = load(server, operation, names, photo, duration, 1 + number * 1_000_003)
            record(part="render", photo=photo.name, operation=operation.name, title=operation.title, server=server.name,
                   response=text, psnr=psnr, **turn)
            print(f"{operation.name}, {server.name}: {turn['rate']:.1f}/s, {turn['errors']} errors, {text}, "
                  f"PSNR {psnr:.1f}", file=sys.stderr)
    for server, _ in servers:
        server.stop()


def run(path, wanted):
    folder = os.path.join(work, "photos")
    for old in (folder, os.path.join(work, "data")):
        shutil.rmtree(old, ignore_errors=True)
    os.makedirs(folder)
    mark_file = os.environ.get("MARK") or os.path.join(work, "mark.png")
    # Responses arrive out of order: a few more names than connections keep the requests in flight different.
    count = max(int(os.environ.get("COPIES") or 0), connections + 8)
    photo = Photo(path, folder, Image.open(mark_file).convert("RGBA"), count)
    every = [Ours(folder, work, mark_file)] + [PEERS[name](folder, work, photo.marks) for name in wanted if name != "ours"]
    names = {server.name: server.names(photo.files[False] + photo.files[True]) for server in every}
    os.sync()  # otherwise the copies are written to disk during the first turns
    record(part="photo", photo=photo.name, description=photo.description)
    chosen = os.environ.get("OPERATIONS")
    for operation in OPERATIONS:
        if chosen and operation.name not in chosen.split(","):
            continue
        at = slice(count, None) if operation.progressive else slice(count)
        measure(operation, [(server, names[server.name][at]) for server in every if server.path(operation)], photo)


def main():
    wanted = os.environ["PEERS"].split()
    unknown = set((os.environ.get("OPERATIONS") or "crop").split(",")) - {operation.name for operation in OPERATIONS}
    if unknown:
        raise SystemExit(f"unknown in OPERATIONS: {', '.join(unknown)}")
    make_mark().save(os.path.join(work, "mark.png"))
    versions = {name: PEERS[name].version() for name in wanted if name != "ours"}
    record(part="renders", connections=connections, rounds=rounds, seconds=seconds, versions=versions)
    for path in sys.argv[5:]:
        run(path, wanted)


main()
