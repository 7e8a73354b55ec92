//! What breaks under a server: disks, files, clocks, the process itself. Nothing that was
//! acknowledged is lost, nothing wrong is served, and the service comes back by itself
//! (`docs/operations/failures.md` says what happens when).

mod clock;
mod damage;
mod disk;
mod kills;
pub mod kit;
mod ledger;
mod net;
mod nodes;
mod search;
mod turn;
