#!/usr/bin/env python3
"""Times our renders, libvips and Pillow in turn on the same photographs, and prints tables.

usage: inprocess.py WORKER PYTHON_FOR_VIPS[,ANOTHER] WORK_DIR ROUNDS PHOTO...
       ONLY=preview,crop in the environment limits it to these operations

For every operation each program runs in a process of its own, so that its peak memory belongs to
that operation. In every round each takes its turn, and the order changes from round to round, so
that a disturbance hits all of them. Run it with a Python that has Pillow.
"""
import json, math, os, statistics, subprocess, sys
from PIL import Image, ImageChops, ImageDraw, ImageStat

worker, pythons, work, rounds = sys.argv[1], sys.argv[2].split(","), sys.argv[3], int(sys.argv[4])
photos = sys.argv[5:]
here = os.path.dirname(os.path.abspath(__file__))
mark = os.path.join(work, "mark.png")


def make_mark():
    image = Image.new("RGBA", (1600, 400), (0, 0, 0, 0))
    draw = ImageDraw.Draw(image)
    draw.rounded_rectangle((8, 8, 1591, 391), 80, fill=(0, 0, 0, 90), outline=(255, 255, 255, 200), width=12)
    for bar in range(9):
        draw.rectangle((160 + bar * 150, 100, 220 + bar * 150, 300), fill=(255, 255, 255, 170))
    image.save(mark)


class Program:
    """A process that carries out commands."""

    def __init__(self, command, env):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env={**os.environ, **env})

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer or answer == "unknown":
            raise SystemExit(f"{self.process.args}: no answer to {line!r}")
        return answer

    def peak_mb(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def start_ours(photo):
    return Program([worker], {"BENCH_WORKER": "1", "BENCH_JPEG": photo, "BENCH_MARK": mark})


def start_all(photo, places):
    env = {"BENCH_PLACES": json.dumps(places)}
    programs = {"ours": start_ours(photo)}
    peers = [(python, "vips") for python in pythons] + [(sys.executable, "pillow")]
    for python, name in peers:
        program = Program([python, os.path.join(here, "peers.py"), name, photo, mark], env)
        programs[program.process.stdout.readline().strip()] = program
    return programs


def find_places(photo, size):
    ours = start_ours(photo)
    scale = 1024 / max(size)
    preview = [max(1, round(side * scale)) for side in size]
    place = lambda width, height: [int(n) for n in ours.ask(f"place {width} {height}").split()]
    places = {"preview": place(*preview), "hires": place(*size)}
    ours.stop()
    return places


def references(photo, places):
    """What each operation should give before encoding, from a full decode."""
    whole = Image.open(photo).convert("RGB")
    stamp = lambda name: Image.open(mark).resize(tuple(places[name][2:]), Image.Resampling.LANCZOS)

    def small(side):
        scale = side / max(whole.size)
        return whole.resize([max(1, round(n * scale)) for n in whole.size], Image.Resampling.LANCZOS)

    def marked(image, name):
        image = image.copy()
        image.paste(stamp(name), tuple(places[name][:2]), stamp(name))
        return image

    return {
        "preview": lambda at: small(1024),
        "thumbnail": lambda at: small(256),
        "crop": lambda at: whole.crop((at[0], at[1], at[0] + 800, at[1] + 600)),
        "watermark_preview": lambda at: marked(small(1024), "preview"),
        "watermark_hires": lambda at: marked(whole, "hires"),
    }


def psnr(file, reference):
    got = Image.open(file).convert("RGB")
    if got.size != reference.size:
        return float("nan")
    squares = [rms * rms for rms in ImageStat.Stat(ImageChops.difference(got, reference)).rms]
    mean = sum(squares) / 3
    return 99.0 if mean == 0 else 10 * math.log10(255 * 255 / mean)


def measure(photo, places, name, operation, at, wanted):
    command = " ".join([operation, *map(str, at)])
    programs = start_all(photo, places)
    rows = {}
    for peer, program in programs.items():
        file = os.path.join(work, "result.jpg")
        program.ask(f"save {file} {command}")  # the warm-up, too
        rows[peer] = {"ms": [], "psnr": psnr(file, wanted), "bytes": os.path.getsize(file)}
    order = list(programs)
    for _ in range(rounds):
        order.append(order.pop(0))
        for peer in order:
            rows[peer]["ms"].append(float(programs[peer].ask(f"run {command}").split()[0]))
    for peer, program in programs.items():
        rows[peer]["peak_mb"] = program.peak_mb()
        program.stop()
    return rows


def report(photo):
    image = Image.open(photo)
    (width, height), places = image.size, find_places(photo, image.size)
    kind = "progressive" if image.info.get("progressive") else "baseline"
    print(f"\n### {os.path.basename(photo)}: {width}x{height}, {kind}, {os.path.getsize(photo) / 1e6:.1f} MB\n")
    wanted = references(photo, places)
    middle = (width // 2 - 399) | 1, (height // 2 - 299) | 1
    cases = [
        ("Preview 1024", "preview", ()), ("Thumbnail 256", "thumbnail", ()),
        ("crop 800x600, top left", "crop", (0, 0)), ("crop 800x600, middle", "crop", middle),
        ("crop 800x600, bottom right", "crop", (width - 800, height - 600)),
        ("watermark on Preview", "watermark_preview", ()), ("watermark on Hires", "watermark_hires", ()),
    ]
    header = False
    only = os.environ.get("ONLY")
    for name, operation, at in cases:
        if only and operation not in only.split(","):
            continue
        rows = measure(photo, places, name, operation, at, wanted[operation](at))
        peers = list(rows)
        median = {peer: statistics.median(row["ms"]) for peer, row in rows.items()}
        if not header:
            header = True
            print("| operation | " + " | ".join(f"{peer}, ms" for peer in peers)
                  + " | ours/libvips (quartiles of the rounds) | ours/Pillow | peak MB: " + ", ".join(peers)
                  + " | PSNR, dB | bytes |\n|" + "---|" * (len(peers) + 6))
        # The faster of the two libvips, and how far single rounds lie apart from the median.
        best = min((peer for peer in peers if peer.startswith("libvips")), key=median.get)
        vips = median[best]
        pairs = sorted(a / b for a, b in zip(rows["ours"]["ms"], rows[best]["ms"]))
        low, high = pairs[len(pairs) // 4], pairs[len(pairs) * 3 // 4]
        pillow = next(median[peer] for peer in peers if peer.startswith("Pillow"))
        joined = lambda key, form: ", ".join(form.format(rows[peer][key]) for peer in peers)
        print(f"| {name} | " + " | ".join(f"{median[peer]:.1f}" for peer in peers)
              + f" | {median['ours'] / vips:.2f} ({low:.2f}–{high:.2f}) | {median['ours'] / pillow:.2f} | "
              + joined("peak_mb", "{:.0f}") + " | " + joined("psnr", "{:.2f}") + " | "
              + joined("bytes", "{}") + " |", flush=True)


make_mark()
for photo in photos:
    report(photo)
