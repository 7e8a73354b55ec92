//! Everything that the service sends on its own initiative: deliveries, notifications and CDN purges, and the
//! rules on who may be mailed.

pub mod cdn;
pub mod delivery;
pub mod notifications;
pub mod recipients;
