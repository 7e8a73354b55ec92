//! The nginx and Varnish examples, run as printed: what they cache, what they must not cache, what they purge when
//! an item is withdrawn, and what they serve while the service is down.

use std::{
    fs,
    io::Read,
    process::{Child, Command, Stdio},
    sync::Barrier,
    thread,
};

use flate2::read::GzDecoder;
use reqwest::{
    Method,
    blocking::{Client, Response},
};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    common::{
        DEMO_KEY, Server, WAIT_TIMEOUT, api::ApiCaller, checkout, news, pause, pictures::Picture,
        ports::free_port,
    },
    deliveries::{ask, run},
    documented::pages::block,
};

const PREVIEW: &str = "/media/image/a_NormalPreview.jpg";
const OTHER: &str = "/media/image/b_NormalPreview.jpg";

/// A third-party cache or balancer in front of the service.
pub struct Front {
    pub url: String,
    pub client: Client,
    process: Child,
    folder: TempDir,
}

impl Drop for Front {
    fn drop(&mut self) {
        // Both stop their child processes when they are terminated.
        let id = self.process.id().to_string();
        drop(Command::new("kill").args(["-s", "TERM", &id]).status());
        drop(self.process.wait());
    }
}

pub fn port_of(server: &Server) -> &str {
    server.url.rsplit_once(':').unwrap().1
}

/// An example with some of its text replaced; each replaced text must occur.
pub fn example(name: &str, changes: &[(&str, &str)]) -> String {
    let text = fs::read_to_string(checkout("examples").join(name)).unwrap();
    changes.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "{name} has no {from:?}");
        text.replace(from, to)
    })
}

impl Front {
    pub fn start(mut command: Command, folder: TempDir, port: u16) -> Self {
        let log = fs::File::create(folder.path().join("log")).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let process = command.spawn().unwrap_or_else(|why| panic!("{command:?}: {why}"));
        let client = Client::builder().redirect(reqwest::redirect::Policy::none());
        let client = client.no_proxy().timeout(5 * WAIT_TIMEOUT).build().unwrap();
        let url = format!("http://127.0.0.1:{port}");
        let front = Self { url, client, process, folder };
        front.until("its start", || {
            front.client.get(format!("{}/health/live", front.url)).send().ok()
        });
        front
    }

    /// Varnish with the example, on a port that the service is configured to purge.
    fn varnish(server: &Server, port: u16) -> Self {
        Self::varnish_with(server, port, &[])
    }

    fn varnish_with(server: &Server, port: u16, more: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let vcl = folder.path().join("varnish.vcl");
        let port_here = format!("\"{}\"", port_of(server));
        // A service that is slow to answer on a busy machine must not be marked as down.
        let changes = [("\"8080\"", port_here.as_str()), (".timeout = 1s;", ".timeout = 30s;")];
        let changes = [&changes[..], more].concat();
        fs::write(&vcl, example("varnish.vcl", &changes)).unwrap();
        let mut command = Command::new("/usr/sbin/varnishd");
        command.args(["-F", "-j", "none", "-s", "malloc,64m", "-a", &format!("127.0.0.1:{port}")]);
        command.args(["-p", "thread_pool_min=10", "-p", "thread_pools=1"]);
        command.arg("-n").arg(folder.path().join("work")).arg("-f").arg(vcl);
        Self::start(command, folder, port)
    }

    /// nginx with the example.
    fn nginx(server: &Server) -> Self {
        Self::nginx_with(server, &[])
    }

