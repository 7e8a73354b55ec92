"""Compares examples/compose.yaml, as Compose reads it, with the image, the settings and the example for HAProxy.
With TEST_GARAGE, the path of Garage's program, it starts the services as processes on loopback, with
the commands, variables, files and health checks that stand there, and uses them.

Arguments: a folder with plan.json and a copy of examples/, and the binary."""

import atexit
import ctypes
import json
import os
import pathlib
import pwd
import re
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

work, binary = pathlib.Path(sys.argv[1]), sys.argv[2]
garage = os.environ.get("TEST_GARAGE")
plan = json.loads((work / "plan.json").read_text())
services = plan["services"]
nodes = sorted(name for name in services if name.startswith("wirephoto-"))
dockerfile = (work / "Dockerfile").read_text()
PROBLEM_S = 180


def expect(condition, said):
    if not condition:
        sys.exit(f"examples/compose.yaml: {said}")


def text_of(kind, name):
    return pathlib.Path(plan[kind][name]["file"]).read_text()


def seconds(duration):
    found = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", duration)
    hours, minutes, rest = (int(part or 0) for part in found.groups())
    return 3600 * hours + 60 * minutes + rest


def image_variables():
    return dict(re.findall(r"(WIREPHOTO_\w+)=(\S+)", dockerfile))


def settings_of(toml):
    """The settings as the binary reads them: variables of the image, and this file."""
    folder = work / "settings"
    folder.mkdir(exist_ok=True)
    (folder / "wirephoto.toml").write_text(toml)
    environment = {"PATH": os.environ["PATH"], **image_variables()}
    said = subprocess.run(
        [binary, "config", "--json"], cwd=folder, env=environment, capture_output=True, text=True
    )
    expect(said.returncode == 0, said.stderr)
    return {row["name"]: row["value"] for row in json.loads(said.stdout)}


def compare_haproxy():
    """The balancer's file is the example but for addresses and how they are resolved."""
    def rules(text):
        text = re.sub(r"\nresolvers engine\n(    .*\n)+", "\n", text).split("\nglobal\n")[1]
        text = text.replace(" resolvers engine init-addr last,libc,none", "")
        lines = (line.strip() for line in text.splitlines())
        return [line for line in lines if line and not line.startswith("server ")]

    own, example = text_of("configs", "haproxy"), (work / "examples/nodes-haproxy.cfg").read_text()
    expect(rules(own) == rules(example), "compose/haproxy.cfg and nodes-haproxy.cfg differ in more than nodes")
    for name in ("items", "cached", "any", "searches"):
        section = own.split(f"\nbackend {name}\n")[1].split("\nbackend")[0]
        found = re.findall(r"^ +server \w+ (\S+):8080 id \d", section, re.MULTILINE)
        expect(found == nodes, f"backend {name} has {found}")


def check():
    user = re.search(r"^USER (\S+)$", dockerfile, re.MULTILINE)[1]
    for name, service in services.items():
        expect(service.get("read_only") and service["cap_drop"] == ["ALL"], f"{name} has rights")
        expect(service["security_opt"] == ["no-new-privileges:true"], f"{name} may gain rights")
        expect("healthcheck" in service and not service.get("privileged"), f"{name} has no health check")
        expect(("ports" in service) == (name == "haproxy"), f"{name}: ports")
        expect("latest" not in service["image"] and (name in nodes or ":" in service["image"]), f"{name}: version")
    expect(len(nodes) >= 2, f"{nodes}")
    settings = settings_of(text_of("configs", "wirephoto"))
    for name in nodes:
        node = services[name]
        expect(node["user"] == user, f"{name} runs as {node['user']}, the image as {user}")
        expect([volume["target"] for volume in node["volumes"]] == [settings["data.dir"]], f"{name}: volume")
        expect(any(place.startswith("/tmp") for place in node["tmpfs"]), f"{name}: /tmp")
        stop = int(settings["server.unready_s"]) + int(settings["server.drain_s"])
        expect(seconds(node["stop_grace_period"]) > stop + 10, f"{name}: a stop takes {stop} s")
        given = {f"/run/secrets/{pathlib.Path(one['target']).name}" for one in node["secrets"]}
        wanted = set(re.findall(r"/run/secrets/[\w.-]+", text_of("configs", "wirephoto")))
        expect(given == wanted, f"{name} has {given}, the settings want {wanted}")
        file = [one["target"] for one in node["configs"]]
        expect(file == [f"{node['working_dir']}/wirephoto.toml"], f"{name}: {file}")
    expect(len({services[name]["volumes"][0]["source"] for name in nodes}) == len(nodes), "nodes share a volume")
    (subnet,) = plan["networks"]["nodes"]["ipam"]["config"]
    expect(subnet["subnet"] in str(settings["server.trusted_proxies"]), "server.trusted_proxies")
    expect(plan["networks"]["storage"]["internal"], "the network of the database has a way out")
    expect(list(services["postgres"]["networks"]) == list(services["garage"]["networks"]) == ["storage"], "networks")
    version = re.search(r"garage@(\S+)", pathlib.Path("tests/tools.sh").read_text())[1]
    expect(services["garage"]["image"].endswith(f":v{version}"), f"Garage is tested in {version}")
    compare_haproxy()
    print(f"Compose: {len(services)} services are read by Compose, and fit the image, the settings and HAProxy")


