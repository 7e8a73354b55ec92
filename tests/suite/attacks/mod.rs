//! Attacks that an outsider, a customer or a local user would try. Each test is named after what it prevents and
//! fails if the attack succeeds.

mod at_rest;
mod audit;
mod edge;
mod grants;
mod logins;
mod reading;