    fn nginx_with(server: &Server, more: &[(&str, &str)]) -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let place = |name: &str| folder.path().join(name).display().to_string();
        let (address, listen) =
            (format!("127.0.0.1:{}", port_of(server)), format!("listen 127.0.0.1:{port};"));
        let changes = [
            ("127.0.0.1:8080", address.as_str()),
            ("listen 8000;", &listen),
            ("/var/cache/nginx/wirephoto", &place("cache")),
        ];
        let changes = [&changes[..], more].concat();
        let site = example("nginx.conf", &changes);
        Self::nginx_site(folder, port, &site)
    }

    /// nginx with `site` in a main file that needs no rights.
    pub fn nginx_site(folder: TempDir, port: u16, site: &str) -> Self {
        let place = |name: &str| folder.path().join(name).display().to_string();
        fs::write(folder.path().join("site.conf"), site).unwrap();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("    {name}_temp_path {};\n", place(name)))
            .concat();
        // The folder belongs to the user who runs the tests.
        let user = if is_root() { "user root;\n" } else { "" };
        let main = format!(
            "daemon off;\n{user}pid {};\nerror_log stderr warn;\nevents {{}}\nhttp {{\n    \
             access_log off;\n{temporary}    include {};\n}}\n",
            place("pid"),
            place("site.conf"),
        );
        fs::write(folder.path().join("nginx.conf"), main).unwrap();
        let mut command = Command::new("/usr/sbin/nginx");
        command.arg("-p").arg(folder.path()).args(["-e", "stderr", "-c", "nginx.conf"]);
        Self::start(command, folder, port)
    }

    pub fn ask(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Response {
        let mut request = self.client.request(method, format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().unwrap()
    }

    pub fn get(&self, path: &str) -> Response {
        self.ask(Method::GET, path, &[])
    }

    /// Repeats `poll` until it returns a value or [`WAIT_TIMEOUT`] has passed.
    pub fn until<T>(&self, what: &str, poll: impl Fn() -> Option<T>) -> T {
        let start = std::time::Instant::now();
        loop {
            if let Some(found) = poll() {
                return found;
            }
            let log = || fs::read_to_string(self.folder.path().join("log")).unwrap();
            assert!(start.elapsed() < WAIT_TIMEOUT, "{what} did not happen: {}", log());
            pause();
        }
    }
}

fn is_root() -> bool {
    let said = Command::new("id").arg("-u").output().unwrap().stdout;
    said.trim_ascii() == b"0"
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

/// The status, and the cache status that the response reports.
fn cache_status(response: &Response) -> (u16, &str) {
    (response.status().as_u16(), header(response, "x-cache"))
}

fn document(headline: &str) -> Value {
    news::document(headline, &["FOTO"], "2026-03-05T09:15:00+01:00")
}

fn server(settings: &[&str]) -> Server {
    let settings = [settings, &["server.trusted_proxies=127.0.0.1"]].concat();
    news::server(&settings, &[("image/a", document("A")), ("image/b", document("B"))])
}

/// The number of media requests that this service answered.
fn answered(server: &Server) -> f64 {
    server.metric("wirephoto_http_requests_total", "/media/{*path}")
}

/// The rules that every cache must follow for public and private renditions.
fn check_rules(server: &Server, front: &Front) {
    let direct = server.bytes(PREVIEW);
    let first = front.get(PREVIEW);
    assert_eq!(cache_status(&first), (200, "MISS"));
    let etag = header(&first, "etag").to_owned();
    assert_eq!(first.bytes().unwrap(), direct);
    let second = front.get(PREVIEW);
    assert_eq!(cache_status(&second), (200, "HIT"));
    // Headers between the service and its cache are not forwarded.
    assert_eq!((header(&second, "surrogate-key"), header(&second, "cache-tag")), ("", ""));
    assert_eq!(second.bytes().unwrap(), direct);
    let head = front.ask(Method::HEAD, PREVIEW, &[]);
    let length = direct.len().to_string();
    assert_eq!((head.status().as_u16(), header(&head, "content-length")), (200, length.as_str()));
    assert_eq!(head.bytes().unwrap().len(), 0);
    let known = front.ask(Method::GET, PREVIEW, &[("if-none-match", &etag)]);
    assert_eq!(known.status(), 304);
    // Ranges of cached and of uncached renditions.
    for path in [PREVIEW, "/media/image/b_NormalPreview.jpg"] {
        let whole = server.bytes(path);
        let part = front.ask(Method::GET, path, &[("range", "bytes=10-19")]);
        let range = format!("bytes 10-19/{}", whole.len());
        assert_eq!(
            (part.status().as_u16(), header(&part, "content-range")),
            (206, range.as_str())
        );
        assert_eq!(part.bytes().unwrap(), whole[10..20]);
    }
    // Authorization: a rendition that required a key is not served to the next client without one.
    let (key, hires) = (format!("ApiKey {DEMO_KEY}"), "/media/image/a.jpg");
    for path in [hires, "/media/image/a.zip", "/media/image/a/pricelist"] {
        for _ in 0..2 {
            let bought = front.ask(Method::GET, path, &[("authorization", &key)]);
            assert_eq!(bought.status(), 200, "{path}");
            assert_ne!(header(&bought, "x-cache"), "HIT", "{path}");
            bought.bytes().unwrap();
            let by_query = front.get(&format!("{path}?ak={DEMO_KEY}"));
            assert_eq!(by_query.status(), 200, "{path}");
            by_query.bytes().unwrap();
            assert_eq!(front.get(path).status(), 401, "{path}");
            assert_eq!(front.get(&format!("{path}?ak=wrong")).status(), 401, "{path}");
        }
    }
    // A request with a client's key neither fills the cache nor is answered from it.
    let own = front.ask(Method::GET, PREVIEW, &[("authorization", &key)]);
    assert_ne!(header(&own, "x-cache"), "HIT");
    assert_eq!(front.get("/media/image/none.json").status(), 404);
    check_codings(server, front);
    check_negotiation(server, front);
    check_purchases(server, front);
    check_clients(server, front);
    assert_eq!(server.get("/metrics").status(), 200);
    for path in ["/metrics", "/metrics?x=1", "/metrics/"] {
        assert_eq!(front.get(path).status(), 404, "{path} is nobody's business");
    }
}

/// Documents are cached per content coding: no client gets a coding that it does not accept.
fn check_codings(server: &Server, front: &Front) {
    let path = "/media/image/b.json";
    let plain = server.bytes(path);
    let ask = |accept, more: &[(&str, &str)]| {
        let headers = [&[("accept-encoding", accept)], more].concat();
        front.ask(Method::GET, path, &headers)
    };
    for _ in 0..2 {
        let coded = ask("gzip", &[]);
        let facts = (coded.status().as_u16(), header(&coded, "content-encoding"));
        assert_eq!(facts, (200, "gzip"));
        let mut text = Vec::new();
        GzDecoder::new(&*coded.bytes().unwrap()).read_to_end(&mut text).unwrap();
        assert_eq!(text, plain);
        let whole = ask("identity", &[]);
        assert_eq!((whole.status().as_u16(), header(&whole, "content-encoding")), (200, ""));
        assert_eq!(whole.bytes().unwrap(), plain);
    }
    let coded = ask("gzip", &[]);
    assert_eq!(cache_status(&coded), (200, "HIT"));
    let tag = header(&coded, "etag").to_owned();
    assert_eq!(ask("gzip", &[("if-none-match", &tag)]).status(), 304);
}

/// An address that ends in `.auto` is cached once for each format, however clients write `Accept`.
fn check_negotiation(server: &Server, front: &Front) {
    const CLIENTS: [(&str, &[&str]); 2] = [
        (
            "image/avif",
            &[
                "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
                "image/webp,image/avif,image/jxl,image/heic,image/*;q=0.8,*/*;q=0.5",
                "IMAGE/AVIF",
            ],
        ),
        ("image/jpeg", &["*/*", "text/html", "image/avif;q=0.0, image/*", "image/webp,*/*;q=0.8"]),
    ];
    let path = "/media/image/b_NormalPreview.auto";
    server.until("the AVIF", || {
        let answer = server.get_with(path, &[("accept", "image/avif,*/*")]);
        (header(&answer, "content-type") == "image/avif").then_some(())
    });
    let before = answered(server);
    for (kind, accepts) in CLIENTS {
        let direct = server.get_with(path, &[("accept", accepts[0])]).bytes().unwrap();
        for (at, accept) in accepts.iter().enumerate() {
            let answer = front.ask(Method::GET, path, &[("accept", accept)]);
            assert_eq!(header(&answer, "content-type"), kind, "{accept}");
            assert_eq!(header(&answer, "vary"), "Accept", "{accept}");
            let expected = if at == 0 { "MISS" } else { "HIT" };
            assert_eq!(cache_status(&answer), (200, expected), "{accept}");
            assert_eq!(answer.bytes().unwrap(), direct, "{accept}");
        }
    }
    // Each of the two was asked for directly too.
    assert_eq!(answered(server) - before, 4.0, "the cache asks once for each format");
    let missing = "/media/image/none_NormalPreview.auto";
    assert_eq!(front.ask(Method::GET, missing, &[("accept", "image/webp")]).status(), 404);
}

/// The JPEG that stands in until the AVIF is made is cached for seconds only.
fn check_interim(front: &Front) {
    let path = "/media/image/b-fill_w30_h30_NormalPreview.auto";
    let ask = || front.ask(Method::GET, path, &[("accept", "image/avif,image/webp,*/*;q=0.8")]);
    let first = ask();
    assert_eq!((first.status().as_u16(), header(&first, "content-type")), (200, "image/jpeg"));
    assert_eq!(header(&first, "cache-control"), "public, max-age=10");
    front.until("the AVIF", || (header(&ask(), "content-type") == "image/avif").then_some(()));
}

/// HEAD, conditional and unsatisfiable requests for a Hires buy nothing; a range is bought and sent as a range.
fn check_purchases(server: &Server, front: &Front) {
    let editor = ApiCaller::with_scopes(server, "demo-editor", "roles");
    let orders = || editor.orders().len();
    let (before, key) = (orders(), format!("ApiKey {DEMO_KEY}"));
    let by_query = format!("/media/image/b.jpg?ak={DEMO_KEY}");
    let ways =
        [("/media/image/b.jpg", ("authorization", key.as_str())), (&by_query, ("x-y", "z"))];
    for (path, own) in ways {
        let ask = |method: &Method, header: (&str, &str)| {
            front.ask(method.clone(), path, &[own, header])
        };
        let head = ask(&Method::HEAD, ("accept", "*/*"));
        let etag = header(&head, "etag").to_owned();
        assert_eq!(head.status(), 200, "{path}");
        assert!(!etag.is_empty() && header(&head, "content-length") != "0", "{path}");
        for method in [Method::GET, Method::HEAD] {
            assert_eq!(ask(&method, ("if-none-match", &etag)).status(), 304, "{method} {path}");
        }
        assert_eq!(ask(&Method::GET, ("range", "bytes=99999999-")).status(), 416, "{path}");
        assert_eq!(ask(&Method::GET, ("if-match", "\"other\"")).status(), 412, "{path}");
        assert_eq!(orders(), before, "{path}: nothing was delivered");
    }
    let whole = ask(server, "/media/image/b.jpg", DEMO_KEY).bytes().unwrap();
    for (path, own) in ways {
        let part = front.ask(Method::GET, path, &[own, ("range", "bytes=10-19")]);
        let range = format!("bytes 10-19/{}", whole.len());
        assert_eq!(
            (part.status().as_u16(), header(&part, "content-range")),
            (206, range.as_str())
        );
        assert_eq!(part.bytes().unwrap(), whole[10..20]);
    }
    assert_eq!(orders(), before + 1);
}

/// The service knows clients by their real addresses, whatever their headers claim.
fn check_clients(server: &Server, front: &Front) {
    let client = Client::builder().no_proxy().local_address(Some([127, 0, 0, 2].into()));
    let id = format!("client-of-{}", front.process.id());
    let search = format!("{}/content/v1/image/search?q={id}", front.url);
    let request = client.build().unwrap().get(search);
    let request = request.header("x-forwarded-for", "203.0.113.5").header("x-request-id", &id);
    assert_eq!(request.send().unwrap().status(), 200);
    let line = server.until("the log line", || {
        server.log().lines().find(|line| line.contains(&id)).map(str::to_owned)
    });
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["client"], "127.0.0.2");
}

#[test]
fn recipes_of_the_documentation_are_those_of_the_examples() {
    for (start, name) in [("map $http_accept", "nginx.conf"), ("if (req.url ~", "varnish.vcl")] {
        let example = example(name, &[]);
        let lines: Vec<&str> = example.lines().map(str::trim).collect();
        let recipe = block("docs/operations/cdn.md", start).text;
        for line in recipe.lines().map(str::trim) {
            assert!(lines.contains(&line), "examples/{name} has no {line:?}");
        }
    }
}

/// Long polls may exceed the timeout of media requests, which is a second here.
#[test]
fn long_polls_have_a_longer_timeout_than_media() {
    let server = server(&[]);
    let hasty = [("65s", "1s")];
    let fronts =
        [Front::nginx_with(&server, &hasty), Front::varnish_with(&server, free_port(), &hasty)];
    let key = format!("ApiKey {DEMO_KEY}");
    thread::scope(|scope| {
        for front in &fronts {
            let key = key.as_str();
            scope.spawn(move || {
                let path = "/content/v1/image/stream?wait=3&q=nothing-like-it";
                let start = std::time::Instant::now();
                let answer = front.ask(Method::GET, path, &[("authorization", key)]);
                assert!(answer.status().is_success(), "{} {}", front.url, answer.status());
                assert!(start.elapsed().as_secs() >= 2, "it did not wait");
            });
        }
    });
}

/// Concurrent requests for one rendition cost the service a single request.
fn check_collapsing(server: &Server, front: &Front, path: &str) {
    let (before, start) = (answered(server), Barrier::new(8));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                start.wait();
                assert_eq!(front.get(path).status(), 200);
            });
        }
    });
    assert_eq!(answered(server) - before, 1.0, "{path}");
}