libc = ctypes.CDLL(None)


def die_with_parent():
    libc.prctl(1, signal.SIGKILL)


def end(process):
    """Ends what is left when the test fails; a process that changed its user does not die with its parent."""
    if process.poll() is None:
        process.send_signal(signal.SIGQUIT)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    return [one.getsockname()[1] for one in sockets]


def until(what, attempt):
    """Repeats `attempt` until it gives something true."""
    end = time.monotonic() + PROBLEM_S
    while not (found := attempt()):
        if time.monotonic() > end:
            logs = "".join(log.read_text()[-3000:] for log in work.glob("*.log"))
            sys.exit(f"{what}: not within {PROBLEM_S} s\n{logs}")
        time.sleep(0.1)
    return found


class Place:
    """Where a service of the file is on this machine: what stands for the paths and addresses that it names."""

    def __init__(self, name, addresses):
        self.name, self.service = name, services[name]
        self.home = work / name
        self.home.mkdir()
        self.home.chmod(0o755)
        self.table = dict(addresses)
        self.mount()
        self.process = None

    def mount(self):
        """Volumes are folders, secrets are links to their files, configs are copies with the addresses of here."""
        for volume in self.service.get("volumes", []):
            folder = self.home / volume["source"]
            folder.mkdir()
            self.table[volume["target"]] = str(folder)
        for secret in self.service.get("secrets", []):
            file = self.home / pathlib.Path(secret["target"]).name
            file.write_text(text_of("secrets", secret["source"]))
            self.table[f"/run/secrets/{file.name}"] = str(file)
        for config in self.service.get("configs", []):
            file = self.home / pathlib.Path(config["target"]).name
            file.write_text(self.here(text_of("configs", config["source"])))
            self.table[config["target"]] = str(file)

    def here(self, text):
        for there, here in sorted(self.table.items(), key=lambda pair: -len(pair[0])):
            text = text.replace(there, here)
        return text

    def words(self, words):
        return [self.here(word) for word in words]

    def environment(self, **more):
        own = {name: self.here(value) for name, value in (self.service.get("environment") or {}).items()}
        path = f"{pathlib.Path(binary).parent}:{os.environ['PATH']}:/usr/sbin:/sbin"
        return {"PATH": path, "NO_PROXY": "*", "LC_ALL": "C.UTF-8", **own, **more}

    def start(self, command, environment):
        log = open(work / f"{self.name}.log", "ab")
        self.process = subprocess.Popen(
            command, cwd=self.home, env=environment, stdout=log, stderr=log, preexec_fn=die_with_parent
        )
        atexit.register(end, self.process)
        self.command, self.variables = command, environment

    def is_healthy(self):
        kind, *test = self.service["healthcheck"]["test"]
        expect(kind == "CMD", f"{self.name}: {kind}")
        expect(self.process.poll() is None, f"{self.name} ended: {(work / f'{self.name}.log').read_text()[-3000:]}")
        test = self.words(test)
        if self.name == "garage":
            test = [garage, "-c", self.table["/etc/garage.toml"], *test[1:]]
        asked = subprocess.run(test, cwd=self.home, env=self.variables, capture_output=True)
        return asked.returncode == 0

    def wait(self):
        until(f"{self.name} to be healthy", self.is_healthy)

    def stop(self):
        """As an engine stops it; what it ends with."""
        self.process.terminate()
        return self.process.wait(timeout=seconds(self.service["stop_grace_period"]))


