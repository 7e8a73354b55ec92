//! What leaves the archive by itself: deliveries, notifications, purges of CDNs, and who may be mailed.

pub mod cdn;
pub mod delivery;
pub mod notifications;
pub mod recipients;
