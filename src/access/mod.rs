//! Access control: authentication, OAuth2, users, agreements and purchases, and provisioning by the operator.

pub mod auth;
pub mod oauth;
pub mod orders;
pub mod provisioning;
pub mod users;