def start_postgres(port):
    """What the image does: initdb with the user, the password and the arguments of the file, and the database."""
    place = Place("postgres", {})
    programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))[-1]
    given = place.environment()
    data = place.table["/var/lib/postgresql/data"]
    as_user = []
    if os.getuid() == 0:
        owner = pwd.getpwnam("postgres")
        for path in [place.home, *place.home.rglob("*")]:
            os.chown(path, owner.pw_uid, owner.pw_gid)
        as_user = ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]
    run = lambda *words: subprocess.run([*as_user, *words], check=True, cwd=place.home, stdout=subprocess.DEVNULL)
    run(programs / "initdb", "-D", data, "-U", given["POSTGRES_USER"], f"--pwfile={given['POSTGRES_PASSWORD_FILE']}",
        "--auth-host=scram-sha-256", "--auth-local=trust", "--no-sync", *shlex.split(given["POSTGRES_INITDB_ARGS"]))
    program, *options = place.words(place.service["command"])
    own = ["-D", data, "-p", str(port), "-c", "listen_addresses=127.0.0.1", "-k", str(place.home)]
    variables = place.environment(PGPORT=str(port), PGHOST=str(place.home))
    variables["PATH"] = f"{programs}:{variables['PATH']}"
    place.start([*as_user, programs / program, *options, *own], variables)
    socket_file = place.home / f".s.PGSQL.{port}"
    until("PostgreSQL's socket", socket_file.exists)
    create = [programs / "createdb", "-U", given["POSTGRES_USER"], given["POSTGRES_DB"]]
    until("the database", lambda: subprocess.run(create, env=variables, capture_output=True).returncode == 0)
    place.wait()
    return place


def start_garage(s3_port, rpc_port):
    place = Place("garage", {"127.0.0.1:3901": f"127.0.0.1:{rpc_port}", "0.0.0.0:3900": f"127.0.0.1:{s3_port}"})
    program, *arguments = place.service["command"]
    expect(program == "/garage", program)
    place.start([garage, "-c", place.table["/etc/garage.toml"], *arguments], place.environment(RUST_LOG="warn"))
    place.wait()
    return place


def start_node(name, port, addresses):
    place = Place(name, {**addresses, "0.0.0.0:8080": f"127.0.0.1:{port}"})
    given = {variable: place.here(value) for variable, value in image_variables().items()}
    # The test imports the demo accounts.
    place.start([binary, *place.service["command"], "--demo-public"], place.environment(**given))
    return place


def start_haproxy(port, node_ports):
    addresses = {f"{name}:8080": f"127.0.0.1:{node}" for name, node in zip(nodes, node_ports)}
    place = Place("haproxy", {**addresses, ":8000": f"127.0.0.1:{port}", "/127.0.0.1/8000": f"/127.0.0.1/{port}"})
    file = place.table["/usr/local/etc/haproxy/haproxy.cfg"]
    # The image's command, in the foreground, and a socket at which the test sees what it sees.
    (place.home / "socket.cfg").write_text(f"global\n    stats socket {place.home}/socket\n")
    place.start(["haproxy", "-db", "-f", file, "-f", place.home / "socket.cfg"], place.environment())
    place.wait()
    return place


