"""The image servers that measure.py sets beside ours, and ours: how each is started, and how it is
asked for a rendition.

Every server works on one folder with the pictures and the marks, keeps no results, and encodes
JPEG, or WebP where the operation says so, at the quality it is asked for. What a server cannot do is absent from its paths.
"""
import json, os, re, signal, socket, subprocess, sys, time, urllib.request

CROP = 800, 600
LONG_PX = {"Preview": 1024, "watermark Preview": 1024, "Thumbnail": 256, "800 px": 800, "Preview WebP": 1024}
CORES = len(os.sched_getaffinity(0))
here = os.path.dirname(os.path.abspath(__file__))
home = os.environ["PEERS_HOME"]
started = []


def stop(process):
    """Ends a server and what it started."""
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


def tree(pid):
    """A process and all below it."""
    found = [pid]
    for each in found:
        try:
            for task in os.listdir(f"/proc/{each}/task"):
                with open(f"/proc/{each}/task/{task}/children") as children:
                    found += map(int, children.read().split())
        except OSError:
            pass
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=300) as answer:
        return answer.read()


class Peer:
    """A server of somebody else: name, start, paths. `marks` are where ours puts the mark."""

    name = ""

    def __init__(self, folder, work, marks):
        self.folder, self.work, self.marks = folder, work, marks
        self.process = None

    def command(self, port):
        """The program and what it needs in its environment."""
        raise NotImplementedError

    def names(self, files):
        return files

    def start(self):
        port = free_port()
        command, environment = self.command(port)
        with open(os.path.join(self.work, f"{self.name}.log"), "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **environment})
        started.append(self.process)
        self.url = f"http://127.0.0.1:{port}"
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        raise SystemExit(f"{self.name} does not start, see {self.name}.log")

    def pid(self):
        return self.process.pid

    def stop(self):
        stop(self.process)


class Sharp(Peer):
    name, threads = "sharp", ""

    @staticmethod
    def find_version():
        return node_version("sharp")

    def command(self, port):
        environment = {"PORT": str(port), "PHOTOS": self.folder, "NODE_PACKAGES": f"{home}/node", "THREADS": self.threads}
        return ["node", os.path.join(here, "sharp.mjs")], environment

    def paths(self):
        mark = lambda name: f"{name}.png_{self.marks[name][0]}_{self.marks[name][1]}"
        width, height = CROP
        return {
            "crop": f"/crop/{{x}}_{{y}}_{width}_{height}/90/{{f}}",
            "watermark Hires": f"/mark/0/{mark('mark-hires')}/90/{{f}}",
            "watermark Preview": f"/mark/1024/{mark('mark-preview')}/80/{{f}}",
            "Preview": "/fit/1024/80/{f}",
            "Thumbnail": "/fit/256/80/{f}",
            "800 px": "/fit/800/80/{f}",
            "Preview WebP": "/webp/1024/80/{f}",
        }


class SharpThreads(Sharp):
    """As many threads of libvips on a picture as there are cores, instead of sharp's one."""

    name, threads = "sharp-threads", str(CORES)


class Ipx(Peer):
    name = "ipx"

    @staticmethod
    def find_version():
        return node_version("ipx")

    def command(self, port):
        environment = {"PORT": str(port), "PHOTOS": self.folder, "NODE_PACKAGES": f"{home}/node"}
        return ["node", os.path.join(here, "ipx.mjs")], environment

    def paths(self):
        width, height = CROP
        return {
            "crop": f"/extract_{{x}}_{{y}}_{width}_{height},q_90/{{f}}",
            "Preview": "/w_1024,q_80/{f}",
            "Thumbnail": "/w_256,q_80/{f}",
            "800 px": "/w_800,q_80/{f}",
            "Preview WebP": "/w_1024,f_webp,q_80/{f}",
        }


class Thumbor(Peer):
    name = "thumbor"

    @staticmethod
    def find_version():
        script = "import PIL, thumbor; print(thumbor.__version__, f'(Pillow {PIL.__version__})')"
        return ask(f"{home}/thumbor/bin/python", "-c", script)

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
FILTERS = ['thumbor.filters.watermark', 'thumbor.filters.quality']
""")
        # One process a core, for Python renders one picture at a time.
        return [f"{home}/thumbor/bin/thumbor", "-c", conf, "-i", "127.0.0.1", "-p", str(port),
                "--processes", str(CORES), "-l", "error"], {}

    def paths(self):
        def mark(name):
            x, bottom = self.marks[name][0], self.marks[name][4]
            return f"watermark({name}.png,{x},-{bottom},0)"

        return {
            "crop": "/unsafe/{x}x{y}:{right}x{bottom}/filters:quality(90)/{f}",
            "watermark Hires": f"/unsafe/filters:{mark('mark-hires')}:quality(90)/{{f}}",
            "watermark Preview": f"/unsafe/fit-in/1024x1024/filters:{mark('mark-preview')}:quality(80)/{{f}}",
            "Preview": "/unsafe/fit-in/1024x1024/filters:quality(80)/{f}",
            "Thumbnail": "/unsafe/fit-in/256x256/filters:quality(80)/{f}",
            "800 px": "/unsafe/fit-in/800x800/filters:quality(80)/{f}",
            "Preview WebP": "/unsafe/fit-in/1024x1024/filters:format(webp):quality(80)/{f}",
        }


class Nginx(Peer):
    """Its image_filter cuts only at the middle, and has no mark."""

    name = "nginx"

    @staticmethod
    def find_version():
        return subprocess.run(["/usr/sbin/nginx", "-v"], text=True, capture_output=True).stderr.split("/")[-1].strip()

    def command(self, port):
        conf, work = os.path.join(self.work, "image_filter.conf"), self.work
        with open(conf, "w") as file:
            file.write(f"""
                daemon off; worker_processes {CORES}; pid {work}/image_filter.pid; error_log {work}/nginx.log;
                load_module {os.environ["NGINX_MODULE"]};
                {"user root;" if os.geteuid() == 0 else ""}
                events {{ worker_connections 1024; }}
                http {{
                    access_log off; keepalive_timeout 300s; keepalive_requests 1000000000;
                    client_body_temp_path {work}/t1; proxy_temp_path {work}/t2;
                    fastcgi_temp_path {work}/t3; uwsgi_temp_path {work}/t4; scgi_temp_path {work}/t5;
                    types {{ image/jpeg jpg; }}
                    server {{
                        listen 127.0.0.1:{port};
                        image_filter_buffer 512M; image_filter_jpeg_quality 80; image_filter_interlace off;
                        location ~ ^/fit/(?<side>\\d+)/(?<name>[^/]+)$ {{
                            alias {self.folder}/$name; image_filter resize $side $side;
                        }}
                    }}
                }}""")
        return ["/usr/sbin/nginx", "-c", conf, "-p", work], {}

    def paths(self):
        return {"Preview": "/fit/1024/{f}", "Thumbnail": "/fit/256/{f}", "800 px": "/fit/800/{f}"}


class Ours:
    """`wirephoto serve` on a data folder of its own, or the one that runs at OUR_URL."""

    name = "ours"

    def __init__(self, folder, work, mark):
        self.folder, self.data, self.mark = folder, os.path.join(work, "data"), mark
        self.process = None
        self.key = os.environ.get("OUR_KEY") or "demo-key-0000-0000-000000000001"
        self.running = os.environ.get("OUR_URL", "").rstrip("/")

    def wirephoto(self, *arguments):
        command = [os.environ["WIREPHOTO"], *arguments, "--data", self.data]
        return subprocess.run(command, check=True, text=True, capture_output=True).stdout

    def names(self, files):
        """Takes the files in; `{f}` is an item."""
        if self.running:
            return os.environ["OUR_ITEMS"].split()
        accounts = os.path.join(os.path.dirname(self.data), "accounts.json")
        with open(accounts, "w") as file:
            json.dump({"users": [{"userName": "bench"}], "apiKeys": [{"user": "bench", "key": self.key}]}, file)
        self.wirephoto("import", accounts)
        lines = self.wirephoto("ingest", "--json", *(os.path.join(self.folder, file) for file in files)).splitlines()
        items = [json.loads(line)["item"].removeprefix("image/") for line in lines if '"item"' in line]
        if len(items) != len(files):
            raise SystemExit(f"{len(files)} files, but {len(items)} items")
        return items

    def start(self):
        if self.running:
            self.url = self.running
            return
        settings = {
            "telemetry.log_level": "warn", "cache.memory_bytes": 0, "cache.disk_bytes": 0,
            # One address asks for everything.
            "media.client_megapixels_s": 0,
            "media.hires_quality": 90, "media.preview_quality": 80, "media.thumbnail_quality": 80,
            "media.watermark_png": self.mark, "media.watermark_opacity": 1,
        }
        more = dict(pair.split("=", 1) for pair in os.environ.get("OUR_SETTINGS", "").split())
        command = [os.environ["WIREPHOTO"], "serve", "--listen", "127.0.0.1:0", "--data", self.data]
        for name, value in {**settings, **more}.items():
            command += ["--set", f"{name}={value}"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(self.process)
        self.url = re.search(r"http://[0-9.:]+", self.process.stdout.readline()).group()

    def pid(self):
        return int(os.environ["OUR_PID"]) if self.running else self.process.pid

    def paths(self):
        width, height = CROP
        key = f"?ak={self.key}"
        return {
            "crop": f"/media/image/{{f}}-crop_w{width}_h{height}_x{{x}}_y{{y}}.jpg{key}",
            "watermark Hires": f"/media/image/{{f}}_WatermarkHires.jpg{key}",
            "watermark Preview": "/media/image/{f}_WatermarkPreview.jpg",
            "Preview": "/media/image/{f}_NormalPreview.jpg",
            "Thumbnail": "/media/image/{f}_NormalThumbnail.jpg",
            "800 px": "/media/image/{f}-fit_w800_NormalPreview.jpg",
            "Preview WebP": "/media/image/{f}_NormalPreview.webp",
        }

    def stop(self):
        if self.process:
            stop(self.process)


def ask(*command):
    return subprocess.run(command, check=True, text=True, capture_output=True, cwd=home).stdout.strip()


def node_version(package):
    """The version of a package and of the sharp and libvips under it."""
    with open(f"{home}/node/node_modules/{package}/package.json") as file:
        version = json.load(file)["version"]
    script = f"""
        const {{ createRequire }} = require('module'), at = '{home}/node/';
        const versions = createRequire(createRequire(at).resolve('{package}'))('sharp').versions;
        console.log('sharp', versions.sharp, 'libvips', versions.vips)"""
    return f"{version} ({ask('node', '-e', script)})"


PEERS = {peer.name: peer for peer in (Sharp, SharpThreads, Ipx, Thumbor, Nginx)}


def stop_all():
    for process in list(started):
        stop(process)


signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
