//! News items for tests, ingested by the command as an operator would.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::{
    Server, checkout,
    pictures::Picture,
    server::{output, wirephoto},
};

/// Writes a folder of items, each a key and a document. Photographs get a small picture.
pub fn write(folder: &Path, items: &[(&str, Value)]) {
    for (key, document) in items {
        let folder = folder.join(key);
        fs::create_dir_all(&folder).expect("folder");
        fs::write(folder.join("item.json"), document.to_string()).expect("written");
        if key.starts_with("image/") {
            fs::write(folder.join("NormalHires.jpg"), Picture::waves(64, 48).jpeg())
                .expect("written");
        }
    }
}

/// A server over `items` and the accounts of the demo archive.
pub fn server(settings: &[&str], items: &[(&str, Value)]) -> Server {
    let dir = tempfile::tempdir().expect("folder");
    write(&dir.path().join("incoming"), items);
    server_over(settings, dir)
}

/// A server over the items in the folder `incoming` of `dir` and the accounts of the demo archive.
pub fn server_over(settings: &[&str], dir: tempfile::TempDir) -> Server {
    let incoming = dir.path().join("incoming");
    let accounts = checkout("media-store/accounts.json");
    for (word, file) in [("ingest", incoming.as_path()), ("import", accounts.as_path())] {
        let mut command = wirephoto(dir.path());
        command.arg(word).arg(file).arg("--data").arg(dir.path().join("data"));
        let output = output(&mut command);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    Server::start(dir, settings)
}

/// Ingests one more item, in another process than the server's.
pub fn ingest(server: &Server, key: &str, document: &Value) {
    let folder = tempfile::tempdir().expect("folder");
    write(folder.path(), &[(key, document.clone())]);
    let output = server.command(&["ingest", &folder.path().to_string_lossy()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A document with a headline, product codes and the date of its version.
pub fn document(headline: &str, codes: &[&str], created: &str) -> Value {
    let product = |code: &&str| json!({ "code": code, "name": code });
    json!({
        "headline": headline,
        "versioncreated": created,
        "copyrightholder": "TT",
        "product": codes.iter().map(product).collect::<Vec<_>>(),
    })
}
