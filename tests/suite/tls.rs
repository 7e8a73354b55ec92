//! TLS of the server: which handshakes succeed, with which certificate, and which connections are closed.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::{Command, Output, Stdio},
};

use reqwest::{Certificate, Version, blocking::Client};

use crate::{
    common::{
        DEMO_KEY, LARGE, Server, WAIT_TIMEOUT,
        server::{output, wirephoto},
    },
    receivers::python,
    reload::reload,
};

/// Folders of certificates: `one` and `two` are valid, each from its own authority.
fn certificates() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let status = python("tls_files.py").arg(dir.path()).status().unwrap();
    assert!(status.success());
    dir
}

/// The settings for the certificate in `folder`.
fn shown(folder: &Path) -> [String; 2] {
    let file = folder.join("server.pem");
    ["tls_certificate", "tls_key"].map(|name| format!("server.{name}={}", file.display()))
}

fn server(folder: &Path, settings: &[&str]) -> Server {
    let shown = shown(folder);
    let settings: Vec<&str> = settings.iter().copied().chain(shown.iter().map(|s| &**s)).collect();
    Server::demo_with(&settings)
}

/// A client that trusts only the authority in `folder`.
fn client(folder: &Path) -> Client {
    let ca = Certificate::from_pem(&fs::read(folder.join("ca.pem")).unwrap()).unwrap();
    Client::builder().tls_certs_only([ca]).no_proxy().build().unwrap()
}

/// The sum of a metric, read over TLS; `None` if the client itself was too slow for a limit.
fn try_metric(server: &Server, client: &Client, name: &str, label: &str) -> Option<f64> {
    let text = client.get(format!("{}/metrics", server.url)).send().ok()?.text().ok()?;
    let lines = text.lines().filter(|line| line.starts_with(name) && line.contains(label));
    Some(lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum())
}

fn metric(server: &Server, client: &Client, name: &str, label: &str) -> f64 {
    try_metric(server, client, name, label).expect("an answer")
}

fn port(server: &Server) -> &str {
    server.url.strip_prefix("https://127.0.0.1:").expect("the server says https")
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(format!("127.0.0.1:{}", port(server))).unwrap();
    stream.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
    stream
}

/// Reads until the other side closes the connection.
fn rest(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset counts as a close.
    drop(stream.read_to_end(&mut bytes));
    bytes
}

fn curl(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--noproxy", "*", "--cacert"]);
    command.arg(folder.join("ca.pem")).args(arguments).output().unwrap()
}

#[test]
fn tls_is_served_with_http_2_and_http_1_and_links_say_https() {
    let files = certificates();
    let one = files.path().join("one");
    let server = server(&one, &[]);
    let url = format!("{}/media/{LARGE}_NormalThumbnail.jpg", server.url);
    for (flag, version) in [("--http2", "2"), ("--http1.1", "1.1")] {
        let say = ["--output", "/dev/null", "--write-out", "%{http_code} %{http_version}"];
        let output = curl(&one, &[&[flag][..], &say, &[&url]].concat());
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said, format!("200 {version}"), "{:?}", output.stderr);
    }
    let client = client(&one);
    let response = client.get(&url).send().unwrap();
    assert_eq!((response.status().as_u16(), response.version()), (200, Version::HTTP_2));
    let whole = response.bytes().unwrap();
    assert!(whole.starts_with(&[0xff, 0xd8]), "a JPEG");
    let discovery = format!("{}/.well-known/openid-configuration", server.url);
    let text = client.get(discovery).send().unwrap().text().unwrap();
    assert!(text.contains(&format!("\"issuer\":\"{}\"", server.url)), "{text}");
    let page = client.get(format!("{}/o/login", server.url)).send().unwrap();
    let cookie = page.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(cookie.starts_with("__Host-") && cookie.contains("; Secure"), "{cookie}");
    let expires = metric(&server, &client, "wirephoto_tls_certificate_expires_seconds", "");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let left = expires - now.as_secs_f64();
    assert!((80_000.0..86_500.0).contains(&left), "{left}");
    // Draining works with TLS as it does without.
    let (status, log) = server.stop();
    assert!(status.success() && log.contains("\"message\":\"stopped\""), "{log}");
}

