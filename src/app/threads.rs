//! Threads that work beside the requests.

use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use super::Archive;
use crate::auth::Auth;
use crate::config::Config;
use crate::db::Db;
use crate::error::{Error, Kind, Result};
use crate::ingest::watch::Watch;
use crate::jobs;
use crate::media::Media;
use crate::notifications::Notifications;
use crate::search::Search;
use crate::steady::Steady;
use crate::types::ItemKey;

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
    (media, auth, search): (&Media, &Auth, &Search),
    wanted: Option<tokio::sync::mpsc::Sender<ItemKey>>,
    followed: tokio::sync::watch::Sender<i64>,
) -> Result<Beside> {
    let follower = db.follower()?;
    let (stop, stopped) = mpsc::channel();
    let (media, auth, search) = (media.clone(), auth.clone(), search.clone());
    let thread = std::thread::Builder::new()
        .name("follow".to_owned())
        .spawn(move || {
            let services = (&media, &auth, &search);
            jobs::follow(follower, services, wanted.as_ref(), &followed, &stopped);
        })
        .map_err(Error::internal)?;
    Ok(Beside { stop, thread })
}

/// Watches the folder of the settings, if there is one.
pub(super) fn start_watcher(config: &Config, archive: &Archive) -> Result<Option<Beside>> {
    let dir = &config.ingest.watch;
    if dir.as_os_str().is_empty() {
        return Ok(None);
    }
    let ingest = archive.ingest(config)?.for_server();
    let watch = Watch::open(dir, ingest, config.ingest_workers()).map_err(|cause| {
        let message = format!("ingest.watch: folder {} cannot be used", dir.display());
        Error::new(Kind::Unavailable, message).because(cause)
    })?;
    let interval = Duration::from_millis(u64::from(config.ingest.watch_interval_ms));
    let (stop, stopped) = mpsc::channel();
    let thread = std::thread::Builder::new()
        .name("watch".to_owned())
        .spawn(move || jobs::watch(watch, interval, &stopped))
        .map_err(Error::internal)?;
    Ok(Some(Beside { stop, thread }))
}

pub(super) fn start_matcher(
    db: &Db,
    notifications: &Notifications,
    steady: &Arc<Steady>,
) -> Result<Beside> {
    let pulse = db.pulse()?;
    let (notifications, steady) = (notifications.clone(), Arc::clone(steady));
    let (stop, stopped) = mpsc::channel();
    let thread = std::thread::Builder::new()
        .name("match".to_owned())
        .spawn(move || jobs::matching(pulse, &notifications, &steady, &stopped))
        .map_err(Error::internal)?;
    Ok(Beside { stop, thread })
}
