//! Attacks on the service as an outsider, a customer and a local user would try them. Each test is
//! named after what it prevents and fails where the attack succeeds.

mod at_rest;
mod audit;
mod edge;
mod grants;
mod logins;
mod reading;
