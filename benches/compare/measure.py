#!/usr/bin/env python3
"""Measures our server beside other image servers over HTTP on 127.0.0.1, in turn, and prints tables.

usage: measure.py WORK_DIR ROUNDS SECONDS PHOTO…      (peers.sh tells what else it reads)

For every operation each server is started afresh, so that its memory belongs to that operation.
Every answer comes from a render: no server keeps results, and no two requests under way are equal,
for ours would render them once. So each photograph is served under several names, as copies that
differ in a comment. In every round each server takes its turn, and the order changes from round
to round. Before each turn the machine is left alone until the servers have dropped what the last
turn left behind. Run it with a Python that has Pillow.
"""
import atexit, io, json, math, os, re, shutil, statistics, subprocess, sys, threading, time
from PIL import Image, ImageChops, ImageDraw, ImageStat
from servers import CORES, CROP, LONG_PX, PEERS, Ours, get, here, stop_all, tree

work, rounds, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
OPERATIONS = ["crop", "watermark Hires", "watermark Preview", "Preview", "Thumbnail", "800 px", "Preview WebP"]
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
# A turn is made longer for slow renders, up to this many seconds.
LONGEST = int(os.environ.get("LONGEST", "60"))
Image.MAX_IMAGE_PIXELS = None
atexit.register(stop_all)


def listed(name, default, separator=None):
    return (os.environ.get(name) or default).split(separator)


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


def copies(photo, folder, count):
    """The photograph under several names; the files differ in a comment."""
    with open(photo, "rb") as file:
        jpeg = file.read()
    # A JFIF segment has to stay the first.
    at = 4 + int.from_bytes(jpeg[4:6], "big") if jpeg[2:4] == b"\xff\xe0" else 2
    stem, names = os.path.splitext(os.path.basename(photo))[0], []
    for number in range(count):
        names.append(f"{stem}-{number:02}.jpg")
        comment = f"copy {number:02}".encode()
        segment = b"\xff\xfe" + (len(comment) + 2).to_bytes(2, "big") + comment
        with open(os.path.join(folder, names[-1]), "wb") as file:
            file.write(jpeg[:at] + segment + jpeg[at:])
    return names


class Watch(threading.Thread):
    """The largest sum of resident memory over a process and those below it, looked at now and then."""

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


def cpu_ticks(pid):
    """Processor time of a process and those below it so far."""
    total = 0
    for each in tree(pid):
        try:
            with open(f"/proc/{each}/stat") as file:
                total += sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))
        except OSError:
            pass
    return total


def settle(pid):
    """Waits until a server is idle: renders go on when nobody waits for them any more."""
    calm, last, end = 0, cpu_ticks(pid), time.monotonic() + 300
    while calm < 3 and time.monotonic() < end:
        time.sleep(0.1)
        now = cpu_ticks(pid)
        calm, last = (calm + 1 if now - last <= 1 else 0), now


