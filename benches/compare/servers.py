"""The image servers that render.py and hits.py measure: how each is started, and the URL of each operation.

Every server reads the photographs and the marks from one folder, stores no results, and encodes at the
quality that the operation states.
"""
import dataclasses, json, os, re, signal, socket, subprocess, sys, time, urllib.error, urllib.request

CROP = 800, 600
CORES = len(os.sched_getaffinity(0))
TICKS = os.sysconf("SC_CLK_TCK")
KEY = "bench-key-0123456789abcdef"
# The Hires and its parts need an agreement.
ACCOUNTS = {
    "organizations": [{"id": 1, "name": "Bench"}],
    "products": [{"id": 1, "code": "BENCH"}],
    "agreements": [{"id": 1, "organization": 1, "type": "Subscription", "superAgreement": True, "products": ["BENCH"]}],
    "users": [{"id": 1, "organization": 1, "userName": "bench", "roles": ["ROLE_OFP"], "agreements": [1],
               "emailAddress": "bench@example.com", "firstName": "Bench", "lastName": "Bench"}],
    "apiKeys": [{"user": "bench", "key": KEY, "name": "bench"}],
}
here = os.path.dirname(os.path.abspath(__file__))
home = os.environ.get("PEERS_HOME", "")
started = []


@dataclasses.dataclass
class Operation:
    """A row of the table. `kind` is crop, mark or fit; `px` is the long side, 0: that of the original."""

    name: str
    title: str
    kind: str
    px: int = 0
    quality: int = 80
    format: str = "jpeg"
    # Crops begin at multiples of this.
    grid: int = 1
    # Whether the originals are the progressive copies.
    progressive: bool = False


OPERATIONS = [
    Operation("crop", "crop 800x600, anywhere", "crop", quality=90),
    Operation("lossless crop", "crop 800x600 on the grid of 16 px", "crop", quality=90, grid=16),
    Operation("watermark Hires", "watermark on the Hires", "mark", quality=90),
    Operation("watermark Preview", "watermark on the Preview", "mark", 1024),
    Operation("Preview", "Preview, 1024 px", "fit", 1024),
    Operation("Thumbnail", "Thumbnail, 256 px", "fit", 256),
    Operation("800 px JPEG", "800 px, JPEG", "fit", 800),
    Operation("640 px WebP", "640 px, WebP", "fit", 640, format="webp"),
    Operation("1024 px WebP", "1024 px, WebP", "fit", 1024, format="webp"),
    Operation("640 px AVIF", "640 px, AVIF", "fit", 640, format="avif"),
    Operation("1600 px Hires", "1600 px of the Hires, JPEG", "fit", 1600, quality=90),
    Operation("1600 px progressive", "1600 px of a progressive Hires, JPEG", "fit", 1600, quality=90, progressive=True),
]
# The number at which the peers' AVIF has about the bytes of ours at 80, whose scale is that of JPEG.
AVIF_QUALITY = 60


def stop(process):
    """Ends a server and its child processes."""
    family = tree(process.pid)
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pid in family[1:]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    started.remove(process)


def stop_all():
    for process in list(started):
        stop(process)


def tree(pid):
    """A process and its descendants."""
    found = [pid]
    for each in found:
        try:
            for task in os.listdir(f"/proc/{each}/task"):
                with open(f"/proc/{each}/task/{task}/children") as children:
                    found += map(int, children.read().split())
        except OSError:
            pass
    return found


def cpu_ticks(pid):
    """Processor time of a process and its descendants so far."""
    total = 0
    for each in tree(pid):
        try:
            with open(f"/proc/{each}/stat") as file:
                total += sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))
        except OSError:
            pass
    return total


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(url):
    """The body of a response, which has to be 200."""
    try:
        with urllib.request.urlopen(url, timeout=300) as response:
            return response.read()
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{url}: {error} {error.read(500)}") from None


def start(name, command, port, log, environment=None):
    """Starts a server and waits until it accepts connections on the port."""
    with open(log, "ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **(environment or {})})
    started.append(process)
    for _ in range(400):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return process
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
    with open(log) as output:
        raise SystemExit(f"{name} does not start: {output.read()[-2000:]}")


def start_wirephoto(data, settings, log, *options):
    """Starts `wirephoto serve` on a data directory; returns the process and its URL."""
    command = [os.environ["WIREPHOTO"], "serve", "--listen", "127.0.0.1:0", "--data", data, *options]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    with open(log, "ab") as output:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=output, text=True)
    started.append(process)
    for line in process.stdout:
        found = re.search(r"listening on (\S+)", line)
        if found:
            return process, found.group(1)
    with open(log) as output:
        raise SystemExit(f"wirephoto does not start: {output.read()[-2000:]}")


def version(*command):
    """The last word of what a program says about its version."""
    said = subprocess.run(command, check=True, text=True, capture_output=True, cwd=home or None)
    return (said.stdout or said.stderr).strip().split("\n")[0].split("/")[-1].split()[-1]