#[test]
fn tls_1_2_and_1_3_are_served_and_older_versions_are_refused() {
    let files = certificates();
    let server = server(&files.path().join("one"), &[]);
    let address = format!("127.0.0.1:{}", port(&server));
    for (flag, spoken) in [("-tls1_3", true), ("-tls1_2", true), ("-tls1_1", false)] {
        let mut command = Command::new("openssl");
        // The default security level of the client would refuse old versions before the server does.
        command.args(["s_client", "-cipher", "DEFAULT@SECLEVEL=0", "-connect", &address, flag]);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(said.contains("BEGIN CERTIFICATE"), spoken, "{flag}: {said}");
    }
}

#[test]
fn unusable_key_material_fails_the_start_and_names_the_setting() {
    let files = certificates();
    let folder = |name: &str| files.path().join(name).join("server.pem").display().to_string();
    let (one, two, ca) = (folder("one"), folder("two"), files.path().join("one/ca.pem"));
    let ca = ca.display().to_string();
    let garbage = files.path().join("garbage").display().to_string();
    fs::write(&garbage, "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")
        .unwrap();
    let check = |certificate: &str, key: &str, parts: &[&str]| {
        let mut command = wirephoto(files.path());
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        for (name, value) in [("tls_certificate", certificate), ("tls_key", key)] {
            command.args(["--set", &format!("server.{name}={value}")]);
        }
        let output = command.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        let last = stderr.lines().last().unwrap_or_default();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(parts.iter().all(|part| last.contains(part)), "{parts:?}: {last}");
    };
    check(&one, "", &["server.tls_key is not"]);
    check("", &one, &["server.tls_certificate is not"]);
    check("/nowhere.pem", &one, &["server.tls_certificate: /nowhere.pem: "]);
    check(&one, "/nowhere.pem", &["server.tls_key: /nowhere.pem: "]);
    check(&garbage, &one, &["server.tls_certificate: ", "garbage"]);
    check(&one, &ca, &["server.tls_key: ", "no private key"]);
    check(&one, &two, &["server.tls_key: ", "is not the key of the certificate in"]);
    check(&folder("expired"), &folder("expired"), &["server.tls_certificate: ", "expired at 20"]);
    check(
        &folder("later"),
        &folder("later"),
        &["server.tls_certificate: ", "not valid before 20"],
    );
}

#[test]
fn a_hanging_handshake_is_closed_and_plain_http_gets_an_explanation() {
    let files = certificates();
    let one = files.path().join("one");
    let server = server(&one, &["server.header_timeout_s=2"]);
    let silent = connect(&server);
    let mut half = connect(&server);
    // The header of a record of 512 bytes that are never sent.
    half.write_all(&[22, 3, 1, 2, 0, 1]).unwrap();
    let mut plain = connect(&server);
    plain.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let answer = String::from_utf8(rest(plain)).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("https"), "{answer}");
    let mut garbage = connect(&server);
    garbage.write_all(&[0; 600]).unwrap();
    assert!(rest(garbage).len() < 100);
    assert_eq!(rest(silent), b"");
    assert_eq!(rest(half), b"");
    let client = client(&one);
    // They are counted shortly after they are closed; a client that was too slow itself retries.
    for (name, label, least) in [
        ("wirephoto_connections_ended_total", "slow_handshake", 2.0),
        ("wirephoto_tls_handshakes_failed_total", "", 2.0),
        ("wirephoto_connections", "", 1.0),
    ] {
        let count = || try_metric(&server, &client, name, label);
        server.until(name, || count().filter(|count| *count >= least));
    }
}