class Photo:
    """A photograph, its copies, and what each operation should give before encoding."""

    def __init__(self, path, folder, mark, count):
        self.name, self.mark = os.path.basename(path), mark
        self.image = Image.open(path)
        self.size, self.length = self.image.size, os.path.getsize(path)
        self.kind = "progressive" if self.image.info.get("progressive") else "baseline"
        self.sampling = sampling(self.image)
        self.image = self.image.convert("RGB")
        self.at = (self.size[0] // 2 - 399) | 1, (self.size[1] // 2 - 299) | 1
        self.marks = {"mark-hires": place(mark, self.size), "mark-preview": place(mark, fitted(self.size, 1024))}
        for name, (_, _, width, height, _) in self.marks.items():
            mark.resize((width, height), Image.Resampling.LANCZOS).save(os.path.join(folder, f"{name}.png"))
        self.files = copies(path, folder, count)

    def reference(self, operation):
        image = self.image
        if operation == "crop":
            x, y = self.at
            return image.crop((x, y, x + CROP[0], y + CROP[1]))
        if operation in LONG_PX:
            image = image.resize(fitted(self.size, LONG_PX[operation]), Image.Resampling.LANCZOS)
        if operation.startswith("watermark"):
            x, y, width, height, _ = self.marks["mark-preview" if "Preview" in operation else "mark-hires"]
            stamp = self.mark.resize((width, height), Image.Resampling.LANCZOS)
            image = image.copy()
            image.paste(stamp, (x, y), stamp)
        return image


def sampling(image):
    layers = [tuple(layer[1:3]) for layer in getattr(image, "layer", [])]
    known = {(2, 2): "4:2:0", (2, 1): "4:2:2", (1, 1): "4:4:4"}
    return known.get(layers[0], "other") if len(layers) == 3 else "grey"


def judge(jpeg, wanted):
    """Size, sampling and bytes of an answer, and its PSNR in dB against `wanted`."""
    got = Image.open(io.BytesIO(jpeg))
    kind = sampling(got) if got.format == "JPEG" else got.format
    if got.info.get("progressive"):
        kind += " progressive"
    text = f"{got.width}x{got.height} {kind}, {len(jpeg)} bytes"
    if max(abs(a - b) for a, b in zip(got.size, wanted.size)) > 1:
        return text, float("nan")
    if got.size != wanted.size:  # rounded another way
        wanted = wanted.resize(got.size, Image.Resampling.LANCZOS)
    difference = ImageChops.difference(got.convert("RGB"), wanted)
    mean = sum(rms * rms for rms in ImageStat.Stat(difference).rms) / 3
    return text, 99.0 if mean == 0 else 10 * math.log10(255 * 255 / mean)


def filled(template, name, at):
    x, y = at
    values = {"f": name, "x": x, "y": y, "right": x + CROP[0], "bottom": y + CROP[1]}
    return re.sub(r"{(\w+)}", lambda found: str(values[found.group(1)]), template)


def load(server, template, names, photo, turn):
    """One turn under wrk: requests a second, p50 and p99 in ms, errors, requests, MB, CPU ms."""
    connections, duration, first = turn
    environment = {
        "TEMPLATE": template, "NAMES": ",".join(names), "FIRST": str(first),
        "WIDTH": str(CROP[0]), "HEIGHT": str(CROP[1]),
        "COLUMNS": str(photo.size[0] - CROP[0] + 1), "ROWS": str(photo.size[1] - CROP[1] + 1),
    }
    command = ["wrk", "-t1", f"-c{connections}", f"-d{duration}s", "--timeout", "300s",
               "-s", os.path.join(here, "spread.lua"), server.url]
    watch, before, then = Watch(server.pid()), cpu_ticks(server.pid()), time.monotonic()
    text = subprocess.run(command, check=True, text=True, capture_output=True,
                          env={**os.environ, **environment}).stdout
    cores = (cpu_ticks(server.pid()) - before) / TICKS / (time.monotonic() - then)
    peak = watch.end()
    count, span, p50, p99, errors = map(float, re.search(r"^RESULT (.*)$", text, re.M).group(1).split())
    # The time runs to the last answer: what a slow render had done when time was up is not lost.
    rate = count / span if count else 0.0
    settle(server.pid())
    return {"rate": rate, "p50": p50, "p99": p99, "errors": int(errors), "count": int(count),
            "peak": peak, "cpu": 1e3 * cores / rate if rate else float("nan"), "cores": cores}


def check(server, path, names, photo, wanted):
    """Asks once for the answer and once for the time that it takes."""
    url = lambda number: server.url + filled(path, names[number], photo.at)
    found = judge(get(url(0)), wanted)
    then = time.monotonic()
    get(url(1 % len(names)))
    return *found, time.monotonic() - then


def measure(operation, servers, photo, wanted, connections):
    """Rounds of turns of all servers at each number of connections: name, connections -> turns."""
    turns, found, order = {}, {}, list(servers)
    for name, (server, names) in servers.items():
        server.start()
        found[name] = check(server, server.paths()[operation], names, photo, wanted)
        settle(server.pid())
        # Warm threads and memory, too.
        load(server, server.paths()[operation], names, photo, (CORES, 1, 0))
    first = 1
    for count in connections:
        for _ in range(rounds):
            order.append(order.pop(0))
            for name in order:
                server, names = servers[name]
                # Long enough for each connection to be answered about twice.
                needed = math.ceil(2 * found[name][2] * (count + CORES) / CORES)
                duration = min(max(seconds, needed), max(seconds, LONGEST))
                turn = load(server, server.paths()[operation], names, photo, (count, duration, first))
                turns.setdefault((name, count), []).append(turn)
            first += 1_000_003
    for server, _ in servers.values():
        server.stop()
    return turns, found


def report(photo, operation, turns, found, connections):
    """Prints the table of an operation; gives ours over the best peer for each number of connections."""
    print(f"\n#### {operation}\n")
    print("| connections | server | requests/s (rounds) | p50, ms | p99, ms | requests | errors "
          "| peak resident, MB | CPU a request, ms | PSNR, dB | an answer |\n|" + "---|" * 11)
    ratios = []
    for count in connections:
        middle = lambda name, key: statistics.median(turn[key] for turn in turns[name, count])
        for name in found:
            mine = turns[name, count]
            rates = ", ".join(f"{turn['rate']:.2f}" for turn in mine)
            text, psnr, _ = found[name]
            print(f"| {count} | {name} | {middle(name, 'rate'):.2f} ({rates}) | {middle(name, 'p50'):.1f} "
                  f"| {middle(name, 'p99'):.1f} | {sum(turn['count'] for turn in mine)} "
                  f"| {sum(turn['errors'] for turn in mine)} | {max(turn['peak'] for turn in mine):.0f} "
                  f"| {middle(name, 'cpu'):.1f} | {psnr:.2f} | {text} |")
        peers = [name for name in found if name != "ours"]
        best = max(peers, key=lambda name: middle(name, "rate"), default=None)
        if best is None or "ours" not in found or middle(best, "rate") == 0:
            ratios.append("–")
            continue
        pairs = [a["rate"] / b["rate"] for a, b in zip(turns["ours", count], turns[best, count]) if b["rate"]]
        ratio = middle("ours", "rate") / middle(best, "rate")
        ratios.append(f"{ratio:.2f} ({min(pairs):.2f}–{max(pairs):.2f}) {best}")
    sys.stdout.flush()
    keep(photo, operation, turns)
    return ratios


def keep(photo, operation, turns):
    """Writes every turn to the file RESULTS, a JSON object a line."""
    if os.environ.get("RESULTS"):
        with open(os.environ["RESULTS"], "a") as file:
            for (name, count), rows in turns.items():
                for row in rows:
                    kind = {"photo": photo.name, "operation": operation, "server": name, "connections": count}
                    file.write(json.dumps({**kind, **row}) + "\n")


def run(path, connections, wanted_peers):
    folder = os.path.join(work, "photos")
    for old in (folder, os.path.join(work, "data")):
        shutil.rmtree(old, ignore_errors=True)
    os.makedirs(folder)
    mark_file = os.environ.get("MARK") or os.path.join(work, "mark.png")
    # Answers come out of order, so a few more names than connections keep those under way apart.
    count = max(int(os.environ.get("COPIES") or 0), max(connections) + 4)
    photo = Photo(path, folder, Image.open(mark_file).convert("RGBA"), count)
    ours = Ours(folder, work, mark_file)
    every = [ours] if "ours" in wanted_peers else []
    every += [PEERS[name](folder, work, photo.marks) for name in wanted_peers if name != "ours"]
    names = {server.name: server.names(photo.files) for server in every}
    if len(names.get("ours", photo.files)) < count:
        print(f"ours has fewer than {count} items: equal requests may have been rendered once", flush=True)
    os.sync()  # or the copies would be written to disk while the first are measured
    print(f"\n### {photo.name}: {photo.size[0]}x{photo.size[1]}, {photo.kind} {photo.sampling}, "
          f"{photo.length} bytes, {len(photo.files)} copies", flush=True)
    summary = []
    for operation in listed("OPERATIONS", ",".join(OPERATIONS), ","):
        servers = {server.name: (server, names[server.name]) for server in every if operation in server.paths()}
        turns, found = measure(operation, servers, photo, photo.reference(operation), connections)
        summary.append((operation, report(photo, operation, turns, found, connections)))
    print(f"\n#### {photo.name}: requests/s of ours over the best peer's, median (least and most of the rounds)\n")
    print("| operation | " + " | ".join(f"connections: {count}" for count in connections) + " |\n|" + "---|" * (len(connections) + 1))
    for operation, ratios in summary:
        print(f"| {operation} | " + " | ".join(ratios) + " |", flush=True)


def main():
    peers = listed("PEERS", "ours sharp ipx thumbor nginx")
    unknown = [name for name in peers if name != "ours" and name not in PEERS]
    if unknown:
        raise SystemExit(f"unknown in PEERS: {' '.join(unknown)}; known: ours {' '.join(PEERS)}")
    versions = [f"{name} {PEERS[name].find_version()}" for name in peers if name != "ours"]
    make_mark().save(os.path.join(work, "mark.png"))
    print(f"{', '.join(versions)}; {rounds} rounds of at least {seconds} s in turn; wrk -t1 on the same {CORES} cores\n")
    print("Medians of the rounds. Requests/s: until the last answer of a turn. p99: of few requests, the slowest. "
          "Memory: the largest sum over a server's processes, shared pages counted in each. "
          "PSNR: of one answer, against a full decode by Pillow, Lanczos and paste, before encoding.")
    for path in sys.argv[4:]:
        run(path, [int(count) for count in listed("CONNECTIONS", "1,4,16", ",")], peers)


main()
