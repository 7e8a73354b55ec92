//! Opens the sender of cache purges to CDNs.

use crate::cluster::guard::ClusterGuard;
use crate::cluster::membership::ClusterLease;
use crate::distribution::cdn::CdnPurgers;
use crate::runtime::config::Config;
use crate::runtime::error::Result;
use crate::storage::database::Db;

/// Opens the sender of cache purges according to the settings; `None` on a node without background work, and if no
/// CDN is configured.
pub(super) fn open_purgers(
    config: &Config,
    db: &Db,
    guard: &ClusterGuard,
) -> Result<Option<CdnPurgers>> {
    if !guard.node().role().runs_background_work() {
        return Ok(None);
    }
    let purgers = CdnPurgers::open(&config.cdn, db, guard)?;
    if purgers.is_none() {
        // Leave the lease to a node whose settings configure a CDN.
        guard.node().decline_lease(ClusterLease::Purging);
    }
    Ok(purgers)
}