#[test]
fn varnish_caches_open_renditions_and_purges_withdrawn_ones() {
    let port = free_port();
    let purge = format!("cdn.purge_url=http://127.0.0.1:{port}/");
    let settings = ["cdn.max_age_s=86400", "cdn.purge_method=PURGE", &purge];
    let server = server(&[&settings[..], &["cdn.purge_header=Surrogate-Key"]].concat());
    let front = Front::varnish(&server, port);
    check_rules(&server, &front);
    check_collapsing(&server, &front, "/media/image/a-crop_w9_h9_x1_y1_NormalPreview.jpg");
    check_interim(&front);
    let formats = ["image/avif,*/*", "*/*"];
    let auto = |accept: &str| {
        front.ask(Method::GET, "/media/image/a_NormalPreview.auto", &[("accept", accept)])
    };
    formats.iter().for_each(|accept| assert_eq!(auto(accept).status(), 200));
    // Withdrawn: the entry that would be cached for a day is purged, and entries of other items are not.
    run(&server, &["withdraw", "image/a"], 0);
    server.until("Varnish to forget", || (front.get(PREVIEW).status() == 404).then_some(()));
    let crop = front.get("/media/image/a-crop_w9_h9_x1_y1_NormalPreview.jpg");
    assert_eq!(crop.status(), 404);
    formats.iter().for_each(|accept| assert_eq!(auto(accept).status(), 404));
    assert_eq!(cache_status(&front.get("/media/image/b_NormalPreview.jpg")), (200, "HIT"));
    // The item is served again as soon as it returns, although its absence could be cached for a minute.
    news::ingest(&server, "image/a", &document("A again"));
    server.until("Varnish to fetch it", || (front.get(PREVIEW).status() == 200).then_some(()));
    // A stranger can purge nothing, and neither can a purge without keys.
    assert_eq!(front.ask(Method::from_bytes(b"PURGE").unwrap(), "/", &[]).status(), 400);
    // The operator purges everything.
    run(&server, &["purge", "--all", "--set", &purge, "--set", "cdn.purge_header=k"], 0);
    server.until("Varnish to forget all", || {
        (cache_status(&front.get("/media/image/b_NormalPreview.jpg")).1 == "MISS").then_some(())
    });
}

