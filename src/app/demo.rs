//! Ingests the demo archive, restricts it to this machine, and removes its accounts.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::{OpenArchive, file_error, read_accounts};
use crate::access::provisioning::{RemovedAccounts, has_published_key};
use crate::archive::ingest::{self, FoundFiles, IngestFailure};
use crate::runtime::clock;
use crate::runtime::config::Config;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::database::Db;

/// Key of the state entry that records which demo accounts were imported.
const DEMO_ACCOUNTS: &str = "demo-accounts";

/// The accounts file of the demo, which has had this form in every version so far.
const ACCOUNTS: &str = include_str!("../../media-store/accounts.json");

/// Finds the folder with the demo archive, `demo/` and its `accounts.json`: the data directory, `media-store`
/// in the working directory, or `share/wirephoto` of the installation of this binary (`/usr/share/wirephoto`
/// for `/usr/bin/wirephoto`).
///
/// Fails if no folder has it; the message lists the folders and says where to get the archive.
pub fn find_demo(config: &Config) -> Result<PathBuf> {
    let mut candidates = vec![config.data.dir.clone(), PathBuf::from("media-store")];
    let binary = std::env::current_exe().ok();
    let installed = binary.as_deref().and_then(Path::parent).and_then(Path::parent);
    candidates.extend(installed.map(|prefix| prefix.join("share").join("wirephoto")));
    let found = candidates.iter().find(|folder| folder.join("demo").is_dir());
    found.cloned().ok_or_else(|| {
        let searched = candidates.iter().map(|folder| folder.join("demo").display().to_string());
        let message = format!(
            "there is no demo archive in {}: it is too large for the binary. The Debian package and the \
             container have it, and so has the source tree: start in its root, or copy its folder \
             media-store/demo and the file media-store/accounts.json beside it to one of these places",
            searched.collect::<Vec<_>>().join(" or ")
        );
        Error::new(ErrorKind::NotFound, message)
    })
}

/// Ingests the parts of the demo archive in `source` that the data directory does not have yet; returns the
/// number of items.
///
/// The accounts are imported only if this version of their file was not imported before, so that later
/// changes to them persist.
pub fn ingest_demo(archive: &OpenArchive, config: &Config, source: &Path) -> Result<usize> {
    let FoundFiles { incoming, failures, .. } = ingest::find(&[source.join("demo")]);
    if let Some(failure) = failures.first() {
        return Err(ingest_error(failure));
    }
    let missing = incoming.into_iter().filter(|path| !is_known(archive, path)).collect::<Vec<_>>();
    let count = missing.len();
    let problem = Mutex::new(None);
    let ingest = archive.ingest(config)?;
    ingest::ingest_all(&ingest, missing, config.ingest_workers(), &clock::now, &|_, outcome| {
        if let Err(failure) = outcome {
            // Several workers report; the first failure is enough to refuse the start.
            problem.lock().get_or_insert(ingest_error(failure));
        }
    });
    if let Some(error) = problem.into_inner() {
        return Err(error);
    }
    let accounts = source.join("accounts.json");
    if accounts.is_file() {
        let text = read_accounts(&accounts)?;
        let imported = archive.accounts(config)?.import_once(DEMO_ACCOUNTS, &text, clock::now());
        imported.map_err(|cause| file_error(&accounts, &cause))?;
    }
    Ok(count)
}

fn ingest_error(failure: &IngestFailure) -> Error {
    Error::new(ErrorKind::InvalidArgument, failure.to_string())
}

/// Returns whether the archive already has an item of the demo, by the name of its file or folder.
fn is_known(archive: &OpenArchive, incoming: &ingest::IncomingPath) -> bool {
    // Without a valid id in its name, the item gets an id from its content, and only the ingest can find it.
    let Some(key) = incoming.named_key() else { return false };
    let found = archive.db.read_blocking(move |tx| tx.find_item(&key));
    // If the database cannot be read, the ingest of the item fails with the cause.
    found.is_ok_and(|item| item.is_some())
}