/// The end of a response may be buffered in the TLS layer: the client is slow, not idle.
#[test]
fn a_response_over_tls_is_not_cut_while_its_end_waits_for_the_client() {
    let files = certificates();
    let one = files.path().join("one");
    let server = server(&one, &["server.idle_timeout_s=1"]);
    let mut command = python("tls_slow_readers.py");
    let path = format!("/media/{LARGE}.jpg?ak={DEMO_KEY}");
    // Four times the timeout for closing an idle connection.
    command.arg(one.join("ca.pem")).args([port(&server), &path, "4"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let pairs: Vec<[u64; 2]> = serde_json::from_slice(&output.stdout).unwrap();
    assert!(pairs.len() > 10 && pairs.iter().all(|[asked, got]| asked == got), "{pairs:?}");
}

#[test]
fn hanging_handshakes_leave_half_of_the_connections_to_others() {
    let files = certificates();
    let one = files.path().join("one");
    let server = server(&one, &["server.connections_max=8", "server.header_timeout_s=300"]);
    let client = client(&one);
    // The client reuses its connection from here on.
    assert_eq!(metric(&server, &client, "wirephoto_connections_ended_total", "handshakes"), 0.0);
    let hanging: Vec<_> = (0..4).map(|_| connect(&server)).collect();
    server.until("the handshakes to begin", || {
        (metric(&server, &client, "wirephoto_tls_handshakes ", "") >= 4.0).then_some(())
    });
    // The fifth is closed immediately; the four have five minutes.
    assert_eq!(rest(connect(&server)), b"");
    assert_eq!(metric(&server, &client, "wirephoto_connections_ended_total", "handshakes"), 1.0);
    assert_eq!(metric(&server, &client, "wirephoto_connections_ended_total", "slow"), 0.0);
    drop(hanging);
    let thumbnail = format!("{}/media/{LARGE}_NormalThumbnail.jpg", server.url);
    let anew = || client_gets(&one, &thumbnail).then_some(());
    server.until("a new client to get on", anew);
}

/// Returns whether a new client that trusts the authority in `folder` gets `url`.
fn client_gets(folder: &Path, url: &str) -> bool {
    client(folder).get(url).send().is_ok_and(|response| response.status() == 200)
}

#[test]
fn a_renewed_certificate_is_used_after_sighup_and_an_invalid_one_is_not() {
    let files = certificates();
    let (one, two) = (files.path().join("one"), files.path().join("two"));
    let live = files.path().join("live");
    fs::create_dir(&live).unwrap();
    let show = |from: &Path| fs::copy(from.join("server.pem"), live.join("server.pem")).unwrap();
    show(&one);
    let server = server(&live, &[]);
    let url = format!("{}/health/live", server.url);
    let kept = client(&one);
    assert_eq!(kept.get(&url).send().unwrap().text().unwrap(), r#"{"status":"live"}"#);
    assert!(!client_gets(&two, &url));
    show(&two);
    assert!(!client_gets(&two, &url), "nothing changes by itself");
    server.signal("HUP");
    let wait = |what: &str, look: &dyn Fn() -> bool| {
        server.until(what, || look().then_some(()));
    };
    wait("the new certificate", &|| client_gets(&two, &url));
    assert!(!client_gets(&one, &url));
    assert_eq!(kept.get(&url).send().unwrap().status(), 200, "what is open stays");
    fs::write(live.join("server.pem"), "nonsense").unwrap();
    server.signal("HUP");
    wait("a complaint", &|| {
        server.log().contains("certificate cannot be reloaded, the previous one stays in use")
    });
    assert!(server.log().contains("server.tls_certificate: "), "{}", server.log());
    assert!(client_gets(&two, &url));
}

#[test]
fn doctor_says_how_to_trust_an_own_authority() {
    let files = certificates();
    let one = files.path().join("one");
    let server = server(&one, &[]);
    let public = format!("server.public_url={}", server.url);
    let doctor = || {
        let mut command = wirephoto(server.dir.path());
        command.args(["doctor", "--set", &public, "--data"]).arg(server.data());
        command
    };
    let public_view = |said: Output| {
        let said = String::from_utf8(said.stdout).unwrap();
        said.lines().find(|line| line.contains(" public ")).unwrap_or_default().to_owned()
    };
    let refused = public_view(output(doctor().env_remove("SSL_CERT_FILE")));
    assert!(refused.starts_with("problem") && refused.contains("SSL_CERT_FILE"), "{refused}");
    let trusted = public_view(output(doctor().env("SSL_CERT_FILE", one.join("ca.pem"))));
    assert!(trusted.starts_with("ok") && trusted.ends_with("ready"), "{trusted}");
}

#[test]
fn an_unusable_certificate_keeps_a_reload_from_changing_settings() {
    let files = certificates();
    let (one, live) = (files.path().join("one"), files.path().join("live"));
    fs::create_dir(&live).unwrap();
    let certificate = live.join("server.pem");
    fs::copy(one.join("server.pem"), &certificate).unwrap();
    let server = server(&live, &[]);
    fs::write(&certificate, "nonsense").unwrap();
    let settings = "[media]\nmax_age_s = 7\n";
    reload(&server, settings, "certificate cannot be reloaded");
    assert!(!server.log().contains("settings reloaded"), "{}", server.log());
    fs::copy(one.join("server.pem"), &certificate).unwrap();
    let line = reload(&server, settings, "settings reloaded");
    assert!(line.contains("media.max_age_s"), "{line}");
}
