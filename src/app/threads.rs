//! Threads that work beside the requests.

use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use super::Archive;
use crate::access::auth::Auth;
use crate::app::jobs;
use crate::archive::ingest::watch::Watch;
use crate::cluster::clock_guard::Steady;
use crate::cluster::membership::{Lease, Node};
use crate::distribution::notifications::Notifications;
use crate::media::Media;
use crate::runtime::clock::Stopwatch;
use crate::runtime::config::Config;
use crate::runtime::error::{Error, Kind, Result};
use crate::storage::database::Db;
use model::ItemKey;

/// A thread that works beside the requests until it is told to stop.
pub(super) struct Beside {
    stop: mpsc::Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Beside {
    /// Stops the thread and waits for its end.
    pub(super) fn end(self) {
        drop(self.stop);
        drop(self.thread.join());
    }
}

pub(super) fn start_follower(
    db: &Db,
    (media, auth): (&Media, &Auth),
    wanted: Option<tokio::sync::mpsc::Sender<ItemKey>>,
    (followed, node): (tokio::sync::watch::Sender<i64>, &Node),
) -> Result<Beside> {
    let watch = Stopwatch::start();
    let follower = db.follower()?;
    // What is read from now on is no older.
    node.follow(follower.seq());
    node.saw_end_of_log(watch);
    let (stop, stopped) = mpsc::channel();
    let (media, auth) = (media.clone(), auth.clone());
    let node = node.clone();
    let thread = std::thread::Builder::new()
        .name("follow".to_owned())
        .spawn(move || {
            let services = (&media, &auth);
            let told = (&followed, &node);
            jobs::follow(follower, services, wanted.as_ref(), told, &stopped);
        })
        .map_err(Error::internal)?;
    Ok(Beside { stop, thread })
}

/// Watches the folder of the settings, if there is one and this process does such work.
pub(super) fn start_watcher(
    config: &Config,
    archive: &Archive,
    node: &Node,
) -> Result<Option<Beside>> {
    let dir = &config.ingest.watch;
    if dir.as_os_str().is_empty() || !node.role().works() {
        return Ok(None);
    }
    let ingest = archive.ingest(config)?.for_server();
    let unusable = |cause| {
        let message = format!("ingest.watch: folder {} cannot be used", dir.display());
        Error::new(Kind::Unavailable, message).because(cause)
    };
    let watch = Watch::open(dir, ingest, config.ingest_workers()).map_err(unusable)?;
    node.want(Lease::Watching, Some(&watch.name().map_err(unusable)?.to_string()));
    let node = node.clone();
    let interval = Duration::from_millis(u64::from(config.ingest.watch_interval_ms));
    let (stop, stopped) = mpsc::channel();
    let thread = std::thread::Builder::new()
        .name("watch".to_owned())
        .spawn(move || jobs::watch(watch, interval, &node, &stopped))
        .map_err(Error::internal)?;
    Ok(Some(Beside { stop, thread }))
}

/// Wakes readers of streams, where this process has some.
pub(super) fn start_waker(
    db: &Db,
    notifications: &Notifications,
    node: &Node,
) -> Result<Option<Beside>> {
    if !node.role().answers() {
        return Ok(None);
    }
    let (pulse, notifications) = (db.pulse()?, notifications.clone());
    let (stop, stopped) = mpsc::channel();
    let thread = std::thread::Builder::new()
        .name("wake".to_owned())
        .spawn(move || jobs::wake_readers(pulse, &notifications, &stopped))
        .map_err(Error::internal)?;
    Ok(Some(Beside { stop, thread }))
}

/// Matches items, where this process does such work.
pub(super) fn start_matcher(
    db: &Db,
    notifications: &Notifications,
    (steady, node): (&Arc<Steady>, &Node),
) -> Result<Option<Beside>> {
    if !node.role().works() {
        return Ok(None);
    }
    let pulse = db.pulse()?;
    let (notifications, steady, node) = (notifications.clone(), Arc::clone(steady), node.clone());
    let (stop, stopped) = mpsc::channel();
    let thread = std::thread::Builder::new()
        .name("match".to_owned())
        .spawn(move || jobs::matching(pulse, &notifications, (&steady, &node), &stopped))
        .map_err(Error::internal)?;
    Ok(Some(Beside { stop, thread }))
}