class Peer:
    """Another image server: `command` starts it, `path` is the URL of an operation, None if it has none.

    In a path `{f}` is the file, `{x}`, `{y}`, `{right}` and `{bottom}` are the edges of a crop. `marks` are the
    places at which ours puts the mark.
    """

    name = ""

    def __init__(self, folder, work, marks):
        self.folder, self.work, self.marks = folder, work, marks
        self.process = None

    def names(self, files):
        return files

    def start(self):
        port = free_port()
        command, environment = self.command(port)
        self.process = start(self.name, command, port, os.path.join(self.work, f"{self.name}.log"), environment)
        self.url = f"http://127.0.0.1:{port}"

    def stop(self):
        stop(self.process)


class Sharp(Peer):
    """A small node server on sharp (sharp.mjs)."""

    name = "sharp"

    @staticmethod
    def version():
        return node_version("sharp")

    def command(self, port):
        environment = {"PORT": str(port), "PHOTOS": self.folder, "NODE_PACKAGES": f"{home}/node"}
        return ["node", os.path.join(here, "sharp.mjs")], environment

    def path(self, operation):
        quality = encoder_quality(operation)
        if operation.kind == "crop":
            return f"/crop/{{x}}_{{y}}_{CROP[0]}_{CROP[1]}/{quality}/{{f}}"
        if operation.kind == "mark":
            name = mark_name(operation)
            x, y = self.marks[name][:2]
            return f"/mark/{operation.px}/{name}.png_{x}_{y}/{quality}/{{f}}"
        return f"/{operation.format}/{operation.px}/{quality}/{{f}}"


class Ipx(Peer):
    """Has no watermark."""

    name = "ipx"

    @staticmethod
    def version():
        return node_version("ipx")

    def command(self, port):
        environment = {"PORT": str(port), "PHOTOS": self.folder, "NODE_PACKAGES": f"{home}/node"}
        return ["node", os.path.join(here, "ipx.mjs")], environment

    def path(self, operation):
        quality = encoder_quality(operation)
        if operation.kind == "crop":
            return f"/extract_{{x}}_{{y}}_{CROP[0]}_{CROP[1]},q_{quality}/{{f}}"
        if operation.kind == "fit":
            return f"/w_{operation.px},f_{operation.format},q_{quality}/{{f}}"


class Oximg(Peer):
    """Has neither crop nor watermark; AVIF needs a newer SVT-AV1 than Debian 12 has."""

    name = "oximg"

    @staticmethod
    def version():
        return version(f"{home}/oximg/bin/oximg", "--version")

    def command(self, port):
        # Sequential JPEG is what its guide calls the profile for speed; the others write sequential JPEG, too.
        return [f"{home}/oximg/bin/oximg"], {
            "PORT": str(port), "OXIMG_BIND": "127.0.0.1", "IMAGES_DIR": self.folder,
            "OXIMG_OPTIONS_PREFIX": "/image", "OXIMG_JPEG_PROGRESSIVE": "0",
        }

    def path(self, operation):
        if operation.kind == "fit" and operation.format != "avif":
            return f"/image/width={operation.px},quality={operation.quality},format={operation.format}/{{f}}"


class Thumbor(Peer):
    name = "thumbor"

    @staticmethod
    def version():
        python = f"{home}/thumbor/bin/python"
        pillow = version(python, "-c", "import PIL; print(PIL.__version__)")
        return f"{version(python, '-c', 'import thumbor; print(thumbor.__version__)')} (Pillow {pillow})"

    def command(self, port):
        conf = os.path.join(self.work, "thumbor.conf")
        with open(conf, "w") as file:
            file.write(f"""
LOADER = 'thumbor.loaders.file_loader'
FILE_LOADER_ROOT_PATH = {self.folder!r}
STORAGE = 'thumbor.storages.no_storage'
RESULT_STORAGE = None
ALLOW_UNSAFE_URL = True
SECURITY_KEY = 'bench'
PROGRESSIVE_JPEG = False
MAX_PIXELS = 1e9
FILTERS = ['thumbor.filters.watermark', 'thumbor.filters.quality', 'thumbor.filters.format']
""")
        # One process per core, because each process renders one picture at a time.
        return [f"{home}/thumbor/bin/thumbor", "-c", conf, "-i", "127.0.0.1", "-p", str(port),
                "--processes", str(CORES), "-l", "error"], {}

    def path(self, operation):
        size = f"fit-in/{operation.px}x{operation.px}/" if operation.px else ""
        filters = f"format({operation.format}):quality({encoder_quality(operation)})"
        if operation.kind == "crop":
            size = "{x}x{y}:{right}x{bottom}/"
        if operation.kind == "mark":
            name = mark_name(operation)
            x, bottom = self.marks[name][0], self.marks[name][4]
            filters = f"watermark({name}.png,{x},-{bottom},0):{filters}"
        return f"/unsafe/{size}filters:{filters}/{{f}}"


