//! User-visible behaviour, tested from outside: the binary on a port, its command line, its files.
//! `tests/COVERAGE.md` maps the clauses of the contract to tests.

#![expect(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a test says by panicking what is wrong, and may look at clock and environment"
)]

mod access;
mod access_table;
mod accounts;
mod assets;
mod attacks;
mod backup;
mod backup_bucket;
mod balancer;
mod bucket_keys;
mod buckets;
mod cdn;
mod clients;
mod collections;
mod common;
mod compression;
mod container;
mod damage;
mod deliveries;
mod delivery_formats;
mod desk_edits;
mod desk_uploads;
mod documented;
mod engine;
mod faults;
mod formats;
mod garage;
mod generated_clients;
mod getting_in;
mod hostile;
mod http;
mod ingest;
mod items;
mod json;
mod keys_and_channels;
mod login;
mod mails;
mod media;
mod migrate;
mod nodes;
mod nodes_work;
mod notifications;
mod oauth;
mod openapi;
mod operator;
mod orphans;
mod overload;
mod ownership;
mod packaging;
mod pages;
mod pixels;
mod postgres;
mod purchases;
mod purges;
mod push;
mod push_services;
mod ready;
mod receivers;
mod reference;
mod reload;
mod requests;
mod rights;
mod scale;
mod scrub;
mod search;
mod search_forms;
mod search_language;
mod signals;
mod site;
mod site_account;
mod site_channels;
mod site_customer;
mod site_desk;
mod site_docs;
mod site_finding;
mod site_guide;
mod site_item;
mod site_operator;
mod site_selection;
mod site_sets;
mod site_staff;
mod site_studio;
mod site_swedish;
mod site_wall;
mod sizes;
mod store_marks;
mod store_s3;
mod stream;
mod systemd;
mod tls;
mod traces;
mod upgrades;
mod users;
mod withdrawal;
