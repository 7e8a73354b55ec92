//! Runs the steps of `docs/operations/production.md` in one shell, as an operator would.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    process::{Command, Stdio},
};

use super::pages::block;
use super::run::substitute;
use crate::common::pictures::Picture;
use crate::common::ports::free_port;
use crate::common::server::{isolate_environment, output};
use crate::receivers::python;

const PAGE: &str = "docs/operations/production.md";

/// The first lines of the page's commands, in the order of the steps.
const COMMANDS: [&str; 10] = [
    "sudo apt install",
    "sudo install -m 640 -g wirephoto fullchain.pem",
    "sudo -u wirephoto wirephoto config check",
    "sudo systemctl restart",
    "sudo install -m 640 -g wirephoto /dev/null",
    "sudo -u wirephoto wirephoto import",
    "sudo -u wirephoto wirephoto ingest",
    "sudo install -d",
    "curl --fail",
    "sudo systemctl reload",
];

/// Stands in for the programs of the system: the package is installed, the caller is the service's user, and the
/// service runs until the shell ends. A node that has just started publishes a fault for a second or two, so
/// `doctor` is repeated.
const SYSTEM: &str = r#"
service=
trap 'test -z "$service" || kill "$service"' EXIT
sudo() {
    if [ "$1" = -u ]; then shift 2; fi
    "$@"
}
apt() { test "$1" = install; }
systemctl() {
    case "$1" in
        restart) wirephoto serve --config "$HOME/etc/wirephoto.toml" & service=$! ;;
        reload) kill -HUP "$service" ;;
    esac
}
repeated() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        if "$@"; then return; fi
        sleep 1
    done
    "$@"
}
"#;

/// Runs `script` in the folder `home`; it must succeed. Clients trust the authority of the test's certificate.
#[track_caller]
fn run(script: &str, home: &Path) -> String {
    let mut shell = Command::new("sh");
    isolate_environment(&mut shell, home);
    shell.args(["-euc", script]).current_dir(home).stdin(Stdio::null());
    let own = Path::new(env!("CARGO_BIN_EXE_wirephoto")).parent().unwrap();
    let others = std::env::var("PATH").unwrap_or_default();
    shell.env("PATH", format!("{}:{others}", own.display()));
    let authority = home.join("tls/one/ca.pem");
    shell.env("SSL_CERT_FILE", &authority).env("CURL_CA_BUNDLE", &authority);
    shell.env("HOME", home).env("NO_PROXY", "*");
    let said = output(&mut shell);
    let out = String::from_utf8_lossy(&said.stdout).into_owned();
    let errors = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{script}\n{out}{errors}");
    out
}

#[test]
fn a_server_is_set_up_in_the_ten_documented_steps() {
    let home = tempfile::tempdir().unwrap();
    for folder in ["etc", "photographs", "tls"] {
        fs::create_dir(home.path().join(folder)).unwrap();
    }
    let status = python("tls_files.py").arg(home.path().join("tls")).status().unwrap();
    assert!(status.success());
    for name in ["fullchain.pem", "privkey.pem"] {
        fs::copy(home.path().join("tls/one/server.pem"), home.path().join(name)).unwrap();
    }
    let photograph = Picture::corners(64, 48).jpeg();
    fs::write(home.path().join("photographs/quay.jpg"), photograph).unwrap();

    let root = home.path().to_string_lossy();
    let (etc, data) = (format!("{root}/etc/"), format!("{root}/data"));
    let (listen, admin) =
        (format!("127.0.0.1:{}", free_port()), format!("127.0.0.1:{}", free_port()));
    let public = format!("https://{listen}");
    let settings = substitute(
        &block(PAGE, "[server]").text,
        &[
            ("0.0.0.0:443", &listen),
            ("https://pictures.example", &public),
            ("127.0.0.1:9464", &admin),
            ("/etc/wirephoto/", &etc),
            ("/var/lib/wirephoto", &data),
        ],
    );
    fs::write(home.path().join("etc/wirephoto.toml"), settings).unwrap();
    fs::write(home.path().join("accounts.json"), block(PAGE, "{").text).unwrap();
    let (photographs, backup) = (format!("{root}/photographs"), format!("{root}/backup/"));
    let commands = substitute(
        &COMMANDS.map(|start| block(PAGE, start).text).join("\n"),
        &[
            ("-g wirephoto ", ""),
            ("-o wirephoto ", ""),
            // What an editor writes into the empty file.
            ("/dev/null ", "accounts.json "),
            ("/etc/wirephoto/", &etc),
            ("/srv/photographs", &photographs),
            ("ID_", "quay_"),
            ("https://pictures.example", &public),
            ("/backup/", &backup),
            ("127.0.0.1:9464", &admin),
            ("sudo -u wirephoto wirephoto doctor", "repeated wirephoto doctor"),
        ],
    );
    let said = run(&format!("{SYSTEM}{commands}"), home.path());
    assert!(said.contains("wirephoto_ready 1"), "{said}");
    assert!(said.contains("1 originals checked, 0 problems"), "{said}");
    let picture = fs::read(home.path().join("preview.jpg")).unwrap();
    assert!(picture.starts_with(&[0xff, 0xd8]));
    assert!(home.path().join("backup/wirephoto/backup.json").exists());
    for name in ["accounts.json", "privkey.pem"] {
        let mode = fs::metadata(home.path().join("etc").join(name)).unwrap().mode();
        assert_eq!(mode & 0o007, 0, "others cannot read {name}");
    }
}
