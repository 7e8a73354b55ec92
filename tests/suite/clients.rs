//! Ordinary client libraries against the server: the public API client and two OAuth2 libraries, unmodified. The
//! scripts in `tests/clients` drive them and report by their exit status whether all checks held; their
//! dependencies are installed once, next to the build.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{LazyLock, Mutex, PoisonError},
};

use serde_json::json;

use crate::common::{Server, checkout, news};

/// Serializes installations of tests that run in parallel.
static INSTALLING: LazyLock<Mutex<()>> = LazyLock::new(Mutex::default);

fn run(command: &mut Command) -> Output {
    let output = command.output().expect("./test installs it");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = format!("{}\n{}", text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{said}");
    output
}

/// Makes `to` a copy of the file `from`. Another test may be running it, so it is replaced only if it differs, and
/// atomically.
fn replace_if_changed(from: &Path, to: &Path) {
    let text = fs::read(from).expect("a script");
    if fs::read(to).ok().as_ref() != Some(&text) {
        let part = to.with_extension("part");
        fs::write(&part, text).expect("written");
        fs::rename(part, to).expect("renamed");
    }
}

/// The scripts with their dependencies, in a folder that outlives the run.
fn installed(stamp: &str, install: impl Fn(&Path)) -> PathBuf {
    let _one = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients");
    fs::create_dir_all(&folder).expect("folder");
    for entry in fs::read_dir(checkout("tests/clients")).expect("scripts").flatten() {
        if entry.path().is_file() {
            replace_if_changed(&entry.path(), &folder.join(entry.file_name()));
        }
    }
    let (wanted, done) = (folder.join(stamp), folder.join(format!("{stamp}.installed")));
    let wanted = fs::read(wanted).expect("what is needed");
    if fs::read(&done).ok().as_ref() != Some(&wanted) {
        install(&folder);
        fs::write(done, wanted).expect("written");
    }
    folder
}

/// The scripts with the packages of `package.json`.
pub fn node_scripts() -> PathBuf {
    installed("package-lock.json", |folder| {
        run(Command::new("npm").args(["ci", "--ignore-scripts", "--silent"]).current_dir(folder));
    })
}

/// The scripts with the packages of `requirements`, in the virtual environment `venv`.
pub fn python_scripts(requirements: &str, venv: &str) -> PathBuf {
    installed(requirements, |folder| {
        let venv = folder.join(venv);
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv));
        let mut pip = Command::new(venv.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check", "-r", requirements]);
        run(pip.current_dir(folder));
    })
}

/// A server over the demo archive with the accounts of the scripts.
fn server() -> Server {
    let server = Server::demo();
    let accounts = checkout("tests/clients/accounts.json");
    let output = server.command(&["import", &accounts.to_string_lossy()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    server
}

/// A program that calls the server, without the machine's proxy settings: they do not apply to loopback.
pub fn client(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().to_ascii_lowercase().ends_with("_proxy") {
            command.env_remove(name);
        }
    }
    command
}

fn script(program: &Path, folder: &Path, name: &str, argument: &serde_json::Value) {
    let mut command = client(program);
    let output = run(command.arg(name).arg(argument.to_string()).current_dir(folder));
    assert!(output.stdout.starts_with(b"{"), "{name} says what it saw");
}

#[test]
fn the_public_client_library_uses_every_method_of_its_user_namespace() {
    let (server, folder) = (server(), node_scripts());
    let media = ["/media/image/demo-urtavla.jpg", "/media/image/demo-paint-brushes.jpg"];
    let argument = json!({ "base": server.url, "media": media });
    script(Path::new("node"), &folder, "user_api.mjs", &argument);
}

#[test]
fn the_public_client_library_searches_and_polls_the_stream() {
    let (server, folder) = (server(), node_scripts());
    let input = tempfile::tempdir().expect("folder");
    let document = news::document("Klient", &["FOTO"], "2030-01-01T00:00:00Z");
    news::write(input.path(), &[("image/klient", document)]);
    let (input, data) = (input.path().to_string_lossy(), server.data());
    let program = env!("CARGO_BIN_EXE_wirephoto");
    let ingest = json!([program, "ingest", input, "--data", data]);
    let argument = json!({ "base": server.url, "ingest": ingest });
    script(Path::new("node"), &folder, "content_client.mjs", &argument);
}

#[test]
fn the_public_client_library_uses_notifications_and_its_content_stream() {
    let (server, folder) = (server(), node_scripts());
    let input = tempfile::tempdir().expect("folder");
    let ingest: Vec<_> = [("ett", "Ett"), ("tva", "Två"), ("tre", "Tre")]
        .iter()
        .map(|(id, headline)| {
            let folder = input.path().join(id);
            let document = news::document(headline, &["FOTO"], "2030-01-01T00:00:00Z");
            news::write(&folder, &[(&format!("image/{id}"), document)]);
            json!([env!("CARGO_BIN_EXE_wirephoto"), "ingest", folder, "--data", server.data()])
        })
        .collect();
    let argument = json!({ "base": server.url, "ingest": ingest });
    script(Path::new("node"), &folder, "notification_client.mjs", &argument);
}

#[test]
fn the_public_client_library_manages_collections() {
    let (server, folder) = (server(), node_scripts());
    let items = ["image/demo-urtavla", "image/demo-paint-brushes", "image/demo-bridge-cables"];
    let argument = json!({ "base": server.url, "items": items });
    script(Path::new("node"), &folder, "collection_client.mjs", &argument);
}

#[test]
fn openid_client_runs_code_implicit_refresh_and_revocation() {
    let (server, folder) = (server(), node_scripts());
    script(Path::new("node"), &folder, "openid.mjs", &json!({ "base": server.url }));
}

#[test]
fn authlib_runs_code_implicit_password_refresh_and_revocation() {
    let (server, folder) = (server(), python_scripts("requirements.txt", "venv"));
    let python = folder.join("venv/bin/python");
    script(&python, &folder, "oauth.py", &json!({ "base": server.url }));
}