def ready_nodes(balancer):
    """How many servers of its backend `items` the balancer takes for ready."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(str(balancer.home / "socket"))
        asked.sendall(b"show stat\n")
        rows = asked.makefile().read().splitlines()
    return sum(1 for row in rows if re.match(r"items,\w,", row) and ",UP," in row)


def ask(base, path, method="GET", body=None, headers=()):
    """Status, type and body of an answer."""
    request = urllib.request.Request(base + path, data=body, method=method, headers=dict(headers))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=60) as answer:
            return answer.status, answer.headers["content-type"], answer.read()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.headers["content-type"], answer.read()
    except OSError as cause:
        return 0, None, str(cause).encode()


def upload(base, key, item, photograph):
    mark = secrets.token_hex(16)
    parts = [
        ("item", "item.json", "application/json", json.dumps({"headline": item}).encode()),
        ("NormalHires.jpg", "photo.jpg", "image/jpeg", photograph),
    ]
    body = b"".join(
        f'--{mark}\r\ncontent-disposition: form-data; name="{name}"; filename="{file}"\r\n'
        f"content-type: {kind}\r\n\r\n".encode() + data + b"\r\n" for name, file, kind, data in parts
    ) + f"--{mark}--\r\n".encode()
    headers = {"authorization": f"ApiKey {key}", "content-type": f"multipart/form-data; boundary={mark}"}
    return ask(base, f"/ingest/v1/image/{item}", "PUT", body, headers.items())


def rotate_key(bucket):
    """The commands of docs/operations/s3.md that make a bucket with a key, then those of docs/operations/maintenance.md that replace the key, as
    they stand there but for the name."""
    pages = "".join(pathlib.Path(page).read_text() for page in ("docs/operations/s3.md", "docs/operations/maintenance.md"))
    lines = re.findall(r"^(?:    )?(garage (?:bucket create|key|bucket allow) .*)$", pages, re.MULTILINE)
    expect(len(lines) == 6, f"{lines}")
    script = "\n".join(lines).replace("wirephoto", "printed")
    own = bucket.home / "bin"
    own.mkdir()
    (own / "garage").symlink_to(garage)
    variables = {**bucket.variables, "GARAGE_CONFIG_FILE": bucket.table["/etc/garage.toml"]}
    variables["PATH"] = f"{own}:{variables['PATH']}"
    run = lambda text: subprocess.run(["bash", "-euc", text], env=variables, capture_output=True, text=True)
    said = run(script)
    expect(said.returncode == 0, f"{script}\n{said.stdout}{said.stderr}")
    rights = run("garage bucket info printed").stdout
    expect(re.findall(r"^RW +\S+ +(\S+)", rights, re.MULTILINE) == ["printed-2"], rights)


def use():
    pg_port, s3_port, rpc_port, port, *node_ports = free_ports(4 + len(nodes))
    postgres = start_postgres(pg_port)
    bucket = start_garage(s3_port, rpc_port)
    (subnet,) = plan["networks"]["nodes"]["ipam"]["config"]
    addresses = {
        "postgres:5432": f"127.0.0.1:{pg_port}",
        "garage:3900": f"127.0.0.1:{s3_port}",
        subnet["subnet"]: "127.0.0.0/8",
    }
    places = [start_node(name, own, addresses) for name, own in zip(nodes, node_ports)]
    for place in places:
        place.wait()
    balancer = start_haproxy(port, node_ports)
    base = f"http://127.0.0.1:{port}"
    all_ready = lambda: ready_nodes(balancer) == len(nodes)
    until("all nodes behind the balancer", all_ready)

    def command(*words):
        said = subprocess.run([binary, *words], cwd=places[0].home, env=places[0].variables, capture_output=True, text=True)
        expect(said.returncode == 0, f"{words}: {said.stdout}{said.stderr}")
        return said.stdout

    command("import", os.path.abspath("media-store/accounts.json"))
    key = command("key", "add", "demo-admin", "--name", "compose").strip()
    photograph = pathlib.Path("media-store/demo/bare/demo-aitzgorri-host.jpg").read_bytes()
    until("the key", lambda: ask(base, "/user/v1/user", headers={"authorization": f"ApiKey {key}"}.items())[0] == 200)
    stored = upload(base, key, "quay", photograph)
    expect(stored[0] == 201, f"an upload is {stored}")
    hires = {"authorization": f"ApiKey {key}"}.items()

    def fetch(where, what, number):
        """A Preview, a crop that nobody asked for before, and the original, which lies in the bucket."""
        for path in ("_NormalPreview.jpg", f"-crop_w200_h100_x{number}_y0_NormalPreview.jpg", ".jpg"):
            status, kind, body = ask(where, f"/media/image/quay{path}", headers=hires)
            expect(status == 200 and kind == "image/jpeg", f"{what}: {path} is {status} {body[:300]}")

    fetch(base, "through the balancer", 1)
    for place, own in zip(places, node_ports):
        until("the item at each node", lambda: ask(f"http://127.0.0.1:{own}", "/media/image/quay.json")[0] == 200)
        fetch(f"http://127.0.0.1:{own}", place.name, 2)
    # Each in turn: whichever has the item, another one takes over.
    for number, place in enumerate(places):
        ended = place.stop()
        expect(ended == 0, f"{place.name} ended with {ended}")
        fetch(base, f"without {place.name}", 3 + number)
        stored = upload(base, key, f"ferry-{number}", photograph)
        expect(stored[0] == 201, f"without {place.name} an upload is {stored}")
        place.start(place.command, place.variables)
        place.wait()
        until("it to be back behind the balancer", all_ready)
    rotate_key(bucket)
    for place in [balancer, *places, bucket, postgres]:
        place.process.terminate()
        place.process.wait(timeout=60)
    print(f"Compose: {len(services)} services run as processes; a photograph is served whichever node is stopped")


check()
if garage:
    use()
