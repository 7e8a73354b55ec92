//! The handlers of the JSON APIs, a file per resource, and their binding to the endpoints of `crates/api`.

pub(crate) mod binding;
pub(crate) mod channels;
pub(crate) mod collections;
pub(crate) mod content;
pub(crate) mod deliveries;
pub mod ingest;
pub(crate) mod item_edits;
pub(crate) mod item_rights;
pub(crate) mod keys;
pub(crate) mod logins;
pub(crate) mod operator;
pub(crate) mod orders;
pub(crate) mod organization;
pub(crate) mod response;
pub(crate) mod templates;
pub(crate) mod uploads;
pub(crate) mod user;

use binding::BoundEndpoints;

/// The endpoints that `crates/api` declares, with their handlers.
pub(crate) fn endpoints() -> BoundEndpoints {
    BoundEndpoints::new()
        .merge(orders::endpoints())
        .merge(user::endpoints())
        .merge(keys::endpoints())
        .merge(logins::endpoints())
        .merge(deliveries::endpoints())
        .merge(channels::endpoints())
        .merge(organization::endpoints())
        .merge(content::notifications::endpoints())
        .merge(collections::endpoints())
        .merge(ingest::endpoints())
        .merge(item_edits::endpoints())
        .merge(item_rights::endpoints())
        .merge(templates::endpoints())
        .merge(uploads::endpoints())
        .merge(operator::endpoints())
        .merge(content::endpoints())
}