/// Refuses to serve the demo accounts, whose passwords and keys are public, to other machines.
///
/// Fails if the service listens on a non-loopback address or has a public URL in its settings.
pub fn refuse_public_demo(config: &Config) -> Result<()> {
    let Some(address) = public_address(config) else { return Ok(()) };
    let message = format!(
        "{address}, and the passwords and keys of the demo accounts are publicly known: serve the \
         demo on 127.0.0.1, or add --demo-public"
    );
    Err(Error::new(ErrorKind::InvalidArgument, message))
}

/// Refuses to serve an archive to other machines while logins of the demo work in it, however they were added.
///
/// Fails with the names of the logins if the service listens on a non-loopback address or has a public URL in its
/// settings.
pub fn refuse_published_logins(archive: &OpenArchive, config: &Config) -> Result<()> {
    let Some(address) = public_address(config) else { return Ok(()) };
    let logins = archive.accounts(config)?.published_logins(ACCOUNTS)?;
    if logins.is_empty() {
        return Ok(());
    }
    let message = format!(
        "{address}, and these logins of the demo are publicly known: {}; `wirephoto demo remove` removes \
         them, and --demo-public serves them to everyone",
        logins.join(", ")
    );
    Err(Error::new(ErrorKind::InvalidArgument, message))
}

/// Returns the setting that lets other machines reach the service, with its value, if there is one.
fn public_address(config: &Config) -> Option<String> {
    let listen = config.server.listen;
    if !listen.ip().is_loopback() {
        return Some(format!("server.listen is {listen}"));
    }
    let server = &config.server;
    // Each of these URLs is set when a proxy or a CDN makes the service reachable for other machines.
    let urls = [
        ("public_url", &server.public_url),
        ("media_url", &server.media_url),
        ("auth_url", &server.auth_url),
        ("search_url", &server.search_url),
        ("site_url", &server.site_url),
    ];
    let public = urls.into_iter().find(|(_, url)| !url.0.is_empty() && !is_loopback(&url.0));
    public.map(|(name, url)| format!("server.{name} is {}", url.0))
}

/// Returns whether the host of a URL is this machine.
fn is_loopback(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = host.split(['/', '?', '#']).next().unwrap_or_default();
    // User information may look like a host; the host begins after the last `@`.
    let host = host.rsplit('@').next().unwrap_or_default();
    // The colons of an IPv6 address do not start a port; it is in brackets (RFC 3986, section
    // 3.2.2).
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let address = host.parse::<IpAddr>();
    address.map_or(host.eq_ignore_ascii_case("localhost"), |address| address.is_loopback())
}

/// Returns the warning about demo accounts in an archive that is not served as the demo, if it has demo
/// accounts.
///
/// The accounts exist after `serve --demo`, or if their file was imported and one of its keys is still in
/// use.
pub fn demo_warning(db: &Db) -> Result<Option<String>> {
    let noted = db.read_blocking(|tx| tx.find_state(DEMO_ACCOUNTS))?.is_some();
    // An import of the file by hand leaves no state entry, so its keys are looked up too.
    let found = noted || has_published_key(db, ACCOUNTS)?;
    let warning = "the archive has the demo accounts, whose passwords and keys are publicly \
                   known: `wirephoto demo remove` removes them";
    Ok(found.then(|| warning.to_owned()))
}

/// Removes the demo accounts: users, keys, clients, and everything else in their file that is not in use.
pub fn remove_demo_accounts(archive: &OpenArchive, config: &Config) -> Result<RemovedAccounts> {
    let accounts = archive.accounts(config)?;
    Ok(accounts.remove_published(ACCOUNTS, DEMO_ACCOUNTS, clock::now())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_of_this_machine_is_loopback() {
        for url in [
            "http://localhost:8080",
            "http://127.0.0.1",
            "https://127.8.8.8:1/x",
            "http://[::1]:8080",
            "http://LOCALHOST/",
            "http://user:password@localhost:8080",
            "http://localhost/@pictures.example.org",
        ] {
            assert!(is_loopback(url), "{url}");
        }
        for url in [
            "https://pictures.example.org",
            "http://10.0.0.1:8080",
            "http://[2001:db8::1]",
            "http://localhost.example.org",
            "http://127.0.0.1.example.org",
            "http://0.0.0.0",
            "http://localhost:x@pictures.example.org",
            "http://127.0.0.1@pictures.example.org:8080/x",
        ] {
            assert!(!is_loopback(url), "{url}");
        }
    }
}
