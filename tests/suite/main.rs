//! What users of the product would notice, through the real thing: the binary on a port, its
//! command line, its files. `tests/COVERAGE.md` says which sentence of the contract each test
//! proves.

#![expect(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a test says by panicking what is wrong, and may look at clock and environment"
)]

mod accounts;
mod clients;
mod collections;
mod common;
mod deliveries;
mod engine;
mod formats;
mod http;
mod ingest;
mod items;
mod json;
mod keys_and_channels;
mod login;
mod mails;
mod media;
mod notifications;
mod oauth;
mod openapi;
mod operator;
mod pages;
mod pixels;
mod purchases;
mod push;
mod push_services;
mod receivers;
mod rights;
mod search;
mod site;
mod site_account;
mod site_channels;
mod site_docs;
mod site_sets;
mod site_studio;
mod stream;
mod users;
