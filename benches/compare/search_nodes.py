#!/usr/bin/env python3
"""Searches over PostgreSQL and three nodes behind HAProxy, against SQLite and one; while a node is killed and
comes back; and what checks of readiness and metrics cost.

    KEEP=WORK benches/compare/search.sh CORPUS COUNT    # once, makes the archive
    benches/compare/search_nodes.py BINARY WORK

BINARY is a release build. Needs PostgreSQL's server programs, haproxy and, for the last part, wrk. The archive in
WORK stays as it is: what moves to PostgreSQL is a copy."""

import glob, http.client, json, os, pathlib, re, shutil, signal, socket, subprocess, sys, tempfile, threading, time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
binary, work = os.path.realpath(sys.argv[1]), pathlib.Path(sys.argv[2])
requests = [line.rstrip("\n").split("\t") for line in open(work / "requests.tsv")]
scratch = pathlib.Path(tempfile.mkdtemp(dir=work))
running = []


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def serve(name, data, *settings, port=None):
    out = open(scratch / f"{name}.out", "w")
    flags = [flag for setting in settings for flag in ("--set", setting)]
    process = subprocess.Popen(
        [binary, "serve", "--demo-public", "--listen", f"127.0.0.1:{port or 0}", "--data", data, "--set", "telemetry.log_level=warn", *flags],
        stdout=out, stderr=open(scratch / f"{name}.log", "a"))
    running.append(process)
    while not (found := re.search(r"^listening on http://(\S+)", open(out.name).read(), re.M)):
        assert process.poll() is None, open(scratch / f"{name}.log").read()
        time.sleep(0.02)
    return process, found[1]


def whole(host):
    while True:
        try:
            connection = http.client.HTTPConnection(host)
            connection.request("GET", "/health/search")
            answer = json.loads(connection.getresponse().read())
            if answer.get("rowsBehind") == 0:
                return
        except OSError:
            pass
        time.sleep(0.05)


def ask(host, what, until=None):
    """Every query once, or again and again until a time."""
    connection, times, failed = http.client.HTTPConnection(host), [], 0
    while True:
        for path, key in requests:
            began = time.perf_counter()
            try:
                connection.request("GET", path, headers={"Authorization": f"ApiKey {key}"})
                answer = connection.getresponse()
                answer.read()
                failed += answer.status != 200
            except (OSError, http.client.HTTPException):
                failed += 1
                connection = http.client.HTTPConnection(host)
            times.append((time.perf_counter() - began) * 1e3)
            if until and time.monotonic() > until:
                break
        if not until or time.monotonic() > until:
            break
    count = len(times)
    times.sort()
    at = lambda share: times[min(count * share // 100, count - 1)]
    print(f"{what}: {count} searches, p50 {at(50):.1f} ms, p95 {at(95):.1f} ms, p99 {at(99):.1f} ms, max {times[-1]:.0f} ms; "
          f"{failed} failed", flush=True)


def cluster():
    programs = pathlib.Path(sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1])
    home, port = pathlib.Path(tempfile.mkdtemp()), free_port()
    shutil.chown(home, "postgres")
    run = lambda *words: subprocess.run(["runuser", "-u", "postgres", "--", *map(str, words)], check=True,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run(programs / "initdb", "-D", home / "data", "-U", "wirephoto", "-A", "trust", "-E", "UTF8", "--locale=C")
    run(programs / "pg_ctl", "-D", home / "data", "-w", "-l", home / "log", "-o",
        f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=", "start")
    url = f"postgres://wirephoto@127.0.0.1:{port}"
    subprocess.run(["psql", "-qAtX", f"{url}/postgres", "-c", "CREATE DATABASE bench"], check=True)
    return f"{url}/bench", lambda: run(programs / "pg_ctl", "-D", home / "data", "-m", "fast", "-w", "stop")


def balance(hosts):
    port = free_port()
    text = (ROOT / "examples/nodes-haproxy.cfg").read_text().replace("bind :8000", f"bind 127.0.0.1:{port}")
    for number, host in enumerate(hosts):
        text = text.replace(f"127.0.0.1:808{number + 1}", host)
    file = scratch / "haproxy.cfg"
    file.write_text(text)
    process = subprocess.Popen(["/usr/sbin/haproxy", "-db", "-f", file], stderr=subprocess.DEVNULL)
    running.append(process)
    time.sleep(3)
    return f"127.0.0.1:{port}"


def rate(host, seconds=8):
    """Searches a second at 16 connections, as wrk counts them."""
    environment = os.environ | {"REQUESTS": str(work / "requests.tsv")}
    said = subprocess.run(["wrk", "-t1", "-c16", f"-d{seconds}s", "-s", str(ROOT / "benches/compare/search.lua"), f"http://{host}"],
                          env=environment, capture_output=True, text=True).stdout
    return float(re.search(r"Requests/sec:\s*([\d.]+)", said)[1])


def checked(host, work):
    """Does it while readiness and metrics are asked for ten times a second each."""
    stop = threading.Event()

    def check():
        connection = http.client.HTTPConnection(host)
        while not stop.wait(0.1):
            for path in ("/health/ready", "/metrics"):
                connection.request("GET", path)
                connection.getresponse().read()

    thread = threading.Thread(target=check)
    thread.start()
    done = work()
    stop.set()
    thread.join()
    return done


stop_database = lambda: None
try:
    data = scratch / "data"
    shutil.copytree(work / "data", data, symlinks=True)
    shutil.rmtree(data / "search", ignore_errors=True)
    one, host = serve("sqlite", data)
    whole(host)
    ask(host, "SQLite, one node, first time")
    ask(host, "SQLite, one node, again")
    if shutil.which("wrk"):
        for number in range(3):
            print(f"searches a second, 16 connections: {rate(host):.0f} alone, "
                  f"{checked(host, lambda: rate(host)):.0f} with 10 checks of ready and metrics a second", flush=True)
    one.send_signal(signal.SIGTERM)
    one.wait()
    url, stop_database = cluster()
    subprocess.run([binary, "migrate", "--data", data, "--to", url, "--switch"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["psql", "-qAtX", url, "-c", "VACUUM", "-c", "ANALYZE"], check=True)
    settings = [f"database.url={url}", f"store.originals={data}/originals", f"secrets.key_file={data}/secrets.key",
                "server.public_url=http://photos.example", "server.trusted_proxies=127.0.0.1", "server.unready_s=3"]
    nodes = [serve(name, scratch / name, *settings) for name in "abc"]
    for _, host in nodes:
        whole(host)
    ask(nodes[0][1], "PostgreSQL, one of three nodes, first time")
    ask(nodes[0][1], "PostgreSQL, one of three nodes, again")
    door = balance([host for _, host in nodes])
    ask(door, "PostgreSQL, three nodes behind HAProxy, first time at two of them")
    ask(door, "PostgreSQL, three nodes behind HAProxy, again")

    def kill_and_start():
        time.sleep(3)
        nodes[1][0].kill()
        nodes[1][0].wait()
        time.sleep(5)
        serve("b", scratch / "b", *settings, port=int(nodes[1][1].rsplit(":", 1)[1]))

    killer = threading.Thread(target=kill_and_start)
    killer.start()
    ask(door, "the same, while one is killed after 3 s and comes back after 8 s", time.monotonic() + 20)
    killer.join()
finally:
    for process in running:
        if process.poll() is None:
            process.kill()
            process.wait()
    stop_database()
    shutil.rmtree(scratch, ignore_errors=True)