class Nginx(Peer):
    """Its image_filter crops only the centre and has neither watermark nor other formats."""

    name = "nginx"

    @staticmethod
    def version():
        return version("/usr/sbin/nginx", "-v")

    def command(self, port):
        module = os.environ["NGINX_MODULE"]
        return nginx(self.work, "image_filter", f"""
            server {{
                listen 127.0.0.1:{port};
                image_filter_buffer 512M; image_filter_interlace off;
                location ~ ^/fit/(?<side>\\d+)/(?<quality>\\d+)/(?<name>[^/]+)$ {{
                    alias {self.folder}/$name;
                    image_filter resize $side $side; image_filter_jpeg_quality $quality;
                }}
            }}""", f"load_module {module};"), {}

    def path(self, operation):
        if operation.kind == "fit" and operation.format == "jpeg":
            return f"/fit/{operation.px}/{operation.quality}/{{f}}"


class Ours(Peer):
    """`wirephoto serve` without result caches on a data directory of its own."""

    name = "ours"

    def __init__(self, folder, work, mark):
        super().__init__(folder, work, None)
        self.data, self.mark = os.path.join(work, "data"), mark

    def wirephoto(self, *arguments):
        command = [os.environ["WIREPHOTO"], *arguments, "--data", self.data]
        return subprocess.run(command, check=True, text=True, capture_output=True).stdout

    def names(self, files):
        """Ingests the files; `{f}` is an item."""
        accounts = os.path.join(self.work, "accounts.json")
        with open(accounts, "w") as file:
            json.dump(ACCOUNTS, file)
        self.wirephoto("import", accounts)
        lines = self.wirephoto("ingest", "--json", *(os.path.join(self.folder, file) for file in files)).splitlines()
        items = [json.loads(line)["item"].removeprefix("image/") for line in lines if '"item"' in line]
        if len(items) != len(files):
            raise SystemExit(f"{len(files)} files, but {len(items)} items")
        return items

    def start(self):
        settings = {
            "telemetry.log_level": "warn", "cache.memory_bytes": 0, "cache.disk_bytes": 0,
            # One address asks for everything.
            "media.client_megapixels_s": 0,
            "media.hires_quality": 90, "media.preview_quality": 80, "media.thumbnail_quality": 80,
            "media.watermark_png": self.mark, "media.watermark_opacity": 1,
        }
        more = dict(pair.split("=", 1) for pair in os.environ.get("OUR_SETTINGS", "").split())
        log = os.path.join(self.work, "ours.log")
        self.process, self.url = start_wirephoto(self.data, {**settings, **more}, log)

    def path(self, operation):
        rest = {
            "crop": f"-crop_w{CROP[0]}_h{CROP[1]}_x{{x}}_y{{y}}.jpg",
            "lossless crop": f"-crop_w{CROP[0]}_h{CROP[1]}_x{{x}}_y{{y}}.jpg",
            "watermark Hires": "_WatermarkHires.jpg",
            "watermark Preview": "_WatermarkPreview.jpg",
            "Preview": "_NormalPreview.jpg",
            "Thumbnail": "_NormalThumbnail.jpg",
            "800 px JPEG": "-fit_w800_NormalPreview.jpg",
            "640 px WebP": "-fit_w640_NormalPreview.webp",
            "1024 px WebP": "-fit_w1024_NormalPreview.webp",
            "640 px AVIF": "-fit_w640_NormalPreview.avif",
            "1600 px Hires": "-fit_w1600_NormalHires.jpg",
            "1600 px progressive": "-fit_w1600_NormalHires.jpg",
        }[operation.name]
        # The Hires needs a key, and so do its parts and sizes.
        key = "" if "Preview" in rest or "Thumbnail" in rest else f"?ak={KEY}"
        return f"/media/image/{{f}}{rest}{key}"


def encoder_quality(operation):
    return AVIF_QUALITY if operation.format == "avif" else operation.quality


def mark_name(operation):
    return "mark-preview" if operation.px else "mark-hires"


def nginx(work, name, servers, main=""):
    """Writes a configuration with these servers; returns the command."""
    conf = os.path.join(work, f"{name}.conf")
    with open(conf, "w") as file:
        file.write(f"""
            daemon off; worker_processes {CORES}; pid {work}/{name}.pid; error_log {work}/{name}.error.log;
            {main}
            {"user root;" if os.geteuid() == 0 else ""}
            events {{ worker_connections 4096; }}
            http {{
                access_log off; sendfile on;
                keepalive_timeout 300s; keepalive_requests 1000000;
                open_file_cache max=1000 inactive=300s; open_file_cache_valid 300s;
                client_body_temp_path {work}/t1; proxy_temp_path {work}/t2;
                fastcgi_temp_path {work}/t3; uwsgi_temp_path {work}/t4; scgi_temp_path {work}/t5;
                types {{ image/jpeg jpg; }}
                {servers}
            }}""")
    return ["/usr/sbin/nginx", "-c", conf, "-p", work]


def node_version(package):
    """The version of a package and of the libvips below it."""
    with open(f"{home}/node/node_modules/{package}/package.json") as file:
        found = json.load(file)["version"]
    script = f"""
        const {{ createRequire }} = require('module'), at = '{home}/node/';
        console.log(createRequire(createRequire(at).resolve('{package}'))('sharp').versions.vips)"""
    return f"{found} (libvips {version('node', '-e', script)})"


PEERS = {peer.name: peer for peer in (Sharp, Oximg, Ipx, Thumbor, Nginx)}

signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
