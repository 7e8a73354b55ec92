//! Who calls and what they may have: authentication, OAuth2, users, agreements and purchases, provisioning by the
//! operator.

pub mod auth;
pub mod oauth;
pub mod orders;
pub mod provisioning;
pub mod users;
