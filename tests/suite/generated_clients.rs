//! Clients that are generated from `/openapi.json`: the commands and programs of `docs/guide/generated-clients.md` run as
//! printed, against a running server.

use std::fs;
use std::path::Path;

use crate::clients;
use crate::common::{DEMO_KEY, LARGE, Server, is_before_release};
use crate::documented::pages::block;

const PAGE: &str = "docs/guide/generated-clients.md";
/// The address of the server on the page.
const ADDRESS: &str = "http://127.0.0.1:8080";

/// A server over the demo archive whose editor has an order.
fn server() -> Server {
    let server = Server::demo();
    let key = format!("ApiKey {DEMO_KEY}");
    let bought = server.get_with(&format!("/media/{LARGE}.jpg"), &[("authorization", &key)]);
    assert_eq!(bought.status(), 200);
    server
}

/// The block of the page that begins with `start`, with the address of the server.
fn printed(server: &Server, start: &str) -> String {
    block(PAGE, start).text.replace(ADDRESS, &server.url)
}

/// Runs `script` in `folder` with the programs in `programs` on the path; returns its output.
fn run(script: &str, folder: &Path, programs: &Path) -> String {
    let mut command = clients::client(Path::new("bash"));
    let path = std::env::var("PATH").expect("a path");
    command.env("PATH", format!("{}:{path}", programs.display()));
    command.args(["-e", "-c", script]).current_dir(folder);
    let output = command.output().expect("bash runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{said}\n{errors}");
    said
}

/// Checks that a program of the page printed hits of the search, and the order.
#[track_caller]
fn check_output(said: &str) {
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("/media/image/")).collect();
    let (order, hits) = lines.split_last().expect("an order");
    assert!(order.ends_with(LARGE), "{said}");
    assert!(!hits.is_empty() && hits.iter().all(|line| line.starts_with("http")), "{said}");
}

#[test]
fn openapi_typescript_generates_types_that_a_strict_program_uses() {
    // The compiler takes longer than most of the suite, and the document changes seldom.
    if !is_before_release() {
        return;
    }
    let server = server();
    let folder = clients::node_scripts();
    let work = tempfile::Builder::new().prefix("generated-").tempdir_in(&folder).expect("folder");
    let program = printed(&server, "import createClient");
    fs::write(work.path().join("search.mts"), program).expect("written");
    let commands = printed(&server, "npx openapi-typescript");
    check_output(&run(&commands, work.path(), &folder.join("node_modules/.bin")));
}

#[test]
fn openapi_python_client_generates_a_package_that_imports_wholly_and_reads_answers() {
    if !is_before_release() {
        return;
    }
    let server = server();
    let folder = clients::python_scripts("openapi_python_client.txt", "openapi-python-client");
    let programs = folder.join("openapi-python-client/bin");
    let work = tempfile::tempdir().expect("folder");
    for (name, start) in
        [("wirephoto.yaml", "content_type_overrides"), ("search.py", "from wirephoto_client")]
    {
        fs::write(work.path().join(name), printed(&server, start)).expect("written");
    }
    let commands = printed(&server, "openapi-python-client generate");
    check_output(&run(&commands, work.path(), &programs));
    let import_all = "python3 - <<'END'\n\
        import importlib, pkgutil, wirephoto_client\n\
        found = pkgutil.walk_packages(wirephoto_client.__path__, 'wirephoto_client.')\n\
        names = [module.name for module in found]\n\
        for name in names: importlib.import_module(name)\n\
        print(*(name.rsplit('.', 1)[1] for name in names))\n\
        END";
    let modules = run(import_all, work.path(), &programs);
    let modules: Vec<&str> = modules.split_whitespace().collect();
    for name in ["search", "put_item", "change_item", "append_to_upload", "update_template"] {
        assert!(modules.contains(&name), "{name} is not generated: {modules:?}");
    }
}
