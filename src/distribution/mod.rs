//! Everything that the service sends on its own initiative: deliveries, notifications and CDN purges. Also the
//! rules for mail recipients.

pub mod cdn;
pub mod delivery;
pub mod notifications;
pub mod recipients;
