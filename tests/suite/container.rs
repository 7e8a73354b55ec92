//! The container image: its build context, and the settings in its recipe. `tests/container.sh` runs the service as
//! the image does, and `packaging` checks the rest of the recipe.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

use crate::common::server::{isolate_environment, output, wirephoto};
use crate::common::{Server, checkout};
use crate::documented::pages::block;
use crate::packaging::{read, sources};

/// The build context of a clean checkout: the tracked files that `.dockerignore` admits.
fn build_context() -> Vec<String> {
    let tracked = Command::new("git").arg("ls-files").current_dir(checkout("")).output();
    let tracked = String::from_utf8(tracked.expect("git").stdout).unwrap();
    let ignore = read(".dockerignore");
    assert!(ignore.lines().any(|line| line == "*"), "what is not named is left out");
    let allowed: Vec<&str> = ignore.lines().filter_map(|line| line.strip_prefix('!')).collect();
    let is_given = |file: &&str| allowed.iter().any(|path| Path::new(file).starts_with(path));
    let found: Vec<String> = tracked.lines().filter(is_given).map(str::to_owned).collect();
    assert!(found.len() > 500, "{}", found.len());
    found
}

#[test]
fn the_container_is_built_from_a_clean_checkout() {
    let context = tempfile::tempdir().unwrap();
    for file in build_context() {
        let place = context.path().join(&file);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(checkout(&file), place).unwrap();
    }
    // Every target and member that a manifest names exists.
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version=1", "--locked", "--offline", "--no-deps"]);
    let said = cargo.current_dir(context.path()).output().expect("cargo");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let metadata: Value = serde_json::from_slice(&said.stdout).unwrap();
    let ours = metadata["packages"].as_array().unwrap().iter().filter(|it| it["source"].is_null());
    for target in ours.flat_map(|package| package["targets"].as_array().unwrap()) {
        let source = target["src_path"].as_str().unwrap();
        assert!(Path::new(source).exists(), "{source} is not in the context");
    }
    // Files that sources include or the recipe copies.
    let mut files = Vec::new();
    for dir in ["src", "crates"] {
        sources(&context.path().join(dir), &mut files);
    }
    let mut included = 0;
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for mark in ["include_str!(\"", "include_bytes!(\""] {
            for path in text.split(mark).skip(1).filter_map(|rest| rest.split('"').next()) {
                let wanted = file.parent().unwrap().join(path);
                assert!(wanted.exists(), "{} includes {path}", file.display());
                included += 1;
            }
        }
    }
    assert!(included > 5, "{included}");
    let recipe = read("Dockerfile");
    for copy in recipe.lines().filter_map(|line| line.strip_prefix("COPY ")) {
        let words: Vec<&str> =
            copy.split_whitespace().filter(|it| !it.starts_with("--")).collect();
        let is_built = copy.starts_with("--from=build ");
        for source in &words[..words.len() - 1] {
            let expected = "/src/target/release/wirephoto";
            let there =
                if is_built { *source == expected } else { context.path().join(source).exists() };
            assert!(there, "COPY {copy}: {source} is not in the context");
        }
    }
}

#[test]
fn the_settings_in_the_container_recipe_exist() {
    let recipe = read("Dockerfile");
    let given: Vec<(&str, &str)> = recipe
        .split_whitespace()
        .filter(|word| word.starts_with("WIREPHOTO_"))
        .filter_map(|word| word.split_once('='))
        .collect();
    assert!(given.len() > 1, "{given:?}");
    let dir = tempfile::tempdir().unwrap();
    let mut command = wirephoto(dir.path());
    let said = output(command.args(["config", "--json"]).envs(given.iter().copied()));
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let rows: Vec<Value> = serde_json::from_slice(&said.stdout).unwrap();
    for (variable, value) in given {
        let name = variable.strip_prefix("WIREPHOTO_").unwrap().to_lowercase().replace("__", ".");
        let row = rows.iter().find(|row| row["name"] == name.as_str());
        assert_eq!(row.unwrap_or_else(|| panic!("{variable}"))["value"], value, "{variable}");
    }
    let volume = recipe.lines().find_map(|line| line.strip_prefix("VOLUME ")).unwrap();
    let data = rows.iter().find(|row| row["name"] == "data.dir").unwrap();
    assert_eq!(data["value"], volume);
}

#[test]
fn the_container_pages_name_existing_files() {
    let install = block("docs/operations/kubernetes.md", "umask 077; openssl rand").text;
    let rotation = block("docs/operations/kubernetes.md", "pod=$(kubectl").text;
    // Every entry of the Secret that the manifests mount, and every manifest except the example Secret.
    let secret = read("examples/kubernetes/secret.yaml");
    let entries = secret.split("stringData:").nth(1).unwrap();
    let entries: Vec<&str> = entries
        .lines()
        .filter(|line| line.starts_with("  ") && !line.contains('#'))
        .filter_map(|line| line.trim().split_once(": "))
        .map(|(name, _)| name)
        .collect();
    assert!(entries.len() > 3, "{entries:?}");
    for entry in &entries {
        assert!(install.contains(&format!("--from-file={entry} ")), "{entry}");
    }
    for file in fs::read_dir(checkout("examples/kubernetes")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let is_applied = install.contains(&format!("-f examples/kubernetes/{name}"));
        assert_eq!(is_applied, name != "secret.yaml", "{name}");
    }
    let deployment = read("examples/kubernetes/deployment.yaml");
    assert!(deployment.contains("mountPath: /run/secrets/wirephoto\n"));
    assert!(entries.contains(&"secrets.key"));
    assert!(rotation.contains("/run/secrets/wirephoto/secrets.key /tmp/secrets.key"));
    // The inner command runs as printed, over a writable copy.
    let server = Server::empty();
    let key = server.data().join("secrets.key");
    let (before, copy) = (fs::read(&key).unwrap(), server.dir.path().join("copy.key"));
    let script = rotation.split("sh -c '").nth(1).unwrap().split('\'').next().unwrap();
    let mut shell = Command::new("sh");
    isolate_environment(&mut shell, server.dir.path());
    let own = Path::new(env!("CARGO_BIN_EXE_wirephoto")).parent().unwrap();
    let others = std::env::var("PATH").unwrap_or_default();
    shell.env("PATH", format!("{}:{others}", own.display()));
    shell.env("WIREPHOTO_DATA__DIR", server.data()).args(["-c", script]).args([&key, &copy]);
    let said = output(&mut shell);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let after = fs::read(&copy).unwrap();
    assert!(before == fs::read(&key).unwrap() && before != after);
}