#[test]
fn varnish_revalidates_and_serves_stale_while_the_service_is_down() {
    let port = free_port();
    let server = server(&["cdn.max_age_s=1", "server.unready_s=0"]);
    let front = Front::varnish(&server, port);
    assert_eq!(cache_status(&front.get(PREVIEW)), (200, "MISS"));
    let unchanged = || server.metric("wirephoto_http_requests_total", "status=\"3xx\"");
    // Older than a second: revalidated by a 304.
    server.until("the question whether it holds", || {
        assert_eq!(front.get(PREVIEW).status(), 200);
        (unchanged() > 0.0).then_some(())
    });
    let (status, log) = server.stop();
    assert!(status.success(), "{log}");
    // Once its probe has failed twice, it serves stale entries.
    front.until("Varnish to stand in", || {
        let answer = front.get(PREVIEW);
        let age = header(&answer, "age").parse().unwrap_or(0);
        (answer.status() == 200 && age > 2).then_some(())
    });
    assert_eq!(front.get("/media/image/b_NormalPreview.jpg").status(), 503);
}

#[test]
fn nginx_caches_open_renditions_and_nothing_else() {
    let server = server(&[]);
    let front = Front::nginx(&server);
    check_rules(&server, &front);
    check_interim(&front);
    // Large enough that it takes a while to render.
    let wide = Picture::waves(2000, 1500).jpeg();
    fs::write(server.dir.path().join("wide.jpg"), wide).unwrap();
    let wide = server.dir.path().join("wide.jpg");
    run(&server, &["ingest", &wide.to_string_lossy()], 0);
    server.until("the picture", || {
        (server.get("/media/image/wide.json").status() == 200).then_some(())
    });
    check_collapsing(&server, &front, "/media/image/wide-crop_w900_h700_x1_y1_NormalPreview.jpg");
}

