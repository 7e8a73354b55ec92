//! Faults below a server: disks, files, clocks, the process itself. Nothing acknowledged is lost, nothing wrong is
//! served, and the service recovers without intervention (`docs/operations/failures.md` describes the behaviour).

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
