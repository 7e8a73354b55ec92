#!/usr/bin/env python3
"""Runs the service under strace and compares what it asks of the system with what the unit lets it.

tests/traced.py BINARY FOLDER: the demo archive with photographs, PDFs and a video is taken in, a
bare video by ffmpeg where it is here; pages, renditions, a login and a delivery follow. Of all its
processes no system call may be outside the filter, no memory both written and run, no socket of
another family.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNIT = (ROOT / "packaging/wirephoto.service").read_text()
PATIENCE_S = 240
KEY = "demo-key-0000-0000-000000000001"
LARGE = "/media/image/demo-solnedgang-over-bergen"


def groups():
    """The groups of system calls: name -> what stands in it, other groups included."""
    text = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager"], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    found, name = {}, None
    for line in text.splitlines():
        # Names are in bold on a terminal and plain here; comments begin with `#`.
        if line.startswith("@"):
            name = line.strip()
            found[name] = set()
        elif name and line.strip() and not line.strip().startswith("#"):
            found[name].add(line.strip())
    return found


def expand(name, known, seen=()):
    if not name.startswith("@"):
        return {name}
    below = (expand(one, known, (*seen, name)) for one in known[name] if one not in seen)
    return set().union(*below)


def allowed():
    known, calls = groups(), set()
    for line in re.findall(r"^SystemCallFilter=(.*)$", UNIT, re.M):
        for word in line.lstrip("~").split():
            change = expand(word, known)
            calls = calls - change if line.startswith("~") else calls | change
    return calls


def get(url, data=None):
    try:
        with urllib.request.urlopen(url, data, timeout=60) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def until(what, look):
    start = time.monotonic()
    while not (found := look()):
        if time.monotonic() - start > PATIENCE_S:
            sys.exit(f"{what} did not happen")
        time.sleep(0.2)
    return found


def use(base, watched):
    key = urllib.parse.urlencode({"ak": KEY})
    wanted = [
        "/", LARGE + ".json", LARGE + "_NormalPreview.jpg", LARGE + "_WatermarkPreview.jpg",
        LARGE + "-crop_w600_h400_x201_y101_NormalPreview.jpg", f"{LARGE}-crop_w600_h400.jpg?{key}",
        f"{LARGE}.zip?{key}", f"/content/v1/_all/search?q=hav&{key}", "/metrics", "/health/ready",
        f"{LARGE}?channel=user:demo-editor:demo-folder&{key}",
    ]
    for path in wanted:
        status, _ = get(base + path)
        if status not in (200, 202):
            sys.exit(f"{path}: {status}")
    form = {"grant_type": "password", "scope": "roles", "username": "demo-editor",
            "password": "demo-editor-password", "client_id": "demo-client",
            "client_secret": "demo-client-secret"}
    status, body = get(base + "/o/oauth2/token", urllib.parse.urlencode(form).encode())
    if status != 200:
        sys.exit(f"login: {status} {body}")
    delivered = f"{base}/user/v1/delivery?state=delivered&{key}"
    until("the delivery", lambda: b"demo-folder" in get(delivered)[1])
    files = lambda: [f for f in watched.iterdir() if f.is_file() and not f.name.startswith(".")]
    until("the watched folder", lambda: not files())


def fill(watched):
    watched.mkdir()
    taken = [*(ROOT / "media-store/demo/bare").glob("*")][:2]
    for file in taken:
        if file.is_file():
            shutil.copy(file, watched / f"traced-{file.name}")
    if shutil.which("ffmpeg"):
        command = ["ffmpeg", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc=d=1:s=320x240:r=10",
                   "-pix_fmt", "yuv420p", str(watched / "traced.mp4")]
        subprocess.run(command, check=True)


def judge(trace):
    calls, families, programs, problems = set(), set(), set(), []
    within = allowed()
    if os.geteuid() == 0:
        # SQLite hands its files to the owner of the database when root runs it; the service is not.
        within.add("fchown")
    for line in trace.read_text(errors="replace").splitlines():
        line = re.sub(r"^\d+ +", "", line)
        name = re.match(r"([a-z_0-9]+)\(", line)
        if not name:
            continue
        name = name.group(1)
        calls.add(name)
        run = "PROT_EXEC" in line
        if (name == "mmap" and run and "PROT_WRITE" in line) or (name.endswith("mprotect") and run):
            problems.append(f"memory is written and run: {line[:120]}")
        if name == "execve" and "= -1" not in line:
            programs.add(Path(re.search(r'"([^"]*)"', line).group(1)).name)
        if name == "socket":
            families.add(re.search(r"AF_\w+", line).group())
        if name in ("clone", "clone3", "unshare") and "CLONE_NEW" in line:
            problems.append(f"a namespace: {line[:120]}")
    open_families = set(re.search(r"^RestrictAddressFamilies=(.*)$", UNIT, re.M).group(1).split())
    problems += [f"system call {name} is outside the filter" for name in sorted(calls - within)]
    problems += [f"sockets of {name} are not allowed" for name in sorted(families - open_families)]
    if problems:
        sys.exit("\n".join(problems[:20]))
    if len(calls) < 40 or (shutil.which("ffmpeg") and "ffmpeg" not in programs):
        sys.exit(f"the trace is not whole: {sorted(programs)} {sorted(calls)}")
    print(f"unit: {len(calls)} system calls of {' and '.join(sorted(programs))}, all within the filter; "
          f"no memory written and run; sockets {' '.join(sorted(families))}")


def main(binary, folder):
    folder = Path(folder)
    watched, trace = folder / "watched", folder / "trace"
    fill(watched)
    command = ["strace", "-f", "-qq", "-e", "signal=none", "-s", "0", "-o", str(trace), binary,
               "serve", "--demo", "--listen", "127.0.0.1:0", "--data", str(folder / "data"),
               "--set", f"ingest.watch={watched}", "--set", "media.workers=2"]
    with open(folder / "log", "w") as log:
        server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True,
                                  start_new_session=True)
    try:
        for line in server.stdout:
            if line.startswith("listening on "):
                base = line.split()[-1]
                break
        else:
            sys.exit((folder / "log").read_text())
        use(base, watched)
    finally:
        # strace hands the signal on to nobody: the service is its child.
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGTERM)
        server.wait(timeout=PATIENCE_S)
    judge(trace)


main(*sys.argv[1:])