#[test]
fn nginx_serves_no_withdrawn_picture_to_concurrent_clients() {
    let server = server(&["cdn.max_age_s=1", "media.stale_while_revalidate_s=0"]);
    let front = Front::nginx(&server);
    assert_eq!(cache_status(&front.get(PREVIEW)), (200, "MISS"));
    run(&server, &["withdraw", "image/a"], 0);
    server.until("the withdrawal", || (server.get(PREVIEW).status() == 404).then_some(()));
    // No client asks for the withdrawn picture until nginx revalidates one that it stored later.
    assert_eq!(front.get(OTHER).status(), 200);
    front.until("the end of the second", || {
        (cache_status(&front.get(OTHER)).1 == "REVALIDATED").then_some(())
    });
    let start = Barrier::new(12);
    thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                start.wait();
                assert_eq!(front.get(PREVIEW).status(), 404);
            });
        }
    });
}

#[test]
fn nginx_revalidates_each_second_and_serves_stale_while_the_service_is_down() {
    let server = server(&["cdn.max_age_s=1", "server.unready_s=0"]);
    let front = Front::nginx(&server);
    // Older than a second: revalidated by a 304.
    let unchanged = || server.metric("wirephoto_http_requests_total", "status=\"3xx\"");
    let before = unchanged();
    server.until("the question whether it holds", || {
        assert_eq!(front.get(PREVIEW).status(), 200);
        (unchanged() > before).then_some(())
    });
    run(&server, &["withdraw", "image/a"], 0);
    server.until("nginx to learn it", || (front.get(PREVIEW).status() == 404).then_some(()));
    news::ingest(&server, "image/a", &document("A again"));
    server.until("nginx to fetch it", || (front.get(PREVIEW).status() == 200).then_some(()));
    let (status, log) = server.stop();
    assert!(status.success(), "{log}");
    front.until("nginx to stand in", || {
        let answer = front.get(PREVIEW);
        assert_eq!(answer.status(), 200);
        (cache_status(&answer).1 == "STALE").then_some(())
    });
    assert_eq!(front.get("/media/image/never-asked.json").status(), 502);
}
